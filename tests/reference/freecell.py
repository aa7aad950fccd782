"""FreeCell written down from the rules as plainly as possible: slow, pure Python, sharing nothing with the package.

Cards are numbers 4 * rank + suit (rank 0 = ace, suits C D H S); destinations 0-7 are columns, 8 a cell, 9 home.
"""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass
from itertools import pairwise

CELL, HOME = 8, 9
SUITS, RANKS = "CDHS", "A23456789TJQK"
DEEPEST = 19  # 7 dealt cards, the last a king, and 12 more on it: no game has a longer column


@dataclass
class Position:
    """``columns``: 8 lists, the last card is the free one; ``cells``: 4 cards or None; ``home``: cards home by suit."""

    columns: list
    cells: list
    home: list


def rank(card):
    return card // 4


def suit(card):
    return card % 4


def red(card):
    return SUITS[suit(card)] in "DH"


def name(card):
    return RANKS[rank(card)] + SUITS[suit(card)]


def card(text):
    return 4 * RANKS.index(text[0]) + SUITS.index(text[1])


def deal(number, start_rank=0):
    """The numbered deal; cards of the first ``start_rank`` ranks are home already and the others are dealt."""
    cards = list(range(4 * start_rank, 52))
    columns = [[] for _ in range(8)]
    seed = number
    for i, left in enumerate(range(len(cards), 0, -1)):
        seed = (seed * 214013 + 2531011) % 2**31
        j = (seed >> 16) % left
        columns[i % 8].append(cards[j])
        cards[j] = cards[left - 1]
    return Position(columns, [None] * 4, [start_rank] * 4)


def read(parts):
    """A position written as in freecell_positions.json."""
    columns = [[card(word) for word in column.split()] for column in parts["cols"]]
    cells = [card(word) if word else None for word in parts["cells"]]
    return Position(columns, cells, [parts["home"][letter] for letter in SUITS])


def squares(position):
    """The position as the 20 rows of 8 numbers of the observation."""
    tops = [4 * (count - 1) + s + 1 if count else 0 for s, count in enumerate(position.home)]
    rows = [[0 if c is None else c + 1 for c in position.cells] + tops]
    for depth in range(DEEPEST):
        rows.append([column[depth] + 1 if depth < len(column) else 0 for column in position.columns])
    return rows


def from_squares(rows):
    """Inverse of ``squares``."""
    cells = [int(x) - 1 if x else None for x in rows[0][:4]]
    home = [rank(int(x) - 1) + 1 if x else 0 for x in rows[0][4:]]
    columns = [[int(row[c]) - 1 for row in rows[1:] if row[c]] for c in range(8)]
    return Position(columns, cells, home)


def fits(upper, lower):
    """May ``upper`` lie on ``lower``? One rank lower and of the other colour."""
    return rank(upper) + 1 == rank(lower) and red(upper) != red(lower)


def is_run(cards):
    return all(fits(upper, lower) for lower, upper in pairwise(cards))


def goes_home(position, one):
    return position.home[suit(one)] == rank(one)


def limit(position, destination):
    """How many cards may move together to a column."""
    empty_columns = sum(not column for column in position.columns)
    if not position.columns[destination]:
        empty_columns -= 1
    return (position.cells.count(None) + 1) * 2**empty_columns


def movable(position):
    """(cards that would move, their column or None) for everything that may be taken up."""
    for one in position.cells:
        if one is not None:
            yield [one], None
    for c, column in enumerate(position.columns):
        for i in range(len(column)):
            if is_run(column[i:]):
                yield column[i:], c


def destinations(position, cards, source):
    for c, column in enumerate(position.columns):
        enough = len(cards) <= limit(position, c) and len(column) + len(cards) <= DEEPEST
        if c != source and enough and (not column or fits(cards[0], column[-1])):
            yield c
    if len(cards) == 1:
        if source is not None and None in position.cells:
            yield CELL
        if goes_home(position, cards[0]):
            yield HOME


def legal(position):
    """All legal moves as a set of (card, destination)."""
    return {(cards[0], d) for cards, source in movable(position) for d in destinations(position, cards, source)}


def won(position):
    return position.home == [13] * 4


def stuck(position):
    return not won(position) and not legal(position)


def take(position, one):
    """Take up a card with the cards that lie on it."""
    if one in position.cells:
        position.cells[position.cells.index(one)] = None
        return [one]
    column = next(column for column in position.columns if one in column)
    at = column.index(one)
    cards = column[at:]
    del column[at:]
    return cards


def is_safe(position, one):
    """Aces and twos; others when both foundations of the other colour are at least one rank below."""
    others = [position.home[s] for s in range(4) if red(s) != red(one)]
    return rank(one) + 1 <= 2 or all(count >= rank(one) for count in others)


def send_safe_cards(position):
    """Send safe cards home until none is left, in place; the cards that went."""
    went = []
    while True:
        free = [c for c in position.cells if c is not None] + [column[-1] for column in position.columns if column]
        ready = [c for c in free if goes_home(position, c) and is_safe(position, c)]
        if not ready:
            return went
        take(position, ready[0])
        position.home[suit(ready[0])] += 1
        went.append(ready[0])


def apply(position, one, destination, autoplay=True):
    """(new position, cards that went home, in an order that is possible) of a legal move."""
    assert (one, destination) in legal(position)
    after = copy.deepcopy(position)
    cards, went = take(after, one), []
    if destination == HOME:
        after.home[suit(one)] += 1
        went = [one]
    elif destination == CELL:
        after.cells[after.cells.index(None)] = one
    else:
        after.columns[destination].extend(cards)
    return after, went + (send_safe_cards(after) if autoplay else [])


def best_places(position, one):
    """Where a tapped card may go: all places of the best kind (none: empty)."""
    places = {d for c, d in legal(position) if c == one}
    columns = {d for d in places if d < 8}
    onto_cards = {d for d in columns if position.columns[d]}
    for kind in ({HOME}, onto_cards, {CELL}, columns - onto_cards):
        if places & kind:
            return places & kind
    return set()


def play(position, moves, rng: random.Random, autoplay=True):
    """The positions on the way of up to ``moves`` random legal moves, the first one included."""
    positions = [position]
    for _ in range(moves):
        choices = sorted(legal(positions[-1]))
        if not choices:
            break
        positions.append(apply(positions[-1], *rng.choice(choices), autoplay)[0])
    return positions


def leaves(position, depth):
    """Number of different games of ``depth`` moves."""
    choices = legal(position)
    if depth <= 1:
        return len(choices) if depth else 1
    return sum(leaves(apply(position, *choice)[0], depth - 1) for choice in choices)
