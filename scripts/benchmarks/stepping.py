"""Steps a second of the environments: legal play, actions chosen outside the clock."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ...envs.common import threads
from ...envs.common.masks import choose_legal
from .rounds import Case

SIZES = (1, 64, 1024, 8192)
RATE, BYTES = "steps/s", "bytes/game"
_WARM_UP = 20  # steps of a fresh batch, which compile and leave the first boards
_MEMORY_BATCH, _MEMORY_SINGLES = 4096, 200


class Single:
    """One environment as ``gymnasium.make`` gives it."""

    def __init__(self, env_id: str) -> None:
        """Make it, and make it warm."""
        self.env = gymnasium.make(env_id)
        self.rng = np.random.default_rng(0)
        _, self.info = self.env.reset(seed=0)
        self.measure(0.01)

    def measure(self, seconds: float) -> float:
        """Steps per second over about so many seconds of stepping; resets are not counted."""
        spent, steps, step, clock = 0.0, 0, self.env.step, time.perf_counter
        while spent < seconds:
            action = int(self.rng.choice(np.flatnonzero(self.info["action_mask"])))
            before = clock()
            _, _, terminated, truncated, self.info = step(action)
            spent += clock() - before
            steps += 1
            if terminated or truncated:
                _, self.info = self.env.reset()
        return steps / spent


class Batch:
    """A native batch as ``gymnasium.make_vec`` gives it (autoreset with the next step)."""

    def __init__(self, env_id: str, size: int, num_threads: int | None = None, copy: bool = True) -> None:
        """Make it, and make it warm."""
        self.size = size
        self.envs = gymnasium.make_vec(env_id, num_envs=size, num_threads=num_threads, copy=copy)
        self.rng = np.random.default_rng(0)
        self.obs, infos = self.envs.reset(seed=0)
        self.mask: NDArray[np.int8] = infos["action_mask"]
        self.resets = np.zeros(size, dtype=np.bool_)
        for _ in range(_WARM_UP):
            self.step()

    def step(self) -> tuple[float, int]:
        """(seconds that one step of the batch took, moves made in it); a step that only starts a game is none."""
        actions = choose_legal(self.mask, self.rng.random(self.size))
        moves = self.size - int(self.resets.sum())
        before = time.perf_counter()
        self.obs, _, terminated, truncated, infos = self.envs.step(actions)
        seconds = time.perf_counter() - before
        self.mask, self.resets = infos["action_mask"], terminated | truncated
        return seconds, moves

    def measure(self, seconds: float) -> float:
        """Moves per second over about so many seconds of stepping."""
        spent, made = 0.0, 0
        while spent < seconds:
            took, moves = self.step()
            spent, made = spent + took, made + moves
        return made / spent


def single_cases(env_id: str, seconds: float) -> Iterator[Case]:
    """``gymnasium.make``."""
    single = Single(env_id)
    yield Case("single", env_id, "gymnasium.make", RATE, lambda: single.measure(seconds))


def vector_cases(env_id: str, seconds: float) -> Iterator[Case]:
    """Native batches on one core, without copies, and on all cores."""
    forms = {"1 core": (1, True), "1 core, copy=False": (1, False)}
    if threads.available() > 1:
        forms[f"{threads.available()} cores"] = (threads.available(), True)
    for size in SIZES:
        for name, (count, copy) in forms.items():
            batch = Batch(env_id, size, count, copy)
            yield Case("vector", env_id, f"N = {size:,}; {name}", RATE, lambda b=batch: b.measure(seconds))  # type: ignore[misc]


def memory_cases(env_id: str, _seconds: float) -> Iterator[Case]:
    """What a game of a batch, and a single environment, keep allocated after a step."""

    def of_batch() -> float:
        return _allocated(lambda: Batch(env_id, _MEMORY_BATCH)) / _MEMORY_BATCH

    def of_single() -> float:
        return _allocated(lambda: [Single(env_id) for _ in range(_MEMORY_SINGLES)]) / _MEMORY_SINGLES

    yield Case("memory", env_id, "a game of a batch", BYTES, of_batch, rounds=1)
    yield Case("memory", env_id, "gymnasium.make", BYTES, of_single, rounds=1)


def _allocated(make: object) -> float:
    """Bytes that what ``make()`` returns holds (as Python and numpy allocate them)."""
    assert callable(make)
    make()  # what is made once for all
    tracemalloc.start()
    try:
        kept = make()
        size, _ = tracemalloc.get_traced_memory()
        del kept
    finally:
        tracemalloc.stop()
    return float(size)
