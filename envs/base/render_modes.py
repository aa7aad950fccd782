"""How a game is shown: the render modes that draw it, and what they need."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..common.drawing import require_pillow
from .puzzle import Puzzle, Row

Drawn = str | NDArray[np.uint8]  # a picture is [height, width, 3]


def drawer(puzzle: Puzzle, mode: str) -> Callable[[Row], Drawn]:
    """What draws a state row in ``mode``; ValueError for a mode that draws nothing."""
    drawers: dict[str, Callable[[Row], Drawn]] = {"ansi": puzzle.ansi, "rgb_array": puzzle.image}
    if mode not in drawers:
        raise ValueError(f"a game is drawn as one of {list(drawers)}, not {mode!r}")
    return drawers[mode]


def check_render_mode(mode: str | None, accepted: Sequence[str]) -> None:
    """ValueError for a mode that is not accepted, ImportError for one whose library is missing."""
    if mode is not None and mode not in accepted:
        raise ValueError(f"render_mode must be one of {accepted} or None, not {mode!r}")
    if mode == "rgb_array":
        require_pillow()
