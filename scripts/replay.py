"""``puzzlegym replay``: a written game of FreeCell is played once more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import gymnasium
import numpy as np
import tyro
from numpy.typing import NDArray

from ..envs.freecell import Game, GameError, has_moves, is_won
from ..envs.freecell.state import home_counts
from ._console import counted
from ._showing import check_apart, checked_delay, moments, recorded, show, words_of

ENV_ID = "FreeCell-v0"


@dataclass(frozen=True)
class Replay:
    """Play a game of FreeCell from a file, as 'watch --save' and the key s of 'play' write it, and check every move."""

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """The game: 'Deal: 617' or a position, and moves in standard notation."""
    check: tyro.conf.FlagCreatePairsOff[bool] = False
    """Only say how the game ends, or which move is wrong and why."""
    delay: Annotated[
        float | None, tyro.conf.arg(metavar="SECONDS", help_behavior_hint="(default: 0.15 on a terminal, else 0)")
    ] = None
    """Pause after each move, in a recording, too (0 counts as 0.15 there)."""
    record: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: no recording)")] = None
    """Record the game, too: .cast (asciinema), .gif, .mp4, .png (the last picture) or .txt."""


def run(options: Replay) -> int:
    """Show the game, return the exit code. Raises ValueError for a file that is no game, or at its first wrong move."""
    delay = checked_delay(options.delay)
    game = Game.load(options.file)
    check_apart(options.record, options.file, "the game")
    try:
        if not options.check:
            _show(options, game, delay)
        print(_verdict(game))
    except GameError as error:
        raise ValueError(f"{options.file}: {error}") from None
    return 0


def _show(options: Replay, game: Game, delay: float | None) -> None:
    """Show the game up to its end, or to its first wrong move."""
    title = f"{ENV_ID}, {options.file.name}"
    env = gymnasium.make(
        ENV_ID, render_mode="ansi", disable_env_checker=True, max_episode_steps=-1, autoplay=game.autoplay
    )
    setting = {"deal": game.start.deal} if game.start.deal else {"board": game.start}
    actions = _actions(game)
    with recorded(options.record, delay, title) as recording, closing(env):

        def choose(_board: NDArray[np.uint8], _mask: NDArray[np.bool_]) -> int | None:
            return next(actions, None)

        show(moments(env, choose, 0, setting), title, words_of(ENV_ID), delay, recording)


def _actions(game: Game) -> Iterator[int]:
    """The actions up to the first move that is wrong."""
    try:
        for played in game.replay():
            yield played.action
    except GameError:  # ``_verdict`` says it, when the terminal is as it was
        return


def _verdict(game: Game) -> str:
    """How the game ends. Raises GameError at a wrong move."""
    board, number = game.start.array, 0
    for played in game.replay():
        board, number = played.board, played.number
    if is_won(board):
        how = "won, all 52 cards are home"
    else:
        how = f"{'' if has_moves(board) else 'no legal move left, '}{sum(home_counts(board))} of 52 cards are home"
    return f"{'Over' if not has_moves(board) else 'Ends'} after {counted(number, 'move')}: {how}."
