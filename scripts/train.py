"""``puzzlegym train``: learn to play a puzzle by masked PPO, 2048 by an n-tuple network, FreeCell from its solver."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from .. import PUZZLES
from ..agents.policy import check_id
from ._console import counted
from ._training_display import Display, told

if TYPE_CHECKING:  # torch is imported when a run begins
    from ..agents.cloning import CloneRun
    from ..agents.distilling import DistillRun
    from ..agents.ntuple_training import NTupleRun
    from ..agents.rllib.training import RLlibRun
    from ..agents.runs import Budget
    from ..agents.training import Run as PPORun

    Run = PPORun | NTupleRun | CloneRun | DistillRun | RLlibRun

Algorithm = Literal["ppo", "ntuple", "clone", "clone+ppo", "distill", "rllib-ppo"]
_PLAIN_RATE = 0.1
_SOLVED = "FreeCell-v0"
_FINETUNE, _CLONE_SHARE = "finetune", 0.25
_LARGEST_SEED = 2**32 - 1  # that NumPy's generator takes


def _option(metavar: str, default: str) -> object:
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=f"(default: {default})")


@dataclass(frozen=True)
class Train:
    """Train an agent, or go on with a saved run."""

    id: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ID", help=f"The puzzle: {' or '.join(PUZZLES)}.")]
    algo: Algorithm = "ppo"
    """Masked PPO, here or on Ray (rllib-ppo); for 2048 the tables of an n-tuple network; for FreeCell the solver's
    moves, alone or before PPO, or what an agent finds looking at a position under all names of the suits."""
    minutes: Annotated[float | None, _option("M", "the configuration's")] = None
    """Train for this long in all; PPO's learning rate falls over it."""
    steps: Annotated[int | None, _option("N", "no limit")] = None
    """Train for this many moves in all instead."""
    seed: Annotated[int, tyro.conf.arg(metavar="S")] = 0
    """Seed of weights, sampling and games."""
    out: Annotated[Path | None, _option("DIR", "runs/ID-DATE")] = None
    """Folder of the run: agent.zip, log.csv, and PPO's tensorboard/."""
    resume: Annotated[Path | None, _option("DIR", "a new run")] = None
    """Go on with the run in this folder; without a budget, to the end of its own."""
    config: Annotated[str | None, _option("NAME|FILE", "the usual one")] = None
    """PPO and clone: a named configuration (a wrong name lists those that there are), or a JSON file with env_id, base
    (a name), and what differs from it, such as `puzzlegym tune` writes."""
    start: Annotated[Path | None, tyro.conf.arg(name="from", metavar="RUN", help_behavior_hint="(default: none)")] = (
        None
    )
    """PPO, clone and distill: begin with the network of this trained agent."""
    data: Annotated[Path | None, _option("DIR", "lines found on the way")] = None
    """clone: learn from the games of this dataset that `puzzlegym dataset` wrote."""
    network: Annotated[str | None, _option("TxS", "4x6")] = None
    """n-tuple: the network, T tuples of S squares: 5x4, 4x5, 4x6 or 8x6."""
    games: Annotated[int | None, _option("N", "no limit")] = None
    """n-tuple: train for so many games from the start in all, instead of --minutes."""
    threads: Annotated[int | None, _option("N", "1")] = None
    """n-tuple: threads that learn together."""
    restart: tyro.conf.FlagCreatePairsOff[bool] = False
    """n-tuple: play each game again from its middle: late boards are seen more often, early ones less."""
    plain: tyro.conf.FlagCreatePairsOff[bool] = False
    """n-tuple: plain TD, one step for all entries, in place of temporal coherence."""
    rate: Annotated[float | None, _option("A", "1, with --plain 0.1")] = None
    """n-tuple: the step, shared by all look-ups."""
    decay: Annotated[float | None, _option("L", "0.5")] = None
    """n-tuple: lambda of TD(lambda), 0 to 1."""
    address: Annotated[str | None, _option("ADDRESS", "a Ray of its own")] = None
    """rllib-ppo: the Ray cluster to work on, from one of its nodes: auto or HOST:PORT."""
    env_runners: Annotated[int | None, _option("K", "2")] = None
    """rllib-ppo: workers that play, one core each."""
    learners: Annotated[int | None, _option("L", "0: this process")] = None
    """rllib-ppo: workers that learn together."""
    gpus: Annotated[float | None, _option("G", "0")] = None
    """rllib-ppo: GPUs for each of those that learn."""


def run(args: Train) -> int:
    """Train; 0 when the budget is used up, 130 or 143 after a signal (the run is saved then, too)."""
    check_id(args.id)
    clones_first = args.algo == "clone+ppo" and args.start is None and args.resume is None
    return _clone_first(args) if clones_first else _train(args)


