"""Compiled best-first search over FreeCell positions: what ``solver`` is made of.

A position, up to the order of columns and of cells, is what every card lies on. A card lies where the start has it, on
the ground of a column, in a cell, at home, or on one of the two cards that it may lie on: six cases, three bits a card,
three words a position. So equal positions are found exactly, not by a hash that could be wrong, and an exhausted search
is a proof.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..envs.common.cards import CARDS
from ..envs.common.jit import Int, njit
from ..envs.common.rng import GAMMA, mix
from ..envs.common.rows import ZERO, words
from ..envs.freecell import rules
from ..envs.freecell.actions import ACTIONS, CELL, DESTINATIONS, HOME
from ..envs.freecell.estimate import W_MOVE, estimate
from ..envs.freecell.state import CELLS, COLUMNS, LENGTHS, SUIT_COUNT, TABLE_WORDS, TOPS

Words = NDArray[np.uint64]

# What a card lies on: a card's number 1..52, or one of these.
GROUND, IN_CELL, AT_HOME = 0, CARDS + 1, CARDS + 2
_START, _GROUND, _CELL, _HOME, _FIRST, _SECOND = range(6)
_BITS, _PER_WORD, CODE_WORDS = 3, 20, 3
(_CODE,) = words(7)

# Numbers of a search, int64: positions found, expanded, the one that is won (-1: none), the lowest bucket in use.
FOUND, EXPANDED, WON, BUCKET, NUMBERS = 0, 1, 2, 3, 4
# How a call of ``search`` ended.
SOLVED, EXHAUSTED, FULL, PAUSED = 0, 1, 2, 3
NOBODY = -1


@njit
def read_links(table: Words, links: NDArray[np.int64]) -> None:
    """Write what each card 1..52 lies on into int64 ``[53]``."""
    for i in range(CELLS):
        links[np.int64(rules.get(table[0], i))] = IN_CELL
    for suit in range(SUIT_COUNT):
        top = np.int64(rules.get(table[0], CELLS + suit))
        for x in range(suit + 1, top + 1, SUIT_COUNT):
            links[x] = AT_HOME
    for column in range(COLUMNS):
        under = np.int64(GROUND)
        for row in range(1, np.int64(rules.get(table[LENGTHS], column)) + 1):
            card = np.int64(rules.get(table[row], column))
            links[card] = under
            under = card


@njit
def pack(links: NDArray[np.int64], codes: Words) -> None:
    """Write a position's three words."""
    for j in range(CODE_WORDS):
        codes[j] = ZERO
    for x in range(1, CARDS + 1):
        on = links[x]
        if on == GROUND:
            code = _GROUND
        elif on == IN_CELL:
            code = _CELL
        elif on == AT_HOME:
            code = _HOME
        else:
            first, second = rules.bases(np.uint64(x))
            code = _FIRST if on == np.int64(first) else _SECOND if on == np.int64(second) else _START
        at = x - 1
        codes[at // _PER_WORD] |= np.uint64(code) << np.uint64(_BITS * (at % _PER_WORD))


@njit
def _unpack(codes: Words, start: NDArray[np.int64], above: NDArray[np.int64], table: Words) -> None:
    """Lay out the position of three words: columns in the order of their lowest card, ``complete``."""
    for row in range(TABLE_WORDS):
        table[row] = ZERO
    for x in range(CARDS + 1):
        above[x] = GROUND
    cells = 0
    for x in range(1, CARDS + 1):
        at = x - 1
        code = (codes[at // _PER_WORD] >> np.uint64(_BITS * (at % _PER_WORD))) & _CODE
        if code == _CELL:
            table[0] = rules.put(table[0], cells, np.uint64(x))
            cells += 1
        elif code == _HOME:
            table[0] = rules.put(table[0], CELLS + at % SUIT_COUNT, np.uint64(x))  # the last one is the top card
        elif code == _START:
            above[start[x]] = x
        elif code != _GROUND:
            first, second = rules.bases(np.uint64(x))
            above[np.int64(first) if code == _FIRST else np.int64(second)] = x
    column = 0
    for x in range(1, CARDS + 1):
        at = x - 1
        if (codes[at // _PER_WORD] >> np.uint64(_BITS * (at % _PER_WORD))) & _CODE == _GROUND:
            row, card = 1, x
            while card != GROUND:
                table[row] = rules.put(table[row], column, np.uint64(card))
                row, card = row + 1, above[card]
            column += 1
    rules.complete(table)


@njit
def _with_code(codes: Words, x: Int, code: Int) -> None:
    """Change the case of card x."""
    at = np.int64(x) - 1
    shift = np.uint64(_BITS * (at % _PER_WORD))
    word = at // _PER_WORD
    codes[word] = codes[word] & ~(_CODE << shift) | np.uint64(code) << shift


@njit
def _slot(slots: NDArray[np.int32], codes: Words, child: Words) -> int:
    """Where a position stands in the open-addressing set of positions, or the empty place for it (-1)."""
    last = len(slots) - 1
    key = mix(child[0] * GAMMA + child[1])
    key = mix((key ^ child[2]) * GAMMA)
    j = np.int64(key & np.uint64(last))
    while slots[j] != NOBODY:
        i = slots[j]
        if codes[i, 0] == child[0] and codes[i, 1] == child[1] and codes[i, 2] == child[2]:
            break
        j = (j + 1) & last
    return int(j)


@njit
def rehash(slots: NDArray[np.int32], codes: Words, count: int) -> None:
    """Fill an empty set of positions with the first ``count``."""
    for i in range(count):
        slots[_slot(slots, codes, codes[i])] = np.int32(i)


@njit
def _code_of(x: np.uint64, onto: Int) -> int:
    """The case of a card that has moved."""
    if onto == GROUND:
        return _GROUND
    if onto == IN_CELL:
        return _CELL
    if onto == AT_HOME:
        return _HOME
    return _FIRST if np.uint64(onto) == rules.bases(x)[0] else _SECOND


@njit
def _queue(i: int, bucket: int, heads: NDArray[np.int32], following: NDArray[np.int32]) -> int:
    """Put position i first into its bucket; returns the bucket."""
    bucket = min(max(bucket, 0), len(heads) - 1)
    following[i] = heads[bucket]
    heads[bucket] = np.int32(i)
    return bucket


@njit
def search(
    start: NDArray[np.int64],
    codes: Words,
    parents: NDArray[np.int32],
    moves: NDArray[np.uint16],
    depths: NDArray[np.uint16],
    following: NDArray[np.int32],
    heads: NDArray[np.int32],
    slots: NDArray[np.int32],
    numbers: NDArray[np.int64],
    weights: NDArray[np.int64],
    single: bool,
    budget: int,
    table: Words,
    spare: Words,
    above: NDArray[np.int64],
    child: Words,
    mask: NDArray[np.int8],
    sent: NDArray[np.int8],
) -> int:
    """Expand up to ``budget`` positions, always one that looks nearest to the win; returns how it ended."""
    for _ in range(budget):
        bucket = numbers[BUCKET]
        while bucket < len(heads) and heads[bucket] == NOBODY:
            bucket += 1
        numbers[BUCKET] = bucket
        if bucket == len(heads):
            return EXHAUSTED
        if numbers[FOUND] + ACTIONS > len(codes):
            return FULL
        i = np.int64(heads[bucket])
        heads[bucket] = following[i]
        numbers[EXPANDED] += 1
        _unpack(codes[i], start, above, table)
        rules.legal_mask(table, mask)
        empty = COLUMNS
        for column in range(COLUMNS):
            if rules.get(table[LENGTHS], column) == ZERO:
                empty = column
                break
        for action in range(ACTIONS):
            if not mask[action]:
                continue
            x, to = np.uint64(action // DESTINATIONS + 1), action % DESTINATIONS
            onto = np.int64(GROUND)
            if to == HOME:
                onto = np.int64(AT_HOME)
            elif to == CELL:
                onto = np.int64(IN_CELL)
            else:
                onto = np.int64(rules.get(table[TOPS], to))
                if onto == GROUND and to != empty:
                    continue
            if single and rules.find(table, x)[1] > 1:
                continue
            for j in range(TABLE_WORDS):
                spare[j] = table[j]
            rules.move(spare, action)
            count = rules.autoplay(spare, sent)
            for j in range(CODE_WORDS):
                child[j] = codes[i, j]
            _with_code(child, np.int64(x), _code_of(x, onto))
            for j in range(count):
                _with_code(child, np.int64(sent[j]) + 1, _HOME)
            slot = _slot(slots, codes, child)
            if slots[slot] != NOBODY:
                continue
            n = numbers[FOUND]
            slots[slot] = np.int32(n)
            for j in range(CODE_WORDS):
                codes[n, j] = child[j]
            parents[n], depths[n] = np.int32(i), depths[i] + 1
            moves[n] = np.uint16(np.int64(x) << 6 | onto)
            numbers[FOUND] = n + 1
            if rules.cards_home(spare) == CARDS:
                numbers[WON] = n
                return SOLVED
            at = estimate(spare, weights) + weights[W_MOVE] * np.int64(depths[n])
            numbers[BUCKET] = min(numbers[BUCKET], _queue(n, at, heads, following))
    return PAUSED


@njit
def read_line(won: Int, parents: NDArray[np.int32], moves: NDArray[np.uint16], line: NDArray[np.uint16]) -> int:
    """Write the moves that lead to a position, first one first; returns how many, at most ``len(line)``."""
    length, i = 0, won
    while parents[i] != NOBODY:
        length, i = length + 1, np.int64(parents[i])
    i = won
    for j in range(length - 1, -1, -1):
        if j < len(line):
            line[j] = moves[i]
        i = np.int64(parents[i])
    return length


@njit
def replay(
    table: Words, line: NDArray[np.uint16], sent: NDArray[np.int8], boards: Words, actions: NDArray[np.int64]
) -> int:
    """Play a line on a ``table``, which ends where the line does; writes each board's words (``[L, 20]``) and action.

    Returns how many moves were legal: ``len(line)``, if it is a line for this board.
    """
    for i in range(len(line)):
        for j in range(boards.shape[1]):
            boards[i, j] = table[j]
        x, onto = np.int64(line[i]) >> 6, np.int64(line[i]) & 63
        to = HOME if onto == AT_HOME else CELL
        if onto <= CARDS:
            to = 0
            while to < COLUMNS - 1 and np.int64(rules.get(table[TOPS], to)) != onto:
                to += 1
        actions[i] = (x - 1) * DESTINATIONS + to
        if not rules.move(table, actions[i]):
            return i
        rules.autoplay(table, sent)
    return len(line)
