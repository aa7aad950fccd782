"""All compiled rules of FreeCell: deal, moves, safe cards, end, and the loops over rows.

Kernels below the row loops work on a *table*: the 168 bytes of cards of one state row (see ``state``). A card ``x``
is its id + 1, as in the observation; a *place* is a column 0..7 or, for a cell, 8 + the cell's number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..common import rng
from ..common.cards import CARDS
from ..common.jit import njit
from ..common.rows import LEGAL, ONE, OVER, RNG, STATUS, STEPS, ZERO
from .actions import ACTIONS, CELL, DESTINATIONS, HOME
from .state import CELLS, COLUMNS, DEAL, DEPTH, LENGTH, MOVES, SQUARES, SUIT_COUNT, TABLE, TABLE_BYTES

# Columns of a game's configuration row, and of the numbers reported with each step.
FIXED_DEAL, DEAL_LOW, DEAL_HIGH, AUTOPLAY, START_RANK, CONFIG = 0, 1, 2, 3, 4, 5
INFO_LEGAL, INFO_DEAL, INFO_HOME, INFO_MOVES, INFO_SUCCESS, INFO = 0, 1, 2, 3, 4, 5

SUIT_SIZE = CARDS // SUIT_COUNT
_NOWHERE = -1
_IN_CELL = CARDS + 1


@njit
def _is_red(x: int) -> int:
    suit = (x - 1) & 3
    return (suit ^ suit >> 1) & 1


@njit
def _stacks(x: int, on: int) -> bool:
    """May card x lie on card ``on``: one rank lower and of the other colour."""
    return (x - 1) >> 2 == ((on - 1) >> 2) - 1 and _is_red(x) != _is_red(on)


@njit
def _home(table: NDArray[np.uint8], suit: int) -> int:
    """Cards on a suit's foundation, 0..13."""
    return (int(table[CELLS + suit]) + 3) >> 2


@njit
def cards_home(table: NDArray[np.uint8]) -> int:
    """Cards on all four foundations."""
    return _home(table, 0) + _home(table, 1) + _home(table, 2) + _home(table, 3)


@njit
def _from_end(table: NDArray[np.uint8], column: int, k: int) -> int:
    """The k-th card of a column counted from its open end (k = 1)."""
    return int(table[(int(table[LENGTH + column]) - k + 1) * COLUMNS + column])


@njit
def _count_empty(table: NDArray[np.uint8]) -> tuple[int, int]:
    """(empty cells, empty columns)."""
    cells = columns = 0
    for i in range(CELLS):
        cells += table[i] == 0
    for c in range(COLUMNS):
        columns += table[LENGTH + c] == 0
    return cells, columns


@njit
def _can_go(table: NDArray[np.uint8], x: int, k: int, place: int, to: int, cells: int, columns: int) -> bool:
    """Is the move of card x, with the k - 1 cards of its run on top, from ``place`` to destination ``to`` legal?

    ``cells`` and ``columns`` count the empty ones. The run limit is (cells + 1) * 2^columns, where an empty
    destination column is not counted.
    """
    if to == HOME:
        return k == 1 and _home(table, (x - 1) & 3) == (x - 1) >> 2
    if to == CELL:
        return k == 1 and cells > 0 and place < COLUMNS
    length = int(table[LENGTH + to])
    if to == place or length + k > DEPTH:  # the latter cannot happen in a game that began with a deal
        return False
    if length == 0:
        return k <= (cells + 1) << (columns - 1)
    return k <= (cells + 1) << columns and _stacks(x, _from_end(table, to, 1))


@njit
def _mark_moves(
    table: NDArray[np.uint8], x: int, k: int, place: int, cells: int, columns: int, mask: NDArray[np.int8]
) -> int:
    """Set the mask of every legal move of card x; returns how many there are."""
    count = 0
    for to in range(DESTINATIONS):
        if _can_go(table, x, k, place, to, cells, columns):
            mask[(x - 1) * DESTINATIONS + to] = 1
            count += 1
    return count


