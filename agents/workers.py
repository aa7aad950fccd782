"""Work spread over processes: results come as they are made, and no process outlives the one that started it.

``ray_work`` spreads the same work over a Ray cluster.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, TypeVar

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")
Item = TypeVar("Item")
Work = Callable[[Chunk], Iterable[Result]]

_RESULT, _END, _ERROR = range(3)


class Spread(Protocol):
    """Something that spreads work: see ``ray_work.spread_on_ray``, which also says how many items go together."""

    def __call__(
        self, work: Callable[[list[Item]], Iterable[Result]], items: Iterable[Item], total: int, least: int = 1
    ) -> Generator[Result, None, None]:
        """All that ``work`` makes of ``total`` items, in the order in which it gets done.

        ``least``: so many items at once take hardly longer than one.
        """
        ...


def in_order(results: Iterable[tuple[Item, Result]], order: Iterable[Item]) -> Generator[Result, None, None]:
    """Results that come with their items, in the order of these, whichever come first; each as soon as it can."""
    early: dict[Item, Result] = {}
    rest = iter(results)
    for item in order:
        while item not in early:
            found, result = next(rest)
            early[found] = result
        yield early.pop(item)


def spread(
    work: Callable[[Chunk], Iterable[Result]], chunks: Iterable[Chunk], jobs: int
) -> Generator[Result, None, None]:
    """All that ``work`` makes of the chunks, in the order in which it gets done, by ``jobs`` processes.

    ``work`` is a function of a module, or a partial of one. What it raises is raised here; ChildProcessError if a
    process was killed. The processes end with this iterator: close it.
    """
    rest, team = iter(chunks), _Team(work)
    try:
        for chunk in islice(rest, jobs):
            team.start(chunk)
        while team.busy:
            for connection in wait(team.busy):
                assert isinstance(connection, Connection)
                kind, value = _received(connection)
                if kind == _RESULT:
                    yield value
                elif kind == _ERROR:
                    raise value
                else:
                    team.give(connection, rest)
    finally:
        team.end()


def _received(connection: Connection) -> tuple[int, Any]:
    try:
        kind, value = connection.recv()
    except (EOFError, OSError):
        raise ChildProcessError("a process was killed while it worked: was there not enough memory?") from None
    return kind, value


class _Team:
    """The processes, and the connections to those that have work."""

    def __init__(self, work: Work[Any, Any]) -> None:
        self.busy: list[Connection] = []
        self._work, self._processes = work, list[BaseProcess]()

    def start(self, chunk: object) -> None:
        """One process more, which begins with this chunk."""
        context = multiprocessing.get_context("spawn")  # a fork would copy threads in the middle of what they do
        mine, its = context.Pipe()
        process = context.Process(target=_serve, args=(self._work, its), daemon=True)
        with _deaf():
            process.start()
        its.close()  # so that there is an end of file when the process is no more
        self._processes.append(process)
        self.busy.append(mine)
        mine.send(chunk)

    def give(self, connection: Connection, rest: Iterator[object]) -> None:
        """The next chunk for one that is done, if there is one."""
        for chunk in rest:
            connection.send(chunk)
            return
        self.busy.remove(connection)

    def end(self) -> None:
        """End all processes at once, whatever they do."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes started here never hear Ctrl-C: it is meant for the one that started them, which ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # the start of it would let the signal through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(work: Work[Any, Any], connection: Connection) -> None:
    """A process: chunk by chunk, until nobody is there any more to ask for one."""
    try:
        while True:
            chunk = connection.recv()
            try:
                for result in work(chunk):
                    connection.send((_RESULT, result))
            except Exception as error:
                connection.send((_ERROR, error))
            else:
                connection.send((_END, None))
    except (EOFError, OSError):
        return
