"""FreeCell: what is said of a position, as rows of a table, and how its moves change that."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..envs.common.cards import CARDS
from ..envs.common.jit import Int, njit
from ..envs.common.rows import ZERO
from ..envs.freecell import rules
from ..envs.freecell.actions import ACTIONS, DESTINATIONS, HOME
from ..envs.freecell.planning import lay_out
from ..envs.freecell.state import CELLS, COLUMNS, LENGTHS, RUNS, SQUARES, SUIT_COUNT, TABLE_WORDS

Words = NDArray[np.uint64]
Places = NDArray[np.int32]
Floats = NDArray[np.float32]
_MOVES = 16  # legal moves of a board on average

# What can be said of a position: each is a row of the table. Larger numbers than these count as the largest.
_BREAKS, _NEEDS, _NEAR, _DEEP, _RUN = 6, 8, 4, 12, 6
# How a card can be reached: it is open, under a run, under 1, 2 or more breaks of order; it is in a cell or at home;
# the card in question lies on it already.
_OPEN, _UNDER_RUN, _UNDER_BREAK, _UNDER_MORE, _AWAY, _BENEATH, _REACHES = 0, 1, 2, 4, 5, 6, 7
_IN_CELL = CARDS + 1
# Of every card that is not at home:
_LINK = 0  # the card and what it lies on: nothing, a card, or that it is in a cell
_CARD = _LINK + (CARDS + 1) * (_IN_CELL + 1)  # the card, how soon its turn comes, breaks of order above it
_NEED = _CARD + (CARDS + 1) * _NEAR * _BREAKS  # how soon its turn comes, cards and breaks of order above it
_CELL_NEED = _NEED + _NEEDS * _DEEP * _BREAKS  # the same in a cell: how soon
_OVER = _CELL_NEED + _NEEDS  # the card, the soonest turn of those beneath it, whether it lies in order
_TAKERS = _OVER + (CARDS + 1) * (_NEEDS + 1) * 2  # the card, and how the two that it may lie on can be reached
# Of every column:
_RUNS = _TAKERS + (CARDS + 1) * _REACHES * _REACHES  # its run, open cards that take it, the soonest turn beneath it
# And of the whole:
_HOME = _RUNS + (_RUN + 1) * 3 * (_NEEDS + 1)  # cards on a foundation
_ROOM = _HOME + SUIT_COUNT * 14  # empty cells and columns
ROWS = _ROOM + (CELLS + 1) * 4

# A position fills these slots with rows; -1 where there is nothing to say.
_LINKS, _OWN, _NEEDED, _COVERS, _TAKEN = (i * (CARDS + 1) for i in range(5))
_COLUMNS = 5 * (CARDS + 1)
_HOMES = _COLUMNS + COLUMNS
_ROOMS = _HOMES + SUIT_COUNT
SLOTS = _ROOMS + 1
NOTHING = -1
_REACHED = CARDS + 9  # kings would lie on cards above 52


@njit
def _need(homes: np.uint64, x: Int) -> int:
    """How many cards of its suit must go home before card x."""
    return int(np.int64(x - 1) // SUIT_COUNT - np.int64(rules.get(homes, (x - 1) % SUIT_COUNT)))


@njit
def _describe(table: Words, slots: Places, reach: Places) -> None:
    """Fill the slots of a position; ``reach`` (int32 ``[_REACHED]``) is scratch."""
    for j in range(SLOTS):
        slots[j] = NOTHING
    for x in range(len(reach)):
        reach[x] = _AWAY
    homes, cells, empty = rules.homes_of(table), 0, 0
    for suit in range(SUIT_COUNT):
        slots[_HOMES + suit] = _HOME + suit * 14 + np.int64(rules.get(homes, suit))
    for column in range(COLUMNS):
        empty += rules.get(table[LENGTHS], column) == ZERO
        _describe_column(table, column, homes, slots, reach)
    for i in range(CELLS):
        x = int(np.int64(rules.get(table[0], i)))
        cells += x == 0
        if x:
            slots[_LINKS + x] = _LINK + x * (_IN_CELL + 1) + _IN_CELL
            slots[_NEEDED + x] = _CELL_NEED + min(_need(homes, x), _NEEDS - 1)
            _describe_takers(x, 0, slots, reach)
    slots[_ROOMS] = _ROOM + cells * 4 + min(empty, 3)
    for column in range(COLUMNS):
        _describe_moves(table, column, homes, slots, reach)


@njit
def _describe_column(table: Words, column: Int, homes: np.uint64, slots: Places, reach: Places) -> None:
    """Its cards from the open end, each by its turn and by what lies above it."""
    row, above, breaks = np.int64(rules.get(table[LENGTHS], column)), 0, 0
    while row:
        x = np.int64(rules.get(table[row], column))
        under = np.int64(rules.get(table[row - 1], column)) if row > 1 else 0
        need = _need(homes, x)
        slots[_LINKS + x] = _LINK + x * (_IN_CELL + 1) + under
        slots[_OWN + x] = _CARD + (x * _NEAR + min(need, _NEAR - 1)) * _BREAKS + min(breaks, _BREAKS - 1)
        place = min(need, _NEEDS - 1) * _DEEP + min(above, _DEEP - 1)
        slots[_NEEDED + x] = _NEED + place * _BREAKS + min(breaks, _BREAKS - 1)
        reach[x] = _OPEN if above == 0 else min(_UNDER_RUN + breaks, _UNDER_MORE)
        if under:
            breaks += not rules.stacks(np.uint64(x), np.uint64(under))
        row, above = row - 1, above + 1


@njit
def _describe_moves(table: Words, column: Int, homes: np.uint64, slots: Places, reach: Places) -> None:
    """Its cards from the ground, each by what it covers and where it could go; and its run."""
    length, run = np.int64(rules.get(table[LENGTHS], column)), np.int64(rules.get(table[RUNS], column))
    soonest, under = _NEEDS, np.int64(0)
    for row in range(1, length + 1):
        x = np.int64(rules.get(table[row], column))
        ordered = row > 1 and rules.stacks(np.uint64(x), np.uint64(under))
        slots[_COVERS + x] = _OVER + (x * (_NEEDS + 1) + soonest) * 2 + ordered
        _describe_takers(x, under if ordered else 0, slots, reach)
        if row == length - run + 1:
            first, second = rules.bases(np.uint64(x))
            takers = (reach[np.int64(first)] == _OPEN) + (reach[np.int64(second)] == _OPEN)
            slots[_COLUMNS + column] = _RUNS + (min(int(run), _RUN) * 3 + takers) * (_NEEDS + 1) + soonest
        soonest, under = min(soonest, _need(homes, x)), x


@njit
def _describe_takers(x: Int, under: Int, slots: Places, reach: Places) -> None:
    """How the two cards that x may lie on can be reached; ``under``: the one that it lies on in order, or 0."""
    first, second = rules.bases(np.uint64(x))
    one = _BENEATH if np.int64(first) == under else reach[np.int64(first)]
    other = _BENEATH if np.int64(second) == under else reach[np.int64(second)]
    slots[_TAKEN + x] = _TAKERS + (np.int64(x) * _REACHES + one) * _REACHES + other


class Scratch(NamedTuple):
    """What the kernels work with."""

    table: Words
    spare: Words
    before: Places
    after: Places
    reach: Places
    sent: NDArray[np.int8]
    mask: NDArray[np.int8]

    @classmethod
    def new(cls) -> Scratch:
        """Fresh arrays."""
        tables, slots = np.empty((2, TABLE_WORDS), np.uint64), np.empty((2, SLOTS), np.int32)
        bytes_ = np.empty(CARDS, np.int8), np.empty(ACTIONS, np.int8)
        return cls(tables[0], tables[1], slots[0], slots[1], np.empty(_REACHED, np.int32), *bytes_)


class Afterstates(NamedTuple):
    """Boards, and what their legal moves make of them.

    Of N boards: the slots (``whole``, int32 ``[N, SLOTS]``). Of M legal actions: which one, counted through all boards,
    and the afterstate it leads to (``actions`` and ``children``, int64 ``[M]``; all empty columns are one). Of K
    afterstates: the board (``games``, int64), the cards sent home (``gains``, float32), and which rows change:
    ``rows[starts[k] : starts[k + 1]]`` (int32), as ``row`` for one that appears and ``~row`` for one that vanishes.
    """

    whole: Places
    actions: NDArray[np.int64]
    children: NDArray[np.int64]
    games: NDArray[np.int64]
    gains: NDArray[np.float32]
    starts: NDArray[np.int64]
    rows: Places

    @classmethod
    def room(cls, n: int, moves: int) -> Afterstates:
        """Arrays for ``n`` boards with so many legal moves in all, and 64 changes for each."""
        numbers = np.empty((3, moves), np.int64)
        gains, starts = np.empty(moves, np.float32), np.empty(moves + 1, np.int64)
        rows = np.empty(64 * moves + 2 * SLOTS, np.int32)
        return cls(np.empty((n, SLOTS), np.int32), numbers[0], numbers[1], numbers[2], gains, starts, rows)

    def cut(self, actions: int, afterstates: int, changes: int) -> Afterstates:
        """The part that is filled."""
        k = afterstates
        numbers = self.actions[:actions], self.children[:actions], self.games[:k], self.gains[:k]
        return Afterstates(self.whole, *numbers, self.starts[: k + 1], self.rows[:changes])


@njit
def _note_changes(before: Places, after: Places, rows: Places, m: int) -> int:
    """Write which rows vanish and appear, from place ``m`` on; returns where they end."""
    for j in range(SLOTS):
        if after[j] != before[j]:
            if before[j] != NOTHING:
                rows[m] = ~before[j]
                m += 1
            if after[j] != NOTHING:
                rows[m] = after[j]
                m += 1
    return m


@njit
def _note_move(action: Int, by: Scratch, to: Afterstates, i: int, k: int, m: int) -> int:
    """Describe the afterstate of a legal move as the k-th one; returns where its changes end."""
    for j in range(TABLE_WORDS):
        by.spare[j] = by.table[j]
    rules.move(by.spare, action)
    to.gains[k] = np.float32(rules.autoplay(by.spare, by.sent) + (action % DESTINATIONS == HOME))
    _describe(by.spare, by.after, by.reach)
    m = _note_changes(by.before, by.after, to.rows, m)
    to.games[k], to.starts[k + 1] = i, m
    return m


@njit
def look(boards: Words, by: Scratch, to: Afterstates) -> tuple[int, int, int]:
    """Describe boards (uint64 ``[N, 20]``) and what their moves make of them.

    Returns how many actions, afterstates and changes there are, or -1 each where the arrays are too short.
    """
    n, k, m = 0, 0, 0
    to.starts[0] = 0
    for i in range(len(boards)):
        lay_out(by.table, boards[i])
        _describe(by.table, by.before, by.reach)
        for j in range(SLOTS):
            to.whole[i, j] = by.before[j]
        rules.legal_mask(by.table, by.mask)
        onto_empty, card = NOTHING, NOTHING
        for action in range(ACTIONS):
            if not by.mask[action]:
                continue
            if m + 2 * SLOTS > len(to.rows) or n >= len(to.actions):
                return -1, -1, -1
            if action // DESTINATIONS != card:
                onto_empty, card = NOTHING, action // DESTINATIONS
            column = action % DESTINATIONS
            empty = column < COLUMNS and rules.get(by.table[LENGTHS], column) == ZERO
            to.actions[n], to.children[n] = i * ACTIONS + action, k
            if empty and onto_empty != NOTHING:
                to.children[n] = onto_empty
            else:
                onto_empty = k if empty else onto_empty
                m, k = _note_move(action, by, to, i, k, m), k + 1
            n += 1
    return n, k, m


@njit
def sum_boards(whole: NDArray[np.int32], table: Floats, sums: Floats) -> None:
    """Add up the rows of each board."""
    for i in range(len(whole)):
        for j in range(whole.shape[1]):
            row = whole[i, j]
            if row != NOTHING:
                for d in range(table.shape[1]):
                    sums[i, d] += table[row, d]


@njit
def sum_afterstates(seen: Afterstates, table: Floats, boards: Floats, sums: Floats) -> None:
    """The sum of each afterstate is its board's, and the changes."""
    for k in range(len(seen.games)):
        for d in range(table.shape[1]):
            sums[k, d] = boards[seen.games[k], d]
        for j in range(seen.starts[k], seen.starts[k + 1]):
            row = seen.rows[j]
            if row >= 0:
                for d in range(table.shape[1]):
                    sums[k, d] += table[row, d]
            else:
                for d in range(table.shape[1]):
                    sums[k, d] -= table[~row, d]


class Looker:
    """Looks at boards; keeps its memory between calls."""

    def __init__(self) -> None:
        """Room for ``_MOVES`` legal moves a board at first; it grows with what is seen."""
        self._scratch, self.moves = Scratch.new(), _MOVES

    def look(self, obs: NDArray[np.uint8]) -> Afterstates:
        """The afterstates of all legal moves of boards (uint8 ``[N, 20, 8]``)."""
        boards = np.ascontiguousarray(obs).reshape(-1, SQUARES).view(np.uint64)
        while True:
            seen = Afterstates.room(len(boards), len(boards) * self.moves + 1)
            counts = look(boards, self._scratch, seen)
            if counts[0] >= 0:
                return seen.cut(*counts)
            self.moves *= 2


def first_layer(seen: Afterstates, table: Floats) -> Floats:
    """The sums of table rows (float32 ``[R, D]``) of all afterstates, ``[K, D]``."""
    boards = np.zeros((len(seen.whole), table.shape[1]), np.float32)
    sums = np.empty((len(seen.games), table.shape[1]), np.float32)
    sum_boards(seen.whole, table, boards)
    sum_afterstates(seen, table, boards, sums)
    return sums
