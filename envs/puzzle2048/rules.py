"""All compiled rules of 2048: slide, spawn, legal moves, end, and the loops over rows.

A line slides by ``slide_line``; everything else rests on it. Boards without a tile of 32768 or more (all but the very
best games) take a table of all 65,536 rows, built from ``slide_line`` itself; larger tiles take the lines one by one.
The bit-parallel transposition follows nneonneo's 2048-ai (2014).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..common import rng
from ..common.jit import njit
from ..common.rows import LEGAL, ONE, OVER, RNG, STATUS, STEPS, ZERO
from .actions import ACTIONS, Action
from .state import HIGH, LOW, SCORE, SIDE, SQUARES, TOP

WIN_EXPONENT = 11  # the tile 2048
EXPONENTS = 32  # what the five bits of a square can hold

# Columns of a game's configuration row, and of the numbers reported with each step.
PROB_FOUR, STOP_AT_WIN, CONFIG = 0, 1, 2
INFO_LEGAL, INFO_SCORE, INFO_MAX_TILE, INFO_SUCCESS, INFO = 0, 1, 2, 3, 4

_UP, _RIGHT, _DOWN, _LEFT = int(Action.UP), int(Action.RIGHT), int(Action.DOWN), int(Action.LEFT)


def _words(*values: int) -> tuple[np.uint64, ...]:
    return tuple(np.uint64(value) for value in values)


_S1, _S2, _S3, _S4, _S8, _S12, _S16, _S24 = _words(1, 2, 3, 4, 8, 12, 16, 24)
_S48, _S60 = _words(48, 60)
_NIBBLE, _ROW, _LOWBITS = _words(0xF, 0xFFFF, 0x1111111111111111)
_HAS_RIGHT, _HAS_BELOW = _words(0x0111011101110111, 0x0000111111111111)  # squares with a neighbour on that side
_T1, _T2, _T3 = _words(0xF0F00F0FF0F00F0F, 0x0000F0F00000F0F0, 0x0F0F00000F0F0000)
_T4, _T5, _T6 = _words(0xFF00FF0000FF00FF, 0x00FF00FF00000000, 0x00000000FF00FF00)
_M1, _M2 = _words(0x0F0F0F0F0F0F0F0F, 0x00FF00FF00FF00FF)


@njit
def slide_line(line: NDArray[np.int64]) -> int:
    """Slide and merge four exponents towards index 0, in place; returns the points gained.

    A merged tile does not merge again, and pairing starts at the edge moved to.
    """
    gain = 0
    end = 0  # where the next tile comes to rest
    open_tile = False  # may the last placed tile still merge?
    for i in range(SIDE):
        tile = line[i]
        if tile == 0:
            continue
        line[i] = 0
        if open_tile and line[end - 1] == tile:
            line[end - 1] = tile + 1
            gain += 1 << (tile + 1)
            open_tile = False
        else:
            line[end] = tile
            end += 1
            open_tile = True
    return gain


@njit
def _build_table() -> NDArray[np.uint32]:
    """For each row of four nibbles: the row after a slide to the left, and gain / 4 in the upper half."""
    table = np.zeros(1 << 16, dtype=np.uint32)
    line = np.zeros(SIDE, dtype=np.int64)
    for row in range(1 << 16):
        for i in range(SIDE):
            line[i] = row >> 4 * i & 15
        gain = slide_line(line)
        after = line[0] & 15 | (line[1] & 15) << 4 | (line[2] & 15) << 8 | (line[3] & 15) << 12
        table[row] = after | (gain >> 2 & 0xFFFF) << 16  # rows that make 2^16 are never looked up
    return table


_TABLE = _build_table()


@njit
def _transpose(x: np.uint64) -> np.uint64:
    a = (x & _T1) | ((x & _T2) << _S12) | ((x & _T3) >> _S12)
    return (a & _T4) | ((a & _T5) >> _S24) | ((a & _T6) << _S24)


@njit
def _mirror(x: np.uint64) -> np.uint64:
    x = ((x & _M1) << _S4) | ((x >> _S4) & _M1)
    return ((x & _M2) << _S8) | ((x >> _S8) & _M2)


@njit
def _to_left(x: np.uint64, direction: int) -> np.uint64:
    """The board turned so that ``direction`` points left."""
    if direction in (_UP, _DOWN):
        x = _transpose(x)
    if direction in (_RIGHT, _DOWN):
        x = _mirror(x)
    return x


@njit
def _from_left(x: np.uint64, direction: int) -> np.uint64:
    """Inverse of ``_to_left``."""
    if direction in (_RIGHT, _DOWN):
        x = _mirror(x)
    if direction in (_UP, _DOWN):
        x = _transpose(x)
    return x


@njit
def _slide_rows_table(low: np.uint64) -> tuple[np.uint64, int]:
    """All four rows to the left by the table: (board word, gain)."""
    a = np.uint64(_TABLE[low & _ROW])
    b = np.uint64(_TABLE[(low >> _S16) & _ROW])
    c = np.uint64(_TABLE[(low >> (_S16 + _S16)) & _ROW])
    d = np.uint64(_TABLE[low >> _S48])
    after = (a & _ROW) | (b & _ROW) << _S16 | (c & _ROW) << (_S16 + _S16) | (d & _ROW) << _S48
    gain = (a >> _S16) + (b >> _S16) + (c >> _S16) + (d >> _S16)
    return after, int(gain << _S2)


@njit
def _slide_rows_wide(low: np.uint64, high: np.uint64) -> tuple[np.uint64, np.uint64, int]:
    """All four rows to the left, tile by tile, for tiles up to 2^17: (low word, high word, gain)."""
    line = np.empty(SIDE, dtype=np.int64)
    new_low, new_high = ZERO, ZERO
    gain = 0
    for r in range(SIDE):
        for i in range(SIDE):
            shift = np.uint64(16 * r + 4 * i)
            line[i] = np.int64((low >> shift) & _NIBBLE | ((high >> shift) & ONE) << _S4)
        gain += slide_line(line)
        for i in range(SIDE):
            shift = np.uint64(16 * r + 4 * i)
            new_low |= (np.uint64(line[i]) & _NIBBLE) << shift
            new_high |= (np.uint64(line[i]) >> _S4) << shift
    return new_low, new_high, gain


@njit
def slide(low: np.uint64, high: np.uint64, direction: int) -> tuple[np.uint64, np.uint64, int]:
    """The afterstate of a move: (low word, high word, gain). An illegal move returns the same board and gain 0."""
    low = _to_left(low, direction)
    full = low & (low >> _S1) & (low >> _S2) & (low >> _S3) & _LOWBITS  # a tile of 2^15 can make 2^16
    if high == ZERO and full == ZERO:
        low, gain = _slide_rows_table(low)
    else:
        low, high, gain = _slide_rows_wide(low, _to_left(high, direction))
        high = _from_left(high, direction)
    return _from_left(low, direction), high, gain


@njit
def _occupied(low: np.uint64, high: np.uint64) -> np.uint64:
    """The lowest bit of each nibble that holds a tile."""
    x = low | high
    x |= x >> _S2
    return (x | x >> _S1) & _LOWBITS


@njit
def legal_bits(low: np.uint64, high: np.uint64) -> int:
    """Bit d is set if direction d changes the board: some tile slides, or some pair merges."""
    tiles = _occupied(low, high)
    across = ~_occupied(low ^ (low >> _S4), high ^ (high >> _S4)) & tiles & _HAS_RIGHT
    down = ~_occupied(low ^ (low >> _S16), high ^ (high >> _S16)) & tiles & _HAS_BELOW
    right_tiles, lower_tiles = tiles >> _S4, tiles >> _S16
    bits = 0
    if down | (~tiles & lower_tiles & _HAS_BELOW):
        bits |= 1 << _UP
    if across | (tiles & ~right_tiles & _HAS_RIGHT):
        bits |= 1 << _RIGHT
    if down | (tiles & ~lower_tiles & _HAS_BELOW):
        bits |= 1 << _DOWN
    if across | (~tiles & right_tiles & _HAS_RIGHT):
        bits |= 1 << _LEFT
    return bits


@njit
def spawn(row: NDArray[np.uint64], config: NDArray[np.int64]) -> None:
    """Put a 2 (or a 4, with probability ``config[PROB_FOUR]`` / 2^32) on a uniformly random empty square."""
    empty = ~_occupied(row[LOW], row[HIGH]) & _LOWBITS
    pairs = (empty & _M1) + ((empty >> _S4) & _M1)
    count = (pairs * np.uint64(0x0101010101010101)) >> np.uint64(56)
    row[RNG] += rng.GAMMA
    word = rng.mix(row[RNG])
    for _ in range(rng.below(word, count)):
        empty &= empty - ONE
    square = empty & (~empty + ONE)
    if np.int64(rng.low32(word)) < config[PROB_FOUR]:
        square <<= _S1
        row[TOP] = max(row[TOP], _S2)
    row[LOW] |= square
    row[TOP] = max(row[TOP], ONE)


@njit
def _largest(low: np.uint64, high: np.uint64) -> np.uint64:
    top = ZERO
    for i in range(SQUARES):
        shift = np.uint64(4 * i)
        top = max(top, (low >> shift) & _NIBBLE | ((high >> shift) & ONE) << _S4)
    return top


@njit
def step_row(row: NDArray[np.uint64], config: NDArray[np.int64], action: int) -> float:
    """One move with its spawn; returns the points gained. An illegal move changes the step count alone."""
    low, high, gain = slide(row[LOW], row[HIGH], action)
    row[STEPS] += ONE
    if low == row[LOW] and high == row[HIGH]:
        row[STATUS] &= ~LEGAL
        return 0.0
    row[STATUS] |= LEGAL
    row[LOW], row[HIGH] = low, high
    if gain >= 2 << np.int64(row[TOP]):  # only then can the largest tile be a new one
        row[TOP] = _largest(low, high)
    row[SCORE] += np.uint64(gain)
    spawn(row, config)
    return np.float64(gain)


@njit
def deal_row(row: NDArray[np.uint64], config: NDArray[np.int64]) -> None:
    """A new game: two tiles on two different random squares. The generator goes on."""
    row[STEPS] = row[LOW] = row[HIGH] = row[SCORE] = row[TOP] = ZERO
    row[STATUS] = LEGAL
    spawn(row, config)
    spawn(row, config)


@njit
def observe_row(
    row: NDArray[np.uint64], config: NDArray[np.int64], obs: NDArray[np.uint8], mask: NDArray[np.int8]
) -> None:
    """Write observation (16 exponents) and mask, and note in the row whether the game is over."""
    low, high = row[LOW], row[HIGH]
    for i in range(SQUARES):
        shift = np.uint64(4 * i)
        obs[i] = (low >> shift) & _NIBBLE | ((high >> shift) & ONE) << _S4
    bits = legal_bits(low, high)
    if config[STOP_AT_WIN] and row[TOP] >= WIN_EXPONENT:
        bits = 0
    for d in range(ACTIONS):
        mask[d] = bits >> d & 1
    row[STATUS] = row[STATUS] & ~OVER if bits else row[STATUS] | OVER


@njit
def report_row(row: NDArray[np.uint64], info: NDArray[np.int64], i: int) -> None:
    """Write the numbers of the info dict into column ``i`` of ``info``."""
    top = row[TOP]
    info[INFO_LEGAL, i] = row[STATUS] & LEGAL != ZERO
    info[INFO_SCORE, i] = row[SCORE]
    info[INFO_MAX_TILE, i] = 1 << np.int64(top) if top else 0
    info[INFO_SUCCESS, i] = top >= WIN_EXPONENT


@njit
def show_row(
    rows: NDArray[np.uint64],
    config: NDArray[np.int64],
    i: int,
    obs: NDArray[np.uint8],
    mask: NDArray[np.int8],
    info: NDArray[np.int64],
) -> None:
    """Everything the player is told about row ``i``."""
    observe_row(rows[i], config[i], obs[i], mask[i])
    report_row(rows[i], info, i)


@njit
def _count_tiles(low: np.uint64, high: np.uint64, sign: int, counts: NDArray[np.int64]) -> None:
    """Add ``sign`` to the count of each square's exponent."""
    for i in range(SQUARES):
        shift = np.uint64(4 * i)
        counts[(low >> shift) & _NIBBLE | ((high >> shift) & ONE) << _S4] += sign


