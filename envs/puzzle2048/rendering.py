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


def ansi(row: NDArray[np.uint64]) -> str:
    """The board of a state row with its score, 9 lines of 37 columns."""
    rule = "+" + "+".join(["-" * WIDTH] * SIDE) + "+"
    lines = [f"score {int(row[SCORE])}", rule]
    for exponents in unpack_board(row).tolist():
        lines += [_line(exponents), rule]
    return "\n".join(lines)
