"""All compiled rules of 2048: slide, spawn, legal moves, end, and the loops over rows.

A line slides by ``slide_line``; everything else rests on it. Boards without a tile of 32768 or more (all but the very
best games) take a table of all 65,536 rows, built from ``slide_line`` itself; larger tiles take the lines one by one.
The bit-parallel transposition follows nneonneo's 2048-ai (2014).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..common import rng, threads
from ..common.jit import Int, njit
from ..common.rows import (
    LEGAL,
    ONE,
    PLAY,
    RNG,
    SKIP,
    START,
    STATUS,
    STEPS,
    SUCCESS,
    TERMINATED,
    TRUNCATED,
    WAS_LEGAL,
    ZERO,
    words,
)
from .actions import Action
from .state import HIGH, LOW, SCORE, SIDE, SQUARES, TOP

CHANCE_OF_FOUR = 0.1  # by the rules
FOURS = round(CHANCE_OF_FOUR * 2**32)  # the same as ``spawn`` takes it
WIN_EXPONENT = 11  # the tile 2048
EXPONENTS = 32  # what the five bits of a square can hold
_BLOCK = np.uint64(256)  # rows that go through the loops of ``advance_rows`` together
_BIT_TO_BYTE, _BYTE_BITS = 0x00204081, 0x01010101  # (bits * first) & second: bit d of 4 to the lowest bit of byte d

# Columns of a game's configuration row, and rows of the numbers reported with each step.
PROB_FOUR, STOP_AT_WIN, CONFIG = 0, 1, 2
NUMBER_SCORE, NUMBER_MAX_TILE = 0, 1

_UP, _RIGHT, _DOWN, _LEFT = int(Action.UP), int(Action.RIGHT), int(Action.DOWN), int(Action.LEFT)

_S1, _S2, _S3, _S4, _S8, _S12, _S16, _S24 = words(1, 2, 3, 4, 8, 12, 16, 24)
_S48, _S60 = words(48, 60)
_NIBBLE, _ROW, _LOWBITS = words(0xF, 0xFFFF, 0x1111111111111111)
_HAS_RIGHT, _HAS_BELOW = words(0x0111011101110111, 0x0000111111111111)  # squares with a neighbour on that side
_T1, _T2, _T3 = words(0xF0F00F0FF0F00F0F, 0x0000F0F00000F0F0, 0x0F0F00000F0F0000)
_T4, _T5, _T6 = words(0xFF00FF0000FF00FF, 0x00FF00FF00000000, 0x00000000FF00FF00)
_M1, _M2 = words(0x0F0F0F0F0F0F0F0F, 0x00FF00FF00FF00FF)
_HALF, _QUADS, _S32, _RIGHT_HALF = words(0xFFFFFFFF, 0x0000FFFF0000FFFF, 32, 1 << 16)
_BYTE, _BYTES, _ODD_BUT_LAST = words(0xFF, 0x0101010101010101, 0x0010101010101010)


@njit
def transpose(x: np.uint64) -> np.uint64:
    """A board word with its rows as columns."""
    a = (x & _T1) | ((x & _T2) << _S12) | ((x & _T3) >> _S12)
    return (a & _T4) | ((a & _T5) >> _S24) | ((a & _T6) << _S24)


@njit
def mirror(x: np.uint64) -> np.uint64:
    """A board word with each row from right to left."""
    x = ((x & _M1) << _S4) | ((x >> _S4) & _M1)
    return ((x & _M2) << _S8) | ((x >> _S8) & _M2)


@njit
def _spread8(row: np.uint64) -> np.uint64:
    """The eight lowest nibbles, one in each byte."""
    row = (row | row << _S16) & _QUADS
    row = (row | row << _S8) & _M2
    return (row | row << _S4) & _M1


@njit
def _spread(row: np.uint64) -> np.uint64:
    """The four lowest nibbles, one in each byte."""
    row &= _ROW
    row = (row | row << _S8) & _M2
    return (row | row << _S4) & _M1


@njit
def _gather(line: np.uint64) -> np.uint64:
    """The lower nibbles of four bytes, as one row: inverse of ``_spread``."""
    line &= _M1
    line = (line | line >> _S4) & _M2
    return (line | line >> _S8) & _ROW


@njit
def slide_line(line: np.uint64) -> tuple[np.uint64, int]:
    """Slide and merge four exponents, one in each byte, towards the lowest byte: (line, points gained).

    A merged tile does not merge again, and pairing starts at the edge moved to.
    """
    after, gain = ZERO, 0
    end = ZERO  # the bit where the next tile comes to rest
    waiting = ZERO  # the tile before it, while it may still merge
    for i in range(SIDE):
        tile = (line >> np.uint64(8 * i)) & _BYTE
        if tile == ZERO:
            continue
        if tile == waiting:
            after += ONE << (end - _S8)
            gain += int(2 << np.int64(tile))
            waiting = ZERO
        else:
            after |= tile << end
            end += _S8
            waiting = tile
    return after, gain


@njit
def _fill_table(table: NDArray[np.uint32]) -> None:
    """For each row of four nibbles: the row after a slide, and gain / 4 in the upper half.

    Slides to the left come first, then those to the right. Rows that make 2^16 do not fit; they are never looked up.
    """
    for row in range(1 << 16):
        after, gain = slide_line(_spread(np.uint64(row)))
        left = _gather(after)
        points = (np.uint64(gain) >> _S2 & _ROW) << _S16
        table[row] = np.uint32(left | points)
        table[_RIGHT_HALF | mirror(np.uint64(row)) & _ROW] = np.uint32(mirror(left) & _ROW | points)


_TABLE = np.empty(2 << 16, dtype=np.uint32)
_fill_table(_TABLE)


@njit
def _choose(condition: bool, x: np.uint64, y: np.uint64) -> np.uint64:
    """``x if condition else y`` without a branch: directions are as good as random, a jump would be mispredicted."""
    return y ^ ((x ^ y) & (ZERO - np.uint64(condition)))


@njit
def _slide_rows_table(low: np.uint64, right: bool) -> tuple[np.uint64, int]:
    """All four rows to the left or to the right by the table: (board word, gain)."""
    half = np.uint64(right) << _S16
    a = np.uint64(_TABLE[half | low & _ROW])
    b = np.uint64(_TABLE[half | (low >> _S16) & _ROW])
    c = np.uint64(_TABLE[half | (low >> _S32) & _ROW])
    d = np.uint64(_TABLE[half | low >> _S48])
    after = (a & _ROW) | (b & _ROW) << _S16 | (c & _ROW) << _S32 | (d & _ROW) << _S48
    gain = (a >> _S16) + (b >> _S16) + (c >> _S16) + (d >> _S16)
    return after, int(gain << _S2)


@njit
def _slide_rows_wide(low: np.uint64, high: np.uint64, right: bool) -> tuple[np.uint64, np.uint64, int]:
    """``_slide_rows_table`` line by line, for tiles up to 2^17: (low word, high word, gain)."""
    if right:
        low, high = mirror(low), mirror(high)
    new_low, new_high = ZERO, ZERO
    gain = 0
    for r in range(SIDE):
        shift = np.uint64(16 * r)
        line, points = slide_line(_spread(low >> shift) | _spread(high >> shift) << _S4)
        new_low |= _gather(line) << shift
        new_high |= _gather(line >> _S4 & _BYTES) << shift
        gain += points
    if right:
        new_low, new_high = mirror(new_low), mirror(new_high)
    return new_low, new_high, gain


@njit
def slide(low: np.uint64, high: np.uint64, direction: Int) -> tuple[np.uint64, np.uint64, int]:
    """The afterstate of a move: (low word, high word, gain). An illegal move returns the same board and gain 0."""
    vertical = (direction == _UP) | (direction == _DOWN)
    right = (direction == _RIGHT) | (direction == _DOWN)  # a transposed board's up is left, its down right
    low = _choose(vertical, transpose(low), low)
    full = low & (low >> _S1) & (low >> _S2) & (low >> _S3) & _LOWBITS  # a tile of 2^15 can make 2^16
    if high == ZERO and full == ZERO:
        low, gain = _slide_rows_table(low, right)
    else:
        low, high, gain = _slide_rows_wide(low, _choose(vertical, transpose(high), high), right)
        high = _choose(vertical, transpose(high), high)
    return _choose(vertical, transpose(low), low), high, gain


@njit
def occupied(low: np.uint64, high: np.uint64) -> np.uint64:
    """The lowest bit of each nibble that holds a tile."""
    x = low | high
    x |= x >> _S2
    return (x | x >> _S1) & _LOWBITS


@njit
def legal_bits(low: np.uint64, high: np.uint64) -> int:
    """Bit d is set if direction d changes the board: some tile slides, or some pair merges."""
    tiles = occupied(low, high)
    across = ~occupied(low ^ (low >> _S4), high ^ (high >> _S4)) & tiles & _HAS_RIGHT
    down = ~occupied(low ^ (low >> _S16), high ^ (high >> _S16)) & tiles & _HAS_BELOW
    right_tiles, lower_tiles = tiles >> _S4, tiles >> _S16
    up_moves = (down | (~tiles & lower_tiles & _HAS_BELOW)) != ZERO
    right_moves = (across | (tiles & ~right_tiles & _HAS_RIGHT)) != ZERO
    down_moves = (down | (tiles & ~lower_tiles & _HAS_BELOW)) != ZERO
    left_moves = (across | (~tiles & right_tiles & _HAS_RIGHT)) != ZERO
    return int(up_moves << _UP | right_moves << _RIGHT | down_moves << _DOWN | left_moves << _LEFT)


@njit
def spawn(low: np.uint64, high: np.uint64, word: np.uint64, prob_four: Int) -> tuple[np.uint64, np.uint64]:
    """Put a 2, or a 4 with probability ``prob_four`` / 2^32, on a uniformly random empty square.

    ``word`` is 64 random bits. Returns (low word, exponent of the new tile).
    """
    empty = ~occupied(low, high) & _LOWBITS
    so_far = empty * _LOWBITS  # nibble i: empty squares among 0..i (an empty board's 16 overflows to 0, at the top)
    count = (((so_far >> _S60) - ONE) & _NIBBLE) + ONE
    chosen = rng.below(word, count)
    # Nibbles whose number of empty squares so far is at most `chosen` lie before the square; 16 + chosen - number has
    # its fifth bit set there. Even and odd nibbles in turn, the last one never lies before.
    level = (_S16 + chosen) * _BYTES
    before = ((level - (so_far & _M1)) >> _S4) & _BYTES
    before |= (level - ((so_far >> _S4) & _M1)) & _ODD_BUT_LAST
    after = _LOWBITS & ~before
    square = after & (ZERO - after)
    four = np.uint64(np.int64(rng.low32(word)) < prob_four)
    return low | square << four, ONE + four


@njit
def _holds(low: np.uint64, high: np.uint64, exponent: np.uint64) -> bool:
    """Is there a tile of this exponent?"""
    others = occupied(low ^ (exponent & _NIBBLE) * _LOWBITS, high ^ (exponent >> _S4) * _LOWBITS)
    return bool(others != _LOWBITS)


@njit
def play(
    low: np.uint64, high: np.uint64, top: np.uint64, word: np.uint64, action: Int, prob_four: Int
) -> tuple[np.uint64, np.uint64, np.uint64, int, bool]:
    """A move with its spawn, on a board whose largest exponent is ``top``; ``word`` is 64 random bits.

    Returns (low word, high word, largest exponent, points gained, legal); an illegal move leaves the board as it is.
    """
    after_low, after_high, gain = slide(low, high, action)
    if after_low == low and after_high == high:
        return low, high, top, 0, False
    top += np.uint64(_holds(after_low, after_high, top + ONE))
    after_low, new = spawn(after_low, after_high, word, prob_four)
    return after_low, after_high, max(top, new), gain, True


@njit
def deal(first: np.uint64, second: np.uint64, prob_four: Int) -> tuple[np.uint64, np.uint64]:
    """Two tiles on two different random squares, by 2 x 64 random bits: (low word, largest exponent)."""
    low, one = spawn(ZERO, ZERO, first, prob_four)
    low, other = spawn(low, ZERO, second, prob_four)
    return low, max(one, other)


@njit
def exponents(low: np.uint64, high: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The 16 exponents, one in each byte: squares 0..7 and 8..15, the first in the lowest byte."""
    return (
        _spread8(low & _HALF) | _spread8(high & _HALF) << _S4,
        _spread8(low >> _S32) | _spread8(high >> _S32) << _S4,
    )


