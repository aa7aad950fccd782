"""Rewards that are easier to learn from than the games' own; evaluation goes by the games' own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from ..envs.freecell import FreeCellEnv, FreeCellVectorEnv
from ..envs.puzzle2048 import Puzzle2048Env, Puzzle2048VectorEnv
from ..envs.puzzle2048.rules import EXPONENTS, merge_rows
from ._batch import AnyEnv, AnyVectorEnv, Infos, PuzzleVectorWrapper, SingleWrapper, Step, VectorStep, batch_of
from ._history import History


def _merge_worth(base: float, slope: float, start: int, power: float) -> NDArray[np.float64]:
    exponents = np.arange(EXPONENTS)
    return np.asarray(base + slope * np.maximum(0, exponents - start) ** power, dtype=np.float64)


class ShapedReward2048(SingleWrapper):
    """2048 with a reward per merge that grows slowly with the tile: ``base + slope * max(0, e - start) ** power``.

    ``e`` is the exponent of the new tile. ``end`` is added when the game terminates (also when ``terminate_on_win``
    ends it).

    Example:
        >>> import gymnasium, puzzlegym
        >>> from puzzlegym.wrappers import ShapedReward2048
        >>> env = ShapedReward2048(gymnasium.make("Puzzle2048-v0"))
        >>> obs, info = env.reset(seed=0, options={"board": [[6, 6, 1, 1]] + [[0] * 4] * 3})
        >>> obs, reward, terminated, truncated, info = env.step(3)  # makes a 128 (e = 7) and a 4 (e = 2)
        >>> round(reward, 2)
        0.13
    """

    def __init__(
        self,
        env: AnyEnv,
        base: float = 0.05,
        slope: float = 0.03,
        start: int = 6,
        power: float = 1.5,
        end: float = -1.0,
    ) -> None:
        """``env``: a 2048 environment, possibly wrapped; TypeError for any other."""
        RecordConstructorArgs.__init__(self, base=base, slope=slope, start=start, power=power, end=end)
        super().__init__(env)
        self._batch = batch_of(env, Puzzle2048Env)
        self._worth, self._end = _merge_worth(base, slope, start, power), end
        self._counts = np.empty(EXPONENTS, dtype=np.int64)

    def step(self, action: int) -> Step:
        """Make a move."""
        before = self._batch.rows.copy()
        obs, _, terminated, truncated, info = self.env.step(action)
        reward = np.empty(1)
        merge_rows(before, np.array([action], dtype=np.int64), self._worth, reward, self._counts)
        return obs, float(reward[0]) + self._end * terminated, terminated, truncated, info


class ShapedReward2048Vector(PuzzleVectorWrapper):
    """``ShapedReward2048`` for the native batch, in every autoreset mode; a reset step gives 0.

    Example:
        >>> import gymnasium, puzzlegym
        >>> from puzzlegym.wrappers import ShapedReward2048Vector
        >>> venv = ShapedReward2048Vector(gymnasium.make_vec("Puzzle2048-v0", num_envs=2))
        >>> obs, infos = venv.reset(seed=0, options={"board": [[6, 6, 1, 1]] + [[0] * 4] * 3})
        >>> venv.step([3, 0])[1].round(2)
        array([0.13, 0.  ])
    """

    def __init__(
        self,
        env: AnyVectorEnv,
        base: float = 0.05,
        slope: float = 0.03,
        start: int = 6,
        power: float = 1.5,
        end: float = -1.0,
    ) -> None:
        """``env``: a ``Puzzle2048VectorEnv``, possibly wrapped; TypeError for any other."""
        super().__init__(env)
        self._batch = batch_of(env, Puzzle2048VectorEnv)
        self._worth, self._end = _merge_worth(base, slope, start, power), end
        self._counts = np.empty(EXPONENTS, dtype=np.int64)

    def step(self, actions: NDArray[np.int64]) -> VectorStep:
        """Make a move in every game."""
        before = self._batch.rows.copy()
        obs, _, terminated, truncated, infos = self.env.step(actions)
        rewards = np.empty(self.num_envs)
        merge_rows(before, np.asarray(actions, dtype=np.int64), self._worth, rewards, self._counts)
        rewards += self._end * terminated
        only_reset = (self._batch.steps() == 0) & ~(terminated | truncated)
        return obs, np.where(only_reset, 0.0, rewards), terminated, truncated, infos


class ShapedRewardFreeCell(SingleWrapper):
    """FreeCell's reward (1 a card) with a bonus for the win and a small price for going round in circles.

    ``repeat`` is added for a move that leads to a position already seen since the last card went home, which is the
    same as: in this game. Positions are compared as by ``NoRepeat``.

    Example:
        >>> import gymnasium, puzzlegym
        >>> from puzzlegym.wrappers import ShapedRewardFreeCell
        >>> env = ShapedRewardFreeCell(gymnasium.make("FreeCell-v0", deal=9))
        >>> obs, info = env.reset(seed=0)
        >>> env.step(298)[1], env.step(297)[1]  # 8D to a cell, and back
        (0.0, -0.1)
    """

    def __init__(self, env: AnyEnv, win: float = 10.0, repeat: float = -0.1) -> None:
        """``env``: a FreeCell environment, possibly wrapped; TypeError for any other."""
        RecordConstructorArgs.__init__(self, win=win, repeat=repeat)
        super().__init__(env)
        self._history = History(batch_of(env, FreeCellEnv))
        self._win, self._repeat = win, repeat

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Infos]:
        """Start a game and its history."""
        answer = self.env.reset(seed=seed, options=options)
        self._history.look()
        return answer

    def step(self, action: int) -> Step:
        """Make a move."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        repeated = bool(self._history.repeats(np.array([action]))[0])
        self._history.look()
        shaped = float(reward) + self._win * (terminated and info["is_success"]) + self._repeat * repeated
        return obs, shaped, terminated, truncated, info

    def set_state(self, state: Any) -> None:
        """Put a snapshot back; the history begins there."""
        super().set_state(state)
        self._history.restart()


