"""Does a step cost more with more games, or late in a game? Nothing should jump."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...envs.base.vector_env import PuzzleVectorEnv
from ...envs.puzzle2048.state import MAX_SUM
from .rounds import Case, Result
from .stepping import Batch

if TYPE_CHECKING:  # matplotlib is imported when the picture is drawn
    from matplotlib.figure import Figure

Rows = NDArray[np.uint64]
UNIT = "ns/step"
SIZES = tuple(4**k for k in range(9))  # 1 ... 65,536
AGES = (0, 25, 50, 100, 150, 200, 300, 400)  # moves since the start of the game
_AGED, _STEPS = 2048, 10  # games of one age, steps measured of each
TILES = tuple(2**e for e in range(7, 18))  # 128 ... 131,072
_BOARDS_AGE, _BOARDS_TOP = 90, 6  # boards with a 64 at least, after so many steps
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


def tile_cases(env_id: str, _seconds: float) -> Iterator[Case]:
    """2048: nanoseconds per step against the largest tile, on boards of random play with all tiles made larger."""
    if env_id != "Puzzle2048-v0":
        return
    played = Batch(env_id, _AGED)
    for _ in range(_BOARDS_AGE):
        played.step()
    boards = [board for board in played.obs[~played.resets] if board.max() >= _BOARDS_TOP]
    for tile in TILES:
        lifted = [lift for board in boards if (lift := _lifted(board, tile)) is not None]
        batch = Batch(env_id, _AGED, num_threads=1)
        batch.envs.reset(options={"board": np.resize(lifted, (_AGED, 4, 4))})
        rows = _puzzle_env(batch).get_state()
        yield Case("tile", env_id, str(tile), UNIT, lambda b=batch, r=rows: _aged(b, r))  # type: ignore[misc]


def _lifted(board: NDArray[np.uint8], tile: int) -> NDArray[np.uint8] | None:
    """The board with all tiles doubled until ``tile`` is its largest; None if no game can have that."""
    more = tile.bit_length() - 1 - int(board.max())
    lifted = np.where(board > 0, board + more, 0).astype(np.uint8)
    return lifted if np.sum(2.0**lifted, where=lifted > 0) <= MAX_SUM else None


def _puzzle_env(batch: Batch) -> PuzzleVectorEnv:
    env = batch.envs.unwrapped
    assert isinstance(env, PuzzleVectorEnv)
    return env


def _rows_by_age(env_id: str) -> dict[int, Rows]:
    """State rows of games of each age, as often as needed."""
    batch = Batch(env_id, _AGED)
    games = _puzzle_env(batch)._batch
    found: dict[int, list[Rows]] = {age: [] for age in AGES}
    for _ in range(2 * max(AGES)):
        batch.step()
        for age, kept in found.items():
            if sum(map(len, kept)) < _AGED:
                kept.append(games.rows[(games.steps() == age) & ~batch.resets])
    pools = {age: np.concatenate(kept)[:_AGED] for age, kept in found.items()}
    return {age: np.resize(rows, (_AGED, rows.shape[1])) for age, rows in pools.items() if len(rows) >= _LEAST_GAMES}


def _aged(batch: Batch, rows: Rows) -> float:
    """Nanoseconds a step of the next few steps from these states."""
    env = _puzzle_env(batch)
    env.set_state(rows)
    batch.mask, batch.resets = env.action_masks().view(np.int8), np.zeros(len(rows), dtype=np.bool_)
    taken = [batch.step() for _ in range(_STEPS)]
    return 1e9 * float(np.median([seconds / moves for seconds, moves in taken]))


_AXES = {  # section: (title, what is counted along the axis)
    "games": ("one core, by number of games", "games in the batch"),
    "age": (f"{_AGED:,} games by age, random play", "moves since the start of the game"),
    "tile": (f"{_AGED:,} games of 2048 by tile", "largest tile"),
}


def draw(results: Sequence[Result]) -> Figure:
    """The picture: every curve of every puzzle, with its spread."""
    from .. import _plotting

    figure = _plotting.new_figure((14, 4.0))
    axes = figure.subplots(1, len(_AXES))
    ids = list(dict.fromkeys(result.case.env_id for result in results))
    for axis, (section, (title, label)) in zip(axes, _AXES.items(), strict=True):
        for i, env_id in enumerate(ids):
            mine = [r for r in results if (r.case.section, r.case.env_id) == (section, env_id)]
            at, style = [int(r.case.name) for r in mine], _plotting.style(i)
            low, high = [min(r.samples) for r in mine], [max(r.samples) for r in mine]
            axis.plot(at, [r.median for r in mine], **style)
            axis.fill_between(at, low, high, alpha=_plotting.FAINT, color=style["color"], linewidth=0)
        axis.set(title=title, xlabel=label, ylabel="ns per step (median, range)")
        _plotting.clean(axis)
    axes[0].set(xscale="log", yscale="log")
    axes[2].set_xscale("log", base=2)
    for axis in axes[1:]:
        axis.set_ylim(bottom=0)
    _plotting.legend(figure, ids)
    return figure
