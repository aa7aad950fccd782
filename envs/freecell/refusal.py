"""Why the rules refuse a move, in the words of a player. Whether they do is for the rules alone to say."""

from __future__ import annotations

from itertools import pairwise, takewhile
from typing import Any

from numpy.typing import NDArray

from ..common.cards import RANKS, RED, SUITS, spoken_name
from .actions import CELL, HOME, decode_action
from .planning import legal_mask
from .state import CELLS, COLUMNS, DEPTH, check_board, column_lengths, home_counts

COLOURS = ("black", "red")
_CELLS_FULL = "all four cells are taken"


def refusal(board: Any, action: int) -> str | None:
    """Why ``action`` is illegal on ``board``, in one line that names the rule; None if it is legal.

    Raises ValueError for an action outside 0..519.

    Example:
        >>> from puzzlegym.envs.freecell import card_id, deal_board, encode_action
        >>> refusal(deal_board(1), encode_action(card_id("7C"), 1))
        '7C is covered by 5 cards, and they make no run'
        >>> refusal(deal_board(1), encode_action(card_id("6C"), 1))
        '6C goes on a red 7, not on 9C'
    """
    board = check_board(board)
    card, to = decode_action(action)
    if legal_mask(board)[action]:
        return None
    place = _place(board, card)
    if place is None:
        return f"{spoken_name(card)} is home, and cards never come back from there"
    column, above = place
    if to == HOME:
        return _covered(card, above) or _not_next(board, card)
    if to == CELL:
        return _to_cell(card, column, above)
    return _to_column(board, column, [card, *above], to)


def _place(board: NDArray[Any], card: int) -> tuple[int | None, list[int]] | None:
    """(column, cards on top of it) of a card, column None in a cell; None if it is home."""
    if card + 1 in board[0, :CELLS]:
        return None, []
    for column in range(COLUMNS):
        cards = [int(x) - 1 for x in board[1:, column] if x]
        if card in cards:
            return column, cards[cards.index(card) + 1 :]
    return None


def colour(card: int) -> int:
    """0 for a black card, 1 for a red one."""
    return int(card % len(SUITS) in RED)


def run_length(cards: list[int]) -> int:
    """How many of a column's cards, the open one first, make its last run."""
    pairs = pairwise(cards)
    joined = (under // 4 == on // 4 + 1 and colour(under) != colour(on) for on, under in pairs)
    return 1 + sum(1 for _ in takewhile(bool, joined))


def _cards(count: int) -> str:
    return f"{count} card" if count == 1 else f"{count} cards"


def _covered(card: int, above: list[int]) -> str | None:
    if not above:
        return None
    return f"{spoken_name(card)} is covered by {_cards(len(above))}: only the last card of a column goes there"


def _not_next(board: NDArray[Any], card: int) -> str:
    suit = card % len(SUITS)
    needed = spoken_name(home_counts(board)[suit] * len(SUITS) + suit)
    return f"{spoken_name(card)} cannot go home yet: its foundation needs {needed} first"


def _to_cell(card: int, column: int | None, above: list[int]) -> str:
    if column is None:
        return f"{spoken_name(card)} is in a cell already"
    return _covered(card, above) or _CELLS_FULL


def _to_column(board: NDArray[Any], column: int | None, cards: list[int], to: int) -> str:
    name = spoken_name(cards[0])
    length = int(column_lengths(board)[to])
    if column == to:
        return f"{name} is in column {to + 1} already"
    if run_length(cards[::-1]) < len(cards):
        return f"{name} is covered by {_cards(len(cards) - 1)}, and they make no run"
    if length and (reason := _does_not_fit(cards[0], int(board[length, to]) - 1)):
        return reason
    if length + len(cards) > DEPTH:
        return f"a column holds {DEPTH} cards at most"
    return _too_long(board, len(cards), to)


def _does_not_fit(card: int, on: int) -> str | None:
    """Why ``card`` does not lie on ``on``: rank before colour."""
    rank = card // len(SUITS)
    if rank == len(RANKS) - 1:
        return f"{spoken_name(card)} goes on no card: a king moves only to an empty column"
    if on // len(SUITS) != rank + 1:
        wanted = RANKS[rank + 1].replace("T", "10")
        return f"{spoken_name(card)} goes on a {COLOURS[1 - colour(card)]} {wanted}, not on {spoken_name(on)}"
    if colour(on) == colour(card):
        return f"{spoken_name(card)} and {spoken_name(on)} are both {COLOURS[colour(card)]}: colours must alternate"
    return None


def _too_long(board: NDArray[Any], count: int, to: int) -> str:
    cells = int((board[0, :CELLS] == 0).sum())
    lengths = column_lengths(board)
    columns = int((lengths == 0).sum()) - int(lengths[to] == 0)
    words = f"{cells} empty cell{'s' * (cells != 1)}, {columns} empty column{'s' * (columns != 1)}"
    aside = " beside this one" if lengths[to] == 0 else ""
    return f"{_cards(count)} would move, but at most {(cells + 1) << columns} can ({words}{aside})"