@njit
def exponent(low: np.uint64, high: np.uint64, square: Int) -> int:
    """The exponent of one square, 0 to 15 row by row."""
    shift = np.uint64(4 * square)
    return int(low >> shift & _NIBBLE | (high >> shift & ONE) << _S4)


@njit
def _count_tiles(low: np.uint64, high: np.uint64, sign: int, counts: NDArray[np.int64]) -> None:
    """Add ``sign`` to the count of each square's exponent."""
    for i in range(SQUARES):
        counts[exponent(low, high, i)] += sign


@njit
def merge_rows(
    rows: NDArray[np.uint64],
    actions: NDArray[np.int64],
    worth: NDArray[np.float64],
    total: NDArray[np.float64],
    counts: NDArray[np.int64],
) -> None:
    """What the merges of each row's next move are worth: ``worth[e]`` for each new tile of exponent e.

    ``worth`` is float64 ``[EXPONENTS]``. Writes ``total`` (float64 ``[N]``, 0 for a move without a merge) and changes
    no row; ``counts`` (int64 ``[EXPONENTS]``) is scratch.
    """
    for i in range(len(rows)):
        low, high, gain = slide(rows[i, LOW], rows[i, HIGH], actions[i])
        total[i] = 0.0
        if gain == 0:
            continue
        for e in range(EXPONENTS):
            counts[e] = 0
        _count_tiles(rows[i, LOW], rows[i, HIGH], -1, counts)
        _count_tiles(low, high, 1, counts)
        made = 0
        for e in range(EXPONENTS - 1, 0, -1):  # new tiles of e: those that stay, and two for each new e + 1
            made = counts[e] + 2 * made
            total[i] += made * worth[e]


