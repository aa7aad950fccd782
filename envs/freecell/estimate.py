"""How far a FreeCell position looks from the win: what the solver goes by, and the potential of shaped rewards."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..common.cards import CARDS
from ..common.jit import njit
from ..common.rows import ZERO
from . import rules
from .state import CELLS, COLUMNS, LENGTHS, SUIT_COUNT, TABLE

# Where the weights stand in int64 ``[WEIGHTS]``; see ``Weights``.
NEEDS, _EMPTY_COUNTS = 8, 4
W_LEFT, W_BREAK, W_COVER, W_MOVE = 0, 1, 2, 3
W_CELLS = 4
W_EMPTY = W_CELLS + CELLS + 1
W_UNDER = W_EMPTY + _EMPTY_COUNTS
W_BURIED = W_UNDER + NEEDS
WEIGHTS = W_BURIED + NEEDS


class Weights(NamedTuple):
    """What a player minds, and how much."""

    left: int  # a card that is not at home
    breaks: int  # a card that does not lie in order on the one beneath
    cover: int  # a card over a lower one
    move: int  # a move made on the way (the solver's; no part of the estimate)
    cells: tuple[int, ...]  # 0 to 4 cells in use
    empty: tuple[int, ...]  # 0 to 3 (or more) empty columns
    under: tuple[int, ...]  # a card lying on one whose turn to go home comes next, after one more card, ...
    buried: tuple[int, ...]  # a break of order above such a card

    def array(self) -> NDArray[np.int64]:
        """In the order of the kernels."""
        numbers = (self.left, self.breaks, self.cover, self.move, *self.cells, *self.empty, *self.under, *self.buried)
        return np.array(numbers, dtype=np.int64)


# Found by changing the weights at random and keeping what let the solver find fewer positions on training deals.
USUAL = Weights(
    left=6,
    breaks=2,
    cover=5,
    move=2,
    cells=(1, 4, 4, 4, 20),
    empty=(12, 5, 2, 3),
    under=(4, 2, 0, 1, 0, 0, 0, 0),
    buried=(0, 0, 2, 1, 0, 0, 0, 0),
)


@njit
def estimate(table: NDArray[np.uint64], weights: NDArray[np.int64]) -> int:
    """How far from the win a position looks: a weighted sum of what a player minds.

    Cards not at home; cards that do not lie in order on the one beneath; cards over a lower one; cells in use; empty
    columns; and for each card, by how soon its turn to go home comes, how many cards and how many breaks of order lie
    on it.
    """
    homes = rules.homes_of(table)
    left = np.int64(CARDS)
    for suit in range(SUIT_COUNT):
        left -= np.int64(rules.get(homes, suit))
    used, total = 0, weights[W_LEFT] * left
    for i in range(CELLS):
        used += rules.get(table[0], i) != ZERO
    empty = 0
    for column in range(COLUMNS):
        length = np.int64(rules.get(table[LENGTHS], column))
        empty += length == 0
        under, lowest, cards, breaks = ZERO, np.int64(CARDS), np.int64(0), np.int64(0)
        for row in range(1, length + 1):
            x = rules.get(table[row], column)
            at = np.int64(x) - 1
            rank = at >> 2
            total += cards
            if row > 1 and not rules.stacks(x, under):
                total += breaks + weights[W_BREAK]
            if rank > lowest:
                total += weights[W_COVER]
            need = rank - np.int64(rules.get(homes, at & 3))
            if need >= NEEDS:
                need = np.int64(NEEDS - 1)
            cards += weights[W_UNDER + need]
            breaks += weights[W_BURIED + need]
            lowest, under = min(lowest, rank), x
    return int(total + weights[W_CELLS + used] + weights[W_EMPTY + min(empty, 3)])


@njit
def estimate_rows(rows: NDArray[np.uint64], weights: NDArray[np.int64], estimates: NDArray[np.float64]) -> None:
    """Write the estimate of every state row (float64 ``[N]``)."""
    for i in range(len(rows)):
        estimates[i] = estimate(rows[i, TABLE:], weights)
