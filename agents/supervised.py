"""Learning from a teacher: what cloning and distilling have in common. They print nothing; a ``Reporter`` does."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import gymnasium
import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..envs.common.rng import Streams
from . import logs, saved
from .configs import CloneConfig, DistillConfig
from .errors import AgentError
from .network_policy import NetworkPolicy, arrays_of, load_network, optimizer_arrays, restore_optimizer
from .networks import build
from .runs import Budget, Progress, Reporter, card_of, versions
from .seeds import stream_seeds
from .wrapping import wrap_batch

CHECKPOINT_SECONDS = LOG_SECONDS = 30.0
_READ = ("cards_home", "is_success")
Config = TypeVar("Config", CloneConfig, DistillConfig)


class Pupil:
    """Games of the network itself, its moves sampled; positions are taken from them."""

    def __init__(self, config: CloneConfig | DistillConfig, network: nn.Module, seed: int) -> None:
        """``config.num_envs`` games on training deals."""
        arguments = {"autoreset_mode": "Disabled", **config.env_arguments}
        env = gymnasium.make_vec(config.env_id, num_envs=config.num_envs, **arguments)
        self._envs, self._policy = wrap_batch(env, config.play_wrappers), NetworkPolicy("pupil", network, True)
        seeds = stream_seeds("train", seed, config.num_envs)
        self._streams = Streams.seeded(seeds)
        self.obs, _ = self._envs.reset(seed=seeds.tolist())
        self.over = np.zeros(config.num_envs, dtype=np.bool_)

    def play(self) -> list[dict[str, Any]]:
        """A move in every game, new ones in place of those that were over; what became of those that ended."""
        if self.over.any():
            self.obs, _ = self._envs.reset(options={"reset_mask": self.over})
        actions = self._policy.act(self.obs, self.masks(), self._streams)
        self.obs, _, terminated, truncated, infos = self._envs.step(actions)
        self.over = terminated | truncated
        return [{name: infos[name][i].item() for name in _READ} for i in np.flatnonzero(self.over)]

    def masks(self) -> NDArray[np.bool_]:
        """The moves to choose from (bool ``[N, 520]``)."""
        masks: NDArray[np.bool_] = self._envs.action_masks()
        return masks


class SupervisedRun(Generic[Config]):
    """One run in its folder ``out``: ``agent.zip`` (last checkpoint) and ``log.csv``."""

    algorithm: ClassVar[str]

    def __init__(self, config: Config, budget: Budget, seed: int, out: Path, start: Path | None = None) -> None:
        """A fresh run; see ``resume``. ``start``: a saved agent whose network is learned further.

        Raises OSError for a folder that cannot be made, AgentError for an agent with another network.
        """
        self.config: Config = config
        self.budget, self.seed, self.out, self.origin = budget, seed, out, saved.origin(start)
        torch.manual_seed(seed)
        self.network = build(config.network, config.network_arguments)
        if start:
            load_network(self.network, saved.load_weights(start), start)
        out.mkdir(parents=True, exist_ok=True)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=config.learning_rate, eps=1e-5, fused=True)
        self.progress, self.stop = Progress(), False
        self.rng, self.pupil = np.random.default_rng(seed), Pupil(config, self.network, seed)
        self._recent = logs.Recent(config.env_id)
        self._agrees: deque[float] = deque(maxlen=200)
        self._seconds_before, self._steps_before = 0.0, 0

    def restore(self, card: dict[str, Any], path: Path) -> None:
        """Take over the weights, the optimiser and the counts of a saved run. Raises what a damaged one raises."""
        load_network(self.network, saved.load_weights(path), path)
        restore_optimizer(self.optimizer, saved.load_trainer(path))
        self.origin = saved.same_origin(card)
        self.progress.steps = self._steps_before = int(card["steps"])
        self._seconds_before = float(card["seconds"])
        self.rng = np.random.default_rng((self.seed, self._steps_before))

    @property
    def finished(self) -> bool:
        """Is the budget used up?"""
        return self.budget.fraction(self._steps_before, self._seconds_before) >= 1.0

    def collect(self) -> None:
        """Play and label positions; count them in ``progress.steps``."""
        raise NotImplementedError

    def learn(self) -> None:
        """Learn from what was collected."""
        raise NotImplementedError

    def trainer_arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved to go on with."""
        return optimizer_arrays(self.optimizer)

    def train(self, reporter: Reporter) -> None:
        """Learn until the budget is used up or ``stop`` is set, then save."""
        started = logged = checked = time.perf_counter()
        while not self.stop and self.progress.fraction < 1.0:
            self.collect()
            self._anneal()
            self.learn()
            now = time.perf_counter()
            self._measure(now - started)
            if now - logged > LOG_SECONDS:
                self._log()
                logged = now
            if now - checked > CHECKPOINT_SECONDS:
                self.save()
                checked = time.perf_counter()
            reporter.update(self.progress)
        self._log()
        self.save()

    def play(self, moves: int = 1) -> None:
        """So many moves in each of the pupil's games."""
        for _ in range(moves):
            self._recent.add(self.pupil.play())

    def _anneal(self) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.learning_rate * max(1 - self.progress.fraction, self.config.last_rate)

    def descend(self, loss: Tensor, agrees: Tensor) -> None:
        """One step down the gradient; ``agrees`` (bool): where the network's favourite is the teacher's."""
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.network.parameters(), self.config.max_grad_norm)
        self.optimizer.step()
        self._agrees.append(float(agrees.float().mean()))

    def _measure(self, elapsed: float) -> None:
        progress = self.progress
        progress.seconds = self._seconds_before + elapsed
        progress.rate = (progress.steps - self._steps_before) / max(elapsed, 1e-9)
        progress.fraction = self.budget.fraction(progress.steps, progress.seconds)
        progress.figures = self.figures()

    def figures(self) -> dict[str, float]:
        """Of the pupil's last games; and how often the network's favourite is the teacher's move."""
        figures = self._recent.figures()
        return figures | {"agrees": float(np.mean(self._agrees))} if figures and self._agrees else {}

    def _log(self) -> None:
        if figures := self.figures():
            logs.append(self.out, self.progress.steps, self.progress.seconds, figures)

    def save(self) -> None:
        """Write ``agent.zip`` atomically. Raises OSError with the old file untouched."""
        saved.save(self.out / saved.FILE, self.card(), arrays_of(self.network), self.trainer_arrays())

    def card(self) -> dict[str, Any]:
        """The agent's JSON card."""
        more = {"versions": versions(gymnasium, numba, np, torch)}
        return card_of(self, self.algorithm, self.figures(), **self.origin, **more)


def unfit(path: Path, error: Exception) -> AgentError:
    """What to raise where a saved run does not fit this version."""
    return error if isinstance(error, AgentError) else AgentError(f"{path} cannot be resumed by this version ({error})")


# What reading a card or arrays of another version may raise.
UNFIT = (AttributeError, LookupError, TypeError, ValueError, RuntimeError)