@njit
def move_rows(rows: NDArray[np.uint64], config: NDArray[np.int64], actions: NDArray[np.int64]) -> int:
    """``advance_rows`` reduced to the slides, for measuring; changes nothing. Returns a checksum."""
    total = ZERO
    for i in range(np.uint64(len(rows))):
        low, high, gain = slide(rows[i, LOW], rows[i, HIGH], actions[i])
        total += low ^ high ^ np.uint64(gain)
    return int(total & _ROW)


@njit
def spawn_rows(rows: NDArray[np.uint64], config: NDArray[np.int64], actions: NDArray[np.int64]) -> int:
    """``advance_rows`` reduced to the new tiles, for measuring; changes nothing. Returns a checksum."""
    total = ZERO
    for i in range(np.uint64(len(rows))):
        low, new = spawn(rows[i, LOW], rows[i, HIGH], rng.mix(rows[i, RNG] + rng.GAMMA), config[i, PROB_FOUR])
        total += low ^ new
    return int(total & _ROW)


@njit
def mask_rows(rows: NDArray[np.uint64], config: NDArray[np.int64], mask: NDArray[np.int8]) -> None:
    """Write the masks (int8 ``[N, 4]``) of all rows."""
    legal_words = mask.view(np.uint32)
    for i in range(np.uint64(len(rows))):
        legal_words[i, 0] = np.uint32(legal_bits(rows[i, LOW], rows[i, HIGH]) * _BIT_TO_BYTE & _BYTE_BITS)


