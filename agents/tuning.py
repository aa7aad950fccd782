"""A search for good numbers of masked PPO by Optuna: what is searched, and how a trial is judged.

Trial 0 is the configuration that the search begins with: what is found is compared with it, and never worse. The
tree-structured Parzen estimator (Bergstra et al. 2011) proposes the others.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.pruners import MedianPruner
from optuna.trial import FrozenTrial, Trial, TrialState

from . import logs, ppo
from .config_file import differences
from .configs import PPO_CONFIGS, PPOConfig
from .evaluation import evaluate
from .policy import load
from .runs import Budget, Progress
from .study_file import StudyFile, index_of, seeds
from .training import Run

_RECENT = 300  # games that the figures of a trial under way speak of
_REPORTS = 10  # in a trial: one at each tenth of its budget
_ALWAYS = 30  # percent of the budget that every trial gets
_WHOLE = 4  # trials that must have ended before others can be pruned
_DIGITS = 3  # of a proposed number
_TELLING = 20  # whole trials, from which on it can be said which numbers matter


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, both included."""

    low: float
    high: float
    log: bool = False  # evenly spread over its powers of ten
    whole: bool = False


@dataclass(frozen=True)
class Choice:
    """One of these numbers."""

    values: tuple[float, ...]


# Field of ``PPOConfig`` -> where it is searched. A start outside is always taken in.
SPACE: dict[str, Range | Choice] = {
    "learning_rate": Range(1e-4, 5e-3, log=True),
    "ent_coef": Range(0.0, 0.03),
    "gamma": Choice((0.98, 0.99, 0.995, 0.998)),
    "gae_lambda": Range(0.8, 0.98),
    "n_steps": Choice((32, 64, 128, 256)),
    "num_envs": Choice((128, 256, 512)),
    "batch_size": Choice((1024, 2048, 4096)),  # none larger than the smallest rollout
    "n_epochs": Range(1, 6, whole=True),
}


def distributions(base: PPOConfig) -> dict[str, BaseDistribution]:
    """The search space around ``base``, for Optuna."""
    return {name: _distribution(where, getattr(base, name)) for name, where in SPACE.items()}


def _distribution(where: Range | Choice, start: float) -> BaseDistribution:
    if isinstance(where, Choice):
        return CategoricalDistribution(sorted({*where.values, start}))
    low, high = min(where.low, start), max(where.high, start)
    if where.whole:
        return IntDistribution(int(low), int(high), log=where.log)
    return FloatDistribution(low, high, log=where.log)


def configuration(base: PPOConfig, index: int, numbers: dict[str, Any]) -> PPOConfig:
    """What a trial trains: the base itself first, then numbers with few digits."""
    if index == 0:
        return base
    return replace(base, **{name: _with_few_digits(value) for name, value in numbers.items()})


def _with_few_digits(value: Any) -> Any:
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


class Outcome(NamedTuple):
    """A trial's mean score (points, cards home) on games of the selection stream with its 95 % interval, and how many
    steps it made before: with a budget of minutes they tell whether other work was in its way.
    """

    score: float
    ci95: tuple[float, float]
    steps: int


@dataclass(frozen=True)
class Tried:
    """A trial that has ended; without an outcome, given up when so many percent of its budget were used."""

    index: int
    config: PPOConfig
    outcome: Outcome | None
    percent: int


Report = Callable[[float, float | None], bool]
"""Called about every step with the used share of the budget and the mean score of late; True: give up."""
Objective = Callable[[PPOConfig, Budget, int, int, Report], Outcome | None]
"""Trains by a configuration, a budget and a seed, and plays so many games; None if it gave up."""
Watch = Callable[[float, float | None], None]
"""Shows how a trial goes on: as ``Report``."""


class _Watched(Run):
    """A run that tells how its whole games end, and may be given up."""

    def __init__(self, config: PPOConfig, budget: Budget, seed: int, out: Path, report: Report) -> None:
        super().__init__(config, budget, seed, out)
        self.given_up = False
        self._report = report
        self._read = next(iter(logs.FIGURES[config.env_id].values()))
        self._scores: deque[float] = deque(maxlen=_RECENT)

    def after_step(self, infos: list[dict[str, Any]], dones: Any) -> None:
        whole = (
            np.full(len(infos), True) if self.curriculum is None else self.curriculum.playing == self.curriculum.full
        )
        self._scores.extend(float(self._read(infos[row])) for row in np.flatnonzero(dones & whole))
        super().after_step(infos, dones)

    def update(self, progress: Progress) -> None:
        score = sum(self._scores) / len(self._scores) if self._scores else None
        if self._report(progress.fraction, score):
            self.stop = self.given_up = True


