"""How far from the win a FreeCell position looks, counted out one card and one pair of cards at a time."""

from __future__ import annotations

from .freecell import fits, rank, suit


def counts(position):
    """How often a player minds each thing: (name, place in that weight or None) -> number."""
    found = {}

    def add(name, at, number=1):
        found[name, at] = found.get((name, at), 0) + number

    add("left", None, 52 - sum(position.home))
    add("cells", sum(card is not None for card in position.cells))
    add("empty", min(3, sum(not column for column in position.columns)))
    for column in position.columns:
        for i, one in enumerate(column):
            beneath, above = column[:i], column[i + 1 :]
            turn = min(7, rank(one) - position.home[suit(one)])
            add("under", turn, len(above))
            add("buried", turn, sum(breaks(column, j) for j in range(i + 1, len(column))))
            add("breaks", None, breaks(column, i))
            add("cover", None, any(rank(lower) < rank(one) for lower in beneath))
    return found


def breaks(column, i):
    """Does the i-th card lie on another one, out of order?"""
    return i > 0 and not fits(column[i], column[i - 1])


def estimate(position, weights):
    """The weighted sum."""
    total = 0
    for (name, at), number in counts(position).items():
        weight = getattr(weights, name)
        total += number * (weight if at is None else weight[at])
    return total