@njit
def legal_mask(table: NDArray[np.uint8], mask: NDArray[np.int8]) -> int:
    """Write the 520 mask entries; returns the number of legal moves (0 = stuck or won)."""
    mask[:] = 0
    cells, columns = _count_empty(table)
    count = 0
    for i in range(CELLS):
        if table[i]:
            count += _mark_moves(table, int(table[i]), 1, COLUMNS + i, cells, columns, mask)
    for c in range(COLUMNS):
        for k in range(1, int(table[LENGTH + c]) + 1):
            x = _from_end(table, c, k)
            if k > 1 and not _stacks(_from_end(table, c, k - 1), x):
                break
            count += _mark_moves(table, x, k, c, cells, columns, mask)
    return count


@njit
def _find(table: NDArray[np.uint8], x: int) -> tuple[int, int]:
    """(place, k) of a movable card: k cards move with it, itself included. (-1, 0) if it cannot move at all."""
    for i in range(CELLS):
        if table[i] == x:
            return COLUMNS + i, 1
    for c in range(COLUMNS):
        for k in range(1, int(table[LENGTH + c]) + 1):
            y = _from_end(table, c, k)
            if k > 1 and not _stacks(_from_end(table, c, k - 1), y):
                break
            if y == x:
                return c, k
    return _NOWHERE, 0


@njit
def _lift(table: NDArray[np.uint8], place: int) -> None:
    """Remove the card at the open end of a place."""
    if place >= COLUMNS:
        table[place - COLUMNS] = 0
    else:
        table[int(table[LENGTH + place]) * COLUMNS + place] = 0
        table[LENGTH + place] -= 1


@njit
def _lay(table: NDArray[np.uint8], x: int, to: int) -> None:
    """Put a card at the end of a column, into the first empty cell, or on its foundation."""
    if to == HOME:
        table[CELLS + ((x - 1) & 3)] = x
    elif to == CELL:
        i = 0
        while table[i]:
            i += 1
        table[i] = x
    else:
        table[LENGTH + to] += 1
        table[int(table[LENGTH + to]) * COLUMNS + to] = x


@njit
def move(table: NDArray[np.uint8], action: int) -> bool:
    """Make a player's move without its safe cards; False, and nothing changed, if it is illegal."""
    x, to = action // DESTINATIONS + 1, action % DESTINATIONS
    place, k = _find(table, x)
    if place == _NOWHERE:
        return False
    cells, columns = _count_empty(table)
    if not _can_go(table, x, k, place, to, cells, columns):
        return False
    if k == 1:
        _lift(table, place)
        _lay(table, x, to)
        return True
    first = int(table[LENGTH + place]) - k + 1
    for j in range(k):  # a run keeps its order
        _lay(table, int(table[(first + j) * COLUMNS + place]), to)
    for _ in range(k):
        _lift(table, place)
    return True


@njit
def _is_safe(table: NDArray[np.uint8], suit: int, rank: int) -> bool:
    """May the card of this suit and rank (ace = 0) go home by itself, once it is next?

    Aces and twos always; others when both foundations of the other colour reach one rank below it.
    """
    if rank <= 1:
        return True
    other = 0 if _is_red(suit + 1) else 1  # clubs and spades are 0 and 3, diamonds and hearts 1 and 2
    return min(_home(table, other), _home(table, 3 - other)) >= rank


@njit
def _open_place(table: NDArray[np.uint8], x: int) -> int:
    """The place whose open card is x, or -1."""
    for i in range(CELLS):
        if table[i] == x:
            return COLUMNS + i
    for c in range(COLUMNS):
        if table[LENGTH + c] and _from_end(table, c, 1) == x:
            return c
    return _NOWHERE


@njit
def autoplay(table: NDArray[np.uint8], sent: NDArray[np.uint8]) -> int:
    """Send safe cards home until none is left; returns how many, their ids in order in ``sent`` (uint8 ``[52]``)."""
    count = 0
    before = -1
    while count != before:
        before = count
        for suit in range(SUIT_COUNT):
            rank = _home(table, suit)
            if rank == SUIT_SIZE or not _is_safe(table, suit, rank):
                continue
            x = 4 * rank + suit + 1
            place = _open_place(table, x)
            if place != _NOWHERE:
                _lift(table, place)
                _lay(table, x, HOME)
                sent[count] = x - 1
                count += 1
    return count


