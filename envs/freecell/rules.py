"""All compiled rules of FreeCell: deal, moves, safe cards, end, and the loop over rows.

Kernels below the row loop work on a *table*: the 23 words of cards of one state row (see ``state``). A word is eight
bytes, one for each column, so most questions are asked of all columns at once; *flags* are such a word with 1 or 0 in
each byte. A card ``x`` is its id + 1, as in the observation; a *place* is a column 0..7 or, for a cell, 8 + the cell's
number. Kernels allocate nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..common import rng, threads
from ..common.cards import CARDS
from ..common.jit import Int, njit
from ..common.rows import (
    LEGAL,
    ONE,
    PLAY,
    RNG,
    SHOW,
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
from .actions import ACTIONS, CELL, DESTINATIONS, HOME
from .state import CELLS, COLUMNS, DEAL, DEPTH, LENGTHS, MOVES, RUNS, SUIT_COUNT, TABLE, TABLE_WORDS, TOPS

# Columns of a game's configuration row, and rows of the numbers reported with each step.
FIXED_DEAL, DEAL_LOW, DEAL_HIGH, AUTOPLAY, START_RANK, CONFIG = 0, 1, 2, 3, 4, 5
NUMBER_DEAL, NUMBER_HOME, NUMBER_MOVES = 0, 1, 2

_NOWHERE = -1
_IN_CELL = np.uint64(CARDS + 1)


_2, _3, _6, _7, _32, _56 = words(2, 3, 6, 7, 32, 56)
_BYTE, _ONES, _HIGHS = words(0xFF, 0x0101010101010101, 0x8080808080808080)
_CELLS = np.uint64(0xFFFFFFFF)  # the cells' bytes of a table's first word; the foundations follow
_RANKS_UP, _RANK_BITS, _ACES = words(0x03030303, 0x3F3F3F3F, 0x04030201)
_TOO_DEEP = np.uint64(127 - DEPTH)  # added to a length above DEPTH, it sets the highest bit of the byte


@njit
def get(word: np.uint64, i: Int) -> np.uint64:
    """Byte i of a word."""
    return (word >> np.uint64(8 * i)) & _BYTE


@njit
def put(word: np.uint64, i: Int, x: np.uint64) -> np.uint64:
    """The word with x as its byte i."""
    shift = np.uint64(8 * i)
    return word & ~(_BYTE << shift) | x << shift


@njit
def _equal(word: np.uint64, x: np.uint64) -> np.uint64:
    """Flags of the bytes that are x; all bytes are below 128."""
    return ((_HIGHS - (word ^ (x * _ONES))) & _HIGHS) >> _7


@njit
def _count(flags: np.uint64) -> int:
    """Number of flags that are set."""
    return int((flags * _ONES) >> _56)


@njit
def _index(flags: np.uint64) -> int:
    """The first byte whose flag is set."""
    return _count((flags - ONE) & ~flags & _ONES)


@njit
def _is_red(x: np.uint64) -> np.uint64:
    suit = x - ONE
    return (suit ^ suit >> ONE) & ONE


@njit
def bases(x: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The two cards that x may lie on: one rank higher and of the other colour (above 52 for a king)."""
    next_rank, red = ((x - ONE) | _3) + ONE, _is_red(x)
    return next_rank + _2 - red, next_rank + _3 + red


@njit
def stacks(x: np.uint64, on: np.uint64) -> bool:
    """May card x lie on card ``on``?"""
    first, second = bases(x)
    return bool((on == first) | (on == second))


@njit
def _takers(tops: np.uint64, x: np.uint64) -> np.uint64:
    """Flags of the columns whose top card x may lie on."""
    first, second = bases(x)
    return _equal(tops, first) | _equal(tops, second)


@njit
def homes_of(table: NDArray[np.uint64]) -> np.uint64:
    """Cards on each foundation, 0..13, a byte for each suit."""
    tops = table[0] >> _32
    return np.uint64(((tops + _RANKS_UP) >> _2) & _RANK_BITS)


@njit
def _next_home(homes: np.uint64) -> np.uint64:
    """The next card of each foundation, a byte for each suit (above 52 where all are home)."""
    return (homes << _2) + _ACES


@njit
def cards_home(table: NDArray[np.uint64]) -> int:
    """Cards on all four foundations."""
    return _count(homes_of(table))


@njit
def _card(table: NDArray[np.uint64], column: Int, row: Int) -> np.uint64:
    """The card in a row (1 = dealt first) of a column."""
    return get(table[np.uint64(row)], column)


