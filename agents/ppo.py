"""Masked PPO (Schulman 2017; masking as in Huang and Ontanon 2020) on sb3-contrib: learner and trained player."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import VecEnv, VecNormalize
from torch import nn
from torch.nn import functional as F  # noqa: N812

from .configs import PPOConfig
from .network_policy import arrays_of, optimizer_arrays, restore_optimizer
from .policy import Policy, load
from .ppo_policy import LeanMaskBuffer, PuzzlePolicy


class Learner(MaskablePPO):
    """MaskablePPO whose schedules follow the run's own budget, steps or minutes, across resumptions.

    With a teacher, the first ``teacher_share`` of the budget is imitation: the teacher plays, and the network learns to
    give its moves the highest probability, and what its games are worth. In the first ``critic_share`` only the last
    layer of the values learns: a network that can play already is not spoilt by values that know nothing.
    """

    fraction_done = 0.0
    entropy_from, entropy_to = 0.0, 0.0
    teacher: Policy | None = None
    teacher_share = 0.0
    critic_share = 0.0

    def _update_current_progress_remaining(self, num_timesteps: int, total_timesteps: int) -> None:
        self._current_progress_remaining = 1.0 - self.fraction_done
        self.ent_coef = self.entropy_from + self.fraction_done * (self.entropy_to - self.entropy_from)

    def collect_rollouts(self, *args: Any, **kwargs: Any) -> bool:
        """Play, by the teacher's moves or the network's own."""
        self._policy.teacher = self.teacher if self.fraction_done < self.teacher_share else None
        return super().collect_rollouts(*args, **kwargs)

    def train(self) -> None:
        """Learn from the games just played: imitate whoever played them, or PPO's update."""
        imitates, judges = self._policy.teacher is not None, self.fraction_done < self.critic_share
        if not imitates and not judges:
            super().train()
            return
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        for _ in range(self.n_epochs):
            for batch in self.rollout_buffer.get(self.batch_size):
                (self._imitate if imitates else self._judge)(batch)

    def _judge(self, batch: Any) -> None:
        """One step of the last layer of the values."""
        values = self._policy.predict_values(batch.observations)
        self.policy.optimizer.zero_grad()
        F.mse_loss(values.flatten(), batch.returns).backward()  # type: ignore[no-untyped-call]
        last = {id(parameter) for parameter in network_of(self).value.parameters()}  # type: ignore[union-attr]
        for parameter in self.policy.parameters():
            if id(parameter) not in last:
                parameter.grad = None
        self.policy.optimizer.step()

    def _imitate(self, batch: Any) -> None:
        """One step of supervised learning: cross-entropy of the moves, squared error of the returns."""
        values, log_probs, _ = self._policy.evaluate_actions(
            batch.observations, batch.actions.long().flatten(), batch.action_masks
        )
        loss = -log_probs.mean() + self.vf_coef * F.mse_loss(values.flatten(), batch.returns)
        self.policy.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
        self.policy.optimizer.step()

    @property
    def _policy(self) -> PuzzlePolicy:
        return cast(PuzzlePolicy, self.policy)


def normalised(venv: VecEnv, config: PPOConfig) -> VecNormalize:
    """``venv`` with rewards divided by a running estimate of the returns' deviation."""
    return VecNormalize(venv, norm_obs=False, gamma=config.gamma)


def make_learner(config: PPOConfig, venv: VecNormalize, seed: int) -> Learner:
    """A fresh learner on ``venv``."""
    learner = Learner(
        PuzzlePolicy,
        venv,
        learning_rate=lambda remaining: config.learning_rate * max(remaining, config.last_rate),
        n_steps=config.n_steps,
        batch_size=config.batch_size,
        n_epochs=config.n_epochs,
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
        ent_coef=config.ent_coef,
        vf_coef=config.vf_coef,
        max_grad_norm=config.max_grad_norm,
        rollout_buffer_class=LeanMaskBuffer,
        policy_kwargs={
            "network": config.network,
            "network_arguments": config.network_arguments,
            "optimizer_kwargs": {"eps": 1e-5, "fused": True},
        },
        seed=seed,
        device="cpu",
    )
    learner.entropy_from, learner.entropy_to = config.ent_coef, config.ent_coef * config.last_entropy
    learner.critic_share = config.critic_share
    if config.teacher:
        learner.teacher, learner.teacher_share = load(config.env_id, config.teacher), config.teacher_share
    return learner


def network_of(learner: Learner) -> nn.Module:
    """The learner's network."""
    network: nn.Module = learner.policy.net  # type: ignore[assignment]
    return network


def weights_of(learner: Learner) -> dict[str, NDArray[Any]]:
    """The network's arrays by name."""
    return arrays_of(network_of(learner))


def trainer_arrays(learner: Learner, venv: VecNormalize) -> dict[str, NDArray[Any]]:
    """Optimiser, reward normaliser and random states as plain arrays."""
    arrays = optimizer_arrays(learner.policy.optimizer)
    arrays["rewards"] = np.array([venv.ret_rms.mean, venv.ret_rms.var, venv.ret_rms.count], dtype=np.float64)
    arrays["torch_rng"] = torch.get_rng_state().numpy()
    _, keys, *rest = np.random.get_state()
    arrays["numpy_rng"], arrays["numpy_rng_rest"] = np.asarray(keys), np.array(rest, dtype=np.float64)
    return arrays


def restore_trainer(learner: Learner, venv: VecNormalize, arrays: dict[str, NDArray[Any]]) -> None:
    """Inverse of ``trainer_arrays``. Raises KeyError or ValueError if arrays are missing or misshapen."""
    restore_optimizer(learner.policy.optimizer, arrays)
    venv.ret_rms.mean, venv.ret_rms.var, venv.ret_rms.count = arrays["rewards"].tolist()
    torch.set_rng_state(torch.as_tensor(arrays["torch_rng"]))
    position, has_gauss, cached = arrays["numpy_rng_rest"].tolist()
    np.random.set_state(("MT19937", arrays["numpy_rng"], int(position), int(has_gauss), cached))
