"""A board with words beside it, or below it where the terminal is too narrow."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...envs.common.ansi import paint, plain

GAP = 3
NARROWEST = 28  # columns of words that still read well


class Note(NamedTuple):
    """A paragraph, the SGR code that it is shown in, and the rows that it takes at least."""

    text: str
    style: str = ""
    rows: int = 1


BOLD, DIM, GOOD, BAD = "1", "2", "1;32", "1;33"


def arrange(board: Sequence[str], notes: Iterable[Note], width: int, height: int) -> list[str]:
    """The lines of a screen of so many columns and rows; where it is short, empty lines between the words go first."""
    taken = max(len(plain(line)) for line in board) + GAP
    if width - taken < NARROWEST:
        words = ["", *wrapped(notes, width)]
        while "" in words and len(board) + len(words) > height:
            words.remove("")
        return [*board, *words]
    words = wrapped(notes, width - taken)
    rows = max(len(board), len(words))
    left = [*board, *[""] * (rows - len(board))]
    right = [*words, *[""] * (rows - len(words))]
    return [
        f"{line}{' ' * (taken - len(plain(line)))}{word}" if word else line
        for line, word in zip(left, right, strict=True)
    ]


def wrapped(notes: Iterable[Note], width: int) -> list[str]:
    """Paragraphs as lines of at most ``width`` columns; an empty one is an empty line."""
    lines = []
    for note in notes:
        words = [line for part in note.text.split("\n") for line in textwrap.wrap(part, max(width, 10))]
        lines += [paint(line, note.style) for line in words]
        lines += [""] * (note.rows - len(words))
    return lines


def counted(n: int, noun: str) -> str:
    """A number with its noun, such as ``1 move`` or ``1,204 moves``."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
