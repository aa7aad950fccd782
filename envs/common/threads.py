"""Several threads for one kernel call over many rows.

A pool of the standard library needs about 70 microseconds to hand over work and learn of its end, a sleeping thread
50 to wake up and to answer: a good part of the step of a large batch. So the rows are shared out inside the kernel, by
an atomic counter, and a worker that has just helped looks out for the next call for a moment before it goes to sleep.
It does so without the interpreter's lock, and takes that only while the leading thread is inside a kernel: neither ever
waits for the other to give it back.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import jit
from .jit import Int, njit

# Words of a share, the int64 array that the threads of one call have in common.
NEXT, ROWS, CHUNK, DONE, ENDED, SHARE = 0, 1, 2, 3, 4, 5
_CHUNKS = 8  # per thread: enough that nobody waits long for the slowest
_LOOKS = 1_000_000  # a worker looks at the pulse so often before it sleeps: some 0.25 ms


if jit.config.DISABLE_JIT:

    def _add(array: NDArray[np.int64], i: int, value: Int) -> Any:
        array[i] += value
        return array[i] - value

    def _read(array: NDArray[np.int64], i: int) -> Any:
        return array[i]

else:
    from numba.core import types
    from numba.extending import intrinsic

    @intrinsic
    def _add(_context: Any, array: Any, i: Any, value: Any) -> Any:
        """Atomic ``array[i] += value``; returns the value before (int64 arrays)."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.atomic_rmw("add", _pointer(context, builder, signature, arguments), arguments[2], "seq_cst")

        return types.int64(array, types.intp, types.int64), generate

    @intrinsic
    def _read(_context: Any, array: Any, i: Any) -> Any:
        """Atomic ``array[i]`` (int64 arrays)."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.load_atomic(_pointer(context, builder, signature, arguments), "seq_cst", 8)

        return types.int64(array, types.intp), generate

    def _pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.gep(array.data, [arguments[1]])


@njit
def enter(pulse: NDArray[np.int64], ticket: Int) -> None:
    """The leading thread (ticket 0) lets waiting workers know that a call has begun."""
    if ticket == 0:
        _add(pulse, 0, 1)


@njit
def claim(share: NDArray[np.int64]) -> tuple[int, int]:
    """Rows that are this thread's from now on: (first, behind the last), the same number if none are left."""
    rows = share[ROWS]
    first = min(_add(share, NEXT, share[CHUNK]), rows)
    return first, min(first + share[CHUNK], rows)


@njit
def finish(share: NDArray[np.int64], rows: Int, ended: Int) -> None:
    """Report rows done, and how many games ended in them."""
    _add(share, ENDED, ended)
    _add(share, DONE, rows)


@njit
def close(share: NDArray[np.int64]) -> int:
    """Give out no more rows; returns how many have been."""
    return int(min(_add(share, NEXT, share[ROWS]), share[ROWS]))


@njit
def leave(share: NDArray[np.int64], pulse: NDArray[np.int64], ticket: Int) -> None:
    """The leading thread waits a while for the workers' last rows, a worker for the next call."""
    for _ in range(_LOOKS):
        if ticket == 0 and _read(share, DONE) == share[ROWS]:
            break
        if ticket != 0 and _read(pulse, 0) != ticket:
            break


class _Job(NamedTuple):
    """A call: ``kernel(share, pulse, ticket, *arguments)``; no kernel once it is over."""

    ticket: int
    kernel: Callable[..., None] | None = None
    share: NDArray[np.int64] | None = None
    arguments: tuple[Any, ...] = ()


class _Worker(threading.Thread):
    """Helps with one call after the other."""

    def __init__(self, team: _Team) -> None:
        super().__init__(name="puzzlegym", daemon=True)
        self.team, self.seen, self.asleep = team, 0, False
        self.alarm: SimpleQueue[None] = SimpleQueue()

    def run(self) -> None:
        while True:
            self.help(self.team.job)
            if self.team.job.ticket == self.seen:
                self.asleep = True
                self.alarm.get()

    def help(self, job: _Job) -> None:
        if job.ticket != self.seen and job.kernel is not None:
            job.kernel(job.share, self.team.pulse, job.ticket, *job.arguments)
        self.seen = job.ticket


class _Team:
    """The threads of a process; they serve one call at a time."""

    def __init__(self) -> None:
        self.job, self.pulse = _Job(0), np.zeros(1, dtype=np.int64)
        self.workers: list[_Worker] = []
        self.leading = threading.Lock()

    def call(self, kernel: Callable[..., None], rows: int, threads: int, arguments: tuple[Any, ...]) -> int:
        """Lead a call; returns the number of ended games."""
        while len(self.workers) < threads - 1:
            worker = _Worker(self)
            worker.start()
            self.workers.append(worker)
        share = np.zeros(SHARE, dtype=np.int64)
        share[ROWS], share[CHUNK] = rows, -(-rows // (_CHUNKS * threads))
        self.job = _Job(int(self.pulse[0]) + 1, kernel, share, arguments)
        try:
            for worker in self.workers[: threads - 1]:
                if worker.asleep:
                    worker.asleep = False
                    worker.alarm.put(None)
            kernel(share, self.pulse, 0, *arguments)
        finally:
            self._close(share)
        return int(share[ENDED])

    def _close(self, share: NDArray[np.int64]) -> None:
        """End a call: nobody may go on while rows are still being worked on, Ctrl-C or not."""
        claimed, interrupt = close(share), None
        while share[DONE] < claimed:
            try:
                time.sleep(0)
            except KeyboardInterrupt as error:
                interrupt = error
        self.job = _Job(self.job.ticket)
        self.pulse[0] = self.job.ticket
        if interrupt is not None:
            raise interrupt


_team = _Team()


def available() -> int:
    """Threads worth starting: the cores this process may use, or fewer if NUMBA_NUM_THREADS says so."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 1 if jit.config.DISABLE_JIT else int(min(cores, jit.config.NUMBA_NUM_THREADS))


def spread(kernel: Callable[..., None], rows: int, threads: int, *arguments: Any) -> int:
    """Call ``kernel(share, pulse, ticket, *arguments)`` in several threads; returns the number of ended games.

    The kernel claims rows until none are left; see ``rules.share_rows`` of a puzzle. If another thread of this process
    is leading a call just now, this one is made by the calling thread alone.
    """
    if not _team.leading.acquire(blocking=False):
        share = np.array([0, rows, rows, 0, 0], dtype=np.int64)
        kernel(share, np.zeros(1, dtype=np.int64), 0, *arguments)
        return int(share[ENDED])
    try:
        return _team.call(kernel, rows, threads, arguments)
    finally:
        _team.leading.release()


def _start_anew() -> None:
    """A forked process has none of its parent's threads."""
    global _team
    _team = _Team()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
