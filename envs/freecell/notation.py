"""Standard FreeCell move notation: columns 1-8, cells a-d, ``h`` home.

``26`` moves from column 2 to column 6; onto a card the cards decide how many go. To an empty column one card goes, or
as many as a ``v`` and a number say: ``26v4``, ``18va`` (ten cards; ``18v10`` is read, too).
"""

from __future__ import annotations

import re
from typing import Any

from ..common.cards import card_name, spoken_name
from .actions import CELL, HOME, decode_action, encode_action
from .refusal import refusal, run_length
from .state import CELLS, COLUMNS, check_board, column_lengths

_MOVE = re.compile(r"([1-8a-d])([1-8a-dh])(?:v(1[0-3]|[1-9a-d]))?")
_LETTERS = "abcd"
_QUOTED = 20  # characters of a wrong text that an error repeats


def normal_form(text: str) -> str:
    """A written move as ``format_move`` writes it: lower case, a count above nine as one letter.

    Raises ValueError for what is no move of any position. A count that says nothing (``26v1``) stays.
    """
    match = _MOVE.fullmatch(text.strip().lower())
    if not match:
        raise ValueError(f"{shortened(text.strip())!r} is no move: expected like 26, 26v4, 3a, b7 or 5h")
    source, destination, count = match.groups()
    return source + destination + (f"v{_count(count):x}" if count else "")


def shortened(text: str) -> str:
    """As much of a wrong text as an error repeats."""
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}..."


def _count(digits: str) -> int:
    return int(digits) if len(digits) > 1 else int(digits, 16)


class CellNames:
    """Which letter each card in a cell has.

    The environment fills the first empty cell, a written game may name another; reading a game needs the writer's
    letters.
    """

    def __init__(self, board: Any) -> None:
        """Letters as on ``board``."""
        self._cards = {letter: int(x) for letter, x in zip(_LETTERS, check_board(board)[0, :CELLS], strict=True) if x}

    def copy(self) -> CellNames:
        """The same letters, to go on with apart."""
        other = object.__new__(CellNames)
        other._cards = dict(self._cards)
        return other

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

    def letter(self, x: int) -> str:
        """The letter of a card (id + 1) that is in a cell. Raises KeyError for another."""
        return {held: letter for letter, held in self._cards.items()}[x]

    def first_free(self) -> str | None:
        """The first letter that no card has."""
        return next((letter for letter in _LETTERS if letter not in self._cards), None)


def parse_move(board: Any, text: str, names: CellNames | None = None) -> int:
    """The action that ``text`` means on ``board``. Upper and lower case are the same.

    ``names`` carries the cell letters of a written game from move to move. Raises ValueError with the reason if this is
    no notation or the move is illegal.
    """
    board = check_board(board)
    names = names or CellNames(board)
    names.sync(board)
    move = normal_form(text)
    source, destination, count = move[0], move[1], move[3:]
    cards = _movable(board, source, names)
    to = CELL if source in _LETTERS and destination in _LETTERS else _destination(destination, names)
    lifted = _chosen(board, cards, to, _count(count) if count else None)
    action = encode_action(lifted - 1, to)
    if reason := refusal(board, action):
        raise ValueError(reason)
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
        if (x := names.card(letter)) is not None and names.first_free():
            raise ValueError(f"cell {letter} is taken by {spoken_name(x - 1)}: cell {names.first_free()} is free")
        return CELL
    return int(letter) - 1


def _chosen(board: Any, cards: list[int], to: int, count: int | None) -> int:
    """The card (id + 1) at the head of the run that moves."""
    length = int(column_lengths(board)[to]) if to < COLUMNS else 0
    if to < COLUMNS and length and count is None:
        top = int(board[length, to])
        run = cards[: run_length([x - 1 for x in cards])]
        fitting = [x for x in run if (x - 1) // 4 == (top - 1) // 4 - 1]
        return fitting[0] if fitting else cards[0]
    count = 1 if count is None else count
    if not 1 <= count <= len(cards):
        raise ValueError(f"there are not {count} cards to move, only {len(cards)}")
    return cards[count - 1]


def format_move(board: Any, action: int, names: CellNames | None = None) -> str:
    """A legal action on ``board`` in standard notation; cells carry the letters of their place, or those of ``names``.

    Raises ValueError for a card that is home.
    """
    board = check_board(board)
    if names is None:
        names = CellNames(board)
    else:
        names = names.copy()
        names.sync(board)
    card, to = decode_action(action)
    x = card + 1
    if x in board[0, :CELLS]:
        source, count = names.letter(x), 1
    else:
        column = next((c for c in range(COLUMNS) if x in board[1:, c]), None)
        if column is None:
            raise ValueError(f"{card_name(card)} is on its foundation and cannot move")
        cards = [int(y) for y in board[1:, column] if y]
        source, count = str(column + 1), len(cards) - cards.index(x)
    if to == HOME:
        return source + "h"
    if to == CELL:
        return source + (names.first_free() or "?")
    return f"{source}{to + 1}" + (f"v{count:x}" if count > 1 and not board[1, to] else "")
