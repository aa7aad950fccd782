"""Masked PPO on 2048 in plain sb3-contrib: the native batch, the bridge, one call to learn.

Run it: python scripts/examples/ppo_2048.py [STEPS]
"""

import sys
from collections.abc import Callable
from typing import Any

import gymnasium
import puzzlegym
from puzzlegym.agents.vec_env import SB3VecEnv
from puzzlegym.wrappers import ShapedReward2048Vector
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import VecNormalize


def mean_score(act: Callable[[Any, Any], int], games: int = 50) -> float:
    """Play one whole game per seed in single environments; ``act(obs, mask)`` chooses the moves."""
    env = gymnasium.make("Puzzle2048-v0")
    scores = []
    for seed in range(10**6, 10**6 + games):
        obs, info = env.reset(seed=seed)
        over = False
        while not over:
            obs, _, terminated, truncated, info = env.step(act(obs, info["action_mask"]))
            over = terminated or truncated
        scores.append(info["score"])
    return float(sum(scores)) / games


def main(steps: int = 400_000) -> None:
    """Train and compare with random play."""
    print(f"puzzlegym {puzzlegym.__version__}: {steps:,} steps of masked PPO on 2048")
    batch = gymnasium.make_vec("Puzzle2048-v0", num_envs=64, autoreset_mode="SameStep")
    venv = VecNormalize(SB3VecEnv(ShapedReward2048Vector(batch), seed=0), norm_obs=False, gamma=0.995)
    model = MaskablePPO("MlpPolicy", venv, n_steps=128, batch_size=1024, gamma=0.995, ent_coef=0.005, seed=0)
    model.learn(steps)

    sampler = gymnasium.make("Puzzle2048-v0").action_space
    sampler.seed(0)
    print(f"random:  mean score {mean_score(lambda obs, mask: sampler.sample(mask=mask)):,.0f}")
    trained = mean_score(lambda obs, mask: int(model.predict(obs, action_masks=mask, deterministic=True)[0]))
    print(f"trained: mean score {trained:,.0f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
