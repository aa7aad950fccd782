"""``puzzlegym evaluate``: agents on held-out games, as a table or as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated

import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from .. import PUZZLES
from ..agents.evaluation import Evaluation, Rate, evaluate, games, play_spread
from ..agents.policy import beams, samples, searches
from ..agents.portable import PortableAgent
from ..agents.workers import Spread
from ._console import progress
from ._ray import OnRay, spreading

OfNetworks = Annotated[tyro.conf.FlagCreatePairsOff[bool], tyro.conf.arg(help_behavior_hint="(default: as trained)")]
"""A flag about the moves of networks."""


@dataclass(frozen=True)
class Evaluate:
    """Play whole games on held-out seeds with one or several agents; all of them play the same games."""

    env_id: Annotated[
        tyro.conf.Positional[str], tyro.conf.arg(metavar="ID", help=f"The puzzle: {' or '.join(PUZZLES)}.")
    ]
    agent: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME|PATH [...]")]
    """One or more: names (puzzlegym leaderboard plays them all) or paths of trained agents."""
    episodes: Annotated[int, tyro.conf.arg(metavar="N")] = 200
    """Number of games."""
    seed: Annotated[int, tyro.conf.arg(metavar="S")] = 0
    """The games to play: same seed, same games."""
    depth: Annotated[int | None, tyro.conf.arg(metavar="D", help_behavior_hint="(default: each agent's own)")] = None
    """Moves that those agents which search look ahead: expectimax, n-tuple networks."""
    move_time: Annotated[float | None, tyro.conf.arg(metavar="SECONDS", help_behavior_hint="(default: by depth)")] = (
        None
    )
    """Time for a move of those agents instead: they look one move deeper after the other."""
    sampled: OfNetworks = False
    """Networks draw their moves by the chances that they give them."""
    greedy: OfNetworks = False
    """Networks make the moves that they find most likely."""
    width: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: no search)")] = None
    """FreeCell: networks, and beam, search a beam that keeps so many positions of every depth."""
    start_rank: Annotated[int, tyro.conf.arg(metavar="R")] = 0
    """FreeCell only: cards up to this rank start at home (0: the numbered deals)."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print JSON instead of a table: an object, or a list for several agents."""
    plot: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: none)")] = None
    """Draw scores and rates, too, as .png, .svg, .pdf or what else matplotlib writes."""
    ray: OnRay = None


def run(options: Evaluate) -> int:
    """Evaluate every agent in turn, print the results, return the exit code. Raises ValueError for bad options."""
    _check(options)
    agents = [_loaded(options, name) for name in options.agent]
    results: list[Evaluation] = []
    try:
        with spreading(options.ray) as spread:
            for agent in agents:
                results.append(_evaluate(options, agent, spread))
    finally:  # after Ctrl-C those of the agents that have played
        if results:
            _report(options, results)
    return 0


def _check(options: Evaluate) -> None:
    """Raise ValueError for options that are wrong, before anything is played."""
    if not options.agent:
        raise ValueError("name at least one agent: --agent random, for example")
    games(options.env_id, options.episodes, options.seed, start_rank=options.start_rank)
    if options.plot:
        from ._plotting import check  # loads matplotlib

        check(options.plot)
    if (options.depth, options.move_time) != (None, None) and not any(_which(searches, options)):
        raise ValueError("--depth and --move-time are for agents that search, and none of these does")
    if sample_of(options.sampled, options.greedy) is not None and not any(_which(samples, options)):
        raise ValueError("--sampled and --greedy are for networks, and none of these agents is one")
    if options.width is not None and not any(_which(beams, options)):
        raise ValueError("--width is for FreeCell's networks and beam, and none of these agents is one")


def _which(can: Callable[[str, str], bool], options: Evaluate) -> Iterator[bool]:
    return (can(options.env_id, name) for name in options.agent)


def sample_of(sampled: bool, greedy: bool) -> bool | None:
    """Should networks draw their moves (None: as they were trained to)? Raises ValueError if both were asked for."""
    if sampled and greedy:
        raise ValueError("give --sampled or --greedy, not both")
    return sampled if sampled or greedy else None


def _report(options: Evaluate, results: Sequence[Evaluation]) -> None:
    """Print the results, as a table or as JSON, and draw them."""
    if options.json:
        found = [result.to_json() for result in results]
        print(json.dumps(found if len(options.agent) > 1 else found[0], indent=2))
    else:
        show(results, Console())
    if options.plot:
        _draw(results, options.plot)
        print(f"Plot in {options.plot}", file=sys.stderr if options.json else sys.stdout)


def _draw(results: Sequence[Evaluation], path: Path) -> None:
    from . import _comparison, _plotting

    names = _plotting.apart([result.agent for result in results])
    _plotting.save(_comparison.draw(results, names, shown_rates(results)), path)


def evaluate_one(options: Evaluate, name: str, spread: Spread | None = None) -> Evaluation:
    """One agent's result; ``spread``: who plays the games, if not this process."""
    return _evaluate(options, _loaded(options, name), spread)


def _loaded(options: Evaluate, name: str) -> PortableAgent:
    """The agent, with what was asked for of depth, width and choice of moves, as far as it has them."""
    search = (options.depth, options.move_time) if searches(options.env_id, name) else (None, None)
    sample = sample_of(options.sampled, options.greedy) if samples(options.env_id, name) else None
    width = options.width if beams(options.env_id, name) else None
    settings = {"depth": search[0], "seconds": search[1], "sample": sample, "width": width}
    agent = PortableAgent(options.env_id, name, settings)
    agent.player  # noqa: B018  # if it cannot play, this says so
    return agent


