"""Standard FreeCell move notation: columns 1-8, cells a-d, ``h`` home.

``26`` moves from column 2 to column 6; onto a card the cards decide how many go. To an empty column one card goes, or
as many as a ``v`` and one hexadecimal digit say: ``26v4``, ``18va`` (ten cards).
"""

from __future__ import annotations

import re
from typing import Any

from ..common.cards import card_name
from .actions import CELL, HOME, decode_action, encode_action
from .planning import legal_mask
from .state import CELLS, COLUMNS, check_board, column_lengths

_MOVE = re.compile(r"([1-8a-d])([1-8a-dh])(?:v([1-9a-d]))?")
_LETTERS = "abcd"


class CellNames:
    """Which letter each card in a cell has.

    The environment fills the first empty cell, a written game may name another; reading a game needs the writer's
    letters.
    """

    def __init__(self, board: Any) -> None:
        """Letters as on ``board``."""
        self._cards = {letter: int(x) for letter, x in zip(_LETTERS, check_board(board)[0, :CELLS], strict=True) if x}

    def sync(self, board: Any) -> None:
        """Forget cards that have left the cells (they may have gone home by themselves)."""
        held = {int(x) for x in check_board(board)[0, :CELLS]}
        self._cards = {letter: x for letter, x in self._cards.items() if x in held}

    def card(self, letter: str) -> int | None:
        """The card (id + 1) under a letter."""
        return self._cards.get(letter)

    def put(self, letter: str, x: int) -> None:
        """Card x is in that cell from now on."""
        self._cards[letter] = x


def parse_move(board: Any, text: str, names: CellNames | None = None) -> int:
    """The action that ``text`` means on ``board``. Upper and lower case are the same.

    ``names`` carries the cell letters of a written game from move to move. Raises ValueError with the reason if this is
    no notation or the move is illegal.
    """
    board = check_board(board)
    names = names or CellNames(board)
    names.sync(board)
    match = _MOVE.fullmatch(text.strip().lower())
    if not match:
        raise ValueError(f"{text!r} is no move: expected like 26, 26v4, 3a, b7 or 5h")
    source, destination, count = match.groups()
    cards = _movable(board, source, names)
    to = _destination(destination, names)
    lifted = _chosen(board, cards, to, int(count, 16) if count else None)
    action = encode_action(lifted - 1, to)
    if not legal_mask(board)[action]:
        raise ValueError(f"{text.strip()}: {card_name(lifted - 1)} cannot go there")
    if to == CELL:
        names.put(destination, lifted)
    return action


def _movable(board: Any, source: str, names: CellNames) -> list[int]:
    """The cards at the open end of a source, the open one first."""
    if source in _LETTERS:
        x = names.card(source)
        if x is None:
            raise ValueError(f"cell {source} is empty")
        return [x]
    column = [int(x) for x in board[1:, int(source) - 1] if x]
    if not column:
        raise ValueError(f"column {source} is empty")
    return column[::-1]


def _destination(letter: str, names: CellNames) -> int:
    if letter == "h":
        return HOME
    if letter in _LETTERS:
        if names.card(letter) is not None:
            raise ValueError(f"cell {letter} is taken")
        return CELL
    return int(letter) - 1


def _chosen(board: Any, cards: list[int], to: int, count: int | None) -> int:
    """The card (id + 1) at the head of the run that moves."""
    length = int(column_lengths(board)[to]) if to < COLUMNS else 0
    if to < COLUMNS and length and count is None:
        top = int(board[length, to])
        fitting = [x for x in cards if (x - 1) // 4 == (top - 1) // 4 - 1]
        return fitting[0] if fitting else cards[0]
    count = 1 if count is None else count
    if not 1 <= count <= len(cards):
        raise ValueError(f"there are not {count} cards to move")
    return cards[count - 1]


def format_move(board: Any, action: int) -> str:
    """A legal action on ``board`` in standard notation; cells carry the letters of their place."""
    board = check_board(board)
    card, to = decode_action(action)
    x = card + 1
    if x in board[0, :CELLS]:
        source, count = _LETTERS[board[0, :CELLS].tolist().index(x)], 1
    else:
        column = next((c for c in range(COLUMNS) if x in board[1:, c]), None)
        if column is None:
            raise ValueError(f"{card_name(card)} is on its foundation and cannot move")
        cards = [int(y) for y in board[1:, column] if y]
        source, count = str(column + 1), len(cards) - cards.index(x)
    if to == HOME:
        return source + "h"
    if to == CELL:
        free = [letter for letter, y in zip(_LETTERS, board[0, :CELLS], strict=True) if not y]
        return source + (free[0] if free else "?")
    return f"{source}{to + 1}" + (f"v{count:x}" if count > 1 and not board[1, to] else "")
