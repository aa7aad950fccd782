"""A run of n-tuple learning: tables, budget, checkpoints, log. It prints nothing; a ``Reporter`` does."""

from __future__ import annotations

import os
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gymnasium
import numba
import numpy as np

from ..envs.common.rng import seed_words
from . import logs, ntuple, saved
from .configs import NTupleConfig
from .errors import AgentError
from .ntuple_player import NTuplePlayer
from .runs import Budget, Progress, Reporter, card_of, versions
from .seeds import stream_seeds

ALGORITHM = "n-tuple TD"
CHECKPOINT_SECONDS = 120.0
LOG_SECONDS = 5.0
WARM_UP = 10_000_000  # moves that one thread learns alone: at first all threads would write to the same entries
CHUNK = 100_000  # moves between looks at the clock
LONGEST = 131_072  # moves of a game, and more than any game has
_RATES = {str(2**k): k for k in (11, 12, 13, 14, 15)}  # tiles that the figures tell of


class _Worker:
    """What one thread plays with: generator, scratch, and the scores of its last games."""

    def __init__(self, seed: int) -> None:
        self.state = np.array([seed_words([seed])[0], 0], dtype=np.uint64)
        self.boards = np.zeros(ntuple.SYMMETRIES, dtype=np.uint64)
        low, high = np.zeros((2, LONGEST), dtype=np.uint64)
        self.trace = ntuple.Trace(low, high, np.zeros(LONGEST, dtype=np.int64))
        self.scores, self.tops = np.zeros((2, CHUNK // 10), dtype=np.int64)


def memory(config: NTupleConfig) -> int:
    """Bytes that a run needs: the table, with two more numbers for each entry if it learns by coherence."""
    columns = 3 if config.coherent else 1
    return ntuple.entries(ntuple.NETWORKS[config.network]) * columns * np.dtype(np.float32).itemsize


def free_memory() -> int | None:
    """Bytes of memory that are free on this machine; None where the system does not say."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def check(config: NTupleConfig) -> None:
    """Raise ValueError, in one line, for a configuration that cannot be or that does not fit into memory."""
    if config.network not in ntuple.NETWORKS:
        raise ValueError(f"unknown n-tuple network {config.network!r}: use {', '.join(ntuple.NETWORKS)}")
    if config.threads < 1:
        raise ValueError(f"threads must be 1 or more, not {config.threads}")
    if not 0 < config.rate <= 1:
        raise ValueError(f"the rate must be above 0 and at most 1, not {config.rate}")
    if not 0 <= config.decay <= 1:
        raise ValueError(f"the decay (lambda) must be from 0 to 1, not {config.decay}")
    needed, free = memory(config), free_memory()
    if free is not None and needed > free:
        raise ValueError(
            f"the network {config.network} needs {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free: "
            f"choose a smaller one of {', '.join(ntuple.NETWORKS)}"
        )


class NTupleRun:
    """One run in its folder ``out``: ``agent.zip`` (last checkpoint) and ``log.csv``."""

    def __init__(self, config: NTupleConfig, budget: Budget, seed: int, out: Path) -> None:
        """A fresh run; see ``resume``. ValueError as in ``check``, OSError for a folder that cannot be made."""
        check(config)
        self.config, self.budget, self.seed, self.out = config, budget, seed, out
        out.mkdir(parents=True, exist_ok=True)
        tuples = ntuple.NETWORKS[config.network]
        self.net = ntuple.lookups(tuples)
        self.table = np.zeros((ntuple.entries(tuples), 3 if config.coherent else 1), dtype=np.float32)
        self.workers = [_Worker(int(s)) for s in stream_seeds("train", seed, config.threads)]
        self.progress, self.games, self.stop = Progress(), 0, False
        self._recent: deque[tuple[int, int]] = deque(maxlen=logs.RECENT)  # score and largest exponent
        self._seconds_before, self._steps_before = 0.0, 0

    @classmethod
    def resume(cls, path: Path, budget: Budget | None = None, env_id: str | None = None) -> NTupleRun:
        """Go on with a saved run: tables and generators are restored. Raises AgentError for what is no such run."""
        folder = saved.run_folder(path)
        card, trainer = saved.load_card(path, env_id), saved.load_trainer(path)
        try:
            run = cls(NTupleConfig(**card["config"]), budget or Budget(**card["budget"]), int(card["seed"]), folder)
            run.table[:, 0] = saved.load_weights(path)["values"]
            if run.config.coherent:
                run.table[:, 1:] = trainer["coherence"]
            for worker, word in zip(run.workers, trainer["generators"], strict=True):
                worker.state[0] = word
            run.games, run.progress.steps = int(card["games"]), int(card["steps"])
            run._steps_before, run._seconds_before = run.progress.steps, float(card["seconds"])
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise AgentError(f"{path} cannot be resumed by this version ({error})") from None
        return run

    @property
    def finished(self) -> bool:
        """Is the budget used up?"""
        return self.budget.fraction(self._steps_before, self._seconds_before, self.games) >= 1.0

    def train(self, reporter: Reporter) -> None:
        """Learn until the budget is used up or ``stop`` is set, then save."""
        started = logged = checked = time.perf_counter()
        with ThreadPoolExecutor(self.config.threads) as pool:
            while not self.stop and self.progress.fraction < 1.0:
                busy = self.workers if self.progress.steps >= WARM_UP else self.workers[:1]
                for games, made in list(pool.map(self._learn, busy)):
                    self.games, self.progress.steps = self.games + games, self.progress.steps + made
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

    def _learn(self, worker: _Worker) -> tuple[int, int]:
        """A chunk of games by one thread: (games from the start, moves). Threads share the table without locks."""
        config, left = self.config, (self.budget.steps or 10**15) - self.progress.steps
        room = max(1, min(len(worker.scores), (self.budget.games or 10**15) - self.games))
        games, made = ntuple.learn_games(
            worker.state,
            min(CHUNK, max(left, 1)),
            config.rate,
            config.decay,
            config.restart,
            self.table,
            self.net,
            worker.boards,
            worker.trace,
            worker.scores[:room],
            worker.tops[:room],
        )
        self._recent.extend(zip(worker.scores[:games].tolist(), worker.tops[:games].tolist(), strict=True))
        return int(games), int(made)

    def _measure(self, elapsed: float) -> None:
        progress = self.progress
        progress.seconds = self._seconds_before + elapsed
        progress.rate = (progress.steps - self._steps_before) / max(elapsed, 1e-9)
        progress.fraction = self.budget.fraction(progress.steps, progress.seconds, self.games)
        progress.figures = self.figures()

    def figures(self) -> dict[str, float]:
        """Means over the last games from the start."""
        if not self._recent:
            return {}
        scores, tops = np.array(self._recent).T
        return {"score": float(scores.mean())} | {name: float((tops >= k).mean()) for name, k in _RATES.items()}

    def _log(self) -> None:
        if figures := self.figures():
            logs.append(self.out, self.progress.steps, self.progress.seconds, figures)

    def save(self) -> None:
        """Write ``agent.zip`` atomically. Raises OSError with the old file untouched."""
        generators = np.array([worker.state[0] for worker in self.workers])
        trainer = {"coherence": self.table[:, 1:], "generators": generators}
        saved.save(self.out / saved.FILE, self.card(), {"values": self.table[:, 0]}, trainer)

    def card(self) -> dict[str, Any]:
        """The agent's JSON card."""
        more = {"games": self.games, "versions": versions(gymnasium, numba, np)}
        return card_of(self, ALGORITHM, self.figures(), **more)


def load_player(path: Path, env_id: str, depth: int = 1, seconds: float | None = None) -> NTuplePlayer:
    """A trained network as a player: a run folder or ``.zip``. Raises AgentError for anything else."""
    card, weights = saved.load_card(path, env_id), saved.load_weights(path)
    try:
        player = NTuplePlayer(str(path), card["config"]["network"], weights["values"], depth, seconds)
        player.training = saved.training_told(card)
        return player
    except (KeyError, TypeError, ValueError) as error:
        raise AgentError(f"{path}: the agent's card or weights cannot be read by this version ({error})") from None