def _evaluate(options: Evaluate, agent: PortableAgent, spread: Spread | None) -> Evaluation:
    elsewhere = None if spread is None else partial(play_spread, spread, agent)
    with progress(short(agent.name), options.episodes) as callback:
        return evaluate(
            options.env_id,
            agent.player,
            options.episodes,
            options.seed,
            start_rank=options.start_rank,
            agent=agent.name,
            progress=callback,
            elsewhere=elsewhere,
        )


def short(name: str) -> str:
    """An agent as shown: a name as it is, a path by its last parts."""
    parts = [part for part in os.path.normpath(name).split(os.sep) if part != "agent.zip"]
    return parts[-1] if parts else name


@dataclass(frozen=True)
class Column:
    """A column of the table; those with the highest ``order`` go first where the table is too wide."""

    title: str
    cell: Callable[[Evaluation], str]
    order: float = 0


def number(value: float) -> str:
    """A figure with as many digits as are of use."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"


def percent(value: float) -> str:
    """A share in percent that never rounds to none or to all."""
    if value in (0, 1):
        return f"{100 * value:.0f}%"
    text = f"{100 * value:.1f}%"
    return {"0.0%": "<0.1%", "100.0%": ">99.9%"}.get(text, text)


def columns(results: Sequence[Evaluation], board: bool = False) -> list[Column]:
    """All columns that say something about these results; on a leaderboard training and speed stay longest."""
    rates = shown_rates(results)
    several = len(rates) > 1
    return [
        Column("agent", lambda r: short(r.agent)),
        Column("score", lambda r: number(r.score_mean)),
        Column("95% CI", lambda r: f"{number(r.score_ci95[0])} - {number(r.score_ci95[1])}"),
        Column("median", lambda r: number(r.score_median), order=2),
        Column("max", lambda r: number(r.score_max), order=3),
        *chain.from_iterable(_rate_columns(name, several, 1 - i / len(rates)) for i, name in enumerate(rates)),
        Column("moves", lambda r: number(r.moves_mean), order=5),
        Column("moves/s", lambda r: f"{r.moves_per_second:,.0f}", order=0.1 if board else 4),
        *([Column("training", lambda r: r.training.split(",")[0] or "none", order=0.1)] if board else []),
    ]


def _rate_columns(name: str, several: bool, order: float) -> list[Column]:
    """A rate, with its interval if it is the only one: several would not fit side by side."""

    def interval(rate: Rate) -> str:
        return f"{percent(rate.ci95[0])} - {percent(rate.ci95[1])}"

    value = Column(name, lambda r: percent(r.rates[name].value), order)
    return [value] if several else [value, Column("95% CI", lambda r: interval(r.rates[name]))]


def shown_rates(results: Sequence[Evaluation]) -> list[str]:
    """The rates up to the last that any agent has above zero, and the next one."""
    names = list(results[0].rates)
    above = [index for index, name in enumerate(names) if any(r.rates[name].value > 0 for r in results)]
    return names[: (above[-1] if above else -1) + 2]


def show(results: Sequence[Evaluation], console: Console, board: bool = False) -> None:
    """Print one table that fits the console."""
    shown = columns(results, board)
    table = _table(results, shown)
    unbounded = console.options.update(max_width=10_000)
    while Measurement.get(console, unbounded, table).maximum > console.width:
        least = max(shown, key=lambda column: column.order)
        if least.order == 0:
            break
        shown.remove(least)
        table = _table(results, shown)
    console.print(table)
    told = {column.title for column in shown}
    console.print(_note(results, [name for name in shown_rates(results) if name in told]), highlight=False)
    if results[0].losses:
        console.print(_losses(results), highlight=False)


def _table(results: Sequence[Evaluation], shown: Sequence[Column]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for column in shown:
        table.add_column(column.title, justify="left" if column.title == "agent" else "right", no_wrap=True)
    for result in results:
        table.add_row(*(column.cell(result) for column in shown))
    return table


def _note(results: Sequence[Evaluation], rates: Sequence[str]) -> str:
    first = results[0]
    cards = f", start_rank {first.start_rank}" if first.start_rank else ""
    reached = f"{rates[0]} ... {rates[-1]}: share of games that reached it. " if len(rates) > 1 else ""
    illegal = ", ".join(f"{short(r.agent)} {r.illegal_moves:,}" for r in results if r.illegal_moves) or "none"
    return (
        f"{first.env_id}{cards}: {first.episodes:,} whole games, seed {first.seed}. Illegal moves: {illegal}.\n"
        f"{_chosen(results)}{reached}Intervals: bootstrap for the mean score, Wilson for rates."
    )


def _chosen(results: Sequence[Evaluation]) -> str:
    """Which networks drew their moves and which made the most likely ones; nothing where there are no networks."""
    ways = (
        ("Sampled moves", [short(result.agent) for result in results if result.sampled]),
        ("Most likely moves", [short(result.agent) for result in results if result.sampled is False]),
        ("Beam search", [f"{short(r.agent)} (width {r.width})" for r in results if r.width is not None]),
    )
    told = " ".join(f"{way}: {', '.join(names)}." for way, names in ways if names)
    return f"{told}\n" if told else ""


def _losses(results: Sequence[Evaluation]) -> str:
    """A line for each agent: the share of games that it lost by each cause."""
    width = max(len(short(result.agent)) for result in results)
    lines = ["Lost games (repeated: at the step limit, most moves back to positions seen):"]
    for result in results:
        shares = (f"{cause.replace('_', ' ')} {percent(rate.value):>5}" for cause, rate in result.losses.items())
        lines.append("   ".join([f"{short(result.agent):<{width}}", *shares]))
    return "\n".join(lines)
