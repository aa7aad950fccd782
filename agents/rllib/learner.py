"""PPO's learner on rollouts that come with their advantages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.learner import ENTROPY_KEY, POLICY_LOSS_KEY, VF_LOSS_KEY
from ray.rllib.evaluation.postprocessing import Postprocessing
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ..configs import PPOConfig
from ..network_policy import arrays_of, load_network, optimizer_arrays, restore_optimizer
from .module import ACTION_MASK, OBSERVATIONS

Arrays = dict[str, NDArray[Any]]

_COLUMNS = (Columns.ACTION_LOGP, Postprocessing.ADVANTAGES, Postprocessing.VALUE_TARGETS)


class RolloutsToBatch(ConnectorV2):  # type: ignore[misc]
    """All moves of all rollouts as one batch of tensors in random order."""

    def __call__(self, *, rl_module: Any, episodes: list[Any], **_: Any) -> dict[str, Any]:
        """See ``ConnectorV2``."""
        order = torch.from_numpy(np.random.permutation(sum(len(episode) for episode in episodes)))
        device = next(rl_module[DEFAULT_MODULE_ID].parameters()).device

        def column(parts: list[Any]) -> Tensor:
            return torch.from_numpy(np.concatenate(parts))[order].to(device)

        obs = [episode.get_observations(slice(0, len(episode))) for episode in episodes]
        batch = {
            Columns.OBS: {key: column([part[key] for part in obs]) for key in (OBSERVATIONS, ACTION_MASK)},
            Columns.ACTIONS: column([episode.get_actions() for episode in episodes]),
            **{key: column([episode.get_extra_model_outputs(key) for episode in episodes]) for key in _COLUMNS},
        }
        return {DEFAULT_MODULE_ID: batch}


class RolloutLearner(PPOTorchLearner):  # type: ignore[misc]
    """The numbers of a ``PPOConfig`` and its schedules, which follow ``fraction_done`` of the run's own budget."""

    fraction_done = 0.0

    def build(self) -> None:
        """Build RLlib's learner."""
        self._puzzle = PPOConfig.from_dict(self.config.learner_config_dict["config"])
        torch.set_num_threads(self.config.learner_config_dict["threads"])
        super().build()

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """Adam, as in ``ppo.make_learner``."""
        parameters = self.get_parameters(self._module[module_id])
        optimizer = torch.optim.Adam(parameters, eps=1e-5, fused=True)
        self.register_optimizer(
            module_id=module_id, optimizer=optimizer, params=parameters, lr_or_lr_schedule=config.lr
        )

    def before_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        """Set the learning rate."""
        super().before_gradient_based_update(timesteps=timesteps)
        config, remaining = self._puzzle, 1.0 - self.fraction_done
        self._set_optimizer_lr(self._optimizer, lr=config.learning_rate * max(remaining, config.last_rate))

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: dict[str, Any], fwd_out: dict[str, Tensor]
    ) -> Tensor:
        """The clipped surrogate, the values' squared error and the entropy bonus, as in sb3-contrib's MaskablePPO."""
        puzzle = self._puzzle
        values = self.module[module_id].unwrapped().compute_values(batch, fwd_out[Columns.EMBEDDINGS])
        value_loss = F.mse_loss(values, batch[Postprocessing.VALUE_TARGETS])
        log_probs = torch.log_softmax(fwd_out[Columns.ACTION_DIST_INPUTS], 1)
        taken = log_probs.gather(1, batch[Columns.ACTIONS][:, None]).squeeze(1)
        advantages = batch[Postprocessing.ADVANTAGES]
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        ratio = torch.exp(taken - batch[Columns.ACTION_LOGP])
        clipped = ratio.clamp(1 - config.clip_param, 1 + config.clip_param)
        policy_loss = -torch.min(advantages * ratio, advantages * clipped).mean()
        entropy = -(log_probs.exp() * log_probs).sum(1).mean()
        figures = {POLICY_LOSS_KEY: policy_loss, VF_LOSS_KEY: value_loss, ENTROPY_KEY: entropy}
        self.metrics.log_dict(figures, key=module_id, window=1)
        bonus = puzzle.ent_coef * (1 + self.fraction_done * (puzzle.last_entropy - 1))
        loss: Tensor = policy_loss + puzzle.vf_coef * value_loss - bonus * entropy
        return loss

    def apply_gradients(self, gradients_dict: dict[Any, Tensor]) -> None:
        """One step of the optimiser, without RLlib's look for NaN in every gradient: a seventh of the time."""
        for ref, grad in gradients_dict.items():
            self._params[ref].grad = grad
        self._optimizer.step()

    @property
    def network(self) -> nn.Module:
        """The network that learns."""
        network: nn.Module = self.module[DEFAULT_MODULE_ID].unwrapped().net
        return network

    def restore(self, weights: Arrays, optimizer: Arrays) -> None:
        """Fill network and optimiser; without arrays of the latter it begins anew."""
        load_network(self.network, weights, Path("the run"))
        if optimizer:
            restore_optimizer(self._optimizer, optimizer)

    def arrays(self) -> tuple[Arrays, Arrays]:
        """Inverse of ``restore``."""
        return arrays_of(self.network), optimizer_arrays(self._optimizer)

    @property
    def _optimizer(self) -> torch.optim.Optimizer:
        optimizer: torch.optim.Optimizer
        (optimizer,) = self._named_optimizers.values()
        return optimizer

    def postprocess_gradients(self, gradients_dict: dict[Any, Tensor]) -> dict[Any, Tensor]:
        """Clip; in the ``critic_share`` of the budget only the last layer of the values learns, see ``ppo.Learner``."""
        if self.fraction_done < self._puzzle.critic_share:
            kept = {self.get_param_ref(parameter) for parameter in self.network.value.parameters()}  # type: ignore[union-attr]
            gradients_dict = {ref: grad if ref in kept else grad * 0 for ref, grad in gradients_dict.items()}
        return super().postprocess_gradients(gradients_dict)  # type: ignore[no-any-return]
