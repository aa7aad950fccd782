"""Masked PPO on 2048 in TorchRL (tested with 0.14.1): the native batch behind its GymWrapper and ActionMask.

Run it: python scripts/examples/torchrl_ppo.py [STEPS]
"""

import sys
from types import SimpleNamespace
from typing import Any

import gymnasium
import puzzlegym
import torch
from puzzlegym.agents import evaluation, policy
from puzzlegym.wrappers import MaskInObservationVector, OneHotObservationVector, ShapedReward2048Vector
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl import collectors, envs, modules, objectives


def main(steps: int = 300_000, games: int = 32) -> None:
    """Train and compare with random play."""
    print(f"puzzlegym {puzzlegym.__version__}: {steps:,} steps of masked PPO on 2048", flush=True)
    torch.manual_seed(0)
    batch = gymnasium.make_vec("Puzzle2048-v0", num_envs=games, autoreset_mode="Disabled")  # TorchRL does the resets
    batch = MaskInObservationVector(OneHotObservationVector(ShapedReward2048Vector(batch)), preset="torchrl")
    env = envs.TransformedEnv(envs.GymWrapper(batch, categorical_action_encoding=True), envs.ActionMask())
    env.set_seed(0)
    net, value = (modules.MLP(16 * 18, outputs, num_cells=[256, 128], activation_class=nn.ReLU) for outputs in (4, 1))
    logits = TensorDictModule(net, in_keys=["observation"], out_keys=["logits"])
    masked = {"distribution_class": modules.MaskedCategorical, "return_log_prob": True}
    actor = modules.ProbabilisticActor(logits, {"logits": "logits", "mask": "action_mask"}, **masked)
    critic = modules.ValueOperator(value)
    loss_module = objectives.ClipPPOLoss(actor, critic, entropy_coeff=0.005, normalize_advantage=True)
    advantage = objectives.value.GAE(gamma=0.99, lmbda=0.95, value_network=critic)
    optimizer = torch.optim.Adam(loss_module.parameters(), lr=5e-4)
    size = {"frames_per_batch": 128 * games, "total_frames": max(1, steps // (128 * games)) * 128 * games}
    for data in collectors.Collector(env, actor, auto_register_policy_transforms=True, **size):
        data = advantage(data).detach().flatten()
        for rows in torch.split(torch.cat([torch.randperm(len(data)) for _ in range(6)]), 512):
            losses = loss_module(data[rows])
            optimizer.zero_grad()
            (losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]).backward()
            nn.utils.clip_grad_norm_(loss_module.parameters(), 0.5)
            optimizer.step()

    def act(observations: Any, masks: Any, rng: Any) -> Any:
        boards = torch.eye(18)[torch.as_tensor(observations).long()].flatten(1)
        with envs.set_exploration_type(envs.ExplorationType.DETERMINISTIC):
            return actor(TensorDict({"observation": boards, "action_mask": masks}, len(masks)))["action"].numpy()

    players = SimpleNamespace(name="ppo", act=act), policy.load("Puzzle2048-v0", "random")
    trained, random = (evaluation.evaluate("Puzzle2048-v0", who, episodes=100).score_mean for who in players)
    print(f"mean score {trained:,.0f}, random {random:,.0f}, on the same 100 games")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