@njit
def _from_end(table: NDArray[np.uint64], column: Int, k: Int) -> np.uint64:
    """The k-th card of a column counted from its open end (k = 1)."""
    return _card(table, column, np.int64(get(table[LENGTHS], column)) - k + 1)


@njit
def _note_top(table: NDArray[np.uint64], column: Int, run: Int) -> None:
    """Note top card and run of a column whose length has changed; ``run`` 0: not known, count it."""
    length = np.int64(get(table[LENGTHS], column))
    top = _card(table, column, length) if length else ZERO
    if run == 0 and length:
        run, x = 1, top
        while run < length:
            under = _card(table, column, length - run)
            if not stacks(x, under):
                break
            run, x = run + 1, under
    table[TOPS] = put(table[TOPS], column, top)
    table[RUNS] = put(table[RUNS], column, np.uint64(run))


@njit
def complete(table: NDArray[np.uint64]) -> None:
    """Derive lengths, top cards and runs from the cards."""
    table[LENGTHS] = ZERO
    for row in range(1, DEPTH + 1):
        table[LENGTHS] += _ONES ^ _equal(table[row], ZERO)
    for column in range(COLUMNS):
        _note_top(table, column, 0)


@njit
def _room(table: NDArray[np.uint64]) -> tuple[int, int, np.uint64]:
    """(empty cells, longest run that moves onto a card, flags of the empty columns).

    That is (cells + 1) * 2^columns; half of it onto an empty column, which is not counted then.
    """
    cells = _count(_equal(table[0] | ~_CELLS & ~_HIGHS, ZERO))
    empty = _equal(table[LENGTHS], ZERO)
    return cells, (cells + 1) << _count(empty), empty


@njit
def _columns_for(table: NDArray[np.uint64], x: np.uint64, k: Int, limit: Int, empty: np.uint64) -> np.uint64:
    """Flags of the columns that card x may move to with the k - 1 cards of its run on top."""
    flags = ZERO
    if k <= limit:
        flags = _takers(table[TOPS], x)
    if 2 * k <= limit:
        flags |= empty
    # Too deep for the observation: cannot happen in a game that began with a deal.
    too_deep = ((table[LENGTHS] + (np.uint64(k) + _TOO_DEEP) * _ONES) & _HIGHS) >> _7
    return np.uint64(flags & ~too_deep)


@njit
def _mark(mask: NDArray[np.int8], x: np.uint64, columns: np.uint64, cell: bool, home: bool) -> int:
    """Set the ten mask entries of card x; returns how many are legal."""
    at = np.int64(x - ONE) * DESTINATIONS
    for to in range(COLUMNS):
        mask[np.uint64(at + to)] = np.int8(get(columns, to))
    mask[np.uint64(at + CELL)] = cell
    mask[np.uint64(at + HOME)] = home
    return _count(columns) + cell + home


@njit
def legal_mask(table: NDArray[np.uint64], mask: NDArray[np.int8]) -> int:
    """Write the 520 mask entries; returns the number of legal moves (0 = stuck or won)."""
    for j in range(ACTIONS):
        mask[j] = 0
    cells, limit, empty = _room(table)
    next_home = _next_home(homes_of(table))
    count = 0
    for i in range(CELLS):
        x = get(table[0], i)
        if x:
            home = get(next_home, (x - ONE) & _3) == x
            count += _mark(mask, x, _columns_for(table, x, 1, limit, empty), False, home)
    tops, runs = table[TOPS], table[RUNS]
    for column in range(COLUMNS):
        run, x = int(np.int64(get(runs, column))), get(tops, column)
        if run == 0:
            continue
        home = get(next_home, (x - ONE) & _3) == x
        count += _mark(mask, x, _columns_for(table, x, 1, limit, empty), cells > 0, home)
        for k in range(2, min(run, limit) + 1):
            x = _from_end(table, column, k)
            count += _mark(mask, x, _columns_for(table, x, k, limit, empty), False, False)
    return count


@njit
def find(table: NDArray[np.uint64], x: np.uint64) -> tuple[Int, Int]:
    """(place, k) of a movable card: k cards move with it, itself included. (-1, 0) if it cannot move at all."""
    here = _equal(table[TOPS], x)
    if here:
        return _index(here), 1
    here = _equal(table[0] & _CELLS, x)
    if here:
        return COLUMNS + _index(here), 1
    for column in range(COLUMNS):
        # Ranks within a run rise by one, so there is one place in it where x can be.
        k = np.int64((x + _3) >> _2) - np.int64((get(table[TOPS], column) + _3) >> _2) + 1
        if 1 < k <= np.int64(get(table[RUNS], column)) and _from_end(table, column, k) == x:
            return column, k
    return _NOWHERE, 0


