"""A file of answers that grows deal by deal, so that a search that was stopped goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from ..envs.common.files import atomic, check_place
from .solving import Answer, Limits

_UNTIMED = "untimed"


class AnswerFile:
    """Answers to a range of deals as JSON lines; the first line says which deals, and by which limits.

    Every answer is in the file as soon as it is added, in whatever order; ``sort`` puts them into that of the deals. A
    last line that was written half-way counts as not there. To be used in a ``with`` statement.
    """

    def __init__(self, path: Path, deals: range, limits: Limits, untimed: bool = False) -> None:
        """Go on with a file or begin one, ``untimed`` for answers that are.

        Raises OSError, and ValueError for a file of anything else.
        """
        self.path, self._deals = path, deals
        settings = {"time": limits.seconds, "memory": limits.megabytes, "short": limits.short}
        if untimed:
            settings[_UNTIMED] = True
        self._head = json.dumps({"deals": f"{deals[0]}-{deals[-1]}", **settings}).encode() + b"\n"
        self._places: dict[int, int] = {}  # where the line of a deal begins
        check_place(path)
        self._end = self._read() if path.exists() else 0
        self._file = self._open()

    def __enter__(self) -> AnswerFile:
        """Itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the file."""
        self._file.close()

    def __len__(self) -> int:
        """Number of answers."""
        return len(self._places)

    def missing(self) -> Iterator[int]:
        """The deals without an answer."""
        return (deal for deal in self._deals if deal not in self._places)

    def answers(self) -> Generator[Answer, None, None]:
        """All answers, in the order of the deals."""
        return (Answer.from_json(line) for line in self._lines())

    def _lines(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            for deal in sorted(self._places):
                file.seek(self._places[deal])
                yield file.readline()

    def add(self, answer: Answer) -> None:
        """Write an answer."""
        assert answer.deal is not None
        line = answer.to_json().encode() + b"\n"
        self._file.write(line)
        self._file.flush()
        self._places[answer.deal] = self._end
        self._end += len(line)

    def sort(self) -> None:
        """Put the answers into the order of the deals; to be called when all are there."""
        os.fsync(self._file.fileno())
        places = (self._places[deal] for deal in sorted(self._places))
        if any(after < before for before, after in pairwise(places)):
            with atomic(self.path) as temporary, temporary.open("wb") as file:
                file.write(self._head)
                file.writelines(self._lines())
            self._file.close()
            self._end = self._read()

    def _read(self) -> int:
        """Note where each answer is; returns where the next one goes."""
        self._places.clear()
        with self.path.open("rb") as file:
            head = file.readline()
            if head != self._head:
                if self._head.startswith(head):  # empty, or stopped that early
                    return 0
                raise ValueError(_foreign(self.path, head, self._head))
            end = len(head)
            for line in file:
                deal = self._deal(line)
                if deal is None and file.read(1):
                    raise ValueError(f"{self.path}: after byte {end:,} is no answer of 'puzzlegym solve'")
                if deal is None:
                    break
                self._places[deal] = end
                end += len(line)
        return end

    def _deal(self, line: bytes) -> int | None:
        """The deal of a whole line, None for any other."""
        try:
            answer = Answer.from_json(line)
        except ValueError:
            return None
        return answer.deal if line.endswith(b"\n") and answer.deal in self._deals else None

    def _open(self) -> BinaryIO:
        """The file, to write what comes next."""
        file = self.path.open("r+b" if self.path.exists() else "wb")
        file.truncate(self._end)
        file.seek(self._end)
        if not self._end:
            file.write(self._head)
            file.flush()
            self._end = len(self._head)
        return file


def _foreign(path: Path, head: bytes, wanted: bytes) -> str:
    try:
        known = set(json.loads(head)) - {_UNTIMED} == set(json.loads(wanted)) - {_UNTIMED}
    except (ValueError, TypeError):
        known = False
    if not known:
        return f"{path} holds something else than answers of 'puzzlegym solve': choose another file"
    asked, there = wanted.decode().strip(), head.decode().strip()
    return f"{path} holds answers to {there}, not to {asked}: choose another file, or the same options"
