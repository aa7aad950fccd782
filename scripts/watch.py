"""``puzzlegym watch``: an agent plays one game in the terminal."""

from __future__ import annotations

import math
import secrets
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, SupportsFloat

import gymnasium
import numpy as np
import tyro
from numpy.typing import NDArray

from .. import PUZZLES
from ..agents.evaluation import games
from ..agents.policy import Policy, load
from ..agents.wrapping import needed_by, wrap_single
from ..envs.common.rng import Streams
from ..envs.freecell.deals import CLASSIC_DEALS
from ._console import Frames

Info = Mapping[str, Any]
_SEEDS = 1_000_000
_TERMINAL_DELAY = 0.15
_LEGAL_LINES = 2


@dataclass(frozen=True)
class Watch:
    """Watch an agent play one game: in place on a terminal, picture after picture into a pipe or file."""

    env_id: Annotated[
        tyro.conf.Positional[str], tyro.conf.arg(metavar="ID", help=f"The puzzle: {' or '.join(PUZZLES)}.")
    ]
    agent: Annotated[str, tyro.conf.arg(metavar="NAME|PATH")]
    """Name (random, greedy) or path of a trained agent."""
    seed: Annotated[int | None, tyro.conf.arg(metavar="S", help_behavior_hint="(default: a random one)")] = None
    """The game to play: the first that 'evaluate --seed S' plays."""
    deal: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: by the seed)")] = None
    """FreeCell only: number of the deal, 1 to 1,000,000."""
    delay: Annotated[
        float | None, tyro.conf.arg(metavar="SECONDS", help_behavior_hint="(default: 0.15 on a terminal, else 0)")
    ] = None
    """Pause after each move."""


@dataclass(frozen=True)
class Words:
    """How a puzzle's moves and results are put: names of moves on a board, standing, and the end of a game."""

    moves: Callable[[NDArray[np.uint8], NDArray[np.int64]], list[str]]
    standing: Callable[[Info], str]
    outcome: Callable[[Info, str], str]


def _directions(_board: NDArray[np.uint8], actions: NDArray[np.int64]) -> list[str]:
    from ..envs.puzzle2048 import Action

    return [Action(int(action)).name.lower() for action in actions]


def _notation(board: NDArray[np.uint8], actions: NDArray[np.int64]) -> list[str]:
    from ..envs.freecell.notation import format_move

    return sorted(format_move(board, int(action)) for action in actions)  # by column, not by card


def _tiles(info: Info, why: str) -> str:
    how = "2048 reached" if info["is_success"] else why
    return f"{how}, score {info['score']:,}, largest tile {info['max_tile']}"


def _cards(info: Info, why: str) -> str:
    return "won, all 52 cards are home" if info["is_success"] else f"{why}, {info['cards_home']} of 52 cards are home"


# A puzzle without words of its own shows the numbers of its actions.
_PLAIN = Words(
    moves=lambda _board, actions: [str(action) for action in actions],
    standing=lambda info: "success" if info.get("is_success") else "",
    outcome=lambda info, why: f"{why}, {'success' if info.get('is_success') else 'no success'}",
)
WORDS: dict[str, Words] = {
    "Puzzle2048-v0": Words(_directions, lambda info: f"score {info['score']:,}", _tiles),
    "FreeCell-v0": Words(_notation, lambda info: f"cards home {info['cards_home']}/52", _cards),
}


@dataclass(frozen=True)
class Moment:
    """A game after a move (``number`` 0: before the first one)."""

    picture: str
    number: int
    move: str
    reward: float
    legal: list[str]
    info: Info
    terminated: bool
    truncated: bool


def run(options: Watch) -> int:
    """Show the game, return the exit code. Raises ValueError for options that are wrong."""
    frames = Frames(sys.stdout)
    delay = _delay(options.delay, frames.in_place)
    seed = secrets.randbelow(_SEEDS) if options.seed is None else options.seed
    setting = _setting(options, seed)
    policy = load(options.env_id, options.agent)
    env = wrap_single(gymnasium.make(options.env_id, render_mode="ansi", disable_env_checker=True), needed_by(policy))
    try:
        title = f"{options.env_id}, agent {options.agent}, seed {seed}"
        words = WORDS.get(options.env_id, _PLAIN)
        game = moments(env, policy, options.env_id, seed, setting)
        first = next(game)  # may compile for a while, and says so: before the screen is cleared
        with frames.open():
            for moment in chain([first], game):
                frames.show(picture(moment, title, words, frames.width))
                time.sleep(delay if moment.number or frames.in_place else 0)
        print(_ending(moment, words))
    finally:
        env.close()
    return 0


def _delay(delay: float | None, in_place: bool) -> float:
    if delay is None:
        return _TERMINAL_DELAY if in_place else 0.0
    if not (math.isfinite(delay) and delay >= 0):
        raise ValueError(f"--delay must be 0 or more seconds, not {delay}")
    return delay


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


def moments(
    env: gymnasium.Env[Any, Any], policy: Policy, env_id: str, seed: int, setting: Mapping[str, int]
) -> Iterator[Moment]:
    """Play the game that ``evaluate`` plays first with this seed, and yield it move by move."""
    seeds = games(env_id, 1, seed).seeds
    streams = Streams.seeded(seeds)
    name = WORDS.get(env_id, _PLAIN).moves
    board, info = env.reset(seed=int(seeds[0]), options=dict(setting))
    number, move = 0, ""
    reward: SupportsFloat = 0.0
    terminated = truncated = False
    while True:
        mask = np.asarray(info["action_mask"], dtype=np.bool_)
        legal = name(board, np.flatnonzero(mask))
        yield Moment(str(env.render()), number, move, float(reward), legal, info, terminated, truncated)
        if terminated or truncated:
            return
        action = policy.act(board[None], mask[None], streams)
        move = name(board, action)[0]
        board, reward, terminated, truncated, info = env.step(int(action[0]))
        number += 1


def picture(moment: Moment, title: str, words: Words, width: int) -> list[str]:
    """The lines of one picture: title, board, last move, legal moves."""
    last = f"move {moment.number}: {moment.move or 'start'}"
    if not moment.info.get("legal", True):
        last += " (illegal)"
    facts = [last, f"reward {moment.reward:+g}" if moment.number else "", words.standing(moment.info)]
    return [
        title,
        "",
        *moment.picture.rstrip("\n").split("\n"),
        "",
        "   ".join(fact for fact in facts if fact),
        *_legal(moment.legal, width),
    ]


def _legal(names: list[str], width: int) -> list[str]:
    """The legal moves in a fixed number of lines, so that pictures do not jump; what does not fit is counted."""
    head = f"legal ({len(names)}): "
    lines = textwrap.wrap(head + " ".join(names), width) if names else ["legal: none"]
    if len(lines) > _LEGAL_LINES:
        lines = textwrap.wrap(head + " ".join(names), width, max_lines=_LEGAL_LINES, placeholder=" ...")
    return lines + [""] * (_LEGAL_LINES - len(lines))


def _ending(moment: Moment, words: Words) -> str:
    why = "no legal move left" if moment.terminated else "stopped at the step limit"
    return f"Over after {moment.number:,} moves: {words.outcome(moment.info, why)}."
