"""Masked DQN on 2048 in Tianshou 2 (tested with 2.0.1), with a network of this package that judges afterstates.

Run it: python scripts/examples/tianshou_dqn.py [STEPS]
"""

import sys
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import puzzlegym
import torch
from puzzlegym.agents import evaluation, networks, policy
from puzzlegym.wrappers import MaskInObservation, ShapedReward2048
from tianshou.algorithm.modelfree.dqn import DQN, DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Batch, Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams


def make_env() -> gymnasium.Env[Any, Any]:
    """One game with observations of ``obs`` and ``mask``: Tianshou's policies do the masking."""
    return MaskInObservation(ShapedReward2048(gymnasium.make("Puzzle2048-v0")), preset="tianshou")


class QNet(networks.AfterstateNet):
    """The logits of the package's network serve as values of the moves."""

    def forward(self, obs: Any, state: Any = None, info: Any = None) -> Any:
        """As Tianshou calls its models."""
        return super().forward(torch.as_tensor(obs), torch.ones(len(obs), 4, dtype=torch.bool))[0], state


def main(steps: int = 50_000) -> None:
    """Train and compare with random play."""
    print(f"puzzlegym {puzzlegym.__version__}: {steps:,} steps of masked DQN on 2048", flush=True)
    envs = DummyVectorEnv([make_env] * 32)
    for seed in (envs.seed, np.random.seed, torch.manual_seed):  # Tianshou explores by numpy's global generator
        seed(0)
    player = DiscreteQLearningPolicy(model=QNet(), action_space=make_env().action_space, eps_training=0.02)
    algorithm = DQN(policy=player, optim=AdamOptimizerFactory(lr=1e-3), gamma=0.99, target_update_freq=250)
    collector = Collector(algorithm, envs, VectorReplayBuffer(50_000, 32), exploration_noise=True)
    collector.reset()
    budget = {"max_epochs": 1, "epoch_num_steps": steps, "collection_step_num_env_steps": 256, "batch_size": 256}
    how = {"update_step_num_gradient_steps_per_sample": 1 / 16, "show_progress": False, "verbose": False}
    algorithm.run_training(OffPolicyTrainerParams(training_collector=collector, **budget, **how))

    def act(observations: Any, masks: Any, rng: Any) -> Any:
        return player(Batch(obs=Batch(obs=observations, mask=masks), info={})).act

    players = SimpleNamespace(name="dqn", act=act), policy.load("Puzzle2048-v0", "random")
    trained, random = (evaluation.evaluate("Puzzle2048-v0", who, episodes=100).score_mean for who in players)
    print(f"mean score {trained:,.0f}, random {random:,.0f}, on the same 100 games")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
