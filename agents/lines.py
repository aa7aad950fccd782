"""Winning lines of FreeCell by the solver, as learners take them: positions as the rules' words, and moves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..envs.common.cards import CARDS
from ..envs.common.jit import njit
from ..envs.freecell import rules
from ..envs.freecell.actions import ACTIONS
from ..envs.freecell.estimate import USUAL
from ..envs.freecell.planning import lay_out
from ..envs.freecell.state import DEPTH, SQUARES, TABLE_WORDS
from . import solver_kernels as kernels
from .seeds import TRAIN_DEALS
from .solver import Search

# Searches to try: the first finds short lines (47 moves for a deal on average, in 2 ms), the others what is left.
_TRIES = tuple((USUAL._replace(move=move).array(), most) for move, most in ((6, 30_000), (4, 30_000), (2, 60_000)))
_PART = 1_000  # positions expanded before the number found is looked at
_FRESH = 8  # one draw of so many replaces a line


class Line(NamedTuple):
    """A winning line of L moves: boards (uint64 ``[L, 20]``) and actions (int64 ``[L]``)."""

    boards: NDArray[np.uint64]
    actions: NDArray[np.int64]


class LineFinder:
    """Finds lines quickly, or not at all: for positions of which there are many."""

    def __init__(self, tries: int = len(_TRIES)) -> None:
        """``tries``: searches before it gives up."""
        self._search, self._tries = Search(), _TRIES[:tries]

    def find(self, table: NDArray[np.uint64]) -> Line | None:
        """A winning line from a table of the rules (uint64 ``[TABLE_WORDS]``), or None where none was found soon."""
        return self._line(table) if any(self._won(table, *one) for one in self._tries) else None

    def _won(self, table: NDArray[np.uint64], weights: NDArray[np.int64], most: int) -> bool:
        search = self._search
        search.begin(table)
        end = kernels.PAUSED
        while end == kernels.PAUSED and search.numbers[kernels.FOUND] <= most:
            end = search.expand(weights, False, _PART)
            if end == kernels.FULL:
                search.resize(2 * search.room)
                end = kernels.PAUSED
        return end == kernels.SOLVED

    def _line(self, table: NDArray[np.uint64]) -> Line:
        moves, end = self._search.line(), table.copy()
        boards, actions = np.empty((len(moves), DEPTH + 1), np.uint64), np.empty(len(moves), np.int64)
        kernels.replay(end, moves, self._search.sent, boards, actions)
        if rules.cards_home(end) < CARDS:
            raise AssertionError("the solver's line does not win")  # cannot happen
        return Line(boards, actions)


def deal_table(number: int) -> NDArray[np.uint64]:
    """A numbered deal as the rules' words (uint64 ``[TABLE_WORDS]``)."""
    table = np.zeros(TABLE_WORDS, dtype=np.uint64)
    rules.deal_cards(table, number, 0, np.zeros(CARDS, dtype=np.int8))
    return table


class Lines:
    """Lines of random training deals, a part of them always new."""

    def __init__(self, size: int, seed: int) -> None:
        """``size``: lines kept; they are found when they are needed first."""
        self._size, self._rng = size, np.random.default_rng(seed)
        self._finder, self._lines = LineFinder(), list[Line]()

    def fresh(self) -> Line:
        """The line of a random training deal."""
        while True:
            number = int(self._rng.integers(TRAIN_DEALS[0], TRAIN_DEALS[1] + 1))
            line = self._finder.find(deal_table(number))
            if line is not None:
                return line

    def draw(self) -> Line:
        """One of the lines; now and then a new one, which takes the place of another."""
        if not self._size:
            return self.fresh()
        if len(self._lines) < self._size:
            self._lines.append(self.fresh())
            return self._lines[-1]
        i = int(self._rng.integers(self._size))
        if self._rng.integers(_FRESH) == 0:
            self._lines[i] = self.fresh()
        return self._lines[i]


@njit
def _write_masks(boards: NDArray[np.uint64], table: NDArray[np.uint64], masks: NDArray[np.int8]) -> None:
    for i in range(len(boards)):
        lay_out(table, boards[i])
        rules.legal_mask(table, masks[i])


def legal_masks(obs: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which moves are legal (bool ``[N, 520]``) on boards (uint8 ``[N, 20, 8]``)."""
    masks = np.empty((len(obs), ACTIONS), dtype=np.int8)
    boards = np.ascontiguousarray(obs).reshape(len(obs), SQUARES).view(np.uint64)
    _write_masks(boards, np.zeros(TABLE_WORDS, dtype=np.uint64), masks)
    return masks.view(np.bool_)
