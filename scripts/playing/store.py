"""What is kept between games: the running game of each puzzle, and the records."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import platformdirs
from filelock import FileLock, Timeout

from ... import __version__
from ...envs.common.files import atomic

FORMAT = "puzzlegym-play-1"
RECORDS = "records"
_RECORD_SECONDS = 5.0  # for which another process may hold the records

Data = dict[str, Any]


class SaveError(ValueError):
    """A file that is no save of this version."""


def data_folder() -> Path:
    """Where saves live: the user's data folder."""
    return platformdirs.user_data_path("puzzlegym", appauthor=False)


class Store:
    """A JSON file that is written whole or not at all, and the lock that keeps it for one process."""

    def __init__(self, folder: Path, name: str) -> None:
        """The file ``name``.json in ``folder``."""
        self.path = folder / f"{name}.json"
        self._lock = FileLock(folder / f"{name}.lock")

    def claim(self, seconds: float = 0.0) -> bool:
        """Keep the file for this process; False if another one has it. Raises OSError if the folder is not to be had.

        The system gives the lock back when the process ends, however it ends.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=seconds)
        except Timeout:
            return False
        return True

    def release(self) -> None:
        """Let other processes have the file."""
        self._lock.release()

    def read(self) -> Data | None:
        """What was written last; None if nothing was. Raises SaveError for a damaged file or another version's."""
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError):
            raise SaveError("is damaged") from None
        except OSError as error:
            raise SaveError(f"cannot be read ({error.strerror})") from None
        if not isinstance(data, dict) or "format" not in data:
            raise SaveError("is damaged")
        if data["format"] != FORMAT:
            raise SaveError(f"is from another version of puzzlegym ({data.get('puzzlegym', data['format'])})")
        return data

    def write(self, data: Data) -> None:
        """Replace the file. Raises OSError, with the old one untouched."""
        with atomic(self.path) as temporary:
            temporary.write_text(json.dumps({**data, "format": FORMAT, "puzzlegym": __version__}), encoding="utf-8")

    def set_aside(self) -> Path:
        """Rename the file, so that nothing overwrites it; the new path. Raises OSError."""
        number = 1
        while (aside := self.path.with_name(f"{self.path.stem}-unreadable-{number}.json")).exists():
            number += 1
        self.path.rename(aside)
        return aside


class Records:
    """Best results, shared by all processes. Where they cannot be kept, they last as long as the process."""

    def __init__(self, folder: Path) -> None:
        """Read what there is; ``problem`` says in a line what is wrong with it."""
        self._store = Store(folder, RECORDS)
        self._known: Data = {}
        self.problem = ""
        self._under_lock(lambda known: False)

    def get(self, name: str) -> float | None:
        """A record, None if there is none."""
        return _figure(self._known.get(name))

    def keep(self, name: str, value: float, better: Callable[[float, float], float]) -> bool:
        """Note a result that ``better`` (max or min) takes before the record; is it the new record?"""

        def note(known: Data) -> bool:
            old = _figure(known.get(name))
            if old is not None and better(old, value) == old:
                return False
            known[name] = value
            return True

        return self._under_lock(note)

    def _under_lock(self, change: Callable[[Data], bool]) -> bool:
        """Read what others have written, change it, write it."""
        try:
            claimed = self._store.claim(_RECORD_SECONDS)
        except OSError as error:
            claimed, self.problem = False, f"Records cannot be kept in {self._store.path.parent}: {error.strerror}."
        if not claimed and not self.problem:
            self.problem = "Records are in use by another puzzlegym: these last as long as this game."
        try:
            if claimed:
                self._known = self._read()
            changed = change(self._known)
            if changed and claimed:
                self._store.write(self._known)
            return changed
        except OSError as error:
            self.problem = f"Records cannot be kept: {error.strerror}."
            return True
        finally:
            if claimed:
                self._store.release()

    def _read(self) -> Data:
        try:
            return self._store.read() or {}
        except SaveError as error:
            aside = self._store.set_aside()
            self.problem = f"The file of records {error}: it is kept as {aside.name}, and new records begin."
            return {}


def _figure(value: Any) -> float | None:
    """A record as it can be, whatever stands in the file."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and 0 <= value < math.inf else None
