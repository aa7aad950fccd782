"""Wrappers that only show the game differently: one encoder serves the single environment and the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from ._batch import AnyEnv, AnyVectorEnv, Infos, PuzzleVectorWrapper, SingleWrapper, Step, VectorStep


class Encoder(Protocol):
    """Turns a batch of observations, with their masks where the environment has any, into another batch."""

    space: gymnasium.Space[Any]  # of one encoded observation

    def encode(self, obs: NDArray[Any], masks: NDArray[Any] | None) -> Any:
        """``[N, ...]`` observations and ``[N, actions]`` masks to an array ``[N, ...]`` or a dict of such."""

    def row(self, batch: Any, i: int) -> Any:
        """One observation of an encoded batch."""


def box_of(space: gymnasium.Space[Any] | None) -> spaces.Box:
    """``space`` itself. Raises TypeError unless it is a Box."""
    if not isinstance(space, spaces.Box):
        raise TypeError(f"expected an environment whose observations are a Box, not {space}")
    return space


class EncodedObservation(SingleWrapper):
    """One environment whose observations go through an encoder."""

    def __init__(self, env: AnyEnv, encoder: Encoder) -> None:
        """A subclass records its arguments and makes the encoder."""
        super().__init__(env)
        self._encoder = encoder
        self.observation_space = encoder.space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Infos]:
        """Start a game."""
        obs, info = self.env.reset(seed=seed, options=options)
        return self._encoded(obs, info), info

    def step(self, action: Any) -> Step:
        """Make a move."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        return self._encoded(obs, info), reward, terminated, truncated, info

    def _encoded(self, obs: NDArray[Any], info: Infos) -> Any:
        mask = info.get("action_mask")
        return self._encoder.row(self._encoder.encode(obs[None], None if mask is None else mask[None]), 0)


class EncodedObservationVector(PuzzleVectorWrapper):
    """A batch whose observations, the final ones included, go through an encoder."""

    def __init__(self, env: AnyVectorEnv, encoder: Encoder) -> None:
        """A subclass makes the encoder."""
        super().__init__(env)
        self._encoder = encoder
        self.single_observation_space = encoder.space
        self.observation_space = batch_space(encoder.space, env.num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Infos]:
        """Start games."""
        obs, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        masks = infos.get("action_mask")
        if masks is not None and not infos["_action_mask"].all():
            masks = self.action_masks()  # the infos speak only of the games that were reset
        return self._encoder.encode(obs, masks), infos

    def step(self, actions: Any) -> VectorStep:
        """Make a move in every game."""
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        if "final_obs" in infos:
            infos = {**infos, "final_obs": self._final(infos)}
        return self._encoder.encode(obs, infos.get("action_mask")), rewards, terminated, truncated, infos

    def _final(self, infos: Infos) -> NDArray[Any]:
        final: NDArray[Any] = np.full(self.num_envs, None, dtype=object)
        masks = infos.get("final_info", {}).get("action_mask")
        for i in np.flatnonzero(infos["_final_obs"]):
            mask = None if masks is None else masks[i : i + 1]
            final[i] = self._encoder.row(self._encoder.encode(infos["final_obs"][i][None], mask), 0)
        return final
