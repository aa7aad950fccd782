"""``puzzlegym play``: a person plays, in the terminal."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Annotated

import tyro

from .. import PUZZLES
from ..agents.policy import check_id
from ..envs.common.rng import check_seed
from ..envs.freecell.deals import CLASSIC_DEALS
from ._console import Frames
from .playing.app import App
from .playing.keys import Keys
from .playing.play2048 import Play2048
from .playing.playfreecell import PlayFreeCell
from .playing.store import data_folder


@dataclass(frozen=True)
class Play:
    """Play a puzzle by hand. The game saves itself after every move and is offered again at the next start."""

    env_id: Annotated[
        tyro.conf.Positional[str], tyro.conf.arg(metavar="ID", help=f"The puzzle: {' or '.join(PUZZLES)}.")
    ]
    deal: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: a random one)")] = None
    """FreeCell only: number of the deal, 1 to 1,000,000."""
    seed: Annotated[int | None, tyro.conf.arg(metavar="S", help_behavior_hint="(default: a random one)")] = None
    """2048 only: same seed, same tiles after the same moves."""
    new: tyro.conf.FlagCreatePairsOff[bool] = False
    """Begin a new game without asking about the saved one, which is given up."""
    vi: tyro.conf.FlagCreatePairsOff[bool] = False
    """2048 only: the key h moves left, as in vi; the hint is on ? then."""


def run(options: Play) -> int:
    """Play; 0 when the player leaves. Raises ValueError for options that are wrong."""
    check_id(options.env_id)
    if sys.stdin is None:
        raise ValueError("there is no input: play reads its keys from a terminal or a pipe")
    if options.env_id not in _APPS:
        raise ValueError(f"play is for {' and '.join(_APPS)}, not for {options.env_id}")
    app = _APPS[options.env_id](options, Frames(sys.stdout), Keys(sys.stdin))
    try:
        with app.frames.open(), app.keys.open() if app.frames.in_place else nullcontext():
            app.run(options.new)
    finally:
        print(app.farewell())
    return 0


def _play_2048(options: Play, frames: Frames, keys: Keys) -> App:
    if options.deal is not None:
        raise ValueError(f"--deal is for FreeCell-v0: {options.env_id} has no numbered deals")
    seed = None if options.seed is None else check_seed(options.seed)
    return Play2048(data_folder(), frames, keys, seed, options.vi)


def _play_freecell(options: Play, frames: Frames, keys: Keys) -> App:
    if options.seed is not None or options.vi:
        raise ValueError("--seed and --vi are for Puzzle2048-v0: FreeCell-v0 takes --deal")
    if options.deal is not None and not 1 <= options.deal <= CLASSIC_DEALS:
        raise ValueError(f"--deal must be from 1 to {CLASSIC_DEALS:,}, not {options.deal:,}")
    return PlayFreeCell(data_folder(), frames, keys, options.deal)


_APPS = {"Puzzle2048-v0": _play_2048, "FreeCell-v0": _play_freecell}
