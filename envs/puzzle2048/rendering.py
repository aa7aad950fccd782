"""A 2048 board as terminal text."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..common import ansi as term
from .state import SCORE, SIDE, unpack_board

WIDTH = 8
# One style per exponent: a 256-colour background under a contrasting number, which tells without the colour.
STYLES = (
    "",
    "38;5;235;48;5;255",
    "38;5;235;48;5;230",
    "38;5;235;48;5;222",
    "38;5;235;48;5;215",
    "38;5;255;48;5;203",
    "38;5;255;48;5;196",
    "38;5;235;48;5;228",
    "38;5;235;48;5;227",
    "38;5;235;48;5;220",
    "38;5;235;48;5;214",
    "1;38;5;235;48;5;226",
    "1;38;5;255;48;5;34",
    "1;38;5;255;48;5;28",
    "1;38;5;255;48;5;31",
    "1;38;5;255;48;5;25",
    "1;38;5;255;48;5;91",
    "1;38;5;255;48;5;53",
)


def _line(exponents: list[int]) -> str:
    cells = (term.paint((str(1 << e) if e else "").center(WIDTH), STYLES[e]) for e in exponents)
    return "|" + "|".join(cells) + "|"


def board_lines(board: NDArray[np.uint8]) -> list[str]:
    """``(4, 4)`` exponents as 9 lines of 37 columns."""
    rule = "+" + "+".join(["-" * WIDTH] * SIDE) + "+"
    lines = [rule]
    for exponents in board.tolist():
        lines += [_line(exponents), rule]
    return lines


def ansi(row: NDArray[np.uint64]) -> str:
    """The score of a state row above its board, 10 lines of 37 columns."""
    return "\n".join([f"score {int(row[SCORE])}", *board_lines(unpack_board(row))])
