"""2048 by hand."""

from __future__ import annotations

import secrets
from functools import partial
from pathlib import Path

from ...agents.hints import hint
from ...envs.puzzle2048 import Action, State, action_name, is_over, legal_moves, parse_action
from ...envs.puzzle2048.rendering import board_lines
from .._console import Frames, counted
from . import keys as k
from .app import App
from .keys import Keys
from .layout import BAD, BOLD, GOOD, Note
from .session import Session
from .store import Data

WIN = 11  # the exponent of 2048
SEEDS = 1_000_000
BEST = "2048 best score"
_DIRECTIONS = {k.UP: Action.UP, k.RIGHT: Action.RIGHT, k.DOWN: Action.DOWN, k.LEFT: Action.LEFT}
_LETTERS = {"w": Action.UP, "a": Action.LEFT, "s": Action.DOWN, "d": Action.RIGHT}
_VI = {"k": Action.UP, "h": Action.LEFT, "j": Action.DOWN, "l": Action.RIGHT}


class Session2048(Session):
    """A game of 2048. Moves are written u, r, d and l."""

    env_id = "Puzzle2048-v0"
    state_type = State

    def __init__(self) -> None:
        """There is no game before ``start`` or ``restore``."""
        super().__init__()
        self.kept_on = False  # has the player chosen to go on after 2048?

    def _begin(self, state: State) -> None:
        super()._begin(state)
        self.kept_on = False

    def to_data(self) -> Data:
        """The game for a save, with the choice at 2048."""
        return {**super().to_data(), "kept_on": self.kept_on}

    def restore(self, data: Data) -> None:
        """Go on with a saved game and the choice at 2048."""
        super().restore(data)
        self.kept_on = bool(data.get("kept_on"))

    def action(self, move: str) -> int:
        """The direction that a letter means; ValueError if it moves nothing."""
        direction = parse_action(move)
        if not legal_moves(self.state)[direction]:
            raise ValueError(f"{action_name(direction)} moves nothing")
        return direction

    def is_over(self) -> bool:
        """Board full, no equal neighbours."""
        return is_over(self.state)

    @property
    def gain(self) -> int:
        """Points of the last move."""
        return int(self.state.score - self.states[-2].score) if self.moves else 0


class Play2048(App):
    """Arrow keys move; 2048 is a win, after which the game may go on."""

    session: Session2048

    def __init__(self, folder: Path, frames: Frames, keys: Keys, seed: int | None, vi: bool) -> None:
        """``seed``: of the first new game (None: a random one). ``vi``: h is left, and ? alone asks for a hint."""
        super().__init__(Session2048(), folder, frames, keys)
        self.seed = seed
        moves = _DIRECTIONS | _LETTERS | {key: way for key, way in _VI.items() if vi or key != "h"}
        commands = {"?": self.give_hint, "u": self.undo, "r": self.restart, "n": self.ask_new, "q": self.leave}
        commands |= {} if vi else {"h": self.give_hint}
        self.handlers = {key: partial(self.move, way) for key, way in moves.items()} | commands
        self.keys_help = (
            ("arrows", f"move, or WASD, {'hjkl' if vi else 'jkl'}"),
            ("?" if vi else "h", "hint"),
            ("u", "undo"),
            ("r", "restart this game"),
            ("n", "new game"),
            ("q", "quit; the game is saved"),
        )

    def new_game(self) -> None:
        """Begin a game."""
        seed, self.seed = self.seed, None
        self.session.start(secrets.randbelow(SEEDS) if seed is None else seed)

    def new_words(self) -> str:
        """What the key n would begin."""
        return "new game" if self.seed is None else f"new game of seed {self.seed}"

    def press(self, key: str) -> None:
        """Do what a key means."""
        handler = self.handlers.get(key.lower() if len(key) == 1 else key)
        if self.is_won_now() and key in ("c", k.ENTER):
            self.session.kept_on = True
            self.settle()
        elif self.is_won_now() and key == "n":  # the banner has asked
            self._begin()
        elif handler:
            handler()

    # -- what keys do ----------------------------------------------------------------------------------------------

    def move(self, direction: Action) -> None:
        """Slide the tiles."""
        if self.is_won_now() or self.session.is_over():
            return  # the banner says which keys there are
        try:
            self.session.play(direction.name[0].lower())
        except ValueError as error:
            self.say(f"{error}.".capitalize())
            return
        self.records.keep(BEST, self.session.state.score, max)
        self.settle()

    def undo(self) -> None:
        """Take a move back; back before 2048 its banner is due once more."""
        if not self.session.undo():
            self.say("Nothing to undo.")
            return
        self.session.kept_on &= max(self.session.state.board) >= WIN
        self.settle()

    def give_hint(self) -> None:
        """Name the move that the package's best quick player would make."""
        action = None if self.is_won_now() else hint(self.session.env_id, self.session.state)
        if action is not None:
            self.say(f"Hint: {action_name(action)}.", BOLD)

    # -- what is shown ---------------------------------------------------------------------------------------------

    def is_won_now(self) -> bool:
        """Is the choice to keep playing or to stop due?"""
        return max(self.session.state.board) >= WIN and not self.session.kept_on

    def is_done(self) -> bool:
        """No move left."""
        return self.session.is_over()

    def board(self) -> list[str]:
        """The tiles."""
        return board_lines(self.session.state.array)

    def notes(self) -> list[Note]:
        """Score, best score, last gain, moves, and a banner at the end or at 2048."""
        score = self.session.state.score
        best = max(int(self.records.get(BEST) or 0), score)
        return [
            Note(f"2048, seed {self.session.seed}", BOLD),
            Note(f"score {score:,}  (+{self.session.gain:,})"),
            Note(f"best  {best:,}"),
            Note(f"moves {len(self.session.moves):,}"),
            Note(""),
            *self._banner(),
        ]

    def _banner(self) -> list[Note]:
        if self.session.is_over():
            return [Note("NO MOVES LEFT.", BAD), Note("u: undo   r: restart   n: new game", BOLD)]
        if self.is_won_now():
            return [Note("2048! YOU WIN.", GOOD), Note("c: keep playing   n: new game", BOLD)]
        return [Note("", rows=2)]

    def describe(self) -> str:
        """Score and largest tile."""
        state = self.session.state
        moves = counted(len(self.session.moves), "move")
        return f"score {state.score:,}, largest tile {1 << max(state.board)}, {moves}"
