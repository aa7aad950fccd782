"""n-tuple networks for 2048: tables of what patterns of squares are worth, learned by temporal differences.

Szubert and Jaśkowski (2014): the value of an afterstate (the board after a move, before its new tile) is the sum of
table entries, one for each n-tuple of squares in each of the board's 8 symmetries, which share a table. Temporal
coherence (TC) learning gives every entry a step of its own (Beal and Smith 1999; Jaśkowski 2018 for 2048); games are
learned from their last move backwards, with TD(lambda) targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..envs.common import rng
from ..envs.common.jit import Int, njit
from ..envs.common.rows import ZERO, words
from ..envs.puzzle2048.actions import ACTIONS
from ..envs.puzzle2048.rules import FOURS, deal, exponent, mirror, slide, spawn, transpose
from ..envs.puzzle2048.state import SQUARES

Floats = NDArray[np.float32]
Words = NDArray[np.uint64]

SYMMETRIES = 8
VALUES = 16  # exponents that a table tells apart: tiles above 32768 count as 32768
SHORTEST = 10  # moves that are worth playing again

# Networks by name: tuples of squares, numbered row by row from 0 to 15.
NETWORKS: dict[str, tuple[tuple[int, ...], ...]] = {
    "5x4": ((0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 4, 5), (1, 2, 5, 6), (5, 6, 9, 10)),
    "4x5": ((0, 1, 2, 3, 4), (4, 5, 6, 7, 8), (0, 1, 2, 4, 5), (4, 5, 6, 8, 9)),
    "4x6": ((0, 1, 2, 3, 4, 5), (4, 5, 6, 7, 8, 9), (0, 1, 2, 4, 5, 6), (4, 5, 6, 8, 9, 10)),
    # Matsuzaki (2016): the eight best 6-tuples.
    "8x6": (
        (0, 1, 2, 4, 5, 6),
        (1, 2, 5, 6, 9, 13),
        (0, 1, 2, 3, 4, 5),
        (0, 1, 5, 6, 7, 10),
        (0, 1, 2, 5, 9, 10),
        (0, 1, 5, 9, 13, 14),
        (0, 1, 5, 8, 9, 13),
        (0, 1, 2, 4, 6, 10),
    ),
}

_NIBBLE, _LAST_BITS = words(0xF, 63)
_ALL = np.uint64(SYMMETRIES)
_WORST = np.float32(-3e38)


class Lookups(NamedTuple):
    """How a board word becomes places in the table: T tuples of up to R runs of neighbouring squares.

    ``turns`` and ``masks`` (uint64 ``[T, R]``): a run is the word rotated right by so many bits, under the mask.
    ``starts`` (uint64 ``[T]``): where each tuple's entries begin.
    """

    turns: Words
    masks: Words
    starts: Words


def lookups(tuples: Sequence[Sequence[int]]) -> Lookups:
    """The look-ups of a network."""
    runs: list[dict[int, int]] = []
    for squares in tuples:
        runs.append({})
        for place, square in enumerate(squares):
            turn = 4 * (square - place) % 64
            runs[-1][turn] = runs[-1].get(turn, 0) | (VALUES - 1) << 4 * place
    shape = len(runs), max(map(len, runs))
    found = Lookups(np.zeros(shape, np.uint64), np.zeros(shape, np.uint64), np.zeros(len(runs), np.uint64))
    for t, run in enumerate(runs):
        found.turns[t, : len(run)], found.masks[t, : len(run)] = list(run), list(run.values())
    found.starts[1:] = np.cumsum([VALUES ** len(squares) for squares in tuples])[:-1]
    return found


def entries(tuples: Sequence[Sequence[int]]) -> int:
    """Entries of a network's table."""
    return sum(VALUES ** len(squares) for squares in tuples)


@njit
def symmetries(board: np.uint64, boards: Words) -> None:
    """Write the 8 boards that a board is turned and mirrored into ``boards`` (uint64 ``[8]``)."""
    boards[0], boards[1] = board, mirror(board)
    boards[2] = transpose(board)
    boards[3] = mirror(boards[2])
    boards[4], boards[5] = transpose(boards[1]), transpose(boards[3])
    boards[6], boards[7] = mirror(boards[4]), mirror(boards[5])


@njit
def entry(board: np.uint64, t: Int, net: Lookups) -> np.uint64:
    """The place in the table of tuple ``t`` of a board."""
    place = np.uint64(net.starts[t])
    for r in range(np.uint64(net.turns.shape[1])):
        turn = net.turns[t, r]
        place += (board >> turn | board << (ZERO - turn & _LAST_BITS)) & net.masks[t, r]
    return place


@njit
def flat(low: np.uint64, high: np.uint64) -> np.uint64:
    """The two words of a board as one, tiles above 32768 as 32768."""
    return low | high * _NIBBLE


@njit
def value(board: np.uint64, table: Floats, net: Lookups, boards: Words) -> np.float32:
    """What a board (``flat``) is worth by column 0 of ``table`` (float32 ``[entries, C]``); ``boards`` is scratch."""
    symmetries(board, boards)
    total = np.float32(0)
    for t in range(np.uint64(len(net.starts))):
        for s in range(_ALL):
            total += table[np.intp(entry(boards[s], t, net)), 0]
    return total


