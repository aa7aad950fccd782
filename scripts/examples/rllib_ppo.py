"""Masked PPO on 2048 in plain RLlib: the native batch as a vector entry point, a module that masks, RLlib for the rest.

Run it: python scripts/examples/rllib_ppo.py [STEPS]   (needs puzzlegym[ray]; tested with ray 2.60.0)
`puzzlegym train Puzzle2048-v0 --algo rllib-ppo` is faster: its workers do not go through Python game by game.
"""

import logging
import sys
from typing import Any

import gymnasium
import ray
from puzzlegym.agents.evaluation import evaluate
from puzzlegym.agents.network_policy import NetworkPolicy
from puzzlegym.agents.policy import load
from puzzlegym.agents.rllib.module import MaskedModule
from puzzlegym.wrappers import MaskInObservationVector, ShapedReward2048Vector
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.tune.registry import register_env

ID = "Puzzle2048-v0"
MODEL = {"network": "afterstate_net", "network_arguments": {"tuples": "pairs", "hidden": (128, 64)}, "board": (4, 4)}


def make(context: dict[str, Any]) -> Any:
    """RLlib calls this in every worker."""
    import puzzlegym  # noqa: F401  # registers the environments there

    batch = gymnasium.make_vec(ID, num_envs=context["num_envs"])
    return MaskInObservationVector(ShapedReward2048Vector(batch), "rllib")


def main(steps: int = 400_000) -> None:
    """Train and compare with random play."""
    logging.getLogger("ray.rllib").setLevel(logging.ERROR)  # it warns of being the new RLlib
    ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    register_env("2048", make)
    config = PPOConfig().environment("2048").rl_module(rl_module_spec=RLModuleSpec(MaskedModule, model_config=MODEL))
    config.env_runners(num_env_runners=2, num_envs_per_env_runner=64, gym_env_vectorize_mode="vector_entry_point")
    config.training(lr=1e-3, gamma=0.995, lambda_=0.9, entropy_coeff=0.01, vf_clip_param=1e9, use_kl_loss=False)
    config.training(train_batch_size=8192, minibatch_size=2048, num_epochs=3, grad_clip=0.5).debugging(seed=0)
    config.fault_tolerance(restart_failed_env_runners=False)
    algorithm, done = config.build_algo(), 0
    while done < steps:
        figures = algorithm.train()["env_runners"]
        done = int(figures["num_env_steps_sampled_lifetime"])
    trained = NetworkPolicy("rllib", algorithm.get_module().net, sample=False)
    score, random = (evaluate(ID, policy, 100).score_mean for policy in (trained, load(ID, "random")))
    print(f"mean score {score:,.0f}, random {random:,.0f}, on the same 100 games")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
