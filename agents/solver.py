"""Solves FreeCell: a winning line from any position, or the proof that there is none.

Best-first search: of all positions found, the one that looks nearest to the win is expanded next. What was found is
never searched twice, whichever way it was reached. Only sound pruning: safe cards go home by themselves (whatever could
lie on them is at home), and positions that differ in the order of columns or of cells are one. First a few quick tries
with different estimates and all moves, then one search over single-card moves that either wins or runs out of
positions: that is the proof. (Moving a run is several single moves, so nothing is missed; nor is it by a try that runs
out of positions.)
"""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..envs.common.cards import CARDS
from ..envs.freecell import rules
from ..envs.freecell.actions import ACTIONS
from ..envs.freecell.deals import deal_board
from ..envs.freecell.estimate import USUAL, Weights
from ..envs.freecell.planning import table_of
from ..envs.freecell.state import DEPTH, TABLE_WORDS
from . import solver_kernels as kernels

SOLVED, UNWINNABLE, UNDECIDED = "solved", "unwinnable", "undecided"
MEGABYTES = 2048  # default limit of memory
_SLICE, _SHORT_SLICE = 20_000, 1_000  # positions expanded between two looks at the clock
_BUCKETS = 4096
_FIRST_ROOM = 1 << 15  # positions
_KEPT_ROOM = 1 << 18  # positions whose memory is kept for the next search
_PEAK_BYTES = 76  # a position takes up to 52; while the memory grows the old words are there, too
LEAST_MEGABYTES = 2


@dataclass(frozen=True)
class Solution:
    """What the solver found.

    ``result``: ``solved``, ``unwinnable`` (proved) or ``undecided``; ``actions``: the winning moves of the environment
    with safe cards going home; ``positions``: how many were found in all; ``limit``: what stopped it, in words.
    """

    result: str
    actions: tuple[int, ...] = ()
    positions: int = 0
    seconds: float = 0.0
    limit: str = ""


class Search:
    """The memory of one search, used again for the next one."""

    def __init__(self) -> None:
        """Room for a small search; see ``resize``."""
        self.heads = np.empty(_BUCKETS, dtype=np.int32)
        self.numbers = np.zeros(kernels.NUMBERS, dtype=np.int64)
        self.start = np.zeros(CARDS + 1, dtype=np.int64)
        self.sent = np.empty(CARDS, dtype=np.int8)
        self.scratch = (
            *np.zeros((2, TABLE_WORDS), dtype=np.uint64),
            np.empty(CARDS + 1, dtype=np.int64),
            np.empty(kernels.CODE_WORDS, dtype=np.uint64),
            np.empty(ACTIONS, dtype=np.int8),
            self.sent,
        )
        self.room = 0
        self.resize(_FIRST_ROOM)

    def resize(self, room: int) -> None:
        """Make room for so many positions; those found stay, and all is as before if there is a MemoryError."""
        count = int(self.numbers[kernels.FOUND]) if self.room else 0

        def larger(name: str, dtype: Any, *shape: int) -> None:
            array = np.empty((room, *shape), dtype=dtype)
            if count:
                array[:count] = getattr(self, name)[:count]
            setattr(self, name, array)

        self.codes: NDArray[np.uint64]
        self.parents: NDArray[np.int32]
        self.moves: NDArray[np.uint16]
        self.depths: NDArray[np.uint16]
        self.following: NDArray[np.int32]
        larger("parents", np.int32)
        larger("moves", np.uint16)
        larger("depths", np.uint16)
        larger("following", np.int32)
        size = 1 << (2 * room - 1).bit_length()  # the set of positions needs a power of two
        slots = np.full(size, kernels.NOBODY, dtype=np.int32)
        if count:
            kernels.rehash(slots, self.codes, count)
        self.slots = slots
        larger("codes", np.uint64, kernels.CODE_WORDS)  # last, as its length is the room that the search sees
        self.room = room

    def begin(self, table: NDArray[np.uint64]) -> None:
        """Forget all, and start from this position."""
        if self.room > _KEPT_ROOM:
            self.room = 0
            self.resize(_FIRST_ROOM)
        else:
            self.slots.fill(kernels.NOBODY)
        kernels.read_links(table, self.start)
        kernels.pack(self.start, self.codes[0])
        self.parents[0] = self.following[0] = kernels.NOBODY
        self.depths[0] = 0
        self.heads.fill(kernels.NOBODY)
        self.heads[0] = 0
        self.numbers[:] = 1, 0, kernels.NOBODY, 0
        kernels.rehash(self.slots, self.codes, 1)

    def expand(self, weights: NDArray[np.int64], single: bool, part: int) -> int:
        """Go on to the next multiple of ``part`` positions expanded, wherever the memory had to grow in between."""
        budget = part - int(self.numbers[kernels.EXPANDED]) % part
        arrays = (self.codes, self.parents, self.moves, self.depths, self.following)
        return int(
            kernels.search(
                self.start, *arrays, self.heads, self.slots, self.numbers, weights, single, budget, *self.scratch
            )
        )

    def line(self) -> NDArray[np.uint16]:
        """The moves to the position that is won."""
        won, line = self.numbers[kernels.WON], np.empty(0, dtype=np.uint16)
        line = np.empty(kernels.read_line(won, self.parents, self.moves, line), dtype=np.uint16)
        kernels.read_line(won, self.parents, self.moves, line)
        return line


