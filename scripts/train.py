"""``puzzlegym train``: learn to play a puzzle by masked PPO, or 2048 by an n-tuple network."""

from __future__ import annotations

import shlex
import signal
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from ..agents.policy import check_id
from ._console import is_terminal

if TYPE_CHECKING:  # torch and rich are imported when a run begins
    from rich.progress import Progress as RichProgress

    from ..agents.ntuple_training import NTupleRun
    from ..agents.runs import Budget, Progress
    from ..agents.training import Run as PPORun

    Run = PPORun | NTupleRun

Algorithm = Literal["ppo", "ntuple"]
NTUPLE = "n-tuple TD"
_LINE_SECONDS = 15.0  # between lines of progress where there is no terminal
_LARGEST_SEED = 2**32 - 1  # that NumPy's generator takes


@dataclass(frozen=True)
class Train:
    """Train an agent, or go on with a saved run."""

    id: Annotated[str, tyro.conf.Positional]
    """The puzzle: Puzzle2048-v0 or FreeCell-v0."""
    algo: Algorithm = "ppo"
    """What to learn by: masked PPO, or for 2048 the tables of an n-tuple network."""
    minutes: float | None = None
    """Train for this long in all; the learning rate falls over it."""
    steps: int | None = None
    """Train for this many environment steps in all instead."""
    seed: int = 0
    """Seed of weights, sampling and games."""
    out: Path | None = None
    """Folder of the run: agent.zip, log.csv, tensorboard/ (default runs/ID-DATE)."""
    network: str = "4x6"
    """n-tuple only: the network, 5x4, 4x5, 4x6 or 8x6 (tuples x squares)."""
    threads: int = 1
    """n-tuple only: threads that learn together."""
    resume: Path | None = None
    """Go on with the run in this folder; without --minutes or --steps to the end of its own budget."""


def run(args: Train) -> int:
    """Train; 0 when the budget is used up, 130 or 143 after a signal (the run is saved then, too)."""
    check_id(args.id)
    training_run = _open(args)
    if training_run.finished:
        print(f"{training_run.out} has already used its budget; give a larger --minutes or --steps to go on")
        return 0
    code = 0

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal code
        code, training_run.stop = 128 + number, True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with _Display(training_run.config.env_id, str(training_run.out)) as display:
            training_run.train(display)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    _say_end(args, training_run, code)
    return code


def _open(args: Train) -> Run:
    if args.minutes is not None and args.steps is not None:
        raise ValueError("give --minutes or --steps, not both")
    if (args.minutes is not None and not args.minutes > 0) or (args.steps is not None and args.steps <= 0):
        raise ValueError("--minutes and --steps must be greater than 0")
    if not 0 <= args.seed <= _LARGEST_SEED:
        raise ValueError(f"--seed must be from 0 to {_LARGEST_SEED:,}, not {args.seed}")
    from ..agents.runs import Budget

    given = args.minutes is not None or args.steps is not None
    budget = Budget(args.steps, args.minutes * 60 if args.minutes is not None else None)
    if args.resume is not None:
        if args.out is not None:
            raise ValueError("--resume goes on in its own folder; leave --out away")
        return _resumed(args.resume, budget if given else None, args.id)
    out = args.out or Path("runs") / f"{args.id}-{datetime.now():%Y%m%d-%H%M%S}"
    if (out / "agent.zip").exists():
        raise ValueError(f"{out} already holds a run: go on with it by --resume {out}, or choose another --out")
    return _fresh(args, budget if given else None, out)


def _resumed(path: Path, budget: Budget | None, env_id: str) -> Run:
    from ..agents.saved import load_card

    if load_card(path, env_id).get("algorithm") == NTUPLE:
        from ..agents.ntuple_training import NTupleRun

        return NTupleRun.resume(path, budget, env_id)
    from ..agents.training import Run  # torch is imported from here on

    return Run.resume(path, budget, env_id)


