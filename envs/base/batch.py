"""A batch of games: state rows, their configuration, and the calls into the kernels. No Gymnasium here."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..common import jit, threads
from ..common.rows import FLAGS, LEGAL, OVER, PLAY, RNG, SHOW, START, STATUS, STEPS, TRUNCATED, all_below
from .puzzle import Puzzle


class Outcome(NamedTuple):
    """Arrays that describe every game after a step or a reset."""

    obs: NDArray[np.uint8]  # [N, squares]
    mask: NDArray[np.int8]  # [N, actions]
    reward: NDArray[np.float64]  # [N]
    flags: NDArray[np.bool_]  # [FLAGS, N]
    numbers: NDArray[np.int64]  # [len(puzzle.numbers), N]

    def copied(self) -> Outcome:
        """The same in arrays of its own."""
        obs, mask, reward, flags, numbers = self
        return Outcome(obs.copy(), mask.copy(), reward.copy(), flags.copy(), numbers.copy())


_LARGE = 16 << 20  # bytes


def _most_references(arrays: Iterable[object]) -> int:
    return max(sys.getrefcount(array) for array in arrays)


_OWN_REFERENCES = _most_references((np.empty(1), np.empty(2)))  # of arrays that only a tuple holds


def _unused(outcome: Outcome) -> bool:
    """Does nobody hold one of these arrays, or a view of one, apart from the tuple itself?"""
    return _most_references(outcome) <= _OWN_REFERENCES


# Configuration rows of the games to start, and a board for each if they begin with one.
Setup = tuple[NDArray[np.int64], "list[NDArray[np.uint8]] | None"]


class Batch:
    """N games of one puzzle; a single environment is a batch of one."""

    def __init__(self, puzzle: Puzzle, size: int, arguments: Mapping[str, Any], num_threads: int | None = None) -> None:
        """``arguments``: the puzzle's constructor parameters, the same for all games at first.

        ``num_threads``: None for as many as are available; no more are used than the batch is large enough for.
        """
        self.puzzle = puzzle
        self.config = np.tile(puzzle.configure(arguments), (size, 1))
        self.rows = np.zeros((size, puzzle.words), dtype=np.uint64)
        self._squares, self._actions = int(np.prod(puzzle.observation_space.shape)), puzzle.actions
        self._numbers = len(puzzle.numbers)
        self.playing = np.full(size, PLAY)  # what a step does with each row
        self._shelf: list[Outcome] = []
        self._is_large = size * (self._squares + self._actions) > _LARGE
        self._no_actions = np.zeros(size, dtype=np.int64)
        self._spare_reward = np.empty(size)
        wanted = threads.available() if num_threads is None else num_threads
        self.num_threads = max(1, min(wanted, size // puzzle.rows_per_thread))
        jit.announce()

    def __len__(self) -> int:
        """Number of games."""
        return len(self.rows)

    def outputs(self) -> Outcome:
        """Unwritten arrays.

        Large ones are used again once nobody else holds them or a view of them: the system hands out fresh pages for
        each array of more than 32 MiB, at several times the cost of a step.
        """
        if not self._is_large:
            return self._fresh_outputs()
        for old in self._shelf:
            if _unused(old):
                return old
        self._shelf = [*self._shelf[-1:], self._fresh_outputs()]
        return self._shelf[-1]

    def _fresh_outputs(self) -> Outcome:
        n = len(self.rows)
        return Outcome(
            np.empty((n, self._squares), dtype=np.uint8),
            np.empty((n, self._actions), dtype=np.int8),
            np.empty(n),
            np.empty((FLAGS, n), dtype=np.bool_),
            np.empty((self._numbers, n), dtype=np.int64),
        )

    def check(self, actions: NDArray[np.int64], pending: NDArray[np.bool_] | None = None) -> None:
        """Raise ValueError for an action outside the space, unless that game is ``pending`` and does not play it."""
        if all_below(actions, self._actions):
            return
        outside = (actions < 0) | (actions >= self._actions)
        if pending is not None:
            outside &= ~pending
        for action in actions[outside][:1]:
            raise ValueError(f"action {action} is outside {self.puzzle.action_space}; nothing changed")

    def step(
        self, actions: NDArray[np.int64], out: Outcome, limit: int = 0, pending: NDArray[np.bool_] | None = None
    ) -> int:
        """Step every game (``pending`` ones start anew instead) and write ``out``; returns how many ended.

        ``limit``: steps after which a game is truncated, 0 for none. The actions must have been checked.
        """
        todo = self.playing if pending is None else self.playing - pending  # START is PLAY - 1
        return self._advance(self.config, todo, actions, limit, out)

    def step_one(self, action: int, out: Outcome) -> None:
        """``step`` for a batch of one and an action known to be of the space."""
        self._no_actions[0] = action
        self.puzzle.advance_rows(self.rows, self.config, self.playing, self._no_actions, 0, 0, 1, *out)

    def _advance(
        self, config: NDArray[np.int64], todo: NDArray[np.uint8], actions: NDArray[np.int64], limit: int, out: Outcome
    ) -> int:
        n = len(self.rows)
        if self.num_threads == 1:
            return self.puzzle.advance_rows(self.rows, config, todo, actions, limit, 0, n, *out)
        share_rows = self.puzzle.share_rows
        return threads.spread(share_rows, n, self.num_threads, self.rows, config, todo, actions, limit, *out)

    def refresh(
        self, which: NDArray[np.bool_], out: Outcome, deal: bool = False, config: NDArray[np.int64] | None = None
    ) -> None:
        """Write what the player sees of the games in ``which`` into ``out``, after a new deal if asked.

        Rewards and ends in ``out`` stay as they are, and so do the other games. ``config``: for these deals alone.
        """
        todo = which * (START if deal else SHOW)  # SKIP, which is 0, for the others
        ends = out.flags[: TRUNCATED + 1].copy()
        shown = out._replace(reward=self._spare_reward)
        self._advance(self.config if config is None else config, todo, self._no_actions, 0, shown)
        out.flags[: TRUNCATED + 1] = ends

    def start(self, setup: Setup, which: NDArray[np.bool_], words: Mapping[int, int], out: Outcome) -> None:
        """New games in ``which``, seeded by ``words`` (row -> generator state), as ``read_options`` found."""
        config, boards = setup
        for row, word in words.items():
            self.rows[row, RNG] = word
        if boards is None:
            self.refresh(which, out, deal=True, config=config)
            return
        self.seat({i: boards[i] for i in np.flatnonzero(which).tolist()}, out)

    def seat(self, boards: Mapping[int, Any], out: Outcome) -> None:
        """New games on these checked boards, by row; the generators stay."""
        which = np.zeros(len(self), dtype=np.bool_)
        for i, board in boards.items():
            which[i], keep = True, self.rows[i, RNG]
            self.rows[i] = 0
            self.rows[i, RNG], self.rows[i, STATUS] = keep, LEGAL
            self.puzzle.pack_board(self.rows[i], board)
        self.refresh(which, out)

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

    def is_over(self) -> bool:
        """Has the first game ended?"""
        return bool(self.rows[0, STATUS] & OVER)

    def steps(self) -> NDArray[np.uint64]:
        """Steps since each game began (uint64 ``[N]``)."""
        return self.rows[:, STEPS]

    def look(self, out: Outcome) -> None:
        """Write what the players see now, with nothing changed."""
        self.refresh(np.ones(len(self), dtype=np.bool_), out)
