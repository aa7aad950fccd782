"""A training run on RLlib: workers that may be lost, here or on a cluster, and the agent's own file as checkpoint."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import gymnasium
import numba
import numpy as np
import ray
import torch
from ray.exceptions import RayError
from ray.rllib.algorithms.ppo import PPOConfig as RLlibConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED, TIMERS
from ray.tune.registry import register_env
from torch.utils.tensorboard import SummaryWriter

from .. import logs, saved
from ..configs import PPOConfig
from ..errors import AgentError
from ..network_policy import arrays_of, load_network
from ..networks import build
from ..ray_work import connected, hushed
from ..runs import Budget, Progress, Reporter, card_of, versions
from .learner import Arrays, RolloutLearner, RolloutsToBatch
from .module import MaskedModule
from .runner import ENV, RolloutRunner, bring_up, make_env

ALGORITHM = "RLlib PPO"
CHECKPOINT_SECONDS = 30.0
_LOST = 5  # learners that may be lost one after the other before the run gives up
_LEAST_WINDOW = 50  # games of a worker by which its curriculum moves on
_TIMERS = {"sampling": "env_runner_sampling_timer", "learning": "learner_update_timer", "weights": "synch_weights"}


@dataclass(frozen=True)
class Cluster:
    """Where a run works: ``address`` (None: a Ray of its own), workers that play, learners (0: in this process), and
    GPUs for each learner.
    """

    address: str | None = None
    env_runners: int = 2
    learners: int = 0
    gpus: float = 0

    def __post_init__(self) -> None:
        """Raise ValueError for numbers that make no sense."""
        if self.env_runners < 1:
            raise ValueError(f"--env-runners must be at least 1, not {self.env_runners}")
        if self.learners < 0 or self.gpus < 0:
            raise ValueError("--learners and --gpus must not be negative")
        if self.address and self.address.startswith("ray://"):
            raise ValueError(f"--address is auto or HOST:PORT, from a node of the cluster, not {self.address!r}")

    @property
    def cpus(self) -> int:
        """That its workers ask for."""
        return self.env_runners + (self.learners if not self.gpus else 0)

    def check(self) -> None:
        """Raise ValueError if the Ray that is connected can never have room for it."""
        there = ray.cluster_resources()
        gpus = self.gpus * max(1, self.learners)
        for name, wanted in (("CPU", float(self.cpus)), ("GPU", gpus)):
            if wanted > there.get(name, 0.0):
                raise ValueError(
                    f"--env-runners {self.env_runners} --learners {self.learners} --gpus {self.gpus:g} need {wanted:g} "
                    f"{name}s, but Ray has {there.get(name, 0.0):g}"
                )


class _LearnerLostError(ConnectionError):
    """A process that learns is no more."""


@dataclass
class _Report:
    """What the workers said last."""

    figures: dict[str, float] = field(default_factory=dict)
    illegal_moves: int = 0
    state: dict[str, Any] | None = None


class RLlibRun:
    """One run in its folder ``out``: ``agent.zip`` (last checkpoint), ``log.csv``, TensorBoard files.

    The checkpoint is the trained agent itself with the optimiser's state and that of the curriculum, written by this
    process: no worker needs to see the folder.
    """

    def __init__(
        self,
        config: PPOConfig,
        budget: Budget,
        seed: int,
        out: Path,
        start: Path | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        """A fresh run; see ``resume``. ``start``: a saved agent whose network is learned further.

        Raises OSError for a folder that cannot be written, AgentError for an agent with another network, ValueError for
        a configuration with a teacher.
        """
        if config.teacher:
            raise ValueError("rllib-ppo has no teacher: choose another --config, or --algo ppo")
        self.config, self.budget, self.seed, self.out, self.origin = config, budget, seed, out, saved.origin(start)
        self.cluster = cluster or Cluster()
        torch.manual_seed(seed)
        self.network = build(config.network, config.network_arguments)
        if start:
            load_network(self.network, saved.load_weights(start), start)
        out.mkdir(parents=True, exist_ok=True)
        self.progress, self.stop = Progress(), False
        self._optimizer: Arrays = {}
        self._seconds_before = 0.0
        self._report, self.timers, self._healthy = _Report(), dict[str, float](), 0

    @classmethod
    def resume(
        cls,
        path: Path,
        budget: Budget | None = None,
        env_id: str | None = None,
        cluster: Mapping[str, Any] | None = None,
    ) -> RLlibRun:
        """Go on with a saved run; ``cluster``: what is to be another than before, by the names of ``Cluster``.

        Weights, optimiser, scale of the rewards and curriculum are restored, games are new ones. Raises AgentError for
        what is no such run.
        """
        folder, card, weights = saved.run_folder(path), saved.load_card(path, env_id), saved.load_weights(path)
        try:
            config = PPOConfig.from_dict(card["config"])
            there = Cluster(**{**card["cluster"], "address": None, **(cluster or {})})
            run = cls(config, budget or Budget(**card["budget"]), int(card["seed"]), folder, cluster=there)
            load_network(run.network, weights, path)
            run._optimizer, run.origin = saved.load_trainer(path), saved.same_origin(card)
            run.progress.steps = int(card["steps"])
            run.progress.seconds = run._seconds_before = float(card["seconds"])
            run._report = _Report(card["training_figures"], int(card["illegal_moves"]), card["worker_state"])
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            if isinstance(error, AgentError):
                raise
            raise AgentError(f"{path} cannot be resumed by this version ({error})") from None
        return run

    @property
    def finished(self) -> bool:
        """Is the budget used up?"""
        return self.budget.fraction(self.progress.steps, self._seconds_before) >= 1.0

    @property
    def illegal_moves(self) -> int:
        """That the workers have made so far, those of lost ones left out."""
        return self._report.illegal_moves

    def train(self, reporter: Reporter) -> None:
        """Learn until the budget is used up or ``stop`` is set, then save.

        Lost workers come back by themselves; where a learner is lost, all begin again from the last checkpoint.
        """
        illegal_before, lost = self._report.illegal_moves, 0
        with connected(self.cluster.address or "", self.cluster.cpus):
            self.cluster.check()
            with self._tensorboard() as board:
                while True:
                    try:
                        with self._algorithm() as algorithm:
                            for _ in self._iterations(algorithm, reporter, illegal_before):
                                self._log(board)
                                lost = 0
                        return
                    except _LearnerLostError:
                        lost, self.progress.lost = lost + 1, self.progress.lost + 1
                        if lost > _LOST:
                            raise

    def _iterations(self, algorithm: Any, reporter: Reporter, illegal_before: int) -> Iterator[None]:
        """Iterate, with a checkpoint now and then and at the end."""
        started, before = time.perf_counter(), self.progress.seconds
        steps_before, saved_at = self.progress.steps, started
        while not self.stop and self.progress.fraction < 1.0:
            self.progress.steps += self._iterate(algorithm, illegal_before)
            elapsed = time.perf_counter() - started
            self.progress.seconds = before + elapsed
            self.progress.rate = (self.progress.steps - steps_before) / elapsed
            self.progress.fraction = self.budget.fraction(self.progress.steps, self.progress.seconds)
            self.progress.figures = self._report.figures
            reporter.update(self.progress)
            yield
            if time.perf_counter() - saved_at > CHECKPOINT_SECONDS:
                self._fetch(algorithm)
                self.save()
                saved_at = time.perf_counter()
        self._fetch(algorithm)
        self.save()

    def _iterate(self, algorithm: Any, illegal_before: int) -> int:
        """One rollout of every worker and what is learned from them; returns the number of moves."""
        fraction = self.progress.fraction
        _of_learners(algorithm, lambda learner: setattr(learner, "fraction_done", fraction))
        try:
            result = algorithm.train()
        except (RayError, IndexError) as error:  # RLlib looks for the first of no answers
            if not self.cluster.learners:
                raise
            raise _LearnerLostError("learners were lost again and again") from error
        reports = algorithm.env_runner_group.foreach_env_runner(
            lambda runner: runner.report(), local_env_runner=False, timeout_seconds=60.0
        )
        if reports:
            illegal = illegal_before + sum(report["illegal_moves"] for report in reports)
            state = algorithm.worker_state = reports[0]["state"]
            self._report = _Report(_mean([report["figures"] for report in reports]), illegal, state)
        healthy = algorithm.env_runner_group.num_healthy_remote_workers()
        self.progress.lost += max(0, self._healthy - healthy)
        self._healthy = healthy
        self.timers = {name: float(result[TIMERS].get(key, 0.0)) for name, key in _TIMERS.items()}
        return int(result[ENV_RUNNER_RESULTS].get(NUM_ENV_STEPS_SAMPLED, 0))

    @contextlib.contextmanager
    def _algorithm(self) -> Iterator[Any]:
        """RLlib's algorithm with the network and the optimiser of this run."""
        register_env(ENV, make_env)
        with _quiet():
            algorithm: Any = self._rllib_config().build_algo()
        _remove_empty(algorithm.logdir)
        algorithm.worker_state, self._healthy = self._report.state, self.cluster.env_runners
        try:
            weights, optimizer = arrays_of(self.network), self._optimizer
            _of_learners(algorithm, lambda learner: learner.restore(weights, optimizer))
            algorithm.env_runner_group.sync_weights(
                from_worker_or_learner_group=algorithm.learner_group, inference_only=True
            )
            yield algorithm
        finally:
            algorithm.stop()

    def _rllib_config(self) -> Any:
        config, cluster = self.config, self.cluster
        env_config = {
            "config": _share(config, cluster.env_runners).as_dict(),
            "seed": self.seed,
            "steps": self.progress.steps,
            "state": self._report.state,
        }
        model = {"network": config.network, "network_arguments": config.network_arguments, "board": _board(config)}
        spec = RLModuleSpec(module_class=MaskedModule, model_config=model)
        made: Any = RLlibConfig().environment(ENV, env_config=env_config)
        made = made.env_runners(
            env_runner_cls=RolloutRunner,
            num_env_runners=cluster.env_runners,
            num_envs_per_env_runner=_games(config, cluster.env_runners),
            rollout_fragment_length=config.n_steps,
            gym_env_vectorize_mode="vector_entry_point",
        )
        threads = 1 if cluster.learners else torch.get_num_threads()  # in this process while the workers wait
        made = made.learners(
            num_learners=cluster.learners,
            num_gpus_per_learner=cluster.gpus,
            learner_class=RolloutLearner,
            learner_connector=lambda *_: [RolloutsToBatch()],
            add_default_connectors_to_learner_pipeline=False,
            learner_config_dict={"config": config.as_dict(), "threads": threads},
        )
        made = made.training(
            train_batch_size_per_learner=self._moves // max(1, cluster.learners),
            minibatch_size=config.batch_size // max(1, cluster.learners),
            num_epochs=config.n_epochs,
            lr=config.learning_rate,
            gamma=config.gamma,
            lambda_=config.gae_lambda,
            clip_param=0.2,
            use_kl_loss=False,
            grad_clip=config.max_grad_norm,
            grad_clip_by="global_norm",
        )
        made = made.fault_tolerance(restart_failed_env_runners=True, delay_between_env_runner_restarts_s=1.0)
        made = made.callbacks(on_env_runners_recreated=bring_up)
        return made.rl_module(rl_module_spec=spec).debugging(seed=self.seed, log_level="ERROR")

    @property
    def _moves(self) -> int:
        """In one iteration."""
        return _games(self.config, self.cluster.env_runners) * self.cluster.env_runners * self.config.n_steps

    def _fetch(self, algorithm: Any) -> None:
        """Take weights and optimiser over from the learners, which all have the same."""
        weights, self._optimizer = _of_learners(algorithm, lambda learner: learner.arrays())[0]
        load_network(self.network, weights, self.out)

    def save(self) -> None:
        """Write ``agent.zip`` atomically. Raises OSError with the old file untouched."""
        saved.save(self.out / saved.FILE, self.card(), arrays_of(self.network), self._optimizer)

    def card(self) -> dict[str, Any]:
        """The agent's JSON card."""
        more = {
            "illegal_moves": self._report.illegal_moves,
            "cluster": asdict(self.cluster),
            "seconds_of_an_iteration": {name: round(value, 4) for name, value in self.timers.items()},
            "worker_state": self._report.state,
            "versions": versions(gymnasium, numba, np, ray, torch),
        }
        return card_of(self, ALGORITHM, self._report.figures, **self.origin, **more)

    @contextlib.contextmanager
    def _tensorboard(self) -> Iterator[SummaryWriter]:
        with SummaryWriter(str(self.out / "tensorboard")) as board:
            yield board

    def _log(self, board: SummaryWriter) -> None:
        """One row of figures into ``log.csv`` and TensorBoard."""
        progress = self.progress
        if progress.figures:
            logs.append(self.out, progress.steps, progress.seconds, progress.figures)
            for name, value in progress.figures.items():
                board.add_scalar(f"games/{name}", value, progress.steps)


