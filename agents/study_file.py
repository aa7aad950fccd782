"""The file of an Optuna study that goes on where it was stopped, and that several processes may work on at once."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import optuna
from filelock import FileLock, Timeout
from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner
from optuna.samplers import TPESampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, Trial, TrialState

from ..envs.common.files import check_place

NAME = "puzzlegym tune"
DONE = (TrialState.COMPLETE, TrialState.PRUNED)
_HEAD = b'{"op_code":0,'  # how a journal begins
_SETTINGS, _INDEX, _PROCESS = "settings", "index", "process"
_RANDOM = 5  # trials before the estimator proposes: studies are short, and the first trial is known to be good

Numbers = Mapping[str, Any]


class StudyFile:
    """A study, to be used in a ``with`` statement.

    Every trial has an index, from which its random numbers come. That of a trial which was stopped, or whose process
    is gone, is given again: it does not count, and a study that was stopped is the same as one that was not.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any], pruner: BasePruner) -> None:
        """Go on with a file or begin one. Raises OSError, and ValueError for a file of anything else than trials of
        these ``settings``.
        """
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        check_place(path)
        self._lock = FileLock(_beside(path, "lock"))
        self._life = FileLock(_beside(path, f"{uuid.uuid4().hex}.alive"))  # the system gives it back when we end
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        with self._lock:
            _check_head(path)
            _mend(path)
            self.study = _opened(path, pruner)
            self._agree(dict(settings))

    def __enter__(self) -> StudyFile:
        """Itself, from now on seen by other processes."""
        self._life.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the work to other processes."""
        self._life.release()
        Path(self._life.lock_file).unlink(missing_ok=True)

    def done(self) -> list[FrozenTrial]:
        """Trials that have ended, of all processes, by index."""
        return sorted(self.study.get_trials(deepcopy=False, states=DONE), key=index_of)

    def ask(self, total: int, space: Mapping[str, BaseDistribution], first: Numbers, seed: int) -> Trial | None:
        """The next trial; None if ``total`` trials have ended or are under way. Trial 0 has the numbers ``first``."""
        with self._lock:
            self._give_up_lost_trials()
            trials = self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING, *DONE))
            taken = {index_of(trial) for trial in trials}
            if len(taken) >= total:
                return None
            index = min(set(range(len(taken) + 1)) - taken)
            if index == 0 and not self.study.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
                self.study.enqueue_trial(dict(first))
            self.study.sampler = TPESampler(seed=seeds(seed, index)[0], n_startup_trials=_RANDOM)
            trial = self.study.ask(dict(space))
            trial.set_user_attr(_PROCESS, Path(self._life.lock_file).name)
            trial.set_user_attr(_INDEX, index)
            return trial

    def _give_up_lost_trials(self) -> None:
        """Trials whose process was killed have failed."""
        for trial in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if _INDEX not in trial.user_attrs or self._is_gone(trial.user_attrs[_PROCESS]):
                self.study.tell(trial.number, state=TrialState.FAIL)

    def _is_gone(self, process: str) -> bool:
        file = self.path.with_name(process)
        if not file.exists():
            return True
        try:
            with FileLock(file, blocking=False):
                pass
        except Timeout:
            return False
        file.unlink(missing_ok=True)
        return True

    def _agree(self, asked: dict[str, Any]) -> None:
        asked = json.loads(json.dumps(asked))
        there = self.study.user_attrs.get(_SETTINGS)
        if there is None and not self.study.get_trials(deepcopy=False):
            self.study.set_user_attr(_SETTINGS, asked)
        elif not isinstance(there, dict) or set(there) != set(asked):
            raise ValueError(f"{self.path} is of another version of puzzlegym: choose another file")
        elif other := [
            f"{key} {_told(there[key])}, not {_told(asked[key])}" for key in asked if there[key] != asked[key]
        ]:
            raise ValueError(
                f"{self.path} holds trials of {'; '.join(other)}: choose another file, or the same options"
            )


def index_of(trial: FrozenTrial | Trial) -> int:
    """Which of the trials it is, from 0."""
    return int(trial.user_attrs[_INDEX])


def seeds(seed: int, index: int) -> tuple[int, int]:
    """Two seeds of a trial: for proposing its numbers, and for its training."""
    proposing, training = np.random.SeedSequence([seed, index]).generate_state(2)
    return int(proposing), int(training)


def _opened(path: Path, pruner: BasePruner) -> optuna.Study:
    """The study in a journal; a new one where there is none."""
    try:
        storage = JournalStorage(JournalFileBackend(str(path), lock_obj=_journal_lock(path)))
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged ({error}): choose another file") from None
    if storage.get_all_studies():
        return optuna.load_study(study_name=NAME, storage=storage, pruner=pruner)
    return optuna.create_study(study_name=NAME, storage=storage, pruner=pruner, direction="maximize")


def _told(value: Any) -> str:
    return str(value) if isinstance(value, str | int | float) else json.dumps(value)


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f".{path.name}.{what}")


def _journal_lock(path: Path) -> JournalFileOpenLock:
    """The lock that is made without a symbolic link, which not every system allows."""
    return JournalFileOpenLock(str(path))


def _check_head(path: Path) -> None:
    """Raise ValueError for a file of something else; one that does not exist yet or is empty is fine."""
    if not path.exists():
        return
    with path.open("rb") as file:
        head = file.readline()
    if head and not (_HEAD.startswith(head) or (head.startswith(_HEAD) and NAME.encode() in head)):
        raise ValueError(f"{path} holds something else than trials of '{NAME}': choose another file")


def _mend(path: Path) -> None:
    """Cut off a last line that was written half-way (by a process that was killed, on a full disk): Optuna would read
    nothing that comes after it.
    """
    if not path.exists():
        return
    lock = _journal_lock(path)
    lock.acquire()
    try:
        with path.open("r+b") as file:
            content = file.read()
            whole = content.rfind(b"\n") + 1
            if whole < len(content):
                file.truncate(whole)
                os.fsync(file.fileno())
    finally:
        lock.release()