_QUICK = USUAL.array()
_OTHER = Weights(
    8, 4, 5, 2, (0, 2, 5, 10, 20), (12, 6, 2, 0), (3, 2, 1, 1, 0, 0, 0, 0), (1, 1, 1, 0, 0, 0, 0, 0)
).array()


@dataclass(frozen=True)
class _Try:
    """One search: by which estimate, over which moves, and how many positions it may find."""

    weights: NDArray[np.int64]
    most: float = math.inf
    single: bool = False


_PROOF = _Try(_QUICK, single=True)
_STEADY = _Try(USUAL._replace(move=6).array(), 400_000)  # seldom quickest, but never lost for millions of positions
_QUICK_TRIES = (_Try(_QUICK, 10_000), _Try(_OTHER, 10_000), _STEADY, _PROOF)
# All but the proof are made, and the shortest line counts.
_SHORT_TRIES = (
    *_QUICK_TRIES[:-1],
    *(_Try(USUAL._replace(move=move).array(), 400_000) for move in (4, 8, 10, 12)),
    _PROOF,
)


def check_limits(seconds: float | None, megabytes: int) -> None:
    """Raise ValueError for a time that is not positive and for less memory than the smallest search takes."""
    if seconds is not None and not seconds > 0:
        raise ValueError(f"the time must be greater than 0 seconds, not {seconds:g}")
    if megabytes < LEAST_MEGABYTES:
        raise ValueError(f"the memory must be at least {LEAST_MEGABYTES} MB, not {megabytes}")


class Solver:
    """Finds winning lines and proofs; keeps its memory between calls.

    Example:
        >>> from puzzlegym.envs.freecell import deal_board
        >>> Solver().solve(deal_board(11982)).result
        'unwinnable'
    """

    def __init__(self, seconds: float | None = None, megabytes: int = MEGABYTES, short: bool = False) -> None:
        """Limits of each call (None: no limit of time); ``short``: look longer for a shorter line.

        Raises ValueError as ``check_limits`` does.
        """
        check_limits(seconds, megabytes)
        self.seconds, self.megabytes, self.short = seconds, megabytes, short
        self._most_room = min(max(megabytes * 10**6 // _PEAK_BYTES, _FIRST_ROOM), 2**31 - 1)
        self._search = Search()
        self.solve(deal_board(1, start_rank=12))  # compiles, or loads what was compiled: no search shall pay for it

    def solve(self, board: Any) -> Solution:
        """A winning line from a board, or the proof that there is none, or neither within the limits.

        ``board``: an observation, or anything else that the puzzle's ``board`` reset option takes; ValueError for
        what is no position. Safe cards on it go home with the first move, as in the game.
        """
        began, table = time.perf_counter(), table_of(board)
        if rules.cards_home(table) == CARDS:
            return Solution(SOLVED)
        best: tuple[int, ...] | None = None
        positions, end, limit = 0, kernels.PAUSED, ""
        for one in _SHORT_TRIES if self.short else _QUICK_TRIES:
            if best is not None and (one is _PROOF or not self.short):
                break
            end, limit = self._try(table, one, began)
            positions += int(self._search.numbers[kernels.FOUND])
            if end == kernels.SOLVED:
                line = self._actions(table)
                best = line if best is None or len(line) < len(best) else best
            elif end == kernels.EXHAUSTED or limit:
                break
        seconds = time.perf_counter() - began
        if best is not None:
            return Solution(SOLVED, best, positions, seconds)
        if end == kernels.EXHAUSTED:
            return Solution(UNWINNABLE, (), positions, seconds)
        return Solution(UNDECIDED, (), positions, seconds, limit)

    def _try(self, table: NDArray[np.uint64], one: _Try, began: float) -> tuple[int, str]:
        """Search until it ends or found its most; how it ended, and the limit of the call that stopped it."""
        search, proves = self._search, one.most == math.inf
        search.begin(table)
        while True:
            end = search.expand(one.weights, one.single, _SLICE if proves else _SHORT_SLICE)
            if end == kernels.FULL and not self._grow():
                return end, f"memory ({self.megabytes:,} MB)" if proves else ""
            if end not in (kernels.FULL, kernels.PAUSED):
                return end, ""
            if self.seconds is not None and time.perf_counter() - began > self.seconds:
                return end, f"time ({self.seconds:g} s)"
            if search.numbers[kernels.FOUND] > one.most:
                return kernels.PAUSED, ""

    def _grow(self) -> bool:
        """Give the search more memory; False at the limit, and where the machine has no more."""
        room = min(2 * self._search.room, self._most_room)
        if room == self._search.room:
            return False
        with contextlib.suppress(MemoryError):
            self._search.resize(room)
        return self._search.room == room

    def _actions(self, table: NDArray[np.uint64]) -> tuple[int, ...]:
        """The line just found as actions of the environment."""
        line, end = self._search.line(), table.copy()
        boards, actions = np.empty((len(line), DEPTH + 1), np.uint64), np.empty(len(line), np.int64)
        legal = kernels.replay(end, line, self._search.sent, boards, actions)
        if legal < len(line) or rules.cards_home(end) < CARDS:
            raise AssertionError("the solver's line does not win")  # cannot happen; a wrong answer must not get out
        return tuple(int(action) for action in actions)
