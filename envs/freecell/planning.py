"""FreeCell without an environment: pure functions on boards, for search and for players of your own.

A board is the ``(20, 8)`` uint8 array of the observation, or anything else that ``State`` can be read from (text, or a
mapping with ``cols``, ``cells``, ``home``); nothing given is changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..common.cards import CARDS
from ..common.jit import njit
from . import rules
from .actions import ACTIONS, CELL, DESTINATIONS, HOME, decode_action
from .state import SHAPE, TABLE, WORDS, check_board, column_lengths, home_counts, pack_board


@njit
def lay_out(table: NDArray[np.uint64], board: NDArray[np.uint64]) -> None:
    """Write the words of a board (uint64 ``[20]``, an observation's bytes) into a table, and what follows from them."""
    for j in range(len(board)):
        table[j] = board[j]
    rules.complete(table)


def table_of(board: Any) -> NDArray[np.uint64]:
    """A position as the words that the rules work on (uint64 ``[TABLE_WORDS]``); ValueError for what is no position."""
    row = np.zeros(WORDS, dtype=np.uint64)
    pack_board(row, check_board(board))
    table = row[TABLE:]
    rules.complete(table)
    return table


def _board(table: NDArray[np.uint64]) -> NDArray[np.uint8]:
    return table[: SHAPE[0]].view(np.uint8).reshape(SHAPE)


def _send_home(table: NDArray[np.uint64]) -> list[int]:
    sent = np.empty(CARDS, dtype=np.int8)
    return [int(card) for card in sent[: rules.autoplay(table, sent)]]


def legal_mask(board: Any) -> NDArray[np.bool_]:
    """Which of the 520 actions are legal (bool ``[520]``)."""
    mask = np.zeros(ACTIONS, dtype=np.int8)
    rules.legal_mask(table_of(board), mask)
    return mask.view(np.bool_)


def legal_moves(board: Any) -> NDArray[np.int64]:
    """All legal actions in rising order (int64); every length of every run to every place."""
    return np.flatnonzero(legal_mask(board))


def apply(board: Any, action: int, autoplay: bool = True) -> tuple[NDArray[np.uint8], list[int], bool]:
    """Make a move: (board after it, card ids that went home in order, legal).

    With ``autoplay`` the safe cards follow. An illegal move returns the same board. Raises ValueError for an action
    outside 0..519.

    Example:
        >>> from puzzlegym.envs.freecell import deal_board, encode_action, card_id
        >>> board, home, legal = apply(deal_board(1), encode_action(card_id("6C"), 8))
        >>> int(board[0, 0]) - 1 == card_id("6C"), home, legal
        (True, [], True)
    """
    table = table_of(board)
    card, to = decode_action(action)
    if not rules.move(table, int(action)):
        return _board(table), [], False
    home = [card] if to == HOME else []
    return _board(table), home + (_send_home(table) if autoplay else []), True


def autoplay(board: Any) -> tuple[NDArray[np.uint8], list[int]]:
    """Send the safe cards home: (board after it, card ids in order)."""
    table = table_of(board)
    sent = _send_home(table)
    return _board(table), sent


def has_moves(board: Any) -> bool:
    """Is any move left, moves to a foundation included? (False: stuck, or won.)"""
    return bool(legal_mask(board).any())


def is_won(board: Any) -> bool:
    """Are all 52 cards home?"""
    return sum(home_counts(check_board(board))) == CARDS


def tap(board: Any, card: int) -> int:
    """The action that takes ``card`` to its best place: home, else a column, else a cell, else an empty column.

    The first fitting column counts. Raises ValueError if the card cannot move.
    """
    board = check_board(board)
    legal = legal_mask(board)[card * DESTINATIONS : (card + 1) * DESTINATIONS]
    empty = column_lengths(board) == 0
    for to in (HOME, *np.flatnonzero(~empty).tolist(), CELL, *np.flatnonzero(empty).tolist()):
        if legal[to]:
            return card * DESTINATIONS + int(to)
    raise ValueError("this card cannot move")


def position_key(board: Any) -> int:
    """64 bits that tell positions apart, after their safe cards went home, but not the order of columns or of cells.

    Example:
        >>> from puzzlegym.envs.freecell import deal_board
        >>> board, mirrored = deal_board(1), deal_board(1)
        >>> mirrored[1:] = board[1:, ::-1]
        >>> position_key(board) == position_key(mirrored)
        True
    """
    table = table_of(board)
    _send_home(table)
    return int(rules.position_key(table))
