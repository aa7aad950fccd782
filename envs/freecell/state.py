"""Layout of one FreeCell state row, and its readable form.

A row is 28 uint64 words: the common head (generator, steps, status), deal number, moves, and a table of 23 words. The
table's first 20 words are the 160 bytes of the observation itself, ``(20, 8)``: row 0 holds the 4 cells and the top
card of the 4 foundations (C D H S), rows 1-19 the columns, first dealt card in row 1; a card is id + 1, 0 is nothing.
The last 3 words follow from them, a byte for each column: its length, its top card, and how many cards its last run
has. Bytes count from the lowest one (little-endian machines, the only ones that numba compiles for here).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..common import rows as head
from ..common.cards import CARDS, RANKS, SUITS, card_id, card_name

DEAL, MOVES, TABLE = head.HEAD, head.HEAD + 1, head.HEAD + 2
COLUMNS, CELLS, SUIT_COUNT, DEPTH = 8, 4, 4, 19
SHAPE = (DEPTH + 1, COLUMNS)
SQUARES = (DEPTH + 1) * COLUMNS
LENGTHS, TOPS, RUNS = DEPTH + 1, DEPTH + 2, DEPTH + 3
TABLE_WORDS = DEPTH + 4
WORDS = TABLE + TABLE_WORDS

HOME_LABELS, CELL_LABELS = ("foundations", "founds"), ("freecells", "fc")  # of a position in text
POSITION_LABELS = (*HOME_LABELS, *CELL_LABELS)

Columns = Sequence[Sequence[str] | str]


def squares(row: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """The ``(20, 8)`` cards of a row, as a view."""
    cards: NDArray[np.uint8] = row[TABLE : TABLE + DEPTH + 1].view(np.uint8).reshape(SHAPE)
    return cards


def column_lengths(board: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Cards in each column of a ``(20, 8)`` board (uint8 ``[8]``)."""
    return np.asarray((board[1:] != 0).sum(axis=0), dtype=np.uint8)


def check_board(board: Any) -> NDArray[np.uint8]:
    """A position as a ``(20, 8)`` uint8 board.

    Takes the array itself, a ``State``, text as ``str(state)`` prints it, or a mapping ``{"cols", "cells", "home"}``.
    Raises ValueError, in one line, for anything that 52 cards cannot show.
    """
    if isinstance(board, State):
        return board.array
    if isinstance(board, str):
        return State.parse(board).array
    if isinstance(board, Mapping):
        if not {"cols", "cells", "home"} <= set(board):
            raise ValueError("a FreeCell position has the keys cols, cells and home")
        return board_from(board["cols"], board["cells"], board["home"])
    return _check_array(board)


def _check_array(board: ArrayLike) -> NDArray[np.uint8]:
    try:
        array = np.asarray(board)
    except ValueError:
        array = np.empty(0)
    if array.shape != SHAPE or array.dtype.kind not in "iu" or array.min() < 0 or array.max() > CARDS:
        raise ValueError(f"a FreeCell board is a {SHAPE} array of whole numbers 0..{CARDS}, as observations are")
    array = array.astype(np.uint8)
    if np.any((array[1:-1] == 0) & (array[2:] != 0)):
        raise ValueError("impossible FreeCell board: a column has a gap between its cards")
    _check_cards(array)
    return array


def _check_cards(board: NDArray[np.uint8]) -> None:
    """Every card once: in a column, in a cell, or at or below the top of its foundation."""
    seen = [int(x) - 1 for x in np.concatenate([board[1:].ravel(), board[0, :CELLS]]) if x]
    for suit in range(SUIT_COUNT):
        top = int(board[0, CELLS + suit])
        if top and (top - 1) % 4 != suit:
            raise ValueError(f"impossible FreeCell board: {card_name(top - 1)} on the foundation of {SUITS[suit]}")
        seen += range(suit, top, 4)
    counts = np.bincount(seen, minlength=CARDS)
    if np.any(counts != 1):
        missing = [card_name(c) for c in range(CARDS) if counts[c] == 0]
        double = [card_name(c) for c in range(CARDS) if counts[c] > 1]
        raise ValueError(
            "impossible FreeCell board: each of the 52 cards must be there once"
            + (f"; missing {' '.join(missing)}" if missing else "")
            + (f"; more than once {' '.join(double)}" if double else "")
        )


def board_from(
    columns: Columns, cells: Sequence[str | None] = (), home: Mapping[str, int] | None = None
) -> NDArray[np.uint8]:
    """A ``(20, 8)`` board from readable parts.

    Args:
        columns: 8 columns, each a string ``"KC 4H 2D"`` or a sequence of card names, first dealt card first.
        cells: up to 4 card names; None or ``""`` is an empty cell.
        home: cards on the foundation of each suit letter, 0..13 (default none).

    Raises:
        ValueError: in one line, if these parts are not a position of 52 cards.
    """
    board = np.zeros(SHAPE, dtype=np.uint8)
    names = [column.split() if isinstance(column, str) else list(column) for column in columns]
    if len(names) != COLUMNS or len(cells) > CELLS or max(map(len, names), default=0) > DEPTH:
        raise ValueError(f"a FreeCell position has {COLUMNS} columns of at most {DEPTH} cards and {CELLS} cells")
    for c, column in enumerate(names):
        board[1 : 1 + len(column), c] = [card_id(name) + 1 for name in column]
    for i, cell in enumerate(cells):
        board[0, i] = card_id(cell) + 1 if cell else 0
    for suit, count in (home or {}).items():
        if suit not in SUITS or isinstance(count, bool) or count not in range(len(RANKS) + 1):
            raise ValueError(f"a foundation is a suit of {SUITS} with 0..13 cards, not {suit}: {count}")
        board[0, CELLS + SUITS.index(suit)] = (count - 1) * 4 + SUITS.index(suit) + 1 if count else 0
    return _check_array(board)


