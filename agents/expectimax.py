"""Expectimax for 2048: every move and every tile that may appear, some moves deep, judged at the end by a formula.

Nothing is learned. The formula is the one of nneonneo's 2048-ai (github.com/nneonneo/2048-ai): it judges each row and
each column by itself, so a table of all 65,536 rows holds it.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..envs.common.checks import whole_number
from ..envs.common.jit import Int, njit
from ..envs.common.rng import GAMMA, Streams, mix
from ..envs.common.rows import ZERO, words
from ..envs.puzzle2048.actions import ACTIONS
from ..envs.puzzle2048.rules import occupied, slide, transpose
from ..envs.puzzle2048.state import SIDE, board_words
from .policy import Actions, Masks, Observations

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

_S16, _S32, _S48, _S60 = words(16, 32, 48, 60)
_NIBBLE, _ROW, _LOWBITS = words(0xF, 0xFFFF, 0x1111111111111111)

# The weights of 2048-ai. The first one lifts all but the worst boards above 0, which is what a lost one is worth.
_ALIVE, _EMPTY, _MERGES, _DISORDER, _TILES = 200_000.0, 270.0, 700.0, 47.0, 11.0
_DISORDER_POWER, _TILES_POWER = 4.0, 3.5

CHANCES = 0.9, 0.1  # of a new 2 and a new 4
_CUTOFF = 1e-3  # what is less probable than this is not looked into any further
_SLOTS = 1 << 14  # positions that a search remembers: few enough for the processor's cache, and more help little


@cache
def row_values() -> Floats:
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


@njit
def _board_value(low: np.uint64, high: np.uint64, values: Floats) -> float:
    """All rows and columns added up; tiles above 32768 count as 32768."""
    rows = low | high * _NIBBLE
    columns = transpose(rows)
    return float(
        values[rows & _ROW]
        + values[rows >> _S16 & _ROW]
        + values[rows >> _S32 & _ROW]
        + values[rows >> _S48]
        + values[columns & _ROW]
        + values[columns >> _S16 & _ROW]
        + values[columns >> _S32 & _ROW]
        + values[columns >> _S48]
    )


@njit
def _expected(
    low: np.uint64, high: np.uint64, depth: Int, reach: float, cutoff: float, values: Floats, tags: Words, known: Floats
) -> float:
    """What a board is worth before its new tile: the mean over all tiles of the best that ``depth`` moves lead to."""
    tag = mix(low ^ mix(high + np.uint64(depth) * GAMMA))
    slot = tag & np.uint64(len(tags) - 1)
    if tags[slot] == tag:
        return float(known[slot])
    empty = ~occupied(low, high) & _LOWBITS
    squares = np.int64(empty * _LOWBITS >> _S60)  # 1 to 15 after a move
    total = 0.0
    while empty:
        square = empty & (ZERO - empty)
        empty ^= square
        for four in range(2):
            board, chance = low | square << np.uint64(four), CHANCES[four] / squares
            deeper = depth > 1 and reach * chance >= cutoff
            best = 0.0
            for way in range(ACTIONS):
                to_low, to_high, _ = slide(board, high, way)
                if to_low == board and to_high == high:
                    continue
                if deeper:
                    value = _expected(to_low, to_high, depth - 1, reach * chance, cutoff, values, tags, known)
                else:
                    value = _board_value(to_low, to_high, values)
                best = max(best, value)
            total += chance * best
    tags[slot], known[slot] = tag, total
    return total


@njit
def search_rows(
    low: Words,
    high: Words,
    masks: Masks,
    depth: int,
    cutoff: float,
    values: Floats,
    tags: Words,
    known: Floats,
    found: Floats,
) -> None:
    """Write what each move under ``masks`` (bool ``[N, 4]``) is worth into ``found`` (float64 ``[N, 4]``).

    ``low`` and ``high`` (uint64 ``[N]``) are the boards, ``depth`` counts the player's moves, ``cutoff`` is the
    probability below which a board is judged at once, ``values`` are ``row_values()``. ``tags`` and ``known`` (uint64
    and float64 ``[2^n]``) are scratch: positions already searched, without which 4 moves take four times as long.
    """
    for i in range(len(low)):
        for j in range(len(tags)):
            tags[j] = ZERO
        for way in range(ACTIONS):
            if not masks[i, way]:
                continue
            to_low, to_high, _ = slide(low[i], high[i], way)
            if depth > 1:
                found[i, way] = _expected(to_low, to_high, depth - 1, 1.0, cutoff, values, tags, known)
            else:
                found[i, way] = _board_value(to_low, to_high, values)


class Expectimax:
    """The move after which the best play of both, hand and chance, leads to the best boards; no chance is used.

    It searches in arrays of its own: a player is for one thread at a time.

    Example:
        >>> import numpy as np
        >>> from puzzlegym.envs.common.rng import Streams
        >>> from puzzlegym.envs.puzzle2048 import Action, legal_moves
        >>> board = np.array([[9, 8, 7, 6], [2, 3, 4, 5], [2, 1, 0, 0], [0, 0, 0, 0]], dtype=np.uint8)
        >>> actions = Expectimax().act(board[None], legal_moves(board)[None], Streams.seeded([0]))
        >>> Action(int(actions[0])).name
        'UP'
    """

    name = "expectimax"

    def __init__(self, depth: int = 4) -> None:
        """``depth``: how many moves to look ahead, the one to make included. Raises ValueError unless it is at least 1.

        One more takes about ten times as long; 4 moves take a third of a millisecond.
        """
        self.depth = whole_number(depth) or 0
        if self.depth < 1:
            raise ValueError(f"depth must be a whole number of 1 or more, not {depth!r}")
        self._tags = np.zeros(_SLOTS, dtype=np.uint64)
        self._known = np.zeros(_SLOTS)
        self._values = row_values()

    def act(self, observations: Observations, masks: Masks, rng: Streams) -> Actions:
        """One action per row; among equals the first in the order of ``Action``."""
        found = np.full(masks.shape, -np.inf)
        low, high = board_words(observations)
        masks = np.ascontiguousarray(masks)
        search_rows(low, high, masks, self.depth, _CUTOFF, self._values, self._tags, self._known, found)
        return np.asarray(found.argmax(axis=1), dtype=np.int64)
