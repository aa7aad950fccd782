"""Files that are whole or not there: written beside their place, then moved into it."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

_numbers = itertools.count()


def beside(path: Path) -> Path:
    """A hidden temporary path in the folder of ``path``, another one on every call."""
    return path.with_name(f".{path.name}.{os.getpid()}.{next(_numbers)}.tmp")


def check_place(path: Path) -> None:
    """Can a file be written at ``path``? Raises OSError, which names it: no such folder, a folder itself, not writable.

    To be asked before the work that the file is for.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def put_in_place(temporary: Path, path: Path) -> None:
    """Move a finished file to ``path`` in one step, its content on the disk first."""
    with temporary.open("rb+") as file:  # Windows syncs only what may be written
        os.fsync(file.fileno())
    temporary.replace(path)


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place at the end; on any error the old file stays whole."""
    temporary = beside(path)
    try:
        yield temporary
        put_in_place(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