@njit
def merge_rows(
    rows: NDArray[np.uint64], actions: NDArray[np.int64], worth: NDArray[np.float64], total: NDArray[np.float64]
) -> None:
    """What the merges of each row's next move are worth: ``worth[e]`` for each new tile of exponent e.

    ``worth`` is float64 ``[EXPONENTS]``. Writes ``total`` (float64 ``[N]``, 0 for a move without a merge) and changes
    no row.
    """
    counts = np.empty(EXPONENTS, dtype=np.int64)
    for i in range(len(rows)):
        low, high, gain = slide(rows[i, LOW], rows[i, HIGH], actions[i])
        total[i] = 0.0
        if gain == 0:
            continue
        counts[:] = 0
        _count_tiles(rows[i, LOW], rows[i, HIGH], -1, counts)
        _count_tiles(low, high, 1, counts)
        made = 0
        for e in range(EXPONENTS - 1, 0, -1):  # new tiles of e: those that stay, and two for each new e + 1
            made = counts[e] + 2 * made
            total[i] += made * worth[e]


@njit
def step_rows(
    rows: NDArray[np.uint64],
    config: NDArray[np.int64],
    actions: NDArray[np.int64],
    limit: int,
    pending: NDArray[np.bool_],
    obs: NDArray[np.uint8],
    mask: NDArray[np.int8],
    reward: NDArray[np.float64],
    terminated: NDArray[np.bool_],
    truncated: NDArray[np.bool_],
    info: NDArray[np.int64],
) -> int:
    """One step of every row; ``pending`` rows start a new game instead. Returns how many rows ended.

    An action outside the space changes nothing at all: the answer is then ``-1 - index`` of the first one.
    """
    for i in range(len(rows)):
        if not pending[i] and not 0 <= actions[i] < ACTIONS:
            return -1 - i
    ended = 0
    for i in range(len(rows)):
        reward[i] = 0.0
        if pending[i]:
            deal_row(rows[i], config[i])
        else:
            reward[i] = step_row(rows[i], config[i], actions[i])
        show_row(rows, config, i, obs, mask, info)
        terminated[i] = not pending[i] and rows[i, STATUS] & OVER != ZERO
        truncated[i] = not pending[i] and 0 < limit <= np.int64(rows[i, STEPS])
        ended += terminated[i] or truncated[i]
    return ended


@njit
def refresh_rows(
    rows: NDArray[np.uint64],
    config: NDArray[np.int64],
    which: NDArray[np.bool_],
    deal: bool,
    obs: NDArray[np.uint8],
    mask: NDArray[np.int8],
    info: NDArray[np.int64],
) -> None:
    """Tell about each row of ``which``, after a new game if ``deal``; the outputs of the others stay as they are."""
    for i in range(len(rows)):
        if which[i]:
            if deal:
                deal_row(rows[i], config[i])
            show_row(rows, config, i, obs, mask, info)
