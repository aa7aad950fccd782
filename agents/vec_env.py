"""The bridge from the native batch to stable-baselines3's ``VecEnv``.

SB3 asks for masks with ``env_method("action_masks")`` and stacks the answer; here one array answers for all rows. Info
dicts are empty but where an episode ended, as building 256 of them a step costs more than the step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import DummyVecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnv, VecEnvIndices

from .logs import final_numbers
from .wrapping import wrap_single

_AGENT_METHOD = "action_masks"


class SB3VecEnv(VecEnv):
    """A Gymnasium ``VectorEnv`` with action masks as an SB3 ``VecEnv`` (autoreset in the same step).

    Example:
        >>> import puzzlegym
        >>> venv = SB3VecEnv.make("Puzzle2048-v0", num_envs=8, seed=0)
        >>> venv.reset().shape
        (8, 4, 4)
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], seed: int | None = None) -> None:
        """``env`` must be in SAME_STEP autoreset mode; ``seed`` is used by the first ``reset``."""
        if env.metadata.get("autoreset_mode") != AutoresetMode.SAME_STEP:
            raise ValueError('SB3 needs autoreset in the same step: gymnasium.make_vec(..., autoreset_mode="SameStep")')
        self.env = env
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self._seed: int | None = seed
        self._actions: NDArray[Any] = np.zeros(env.num_envs, dtype=np.int64)
        self._masks = np.zeros((env.num_envs, 0), dtype=np.bool_)
        self._returns = np.zeros(env.num_envs)
        self._lengths = np.zeros(env.num_envs, dtype=np.int64)

    @classmethod
    def make(cls, env_id: str, num_envs: int, seed: int | None = None, **kwargs: Any) -> SB3VecEnv:
        """The native batch of ``env_id`` behind the bridge; ``kwargs`` go to ``gymnasium.make_vec``."""
        return cls(gymnasium.make_vec(env_id, num_envs=num_envs, autoreset_mode="SameStep", **kwargs), seed)

    def reset(self) -> NDArray[np.uint8]:
        """First observations, ``[N, ...]``."""
        obs, infos = self.env.reset(seed=self._seed)
        self._seed = None
        self._masks = infos["action_mask"].astype(np.bool_)
        self._returns[:], self._lengths[:] = 0, 0
        return np.asarray(obs)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Game i is seeded ``seed + i`` at the next reset."""
        self._seed = seed
        return [None if seed is None else seed + i for i in range(self.num_envs)]

    def step_async(self, actions: NDArray[Any]) -> None:
        """Remember the actions of the next step."""
        self._actions = actions

    def step_wait(self) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Observations, float32 rewards, dones, and infos that are empty but at the end of an episode."""
        obs, rewards, terminated, truncated, infos = self.env.step(self._actions)
        self._masks = infos["action_mask"].view(np.bool_)
        self._returns += rewards
        self._lengths += 1
        dones = terminated | truncated
        nothing: dict[str, Any] = {}
        sb3_infos = [nothing] * self.num_envs
        for i in np.flatnonzero(dones):
            sb3_infos[i] = self._ending(infos, int(i), bool(truncated[i] and not terminated[i]))
        return obs, rewards.astype(np.float32), dones, sb3_infos

    def _ending(self, infos: dict[str, Any], i: int, timed_out: bool) -> dict[str, Any]:
        """The info dict of game i's last step: SB3's keys, and the game's own numbers."""
        info = final_numbers(infos, i)
        info["terminal_observation"] = infos["final_obs"][i]
        info["TimeLimit.truncated"] = timed_out
        info["episode"] = {"r": float(self._returns[i]), "l": int(self._lengths[i])}
        self._returns[i], self._lengths[i] = 0, 0
        return info

    def close(self) -> None:
        """Close the batch."""
        self.env.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """An attribute of the batch, once per game asked for."""
        value = getattr(self.env, attr_name)
        return [value] * len(self._rows(indices))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set a parameter of the puzzle for all games (indices are refused)."""
        if indices is not None:
            raise ValueError("set_attr sets all games; pass a list with one value per game")
        self.env.set_attr(attr_name, value)  # type: ignore[attr-defined]

    def env_method(self, method_name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any) -> Any:
        """``action_masks``: bool ``[N, actions]``, ready for SB3's stacking; other methods are called once."""
        if method_name == _AGENT_METHOD:
            return self._masks[self._rows(indices)] if indices is not None else self._masks
        result = getattr(self.env, method_name)(*args, **kwargs)
        return [result] * len(self._rows(indices))

    def env_is_wrapped(self, wrapper_class: Any, indices: VecEnvIndices = None) -> list[bool]:
        """No game has a wrapper of its own."""
        return [False] * len(self._rows(indices))

    def _rows(self, indices: VecEnvIndices) -> list[int]:
        if indices is None:
            return list(range(self.num_envs))
        return list(indices) if isinstance(indices, Iterable) else [indices]


def one_by_one(env_id: str, num_envs: int, wrappers: Iterable[str], **arguments: Any) -> DummyVecEnv:
    """The same games as single environments in SB3's own ``VecEnv``, one Python call each: what the bridge replaces."""

    def make() -> gymnasium.Env[Any, Any]:
        env: gymnasium.Env[Any, Any] = wrap_single(gymnasium.make(env_id, **arguments), wrappers)
        return env

    return DummyVecEnv([make] * num_envs)
