"""Masked PPO on an easy FreeCell (only 4 to K are dealt) in sb3-contrib, with a network of this package.

Run it: python scripts/examples/ppo_freecell.py [STEPS]
"""

import sys
from types import SimpleNamespace
from typing import Any

import gymnasium
import puzzlegym
from puzzlegym.agents import evaluation, policy
from puzzlegym.agents.ppo_policy import PuzzlePolicy
from puzzlegym.agents.vec_env import SB3VecEnv
from puzzlegym.wrappers import NoRepeatVector, ShapedRewardFreeCellVector
from sb3_contrib import MaskablePPO

START_RANK = 3


def main(steps: int = 120_000) -> None:
    """Train and compare with random play."""
    print(f"puzzlegym {puzzlegym.__version__}: {steps:,} steps of masked PPO on FreeCell from rank {START_RANK + 1} up")
    game: dict[str, Any] = {"start_rank": START_RANK, "deal_range": (32_001, 1_000_000)}  # the others are for the test
    batch = gymnasium.make_vec("FreeCell-v0", num_envs=64, autoreset_mode="SameStep", **game)
    venv = SB3VecEnv(ShapedRewardFreeCellVector(NoRepeatVector(batch)), seed=0)
    network = {"network": "card_afterstate_net", "network_arguments": {"hidden": (128, 64)}}
    numbers: Any = {
        "n_steps": 64,
        "batch_size": 512,
        "n_epochs": 4,
        "learning_rate": 1e-3,
        "gamma": 0.99,
        "ent_coef": 0.01,
    }
    model = MaskablePPO(PuzzlePolicy, venv, policy_kwargs=network, seed=0, device="cpu", **numbers)
    model.learn(steps)

    def act(observations: Any, masks: Any, rng: Any) -> Any:
        return model.predict(observations, action_masks=masks)[0]

    players = SimpleNamespace(name="ppo", act=act, wrappers=("no_repeat",)), policy.load("FreeCell-v0", "random")
    ppo, chance = (evaluation.evaluate("FreeCell-v0", who, episodes=100, start_rank=START_RANK) for who in players)
    print(f"games won {ppo.rates['win'].value:.0%}, random {chance.rates['win'].value:.0%}")
    print(f"cards home {ppo.score_mean:.1f}, random {chance.score_mean:.1f}, on the same 100 games")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