def _games(config: PPOConfig, env_runners: int) -> int:
    """That each worker plays at once: all together at least those of the configuration."""
    return -(-config.num_envs // env_runners)


def _share(config: PPOConfig, env_runners: int) -> PPOConfig:
    """The configuration of one worker: its curriculum goes by fewer games, or it would go on more slowly."""

    def fewer(curriculum: Any) -> Any:
        return curriculum and replace(curriculum, window=max(_LEAST_WINDOW, curriculum.window // env_runners))

    return replace(config, curriculum=fewer(config.curriculum), backward=fewer(config.backward))


def _board(config: PPOConfig) -> tuple[int, ...]:
    """The shape of an observation."""
    shape = gymnasium.make(config.env_id, disable_env_checker=True).observation_space.shape
    assert shape is not None
    return shape


def _mean(figures: list[dict[str, float]]) -> dict[str, float]:
    """The mean of those that there are."""
    told = [one for one in figures if one]
    return {name: float(np.mean([one[name] for one in told])) for name in told[0]} if told else {}


def _of_learners(algorithm: Any, function: Any) -> list[Any]:
    """What ``function`` makes of every learner. Raises _LearnerLostError if one is lost."""
    results = algorithm.learner_group.foreach_learner(function)
    try:
        told = [result.get() for result in results]
        told[0]
    except (RayError, IndexError) as error:
        raise _LearnerLostError("learners were lost again and again") from error
    return told


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep what RLlib writes while it starts from the terminal: it warns of itself, from Python and from C++.

    Raises ValueError with the last line of it where no worker could be started.
    """
    with tempfile.TemporaryFile() as written:
        try:
            with hushed(written):
                yield
        except (RayError, IndexError, RuntimeError) as error:
            written.seek(0)
            lines = written.read().decode(errors="replace").split("\n")
            why = next((line.strip() for line in reversed([*lines, str(error)]) if "Error" in line), str(error))
            raise ValueError(f"no worker could be started ({why}): is puzzlegym installed on every node?") from None
        finally:
            logging.getLogger("ray.rllib").setLevel(logging.CRITICAL)  # a worker that is lost is told in one line


def _remove_empty(folder: str) -> None:
    """RLlib makes an empty folder under the user's home that nothing is written to."""
    with contextlib.suppress(OSError):
        os.rmdir(folder)
        os.rmdir(os.path.dirname(folder))
