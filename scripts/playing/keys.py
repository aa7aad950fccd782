"""Keys from a terminal, one at a time, or the characters of a pipe as if they were typed."""

from __future__ import annotations

import codecs
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from .._console import suspendable

ENTER, ESCAPE, BACKSPACE = "enter", "escape", "backspace"
UP, DOWN, RIGHT, LEFT = "up", "down", "right", "left"
REDO, CLEAR = "ctrl-r", "ctrl-u"
NOTHING = ""  # no key of use, or none in the given time

_ARROWS = {"A": UP, "B": DOWN, "C": RIGHT, "D": LEFT}
_CONTROLS = {
    "\r": ENTER,
    "\n": ENTER,
    "\x7f": BACKSPACE,
    "\b": BACKSPACE,
    "\x12": REDO,
    "\x15": CLEAR,
}
_END = "\x04"  # Ctrl-D, which ends a text
_SEQUENCE = re.compile(r"[\[O][0-9;]*([A-Za-z~])")
_ESCAPE_SECONDS = 0.05  # within which the rest of an arrow key comes
_WINDOWS_ARROWS = {"H": UP, "P": DOWN, "M": RIGHT, "K": LEFT}


class Keys:
    """The keys of a terminal without waiting for Enter; in a pipe, its characters, of which a line's end is Enter."""

    def __init__(self, stream: TextIO) -> None:
        """Read from ``stream``."""
        self.stream = stream
        self.is_terminal = stream.isatty()
        self._waiting = ""
        self._decode = codecs.getincrementaldecoder("utf-8")("ignore").decode
        self._ended = False

    @contextmanager
    def open(self) -> Iterator[Keys]:
        """Let the terminal give every key at once, without showing it, and put it back as it was, for Ctrl-Z, too."""
        if sys.platform == "win32" or not self.is_terminal:
            yield self
            return
        import termios
        import tty

        before = termios.tcgetattr(self.stream)

        def at_once() -> None:  # Ctrl-C still interrupts, and what was typed too early is not lost
            tty.setcbreak(self.stream, termios.TCSADRAIN)

        def as_it_was() -> None:
            termios.tcsetattr(self.stream, termios.TCSADRAIN, before)

        with suspendable(as_it_was, at_once):
            try:
                at_once()
                yield self
            finally:
                as_it_was()

    def read(self, seconds: float | None = None) -> str | None:
        """The next key by its name, or as itself if it is ASCII.

        ``NOTHING`` for other keys and after so many ``seconds`` without one; None when the input has ended.
        """
        if not self._waiting and not self._fill(seconds):
            return None if self._ended else NOTHING
        first, self._waiting = self._waiting[0], self._waiting[1:]
        if first == "\x1b":
            return self._escaped()
        if first == _END:
            return None
        if first == "\r" and self._waiting.startswith("\n"):
            self._waiting = self._waiting[1:]
        return _CONTROLS.get(first) or (first if first.isascii() and first.isprintable() else NOTHING)

    def _escaped(self) -> str:
        if not self._waiting:
            self._fill(_ESCAPE_SECONDS)
        match = _SEQUENCE.match(self._waiting)
        if not match:
            return ESCAPE
        self._waiting = self._waiting[match.end() :]
        return _ARROWS.get(match[1], NOTHING)

    def _fill(self, seconds: float | None) -> bool:
        """Wait for input; False if none came or it has ended."""
        if sys.platform == "win32" and self.is_terminal:
            self._waiting += _from_windows(seconds)
        elif self._ready(seconds):
            data = os.read(self.stream.fileno(), 4096)
            self._ended = not data
            self._waiting += self._decode(data)
        return bool(self._waiting)

    def _ready(self, seconds: float | None) -> bool:
        if not self.is_terminal:  # a pipe is read as fast as it comes, and no clock is shown beside it
            return True
        import select

        return bool(select.select([self.stream], [], [], seconds)[0])


def _from_windows(seconds: float | None) -> str:
    """A key of the Windows console, arrows as the sequences that terminals send."""
    if sys.platform != "win32":
        return ""
    import msvcrt

    end = None if seconds is None else time.monotonic() + seconds
    while not msvcrt.kbhit():
        if end is not None and time.monotonic() >= end:
            return ""
        time.sleep(0.02)
    key = msvcrt.getwch()
    if key == "\x03":
        raise KeyboardInterrupt
    if key not in "\x00\xe0":
        return key
    names = {name: letter for letter, name in _ARROWS.items()}
    arrow = _WINDOWS_ARROWS.get(msvcrt.getwch())
    return f"\x1b[{names[arrow]}" if arrow else ""
