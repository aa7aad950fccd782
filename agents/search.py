"""Expectimax search of 2048: every move and every tile that may appear, some moves deep, judged at the end by a leaf.

A leaf is data: a table of rows (``expectimax``) or an n-tuple network (``ntuple``). Positions already searched are
remembered; what is improbable is not looked into any further.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..envs.common.checks import whole_number
from ..envs.common.jit import Int, njit
from ..envs.common.rng import GAMMA, Streams, mix
from ..envs.common.rows import ZERO, words
from ..envs.puzzle2048.actions import ACTIONS
from ..envs.puzzle2048.rules import CHANCE_OF_FOUR, occupied, slide, transpose
from ..envs.puzzle2048.state import board_words
from .ntuple import SYMMETRIES, Floats, Lookups, Words, flat, lookups, value
from .policy import Actions, Masks, Observations

Values = NDArray[np.float64]

_S16, _S32, _S48, _S60 = words(16, 32, 48, 60)
_ROW, _LOWBITS = words(0xFFFF, 0x1111111111111111)

CHANCES = 1 - CHANCE_OF_FOUR, CHANCE_OF_FOUR  # of a new 2 and a new 4
_SLOTS = 1 << 14  # positions that a search remembers: few enough for the processor's cache, and more help little
_ENOUGH = 1 << 62  # more positions than any search sees
_DEEPEST = 30
_FIRST_RATE = 2e6  # positions a second, until a player has measured its own


class Leaf(NamedTuple):
    """What a board is worth where the search ends, and what points on the way to it count.

    The sum of ``rows`` (float64 ``[65536]``) over rows and columns, or, where that is empty, the value of an n-tuple
    network: ``table`` (float32 ``[entries, C]``), ``net``, and ``boards``, scratch.
    """

    rows: Values
    table: Floats
    net: Lookups
    boards: Words
    points: float
    least: float  # no board on which there is a move is worth less


def rows_leaf(rows: Values) -> Leaf:
    """A leaf that judges boards by their rows and columns alone."""
    return Leaf(rows, np.zeros((16, 1), np.float32), lookups([(0,)]), np.zeros(SYMMETRIES, np.uint64), 0.0, 0.0)


def network_leaf(table: Floats, net: Lookups) -> Leaf:
    """A leaf that judges boards by the points that an n-tuple network expects."""
    return Leaf(np.zeros(0), table, net, np.zeros(SYMMETRIES, np.uint64), 1.0, -np.inf)


class Memory(NamedTuple):
    """Scratch of a search: ``tags`` and ``known`` (uint64 and float64 ``[2^n]``) hold the positions searched already;
    ``serial`` (uint64 ``[1]``) numbers the searches, so that none meets what another one knew; ``work`` (int64
    ``[1]``) counts down the positions it may still look into: below 0 it gave up, and what it found is void.
    """

    tags: Words
    known: Values
    serial: Words
    work: NDArray[np.int64]


def memory(slots: int = _SLOTS) -> Memory:
    """A fresh one for so many positions, a power of two."""
    return Memory(np.zeros(slots, np.uint64), np.zeros(slots), np.zeros(1, np.uint64), np.full(1, _ENOUGH, np.int64))


@njit
def _leaf_value(low: np.uint64, high: np.uint64, leaf: Leaf) -> float:
    """Tiles above 32768 count as 32768."""
    board = flat(low, high)
    if not len(leaf.rows):
        return float(value(board, leaf.table, leaf.net, leaf.boards))
    columns = transpose(board)
    return float(
        leaf.rows[board & _ROW]
        + leaf.rows[board >> _S16 & _ROW]
        + leaf.rows[board >> _S32 & _ROW]
        + leaf.rows[board >> _S48]
        + leaf.rows[columns & _ROW]
        + leaf.rows[columns >> _S16 & _ROW]
        + leaf.rows[columns >> _S32 & _ROW]
        + leaf.rows[columns >> _S48]
    )


@njit
def _expected(
    low: np.uint64, high: np.uint64, depth: Int, reach: float, cutoff: float, leaf: Leaf, memory: Memory
) -> float:
    """What an afterstate is worth: the mean, over all new tiles, of the best that ``depth`` moves lead to.

    ``reach`` is the probability of coming here; below ``cutoff`` the leaf alone judges. A lost board is worth 0.
    """
    position = mix(low ^ mix(high + np.uint64(depth) * GAMMA))
    slot, tag = position & np.uint64(len(memory.tags) - 1), position ^ memory.serial[0] * GAMMA
    if memory.tags[slot] == tag:
        return float(memory.known[slot])
    memory.work[0] -= 1
    if memory.work[0] < 0:
        return 0.0
    empty = ~occupied(low, high) & _LOWBITS
    squares = np.int64(empty * _LOWBITS >> _S60)  # 1 to 15 after a move
    total = 0.0
    while empty:
        square = empty & (ZERO - empty)
        empty ^= square
        for four in range(2):
            board, chance = low | square << np.uint64(four), CHANCES[four] / squares
            deeper = depth > 1 and reach * chance >= cutoff
            best, legal = leaf.least, False
            for way in range(ACTIONS):
                to_low, to_high, gain = slide(board, high, way)
                if to_low == board and to_high == high:
                    continue
                if deeper:
                    later = _expected(to_low, to_high, depth - 1, reach * chance, cutoff, leaf, memory)
                else:
                    later = _leaf_value(to_low, to_high, leaf)
                best, legal = max(best, leaf.points * gain + later), True
            if legal:
                total += chance * best
    memory.tags[slot], memory.known[slot] = tag, total
    return total


@njit
def search_rows(
    low: Words, high: Words, masks: Masks, depth: int, cutoff: float, leaf: Leaf, memory: Memory, found: Values
) -> None:
    """Write what each move under ``masks`` (bool ``[N, 4]``) is worth into ``found`` (float64 ``[N, 4]``).

    ``low`` and ``high`` (uint64 ``[N]``) are the boards, ``depth`` counts the player's moves, ``cutoff`` is the
    probability below which a board is judged at once.
    """
    for i in range(len(low)):
        memory.serial[0] += np.uint64(1)
        for way in range(ACTIONS):
            if masks[i, way]:
                to_low, to_high, gain = slide(low[i], high[i], way)
                if depth > 1:
                    later = _expected(to_low, to_high, depth - 1, 1.0, cutoff, leaf, memory)
                else:
                    later = _leaf_value(to_low, to_high, leaf)
                found[i, way] = leaf.points * gain + later


class Searcher:
    """A player that makes the move which the search finds best; no chance is used.

    It searches in arrays of its own: a player is for one thread at a time.
    """

    def __init__(self, name: str, leaf: Leaf, depth: int, cutoff: float, seconds: float | None = None) -> None:
        """``depth``: how many moves to look ahead, the one to make included. With ``seconds`` it looks one move deeper
        after the other for about so long a move, whatever ``depth`` says.

        Raises ValueError unless depth is at least 1 and seconds, if given, more than 0.
        """
        self.name, self.depth, self.seconds = name, whole_number(depth) or 0, seconds
        if self.depth < 1:
            raise ValueError(f"depth must be a whole number of 1 or more, not {depth!r}")
        if seconds is not None and not seconds > 0:
            raise ValueError(f"the seconds for a move must be more than 0, not {seconds}")
        self._leaf, self._cutoff, self._memory = leaf, cutoff, memory()
        self._rate = _FIRST_RATE

    def act(self, observations: Observations, masks: Masks, rng: Streams) -> Actions:
        """One action per row; among equals the first in the order of ``Action``."""
        low, high = board_words(observations)
        masks = np.ascontiguousarray(masks)
        if self.seconds is None:
            found = self._searched(low, high, masks, self.depth)
        else:
            rows = (slice(i, i + 1) for i in range(len(low)))
            found = np.concatenate([self._deepened(low[row], high[row], masks[row], self.seconds) for row in rows])
        return np.asarray(found.argmax(axis=1), dtype=np.int64)

    def _searched(self, low: Words, high: Words, masks: Masks, depth: int, work: int = _ENOUGH) -> Values:
        found = np.full(masks.shape, -np.inf)
        self._memory.work[0] = work
        search_rows(low, high, masks, depth, self._cutoff, self._leaf, self._memory, found)
        return found

    def _deepened(self, low: Words, high: Words, masks: Masks, seconds: float) -> Values:
        """One position, one move deeper after the other, as long as there is time and something left to look into."""
        end, seen = time.perf_counter() + seconds, -1
        found = self._searched(low, high, masks, 1)
        for depth in range(2, _DEEPEST):
            now = time.perf_counter()
            work = int((end - now) * self._rate)
            if work <= 2 * seen or masks.sum() == 1:  # one move deeper takes more than twice as long
                break
            deeper = self._searched(low, high, masks, depth, work)
            left = int(self._memory.work[0])
            self._rate = 0.9 * self._rate + 0.1 * (work - left) / (time.perf_counter() - now)
            if left < 0 or work - left == seen:
                break
            found, seen = deeper, work - left
        return found
