"""``puzzlegym dataset``: an agent's games as a Minari dataset, for offline learning."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

import gymnasium
import numpy as np
import tyro

from .. import PUZZLES, __version__
from ..agents.dataset import Choose, Writer, loading, new_dataset, play_episode
from ..agents.evaluation import Games, games
from ..agents.policy import check_id, load
from ..agents.seeds import TEST_DEALS, TRAIN_DEALS
from ..agents.solver import SOLVED, UNWINNABLE, Solver
from ..agents.wrapping import needed_by, wrap_single
from ..envs.common.rng import Streams
from ..envs.freecell import deal_board
from ..envs.freecell.deals import MAX_DEAL
from ._console import counted, steps_done, terminable

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


def run(options: Dataset) -> int:
    """Write the dataset, return the exit code. Raises ValueError for options that are wrong."""
    chosen = _chosen(options)
    player = _player(options)
    began = time.monotonic()
    made = gymnasium.make(options.env_id, disable_env_checker=True)
    with (
        terminable(),
        closing(wrap_single(made, player.wrappers)) as env,
        new_dataset(options.out, env, *_described(options)) as writer,
    ):
        _warn(chosen)
        _play(env, chosen, player, writer)
    print(f"{counted(writer.episodes, 'episode')}, {counted(writer.steps, 'move')}", end=" ")
    print(f"in {time.monotonic() - began:.1f} s: {options.out} ({_megabytes(options.out):,.1f} MB)")
    if player.left_out:
        print(f"Left out: {_listed(player.left_out)}")
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


class _Player(Protocol):
    """Who plays, and which deals were left out, by the reason."""

    wrappers: tuple[str, ...]
    left_out: dict[str, list[int]]

    def begin(self, seed: int, deal: int) -> Choose | None:
        """How to play this game, None to leave it out."""


class _Solving:
    """Plays what the solver found."""

    wrappers: tuple[str, ...] = ()

    def __init__(self, seconds: float, short: bool) -> None:
        self._solver = Solver(seconds, short=short)
        self._solver.solve(deal_board(1))  # the first use on a machine compiles, and a bar would stand still
        self.left_out: dict[str, list[int]] = {}

    def begin(self, seed: int, deal: int) -> Choose | None:
        solution = self._solver.solve(deal_board(deal))
        if solution.result != SOLVED:
            proved = solution.result == UNWINNABLE
            why = "proved unwinnable" if proved else f"undecided at the limit of {solution.limit}"
            self.left_out.setdefault(why, []).append(deal)
            return None
        line = iter(solution.actions)
        return lambda _observation, _mask: next(line)


class _Playing:
    """Plays as a policy does, each game with chance of its own."""

    def __init__(self, env_id: str, agent: str) -> None:
        self._policy = load(env_id, agent)
        self.wrappers = needed_by(self._policy)
        self.left_out: dict[str, list[int]] = {}

    def begin(self, seed: int, deal: int) -> Choose | None:
        streams = Streams.seeded([seed])
        return lambda board, mask: int(self._policy.act(board[None], mask[None], streams)[0])


def _player(options: Dataset) -> _Player:
    if options.agent == SOLVER and options.env_id == FREECELL:
        return _Solving(_SECONDS if options.time is None else options.time, options.short)
    if options.time is not None or options.short:
        raise ValueError(f"--time and --short are for the solver, not for {options.agent}")
    return _Playing(options.env_id, options.agent)


def _described(options: Dataset) -> tuple[str, str]:
    """The dataset's algorithm and description."""
    what = f"deals {options.deals}" if options.deals else f"{options.episodes} games of seed {options.seed or 0}"
    won = ", all won" if options.agent == SOLVER else ""
    algorithm = f"{options.agent} of puzzlegym {__version__}"
    return algorithm, f"{options.env_id}, {what}, played by {algorithm}{won}. Infos hold the masks of legal actions."


def _play(env: gymnasium.Env[Any, Any], chosen: Games, player: _Player, writer: Writer) -> None:
    """Play all games into the dataset."""
    with steps_done("games") as tick:
        for i, seed in enumerate(chosen.seeds.tolist()):
            setting = {name: int(values[i]) for name, values in chosen.options.items()}
            deal = setting.get("deal", 0)
            tick(f"deal {deal}" if deal else f"game {i + 1}", len(chosen))
            choose = player.begin(seed, deal)
            if choose is not None:
                writer.add(play_episode(env, choose, seed, setting))
    if not writer.episodes:
        raise ValueError(f"no dataset was written, since no game was won; {_listed(player.left_out)}")
    writer.note(left_out=player.left_out)


def _listed(left_out: Mapping[str, Sequence[int]]) -> str:
    """Deals by the reason that they were left out, the first of them by their numbers."""

    def one(why: str, deals: Sequence[int]) -> str:
        shown = ", ".join(map(str, deals[:_TOLD]))
        return f"{counted(len(deals), 'deal')} {why}: {shown}{', ...' if len(deals) > _TOLD else ''}"

    return "; ".join(one(*item) for item in left_out.items())


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