def _clone_first(args: Train) -> int:
    """Clone for a part of the budget, then go on by PPO from there."""
    from ..agents.configs import ppo_config

    _check_options(args, _settings(args))
    budget, out = _budget(args), _folder(args)
    if budget is None:
        args = replace(args, minutes=ppo_config(args.id, _FINETUNE).minutes)
    first, rest = _split(args, _CLONE_SHARE), _split(args, 1 - _CLONE_SHARE)
    code = _train(replace(first, algo="clone", config=None, out=out / "clone"))
    if code:
        folders = f"--from {shlex.quote(str(out / 'clone'))} --out {shlex.quote(str(out))}"
        print(f"then:    puzzlegym train {args.id} --algo clone+ppo {folders}")
        return code
    return _train(replace(rest, start=out / "clone", data=None, out=out))


def _split(args: Train, share: float) -> Train:
    """The same call with a share of its budget."""
    if args.steps is not None:
        return replace(args, steps=max(1, round(args.steps * share)))
    return replace(args, minutes=(args.minutes or 0.0) * share)


def _train(args: Train) -> int:
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
        with Display(training_run.config.env_id, str(training_run.out)) as display:
            training_run.train(display)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    _say_end(args, training_run, code)
    return code


def _open(args: Train) -> Run:
    budget = _budget(args)
    if not 0 <= args.seed <= _LARGEST_SEED:
        raise ValueError(f"--seed must be from 0 to {_LARGEST_SEED:,}, not {args.seed}")
    settings = _settings(args)
    if args.resume is not None:
        if args.out is not None:
            raise ValueError("--resume goes on in its own folder; leave --out away")
        if args.config or settings:
            raise ValueError(
                "--resume goes on with the run's own settings; it takes --minutes, --steps or --games only"
            )
        return _resumed(args, args.resume, budget)
    out = _folder(args)
    if (out / "agent.zip").exists():
        raise ValueError(f"{out} already holds a run: go on with it by --resume {out}, or choose another --out")
    _check_options(args, settings)
    make: Callable[..., Run] = _FRESH[args.algo]
    return make(args, settings, budget, out)


def _folder(args: Train) -> Path:
    return args.out or Path("runs") / f"{args.id}-{datetime.now():%Y%m%d-%H%M%S}"


def _check_options(args: Train, settings: dict[str, Any]) -> None:
    """Raise ValueError for options of another algorithm."""
    if args.algo != "ntuple" and (settings or args.games):
        raise ValueError("--network, --threads, --plain, --rate, --decay, --restart, --games: for --algo ntuple only")
    if args.algo == "ntuple" and (args.config or args.start):
        raise ValueError("--config and --from are not for --algo ntuple")
    if args.algo == "distill" and args.config:
        raise ValueError("--algo distill has one configuration: leave --config away")
    if args.algo != "rllib-ppo" and _cluster_options(args):
        raise ValueError("--address, --env-runners, --learners and --gpus are for --algo rllib-ppo only")
    if args.data and args.algo not in ("clone", "clone+ppo"):
        raise ValueError("--data is for --algo clone and clone+ppo only")
    if args.algo in ("clone", "clone+ppo", "distill") and args.id != _SOLVED:
        raise ValueError(f"--algo {args.algo} is for {_SOLVED}, not for {args.id}")


def _budget(args: Train) -> Budget | None:
    """What the call gives, or None. Raises ValueError for nonsense."""
    from ..agents.runs import Budget

    given = [value for value in (args.minutes, args.steps, args.games) if value is not None]
    if len(given) > 1:
        raise ValueError("give --minutes, --steps or --games, not both")
    if not given:
        return None
    if not given[0] > 0:
        raise ValueError("--minutes, --steps and --games must be greater than 0")
    return Budget(args.steps, args.minutes * 60 if args.minutes is not None else None, args.games)


def _settings(args: Train) -> dict[str, Any]:
    """The n-tuple settings that the call gives."""
    names = ("network", "threads", "rate", "decay")
    given = {name: value for name in names if (value := getattr(args, name)) is not None}
    flags = {"restart": True} if args.restart else {}
    return ({"coherent": False, "rate": _PLAIN_RATE} if args.plain else {}) | flags | given


def _cluster_options(args: Train) -> dict[str, Any]:
    """The settings of a cluster that the call gives."""
    names = ("address", "env_runners", "learners", "gpus")
    return {name: value for name in names if (value := getattr(args, name)) is not None}


