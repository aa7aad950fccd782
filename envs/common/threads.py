"""Worker threads for compiled loops that release the GIL.

A pool of the standard library needs about 70 microseconds to hand over a task and learn of its end, which is a good
part of the step of a large batch; a bare queue and lock need a fifth of that.
"""

from __future__ import annotations

import _thread
import os
import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from queue import SimpleQueue
from typing import Any, NamedTuple

from . import jit

Part = tuple[int, int]


class _Job(NamedTuple):
    """A part of a task, and where its answer goes."""

    task: Callable[[int, int], int]
    part: Part
    answers: list[int | BaseException]
    done: Any  # a lock, held until the part is done


_jobs: SimpleQueue[_Job] = SimpleQueue()
_workers = 0


def available() -> int:
    """Threads worth starting: the cores this process may use, or fewer if NUMBA_NUM_THREADS says so."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(min(cores, jit.config.NUMBA_NUM_THREADS))


def split(n: int, parts: int) -> list[Part]:
    """``range(n)`` in so many parts of nearly the same length, as (first, behind the last)."""
    edges = [n * i // parts for i in range(parts + 1)]
    return list(pairwise(edges))


def spread(task: Callable[[int, int], int], parts: Sequence[Part]) -> int:
    """Run ``task(first, last)`` for all parts at once, the first one here; returns the sum of the answers."""
    _hire(len(parts) - 1)
    answers: list[int | BaseException] = []
    locks = []
    for part in parts[1:]:
        done = _thread.allocate_lock()
        done.acquire()
        locks.append(done)
        _jobs.put(_Job(task, part, answers, done))
    try:
        total = task(*parts[0])
    finally:  # nobody may go on while a part is still being worked on
        for done in locks:
            done.acquire()
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
        total += answer
    return total


def _hire(wanted: int) -> None:
    global _workers
    while _workers < wanted:
        _workers += 1
        threading.Thread(target=_work, args=(_jobs,), name=f"puzzlegym-{_workers}", daemon=True).start()


def _work(jobs: SimpleQueue[_Job]) -> None:
    while True:
        job = jobs.get()
        try:
            job.answers.append(job.task(*job.part))
        except BaseException as error:
            job.answers.append(error)
        finally:
            job.done.release()
        del job  # it holds the arrays of a batch


def _start_anew() -> None:
    """A forked process has none of its parent's threads."""
    global _jobs, _workers
    _jobs, _workers = SimpleQueue(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