@njit
def observe_rows(rows: NDArray[np.uint64], config: NDArray[np.int64], obs: NDArray[np.uint8]) -> None:
    """Write the observations (uint8 ``[N, 16]``) of all rows."""
    squares = obs.view(np.uint64)
    for i in range(np.uint64(len(rows))):
        squares[i, 0], squares[i, 1] = exponents(rows[i, LOW], rows[i, HIGH])


@njit
def advance_rows(
    rows: NDArray[np.uint64],
    config: NDArray[np.int64],
    todo: NDArray[np.uint8],
    actions: NDArray[np.int64],
    limit: int,
    first: int,
    last: int,
    obs: NDArray[np.uint8],
    mask: NDArray[np.int8],
    reward: NDArray[np.float64],
    flags: NDArray[np.bool_],
    numbers: NDArray[np.int64],
) -> int:
    """Do with the rows from ``first`` to before ``last`` what ``todo`` says; see ``Puzzle``.

    The rows go through three short loops, block by block: the processor overlaps more rows of a short loop, and the
    loop over masks becomes vector code. Indices are unsigned, so that none is checked for being negative.
    """
    squares, legal_words = obs.view(np.uint64), mask.view(np.uint32)
    ended = 0
    for start in range(np.uint64(first), np.uint64(last), _BLOCK):
        stop = min(start + _BLOCK, np.uint64(last))
        busy = SKIP
        for i in range(start, stop):
            busy |= todo[i]
            word, prob_four = rows[i, RNG], config[i, PROB_FOUR]
            points = 0
            if todo[i] == PLAY:
                low, high, top, points, legal = play(
                    rows[i, LOW], rows[i, HIGH], rows[i, TOP], rng.mix(word + rng.GAMMA), actions[i], prob_four
                )
                rows[i, RNG] = word + rng.GAMMA * np.uint64(legal)  # an illegal move draws nothing
                rows[i, STEPS] += ONE
                rows[i, STATUS] = LEGAL * np.uint64(legal)
                rows[i, LOW], rows[i, HIGH], rows[i, TOP] = low, high, top
                rows[i, SCORE] += np.uint64(points)
            elif todo[i] == START:
                rows[i, RNG] = word + rng.GAMMA + rng.GAMMA
                low, top = deal(rng.mix(word + rng.GAMMA), rng.mix(rows[i, RNG]), prob_four)
                rows[i, LOW], rows[i, HIGH], rows[i, TOP] = low, ZERO, top
                rows[i, STEPS] = rows[i, SCORE] = ZERO
                rows[i, STATUS] = LEGAL
            reward[i] = points
        if busy == SKIP:
            continue
        for i in range(start, stop):
            bits = legal_bits(rows[i, LOW], rows[i, HIGH])
            new = np.uint32(bits * _BIT_TO_BYTE & _BYTE_BITS)
            legal_words[i, 0] = legal_words[i, 0] if todo[i] == SKIP else new
        for i in range(start, stop):
            if todo[i] == SKIP:
                continue
            top = rows[i, TOP]
            won = top >= WIN_EXPONENT
            if won and config[i, STOP_AT_WIN]:
                legal_words[i, 0] = 0
            over = legal_words[i, 0] == 0
            rows[i, STATUS] = rows[i, STATUS] & LEGAL | np.uint64(over)
            squares[i, 0], squares[i, 1] = exponents(rows[i, LOW], rows[i, HIGH])
            played = todo[i] == PLAY
            late = (limit > 0) & (limit <= np.int64(rows[i, STEPS]))
            flags[TERMINATED, i], flags[TRUNCATED, i] = played & over, played & late
            ended += played & (over | late)
            flags[WAS_LEGAL, i], flags[SUCCESS, i] = rows[i, STATUS] & LEGAL != ZERO, won
            numbers[NUMBER_SCORE, i] = rows[i, SCORE]
            numbers[NUMBER_MAX_TILE, i] = (1 << np.int64(top)) & ~1  # exponent 0 is no tile
    return ended


@njit
def share_rows(
    share: NDArray[np.int64],
    pulse: NDArray[np.int64],
    ticket: int,
    rows: NDArray[np.uint64],
    config: NDArray[np.int64],
    todo: NDArray[np.uint8],
    actions: NDArray[np.int64],
    limit: int,
    obs: NDArray[np.uint8],
    mask: NDArray[np.int8],
    reward: NDArray[np.float64],
    flags: NDArray[np.bool_],
    numbers: NDArray[np.int64],
) -> None:
    """``advance_rows`` for one of several threads, which takes rows until none are left; see ``common.threads``."""
    threads.enter(pulse, ticket)
    first, last = threads.claim(share)
    while first < last:
        ended = advance_rows(rows, config, todo, actions, limit, first, last, obs, mask, reward, flags, numbers)
        threads.finish(share, last - first, ended)
        first, last = threads.claim(share)
    threads.leave(share, pulse, ticket)
