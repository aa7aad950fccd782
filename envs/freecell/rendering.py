"""A FreeCell table as terminal text."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from ..common import ansi as term
from ..common.cards import RANKS, RED, SUITS
from .state import CELLS, COLUMNS, DEAL, MOVES, column_lengths, home_counts, squares

_SYMBOLS = dict(zip(SUITS, "♣♦♥♠", strict=True))
_EMPTY = " -- "


def _suit_text(suit: int) -> str:
    """The suit's letter, with its symbol before it where the terminal can show one (letters tell without colours)."""
    letter = SUITS[suit]
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    try:
        _SYMBOLS[letter].encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return letter + " "
    return letter + _SYMBOLS[letter]


def card_text(x: int) -> str:
    """A card of the observation (id + 1) as four columns, such as ``"10H♥"`` or `` " 2C♣"``; nothing is blank."""
    if x == 0:
        return "    "
    rank, suit = divmod(x - 1, 4)
    name = "10" if RANKS[rank] == "T" else " " + RANKS[rank]
    return term.paint(name + _suit_text(suit), "1;31" if suit in RED else "1;37")


def _foundation(suit: int, count: int) -> str:
    if count:
        return card_text((count - 1) * 4 + suit + 1)
    return term.paint(" -" + _suit_text(suit), "2")


def ansi(row: NDArray[np.uint64]) -> str:
    """The table of a state row: status, cells and foundations above the columns; 40 columns wide."""
    board = squares(row)
    counts = home_counts(board)
    cells = " ".join(card_text(x) if x else _EMPTY for x in board[0, :CELLS].tolist())
    home = " ".join(_foundation(suit, count) for suit, count in enumerate(counts))
    name = f"deal {int(row[DEAL])}" if row[DEAL] else "set position"
    lines = [
        f"{name}  moves {int(row[MOVES])}  home {sum(counts)}",
        "  a    b    c    d    " + "home".center(18).rstrip(),
        f"{cells}  {home}",
        "",
        "".join(f"  {c + 1}  " for c in range(COLUMNS)).rstrip(),
    ]
    depth = max(int(column_lengths(board).max()), 1)
    lines += [" ".join(card_text(x) for x in cards).rstrip() for cards in board[1 : depth + 1].tolist()]
    return "\n".join(lines)
