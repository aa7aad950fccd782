"""Expectimax for 2048 by a formula: nothing is learned.

The formula is the one of nneonneo's 2048-ai (github.com/nneonneo/2048-ai): it judges each row and each column by
itself, so a table of all 65,536 rows holds it.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..envs.puzzle2048.state import SIDE
from .search import Searcher, Values, rows_leaf

# The weights of 2048-ai. The first one lifts all but the worst boards above 0, which is what a lost one is worth.
_ALIVE, _EMPTY, _MERGES, _DISORDER, _TILES = 200_000.0, 270.0, 700.0, 47.0, 11.0
_DISORDER_POWER, _TILES_POWER = 4.0, 3.5

_CUTOFF = 1e-3  # what is less probable than this is not looked into any further


@cache
def row_values() -> Values:
    """What each row of four exponents (nibbles, 0..15) is worth: float64 ``[65536]``, read-only.

    Empty squares and tiles that can merge count for it, large tiles and those out of order against it.
    """
    line = np.arange(1 << 16)[:, None] >> 4 * np.arange(SIDE) & 15
    steps = np.diff(line**_DISORDER_POWER, axis=1)
    disorder = np.minimum(steps.clip(min=0).sum(axis=1), -steps.clip(max=0).sum(axis=1))
    tiles = (line**_TILES_POWER).sum(axis=1)
    gains = _EMPTY * (line == 0).sum(axis=1) + _MERGES * _merging(line)
    values = np.asarray(_ALIVE + gains - _DISORDER * disorder - _TILES * tiles)
    values.flags.writeable = False
    return values


def _merging(line: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many tiles of each row (``[R, 4]``) have an equal neighbour, empty squares between them left out."""
    total, before, group = np.zeros((3, len(line)), dtype=np.int64)
    for tile in line.T:
        same = (tile > 0) & (tile == before)
        group = np.where(same, group + 1, np.where(tile > 0, 1, group))
        total = total + same + (group == 2) * same  # the second tile of a group brings in the first
        before = np.where(tile > 0, tile, before)
    return total


class Expectimax(Searcher):
    """The move after which the best play of both, hand and chance, leads to the best boards.

    Example:
        >>> import numpy as np
        >>> from puzzlegym.envs.common.rng import Streams
        >>> from puzzlegym.envs.puzzle2048 import Action, legal_moves
        >>> board = np.array([[9, 8, 7, 6], [2, 3, 4, 5], [2, 1, 0, 0], [0, 0, 0, 0]], dtype=np.uint8)
        >>> actions = Expectimax().act(board[None], legal_moves(board)[None], Streams.seeded([0]))
        >>> Action(int(actions[0])).name
        'UP'
    """

    def __init__(self, depth: int = 4, seconds: float | None = None) -> None:
        """See ``Searcher``. One move more takes about ten times as long; 4 moves take a third of a millisecond."""
        super().__init__("expectimax", rows_leaf(row_values()), depth, _CUTOFF, seconds)
