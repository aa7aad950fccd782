"""``puzzlegym tune``: search for good numbers of masked PPO."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from .. import PUZZLES
from ..agents.policy import check_id
from ..envs.common.files import atomic, check_place
from ._console import counted, is_terminal, terminable
from .evaluate import number, percent

if TYPE_CHECKING:  # torch and optuna are imported when the search begins
    from rich.progress import Progress

    from ..agents.configs import PPOConfig
    from ..agents.runs import Budget
    from ..agents.tuning import Tried, Tuning

_MINUTES = {"Puzzle2048-v0": 1.0, "FreeCell-v0": 5.0}
_INTERRUPTED = 130
_SHOWN = 5  # of the best trials


@dataclass(frozen=True)
class Tune:
    """Search for good numbers of PPO: learning rate, sizes of rollouts and batches, discount and so on.

    Each trial trains for a short while and then plays games that neither training nor tests see. The first one has
    the bundled configuration. Hopeless ones are given up early. Several processes with the same command share the
    work: start it once more, each with OMP_NUM_THREADS=1 in its environment.
    """

    id: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ID", help=f"The puzzle: {' or '.join(PUZZLES)}.")]
    trials: Annotated[int, tyro.conf.arg(metavar="N")] = 20
    """Trials in all, those that the file already holds included."""
    minutes: Annotated[float | None, tyro.conf.arg(metavar="M", help_behavior_hint="(default: 1, for FreeCell 5)")] = (
        None
    )
    """Train for this long in each trial."""
    steps: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: no limit)")] = None
    """Train for this many moves in each trial instead: fairer where the machine has other work, too."""
    games: Annotated[int, tyro.conf.arg(metavar="N")] = 200
    """Games that judge a trial."""
    seed: Annotated[int, tyro.conf.arg(metavar="S")] = 0
    """Seed of what is proposed and of all training."""
    config: Annotated[
        str | None, tyro.conf.arg(metavar="NAME|FILE", help_behavior_hint="(default: the bundled one)")
    ] = None
    """Begin with this configuration of 'puzzlegym train': its name, or a file."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: runs/tune-ID.journal)")] = (
        None
    )
    """Keep the trials here; the same command goes on with them."""
    save: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: none)")] = None
    """Write the best configuration here, too, for 'puzzlegym train --config FILE'."""


def run(options: Tune) -> int:
    """Search, report, and return the exit code: 0, or 130 after Ctrl-C. Raises ValueError for bad options."""
    budget = _check(options)
    if options.save:
        check_place(options.save)
    from ..agents.configs import ppo_config

    base = ppo_config(options.id, options.config, budget)
    from ..agents.tuning import Tuning  # torch and optuna are imported from here on

    path = options.out or Path("runs") / f"tune-{options.id}.journal"
    with terminable(), Tuning(path, base, budget, options.seed, options.games) as tuning:
        code = _search(tuning, options, path)
        if trials := tuning.done():
            _report(trials, base, options)
            _tell_importances(tuning)
    return code


def _check(options: Tune) -> Budget:
    """The budget of a trial. Raises ValueError for options that are wrong."""
    from ..agents.runs import Budget

    check_id(options.id)
    if options.minutes is not None and options.steps is not None:
        raise ValueError("give --minutes or --steps, not both")
    least = {"trials": options.trials, "games": options.games}
    for name, value in least.items():
        if value < 1:
            raise ValueError(f"--{name} must be at least 1, not {value}")
    if options.seed < 0:
        raise ValueError(f"--seed must be 0 or more, not {options.seed}")
    minutes = _MINUTES[options.id] if options.minutes is None else options.minutes
    if not (options.steps or minutes) > 0 or options.steps == 0:
        raise ValueError("--minutes and --steps must be greater than 0")
    return Budget(steps=options.steps) if options.steps else Budget(seconds=60 * minutes)


def _search(tuning: Tuning, options: Tune, path: Path) -> int:
    """Make the trials that are missing."""
    before = len(tuning.done())
    print(f"Tuning {options.id}: {counted(options.trials, 'trial')} of {_each(options)}, {before} done")
    print(f"In {path} (Ctrl-C stops, and the same command goes on)", flush=True)
    try:
        with _shown(options.trials) as progress:
            display = _Display(tuning, options.trials, progress)
            for tried in tuning.run(options.trials, display.watch):
                display.ended(tried)
    except KeyboardInterrupt:
        done = f"{len(tuning.done())} of {counted(options.trials, 'trial')}"
        print(f"puzzlegym tune: stopped, {done} in {path}: the same command goes on", file=sys.stderr)
        return _INTERRUPTED
    return 0


def _each(options: Tune) -> str:
    if options.steps:
        return counted(options.steps, "step")
    minutes = options.minutes or _MINUTES[options.id]
    return f"{minutes:g} minute{'' if minutes == 1 else 's'}"