def _resumed(args: Train, path: Path, budget: Budget | None) -> Run:
    from ..agents.saved import load_card

    env_id, cluster = args.id, _cluster_options(args)
    algorithm = load_card(path, env_id).get("algorithm")
    if algorithm == "RLlib PPO":
        from ..agents.rllib.training import RLlibRun

        return RLlibRun.resume(path, _without_games(budget), env_id, cluster)
    if cluster:
        raise ValueError("--address, --env-runners, --learners and --gpus are for runs of --algo rllib-ppo only")
    if algorithm == "n-tuple TD":
        from ..agents.ntuple_training import NTupleRun

        return NTupleRun.resume(path, budget, env_id)
    budget = _without_games(budget)
    if algorithm == "cloning":
        from ..agents.cloning import CloneRun

        return CloneRun.resume(path, budget, env_id)
    if algorithm == "distillation":
        from ..agents.distilling import DistillRun

        return DistillRun.resume(path, budget, env_id)
    from ..agents.training import Run  # torch is imported from here on

    return Run.resume(path, budget, env_id)


def _without_games(budget: Budget | None) -> Budget | None:
    if budget and budget.games:
        raise ValueError("--games: for --algo ntuple only")
    return budget


def _fresh_ppo(args: Train, settings: dict[str, Any], budget: Budget | None, out: Path) -> Run:
    from ..agents.configs import ppo_config
    from ..agents.runs import Budget

    config = ppo_config(args.id, args.config or (_FINETUNE if args.algo == "clone+ppo" else None), budget)
    from ..agents.training import Run  # torch is imported from here on

    return Run(config, budget or Budget(seconds=60 * config.minutes), args.seed, out, args.start)


def _fresh_rllib(args: Train, settings: dict[str, Any], budget: Budget | None, out: Path) -> Run:
    from ..agents.configs import ppo_config
    from ..agents.runs import Budget

    config = ppo_config(args.id, args.config, budget)
    from ..agents.rllib.training import Cluster, RLlibRun  # Ray is imported from here on

    cluster = Cluster(**_cluster_options(args))
    return RLlibRun(config, budget or Budget(seconds=60 * config.minutes), args.seed, out, args.start, cluster)


def _fresh_clone(args: Train, settings: dict[str, Any], budget: Budget | None, out: Path) -> Run:
    from ..agents.configs import clone_config
    from ..agents.runs import Budget

    config = clone_config(args.config)
    from ..agents.cloning import CloneRun  # torch is imported from here on

    budget = budget or Budget(seconds=60 * config.minutes)
    return CloneRun(config, budget, args.seed, out, args.start, args.data)


def _fresh_distill(args: Train, settings: dict[str, Any], budget: Budget | None, out: Path) -> Run:
    from ..agents.configs import DistillConfig
    from ..agents.runs import Budget
    from ..agents.saved import load_card

    config = DistillConfig()
    if args.start:
        own = load_card(args.start, args.id)["config"]
        config = replace(config, network=own["network"], network_arguments=own["network_arguments"])
    from ..agents.distilling import DistillRun  # torch is imported from here on

    return DistillRun(config, budget or Budget(seconds=60 * config.minutes), args.seed, out, args.start)


def _fresh_ntuple(args: Train, settings: dict[str, Any], budget: Budget | None, out: Path) -> Run:
    from ..agents import ntuple_training
    from ..agents.configs import NTupleConfig
    from ..agents.runs import Budget

    config = NTupleConfig(**settings)
    if args.id != config.env_id:
        raise ValueError(f"--algo ntuple is for {config.env_id}, not for {args.id}")
    ntuple_training.check(config)
    print(f"n-tuple network {config.network}: {ntuple_training.memory(config) / 1e6:,.0f} MB of memory", flush=True)
    return ntuple_training.NTupleRun(config, budget or Budget(seconds=60 * config.minutes), args.seed, out)


_FRESH: dict[str, Callable[..., Run]] = {
    "ppo": _fresh_ppo,
    "clone": _fresh_clone,
    "clone+ppo": _fresh_ppo,
    "distill": _fresh_distill,
    "rllib-ppo": _fresh_rllib,
    "ntuple": _fresh_ntuple,
}


def _say_end(args: Train, training_run: Run, code: int) -> None:
    progress, out = training_run.progress, shlex.quote(str(training_run.out))
    print(
        f"{'Stopped' if code else 'Done'}: {progress.steps:,} steps in {progress.seconds / 60:.1f} minutes, "
        f"{told(progress.figures)}"
        + (f", {counted(training_run.illegal_moves, 'illegal move')}" if hasattr(training_run, "illegal_moves") else "")
    )
    print(f"Saved in {training_run.out}")
    if code:
        print(f"Go on:   puzzlegym train {args.id} --resume {out}")
    else:
        print(f"Compare: puzzlegym evaluate {args.id} --agent random {out}")
        print(f"Watch:   puzzlegym watch {args.id} --agent {out}")
