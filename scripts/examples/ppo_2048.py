"""Masked PPO on 2048 in plain sb3-contrib: the native batch, the bridge, one call to learn.

Run it: python scripts/examples/ppo_2048.py [STEPS]
"""

import sys
from types import SimpleNamespace
from typing import Any

import gymnasium
import puzzlegym
from puzzlegym.agents import evaluation, policy
from puzzlegym.agents.vec_env import SB3VecEnv
from puzzlegym.wrappers import ShapedReward2048Vector
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import VecNormalize


def main(steps: int = 400_000) -> None:
    """Train and compare with random play."""
    print(f"puzzlegym {puzzlegym.__version__}: {steps:,} steps of masked PPO on 2048", flush=True)
    batch = gymnasium.make_vec("Puzzle2048-v0", num_envs=64, autoreset_mode="SameStep")
    venv = VecNormalize(SB3VecEnv(ShapedReward2048Vector(batch), seed=0), norm_obs=False, gamma=0.995)
    model = MaskablePPO("MlpPolicy", venv, n_steps=128, batch_size=1024, gamma=0.995, ent_coef=0.005, seed=0)
    model.learn(steps)

    def act(observations: Any, masks: Any, rng: Any) -> Any:
        return model.predict(observations, action_masks=masks, deterministic=True)[0]

    players = SimpleNamespace(name="ppo", act=act), policy.load("Puzzle2048-v0", "random")
    trained, random = (evaluation.evaluate("Puzzle2048-v0", who, episodes=100).score_mean for who in players)
    print(f"mean score {trained:,.0f}, random {random:,.0f}, on the same 100 games")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
