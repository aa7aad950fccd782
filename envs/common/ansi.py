"""Colour for terminal text, in one place, so that NO_COLOR (https://no-color.org) holds everywhere."""

from __future__ import annotations

import os
import re
import unicodedata

RESET = "\x1b[0m"
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def colour_wanted() -> bool:
    """False where the user set NO_COLOR to anything but the empty string."""
    return not os.environ.get("NO_COLOR")


def paint(text: str, code: str) -> str:
    """``text`` wrapped in the SGR ``code`` (such as ``"1;31"``), or plain under NO_COLOR."""
    return f"\x1b[{code}m{text}{RESET}" if code and colour_wanted() else text


def plain(text: str) -> str:
    """``text`` without colours and other control sequences."""
    return _CONTROL.sub("", text)


def width(text: str) -> int:
    """How many columns of a terminal one line of plain text takes."""
    return sum(_columns(character) for character in text)


def size(text: str) -> tuple[int, int]:
    """(columns, lines) that a text with or without colours takes on a terminal."""
    lines = plain(text).split("\n")
    return max(map(width, lines)), len(lines)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
