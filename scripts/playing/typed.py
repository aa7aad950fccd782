"""What a player of FreeCell types: a move in standard notation, or a card to be tapped."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from ...envs.common.cards import spoken_name
from ...envs.freecell import CellNames, card_id, encode_action, format_move, parse_move, refusal, tap
from ...envs.freecell.actions import CELL
from ...envs.freecell.notation import normal_form, shortened

Board = NDArray[np.uint8]
_CARD = re.compile(r"(?:10|[a2-9tjqk])[cdhs]")
_PLACE = re.compile(r"[1-8a-d]")
_TAP = re.compile(r"t(?:ap)?(?=.[cdhs]|10[cdhs])(.+)")


def read(board: Board, text: str, names: CellNames) -> str:
    """The move that ``text`` means, in standard notation.

    A move: ``26``, ``26v4``, ``3a``, ``bh``; a card, which goes to its best place: ``KS``, ``10h``; or a column or cell
    alone, whose open card does so.

    A text such as ``5h`` is both a move (column 5 home) and a card, and counts as the move; ``t5h`` is the card. Raises
    ValueError with the reason for what is illegal, and with what is accepted for anything else.
    """
    word = text.strip().lower()
    if _PLACE.fullmatch(word):
        return tapped(board, _open_card(board, word, names), names)
    if match := _TAP.fullmatch(word):
        return tapped(board, _card(match[1]), names)
    if _is_notation(word):
        return _legal(board, word, names)
    return tapped(board, _card(word), names)


def tapped(board: Board, card: int, names: CellNames) -> str:
    """The move that takes a card to its best place. Raises ValueError with the reason if it has none."""
    try:
        return format_move(board, tap(board, card), names)
    except ValueError:
        name, reason = spoken_name(card), str(refusal(board, encode_action(card, CELL)))
        raise ValueError(f"no place takes {name}: {reason.partition(':')[0].replace(name, 'it')}") from None


def _is_notation(word: str) -> bool:
    try:
        return bool(normal_form(word))
    except ValueError:
        return False


def _legal(board: Board, word: str, names: CellNames) -> str:
    try:
        parse_move(board, word, names.copy())
    except ValueError as error:
        also = f" (t{word} taps the card {spoken_name(card_id(word))})" if _CARD.fullmatch(word) else ""
        raise ValueError(f"{error}{also}") from None
    return normal_form(word)


def _card(word: str) -> int:
    if not _CARD.fullmatch(word):
        raise ValueError(f"{shortened(word)!r} is no move: type one like 26, 26v4, 3a or 5h (home), or a card like KS")
    return card_id(word)


def _open_card(board: Board, place: str, names: CellNames) -> int:
    """The card that moves from a column or a cell."""
    if place.isdecimal():
        column = [int(x) for x in board[1:, int(place) - 1] if x]
        found = column[-1] if column else None
    else:
        found = names.card(place)
    if found is None:
        raise ValueError(f"{'column' if place.isdecimal() else 'cell'} {place} is empty")
    return found - 1
