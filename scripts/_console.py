"""Writing to a terminal or into a pipe."""

from __future__ import annotations

import _thread
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import FrameType
from typing import TextIO

from ..envs.common.ansi import plain

_HOME, _CLEAR, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[2J", "\x1b[K", "\x1b[J"
_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"
_QUIET_SECONDS = 15.0  # between lines of progress where there is no terminal
# Signals that end a program, and those that stop it until the user wants it back: not every system has all of them.
_ENDS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
_STOP = getattr(signal, "SIGTSTP", None)


def is_terminal(stream: TextIO) -> bool:
    """Can the stream show a picture in place?"""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def counted(n: int, noun: str) -> str:
    """A number with its noun, such as ``1 move`` or ``1,204 moves``."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


class Frames:
    """Pictures one after another: in place on a terminal, else below each other without any control codes."""

    def __init__(self, stream: TextIO) -> None:
        """Write to ``stream``."""
        self.stream = stream
        self.in_place = is_terminal(stream)
        self._shown: list[str] = []

    @property
    def width(self) -> int:
        """Columns to fill: those of the terminal, 80 in a pipe."""
        return shutil.get_terminal_size().columns if self.in_place else 80

    @property
    def height(self) -> int:
        """Rows to fill: those of the terminal but the last, which stays free for the line after the end."""
        return shutil.get_terminal_size().lines - 1

    def show(self, lines: list[str]) -> None:
        """Show one picture; what does not fit the terminal is cut off below."""
        self._shown = lines
        if not self.in_place:
            self.stream.write(plain("\n".join(lines)).rstrip() + "\n\n")
        else:
            # Overwriting beats clearing first: nothing flickers.
            body = "".join(f"{line}{_CLEAR_LINE}\n" for line in lines[: self.height])
            self.stream.write(_HOME + body + _CLEAR_BELOW)
        self.stream.flush()

    @contextmanager
    def open(self) -> Iterator[Frames]:
        """Prepare the terminal and give it back as it was, whatever happens."""
        if not self.in_place:
            yield self
            return
        with terminable(), suspendable(self._leave, self._enter):  # so that `finally` below runs
            try:
                self._enter()
                yield self
            finally:
                self._leave()

    def _enter(self) -> None:
        self.stream.write(_HIDE_CURSOR + _NO_WRAP + _CLEAR)
        if self._shown:
            self.show(self._shown)

    def _leave(self) -> None:
        self.stream.write(_WRAP + _SHOW_CURSOR)
        self.stream.flush()


@contextmanager
def _handled(number: int, handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle a signal while inside; only the main thread may and needs to."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def _exit(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _interrupt(_signal: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but a little later if compiled code is just being cached: it would be lost there."""
    while frame is not None:
        if frame.f_code.co_name.startswith("_raw_object_cache"):  # a callback from C, which swallows exceptions
            threading.Timer(0.02, _thread.interrupt_main).start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def interruptible() -> AbstractContextManager[None]:
    """Let Ctrl-C work at any time, while numba compiles, too."""
    return _handled(signal.SIGINT, _interrupt)


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM, and SIGHUP of a terminal that is closed, end the program as an exception does: cleaning up."""
    with ExitStack() as stack:
        for number in _ENDS:
            stack.enter_context(_handled(number, _exit))
        yield


@contextmanager
def suspendable(leave: Callable[[], None], enter: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-Z stop the program with the terminal as it was: ``leave`` before, ``enter`` when it goes on."""
    if _STOP is None:
        yield
        return
    outer = signal.getsignal(_STOP)

    def stop(number: int, frame: FrameType | None) -> None:
        leave()
        if callable(outer):  # it has something to put back, too, and stops
            outer(number, frame)
        else:
            os.kill(os.getpid(), signal.SIGSTOP)
        enter()

    with _handled(_STOP, stop):
        yield


@contextmanager
def progress(description: str, total: int) -> Iterator[Callable[[int, int, int], None] | None]:
    """A bar on stderr for ``evaluate``'s progress; None where stderr is no terminal."""
    if not is_terminal(sys.stderr):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("games"),
        TextColumn("{task.fields[moves]:,} moves"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total, moves=0)
        yield lambda done, _total, moves: bar.update(task, completed=done, moves=moves)


def _line_now_and_then() -> Callable[[str, int], None]:
    done, last = -1, time.monotonic()

    def tick(name: str, total: int) -> None:
        nonlocal done, last
        done += total > 0
        if time.monotonic() - last > _QUIET_SECONDS:
            last = time.monotonic()
            print(f"{done} of {total}: {name}" if total else name, file=sys.stderr, flush=True)

    return tick


@contextmanager
def steps_done(description: str) -> Iterator[Callable[[str, int], None]]:
    """A bar on stderr for work of many steps: call it with the next one's name and how many there are (0: not known).

    Where stderr is no terminal, it gets a line now and then.
    """
    if not is_terminal(sys.stderr):
        yield _line_now_and_then()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(bar_width=20), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=None, completed=-1)

        def tick(name: str, total: int) -> None:
            bar.update(task, description=name, total=total or None, advance=1 if total else 0)

        yield tick
