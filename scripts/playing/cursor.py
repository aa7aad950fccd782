"""A place on the FreeCell table that the arrow keys move, and the card that is held from there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...envs.freecell import CELL, HOME
from ...envs.freecell.state import CELLS, COLUMNS, column_lengths
from . import keys as k

Board = NDArray[np.uint8]
Square = tuple[int, int]  # row 0: cells and foundations, rows from 1: the columns


class Cursor:
    """Walks over the open cards: along the top row, along the columns' ends, and up into a column."""

    def __init__(self) -> None:
        """Not shown before the first arrow key."""
        self.square: Square | None = None
        self.held: int | None = None  # card id + 1

    def hide(self) -> None:
        """Put it away, with nothing held."""
        self.square, self.held = None, None

    def move(self, key: str, board: Board) -> None:
        """Go one place in the direction of an arrow key. While a card is held only its destinations count."""
        if self.square is None:
            self.square = _end(board, 0)
            return
        row, column = self.square
        if key in (k.LEFT, k.RIGHT):
            column = (column + (1 if key == k.RIGHT else -1)) % COLUMNS
            self.square = (0, column) if row == 0 else _end(board, column)
        elif key == k.DOWN:
            self.square = (
                _end(board, column) if row == 0 or self.held else (min(row + 1, _end(board, column)[0]), column)
            )
        else:
            self.square = (0, column) if self.held or row <= 1 else (row - 1, column)

    def settle(self, board: Board) -> None:
        """Stand on a card again after the board has changed."""
        if self.square is not None and self.square[0] > 0:
            row, column = self.square
            self.square = (min(row, _end(board, column)[0]), column)

    def card(self, board: Board) -> int:
        """The card (id + 1) under the cursor, 0 for none."""
        return int(board[self.square]) if self.square is not None else 0

    def destination(self) -> int:
        """Where a card that is dropped here goes: 0-7 a column, 8 a cell, 9 home."""
        row, column = self.square or (0, 0)
        if row > 0:
            return column
        return CELL if column < CELLS else HOME


def _end(board: Board, column: int) -> Square:
    """The last card of a column, or its first place if it is empty."""
    return max(int(column_lengths(board)[column]), 1), column
