"""A price for illegal moves, which cost nothing by the rules of the games."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from ._batch import AnyEnv, AnyVectorEnv, Infos, PuzzleVectorWrapper, SingleWrapper, Step, VectorStep, end_games


class IllegalMove(SingleWrapper):
    """Adds ``penalty`` to the reward of an illegal move and, if asked, ends the episode there.

    Example:
        >>> import gymnasium, puzzlegym
        >>> from puzzlegym.wrappers import IllegalMove
        >>> env = IllegalMove(gymnasium.make("Puzzle2048-v0"), penalty=-1.0, terminate=True)
        >>> obs, info = env.reset(seed=0, options={"board": [[1, 2, 0, 0]] + [[0] * 4] * 3})
        >>> obs, reward, terminated, truncated, info = env.step(3)  # nothing can move left
        >>> reward, terminated
        (-1.0, True)
    """

    def __init__(self, env: AnyEnv, penalty: float = -1.0, terminate: bool = False) -> None:
        """``env`` must tell ``info["legal"]``, as the puzzles of this package do."""
        RecordConstructorArgs.__init__(self, penalty=penalty, terminate=terminate)
        super().__init__(env)
        self._penalty, self._terminate = penalty, terminate

    def step(self, action: Any) -> Step:
        """Make a move."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        if info["legal"]:
            return obs, reward, terminated, truncated, info
        return obs, float(reward) + self._penalty, terminated or self._terminate, truncated, info


class IllegalMoveVector(PuzzleVectorWrapper):
    """``IllegalMove`` for a native batch, in every autoreset mode; goes below wrappers that change observations.

    Example:
        >>> import gymnasium, puzzlegym
        >>> from puzzlegym.wrappers import IllegalMoveVector
        >>> venv = IllegalMoveVector(gymnasium.make_vec("Puzzle2048-v0", num_envs=2), terminate=True)
        >>> obs, infos = venv.reset(seed=0, options={"board": [[1, 2, 0, 0]] + [[0] * 4] * 3})
        >>> obs, rewards, terminated, truncated, infos = venv.step([3, 1])  # left is illegal, right is not
        >>> rewards, terminated
        (array([-1.,  0.]), array([ True, False]))
    """

    def __init__(self, env: AnyVectorEnv, penalty: float = -1.0, terminate: bool = False) -> None:
        """``env``: the batch of a puzzle of this package, possibly wrapped."""
        super().__init__(env)
        self._penalty, self._terminate = penalty, terminate

    def step(self, actions: NDArray[np.int64]) -> VectorStep:
        """Make a move in every game."""
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        illegal = ~infos["legal"]
        if "final_info" in infos:  # there ``legal`` already speaks of the next game
            illegal |= infos["_final_info"] & ~infos["final_info"]["legal"]
        rewards = rewards + self._penalty * illegal
        if self._terminate and illegal.any():
            obs, infos = self._end(illegal, illegal & ~(terminated | truncated), obs, infos)
            terminated = terminated | illegal
        return obs, rewards, terminated, truncated, infos

    def _end(
        self, illegal: NDArray[np.bool_], still_on: NDArray[np.bool_], obs: NDArray[Any], infos: Infos
    ) -> tuple[NDArray[Any], Infos]:
        """End games where they stand, by the rules of the autoreset mode."""
        if self.metadata["autoreset_mode"] != AutoresetMode.SAME_STEP:
            end_games(self.env, illegal)
            return obs, infos
        if not still_on.any():
            return obs, infos
        final = _final_infos(still_on, obs, infos)
        new_obs, new_infos = self.env.reset(options={"reset_mask": still_on})
        return new_obs, {**_merge(infos, new_infos, still_on), **final}


def _merge(infos: Infos, other: Infos, which: NDArray[np.bool_]) -> Infos:
    """``infos`` with the entries of ``which`` from ``other``; the ``_key`` arrays tell of both."""
    merged: Infos = {}
    for key, value in infos.items():
        if key.startswith("_"):
            merged[key] = value | which
        elif key not in ("final_obs", "final_info"):
            merged[key] = np.where(which.reshape(-1, *[1] * (value.ndim - 1)), other[key], value)
    return merged


def _final_infos(which: NDArray[np.bool_], obs: NDArray[Any], infos: Infos) -> Infos:
    """The last observations and infos of the games in ``which``, added to those that ``infos`` may hold already."""
    plain = {key: value for key, value in infos.items() if "final" not in key}
    nothing = {key: np.zeros_like(value) for key, value in plain.items()}
    final_obs = infos.get("final_obs", np.full(len(which), None, dtype=object)).copy()
    for i in np.flatnonzero(which):
        final_obs[i] = obs[i].copy()
    ended = which | infos.get("_final_obs", False)
    info = _merge(infos.get("final_info", nothing), plain, which)
    return {"final_obs": final_obs, "_final_obs": ended, "final_info": info, "_final_info": ended.copy()}
