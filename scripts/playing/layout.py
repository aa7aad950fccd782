"""A board with words beside it, or below it where the terminal is too narrow."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...envs.common.ansi import paint, plain

GAP = 3
NARROWEST = 28  # columns of words that still read well


Keys = Sequence[tuple[str, str]]


class Note(NamedTuple):
    """A paragraph, the SGR code that it is shown in, and the rows that it takes at least."""

    text: str
    style: str = ""
    rows: int = 1


BOLD, DIM, GOOD, BAD = "1", "2", "1;32", "1;33"


def arrange(board: Sequence[str], notes: Sequence[Note], keys: Keys, width: int, height: int) -> list[str]:
    """The lines of a screen of so many columns and rows; ``keys`` tells what they do, as (key, words)."""
    taken = max(len(plain(line)) for line in board) + GAP
    if width - taken < NARROWEST:
        return _below(board, notes, keys, width, height)
    helped = [Note(""), *(Note(f"{key:<9}{what}", DIM) for key, what in keys)] if keys else []
    words = wrapped([*notes, *helped], width - taken)
    rows = max(len(board), len(words))
    left = [*board, *[""] * (rows - len(board))]
    right = [*words, *[""] * (rows - len(words))]
    return [
        f"{line}{' ' * (taken - len(plain(line)))}{word}" if word else line
        for line, word in zip(left, right, strict=True)
    ]


def _below(board: Sequence[str], notes: Sequence[Note], keys: Keys, width: int, height: int) -> list[str]:
    """Words below the board, the keys in one paragraph; where the screen is short, empty lines go first, then keys."""
    words = ["", *wrapped(notes, width)]
    told = wrapped([Note(";  ".join(f"{key}: {what}" for key, what in keys), DIM)], width) if keys else []
    while "" in words and len(board) + len(words) + len(told) > height:
        words.remove("")
    room = max(height - len(board) - len(words), 0)
    return [*board, *words, *([""] if len(told) < room else []), *told[:room]]


def wrapped(notes: Iterable[Note], width: int) -> list[str]:
    """Paragraphs as lines of at most ``width`` columns; an empty one is an empty line."""
    lines = []
    for note in notes:
        words = [line for part in note.text.split("\n") for line in textwrap.wrap(part, max(width, 10))]
        lines += [paint(line, note.style) for line in words]
        lines += [""] * (note.rows - len(words))
    return lines
