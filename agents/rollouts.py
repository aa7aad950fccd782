"""Rollouts of a network with their advantages: what a worker plays and sends to a learner far away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium.wrappers.utils import RunningMeanStd
from numpy.typing import NDArray
from torch import nn

from .configs import PPOConfig
from .curriculum import Lessons
from .logs import final_numbers
from .networks import sample

_LARGEST = 10.0  # scaled reward, as in stable-baselines3's VecNormalize


@dataclass(frozen=True)
class Rollout:
    """``B = T x N`` moves: boards uint8 ``[B, ...]``, masks bool ``[B, A]``, actions int64, the rest float32 ``[B]``.

    ``rewards`` are the scaled ones; ``returns`` are what the values should have been.
    """

    boards: NDArray[np.uint8]
    masks: NDArray[np.bool_]
    actions: NDArray[np.int64]
    rewards: NDArray[np.float32]
    log_probs: NDArray[np.float32]
    advantages: NDArray[np.float32]
    returns: NDArray[np.float32]


class Rollouts:
    """The games of one worker, played on from rollout to rollout.

    Rewards are divided by a running estimate of the returns' deviation, as ``ppo.normalised`` does on one machine.
    """

    def __init__(self, config: PPOConfig, batch: Any, lessons: Lessons, seed: int) -> None:
        """``batch``: that of ``lessons``, possibly wrapped further; ``seed``: of the games, N seeds from there on."""
        self.config, self.lessons, self._batch = config, lessons, batch
        self.illegal_moves = 0
        self._scale = RunningMeanStd(shape=())  # type: ignore[no-untyped-call]
        self._returns = np.zeros(config.num_envs)
        lessons.restart()
        self._boards, infos = batch.reset(seed=seed)
        self._masks: NDArray[np.bool_] = infos["action_mask"].astype(np.bool_)
        lessons.began()

    def play(self, network: nn.Module, steps: int) -> Rollout:
        """Make ``steps`` sampled moves in every game."""
        shape = (steps, self.config.num_envs)
        boards = np.empty((*shape, *self._boards.shape[1:]), dtype=np.uint8)
        masks = np.empty((*shape, self._masks.shape[1]), dtype=np.bool_)
        actions, ends = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.bool_)
        log_probs, rewards, values = (np.empty(shape, dtype=np.float32) for _ in range(3))
        for t in range(steps):
            boards[t], masks[t] = self._boards, self._masks
            actions[t], log_probs[t], values[t] = _choose(network, self._boards, self._masks)
            rewards[t], ends[t] = self._step(network, actions[t])
        last = _values(network, self._boards, self._masks.shape[1])
        advantages = estimate_advantages(rewards, values, last, ends, self.config.gamma, self.config.gae_lambda)
        parts = (boards, masks, actions, rewards, log_probs, advantages, advantages + values)
        return Rollout(*(part.reshape(-1, *part.shape[2:]) for part in parts))  # type: ignore[arg-type]

    def _step(self, network: nn.Module, actions: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """One move in every game: scaled rewards, and which games ended. A game cut off goes on in its value."""
        boards, rewards, terminated, truncated, infos = self._batch.step(actions)
        self._boards, self._masks = boards, infos["action_mask"].view(np.bool_)
        ends = terminated | truncated
        scaled = self._scaled(rewards, ends)
        rows = np.flatnonzero(ends)
        if len(rows):
            legal = np.where(ends, infos["final_info"]["legal"], infos["legal"])
            self.lessons.ended({int(row): final_numbers(infos, int(row)) for row in rows})
        else:
            legal = infos["legal"]
        self.illegal_moves += int((~legal.astype(np.bool_)).sum())
        cut = np.flatnonzero(truncated & ~terminated)
        if len(cut):
            final = np.stack([infos["final_obs"][row] for row in cut])
            scaled[cut] += self.config.gamma * _values(network, final, self._masks.shape[1])
        return scaled, ends

    def _scaled(self, rewards: NDArray[np.float64], ends: NDArray[np.bool_]) -> NDArray[np.float64]:
        self._returns = self._returns * self.config.gamma + rewards
        self._scale.update(self._returns)  # type: ignore[no-untyped-call]
        self._returns[ends] = 0.0
        return np.asarray(np.clip(rewards / np.sqrt(self._scale.var + 1e-8), -_LARGEST, _LARGEST))

    def state(self) -> dict[str, Any]:
        """Plain data to go on from in other games: the scale of rewards, and the curriculum."""
        curriculum = self.lessons.curriculum
        scale = [float(value) for value in (self._scale.mean, self._scale.var, self._scale.count)]
        return {"scale": scale, "curriculum": curriculum.state() if curriculum else None}

    def load(self, state: dict[str, Any]) -> None:
        """Go on from saved data; the games under way are played to their end."""
        mean, var, count = state["scale"]
        self._scale.mean, self._scale.var, self._scale.count = np.array(mean), np.array(var), count
        if self.lessons.curriculum and state["curriculum"]:
            self.lessons.curriculum.load(state["curriculum"])


def estimate_advantages(
    rewards: NDArray[np.float32],
    values: NDArray[np.float32],
    last: NDArray[np.float32],
    ends: NDArray[np.bool_],
    gamma: float,
    gae_lambda: float,
) -> NDArray[np.float32]:
    """Generalised advantage estimates (Schulman et al. 2016), float32 ``[T, N]``.

    ``rewards``, ``values``: float32 ``[T, N]``; ``ends``: bool, did the move end its game; ``last``: float32 ``[N]``,
    the values of the boards after the last move.
    """
    advantages, later = np.zeros_like(rewards), np.zeros_like(last)
    for t in reversed(range(len(rewards))):
        goes_on = ~ends[t]
        following = values[t + 1] if t + 1 < len(values) else last
        surprise = rewards[t] + gamma * goes_on * following - values[t]
        advantages[t] = later = surprise + gamma * gae_lambda * goes_on * later
    return advantages


def _choose(network: nn.Module, boards: NDArray[np.uint8], masks: NDArray[np.bool_]) -> Any:
    """Sampled actions, their log-probabilities, and values, each ``[N]``."""
    with torch.no_grad():
        logits, values = network(torch.from_numpy(boards), torch.from_numpy(masks))
        log_probs = torch.log_softmax(logits, 1)
        actions = sample(log_probs)
    return actions.numpy(), log_probs.gather(1, actions[:, None]).squeeze(1).numpy(), values.numpy()


def _values(network: nn.Module, boards: NDArray[np.uint8], actions: int) -> NDArray[np.float32]:
    """Values ``[N]``, which do not depend on what is legal."""
    with torch.no_grad():
        values: NDArray[np.float32] = network(
            torch.from_numpy(boards), torch.zeros((len(boards), actions), dtype=torch.bool)
        )[1].numpy()
    return values
