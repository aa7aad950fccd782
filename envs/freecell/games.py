"""FreeCell games as text files: where a game starts, and its moves in standard notation.

::

    # A line that begins with # is a comment.
    Deal: 617
    Autoplay: on
    Player: somebody

    3a 32 7a 3b 37 ...

Instead of ``Deal:`` (or ``#617``, ``Game #617``, as other programs write it) a file may begin with ``Position:`` and
the lines of a position, ``Foundations:`` and ``FC:`` first, up to a blank line. ``Autoplay: off`` is for games in which
the player sends every card home. Any other ``Name: value`` line is kept. Moves may be numbered (``1.``) and broken
into lines anywhere; upper and lower case, LF and CRLF line ends are the same.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..common.files import atomic
from .deals import check_deal, deal_board
from .notation import CellNames, format_move, normal_form, parse_move
from .planning import apply
from .state import POSITION_LABELS, State

WIDTH = 80
_SWITCH = {"on": True, "yes": True, "true": True, "off": False, "no": False, "false": False}
_FIELD = re.compile(r"([A-Za-z][A-Za-z ]*?)\s*:\s*(.*)")
_NUMBER = re.compile(r"\d+[.)]")
_DEAL = re.compile(r"(?:#|(?:ms |microsoft )?(?:deal|game)\s*[:#]?\s*#?\s*)([\d,]+)", re.IGNORECASE)
_OWN_FIELDS = ("deal", "position", "autoplay", *POSITION_LABELS)
_NO_START = "a FreeCell game begins with a line such as 'Deal: 617', or with 'Position:' and the lines of a position"


class GameError(ValueError):
    """A move of a game is wrong: ``number`` says which (1 the first), ``move`` its text, ``reason`` why."""

    def __init__(self, number: int, move: str, reason: str) -> None:
        """See the class."""
        super().__init__(f"move {number} ({move}): {reason}")
        self.number, self.move, self.reason = number, move, reason

    def __reduce__(self) -> tuple[Any, ...]:
        """Exceptions pickle by their arguments."""
        return type(self), (self.number, self.move, self.reason)


@dataclass(frozen=True)
class Played:
    """A move of a replayed game: its number and action, what went home, and the ``(20, 8)`` board after it."""

    number: int
    move: str
    action: int
    home: list[int]
    board: NDArray[np.uint8]


@dataclass(frozen=True)
class Game:
    """A FreeCell game: the position that it starts from, its moves in standard notation, and what is known about it.

    ``start.deal`` is the number of the deal, or 0 for another position. ``fields`` holds the other lines of the file's
    head, such as ``{"Player": "greedy"}``. Two games are equal if all of this is.

    Example:
        >>> game = Game.parse("#1\\n1. 5A 5b 2. 5c 5D")
        >>> game.start.deal, game.moves
        (1, ('5a', '5b', '5c', '5d'))
        >>> print(game)
        Deal: 1
        Autoplay: on
        <BLANKLINE>
        5a 5b 5c 5d
        <BLANKLINE>
    """

    start: State
    moves: tuple[str, ...] = ()
    autoplay: bool = True
    fields: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Raises ValueError for fields that a file could not hold as they are."""
        for name, value in self.fields.items():
            line = f"{name}: {value}"
            match = _FIELD.fullmatch(line.strip())
            if (
                not match
                or match.groups() != (name, value)
                or line.splitlines() != [line]
                or name.lower() in _OWN_FIELDS
            ):
                raise ValueError(
                    f"a field of a game is words and one line, such as Player: me, not {name!r}: {value!r}"
                )

    @classmethod
    def of_deal(cls, deal: int, moves: Iterable[str] = (), autoplay: bool = True) -> Game:
        """A game of a numbered deal. Raises ValueError for another number, or a text that is no move."""
        return cls(_dealt(deal), tuple(map(normal_form, moves)), autoplay)

    @classmethod
    def of_actions(cls, start: State, actions: Iterable[int], autoplay: bool = True) -> Game:
        """The game in which these actions were played. Raises GameError for an illegal one."""
        board, moves = start.array, []
        for number, action in enumerate(actions, 1):
            moves.append(format_move(board, action))
            board, _, legal = apply(board, action, autoplay)
            if not legal:
                raise GameError(number, moves[-1], "illegal")
        return cls(State(start.board, start.deal), tuple(moves), autoplay)

    @classmethod
    def parse(cls, text: str) -> Game:
        """Read a game. Raises ValueError, with the number of the line, for what is none; moves are not played here."""
        reader = _Reader()
        lines = iter(enumerate(text.lstrip("\ufeff").splitlines(), 1))
        for number, line in lines:
            try:
                reader.read(line.strip(), lines)
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None
        if reader.start is None:
            raise ValueError(_NO_START)
        return cls(reader.start, tuple(reader.moves), reader.autoplay, reader.fields)

    @classmethod
    def load(cls, path: Path | str) -> Game:
        """Read a file. Raises OSError, and ValueError for a file that is no game."""
        try:
            return cls.parse(Path(path).read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            raise ValueError(f"{path} is no text file in UTF-8; {_NO_START}") from None
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def save(self, path: Path | str) -> None:
        """Write a file, atomically. Raises OSError."""
        with atomic(Path(path)) as temporary:
            temporary.write_text(str(self), encoding="utf-8")

    def replay(self) -> Iterator[Played]:
        """Play the game move by move. Raises GameError at the first move that the rules refuse."""
        board, names = self.start.array, CellNames(self.start.array)
        for number, move in enumerate(self.moves, 1):
            try:
                action = parse_move(board, move, names)
            except ValueError as error:
                raise GameError(number, move, str(error)) from None
            board, home, _ = apply(board, action, self.autoplay)
            yield Played(number, move, action, home, board)

    def __str__(self) -> str:
        """The text of the file, which ``parse`` reads back."""
        start = f"Deal: {self.start.deal}" if self.start.deal else f"Position:\n{self.start}\n"
        head = [start, f"Autoplay: {'on' if self.autoplay else 'off'}"]
        head += [f"{name}: {value}" for name, value in self.fields.items()]
        return "\n".join([*head, "", *textwrap.wrap(" ".join(self.moves), WIDTH), ""])


def _dealt(deal: int) -> State:
    return State(deal_board(deal).tobytes(), check_deal(deal))


class _Reader:
    """What has been read of a game so far."""

    def __init__(self) -> None:
        self.start: State | None = None
        self.autoplay = True
        self.fields: dict[str, str] = {}
        self.moves: list[str] = []

    def read(self, line: str, rest: Iterator[tuple[int, str]]) -> None:
        """Read a line; a position takes the ``rest`` up to a blank one."""
        words = line.partition("#")[0].strip()
        if match := _DEAL.fullmatch(line):
            self._begin(_deal(match[1]))
        elif match := _FIELD.fullmatch(line):
            known = match[1].lower() in _OWN_FIELDS
            self._field(match[1], words.partition(":")[2].strip() if known else match[2], rest)
        else:
            self.moves += [normal_form(word) for word in words.split() if not _NUMBER.fullmatch(word)]

    def _begin(self, start: State) -> None:
        if self.start is not None:
            raise ValueError("a second game begins here, and a file holds one")
        self.start = start

    def _field(self, name: str, value: str, rest: Iterator[tuple[int, str]]) -> None:
        kind = name.lower()
        if kind == "deal":
            self._begin(_deal(value))
        elif kind == "position":
            self._begin(State.parse("\n".join([value, *_paragraph(rest)]).strip()))
        elif kind in POSITION_LABELS:  # a position without its title
            self._begin(State.parse("\n".join([f"{name}: {value}", *_paragraph(rest)])))
        elif kind == "autoplay":
            if value.lower() not in _SWITCH:
                raise ValueError(f"Autoplay is on or off, not {value!r}")
            self.autoplay = _SWITCH[value.lower()]
        else:
            self.fields[name] = value


def _deal(text: str) -> State:
    number = text.strip().replace(",", "")
    if not number.isdecimal():
        raise ValueError(f"a deal is a number such as 617, not {text.strip()!r}")
    return _dealt(int(number))


def _paragraph(lines: Iterator[tuple[int, str]]) -> Iterator[str]:
    for _, line in lines:
        if not line.strip():
            return
        yield line
