"""A worker of RLlib that plays a whole native batch and sends its rollouts as arrays.

RLlib's own runner keeps a Python object per game and handles every move of every game in Python.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import ray
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer
from ray.rllib.evaluation.postprocessing import Postprocessing
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED, NUM_ENV_STEPS_SAMPLED_LIFETIME, SAMPLE_TIMER

from ...wrappers import MaskInObservationVector
from ..configs import PPOConfig
from ..curriculum import Lessons
from ..rollouts import Rollout, Rollouts
from ..seeds import stream_seeds
from .module import ACTION_MASK, OBSERVATIONS

ENV = "puzzlegym"
_APART = 1_000_003  # between the seeds of two workers


class _Batch(MaskInObservationVector):
    """The training batch with its masks in the observation, as RLlib's spaces want it, and the books beside it."""

    def __init__(self, lessons: Lessons) -> None:
        super().__init__(lessons.batch, "rllib")
        self.lessons = lessons


def make_env(context: Any) -> _Batch:
    """What RLlib calls in every worker, for ``gym_env_vectorize_mode="vector_entry_point"``.

    ``context``: ``config`` (``PPOConfig.as_dict``), ``seed`` and ``num_envs``.
    """
    config = replace(PPOConfig.from_dict(context["config"]), num_envs=context["num_envs"])
    return _Batch(Lessons(config, context["seed"]))


class RolloutRunner(SingleAgentEnvRunner):  # type: ignore[misc]
    """Plays ``rollout_fragment_length`` moves of all its games at once, and says what their games came to."""

    config: Any

    def make_env(self) -> None:
        """Make the batch by RLlib's way, and begin to play on it."""
        torch.set_num_threads(1)  # one core for each worker: the batch is what makes it fast
        self.config = self.config.copy(copy_frozen=False)
        context = self.config.env_config
        context["seed"] += _APART * self.worker_index  # RLlib does not tell the creator which worker it is in
        if ray.get_runtime_context().was_current_actor_reconstructed:
            context["seed"] += time.time_ns() % _APART  # other games than those of the worker that was lost
        super().make_env()
        batch = self.env.env
        config = replace(PPOConfig.from_dict(context["config"]), num_envs=batch.num_envs)
        seed = stream_seeds("train", context["seed"] + context["steps"], 1)[0]
        self.rollouts = Rollouts(config, batch.env, batch.lessons, int(seed))
        if context["state"]:
            self.rollouts.load(context["state"])

    def sample(self, **_: Any) -> list[SingleAgentEpisode]:
        """One rollout; its moves, each of which stands for itself, are one after the other in one episode."""
        with self.metrics.log_time(SAMPLE_TIMER):
            steps = self.config.get_rollout_fragment_length(self.worker_index)
            rollout = self.rollouts.play(self.module.net, steps)
        moves = len(rollout.actions)
        self.metrics.log_value(NUM_ENV_STEPS_SAMPLED, moves, reduce="sum")
        self.metrics.log_value(NUM_ENV_STEPS_SAMPLED_LIFETIME, moves, reduce="lifetime_sum")
        return [episode_of(rollout)]

    def get_metrics(self) -> Any:
        """RLlib's own figures; those of the games are in ``report``."""
        return self.metrics.reduce()

    def report(self) -> dict[str, Any]:
        """Figures of the last games, illegal moves so far, and what is needed to go on from here."""
        rollouts = self.rollouts
        return {
            "figures": rollouts.lessons.figures(),
            "illegal_moves": rollouts.illegal_moves,
            "state": rollouts.state(),
        }


def bring_up(*, algorithm: Any, env_runner_group: Any, env_runner_indices: list[int], **_: Any) -> None:
    """Give workers that were lost and started anew what the others have learned of rewards and difficulty."""
    state = algorithm.worker_state
    if state:
        env_runner_group.foreach_env_runner(
            lambda runner: runner.rollouts.load(state), remote_worker_ids=env_runner_indices, local_env_runner=False
        )


def episode_of(rollout: Rollout) -> SingleAgentEpisode:
    """A rollout as RLlib passes it on: it has one observation more than actions."""
    return SingleAgentEpisode(
        observations=_column({OBSERVATIONS: _and_one(rollout.boards), ACTION_MASK: _and_one(rollout.masks)}),
        actions=_column(rollout.actions),
        rewards=_column(rollout.rewards),
        infos=_column(np.zeros(len(rollout.actions) + 1, dtype=np.bool_)),
        extra_model_outputs={
            Columns.ACTION_LOGP: _column(rollout.log_probs),
            Postprocessing.ADVANTAGES: _column(rollout.advantages),
            Postprocessing.VALUE_TARGETS: _column(rollout.returns),
        },
        len_lookback_buffer=0,
    )


def _and_one(array: Any) -> Any:
    return np.concatenate([array, array[-1:]])


def _column(data: Any) -> InfiniteLookbackBuffer:
    return InfiniteLookbackBuffer(data, lookback=0)
