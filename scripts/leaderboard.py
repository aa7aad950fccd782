"""``puzzlegym leaderboard``: all named agents of a puzzle on the same held-out games."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import tyro
from rich.console import Console

from .. import PUZZLES
from ..agents.evaluation import Evaluation, games
from ..agents.policy import check_id, named_agents
from ._ray import OnRay, spreading
from .evaluate import Evaluate, evaluate_one, show


@dataclass(frozen=True)
class Leaderboard:
    """Evaluate all agents that have a name, best first, each on the same whole games."""

    env_id: Annotated[
        tyro.conf.Positional[str], tyro.conf.arg(metavar="ID", help=f"The puzzle: {' or '.join(PUZZLES)}.")
    ]
    episodes: Annotated[int, tyro.conf.arg(metavar="N")] = 100
    """Number of games."""
    seed: Annotated[int, tyro.conf.arg(metavar="S")] = 0
    """The games to play: same seed, same games."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print a JSON list instead of a table."""
    ray: OnRay = None


def run(options: Leaderboard) -> int:
    """Evaluate every named agent, print them, return the exit code. Raises ValueError for bad options."""
    check_id(options.env_id)
    games(options.env_id, options.episodes, options.seed)  # bad options end it here
    names = tuple(named_agents(options.env_id))
    call = Evaluate(options.env_id, names, options.episodes, options.seed)
    results: list[Evaluation] = []
    try:
        with spreading(options.ray) as spread:
            for name in names:
                try:
                    results.append(evaluate_one(call, name, spread))
                except ModuleNotFoundError as error:  # an agent that needs more than this command does
                    print(f"{name} left out: {error.name} is not installed", file=sys.stderr)
    finally:  # after Ctrl-C those that have played
        if results:
            _report(sorted(results, key=lambda result: -result.score_mean), options.json)
    return 0


def _report(results: Sequence[Evaluation], as_json: bool) -> None:
    if as_json:
        print(json.dumps([result.to_json() for result in results], indent=2))
    else:
        show(results, Console(), board=True)