@njit
def _lift(table: NDArray[np.uint64], place: Int, k: Int) -> None:
    """Remove the last k cards of a column, or the card of a cell."""
    if place >= COLUMNS:
        table[0] = put(table[0], place - COLUMNS, ZERO)
        return
    length = np.int64(get(table[LENGTHS], place))
    for row in range(length - k + 1, length + 1):
        table[row] = put(table[row], place, ZERO)
    table[LENGTHS] -= np.uint64(k) << np.uint64(8 * place)
    _note_top(table, place, np.int64(get(table[RUNS], place)) - k)


@njit
def _send_home(table: NDArray[np.uint64], x: np.uint64, place: Int) -> None:
    """Move an open card to its foundation."""
    _lift(table, place, 1)
    table[0] = put(table[0], np.int64((x - ONE) & _3) + CELLS, x)


@njit
def _lay(table: NDArray[np.uint64], place: Int, k: Int, to: Int) -> None:
    """Copy the last k cards of a place, which are a run, onto a column that takes them."""
    start = np.int64(get(table[LENGTHS], to))
    for j in range(k):
        x = get(table[0], place - COLUMNS) if place >= COLUMNS else _from_end(table, place, k - j)
        row = start + 1 + j
        table[row] = put(table[row], to, x)
    table[LENGTHS] += np.uint64(k) << np.uint64(8 * to)
    _note_top(table, to, np.int64(get(table[RUNS], to)) + k)


