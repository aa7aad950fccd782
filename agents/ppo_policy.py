"""MaskablePPO's policy and buffer for networks that give logits and values together."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.buffers import RolloutBuffer
from torch import Tensor, nn

from ..envs.common.rng import Streams
from .networks import build, sample
from .policy import Policy


class PuzzlePolicy(MaskableActorCriticPolicy):
    """One network for logits and values; masked sampling without distribution objects."""

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Any,
        network: str = "one_hot_mlp",
        network_arguments: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """``network``: a name of ``networks.NETWORKS`` and its arguments."""
        self.network, self.network_arguments = network, network_arguments or {}
        self.teacher: Policy | None = None  # plays in the network's place while it imitates
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def _build(self, lr_schedule: Any) -> None:
        self.net: nn.Module = build(self.network, self.network_arguments)
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)  # type: ignore[call-arg]

    def _log_probs(self, obs: Tensor, masks: Any) -> tuple[Tensor, Tensor]:
        """Log-probabilities ``[B, A]`` over the legal actions (all, without masks) and values ``[B, 1]``."""
        if masks is None:
            masks = torch.ones((len(obs), int(self.action_space.n)), dtype=torch.bool)  # type: ignore[attr-defined]
        logits, values = self.net(obs, torch.as_tensor(masks, dtype=torch.bool).view(len(obs), -1))
        return torch.log_softmax(logits, dim=1), values[:, None]

    def forward(
        self, obs: Tensor, deterministic: bool = False, action_masks: NDArray[np.bool_] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Actions ``[B]``, values ``[B, 1]`` and log-probabilities ``[B]``."""
        log_probs, values = self._log_probs(obs, action_masks)
        if self.teacher is not None and action_masks is not None:
            chance = Streams.seeded(torch.randint(2**31, (len(obs),)).tolist())
            actions = torch.as_tensor(self.teacher.act(obs.numpy(), action_masks.reshape(log_probs.shape), chance))
        else:
            actions = log_probs.argmax(1) if deterministic else sample(log_probs)
        return actions, values, log_probs.gather(1, actions[:, None]).squeeze(1)

    def evaluate_actions(
        self, obs: Tensor, actions: Tensor, action_masks: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Values ``[B, 1]``, log-probabilities and entropies of given actions."""
        log_probs, values = self._log_probs(obs, action_masks)
        entropy = -(log_probs.exp() * log_probs).sum(1)
        return values, log_probs.gather(1, actions[:, None]).squeeze(1), entropy

    def predict_values(self, obs: Tensor) -> Tensor:  # type: ignore[override]
        """Values ``[B, 1]``."""
        nothing = torch.zeros((len(obs), int(self.action_space.n)), dtype=torch.bool)  # type: ignore[attr-defined]
        values: Tensor = self.net(obs, nothing)[1]
        return values[:, None]

    def _predict(  # type: ignore[override]
        self, observation: Tensor, deterministic: bool = False, action_masks: NDArray[np.bool_] | None = None
    ) -> Tensor:
        return self.forward(observation, deterministic, action_masks)[0]


class LeanMaskBuffer(MaskableRolloutBuffer):
    """The rollout buffer with masks of one byte, not four: FreeCell has 520 a step."""

    def reset(self) -> None:
        """Empty the buffer."""
        self.mask_dims = int(self.action_space.n)  # type: ignore[attr-defined]
        self.action_masks = np.zeros((self.buffer_size, self.n_envs, self.mask_dims), dtype=np.bool_)
        RolloutBuffer.reset(self)
