"""A game shown move by move, on the terminal and, if asked, into a recording."""

from __future__ import annotations

import math
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, SupportsFloat, cast

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ..envs.common.recording import Recording
from ._console import Frames, counted, terminable

Info = Mapping[str, Any]
_SECONDS = 0.15  # between moves, on a terminal and in a recording
_LEGAL_LINES = 2
_RECORDED_WIDTH = 80


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


_WORDS: dict[str, Words] = {
    "Puzzle2048-v0": Words(_directions, lambda info: f"score {info['score']:,}", _tiles),
    "FreeCell-v0": Words(_notation, lambda info: f"cards home {info['cards_home']}/52", _cards),
}
# A puzzle without words of its own shows the numbers of its actions.
_PLAIN = Words(
    moves=lambda _board, actions: [str(action) for action in actions],
    standing=lambda info: "success" if info.get("is_success") else "",
    outcome=lambda info, why: f"{why}, {'success' if info.get('is_success') else 'no success'}",
)


def words_of(env_id: str) -> Words:
    """The words of a puzzle."""
    return _WORDS.get(env_id, _PLAIN)


@dataclass(frozen=True)
class Moment:
    """A game after a move (``number`` 0: before the first one), as long as ``env`` makes no other."""

    env: gymnasium.Env[Any, Any]
    number: int
    move: str
    reward: float
    legal: list[str]
    info: Info
    terminated: bool
    truncated: bool

    @property
    def picture(self) -> str:
        """The board as text."""
        return str(self.env.render())

    @property
    def image(self) -> NDArray[np.uint8]:
        """The board drawn."""
        inner: Any = self.env.unwrapped
        return cast("NDArray[np.uint8]", inner.render_as("rgb_array"))


Choose = Callable[[NDArray[np.uint8], NDArray[np.bool_]], int | None]
"""The action for a board and its mask, None to stop."""


def moments(env: gymnasium.Env[Any, Any], choose: Choose, seed: int, setting: Mapping[str, Any]) -> Iterator[Moment]:
    """Play a game and yield it move by move. ``setting``: reset options."""
    env_id = env.spec.id if env.spec else ""
    name = words_of(env_id).moves
    board, info = env.reset(seed=seed, options=dict(setting))
    number, move = 0, ""
    reward: SupportsFloat = 0.0
    terminated = truncated = False
    while True:
        mask = np.asarray(info["action_mask"], dtype=np.bool_)
        legal = name(board, np.flatnonzero(mask))
        yield Moment(env, number, move, float(reward), legal, info, terminated, truncated)
        action = None if terminated or truncated else choose(board, mask)
        if action is None:
            return
        move = name(board, np.array([action]))[0]
        board, reward, terminated, truncated, info = env.step(action)
        number += 1


def check_apart(record: Path | None, other: Path | None, name: str) -> None:
    """Raise ValueError if the recording would take the place of another file."""
    if record is not None and other is not None and record.resolve() == other.resolve():
        raise ValueError(f"--record and {name} are the same file, {record}: choose another one")


def checked_delay(delay: float | None) -> float | None:
    """``delay`` itself. Raises ValueError for a number that is no pause."""
    if delay is not None and not (math.isfinite(delay) and delay >= 0):
        raise ValueError(f"--delay must be 0 or more seconds, not {delay}")
    return delay


def show(
    game: Iterator[Moment], title: str, words: Words, delay: float | None = None, recording: Recording | None = None
) -> Moment:
    """Show a game, ``delay`` seconds a move (None: 0.15 on a terminal, else 0), record it, return its last moment."""
    frames = Frames(sys.stdout)
    if delay is None:
        delay = _SECONDS if frames.in_place else 0.0
    first = next(game)  # may compile for a while, and says so: before the screen is cleared
    with frames.open():
        for moment in chain([first], game):
            frames.show(_picture(moment, title, words, frames.width))
            if recording:
                image = moment.image if recording.drawn else None
                recording.add("\n".join(_picture(moment, title, words, _RECORDED_WIDTH)), image)
            time.sleep(delay if moment.number or frames.in_place else 0)
    return moment


@contextmanager
def recorded(path: Path | None, delay: float | None, title: str) -> Iterator[Recording | None]:
    """The recording of a game into ``path``, at the pace of ``show`` on a terminal, and a line about it at the end."""
    if path is None:
        yield None
        return
    recording = Recording(path, delay or _SECONDS, title)
    try:
        with terminable(), recording:
            yield recording
    finally:
        if recording.size:
            print(f"Recorded in {path}: {recording.frames:,} pictures, {_bytes(recording.size)}")


def _bytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{max(1, round(count / 1e3))} kB"


def _picture(moment: Moment, title: str, words: Words, width: int) -> list[str]:
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


def ending(moment: Moment, words: Words) -> str:
    """The line after the last moment of a game."""
    why = "no legal move left" if moment.terminated else "stopped at the step limit"
    return f"Over after {counted(moment.number, 'move')}: {words.outcome(moment.info, why)}."
