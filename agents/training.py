"""A training run: environment, learner, budget, checkpoints, logs. It prints nothing; a ``Reporter`` does."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import tensorboard  # noqa: F401  (missing, it is an ImportError here, but a failed assertion in stable-baselines3)
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure

from . import logs, ppo, saved
from .configs import PPOConfig
from .curriculum import Backward, Lessons, Ranks
from .errors import AgentError
from .network_policy import load_network
from .runs import Budget, Progress, Reporter, card_of, versions
from .seeds import stream_seeds
from .vec_env import SB3VecEnv

CHECKPOINT_SECONDS = 30.0
TENSORBOARD = "tensorboard"


class Run:
    """One run in its folder ``out``: ``agent.zip`` (last checkpoint), ``log.csv``, TensorBoard files."""

    def __init__(self, config: PPOConfig, budget: Budget, seed: int, out: Path, start: Path | None = None) -> None:
        """A fresh run; see ``resume``. ``start``: a saved agent whose network is learned further.

        Raises OSError for a folder that cannot be written, AgentError for an agent with another network.
        """
        self.config, self.budget, self.seed, self.out, self.origin = config, budget, seed, out, saved.origin(start)
        self.lessons = Lessons(config, seed)
        bridge = SB3VecEnv(self.lessons.batch)
        self.venv = ppo.normalised(bridge, config)
        self.learner = ppo.make_learner(config, self.venv, seed)
        if start:
            load_network(ppo.network_of(self.learner), saved.load_weights(start), start)
        (out / TENSORBOARD).mkdir(parents=True, exist_ok=True)
        self.progress = Progress()
        self.stop = False
        self._seconds_before = 0.0
        self._steps_before = 0

    @classmethod
    def resume(cls, path: Path, budget: Budget | None = None, env_id: str | None = None) -> Run:
        """Go on with a saved run. Optimiser, schedule, normaliser, curriculum and random states are restored; the
        games that were under way are not: new ones begin. Raises AgentError for anything that is no saved run.
        """
        folder = saved.run_folder(path)
        card, weights, arrays = saved.load_card(path, env_id), saved.load_weights(path), saved.load_trainer(path)
        try:
            config = PPOConfig.from_dict(card["config"])
            run = cls(config, budget or Budget(**card["budget"]), int(card["seed"]), folder)
            load_network(ppo.network_of(run.learner), weights, path)
            run.origin = saved.same_origin(card)
            ppo.restore_trainer(run.learner, run.venv, arrays)
            run.learner.num_timesteps = run._steps_before = run.progress.steps = int(card["steps"])
            run._seconds_before = float(card["seconds"])
            if run.curriculum:
                run.curriculum.load(card["curriculum"])
        except (AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
            if isinstance(error, AgentError):
                raise
            raise AgentError(f"{path} cannot be resumed by this version ({error})") from None
        return run

    @property
    def finished(self) -> bool:
        """Is the budget used up?"""
        return self.budget.fraction(self.learner.num_timesteps, self._seconds_before) >= 1.0

    def train(self, reporter: Reporter) -> None:
        """Learn until the budget is used up or ``stop`` is set, then save."""
        self.learner.set_logger(configure(str(self.out / TENSORBOARD), ["tensorboard"]))
        self.venv.seed(int(stream_seeds("train", self.seed + self._steps_before, self.config.num_envs)[0]))
        self.lessons.restart()
        callback = _Callback(self, reporter)
        # The learner's own total is out of reach: the budget of the run ends it.
        self.learner.learn(10**15, callback=callback, reset_num_timesteps=False, tb_log_name="")
        self.save()

    @property
    def curriculum(self) -> Ranks | Backward | None:
        """What decides how games start, if anything does."""
        return self.lessons.curriculum

    def after_step(self, infos: list[dict[str, Any]], dones: Any) -> None:
        """Book-keeping after each step of the batch."""
        self.lessons.ended({int(row): infos[row] for row in np.flatnonzero(dones)})

    def measure(self, started: float) -> Progress:
        """Bring ``progress`` up to date; ``started``: when this session began (``time.perf_counter``)."""
        elapsed = time.perf_counter() - started
        progress = self.progress
        progress.steps, progress.seconds = self.learner.num_timesteps, self._seconds_before + elapsed
        progress.rate = (progress.steps - self._steps_before) / max(elapsed, 1e-9)
        progress.fraction = self.budget.fraction(progress.steps, progress.seconds)
        self.learner.fraction_done = progress.fraction
        return progress

    def save(self) -> None:
        """Write ``agent.zip`` atomically. Raises OSError with the old file untouched."""
        weights = ppo.weights_of(self.learner)
        saved.save(self.out / saved.FILE, self.card(), weights, ppo.trainer_arrays(self.learner, self.venv))

    def card(self) -> dict[str, Any]:
        """The agent's JSON card."""
        more = {
            "steps": self.learner.num_timesteps,
            "curriculum": self.curriculum.state() if self.curriculum else None,
            "versions": _versions(),
        }
        return card_of(self, "masked PPO", self.lessons.figures(), **self.origin, **more)

    def log(self) -> None:
        """One row of figures into ``log.csv`` and TensorBoard."""
        figures = self.lessons.figures()
        if not figures:
            return
        logs.append(self.out, self.progress.steps, self.progress.seconds, figures)
        for name, value in figures.items():
            self.learner.logger.record(f"games/{name}", value)


class _Callback(BaseCallback):
    """Ties a run to SB3's loop: budget, figures, checkpoints between rollouts."""

    def __init__(self, run: Run, reporter: Reporter) -> None:
        super().__init__()
        self.run, self.reporter = run, reporter
        self.started = self.saved = time.perf_counter()

    def _on_training_start(self) -> None:
        self.run.lessons.began()

    def _on_step(self) -> bool:
        self.run.after_step(self.locals["infos"], self.locals["dones"])
        progress = self.run.measure(self.started)
        self.reporter.update(progress)
        return not self.run.stop and progress.fraction < 1.0

    def _on_rollout_end(self) -> None:
        self.run.progress.figures = self.run.lessons.figures()
        self.run.log()

    def _on_training_end(self) -> None:
        self._on_rollout_end()  # SB3 leaves the last rollout where the budget ends

    def _on_rollout_start(self) -> None:
        if time.perf_counter() - self.saved > CHECKPOINT_SECONDS:
            self.run.measure(self.started)
            self.run.save()
            self.saved = time.perf_counter()


def _versions() -> dict[str, str]:
    import numba
    import sb3_contrib
    import stable_baselines3
    import torch

    return versions(gymnasium, numba, np, sb3_contrib, stable_baselines3, torch)
