"""Can a FreeCell position be won? All that can be reached is looked at, by the plain rules of freecell.py."""

from __future__ import annotations

from . import freecell


def key(position):
    """The same for positions that differ only in the order of columns or of cells."""
    columns = sorted(map(tuple, position.columns))
    cells = sorted(one for one in position.cells if one is not None)
    return tuple(columns), tuple(cells), tuple(position.home)


def winnable(position, most=2000):
    """True or False; None if more than ``most`` positions would have to be looked at."""
    waiting, seen = [position], {key(position)}
    while waiting and len(seen) <= most:
        now = waiting.pop()
        if freecell.won(now):
            return True
        for move in sorted(freecell.legal(now), key=lambda move: move[1]):  # moves home are looked at first
            after, _ = freecell.apply(now, *move)
            if key(after) not in seen:
                seen.add(key(after))
                waiting.append(after)
    return None if waiting else False
