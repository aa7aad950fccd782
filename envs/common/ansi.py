"""Colour for terminal text, in one place, so that NO_COLOR (https://no-color.org) holds everywhere."""

from __future__ import annotations

import os

RESET = "\x1b[0m"


def colour_wanted() -> bool:
    """False where the user set NO_COLOR to anything but the empty string."""
    return not os.environ.get("NO_COLOR")


def paint(text: str, code: str) -> str:
    """``text`` wrapped in the SGR ``code`` (such as ``"1;31"``), or plain under NO_COLOR."""
    return f"\x1b[{code}m{text}{RESET}" if code and colour_wanted() else text