class ShapedRewardFreeCellVector(PuzzleVectorWrapper):
    """``ShapedRewardFreeCell`` for the native batch, in every autoreset mode.

    Example:
        >>> import gymnasium, puzzlegym
        >>> from puzzlegym.wrappers import ShapedRewardFreeCellVector
        >>> venv = ShapedRewardFreeCellVector(gymnasium.make_vec("FreeCell-v0", num_envs=2, deal=9))
        >>> obs, infos = venv.reset(seed=0)
        >>> venv.step([298, 298])[1], venv.step([297, 98])[1]  # 8D to a cell; back, or another card
        (array([0., 0.]), array([-0.1,  0. ]))
    """

    def __init__(self, env: AnyVectorEnv, win: float = 10.0, repeat: float = -0.1) -> None:
        """``env``: a ``FreeCellVectorEnv``, possibly wrapped; TypeError for any other."""
        super().__init__(env)
        self._history = History(batch_of(env, FreeCellVectorEnv))
        self._win, self._repeat = win, repeat

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Infos]:
        """Start games and their histories; those that ``reset_mask`` leaves out keep theirs."""
        answer = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        self._history.look()
        return answer

    def step(self, actions: NDArray[np.int64]) -> VectorStep:
        """Make a move in every game."""
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        repeated = self._history.repeats(actions)
        self._history.look()
        only_reset = self._history.begun() & ~(terminated | truncated)
        won = terminated & infos.get("final_info", infos)["is_success"]
        shaped = rewards + self._win * won + self._repeat * (repeated & ~only_reset)
        return obs, shaped, terminated, truncated, infos

    def set_state(self, rows: NDArray[np.uint64]) -> None:
        """Put back what ``get_state`` returned; the histories begin there."""
        super().set_state(rows)
        self._history.restart()
