"""PPO steps a second: the bundled configuration on the native batch, and the same PPO as one would wire it up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...agents import ppo
from ...agents.configs import PPO_CONFIGS, PPOConfig, ppo_config
from ...agents.curriculum import make_batch
from ...agents.vec_env import SB3VecEnv, one_by_one
from .rounds import Case

UNIT = "steps/s"
_SINGLES = 64  # environments in the DummyVecEnv
_LEAST_ROLLOUTS = 2


class Training:
    """A learner that goes on where it stopped."""

    def __init__(self, config: PPOConfig, venv: Any) -> None:
        """The first rollout, which fills caches, is not measured."""
        self.learner = ppo.make_learner(config, ppo.normalised(venv, config), seed=0)
        self.rollout = config.n_steps * config.num_envs
        self._learn(1)

    def _learn(self, rollouts: int) -> float:
        before = time.perf_counter()
        self.learner.learn(rollouts * self.rollout, reset_num_timesteps=False)
        return time.perf_counter() - before

    def measure(self, seconds: float) -> float:
        """Environment steps per second, rollouts and updates together."""
        spent, rollouts = 0.0, 0
        while spent < seconds or rollouts < _LEAST_ROLLOUTS:
            spent, rollouts = spent + self._learn(1), rollouts + 1
        return rollouts * self.rollout / spent


def training_cases(env_id: str, seconds: float) -> Iterator[Case]:
    """Both for a puzzle that has a configuration."""
    if env_id not in PPO_CONFIGS:
        return
    config = ppo_config(env_id)
    native = Training(config, SB3VecEnv(make_batch(config)))
    singles = one_by_one(env_id, _SINGLES, config.wrappers, **config.env_arguments)
    usual = Training(replace(config, num_envs=_SINGLES), singles)
    yield Case("training", env_id, "bundled configuration", UNIT, lambda: native.measure(10 * seconds))
    name = f"same on a DummyVecEnv of {_SINGLES}"
    yield Case("training", env_id, name, UNIT, lambda: usual.measure(10 * seconds))