def _fresh(args: Train, budget: Budget | None, out: Path) -> Run:
    from ..agents.configs import PPO_CONFIGS, NTupleConfig
    from ..agents.runs import Budget

    if args.algo == "ppo":
        from ..agents.training import Run  # torch is imported from here on

        config = PPO_CONFIGS[args.id]
        return Run(config, budget or Budget(steps=config.steps), args.seed, out)
    from ..agents import ntuple_training

    learner = NTupleConfig(network=args.network, threads=args.threads)
    if args.id != learner.env_id:
        raise ValueError(f"--algo ntuple is for {learner.env_id}, not for {args.id}")
    ntuple_training.check(learner)
    print(f"n-tuple network {learner.network}: {ntuple_training.memory(learner) / 1e6:,.0f} MB of memory", flush=True)
    return ntuple_training.NTupleRun(learner, budget or Budget(steps=learner.steps), args.seed, out)


def _say_end(args: Train, training_run: Run, code: int) -> None:
    progress, out = training_run.progress, shlex.quote(str(training_run.out))
    print(
        f"{'Stopped' if code else 'Done'}: {progress.steps:,} steps in {progress.seconds / 60:.1f} minutes, "
        f"{_figures(progress.figures)}"
    )
    print(f"Saved in {training_run.out}")
    if code:
        print(f"Go on:   puzzlegym train {args.id} --resume {out}")
    else:
        print(f"Compare: puzzlegym evaluate {args.id} --agent random {out}")
        print(f"Watch:   puzzlegym watch {args.id} --agent {out}")


# How to say a figure; the others are shares of games.
_WORDS: dict[str, str] = {"score": "score {:,.0f}", "home": "cards home {:.1f}", "rank": "start rank {:.0f}"}


_MOST_SHARES = 3
_LINE = 70  # columns, beside percentage and bar


def _figures(figures: dict[str, float], between: str = ", ", shares: int = _MOST_SHARES) -> str:
    """The figures; of shares the last that are above zero, and the next one."""
    names = [name for name in figures if name not in _WORDS]
    above = [i for i, name in enumerate(names) if figures[name] > 0]
    end = (above[-1] if above else -1) + 2
    told = [name for name in figures if name in _WORDS or name in names[:end][-shares:]]
    words = [_WORDS.get(name, name + " {:.0%}").format(figures[name]) for name in told]
    return between.join(words) or "no game ended yet"


def _line(progress: Progress) -> str:
    """Figures, speed and time left; short enough to share 80 columns with the percentage and a bar."""
    thousands = progress.rate / 1000
    rest = [f"{thousands:.{0 if thousands >= 10 else 1}f}k steps/s"]
    if 0 < progress.fraction < 1:
        rest.append(f"{_clock(progress.seconds * (1 - progress.fraction) / progress.fraction)} left")
    lines = ("  ".join([_figures(progress.figures, "  ", shares), *rest]) for shares in (3, 2, 1))
    return next((line for line in lines if len(line) <= _LINE), "  ".join(rest))


def _clock(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


class _Display:
    """A bar on a terminal, a line now and then elsewhere."""

    def __init__(self, env_id: str, out: str) -> None:
        self.title = f"Training {env_id} in {out} (Ctrl-C saves and stops)"
        self._last = time.perf_counter()
        self._bar: RichProgress | None = None

    def __enter__(self) -> _Display:
        print(self.title, flush=True)
        if is_terminal(sys.stdout):
            from rich.progress import BarColumn, Progress, TextColumn

            columns = (
                BarColumn(bar_width=None),  # as wide as the text leaves it
                TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("{task.description}"),
            )
            self._bar = Progress(*columns, refresh_per_second=4, expand=True)
            self._bar.add_task("first games ...", total=1.0)
            self._bar.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._bar:
            self._bar.stop()

    def update(self, progress: Progress) -> None:
        """Show the run's figures, steps per second and the time left."""
        now = time.perf_counter()
        if progress.fraction < 1 and now - self._last < (0.25 if self._bar else _LINE_SECONDS):
            return
        self._last = now
        if self._bar:
            self._bar.update(self._bar.task_ids[0], completed=progress.fraction, description=_line(progress))
        else:
            print(f"{progress.fraction:4.0%}  {progress.steps:>10,} steps  {_line(progress)}", flush=True)
