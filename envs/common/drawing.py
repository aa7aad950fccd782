"""Pictures drawn with Pillow, an optional package that is imported when the first one is drawn."""

from __future__ import annotations

import math
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL import Image, ImageFont

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom

SCALE = 4  # a sketch is drawn so many times too large: reduced again, its edges are smooth


def require_pillow() -> None:
    """Raise ImportError, in one line that says what to install, where Pillow is missing."""
    try:
        import_module("PIL")
    except ImportError:
        raise ImportError('rgb_array needs Pillow: pip install "puzzlegym[play]"', name="PIL") from None


def pixels(picture: Image.Image) -> NDArray[np.uint8]:
    """A picture as a fresh array, uint8 ``[height, width, 3]``."""
    return np.array(picture, dtype=np.uint8)


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    """The font that comes with Pillow: no machine has to have one."""
    from PIL import ImageFont

    font = ImageFont.load_default(size)
    assert isinstance(font, ImageFont.FreeTypeFont)
    return font


def _circle(x: float, y: float, radius: float) -> list[Point]:
    turns = [2 * math.pi * i / 60 for i in range(60)]
    return [(x + radius * math.cos(t), y + radius * math.sin(t)) for t in turns]


def _heart(height: float, y: float) -> list[Point]:
    """The heart curve around ``(0, y)``; a negative height stands it on its head."""
    turns = [2 * math.pi * i / 90 for i in range(90)]
    unit = height / 29
    return [
        (
            unit * 16 * math.sin(t) ** 3,
            y - unit * (13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t) + 2.5),
        )
        for t in turns
    ]


_STEM: list[Point] = [(-0.04, 0.0), (0.04, 0.0), (0.07, 0.32), (0.21, 0.5), (-0.21, 0.5), (-0.07, 0.32)]
# Each suit of ``common.cards`` as polygons, from -0.5 to 0.5 around its centre.
_SUIT_SHAPES: tuple[tuple[list[Point], ...], ...] = (
    (_circle(0, -0.26, 0.22), _circle(-0.27, 0.1, 0.22), _circle(0.27, 0.1, 0.22), _circle(0, 0, 0.12), _STEM),
    ([(0, -0.52), (0.4, 0), (0, 0.52), (-0.4, 0)],),
    (_heart(0.92, 0.0),),
    (_heart(-0.8, -0.1), _STEM),
)


class Sketch:
    """A small picture in the making; all places and sizes are pixels of the finished one, and may be fractions."""

    def __init__(self, width: int, height: int, ground: str | None = None) -> None:
        """``ground``: the colour to draw on; None for a picture that is transparent where nothing is drawn."""
        require_pillow()
        from PIL import Image, ImageDraw

        size = width * SCALE, height * SCALE
        self._image = Image.new("RGB", size, ground) if ground else Image.new("RGBA", size)
        self._draw = ImageDraw.Draw(self._image)

    def finished(self) -> Image.Image:
        """The picture in its own size."""
        return self._image.reduce(SCALE)

    def rounded(
        self, box: Box, radius: float, fill: str | None = None, outline: str | None = None, line: float = 1
    ) -> None:
        """A rectangle with round corners; its outline, ``line`` wide, lies within the box."""
        left, top, right, bottom = (round(edge * SCALE) for edge in box)
        inside = (left, top, right - 1, bottom - 1)
        self._draw.rounded_rectangle(inside, radius * SCALE, fill, outline, round(line * SCALE))

    def text(
        self, text: str, at: Point, size: float, fill: str, bold: float = 0, width: float = math.inf, align: str = "m"
    ) -> None:
        """One line of text in the middle of ``at`` (``align`` "l": begins there, "r": ends there).

        A text wider than ``width`` is made smaller to fit. ``bold``: what is added to each side of a stroke, as a share
        of the size.
        """
        size *= SCALE
        needed = _font(round(size)).getlength(text) + 2 * bold * size
        size *= min(1, width * SCALE / needed)
        font = _font(int(size))
        middle = font.getbbox("H", anchor="ls")[1] / 2  # capitals and digits are as tall; y counts downwards
        place = at[0] * SCALE, at[1] * SCALE - middle
        self._draw.text(place, text, fill, font, align + "s", stroke_width=round(bold * size))

    def suit(self, suit: int, at: Point, size: float, fill: str) -> None:
        """The sign of a suit (0..3 for C D H S), ``size`` tall, in the middle of ``at``."""
        for shape in _SUIT_SHAPES[suit]:
            self._draw.polygon([((at[0] + x * size) * SCALE, (at[1] + y * size) * SCALE) for x, y in shape], fill)
