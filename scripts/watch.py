"""``puzzlegym watch``: an agent plays one game in the terminal."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import gymnasium
import numpy as np
import tyro
from numpy.typing import NDArray

from .. import PUZZLES
from ..agents.evaluation import games
from ..agents.policy import Policy, load
from ..agents.wrapping import needed_by, wrap_single
from ..envs.common.files import check_place
from ..envs.common.rng import Streams
from ..envs.freecell import Game
from ..envs.freecell.deals import CLASSIC_DEALS
from ._showing import check_apart, checked_delay, ending, moments, recorded, show, words_of
from .evaluate import OfNetworks, sample_of

FREECELL = "FreeCell-v0"
_SEEDS = 1_000_000


@dataclass(frozen=True)
class Watch:
    """Watch an agent play one game: in place on a terminal, picture after picture into a pipe or file."""

    env_id: Annotated[
        tyro.conf.Positional[str], tyro.conf.arg(metavar="ID", help=f"The puzzle: {' or '.join(PUZZLES)}.")
    ]
    agent: Annotated[str, tyro.conf.arg(metavar="NAME|PATH")]
    """Name (random, greedy; for 2048 corner, montecarlo, expectimax, ppo, ntuple) or path of a trained agent."""
    seed: Annotated[int | None, tyro.conf.arg(metavar="S", help_behavior_hint="(default: a random one)")] = None
    """The game to play: the first that 'evaluate --seed S' plays."""
    deal: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: by the seed)")] = None
    """FreeCell only: number of the deal, 1 to 1,000,000."""
    depth: Annotated[int | None, tyro.conf.arg(metavar="D", help_behavior_hint="(default: the agent's own)")] = None
    """Moves that an agent which searches looks ahead: expectimax, n-tuple networks."""
    move_time: Annotated[float | None, tyro.conf.arg(metavar="SECONDS", help_behavior_hint="(default: by depth)")] = (
        None
    )
    """Time for a move instead: it looks one move deeper after the other."""
    sampled: OfNetworks = False
    """A network draws its moves by the chances that it gives them."""
    greedy: OfNetworks = False
    """A network makes the moves that it finds most likely."""
    width: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: no search)")] = None
    """FreeCell: a network, or beam, searches a beam that keeps so many positions of every depth."""
    delay: Annotated[
        float | None, tyro.conf.arg(metavar="SECONDS", help_behavior_hint="(default: 0.15 on a terminal, else 0)")
    ] = None
    """Pause after each move, in a recording, too (0 counts as 0.15 there)."""
    record: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: no recording)")] = None
    """Record the game, too: .cast (asciinema), .gif, .mp4, .png (the last picture) or .txt."""
    save: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: not saved)")] = None
    """FreeCell only: write the moves in standard notation, for 'puzzlegym replay'."""


def run(options: Watch) -> int:
    """Show the game, return the exit code. Raises ValueError for options that are wrong."""
    delay = checked_delay(options.delay)
    seed = secrets.randbelow(_SEEDS) if options.seed is None else options.seed
    setting = _setting(options, seed)
    _check_save(options)
    sample = sample_of(options.sampled, options.greedy)
    title = f"{options.env_id}, agent {options.agent}, seed {seed}"
    with recorded(options.record, delay, title) as recording:
        policy = load(options.env_id, options.agent, options.depth, options.move_time, sample, options.width)
        player = _Player(policy, options.env_id, seed)
        made = gymnasium.make(options.env_id, render_mode="ansi", disable_env_checker=True)
        with closing(wrap_single(made, needed_by(player.policy))) as env, _saved(options, setting, player):
            words = words_of(options.env_id)
            game = moments(env, player.choose, player.seed, setting)
            print(ending(show(game, title, words, delay, recording), words))
    return 0


class _Player:
    """A policy in the first game that ``evaluate`` plays with a seed, and what it did."""

    def __init__(self, policy: Policy, env_id: str, seed: int) -> None:
        seeds = games(env_id, 1, seed).seeds
        self.policy, self.seed = policy, int(seeds[0])
        self.actions: list[int] = []
        self._streams = Streams.seeded(seeds)

    def choose(self, board: NDArray[np.uint8], mask: NDArray[np.bool_]) -> int:
        """The policy's move."""
        self.actions.append(int(self.policy.act(board[None], mask[None], self._streams)[0]))
        return self.actions[-1]


def _check_save(options: Watch) -> None:
    if options.save is not None:
        if options.env_id != FREECELL:
            raise ValueError(f"--save is for {FREECELL}: {options.env_id} has no notation for games")
        check_apart(options.record, options.save, "--save")
        check_place(options.save)


@contextmanager
def _saved(options: Watch, setting: Mapping[str, int], player: _Player) -> Iterator[None]:
    """Write the game at the end, also one that Ctrl-C ended, if that is wanted."""
    try:
        yield
    finally:
        if options.save is not None:
            game = Game.of_actions(Game.of_deal(setting["deal"]).start, player.actions)
            replace(game, fields={"Player": " ".join(options.agent.split())}).save(options.save)
            print(f"Saved in {options.save}; 'puzzlegym replay {options.save}' plays it")


def _setting(options: Watch, seed: int) -> dict[str, int]:
    """The reset options that place the game."""
    chosen = games(options.env_id, 1, seed)
    setting = {name: int(values[0]) for name, values in chosen.options.items()}
    if options.deal is not None:
        if "deal" not in setting:
            raise ValueError(f"--deal is for FreeCell-v0: {options.env_id} has no numbered deals")
        if not 1 <= options.deal <= CLASSIC_DEALS:
            raise ValueError(f"--deal must be from 1 to {CLASSIC_DEALS:,}, not {options.deal:,}")
        setting["deal"] = options.deal
    return setting