@contextmanager
def _shown(total: int) -> Iterator[Progress | None]:
    """A bar on a terminal, nothing elsewhere."""
    if not is_terminal(sys.stdout):
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(bar_width=None), TextColumn("{task.description}"), TimeRemainingColumn(compact=True))
    with Progress(*columns, expand=True, transient=True) as bar:
        bar.add_task("first games ...", total=total)
        yield bar


class _Display:
    """How the search goes on: a line for each trial, and the bar."""

    def __init__(self, tuning: Tuning, total: int, bar: Progress | None) -> None:
        self._tuning, self._total, self._bar = tuning, total, bar
        self._started = self._last = time.monotonic()
        self._mine = 0  # trials that ended in this session
        self._look()

    def _look(self) -> None:
        """See what all processes have done."""
        from ..agents.tuning import best_of

        trials = self._tuning.done()
        self._done, best = len(trials), best_of(trials)
        self._best = f"best {_score(best[0])} (trial {best[0].index + 1})" if best else ""

    def watch(self, fraction: float, score: float | None) -> None:
        """A trial is under way."""
        if self._bar is None or time.monotonic() - self._last < 0.25:
            return
        self._last = time.monotonic()
        now = "first games" if score is None else f"score {number(score)}" if fraction < 1 else "playing"
        text = "  ".join(filter(None, (f"trial {min(self._done + 1, self._total)} of {self._total}", now, self._best)))
        self._bar.update(self._bar.task_ids[0], completed=self._done + fraction, description=text)

    def ended(self, tried: Tried) -> None:
        """A trial has ended."""
        self._mine += 1
        self._look()
        parts = [f"trial {tried.index + 1} of {self._total}: {_result(tried)}", self._best, self._left()]
        print("; ".join(filter(None, parts)), flush=True)
        if self._bar:
            self._bar.update(self._bar.task_ids[0], completed=self._done)

    def _left(self) -> str:
        minutes = (time.monotonic() - self._started) / 60 / self._mine * (self._total - self._done)
        return f"{minutes:.1f} min left" if minutes > 0 else ""


def _score(tried: Tried) -> str:
    return number(tried.outcome.score) if tried.outcome else ""


def _with_interval(tried: Tried) -> str:
    low, high = map(number, tried.outcome.ci95) if tried.outcome else ("", "")
    return f"{_score(tried)} [{low}, {high}]"


def _result(tried: Tried) -> str:
    if tried.outcome is None:
        return f"given up at {tried.percent}%"
    return f"score {_score(tried)} in {tried.outcome.steps / 1e6:.2f} M steps"


def _report(trials: list[Tried], base: PPOConfig, options: Tune) -> None:
    """The best trials, and the best configuration as a file would hold it."""
    from ..agents.config_file import differences
    from ..agents.configs import PPO_CONFIGS
    from ..agents.tuning import best_of

    best = best_of(trials)
    given_up = len(trials) - len(best)
    print(f"\n{counted(len(trials), 'trial')}, {given_up} of them given up early; the best:")
    if not best:
        return
    start = next((tried for tried in best if tried.index == 0), None)
    shown = best[:_SHOWN] + ([start] if start and start not in best[:_SHOWN] else [])
    Console().print(_table(shown))
    print(_comparison(best[0], start))
    text = json.dumps(differences(best[0].config, PPO_CONFIGS[base.env_id]), indent=1)
    print(f"\n{text}")
    _keep(text, options)


def _table(shown: list[Tried]) -> Table:
    from ..agents.tuning import SPACE

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for title in ("trial", "score", *(name.replace("_", "\n", 1) for name in SPACE)):
        table.add_column(title, justify="right", no_wrap=True)
    for tried in shown:
        name = f"{tried.index + 1}" if tried.index else "start"
        table.add_row(name, _score(tried), *(f"{getattr(tried.config, field):g}" for field in SPACE))
    return table


def _comparison(best: Tried, start: Tried | None) -> str:
    if start is None or not start.outcome or not best.outcome:
        return f"Best: {_with_interval(best)}; the start has not been measured yet"
    if best is start:
        return f"No trial beat the start: {_with_interval(start)}"
    more = f", {best.outcome.score / start.outcome.score - 1:+.1%}" if start.outcome.score > 0 else ""
    return (
        f"Best: {_with_interval(best)}, start: {_with_interval(start)}{more}\n"
        "(one run each, and the best of many was lucky, too: try it with other seeds)"
    )


def _keep(text: str, options: Tune) -> None:
    """Write the file that was asked for, and say how to use one."""
    name = "FILE"
    if options.save:
        with atomic(options.save) as temporary:
            temporary.write_text(f"{text}\n", encoding="utf-8")
        name = shlex.quote(str(options.save))
        print(f"Saved in {options.save}")
    print(f"Train: puzzlegym train {options.id} --config {name}" + ("" if options.save else " (--save FILE writes it)"))


def _tell_importances(tuning: Tuning) -> None:
    if shares := tuning.importances():
        told: Any = ", ".join(f"{name} {percent(share)}" for name, share in list(shares.items())[:4])
        print(f"What matters most, roughly: {told}")
