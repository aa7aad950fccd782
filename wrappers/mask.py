"""The action mask inside the observation, in the shapes that other libraries read it from."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import DTypeLike, NDArray

from ._batch import AnyEnv, AnyVectorEnv
from ._observation import EncodedObservation, EncodedObservationVector, box_of


class Preset(NamedTuple):
    """How one library wants its observation."""

    observation: str  # key of the observation
    mask: str  # key of the mask
    mask_dtype: DTypeLike
    flat: bool  # the observation as a flat float32 vector, for default networks that neither cast nor flatten


PRESETS = {
    "rllib": Preset("observations", "action_mask", np.float32, True),  # ActionMaskingTorchRLModule takes log(mask)
    "tianshou": Preset("obs", "mask", np.bool_, False),
    "torchrl": Preset("observation", "action_mask", np.bool_, True),  # the ActionMask transform, MaskedCategorical
}


class _MaskEncoder:
    def __init__(self, observation: Any, action: Any, preset: str) -> None:
        if preset not in PRESETS:
            raise ValueError(f"unknown preset {preset!r}; accepted: {', '.join(PRESETS)}")
        if not isinstance(action, spaces.Discrete):
            raise TypeError(f"expected an environment with Discrete actions, not {action}")
        self._preset = PRESETS[preset]
        box = box_of(observation)
        if self._preset.flat:
            box = spaces.Box(box.low.ravel().astype(np.float32), box.high.ravel().astype(np.float32), dtype=np.float32)
        mask = spaces.Box(0, 1, (int(action.n),), self._preset.mask_dtype)  # type: ignore[arg-type]
        keys = self._preset.observation, self._preset.mask
        self.space: gymnasium.Space[Any] = spaces.Dict(dict(zip(keys, (box, mask), strict=True)))

    def encode(self, obs: NDArray[Any], masks: NDArray[Any] | None) -> dict[str, NDArray[Any]]:
        if masks is None:
            raise KeyError("the environment gives no info['action_mask']")
        if self._preset.flat:
            obs = obs.reshape(len(obs), -1).astype(np.float32)
        return {self._preset.observation: obs, self._preset.mask: masks.astype(self._preset.mask_dtype)}

    def row(self, batch: dict[str, NDArray[Any]], i: int) -> dict[str, NDArray[Any]]:
        return {key: value[i] for key, value in batch.items()}


class MaskInObservation(EncodedObservation):
    """Observations become dicts of observation and mask.

    | preset | dict |
    |---|---|
    | `"rllib"` | `observations` flat float32, `action_mask` float32 (RLlib's action-masking RLModule) |
    | `"tianshou"` | `obs` as it is, `mask` bool (its networks cast and flatten themselves) |
    | `"torchrl"` | `observation` flat float32, `action_mask` bool (the `ActionMask` transform) |

    Example:
        >>> import gymnasium, puzzlegym
        >>> from puzzlegym.wrappers import MaskInObservation
        >>> env = MaskInObservation(gymnasium.make("Puzzle2048-v0"), preset="rllib")
        >>> obs, info = env.reset(seed=0)
        >>> {key: (value.shape, value.dtype.name) for key, value in obs.items()}
        {'observations': ((16,), 'float32'), 'action_mask': ((4,), 'float32')}
    """

    def __init__(self, env: AnyEnv, preset: str = "rllib") -> None:
        """``env`` has Box observations, Discrete actions and ``info["action_mask"]``. ValueError: unknown preset."""
        RecordConstructorArgs.__init__(self, preset=preset)
        super().__init__(env, _MaskEncoder(env.observation_space, env.action_space, preset))


class MaskInObservationVector(EncodedObservationVector):
    """``MaskInObservation`` for a native batch, in every autoreset mode (TorchRL does its own resets: ``"Disabled"``).

    Example:
        >>> import gymnasium, puzzlegym
        >>> from puzzlegym.wrappers import MaskInObservationVector
        >>> venv = MaskInObservationVector(gymnasium.make_vec("FreeCell-v0", num_envs=3), preset="tianshou")
        >>> obs, infos = venv.reset(seed=0)
        >>> {key: (value.shape, value.dtype.name) for key, value in obs.items()}
        {'obs': ((3, 20, 8), 'uint8'), 'mask': ((3, 520), 'bool')}
    """

    def __init__(self, env: AnyVectorEnv, preset: str = "rllib") -> None:
        """As for ``MaskInObservation``."""
        super().__init__(env, _MaskEncoder(env.single_observation_space, env.single_action_space, preset))
