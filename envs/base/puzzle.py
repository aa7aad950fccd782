"""What a puzzle supplies to the Gymnasium machinery: data and functions, no life cycle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Row = NDArray[np.uint64]
Board = NDArray[np.uint8]


class StateLike(Protocol):
    """A puzzle's readable snapshot."""

    def to_json(self) -> str:
        """One line of JSON."""


@dataclass(frozen=True)
class Parameter:
    """A constructor argument that the compiled rules read.

    ``encode`` checks one value and returns the integers that it writes into a game's configuration row, from
    ``column`` on; it raises ValueError with a line that says what is accepted.
    """

    default: Any
    column: int
    encode: Callable[[Any], tuple[int, ...]]
    is_option: bool = False  # may ``reset(options=...)`` override it for one game?


def flag(name: str, default: bool, column: int) -> Parameter:
    """A parameter that is True or False."""
    return Parameter(default, column, partial(_encode_flag, name))


def _encode_flag(name: str, value: Any) -> tuple[int]:
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, not {value!r}")
    return (int(value),)


@dataclass(frozen=True)
class Phase:
    """A part of ``advance_rows`` that can be measured alone: ``kernel(rows, config, what)`` for all rows.

    ``about`` is the array it gets: ``"actions"``, ``"mask"`` or ``"obs"``.
    """

    kernel: Callable[..., Any]
    about: str


@dataclass(frozen=True)
class Puzzle:
    """Everything that tells one puzzle from another.

    Its one kernel works on state rows, uint64 ``[N, words]`` that begin with the head of ``common.rows``:

    ``advance_rows(rows, config, todo, actions, limit, first, last, obs, mask, reward, flags, numbers) -> ended``

    does with row i, ``first <= i < last``, what ``todo[i]`` (uint8 ``[N]``) says: ``SKIP``, and nothing is written but
    a reward of 0 perhaps; ``SHOW`` it as it is, after deriving whatever follows from a board that was set; ``START`` a
    new game; ``PLAY`` ``actions[i]`` (int64 ``[N]``, of the space). A played game is truncated by its step number
    ``limit`` (0: never). Written are ``obs`` (uint8 ``[N, squares]``), ``mask`` (int8 ``[N, actions]``), ``reward``
    (float64 ``[N]``), ``flags`` (bool ``[4, N]``, see ``common.rows``) and ``numbers`` (int64 ``[len(numbers), N]``),
    all contiguous; ``config`` is int64 ``[N, config_width]``. Rows do not depend on each other. The answer is how many
    games ended.
    """

    words: int
    config_width: int
    observation_space: spaces.Box
    action_space: spaces.Discrete
    numbers: tuple[str, ...]  # names in the info dict, in the kernel's order
    parameters: Mapping[str, Parameter]
    advance_rows: Callable[..., int]
    share_rows: Callable[..., None]  # the same for one of several threads, see ``common.threads``
    rows_per_thread: int  # fewer rows than this cost more to hand to a thread than they take
    check_board: Callable[[Any], Board]
    pack_board: Callable[[Row, Board], None]
    to_state: Callable[[Row], Any]
    from_state: Callable[[Any, Row], None]
    ansi: Callable[[Row], str]
    image: Callable[[Row], NDArray[np.uint8]]  # [height, width, 3], fresh on each call
    phases: Mapping[str, Phase] = field(default_factory=dict)  # parts of a step, for measuring
    board_types: tuple[type, ...] = field(default=(str, Mapping))

    @property
    def actions(self) -> int:
        """Size of the action space."""
        return int(self.action_space.n)

    def configure(self, values: Mapping[str, Any]) -> NDArray[np.int64]:
        """The configuration row (int64 ``[config_width]``) of constructor arguments; all must be known and valid."""
        unknown = set(values) - set(self.parameters)
        if unknown:
            raise TypeError(f"unknown argument {sorted(unknown)[0]!r}; accepted: {', '.join(self.parameters)}")
        config = np.zeros(self.config_width, dtype=np.int64)
        for name, parameter in self.parameters.items():
            self.write_parameter(config, name, values.get(name, parameter.default))
        return config

    def write_parameter(self, config: NDArray[np.int64], name: str, value: Any) -> None:
        """Check one value and write it into a configuration row."""
        parameter = self.parameters[name]
        numbers = parameter.encode(value)
        config[parameter.column : parameter.column + len(numbers)] = numbers

    def _is_board(self, value: Any) -> bool:
        """Is this one whole board, in any of its forms but nested lists?"""
        whole = isinstance(value, np.ndarray) and value.ndim == len(self.observation_space.shape)
        return whole or isinstance(value, self.board_types)

    def split_boards(self, value: Any, n: int) -> list[Board]:
        """The ``board`` option as one checked board per game: one for all, or a stack or list of ``n``."""
        if isinstance(value, (list, tuple)) and any(self._is_board(one) for one in value):
            stacked = True
        else:
            stacked = isinstance(value, np.ndarray) and value.ndim == len(self.observation_space.shape) + 1
        if stacked:
            if len(value) != n:
                raise ValueError(f"option 'board' must hold one board, or one for each of the {n} environments")
            return [self.check_board(board) for board in value]
        return [self.check_board(value)] * n
