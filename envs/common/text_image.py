"""Terminal text as an image: a grid of cells on a dark ground, in the colours of its SGR codes."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from .ansi import size, width

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont
    from rich.color import Color
    from rich.style import Style

Image = NDArray[np.uint8]
CELL = (11, 22)  # width and height of a cell in pixels
MARGIN = 11  # pixels of ground around the grid
_FONT_SIZE = 18
_NO_CHARACTER = "\uffff"  # fonts draw it as they draw all that they lack


class _Look(NamedTuple):
    """How a cell is drawn: colours of character and ground, weight."""

    ink: tuple[int, int, int]
    ground: tuple[int, int, int]
    bold: bool


def draw(text: str, columns: int = 0, lines: int = 0) -> Image:
    """``text`` as uint8 ``[height, width, 3]``, on a grid of at least ``columns`` by ``lines`` cells.

    Needs rich, which reads the colours, and Pillow. The font is DejaVu Sans Mono where matplotlib, which brings it,
    is installed, else Pillow's own; characters that it lacks stay blank.
    """
    from rich.ansi import AnsiDecoder
    from rich.style import Style

    needed = size(text)
    grid = _ground(max(columns, needed[0]), max(lines, needed[1]))
    decoder = AnsiDecoder()
    for y, line in enumerate(map(decoder.decode_line, text.split("\n"))):
        styles = [Style.null()] * len(line.plain)
        for span in line.spans:  # one after another, without overlaps
            styles[span.start : span.end] = [cast("Style", span.style)] * (span.end - span.start)
        _draw_line(grid[MARGIN + y * CELL[1] :], line.plain, styles)
    return grid


def _ground(columns: int, lines: int) -> Image:
    shape = (lines * CELL[1] + 2 * MARGIN, columns * CELL[0] + 2 * MARGIN, 3)
    return np.full(shape, _colour(None, False), dtype=np.uint8)


def _draw_line(grid: Image, line: str, styles: list[Style]) -> None:
    x = MARGIN
    for character, style in zip(line, styles, strict=True):
        cell = _cell(character, _look(style))
        grid[: CELL[1], x : x + cell.shape[1]] = cell
        x += cell.shape[1]


@lru_cache(maxsize=256)
def _look(style: Style) -> _Look:
    ink, ground = _colour(style.color, True), _colour(style.bgcolor, False)
    if style.reverse:
        ink, ground = ground, ink
    if style.dim:
        ink = ((ink[0] + ground[0]) // 2, (ink[1] + ground[1]) // 2, (ink[2] + ground[2]) // 2)
    return _Look(ink, ground, bool(style.bold))


def _colour(colour: Color | None, foreground: bool) -> tuple[int, int, int]:
    from rich.color import Color
    from rich.terminal_theme import SVG_EXPORT_THEME

    return (colour or Color.default()).get_truecolor(SVG_EXPORT_THEME, foreground)


@lru_cache(maxsize=4096)
def _cell(character: str, look: _Look) -> Image:
    """A drawn character, uint8 ``[height, width, 3]``."""
    ink, ground = np.array(look.ink, dtype=np.float64), np.array(look.ground, dtype=np.float64)
    cover = _cover(character, look.bold)[..., None] / 255
    return np.rint(ground + (ink - ground) * cover).astype(np.uint8)


def _cover(character: str, bold: bool) -> Image:
    """How much of each pixel of its cell a character covers, 0 to 255."""
    from PIL import Image as Images
    from PIL import ImageDraw

    font = _font("DejaVuSansMono-Bold.ttf" if bold else "DejaVuSansMono.ttf")
    room, height = width(character) * CELL[0], CELL[1]
    if not room or bytes(font.getmask(character)) == bytes(font.getmask(_NO_CHARACTER)):
        return np.zeros((height, room), dtype=np.uint8)
    drawn_width = max(room, int(np.ceil(font.getlength(character))))
    drawn = Images.new("L", (drawn_width, height))
    ImageDraw.Draw(drawn).text((drawn_width / 2, height * 0.77), character, fill=255, font=font, anchor="ms")
    cover = np.array(drawn.resize((room, height)))  # a font that is not monospace has characters wider than a cell
    if bold and "Bold" not in font.getname():
        cover[:, 1:] = np.maximum(cover[:, 1:], cover[:, :-1])
    return cover


@lru_cache(maxsize=2)
def _font(name: str) -> FreeTypeFont:
    from PIL import ImageFont

    try:
        import matplotlib
    except ImportError:
        return cast("FreeTypeFont", ImageFont.load_default(_FONT_SIZE))  # a FreeTypeFont, as it is given a size
    return ImageFont.truetype(str(Path(matplotlib.get_data_path(), "fonts", "ttf", name)), _FONT_SIZE)
