"""2048 without an environment: pure functions on boards, for search and for players of your own.

A board is ``(4, 4)`` exponents (0 = empty, 1 = the tile 2, 11 = 2048); nothing given is changed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import rules
from .actions import ACTIONS, Action
from .state import HIGH, LOW, WORDS, check_board, pack_board, unpack_board


def _row(board: ArrayLike) -> NDArray[np.uint64]:
    row = np.zeros(WORDS, dtype=np.uint64)
    pack_board(row, check_board(board))
    return row


def move(board: ArrayLike, direction: int) -> tuple[NDArray[np.uint8], int, bool]:
    """Slide a board: (afterstate ``(4, 4)`` uint8, points gained, legal). No tile is spawned.

    Raises ValueError for a direction other than 0..3 or a board that is none.

    Example:
        >>> afterstate, gain, legal = move([[1, 1, 0, 0]] + [[0] * 4] * 3, Action.LEFT)
        >>> int(afterstate[0, 0]), gain, legal
        (2, 4, True)
    """
    row, before = _row(board), _row(board)
    row[LOW], row[HIGH], gain = rules.slide(before[LOW], before[HIGH], int(Action(direction)))
    return unpack_board(row), int(gain), bool(np.any(row != before))


def legal_moves(board: ArrayLike) -> NDArray[np.bool_]:
    """Which of up, right, down, left change the board (bool ``[4]``)."""
    row = _row(board)
    bits = int(rules.legal_bits(row[LOW], row[HIGH]))
    return np.array([bits >> d & 1 for d in range(ACTIONS)], dtype=np.bool_)


def is_over(board: ArrayLike) -> bool:
    """No legal move: the board is full and no two equal tiles touch."""
    return not legal_moves(board).any()
