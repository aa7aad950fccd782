"""Where the time of a step goes: the parts of the rules one by one, on the same boards from the middle of games."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...envs.base.puzzle import Phase
from ...envs.base.vector_env import PuzzleVectorEnv
from .rounds import Case
from .stepping import Batch

UNIT = "ns/game"
_SIZE, _AGE, _CALLS = 4096, 40, 20  # games, steps before measuring, calls of a kernel a sample


def phase_cases(env_id: str, _seconds: float) -> Iterator[Case]:
    """One case a phase, and the whole kernel."""
    batch = Batch(env_id, _SIZE, num_threads=1)
    for _ in range(_AGE):
        batch.step()
    env = batch.envs.unwrapped
    assert isinstance(env, PuzzleVectorEnv)
    games, actions = env._batch, np.asarray(batch.mask.argmax(axis=1), dtype=np.int64)
    out = games.outputs()
    arrays: dict[str, Any] = {"actions": actions, "mask": out.mask, "obs": out.obs}
    rows = games.rows.copy()

    def part(phase: Phase) -> float:
        return _fastest(rows, lambda own: phase.kernel(own, games.config, arrays[phase.about]))

    def whole() -> float:
        todo = games.playing
        advance = games.puzzle.advance_rows
        return _fastest(rows, lambda own: advance(own, games.config, todo, actions, 0, 0, _SIZE, *out))

    for name, phase in games.puzzle.phases.items():
        yield Case("phases", env_id, name, UNIT, lambda p=phase: part(p))  # type: ignore[misc]
    yield Case("phases", env_id, "all of advance_rows", UNIT, whole)


def _fastest(rows: Any, call: Any) -> float:
    """Nanoseconds a game of the fastest of several calls, each on a copy of the same rows."""
    best = float("inf")
    for _ in range(_CALLS + 1):
        own = rows.copy()
        before = time.perf_counter()
        call(own)
        best = min(best, time.perf_counter() - before)
    return best / len(rows) * 1e9
