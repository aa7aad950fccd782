"""``puzzlegym bench``: how fast the environments are on this machine, and where the time goes."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from .. import PUZZLES, __version__
from ..agents.policy import check_id
from ..envs.common import threads
from ..envs.common.files import atomic
from ._console import steps_done
from .benchmarks import growth, peers, phases, starting, stepping
from .benchmarks.rounds import Case, Result, interleave

Section = Literal["single", "vector", "phases", "memory", "start", "training", "growth"]
_INTERRUPTED = 130
_TITLES = {
    "single": "One environment, steps/s: observation, reward, info and mask",
    "vector": "Native batch, steps/s: observation, reward, infos, mask and autoreset",
    "phases": "Parts of a step, ns per game (4,096 games, one core)",
    "memory": "Memory",
    "start": "Cold start, seconds from the start of the process",
    "training": "Masked PPO, environment steps/s",
    "games": "Growth: ns per step by number of games, one core",
    "age": "Growth: ns per step by age of the games, one core",
    "tile": "Growth: ns per step by largest tile, one core",
    "peers": "Peers: 2048 by other projects, one core, steps/s",
}


@dataclass(frozen=True)
class Bench:
    """Measure speed in interleaved rounds; medians with the slowest and fastest round."""

    ids: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[ID ...]")] = ()
    """Puzzles to measure (default: all)."""
    sections: Annotated[tuple[Section, ...], tyro.conf.arg(metavar="NAME [...]")] = field(
        default=("single", "vector", "phases", "memory", "start", "training", "growth")
    )
    """What to measure: single, vector, phases, memory, start, training, growth (default: all)."""
    rounds: Annotated[int, tyro.conf.arg(metavar="R")] = 5
    """Rounds."""
    seconds: Annotated[float, tyro.conf.arg(metavar="S")] = 0.2
    """Stepping time of a case in each round (training: ten times that)."""
    peers: tyro.conf.FlagCreatePairsOff[bool] = False
    """Run the same work on gymnasium-2048, jumanji, open-spiel and pgx, whichever are installed."""
    peer_python: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="PATH [...]")] = ()
    """Further Python interpreters to look for peers in (`make peers` makes one for each)."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("runs/bench")
    """Folder for bench.json and the picture growth.png."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print JSON instead of tables."""


def run(options: Bench) -> int:
    """Measure all that is asked for, print it and write it to ``out``; returns the exit code."""
    ids = options.ids or tuple(PUZZLES)
    for env_id in ids:
        check_id(env_id)
    if options.rounds < 1 or not 0 < options.seconds < float("inf"):
        raise ValueError("--rounds must be at least 1 and --seconds more than 0")
    options.out.mkdir(parents=True, exist_ok=True)
    found = peers.find(options.peer_python) if options.peers else {}  # none there? It says so before all other work
    with ExitStack() as stack, steps_done("preparing") as tick:
        cases = list(_cases(options, ids, tick))
        if found:
            tick("preparing peers", 0)
            cases += peers.peer_cases(found, options.seconds, stack)
        total = sum(min(case.rounds or options.rounds, options.rounds) for case in cases)
        results, whole = interleave(cases, options.rounds, lambda case: tick(f"{case.section}: {case.name}", total))
    if not results:
        raise KeyboardInterrupt
    report = _report(options, results)
    _write(options, results, report)
    print(json.dumps(report, indent=1)) if options.json else _show(report, results)
    if not whole:
        print("puzzlegym bench: stopped early; these are the rounds until then", file=sys.stderr)
    return 0 if whole else _INTERRUPTED


def _training_cases(env_id: str, seconds: float) -> Iterator[Case]:
    from .benchmarks.training import training_cases  # loads torch

    return training_cases(env_id, seconds)


_SECTIONS: dict[Section, tuple[Callable[[str, float], Iterator[Case]], ...]] = {
    "single": (stepping.single_cases,),
    "vector": (stepping.vector_cases,),
    "phases": (phases.phase_cases,),
    "memory": (stepping.memory_cases,),
    "start": (starting.start_cases,),
    "training": (_training_cases,),
    "growth": (growth.size_cases, growth.age_cases, growth.tile_cases),
}


def _cases(options: Bench, ids: Sequence[str], tick: Callable[[str, int], None]) -> Iterator[Case]:
    for section, makers in _SECTIONS.items():
        if section in options.sections:
            for env_id in ids:
                tick(f"preparing {section} of {env_id}", 0)
                for make in makers:
                    yield from make(env_id, options.seconds)


def _report(options: Bench, results: Sequence[Result]) -> dict[str, Any]:
    names = ("gymnasium", "numpy", "numba")
    return {
        "date": date.today().isoformat(),
        "machine": {"processor": _processor(), "cores": threads.available(), "system": platform.system()},
        "versions": {
            "puzzlegym": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in names},
        },
        "rounds": options.rounds,
        "seconds": options.seconds,
        "results": [result.to_json() for result in results],
        "ratios": {ratio.name: ratio.times for ratio in peers.ratios(results)},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _write(options: Bench, results: Sequence[Result], report: dict[str, Any]) -> None:
    with atomic(options.out / "bench.json") as temporary:
        temporary.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    grown = [result for result in results if result.case.section in ("games", "age", "tile")]
    if grown:
        from ._plotting import save  # loads matplotlib

        save(growth.draw(grown), options.out / "growth.png")


def _show(report: dict[str, Any], results: Sequence[Result]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console()
    times = {ratio.name: f"{ratio.times:,.1f}x" for ratio in peers.ratios(results)}
    for section, title in _TITLES.items():
        mine = [result for result in results if result.case.section == section]
        if not mine:
            continue
        table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
        table.add_column("puzzle", no_wrap=True)
        table.add_column("case")
        for name in ("median", "min - max", *(["ours is"] if section == "peers" else [])):
            table.add_column(name, justify="right", no_wrap=True)
        for result in mine:
            case = result.case
            spread = f"{number(min(result.samples))} - {number(max(result.samples))}"
            ratio = [times.get(case.name, "")] if section == "peers" else []
            unit = " B" if case.unit == stepping.BYTES else ""
            table.add_row(case.env_id, case.name, number(result.median) + unit, spread, *ratio)
        console.print(table)
    machine, versions = report["machine"], report["versions"]
    told = ", ".join(f"{name} {number_}" for name, number_ in versions.items())
    console.print(f"{report['date']}; {machine['processor']}, {machine['cores']} cores; {told}", highlight=False)


def number(x: float) -> str:
    """A figure with three to four digits: ``"40.1 M"``, ``"317 k"``, ``"0.431"``."""
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if x >= size:
            return f"{x / size:.3g}{letter}" if x < 1000 * size else f"{x / size:,.0f}{letter}"
    return f"{x:.3g}"
