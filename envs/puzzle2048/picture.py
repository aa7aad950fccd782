"""A 2048 board as a picture."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..common.drawing import Sketch, pixels
from .state import SCORE, SIDE, unpack_board

if TYPE_CHECKING:
    from PIL import Image

WIDTH, HEIGHT = 400, 464  # multiples of 16, as video encoders want them
MARGIN, GAP, TILE = 8, 12, 81
BOARD = SIDE * TILE + (SIDE + 1) * GAP
TOP = HEIGHT - MARGIN - BOARD
PANEL_BOX = (WIDTH - MARGIN - 156, 10, WIDTH - MARGIN, TOP - 8)
SCORE_BOX = (PANEL_BOX[0] + 8, PANEL_BOX[1] + 19, PANEL_BOX[2] - 8, PANEL_BOX[3] - 5)

PAGE, FRAME, INK, PANEL = "#faf8ef", "#bbada0", "#776e65", "#8f7a66"
# Tile and number for each exponent. Numbers are darker or lighter than in the original where its contrast is too low.
COLOURS = (
    ("#cdc1b4", ""),
    ("#eee4da", "#6b6259"),
    ("#ede0c8", "#6b6259"),
    ("#f2b179", "#54402c"),
    ("#f59563", "#4d2f1c"),
    ("#e8613c", "#ffffff"),
    ("#d43f1e", "#ffffff"),
    ("#edcf72", "#5c4a1c"),
    ("#edcc61", "#5c4a1c"),
    ("#edc850", "#5c4a1c"),
    ("#edc53f", "#5c4a1c"),
    ("#edc22e", "#4a3a0c"),
    ("#4f8a4c", "#ffffff"),
    ("#2f7f78", "#ffffff"),
    ("#2f6ea6", "#ffffff"),
    ("#4a4fa8", "#ffffff"),
    ("#7c3f98", "#ffffff"),
    ("#3c3a32", "#edc22e"),
)


@cache
def _tile(exponent: int) -> Image.Image:
    colour, number = COLOURS[exponent]
    sketch = Sketch(TILE, TILE, FRAME)
    sketch.rounded((0, 0, TILE, TILE), 5, colour)
    if exponent:
        sketch.text(str(1 << exponent), (TILE / 2, TILE / 2), 36, number, bold=0.022, width=TILE - 14)
    return sketch.finished()


@cache
def _ground() -> Image.Image:
    """All but the tiles and the score."""
    sketch = Sketch(WIDTH, HEIGHT, PAGE)
    sketch.text("2048", (MARGIN + 2, (PANEL_BOX[1] + PANEL_BOX[3]) / 2), 46, INK, bold=0.025, align="l")
    sketch.rounded(PANEL_BOX, 5, PANEL)
    sketch.text("SCORE", ((PANEL_BOX[0] + PANEL_BOX[2]) / 2, PANEL_BOX[1] + 12), 11, "#f3ebe0", bold=0.02)
    sketch.rounded((MARGIN, TOP, MARGIN + BOARD, TOP + BOARD), 8, FRAME)
    return sketch.finished()


def _score(score: int) -> Image.Image:
    """The number alone, thin: thick strokes take ten times as long."""
    left, top, right, bottom = SCORE_BOX
    sketch = Sketch(right - left, bottom - top, PANEL)
    sketch.text(f"{score:,}", ((right - left) / 2, (bottom - top) / 2), 27, "#ffffff", width=right - left)
    return sketch.finished()


def square_box(square: int) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of a square (0..15, row-major)."""
    row, column = divmod(square, SIDE)
    left, top = MARGIN + GAP + column * (TILE + GAP), TOP + GAP + row * (TILE + GAP)
    return left, top, left + TILE, top + TILE


def image(row: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """The board of a state row under its score, a fresh uint8 array ``[464, 400, 3]``."""
    picture = _ground().copy()
    picture.paste(_score(int(row[SCORE])), SCORE_BOX[:2])
    for square, exponent in enumerate(unpack_board(row).ravel().tolist()):
        picture.paste(_tile(exponent), square_box(square))
    return pixels(picture)
