"""Layout of one 2048 state row, and its readable form.

A row is 7 uint64 words: the common head (generator, steps, status), the board in two words, the score and the largest
exponent. Square *i* (row-major) is nibble *i* of ``LOW``; the fifth bit of its exponent is the lowest bit of nibble *i*
of ``HIGH``, so that 65536 (2^16) and 131072 (2^17) fit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..common import rows as head

LOW, HIGH, SCORE, TOP = head.HEAD, head.HEAD + 1, head.HEAD + 2, head.HEAD + 3
WORDS = head.HEAD + 4
SIDE, SQUARES = 4, 16
MAX_EXPONENT = 17  # 131072, the largest tile that 16 squares allow
MAX_SUM = 262_140  # 131072 + 65536 + ... + 4, the fullest board there is


def check_board(board: ArrayLike | State) -> NDArray[np.uint8]:
    """A board as ``(4, 4)`` uint8 exponents, from an array, a ``State`` or text as ``str(state)`` prints it.

    Raises ValueError unless it is 16 whole numbers from 0 to 17.
    """
    if isinstance(board, State):
        return board.array
    if isinstance(board, str):
        return State.parse(board).array
    try:
        array = np.asarray(board)
    except ValueError:
        array = np.empty(0)
    if array.shape not in ((SIDE, SIDE), (SQUARES,)) or array.dtype.kind not in "iuf":
        raise ValueError(f"a 2048 board is a (4, 4) array of exponents 0..{MAX_EXPONENT}, not {_shown(board)}")
    if not np.all((array >= 0) & (array <= MAX_EXPONENT) & (array == np.floor(array))):
        raise ValueError(f"2048 exponents are whole numbers 0..{MAX_EXPONENT} (0 = empty, 11 = the tile 2048)")
    return array.astype(np.uint8).reshape(SIDE, SIDE)


def check_position(board: ArrayLike | State) -> NDArray[np.uint8]:
    """``check_board`` for a board that a game is to go on from: its tiles can be those of a game, too."""
    array = check_board(board)
    total = int(np.sum(2.0**array, where=array > 0))
    if not 0 < total <= MAX_SUM:
        raise ValueError(f"impossible 2048 board: the tiles of a game sum to 2 at least and {MAX_SUM:,} at most")
    return array


def _shown(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def pack_board(row: NDArray[np.uint64], board: NDArray[np.uint8]) -> None:
    """Write ``(4, 4)`` exponents into a row's board words."""
    low = high = 0
    for i, exponent in enumerate(board.reshape(-1).tolist()):
        low |= (exponent & 15) << 4 * i
        high |= (exponent >> 4) << 4 * i
    row[LOW], row[HIGH], row[TOP] = low, high, int(board.max())


def board_words(boards: NDArray[np.uint8]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """uint8 ``[N, 4, 4]`` exponents as the two board words of N rows, uint64 ``[N]`` each."""
    exponents = boards.reshape(len(boards), SQUARES).astype(np.uint64)
    shifts = 4 * np.arange(SQUARES, dtype=np.uint64)
    low, high = exponents & np.uint64(15), exponents >> np.uint64(4)
    return np.bitwise_or.reduce(low << shifts, axis=1), np.bitwise_or.reduce(high << shifts, axis=1)


def unpack_board(row: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """The ``(4, 4)`` uint8 exponents of a row."""
    low, high = int(row[LOW]), int(row[HIGH])
    cells = [(low >> 4 * i & 15) | (high >> 4 * i & 1) << 4 for i in range(SQUARES)]
    return np.array(cells, dtype=np.uint8).reshape(SIDE, SIDE)


@dataclass(frozen=True)
class State:
    """A full snapshot of one game: comparable, hashable, picklable, JSON round trip.

    ``board`` holds 16 exponents in row-major order (0 = empty); ``rng`` is the 64-bit generator state.
    """

    board: tuple[int, ...]
    score: int = 0
    steps: int = 0
    rng: int = 0
    legal: bool = True

    @property
    def array(self) -> NDArray[np.uint8]:
        """The board as ``(4, 4)`` uint8 exponents."""
        return np.array(self.board, dtype=np.uint8).reshape(SIDE, SIDE)

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> State:
        """Inverse of ``to_json``. Raises ValueError for anything that is not a 2048 state."""
        try:
            data = json.loads(text)
            state = cls(**{**data, "board": tuple(data["board"])})
        except (TypeError, KeyError, json.JSONDecodeError) as error:
            raise ValueError(f"not the JSON of a 2048 state: {error}") from None
        return state.checked()

    @classmethod
    def parse(cls, text: str) -> State:
        """A board written as 16 face values (``0``, ``.`` or ``-`` = empty), as ``str(state)`` prints it."""
        words = text.replace(",", " ").split()
        try:
            faces = [0 if word in ".-" else int(word) for word in words]
        except ValueError:
            raise ValueError(
                "a 2048 board in text is 16 tile values such as 2 4 8, with . for an empty square"
            ) from None
        return cls(tuple(exponents(faces))).checked()

    def checked(self) -> State:
        """Itself, or ValueError if no game can be in this state."""
        check_position(self.board)
        for name in ("score", "steps", "rng"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 64:
                raise ValueError(f"a 2048 state's {name} is a whole number >= 0, not {_shown(value)}")
        return self

    def __str__(self) -> str:
        """Four lines of face values."""
        faces = [str(1 << e) if e else "." for e in self.board]
        return "\n".join(" ".join(f"{f:>6}" for f in faces[i : i + SIDE]) for i in range(0, SQUARES, SIDE))


def exponents(faces: Sequence[int]) -> list[int]:
    """16 face values (0, 2, 4, … 131072) as exponents. Raises ValueError for other numbers."""
    if len(faces) != SQUARES or any(f < 0 or f == 1 or f & (f - 1) for f in faces):
        raise ValueError("a 2048 board has 16 squares with tiles that are powers of two from 2 to 131072, or 0")
    return [f.bit_length() - 1 if f else 0 for f in faces]


def to_state(row: NDArray[np.uint64]) -> State:
    """The readable form of a row."""
    board = tuple(unpack_board(row).reshape(-1).tolist())
    legal = bool(row[head.STATUS] & head.LEGAL)
    return State(board, int(row[SCORE]), int(row[head.STEPS]), int(row[head.RNG]), legal)


def from_state(state: State, row: NDArray[np.uint64]) -> None:
    """Write a checked state into a row; the status' end bit is left to the rules."""
    if not isinstance(state, State):
        raise ValueError(f"expected a 2048 State, got {type(state).__name__}")
    state.checked()
    pack_board(row, state.array)
    row[SCORE], row[head.STEPS], row[head.RNG] = state.score, state.steps, state.rng
    row[head.STATUS] = head.LEGAL if state.legal else head.ZERO
