"""Masked PPO on an easy FreeCell (only 6 to K are dealt) in plain sb3-contrib.

Run it: python scripts/examples/ppo_freecell.py [STEPS]
"""

import sys
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import puzzlegym
from puzzlegym.agents.vec_env import SB3VecEnv
from puzzlegym.wrappers import NoRepeat, NoRepeatVector, ShapedRewardFreeCellVector
from sb3_contrib import MaskablePPO

START_RANK = 5


def win_rate(act: Callable[[Any, Any], int], games: int = 50) -> float:
    """Play deals 1, 2, ... (training draws others) in single environments; ``act(obs, mask)`` chooses the moves."""
    env = NoRepeat(gymnasium.make("FreeCell-v0", start_rank=START_RANK))
    wins = 0
    for deal in range(1, games + 1):
        obs, info = env.reset(seed=deal, options={"deal": deal})
        over = False
        while not over:
            obs, _, terminated, truncated, info = env.step(act(obs, info["action_mask"]))
            over = terminated or truncated
        wins += info["is_success"]
    return wins / games


def main(steps: int = 100_000) -> None:
    """Train and compare with random play."""
    print(f"puzzlegym {puzzlegym.__version__}: {steps:,} steps of masked PPO on FreeCell from rank {START_RANK + 1} up")
    game: dict[str, Any] = {"start_rank": START_RANK, "deal_range": (32_001, 1_000_000)}
    batch = gymnasium.make_vec("FreeCell-v0", num_envs=32, autoreset_mode="SameStep", **game)
    venv = SB3VecEnv(ShapedRewardFreeCellVector(NoRepeatVector(batch)), seed=0)
    model = MaskablePPO("MlpPolicy", venv, n_steps=64, batch_size=512, gamma=0.99, ent_coef=0.01, seed=0)
    model.learn(steps)

    rng = np.random.default_rng(0)
    print(f"random:  {win_rate(lambda obs, mask: int(rng.choice(np.flatnonzero(mask)))):.0%} won")
    trained = win_rate(lambda obs, mask: int(model.predict(obs, action_masks=mask)[0]))
    print(f"trained: {trained:.0%} won")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