@njit
def step_row(row: NDArray[np.uint64], config: NDArray[np.int64], action: int, sent: NDArray[np.uint8]) -> float:
    """One move with its safe cards; returns how many cards went home. An illegal move only counts as a step."""
    table = row[TABLE:].view(np.uint8)
    row[STEPS] += ONE
    if not move(table, action):
        row[STATUS] &= ~LEGAL
        return 0.0
    row[STATUS] |= LEGAL
    row[MOVES] += ONE
    count = autoplay(table, sent) if config[AUTOPLAY] else 0
    return float(count + (action % DESTINATIONS == HOME))


@njit
def deal_cards(table: NDArray[np.uint8], number: int, start_rank: int) -> None:
    """The Microsoft deal of that number; ranks up to ``start_rank`` (ace = 1) start at home and are not dealt.

    With ``start_rank`` > 0 the same generator shuffles the cards that are left.
    """
    table[:] = 0
    cards = np.empty(CARDS, dtype=np.uint8)
    for suit in range(SUIT_COUNT):
        if start_rank:
            table[CELLS + suit] = 4 * (start_rank - 1) + suit + 1
    first = 4 * start_rank
    left = CARDS - first
    for i in range(left):
        cards[i] = first + i + 1
    seed = number
    for i in range(left):
        seed = (seed * 214013 + 2531011) % (1 << 31)
        j = (seed >> 16) % (left - i)
        _lay(table, int(cards[j]), i % COLUMNS)
        cards[j] = cards[left - i - 1]


@njit
def deal_row(row: NDArray[np.uint64], config: NDArray[np.int64]) -> None:
    """A new game: the fixed deal, or a random number of the deal range. The generator goes on."""
    row[RNG] += rng.GAMMA
    choices = np.uint64(config[DEAL_HIGH] - config[DEAL_LOW] + 1)
    number = config[FIXED_DEAL]
    if number == 0:
        number = config[DEAL_LOW] + np.int64(rng.below(rng.mix(row[RNG]), choices))
    deal_cards(row[TABLE:].view(np.uint8), number, config[START_RANK])
    row[STEPS] = row[MOVES] = ZERO
    row[STATUS] = LEGAL
    row[DEAL] = np.uint64(number)


@njit
def observe_row(
    row: NDArray[np.uint64], config: NDArray[np.int64], obs: NDArray[np.uint8], mask: NDArray[np.int8]
) -> None:
    """Write observation (160 squares) and mask, and note in the row whether the game is over."""
    table = row[TABLE:].view(np.uint8)
    obs[:] = table[:SQUARES]
    moves = legal_mask(table, mask)
    row[STATUS] = row[STATUS] & ~OVER if moves else row[STATUS] | OVER


@njit
def report_row(row: NDArray[np.uint64], info: NDArray[np.int64], i: int) -> None:
    """Write the numbers of the info dict into column ``i`` of ``info``."""
    home = cards_home(row[TABLE:].view(np.uint8))
    info[INFO_LEGAL, i] = row[STATUS] & LEGAL != ZERO
    info[INFO_DEAL, i] = row[DEAL]
    info[INFO_HOME, i] = home
    info[INFO_MOVES, i] = row[MOVES]
    info[INFO_SUCCESS, i] = home == CARDS


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


# Positions already seen. Every card lies on a card, on the bare ground of a column, or in a cell; that alone is the
# position up to the order of columns and of cells, and it also says what is home. Its key is the sum of one random word
# per card, so a move changes one term of it (a run keeps its inner order). Cards never come back from home: a move that
# sends one there leads to a new position.


@njit
def _link(x: int, under: int) -> np.uint64:
    """The key's term for card x lying on card ``under``, on the ground (0) or in a cell (``_IN_CELL``)."""
    return rng.mix(np.uint64(x << 6 | under) * rng.GAMMA)


