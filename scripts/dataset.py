"""``puzzlegym dataset``: an agent's games as a Minari dataset, for offline learning."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from .. import PUZZLES, __version__
from ..agents.dataset import Playing, Recorder, Solving, Writer, loading, new_dataset
from ..agents.evaluation import Games, games
from ..agents.policy import check_id
from ..agents.portable import PortableAgent
from ..agents.seeds import TEST_DEALS, TRAIN_DEALS
from ..agents.workers import Spread, in_order
from ..envs.freecell.deals import MAX_DEAL
from ._console import counted, steps_done, terminable
from ._ray import OnRay, spreading

FREECELL, SOLVER = "FreeCell-v0", "solver"
_SECONDS = 60.0
_MOST_DEALS = 1_000_000
_TOLD = 8  # deals left out that are named


@dataclass(frozen=True)
class Dataset:
    """Write games as a Minari dataset for offline learning: by default FreeCell deals, each solved and played."""

    env_id: Annotated[
        tyro.conf.Positional[str], tyro.conf.arg(metavar="ID", help=f"The puzzle: {' or '.join(PUZZLES)}.")
    ]
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")]
    """The dataset, a new folder. minari.load_dataset(NAME) finds it, too, with its parent as MINARI_DATASETS_PATH."""
    deals: Annotated[str | None, tyro.conf.arg(metavar="A-B[,...]", help_behavior_hint="(default: see --episodes)")] = (
        None
    )
    """FreeCell only: the numbered deals to play, such as 32001-33000; 1 to 32,000 are those that evaluation plays."""
    episodes: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: see --deals)")] = None
    """Play so many of the games that training plays instead, for FreeCell distinct deals from 32,001 to 1,000,000."""
    seed: Annotated[int | None, tyro.conf.arg(metavar="S", help_behavior_hint="(default: 0)")] = None
    """Which ones of them: same seed, same games."""
    agent: Annotated[str, tyro.conf.arg(metavar="NAME|PATH")] = SOLVER
    """Who plays: the solver leaves out deals that it does not win, all others play every game."""
    time: Annotated[float | None, tyro.conf.arg(metavar="SECONDS", help_behavior_hint=f"(default: {_SECONDS:g})")] = (
        None
    )
    """Solver: time for a deal."""
    short: tyro.conf.FlagCreatePairsOff[bool] = False
    """Solver: look longer for a shorter line."""
    ray: OnRay = None


def run(options: Dataset) -> int:
    """Write the dataset, return the exit code. Raises ValueError for options that are wrong."""
    chosen = _chosen(options)
    recorder = Recorder(chosen, _player(options))
    began = time.monotonic()
    with (
        terminable(),
        spreading(options.ray) as spread,
        closing(recorder.seated[1]) as env,
        new_dataset(options.out, env, *_described(options)) as writer,
    ):
        _warn(chosen)
        left_out = _play(recorder, writer, spread)
    print(f"{counted(writer.episodes, 'episode')}, {counted(writer.steps, 'move')}", end=" ")
    print(f"in {time.monotonic() - began:.1f} s: {options.out} ({_megabytes(options.out):,.1f} MB)")
    if left_out:
        print(f"Left out: {_listed(left_out)}")
    print("Load it in Python:", *loading(options.out), sep="\n")
    return 0


def _chosen(options: Dataset) -> Games:
    """The games to play."""
    check_id(options.env_id)
    if (options.deals is None) == (options.episodes is None):
        raise ValueError("give the games to play: --deals A-B for FreeCell-v0, or --episodes N")
    if options.episodes is not None:
        return games(options.env_id, options.episodes, options.seed or 0, stream="train")
    if options.env_id != FREECELL:
        raise ValueError(f"--deals is for {FREECELL}: {options.env_id} has no numbered deals, give --episodes N")
    if options.seed is not None:
        raise ValueError("--seed is for --episodes: --deals names the games")
    deals = np.array(numbers(options.deals or ""))
    return Games(FREECELL, deals, {"deal": deals})  # by its number's seed a game is the same in every dataset


def numbers(text: str) -> list[int]:
    """The deals of ``A-B,C,...``, each once. Raises ValueError for anything else."""
    found: dict[int, None] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,10})(?:\s*-\s*(\d{1,10}))?\s*", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last <= MAX_DEAL:
            raise ValueError(
                f"--deals must be numbers from 1 to {MAX_DEAL:,}, such as 32001-33000 or 5,7, not {text!r}"
            )
        if len(found) + last - first >= _MOST_DEALS:
            raise ValueError(f"--deals must be at most {_MOST_DEALS:,} deals at once, not {text!r}")
        found |= dict.fromkeys(range(first, last + 1))
    return list(found)


def _warn(chosen: Games) -> None:
    """Say that test deals are not for training."""
    deals = chosen.options.get("deal", np.empty(0))
    first, last = TEST_DEALS
    tested = int(((deals >= first) & (deals <= last)).sum())
    if tested:
        print(
            f"for evaluation only: {counted(tested, 'deal')} of {first:,} to {last:,}, on which agents are compared; "
            f"train on {TRAIN_DEALS[0]:,} to {TRAIN_DEALS[1]:,}",
            file=sys.stderr,
        )


def _player(options: Dataset) -> partial[Solving] | partial[Playing]:
    if options.agent == SOLVER and options.env_id == FREECELL:
        return partial(Solving, _SECONDS if options.time is None else options.time, options.short)
    if options.time is not None or options.short:
        raise ValueError(f"--time and --short are for the solver, not for {options.agent}")
    return partial(Playing, PortableAgent(options.env_id, options.agent))


def _described(options: Dataset) -> tuple[str, str]:
    """The dataset's algorithm and description."""
    what = f"deals {options.deals}" if options.deals else f"{options.episodes} games of seed {options.seed or 0}"
    won = ", all won" if options.agent == SOLVER else ""
    algorithm = f"{options.agent} of puzzlegym {__version__}"
    return algorithm, f"{options.env_id}, {what}, played by {algorithm}{won}. Infos hold the masks of legal actions."


def _play(recorder: Recorder, writer: Writer, spread: Spread | None) -> dict[str, list[int]]:
    """Play all games into the dataset; returns the deals left out, by the reason."""
    total, left_out = len(recorder.chosen), dict[str, list[int]]()
    recorded = recorder(range(total)) if spread is None else spread(recorder, range(total), total)
    with closing(recorded), steps_done("games") as tick:
        tick(_called(recorder, 0), total)
        for number, episode in enumerate(in_order(recorded, range(total))):
            if isinstance(episode, str):
                left_out.setdefault(episode, []).append(recorder.setting(number)["deal"])
            else:
                writer.add(episode)
            tick(_called(recorder, min(number + 1, total - 1)), total)
    if not writer.episodes:
        raise ValueError(f"no dataset was written, since no game was won; {_listed(left_out)}")
    writer.note(left_out=left_out)
    return left_out


def _called(recorder: Recorder, number: int) -> str:
    deal = recorder.setting(number).get("deal")
    return f"deal {deal}" if deal else f"game {number + 1}"


def _listed(left_out: Mapping[str, Sequence[int]]) -> str:
    """Deals by the reason that they were left out, the first of them by their numbers."""

    def one(why: str, deals: Sequence[int]) -> str:
        shown = ", ".join(map(str, deals[:_TOLD]))
        return f"{counted(len(deals), 'deal')} {why}: {shown}{', ...' if len(deals) > _TOLD else ''}"

    return "; ".join(one(*item) for item in left_out.items())


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
