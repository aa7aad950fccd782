"""Observations as one-hot vectors, for networks without an embedding."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import DTypeLike, NDArray

from ._batch import AnyEnv, AnyVectorEnv
from ._observation import EncodedObservation, EncodedObservationVector, box_of


class _OneHotEncoder:
    def __init__(self, observation: Any, dtype: DTypeLike) -> None:
        box = box_of(observation)
        if box.dtype is None or box.dtype.kind not in "iu" or np.any(box.low < 0):
            raise TypeError(f"expected observations of whole numbers from 0 on, not {box}")
        depth = int(box.high.max()) + 1
        self._rows = np.eye(depth, dtype=dtype)
        self.space: gymnasium.Space[Any] = spaces.Box(0, 1, (*box.shape, depth), self._rows.dtype.type)

    def encode(self, obs: NDArray[Any], masks: NDArray[Any] | None) -> NDArray[Any]:
        return np.asarray(self._rows[obs])

    def row(self, batch: NDArray[Any], i: int) -> NDArray[Any]:
        return np.asarray(batch[i])


class OneHotObservation(EncodedObservation):
    """Every square becomes a one-hot vector over the values that the Box allows.

    2048: ``(4, 4)`` to ``(4, 4, 18)``; FreeCell: ``(20, 8)`` to ``(20, 8, 53)``.

    Example:
        >>> import gymnasium, puzzlegym
        >>> from puzzlegym.wrappers import OneHotObservation
        >>> env = OneHotObservation(gymnasium.make("Puzzle2048-v0"), dtype="float32")
        >>> obs, info = env.reset(seed=0)
        >>> obs.shape, obs.dtype.name, float(obs.sum())
        ((4, 4, 18), 'float32', 16.0)
    """

    def __init__(self, env: AnyEnv, dtype: DTypeLike = "uint8") -> None:
        """``dtype`` of the new observations. TypeError unless the old ones are a Box of whole numbers >= 0."""
        RecordConstructorArgs.__init__(self, dtype=np.dtype(dtype).name)  # specs become JSON
        super().__init__(env, _OneHotEncoder(env.observation_space, dtype))


class OneHotObservationVector(EncodedObservationVector):
    """``OneHotObservation`` for a batch, in every autoreset mode.

    Example:
        >>> import gymnasium, puzzlegym
        >>> from puzzlegym.wrappers import OneHotObservationVector
        >>> venv = OneHotObservationVector(gymnasium.make_vec("FreeCell-v0", num_envs=2))
        >>> venv.reset(seed=0)[0].shape
        (2, 20, 8, 53)
    """

    def __init__(self, env: AnyVectorEnv, dtype: DTypeLike = "uint8") -> None:
        """As for ``OneHotObservation``."""
        super().__init__(env, _OneHotEncoder(env.single_observation_space, dtype))
