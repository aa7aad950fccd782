"""A FreeCell table as a picture."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..common.cards import RANKS, RED, SUITS
from ..common.drawing import Sketch, pixels
from .state import CELLS, COLUMNS, DEAL, MOVES, SUIT_COUNT, column_lengths, home_counts, squares

if TYPE_CHECKING:
    from PIL import Image

WIDTH, HEIGHT = 400, 512  # multiples of 16, as video encoders want them
CARD_WIDTH, CARD_HEIGHT, RADIUS = 46, 64, 4
PITCH = 49  # from one column to the next
MARGIN = (WIDTH - (COLUMNS - 1) * PITCH - CARD_WIDTH) // 2
STATUS, TOP, LABELS, FIRST = 28, 34, 107, 116  # y of the strip's end, cells, column numbers (middle), columns
FALL, ROOM = 26, HEIGHT - FIRST - 4  # at most from one card of a column to the next, and for all

FELT, STRIP, SLOT, FAINT = "#1f6b45", "#134a2f", "#1a5c3b", "#69b28c"
PAPER, EDGE, BLACK_INK, RED_INK = "#fdfcf7", "#6f7a72", "#16191d", "#c4161c"


def column_left(column: int) -> int:
    """Left edge of a column, and of the cell or foundation above it."""
    return MARGIN + column * PITCH


@cache
def card_image(card: int) -> Image.Image:
    """A card by its id 0..51: rank, suit letter and suit sign in the strip that other cards leave free."""
    rank, suit = divmod(card, SUIT_COUNT)
    ink = RED_INK if suit in RED else BLACK_INK
    name = RANKS[rank].replace("T", "10")
    sketch = Sketch(CARD_WIDTH, CARD_HEIGHT)
    sketch.rounded((0, 0, CARD_WIDTH, CARD_HEIGHT), RADIUS, PAPER, EDGE, 0.75)
    sketch.text(name, (3.5, 10), 16, ink, bold=0.03, width=17, align="l")
    sketch.text(SUITS[suit], (26.5, 10), 11, ink, bold=0.02)
    sketch.suit(suit, (37.5, 10), 11, ink)
    sketch.suit(suit, (CARD_WIDTH / 2, 43), 28, ink)
    return sketch.finished()


def _draw_slot(sketch: Sketch, column: int, top: int, text: str, suit: int | None = None) -> None:
    left, middle = column_left(column), column_left(column) + CARD_WIDTH / 2
    sketch.rounded((left, top, left + CARD_WIDTH, top + CARD_HEIGHT), RADIUS, SLOT, FAINT)
    sketch.text(text, (middle, top + (32 if suit is None else 14)), 14, FAINT, bold=0.02)
    if suit is not None:
        sketch.suit(suit, (middle, top + 38), 26, FAINT)


@cache
def _ground() -> Image.Image:
    """The table without cards: a cell is named by its letter, a foundation by its suit, a column by its number."""
    sketch = Sketch(WIDTH, HEIGHT, FELT)
    sketch.rounded((0, 0, WIDTH, STATUS), 0, STRIP)
    for cell in range(CELLS):
        _draw_slot(sketch, cell, TOP, "abcd"[cell])
    for suit in range(SUIT_COUNT):
        _draw_slot(sketch, CELLS + suit, TOP, SUITS[suit], suit)
    for column in range(COLUMNS):
        _draw_slot(sketch, column, FIRST, "")
        sketch.text(str(column + 1), (column_left(column) + CARD_WIDTH / 2, LABELS), 12, "#a9d3bd")
    return sketch.finished()


@lru_cache(maxsize=64)
def _label(text: str, align: str) -> Image.Image:
    """A third of the status strip."""
    width = WIDTH // 3
    sketch = Sketch(width, STATUS, STRIP)
    x = {"l": 8, "m": width / 2, "r": width - 8}[align]
    sketch.text(text, (x, STATUS / 2), 15, "#ffffff", width=width - 10, align=align)
    return sketch.finished()


def card_tops(cards: int) -> list[int]:
    """Upper edges of the cards of a column: evenly spread, the closer the more there are."""
    fall = min(FALL, (ROOM - CARD_HEIGHT) // max(cards - 1, 1))
    return [FIRST + i * fall for i in range(cards)]


def image(row: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """The table of a state row, a fresh uint8 array ``[512, 400, 3]``."""
    board = squares(row)
    counts = home_counts(board)
    name = f"deal {int(row[DEAL])}" if row[DEAL] else "set position"
    picture = _ground().copy()
    for i, text in enumerate((name, f"moves {int(row[MOVES])}", f"home {sum(counts)}")):
        picture.paste(_label(text, "lmr"[i]), (i * WIDTH // 3, 0))
    for column, x in enumerate(board[0].tolist()):
        _lay(picture, x, column, TOP)
    for column, length in enumerate(column_lengths(board).tolist()):
        for x, top in zip(board[1 : 1 + length, column].tolist(), card_tops(length), strict=True):
            _lay(picture, x, column, top)
    return pixels(picture)


def _lay(picture: Image.Image, x: int, column: int, top: int) -> None:
    """Put a card of the observation (id + 1, 0 is nothing) on the table."""
    if x:
        card = card_image(x - 1)
        picture.paste(card, (column_left(column), top), card)
