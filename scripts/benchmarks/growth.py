"""Does a step cost more with more games, or late in a game? Nothing should jump."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ...envs.base.vector_env import PuzzleVectorEnv
from .rounds import Case, Result
from .stepping import Batch

UNIT = "ns/step"
SIZES = tuple(4**k for k in range(9))  # 1 ... 65,536
AGES = (0, 25, 50, 100, 150, 200, 300, 400)  # moves since the start of the game
_AGED, _STEPS = 2048, 10  # games of one age, steps measured of each
_LEAST_GAMES = 16  # so many different ones of an age, or it is left out


def size_cases(env_id: str, seconds: float) -> Iterator[Case]:
    """Nanoseconds per step against the number of games, on one core."""
    for size in SIZES:
        batch = Batch(env_id, size, num_threads=1)
        yield Case("games", env_id, str(size), UNIT, lambda b=batch: 1e9 / b.measure(seconds / 2))  # type: ignore[misc]


def age_cases(env_id: str, _seconds: float) -> Iterator[Case]:
    """Nanoseconds per step against the age of the games, in random legal play on one core."""
    for age, rows in _rows_by_age(env_id).items():
        batch = Batch(env_id, len(rows), num_threads=1)
        yield Case("age", env_id, str(age), UNIT, lambda b=batch, r=rows: _aged(b, r))  # type: ignore[misc]


def _puzzle_env(batch: Batch) -> PuzzleVectorEnv:
    env = batch.envs.unwrapped
    assert isinstance(env, PuzzleVectorEnv)
    return env


def _rows_by_age(env_id: str) -> dict[int, np.ndarray[tuple[int, int], np.dtype[np.uint64]]]:
    """State rows of games of each age, as often as needed."""
    batch = Batch(env_id, _AGED)
    env = _puzzle_env(batch)
    found: dict[int, list[np.ndarray[tuple[int, int], np.dtype[np.uint64]]]] = {age: [] for age in AGES}
    for _ in range(2 * max(AGES)):
        batch.step()
        steps = env._batch.steps()
        for age, kept in found.items():
            if sum(map(len, kept)) < _AGED:
                kept.append(env._batch.rows[(steps == age) & ~batch.resets])
    pools = {age: np.concatenate(kept)[:_AGED] for age, kept in found.items()}
    return {age: np.resize(rows, (_AGED, rows.shape[1])) for age, rows in pools.items() if len(rows) >= _LEAST_GAMES}


def _aged(batch: Batch, rows: np.ndarray[tuple[int, int], np.dtype[np.uint64]]) -> float:
    env = _puzzle_env(batch)
    env.set_state(rows)
    batch.mask, batch.resets = env.action_masks().view(np.int8), np.zeros(len(rows), dtype=np.bool_)
    taken = [batch.step() for _ in range(_STEPS)]
    return 1e9 * float(np.median([seconds / moves for seconds, moves in taken]))


def draw(results: Sequence[Result], path: Path) -> None:
    """The picture: both curves of every puzzle, with their spread."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.2), constrained_layout=True)
    for axis, (section, label) in zip(
        axes, (("games", "games in the batch"), ("age", "moves since the deal or start")), strict=True
    ):
        for env_id in dict.fromkeys(result.case.env_id for result in results):
            mine = [r for r in results if (r.case.section, r.case.env_id) == (section, env_id)]
            at = [int(r.case.name) for r in mine]
            (line,) = axis.plot(at, [r.median for r in mine], marker="o", label=env_id)
            low, high = [min(r.samples) for r in mine], [max(r.samples) for r in mine]
            axis.fill_between(at, low, high, alpha=0.2, color=line.get_color())
        axis.set(xlabel=label, ylabel="ns per step (median, range)")
        axis.grid(alpha=0.3)
        axis.set_ylim(bottom=0)
    axes[0].set(xscale="log", yscale="log", title="against the number of games, one core")
    axes[1].set(title=f"against the age of the games, {_AGED:,} games")
    axes[0].legend()
    figure.savefig(path, dpi=110, format="png")
    pyplot.close(figure)
