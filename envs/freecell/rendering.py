"""A FreeCell table as terminal text."""

from __future__ import annotations

import sys
from collections.abc import Collection

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


def card_text(x: int, style: str = "") -> str:
    """A card of the observation (id + 1) as four columns, such as ``"10H♥"`` or `` " 2C♣"``; nothing is blank.

    ``style``: an SGR code to add, such as ``"7"`` for reverse video.
    """
    if x == 0:
        return term.paint("    ", style)
    rank, suit = divmod(x - 1, 4)
    name = "10" if RANKS[rank] == "T" else " " + RANKS[rank]
    colour = "1;31" if suit in RED else "1"
    return term.paint(name + _suit_text(suit), f"{colour};{style}" if style else colour)


def _foundation(suit: int, count: int, style: str) -> str:
    if count:
        return card_text((count - 1) * 4 + suit + 1, style)
    return term.paint(" -" + _suit_text(suit), f"2;{style}" if style else "2")


def _line(texts: list[str], marked: Collection[int]) -> str:
    """Texts of four columns each with a column before, between and after them, where marks are brackets."""
    gaps = ["]" if i - 1 in marked else " " for i in range(len(texts) + 1)]
    for i in marked:
        gaps[i] = "["
    pairs = zip(gaps, [*texts, ""], strict=True)
    return "".join(gap + text for gap, text in pairs)


def table_lines(board: NDArray[np.uint8], marked: Collection[tuple[int, int]] = ()) -> list[str]:
    """A ``(20, 8)`` board, cells and foundations above the columns, as lines of at most 41 columns.

    ``marked``: squares (row, column) of the board to point out, in brackets and in reverse video.
    """
    rows = [[column for row, column in marked if row == at] for at in range(len(board))]
    styles = [["7" if column in row else "" for column in range(COLUMNS)] for row in rows]
    cells = [
        card_text(x, style) if x else term.paint(_EMPTY, style)
        for x, style in zip(board[0, :CELLS], styles[0], strict=False)
    ]
    home = [_foundation(suit, n, styles[0][CELLS + suit]) for suit, n in enumerate(home_counts(board))]
    left = _line(cells, [column for column in rows[0] if column < CELLS])
    right = _line(home, [column - CELLS for column in rows[0] if column >= CELLS])
    lines = [
        "   a    b    c    d    " + "home".center(18).rstrip(),
        (left + right).rstrip(),
        "",
        "".join(f"   {c + 1} " for c in range(COLUMNS)).rstrip(),
    ]
    depth = max(int(column_lengths(board).max()), *(row for row, _ in marked), 1)
    for cards, style, marks in zip(board[1 : depth + 1].tolist(), styles[1:], rows[1:], strict=False):
        texts = [card_text(x, code) for x, code in zip(cards, style, strict=True)]
        lines.append(_line(texts, marks).rstrip())
    return lines


def ansi(row: NDArray[np.uint64]) -> str:
    """The table of a state row: status, cells and foundations above the columns; 40 columns wide."""
    board = squares(row)
    name = f"deal {int(row[DEAL])}" if row[DEAL] else "set position"
    status = f"{name}  moves {int(row[MOVES])}  home {sum(home_counts(board))}"
    return "\n".join([status, *(line[1:] for line in table_lines(board))])
