"""Masked PPO on 2048 in plain sb3-contrib: environments from gymnasium.make alone, no native batch, no bridge.

Run it: python scripts/examples/sb3_ppo.py [STEPS]
"""

import sys
from types import SimpleNamespace
from typing import Any

import gymnasium
import puzzlegym
from puzzlegym.agents import evaluation, policy
from puzzlegym.wrappers import ShapedReward2048
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize


def make_env() -> gymnasium.Env[Any, Any]:
    """One game; through Monitor and all other wrappers, MaskablePPO finds its ``action_masks()``."""
    return ShapedReward2048(gymnasium.make("Puzzle2048-v0"))


def main(steps: int = 250_000) -> None:
    """Train and compare with random play."""
    print(f"puzzlegym {puzzlegym.__version__}: {steps:,} steps of masked PPO on 2048", flush=True)
    venv = VecNormalize(make_vec_env(make_env, n_envs=8, seed=0), norm_obs=False, gamma=0.995)
    model = MaskablePPO("MlpPolicy", venv, n_steps=512, batch_size=512, gamma=0.995, ent_coef=0.005, seed=0)
    model.learn(steps)

    def act(observations: Any, masks: Any, rng: Any) -> Any:
        return model.predict(observations, action_masks=masks, deterministic=True)[0]

    players = SimpleNamespace(name="ppo", act=act), policy.load("Puzzle2048-v0", "random")
    trained, random = (evaluation.evaluate("Puzzle2048-v0", who, episodes=100).score_mean for who in players)
    print(f"mean score {trained:,.0f}, random {random:,.0f}, on the same 100 games")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
