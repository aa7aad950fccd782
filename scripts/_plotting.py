"""Pictures by matplotlib's objects alone: no window, no display, no global state. To be imported late."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..agents.saved import FILE
from ..envs.common.files import atomic, check_place

LineStyle = Literal["-", "--", "-.", ":"]

# Okabe and Ito's colours, told apart with any kind of colour vision; grey for their yellow, which is faint on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "p")
LINE_STYLES: tuple[LineStyle, ...] = ("-", "--", "-.", ":")
FAINT = 0.2  # opacity of a band around a line
_DPI = 150
_LONGEST_NAME = 72
_LEGEND_WIDTH, _LEGEND_ROW = 13.0, 0.21  # characters to an inch, inches


class Style(TypedDict):
    """How to draw what belongs to one agent or run: colour, marker and dashes each tell them apart."""

    color: str
    marker: str
    linestyle: LineStyle


def style(index: int) -> Style:
    """The style of the line of this number, from 0."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": LINE_STYLES[index % len(LINE_STYLES)],
    }


def check(path: Path) -> None:
    """Can a picture be written to ``path``? Raises ValueError for a format that matplotlib does not write here, OSError
    for a place that is missing, a folder, or not writable.
    """
    rehearsal = Figure(figsize=(1, 1))
    rehearsal.text(0, 0, "x")
    try:
        rehearsal.savefig(io.BytesIO(), format=_format(path))
    except (KeyError, RuntimeError, ValueError) as error:  # unknown, or what writes it is not installed
        raise ValueError(f"{path} cannot be written as a picture: {error}") from None
    check_place(path)


def save(figure: Figure, path: Path) -> None:
    """Write the picture in the format that the name says, whole or not at all."""
    with atomic(path) as temporary:
        figure.savefig(temporary, format=_format(path), dpi=_DPI)


def _format(path: Path) -> str:
    return path.suffix[1:].lower() or "none"


def compact(value: float, _position: object = None) -> str:
    """A number on an axis: ``"500"``, ``"20k"``, ``"1.5M"``."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def new_figure(size: tuple[float, float]) -> Figure:
    """An empty figure of so many inches."""
    return Figure(figsize=size, layout="constrained")


def clean(axes: Axes) -> None:
    """No frame where no axis is; a faint grid below the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)


def legend(figure: Figure, names: Sequence[str], title: str | None = None) -> None:
    """One legend below all axes: the lines by their number, in as many columns as fit; long names lose their middle.
    The figure grows by what it needs.

    Names are text, whatever they hold: no formulas between dollars, nothing left out that begins with ``_``.
    """
    shown = [shortened(name) for name in names]
    columns = max(1, int(figure.get_figwidth() * _LEGEND_WIDTH // (max(map(len, shown)) + 7)))
    rows = -(-len(shown) // columns) + (title is not None)
    figure.set_figheight(figure.get_figheight() + rows * _LEGEND_ROW)
    made = figure.legend(
        [Line2D([], [], **style(i)) for i in range(len(shown))],
        ["name"] * len(shown),
        loc="outside lower center",
        ncols=min(columns, len(shown)),
        frameon=False,
        handlelength=3.5,
        title=title,
    )
    for text, name in zip(made.get_texts(), shown, strict=True):
        text.set(text=name, parse_math=False)


def shortened(name: str) -> str:
    """The name, with dots for the middle of a long one."""
    half = (_LONGEST_NAME - 3) // 2
    return name if len(name) <= _LONGEST_NAME else f"{name[:half]}...{name[-half:]}"


def apart(paths: Sequence[str]) -> list[str]:
    """Agents and runs as shown: so many of the last parts of their paths that different ones look different."""
    parts = [
        [part for part in os.path.normpath(path).split(os.sep) if part not in ("", FILE)] or [path] for path in paths
    ]
    deepest = max(map(len, parts))
    for depth in range(1, deepest + 1):
        shown = [os.sep.join(part[-depth:]) for part in parts]
        if len(set(shown)) == len(set(map(tuple, parts))):
            break
    return shown