@njit
def _learn_value(
    board: np.uint64, error: np.float32, rate: float, table: Floats, net: Lookups, boards: Words
) -> np.float32:
    """Move the value of a board by ``rate`` times ``error``, shared by its look-ups, and return the new one.

    (A little less than that if look-ups meet in an entry: it is added up as it stands after each of them.)
    A table of 3 columns learns by temporal coherence: columns 1 and 2 hold the sums of errors and of their amounts,
    whose ratio (1 at first) scales the entry's step. A table of 1 column learns by plain TD.
    """
    symmetries(board, boards)
    step = np.float32(rate * error / (SYMMETRIES * len(net.starts)))
    coherent = table.shape[1] == 3
    total = np.float32(0)
    for t in range(np.uint64(len(net.starts))):
        for s in range(_ALL):
            i = np.intp(entry(boards[s], t, net))
            if coherent:
                scale = abs(table[i, 1]) / table[i, 2] if table[i, 2] > 0 else np.float32(1)
                table[i, 1] += error
                table[i, 2] += abs(error)
                table[i, 0] += step * scale
            else:
                table[i, 0] += step
            total += table[i, 0]
    return total


@njit
def best_move(
    low: np.uint64, high: np.uint64, table: Floats, net: Lookups, boards: Words
) -> tuple[np.uint64, np.uint64, int]:
    """The afterstate with the most points gained and to come: (low word, high word, gain); gain -1: no legal move."""
    best, best_low, best_high, best_gain = _WORST, low, high, -1
    for way in range(ACTIONS):
        to_low, to_high, gain = slide(low, high, way)
        if to_low == low and to_high == high:
            continue
        worth = np.float32(gain) + value(flat(to_low, to_high), table, net, boards)
        if worth > best:
            best, best_low, best_high, best_gain = worth, to_low, to_high, gain
    return best_low, best_high, best_gain


class Trace(NamedTuple):
    """The afterstates of a game as board words (uint64 ``[M]``) and the points gained on the way to each (int64)."""

    low: Words
    high: Words
    gain: NDArray[np.int64]


@njit
def _play(
    low: np.uint64, high: np.uint64, word: np.uint64, table: Floats, net: Lookups, boards: Words, trace: Trace
) -> tuple[int, np.uint64]:
    """Play a game to its end, greedily, into ``trace``; returns (moves, generator word)."""
    for n in range(len(trace.low)):
        low, high, gain = best_move(low, high, table, net, boards)
        if gain < 0:
            return n, word
        trace.low[n], trace.high[n], trace.gain[n] = low, high, gain
        word += rng.GAMMA
        low, _ = spawn(low, high, rng.mix(word), FOURS)
    return len(trace.low), word


@njit
def _learn_game(n: int, rate: float, decay: float, table: Floats, net: Lookups, boards: Words, trace: Trace) -> None:
    """Learn the n afterstates of a game, the last first: nothing follows it, so its target is 0."""
    target = np.float32(0)
    for back in range(n):
        i = n - 1 - back
        board = flat(trace.low[i], trace.high[i])
        error = target - value(board, table, net, boards)
        new = _learn_value(board, error, rate, table, net, boards)
        target = np.float32(trace.gain[i] + (1 - decay) * new + decay * target)


@njit
def _top(low: np.uint64, high: np.uint64) -> int:
    """The largest exponent of a board."""
    top = 0
    for square in range(SQUARES):
        top = max(top, exponent(low, high, square))
    return top


@njit
def learn_games(
    state: Words,
    moves: int,
    rate: float,
    decay: float,
    restart: bool,
    table: Floats,
    net: Lookups,
    boards: Words,
    trace: Trace,
    scores: NDArray[np.int64],
    tops: NDArray[np.int64],
) -> tuple[int, int]:
    """Play and learn whole games until ``moves`` were made or ``scores`` is full; returns (games, moves made).

    ``state`` (uint64 ``[2]``): generator word, and where in ``trace`` to begin the next game anew (0: at the start).
    With ``restart`` a game that ended is played again from its middle, and that one from its middle, until little is
    left: late boards, which are rare, are seen more often (Matsuzaki 2017). Only games from the start are counted in
    ``scores`` and ``tops`` (int64 ``[G]``: points, largest exponent).
    """
    made, games = 0, 0
    while made < moves and games < len(scores):
        begin = np.int64(state[1])
        state[0] += rng.GAMMA
        first = rng.mix(state[0])
        if begin:
            high = trace.high[begin]
            low, _ = spawn(trace.low[begin], high, first, FOURS)
        else:
            state[0] += rng.GAMMA
            low, _ = deal(first, rng.mix(state[0]), FOURS)
            high = ZERO
        n, state[0] = _play(low, high, state[0], table, net, boards, trace)
        _learn_game(n, rate, decay, table, net, boards, trace)
        made += n
        if not begin:
            scores[games] = 0
            for i in range(n):
                scores[games] += trace.gain[i]
            tops[games] = _top(trace.low[n - 1], trace.high[n - 1])
            games += 1
        state[1] = np.uint64(n // 2) if restart and n > 2 * SHORTEST else ZERO
    return games, made