@njit
def position_key(table: NDArray[np.uint8]) -> np.uint64:
    """64 bits that are equal for positions that differ only in the order of columns and of cells (0: all home)."""
    key = ZERO
    for i in range(CELLS):
        if table[i]:
            key += _link(int(table[i]), _IN_CELL)
    for c in range(COLUMNS):
        under = 0
        for r in range(1, int(table[LENGTH + c]) + 1):
            x = int(table[r * COLUMNS + c])
            key += _link(x, under)
            under = x
    return key


@njit
def _lies_on(table: NDArray[np.uint8], x: int) -> int:
    """What a movable card lies on, as ``_link`` names it."""
    place, k = _find(table, x)
    return _IN_CELL if place >= COLUMNS else _from_end(table, place, k + 1) if k < table[LENGTH + place] else 0


@njit
def _would_lie_on(table: NDArray[np.uint8], to: int) -> int:
    """What a card moved to a column or a cell lies on, as ``_link`` names it."""
    return _IN_CELL if to == CELL else _from_end(table, to, 1) if table[LENGTH + to] else 0


@njit
def _slot(slots: NDArray[np.uint64], key: np.uint64) -> int:
    """Where a key stands in an open-addressing set (uint64 ``[2^n]``, 0 = empty), or the empty place for it."""
    last = len(slots) - 1
    j = np.int64(key & np.uint64(last))
    while slots[j] != ZERO and slots[j] != key:
        j = (j + 1) & last
    return int(j)


@njit
def _leads_back(
    table: NDArray[np.uint8],
    action: int,
    autoplays: int,
    key: np.uint64,
    slots: NDArray[np.uint64],
    spare: NDArray[np.uint8],
) -> bool:
    """Does a legal move lead from the position of that key to one in ``slots``?"""
    x, to = action // DESTINATIONS + 1, action % DESTINATIONS
    if to == HOME:
        return False
    after = key - _link(x, _lies_on(table, x)) + _link(x, _would_lie_on(table, to))
    if slots[_slot(slots, after)] == ZERO:
        return False
    spare[:TABLE_BYTES] = table
    move(spare, action)
    # Only a dealt or set position can have safe cards left: they leave it with the first move.
    return not autoplays or autoplay(spare, spare[TABLE_BYTES:]) == 0


@njit
def watch_rows(
    rows: NDArray[np.uint64],
    config: NDArray[np.int64],
    slots: NDArray[np.uint64],
    counts: NDArray[np.int64],
    back: NDArray[np.int8],
) -> int:
    """Note every row's position among those it has seen, and mark its legal moves that lead back to one.

    ``slots`` (uint64 ``[N, 2^n]``) holds the seen positions, ``counts`` (int64 ``[N]``) how many; a row without a step
    begins anew. Writes ``back`` (int8 ``[N, 520]``). To look twice changes nothing. Returns the largest count, which
    the caller keeps well below 2^n.
    """
    spare = np.empty(TABLE_BYTES + CARDS, dtype=np.uint8)
    for i in range(len(rows)):
        if rows[i, STEPS] == ZERO:
            slots[i] = ZERO
            counts[i] = 0
        table = rows[i, TABLE:].view(np.uint8)
        key = position_key(table)
        j = _slot(slots[i], key)
        counts[i] += slots[i, j] == ZERO
        slots[i, j] = key
        legal_mask(table, back[i])
        for action in range(ACTIONS):
            if back[i, action]:
                back[i, action] = _leads_back(table, action, config[i, AUTOPLAY], key, slots[i], spare)
    return int(counts.max())


@njit
def copy_slots(slots: NDArray[np.uint64], larger: NDArray[np.uint64]) -> None:
    """Move the seen positions of every row into larger, empty sets."""
    for i in range(len(slots)):
        for key in slots[i]:
            if key != ZERO:
                larger[i, _slot(larger[i], key)] = key


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
    sent = np.empty(CARDS, dtype=np.uint8)
    for i in range(len(rows)):
        reward[i] = 0.0
        if pending[i]:
            deal_row(rows[i], config[i])
        else:
            reward[i] = step_row(rows[i], config[i], actions[i], sent)
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