def home_counts(board: NDArray[np.uint8]) -> list[int]:
    """Cards on the foundations of C D H S."""
    return [(int(top) + 3) // 4 for top in board[0, CELLS:]]


@dataclass(frozen=True)
class State:
    """A full snapshot of one game: comparable, hashable, picklable, JSON round trip.

    ``board`` is the observation's 160 bytes; ``deal`` is 0 for a position that was set; ``rng`` is the generator state.
    """

    board: bytes
    deal: int = 0
    moves: int = 0
    steps: int = 0
    rng: int = 0
    legal: bool = True

    @property
    def array(self) -> NDArray[np.uint8]:
        """The position as a fresh ``(20, 8)`` uint8 board."""
        return np.frombuffer(self.board, dtype=np.uint8).reshape(SHAPE).copy()

    def to_json(self) -> str:
        """One line of JSON, the cards in readable text."""
        numbers = {name: getattr(self, name) for name in ("deal", "moves", "steps", "rng", "legal")}
        return json.dumps({"board": str(self), **numbers})

    @classmethod
    def from_json(cls, text: str) -> State:
        """Inverse of ``to_json``. Raises ValueError for anything that is not a FreeCell state."""
        try:
            data = json.loads(text)
            state = cls(**{**data, "board": cls.parse(data["board"]).board})
        except (TypeError, KeyError, AttributeError, json.JSONDecodeError) as error:
            raise ValueError(f"not the JSON of a FreeCell state: {error}") from None
        return state.checked()

    @classmethod
    def parse(cls, text: str) -> State:
        """A position as ``str(state)`` prints it: ``Foundations:`` and ``Freecells:`` lines, then a line a column.

        Other programs' forms are read, too: ``Founds:`` and ``FC:``, a colon before a column, ``10`` for ``T``.
        """
        home: dict[str, int] = {}
        cells: list[str | None] = []
        columns: list[list[str]] = []
        for line in text.splitlines():
            label, colon, rest = line.partition(":")
            kind = label.strip().lower()
            if colon and kind in HOME_LABELS:
                home = _parse_home(rest)
            elif colon and kind in CELL_LABELS:
                cells = [None if word == "-" else word for word in rest.split()]
            elif line.strip() or columns:
                columns.append([] if line.strip() == "-" else (rest if colon else line).split())
        while len(columns) > COLUMNS and not columns[-1]:
            columns.pop()
        return cls(board_from(columns, cells, home).tobytes())

    def checked(self) -> State:
        """Itself, or ValueError if no game can be in this state."""
        if not isinstance(self.board, bytes) or len(self.board) != SQUARES:
            raise ValueError(f"a FreeCell state's board is {SQUARES} bytes")
        _check_array(self.array)
        for name in ("deal", "moves", "steps", "rng"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 64:
                raise ValueError(f"a FreeCell state's {name} is a whole number >= 0, not {value!r}")
        return self

    def __str__(self) -> str:
        """Foundations, cells and columns in the common text form."""
        board = self.array
        home = " ".join(f"{suit}-{RANKS[n - 1] if n else 0}" for suit, n in zip(SUITS, home_counts(board), strict=True))
        cells = " ".join(card_name(x - 1) if x else "-" for x in board[0, :CELLS].tolist())
        columns = (" ".join(card_name(x - 1) for x in column if x) or "-" for column in board[1:].T.tolist())
        return "\n".join([f"Foundations: {home}", f"Freecells: {cells}", *columns])


def _parse_home(text: str) -> dict[str, int]:
    home = {}
    for word in text.split():
        suit, _, rank = word.upper().partition("-")
        if suit not in SUITS or (rank != "0" and rank not in RANKS):
            raise ValueError(f"a foundation reads like C-0 or H-K, not {word!r}")
        home[suit] = 0 if rank == "0" else RANKS.index(rank) + 1
    return home


def pack_board(row: NDArray[np.uint64], board: NDArray[np.uint8]) -> None:
    """Write a checked ``(20, 8)`` board into a row; the words that follow from it are left to the rules."""
    squares(row)[:] = board


def to_state(row: NDArray[np.uint64]) -> State:
    """The readable form of a row."""
    board = squares(row).tobytes()
    legal = bool(row[head.STATUS] & head.LEGAL)
    return State(board, int(row[DEAL]), int(row[MOVES]), int(row[head.STEPS]), int(row[head.RNG]), legal)


def from_state(state: State, row: NDArray[np.uint64]) -> None:
    """Write a checked state into a row; the status' end bit is left to the rules."""
    if not isinstance(state, State):
        raise ValueError(f"expected a FreeCell State, got {type(state).__name__}")
    state.checked()
    pack_board(row, state.array)
    row[DEAL], row[MOVES], row[head.STEPS], row[head.RNG] = state.deal, state.moves, state.steps, state.rng
    row[head.STATUS] = head.LEGAL if state.legal else head.ZERO