@njit
def move(table: NDArray[np.uint64], action: Int) -> bool:
    """Make a player's move without its safe cards; False, and nothing changed, if it is illegal."""
    x, to = np.uint64(action // DESTINATIONS + 1), action % DESTINATIONS
    place, k = find(table, x)
    if place == _NOWHERE:
        return False
    cells, limit, empty = _room(table)
    if to < COLUMNS:
        if not get(_columns_for(table, x, k, limit, empty), to):
            return False
        _lay(table, place, k, to)
        _lift(table, place, k)
        return True
    if k > 1:
        return False
    if to == HOME:
        if get(_next_home(homes_of(table)), (x - ONE) & _3) != x:
            return False
        _send_home(table, x, place)
        return True
    if cells == 0 or place >= COLUMNS:
        return False
    _lift(table, place, 1)
    table[0] = put(table[0], _index(_equal(table[0] & _CELLS, ZERO)), x)
    return True


@njit
def _is_safe(homes: np.uint64, suit: Int) -> bool:
    """May the next card of this suit go home by itself?

    Aces and twos always; others when both foundations of the other colour reach one rank below it.
    """
    rank = get(homes, suit)  # of the next card, ace = 0
    other = 0 if _is_red(np.uint64(suit + 1)) else 1  # clubs and spades are 0 and 3, diamonds and hearts 1 and 2
    return bool((rank <= ONE) | ((get(homes, other) >= rank) & (get(homes, 3 - other) >= rank)))


@njit
def autoplay(table: NDArray[np.uint64], sent: NDArray[np.int8]) -> int:
    """Send safe cards home until none is left; returns how many, their ids in order in ``sent`` (int8 ``[>= 52]``)."""
    count = 0
    before = -1
    while count != before:
        before = count
        for suit in range(SUIT_COUNT):
            homes = homes_of(table)
            x = get(_next_home(homes), suit)
            on_top, in_cell = _equal(table[TOPS], x), _equal(table[0] & _CELLS, x)
            if on_top | in_cell and _is_safe(homes, suit):
                _send_home(table, x, _index(on_top) if on_top else COLUMNS + _index(in_cell))
                sent[count] = np.int8(x - ONE)
                count += 1
    return count


@njit
def deal_cards(table: NDArray[np.uint64], number: Int, start_rank: Int, deck: NDArray[np.int8]) -> None:
    """The Microsoft deal of that number; ranks up to ``start_rank`` (ace = 1) start at home and are not dealt.

    With ``start_rank`` > 0 the same generator shuffles the cards that are left. ``deck``: scratch, int8 ``[>= 52]``.
    """
    for row in range(TABLE_WORDS):
        table[row] = ZERO
    if start_rank:
        for suit in range(SUIT_COUNT):
            table[0] = put(table[0], CELLS + suit, np.uint64(4 * (start_rank - 1) + suit + 1))
    first = 4 * start_rank
    left = CARDS - first
    for i in range(left):
        deck[i] = first + i + 1
    seed = number
    for i in range(left):
        seed = (seed * 214013 + 2531011) & 0x7FFFFFFF
        j = (seed >> 16) % (left - i)
        row = i // COLUMNS + 1
        table[row] |= np.uint64(deck[j]) << np.uint64(8 * (i % COLUMNS))
        deck[j] = deck[left - i - 1]
    complete(table)


@njit
def _pick_deal(config: NDArray[np.int64], i: Int, word: np.uint64) -> int:
    """The fixed deal of game i, or one of its deal range by 64 random bits."""
    number = config[i, FIXED_DEAL]
    if number == 0:
        choices = np.uint64(config[i, DEAL_HIGH] - config[i, DEAL_LOW] + 1)
        number = config[i, DEAL_LOW] + np.int64(rng.below(word, choices))
    return int(number)


# Positions already seen. Every card lies on a card, on the bare ground of a column, or in a cell; that alone is the
# position up to the order of columns and of cells, and it also says what is home. Its key is the sum of one random word
# per card, so a move changes one term of it (a run keeps its inner order). Cards never come back from home: a move that
# sends one there leads to a new position.


@njit
def _link(x: np.uint64, under: np.uint64) -> np.uint64:
    """The key's term for card x lying on card ``under``, on the ground (0) or in a cell (``_IN_CELL``)."""
    return rng.mix((x << _6 | under) * rng.GAMMA)


@njit
def position_key(table: NDArray[np.uint64]) -> np.uint64:
    """64 bits that are equal for positions that differ only in the order of columns and of cells (0: all home)."""
    key = ZERO
    for i in range(CELLS):
        x = get(table[0], i)
        if x:
            key += _link(x, _IN_CELL)
    for column in range(COLUMNS):
        under = ZERO
        for row in range(1, np.int64(get(table[LENGTHS], column)) + 1):
            x = _card(table, column, row)
            key += _link(x, under)
            under = x
    return key


@njit
def _lies_on(table: NDArray[np.uint64], x: np.uint64) -> np.uint64:
    """What a movable card lies on, as ``_link`` names it."""
    place, k = find(table, x)
    if place >= COLUMNS:
        return _IN_CELL
    return _from_end(table, place, k + 1) if k < np.int64(get(table[LENGTHS], place)) else ZERO


@njit
def _would_lie_on(table: NDArray[np.uint64], to: Int) -> np.uint64:
    """What a card moved to a column or a cell lies on, as ``_link`` names it."""
    return _IN_CELL if to == CELL else get(table[TOPS], to)


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
    table: NDArray[np.uint64],
    action: Int,
    autoplays: Int,
    key: np.uint64,
    slots: NDArray[np.uint64],
    spare: NDArray[np.uint64],
    sent: NDArray[np.int8],
) -> bool:
    """Does a legal move lead from the position of that key to one in ``slots``?"""
    x, to = np.uint64(action // DESTINATIONS + 1), action % DESTINATIONS
    if to == HOME:
        return False
    after = key - _link(x, _lies_on(table, x)) + _link(x, _would_lie_on(table, to))
    if slots[_slot(slots, after)] == ZERO:
        return False
    for j in range(TABLE_WORDS):
        spare[j] = table[j]
    move(spare, action)
    # Only a dealt or set position can have safe cards left: they leave it with the first move.
    return not autoplays or autoplay(spare, sent) == 0


@njit
def watch_rows(
    rows: NDArray[np.uint64],
    config: NDArray[np.int64],
    slots: NDArray[np.uint64],
    counts: NDArray[np.int64],
    back: NDArray[np.int8],
    spare: NDArray[np.uint64],
    sent: NDArray[np.int8],
) -> int:
    """Note every row's position among those it has seen, and mark its legal moves that lead back to one.

    ``slots`` (uint64 ``[N, 2^n]``) holds the seen positions, ``counts`` (int64 ``[N]``) how many; a row without a step
    begins anew. Writes ``back`` (int8 ``[N, 520]``). To look twice changes nothing. Returns the largest count, which
    the caller keeps well below 2^n. ``spare`` (uint64 ``[TABLE_WORDS]``) and ``sent`` (int8 ``[52]``) are scratch.
    """
    most = 0
    for i in range(len(rows)):
        if rows[i, STEPS] == ZERO:
            counts[i] = 0
            for j in range(slots.shape[1]):
                slots[i, j] = ZERO
        table = rows[i, TABLE:]
        key = position_key(table)
        j = _slot(slots[i], key)
        counts[i] += slots[i, j] == ZERO
        slots[i, j] = key
        most = max(most, counts[i])
        legal_mask(table, back[i])
        for action in range(ACTIONS):
            if back[i, action]:
                back[i, action] = _leads_back(table, action, config[i, AUTOPLAY], key, slots[i], spare, sent)
    return most


@njit
def copy_slots(slots: NDArray[np.uint64], larger: NDArray[np.uint64]) -> None:
    """Move the seen positions of every row into larger, empty sets."""
    for i in range(len(slots)):
        for j in range(slots.shape[1]):
            key = slots[i, j]
            if key != ZERO:
                larger[i, _slot(larger[i], key)] = key


@njit
def move_rows(rows: NDArray[np.uint64], config: NDArray[np.int64], actions: NDArray[np.int64]) -> int:
    """Make the moves alone, for measuring; no safe card follows. Returns how many were legal."""
    count = 0
    for i in range(np.uint64(len(rows))):
        count += move(rows[i, TABLE:], actions[i])
    return count


@njit
def mask_rows(rows: NDArray[np.uint64], config: NDArray[np.int64], mask: NDArray[np.int8]) -> None:
    """Write the masks (int8 ``[N, 520]``) of all rows."""
    for i in range(np.uint64(len(rows))):
        legal_mask(rows[i, TABLE:], mask[i])


@njit
def autoplay_rows(rows: NDArray[np.uint64], config: NDArray[np.int64], mask: NDArray[np.int8]) -> int:
    """Send the safe cards of all rows home, for measuring; ``mask`` is scratch. Returns how many went."""
    count = 0
    for i in range(np.uint64(len(rows))):
        count += autoplay(rows[i, TABLE:], mask[i])
    return count


@njit
def observe_rows(rows: NDArray[np.uint64], config: NDArray[np.int64], obs: NDArray[np.uint8]) -> None:
    """Write the observations (uint8 ``[N, 160]``) of all rows."""
    squares = obs.view(np.uint64)
    for i in range(np.uint64(len(rows))):
        for j in range(DEPTH + 1):
            squares[i, j] = rows[i, np.uint64(TABLE + j)]


@njit
def advance_rows(
    rows: NDArray[np.uint64],
    config: NDArray[np.int64],
    todo: NDArray[np.uint8],
    actions: NDArray[np.int64],
    limit: Int,
    first: int,
    last: int,
    obs: NDArray[np.uint8],
    mask: NDArray[np.int8],
    reward: NDArray[np.float64],
    flags: NDArray[np.bool_],
    numbers: NDArray[np.int64],
) -> int:
    """Do with the rows from ``first`` to before ``last`` what ``todo`` says; see ``Puzzle``."""
    squares = obs.view(np.uint64)
    ended = 0
    for i in range(np.uint64(first), np.uint64(last)):  # unsigned: no index is checked for being negative
        if todo[i] == SKIP:
            continue
        table, scratch = rows[i, TABLE:], mask[i]  # the mask is written last
        status, sent = rows[i, STATUS] & LEGAL, 0
        played = todo[i] == PLAY
        if played:
            rows[i, STEPS] += ONE
            status = LEGAL if move(table, actions[i]) else ZERO
            if status:
                rows[i, MOVES] += ONE
                sent = int(actions[i] % DESTINATIONS == HOME)
                if config[i, AUTOPLAY]:
                    sent += autoplay(table, scratch)
        elif todo[i] == START:
            rows[i, RNG] += rng.GAMMA
            number = _pick_deal(config, i, rng.mix(rows[i, RNG]))
            deal_cards(table, number, config[i, START_RANK], scratch)
            rows[i, DEAL], rows[i, STEPS], rows[i, MOVES], status = np.uint64(number), ZERO, ZERO, LEGAL
        elif todo[i] == SHOW:
            complete(table)  # a board that was set
        over = legal_mask(table, mask[i]) == 0
        rows[i, STATUS] = status | np.uint64(over)

        for j in range(DEPTH + 1):
            squares[i, j] = table[j]
        reward[i] = sent
        late = (limit > 0) & (limit <= np.int64(rows[i, STEPS]))
        home = cards_home(table)
        flags[TERMINATED, i], flags[TRUNCATED, i] = played & over, played & late
        ended += played & (over | late)
        flags[WAS_LEGAL, i], flags[SUCCESS, i] = status != ZERO, home == CARDS
        numbers[NUMBER_DEAL, i], numbers[NUMBER_MOVES, i] = rows[i, DEAL], rows[i, MOVES]
        numbers[NUMBER_HOME, i] = home
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
