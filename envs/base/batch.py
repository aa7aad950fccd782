"""A batch of games: state rows, their configuration, and the calls into the kernels. No Gymnasium here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..common import jit
from ..common.rows import LEGAL, OVER, RNG, STATUS, STEPS
from .puzzle import Puzzle


class Outcome(NamedTuple):
    """Fresh arrays that describe every game after a step or a reset."""

    obs: NDArray[np.uint8]  # [N, *observation shape]
    mask: NDArray[np.int8]  # [N, actions]
    info: NDArray[np.int64]  # [numbers, N]
    reward: NDArray[np.float64]  # [N]
    terminated: NDArray[np.bool_]  # [N]
    truncated: NDArray[np.bool_]  # [N]


# Configuration rows of the games to start, and a board for each if they begin with one.
Setup = tuple[NDArray[np.int64], "list[NDArray[np.uint8]] | None"]


class Batch:
    """N games of one puzzle; a single environment is a batch of one."""

    def __init__(self, puzzle: Puzzle, size: int, arguments: Mapping[str, Any]) -> None:
        """``arguments``: the puzzle's constructor parameters, the same for all games at first."""
        self.puzzle = puzzle
        self.config = np.tile(puzzle.configure(arguments), (size, 1))
        self.rows = np.zeros((size, puzzle.words), dtype=np.uint64)
        self._none_pending = np.zeros(size, dtype=np.bool_)
        self._shape = puzzle.observation_space.shape
        jit.announce()

    def __len__(self) -> int:
        """Number of games."""
        return len(self.rows)

    def blank(self) -> Outcome:
        """Unwritten output arrays."""
        n = len(self.rows)
        return Outcome(
            np.zeros((n, *self._shape), dtype=np.uint8),
            np.zeros((n, self.puzzle.actions), dtype=np.int8),
            np.zeros((len(self.puzzle.info), n), dtype=np.int64),
            np.zeros(n, dtype=np.float64),
            np.zeros(n, dtype=np.bool_),
            np.zeros(n, dtype=np.bool_),
        )

    def step(
        self, actions: NDArray[np.int64], limit: int = 0, pending: NDArray[np.bool_] | None = None
    ) -> tuple[Outcome, int]:
        """Step every game (``pending`` ones start anew instead); returns the outcome and how many ended.

        ``limit``: steps after which a game is truncated, 0 for none. Raises ValueError, with no game changed, for an
        action outside the space.
        """
        out = self.blank()
        ended = self.puzzle.step_rows(
            self.rows,
            self.config,
            actions,
            limit,
            self._none_pending if pending is None else pending,
            out.obs.reshape(len(self.rows), -1),
            out.mask,
            out.reward,
            out.terminated,
            out.truncated,
            out.info,
        )
        if ended < 0:
            raise ValueError(f"action {actions[-1 - ended]} is outside {self.puzzle.action_space}; nothing changed")
        return out, ended

    def refresh(self, which: NDArray[np.bool_], out: Outcome, deal: bool = False) -> None:
        """Write what the player sees of the games in ``which`` into ``out``, after a new deal if asked."""
        flat = out.obs.reshape(len(self.rows), -1)
        self.puzzle.refresh_rows(self.rows, self.config, which, deal, flat, out.mask, out.info)

    def start(self, setup: Setup, which: NDArray[np.bool_], words: Mapping[int, int]) -> Outcome:
        """New games in ``which``, seeded by ``words`` (row -> generator state), as ``read_options`` found."""
        config, boards = setup
        for row, word in words.items():
            self.rows[row, RNG] = word
        out = self.blank()
        if boards is None:
            usual, self.config = self.config, config
            self.refresh(which, out, deal=True)
            self.config = usual
            return out
        for i in np.flatnonzero(which):
            keep = self.rows[i, RNG]
            self.rows[i] = 0
            self.rows[i, RNG], self.rows[i, STATUS] = keep, LEGAL
            self.puzzle.pack_board(self.rows[i], boards[i])
        self.refresh(which, out)
        return out

    def read_options(self, options: Mapping[str, Any] | None) -> Setup:
        """Check the ``options`` of a reset; nothing changes. Raises ValueError for those that no game can have."""
        options = options or {}
        known = [name for name, parameter in self.puzzle.parameters.items() if parameter.is_option]
        unknown = set(options) - {*known, "board"}
        if unknown:
            raise ValueError(f"unknown reset option {sorted(unknown)[0]!r}; accepted: {', '.join(['board', *known])}")
        config = self.config.copy()
        for name in known:
            if options.get(name) is not None:
                self.write_parameter(config, name, options[name])
        board = options.get("board")
        return config, None if board is None else self.puzzle.split_boards(board, len(self))

    def write_parameter(self, config: NDArray[np.int64], name: str, value: Any) -> None:
        """Write a parameter into every row of ``config``: one value for all, or a list of one per game."""
        stacked = isinstance(value, list) or (isinstance(value, np.ndarray) and value.ndim > 0)
        if stacked and len(value) != len(self):
            raise ValueError(f"{name!r} must be one value, or a list of one for each of the {len(self)} environments")
        for row, one in zip(config, value if stacked else [value] * len(self), strict=True):
            self.puzzle.write_parameter(row, name, one)

    def over(self) -> NDArray[np.bool_]:
        """Which games have ended (bool ``[N]``)."""
        return np.asarray((self.rows[:, STATUS] & OVER) != 0)

    def steps(self) -> NDArray[np.uint64]:
        """Steps since each game began (uint64 ``[N]``)."""
        return self.rows[:, STEPS]

    def look(self) -> Outcome:
        """What the players see now, with nothing changed."""
        out = self.blank()
        self.refresh(np.ones(len(self), dtype=np.bool_), out)
        return out