def train_and_play(config: PPOConfig, budget: Budget, seed: int, games: int, report: Report) -> Outcome | None:
    """The objective: one run of masked PPO in a folder of its own, which goes away. None: given up, or diverged."""
    with tempfile.TemporaryDirectory(prefix="puzzlegym-tune-") as folder:
        run = _Watched(config, budget, seed, Path(folder), report)
        run.train(run)
        run.venv.close()
        # A network that is not a number plays illegal moves for ever.
        if run.given_up or not all(np.isfinite(array).all() for array in ppo.weights_of(run.learner).values()):
            return None
        played = evaluate(config.env_id, load(config.env_id, folder), games, stream="selection")
    return Outcome(played.score_mean, played.score_ci95, run.progress.steps)


class Tuning:
    """A search in its file, to be used in a ``with`` statement; see ``StudyFile``.

    Trials that are worse than the median of those before, at the same share of the budget, are given up (Golovin et al.
    2017). Halving would suit less: learning rates fall over the budget, so that early figures say little about late
    ones, and it needs many more trials than fit into an evening.
    """

    def __init__(
        self,
        path: Path,
        base: PPOConfig,
        budget: Budget,
        seed: int = 0,
        games: int = 200,
        objective: Objective = train_and_play,
    ) -> None:
        """Raises OSError, and ValueError for a file of anything else than such a search."""
        self.base, self.budget, self.seed, self.games, self._objective = base, budget, seed, games, objective
        self._space = distributions(base)
        settings = {
            "puzzle": base.env_id,
            "minutes": budget.seconds and budget.seconds / 60,
            "steps": budget.steps,
            "seed": seed,
            "games": games,
            "configuration": differences(base, PPO_CONFIGS[base.env_id]),
            "space": {name: asdict(where) for name, where in SPACE.items()},
        }
        pruner = MedianPruner(n_startup_trials=_WHOLE, n_warmup_steps=_ALWAYS, n_min_trials=_WHOLE)
        self._file = StudyFile(path, settings, pruner)

    def __enter__(self) -> Tuning:
        """Itself."""
        self._file.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the file to others."""
        self._file.__exit__(kind, error, trace)

    def done(self) -> list[Tried]:
        """All trials that have ended, of other processes, too."""
        return [self._tried(trial) for trial in self._file.done()]

    def run(self, total: int, watch: Watch) -> Iterator[Tried]:
        """Make trials until there are ``total``; yields each when it has ended.

        One that an exception (Ctrl-C, say) stops does not count; it is made again when the search goes on.
        """
        first = {name: getattr(self.base, name) for name in SPACE}
        while trial := self._file.ask(total, self._space, first, self.seed):
            try:
                outcome = self._attempt(trial, watch)
            except BaseException:
                self._file.study.tell(trial, state=TrialState.FAIL)
                raise
            yield self._end(trial, outcome)

    def _attempt(self, trial: Trial, watch: Watch) -> Outcome | None:
        index = index_of(trial)
        config = configuration(self.base, index, trial.params)
        return self._objective(config, self.budget, seeds(self.seed, index)[1], self.games, _reporting(trial, watch))

    def _end(self, trial: Trial, outcome: Outcome | None) -> Tried:
        if outcome:
            trial.set_user_attr("ci95", list(outcome.ci95))
            trial.set_user_attr("steps", outcome.steps)
            return self._tried(self._file.study.tell(trial, outcome.score))
        return self._tried(self._file.study.tell(trial, state=TrialState.PRUNED))

    def _tried(self, trial: FrozenTrial) -> Tried:
        index, outcome = index_of(trial), None
        if trial.state == TrialState.COMPLETE and trial.value is not None:
            low, high = trial.user_attrs["ci95"]
            outcome = Outcome(trial.value, (low, high), int(trial.user_attrs["steps"]))
        return Tried(index, configuration(self.base, index, trial.params), outcome, trial.last_step or 0)

    def importances(self) -> dict[str, float]:
        """How much each number matters for being among the best (PED-ANOVA, Watanabe et al. 2023), in shares of 1, the
        most important first; nothing while there are few trials.
        """
        whole = sum(tried.outcome is not None for tried in self.done())
        if whole < _TELLING:
            return {}
        return get_param_importances(self._file.study, evaluator=PedAnovaImportanceEvaluator())


def best_of(trials: list[Tried]) -> list[Tried]:
    """The whole ones, the best first; of equals the earlier one."""
    whole = [(tried.outcome.score, tried) for tried in trials if tried.outcome]
    return [tried for _, tried in sorted(whole, key=lambda pair: (-pair[0], pair[1].index))]


def _reporting(trial: Trial, watch: Watch) -> Report:
    """Tells Optuna the figure at every tenth of the budget, and whether to go on."""
    reported = 0

    def report(fraction: float, score: float | None) -> bool:
        nonlocal reported
        watch(fraction, score)
        percent = int(_REPORTS * fraction) * 100 // _REPORTS
        if score is None or not reported < percent < 100:
            return False
        reported = percent
        trial.report(score, percent)
        return trial.should_prune()

    return report
