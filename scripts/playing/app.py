"""The loop that both games are played in: keys, screens, the saved game, the questions before a game is given up."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from pathlib import Path

from .._console import Frames
from . import keys as k
from .keys import Keys
from .layout import BAD, BOLD, Note, arrange
from .session import Session
from .store import Records, SaveError, Store

TICK = 1.0  # seconds between looks at the clock
MESSAGE_ROWS = 3
_OFFER = "offer"


class Quit(Exception):  # noqa: N818  (no error)
    """The player leaves."""


class App(ABC):
    """A puzzle played by hand. A game's subclass says what its keys do and how it looks."""

    session: Session
    keys_help: tuple[tuple[str, str], ...]
    ticking = False  # does the screen show a clock?

    def __init__(self, session: Session, folder: Path, frames: Frames, keys: Keys) -> None:
        """Play ``session`` on ``frames`` by ``keys``; saves and records lie in ``folder``."""
        self.session, self.frames, self.keys = session, frames, keys
        self.store = Store(folder, session.env_id)
        self.records = Records(folder)
        self.saves = False  # is the saved game ours?
        self.unsaved = ""  # why the game is not saved
        self.notice = ""  # what became of an older save
        self.message = Note("")
        self.asked: str | None = None  # the question that the next key answers
        self.confirmed: str | None = None  # the key that was pressed twice
        self._last: list[str] = []  # picture in a pipe
        self._claim()

    def _begin(self) -> None:
        self.new_game()
        self.settle()

    # -- what a game says ------------------------------------------------------------------------------------------

    @abstractmethod
    def new_game(self) -> None:
        """Begin the game that the command line asks for, or a random one."""

    @abstractmethod
    def press(self, key: str) -> None:
        """Do what a key means."""

    @abstractmethod
    def board(self) -> list[str]:
        """The lines of the board."""

    @abstractmethod
    def notes(self) -> list[Note]:
        """What stands beside the board, without the message and the keys."""

    @abstractmethod
    def describe(self) -> str:
        """The running game in a few words."""

    @abstractmethod
    def is_done(self) -> bool:
        """Is there nothing to lose in the running game?"""

    def is_finished(self) -> bool:
        """Is the game at an end that nobody wants to go back to?"""
        return False

    def is_typing(self) -> bool:
        """Is the player in the middle of a text, which Enter ends?"""
        return False

    # -- the loop --------------------------------------------------------------------------------------------------

    def run(self, wants_new: bool) -> None:
        """Play until the player leaves or the input ends."""
        if not self._offer(ask=not wants_new):
            self._begin()
        try:
            while True:
                self.draw()
                key = self.keys.read(TICK if self.ticking and self.frames.in_place else None)
                if key is None:
                    return
                if key != k.NOTHING:
                    self._pressed(key)
        except Quit:
            return
        finally:
            self.session.clock.run(False)
            self.save()
            self.store.release()

    def _pressed(self, key: str) -> None:
        if key == k.ENTER and not self.frames.in_place and not self.is_typing():
            return  # the end of a line that held a command
        asked, self.asked = self.asked, None
        if asked == _OFFER:
            self._answer_offer(key)
            return
        self.message = Note("")
        self.confirmed = asked if asked == key.lower() else None
        self.press(key)

    def draw(self) -> None:
        """Show the game as it is; in a pipe only what is new."""
        keys = self.keys_help if self.frames.in_place else ()
        lines = arrange(self.board(), self._all_notes(), keys, self.frames.width - 1, self.frames.height)
        if self.frames.in_place:
            self.frames.show(lines)
        elif lines != self._last and not self.is_typing():
            self.frames.show(lines)
            self._last = lines

    def _all_notes(self) -> list[Note]:
        rows = MESSAGE_ROWS if self.frames.in_place else 1  # so that what stands below does not jump
        notes = [*self.notes(), Note(""), self.message._replace(rows=rows)]
        notes += [Note(problem, BAD) for problem in (self.notice, self.unsaved, self.records.problem) if problem]
        return notes

    def say(self, text: str, style: str = "") -> None:
        """Show a message until the next key."""
        self.message = Note(text, style)

    def pause(self, seconds: float) -> None:
        """Let a picture be seen; in a pipe there is nothing to wait for."""
        if self.frames.in_place:
            self.draw()
            time.sleep(seconds)

    def settle(self) -> None:
        """Do what every change of the game asks for: save it."""
        self.save()

    def restart(self) -> None:
        """The same game once more: in 2048 the same tiles come after the same moves."""
        if self.sure("r", "Restart"):
            self.session.restart()
            self.settle()

    def ask_new(self) -> None:
        """Another game."""
        if self.sure("n", self.new_words().capitalize()):
            self._begin()

    def leave(self) -> None:
        """Stop playing."""
        raise Quit

    # -- leaving a game --------------------------------------------------------------------------------------------

    def farewell(self) -> str:
        """The last lines: what became of the game, how to go on."""
        if self.unsaved or not self.session.states:
            return self.unsaved or "Nothing was played."
        if self.is_finished() or not (self.session.moves or self.session.undone):
            return f"{self.describe()}.".capitalize()
        return f"Saved: {self.describe()}.\nGo on: puzzlegym play {self.session.env_id}"

    def sure(self, key: str, what: str) -> bool:
        """May the running game be given up? If it is under way, the key must be pressed twice."""
        if self.is_done() or not self.session.moves or self.confirmed == key:
            return True
        self.asked = key  # any other key keeps the game and does what it always does
        self.say(f"{what}? The game under way is lost then.\n{key}: yes   any other key: no", BOLD)
        return False

    # -- saving ----------------------------------------------------------------------------------------------------

    def _claim(self) -> None:
        try:
            self.saves = self.store.claim()
            if not self.saves:
                self.unsaved = "Another puzzlegym has the saved game open: this one is not saved."
        except OSError as error:
            self.unsaved = f"Games cannot be saved in {self.store.path.parent}: {error.strerror}."

    def save(self) -> None:
        """Write the running game; if that fails, say so, go on, and try again after the next move."""
        if not self.saves:
            return
        try:
            self.store.write(self.session.to_data())
            self.unsaved = ""
        except OSError as error:
            self.unsaved = f"The game cannot be saved: {error.strerror}."

    def _offer(self, ask: bool) -> bool:
        """Put the saved game on the table and ask whether to go on with it; False if there is none to go on with."""
        if not self.saves:
            return False
        try:
            data = self.store.read()
            if data is None:
                return False
            self.session.restore(data)
        except SaveError as error:
            self._set_aside(error)
            return False
        if not (ask and (self.session.moves or self.session.undone)) or self.is_finished():
            return False
        self.asked = _OFFER
        self.say(f"Your saved game: {self.describe()}.\nany key: go on   n: {self.new_words()}", BOLD)
        return True

    def new_words(self) -> str:
        """What the key n would begin."""
        return "new game"

    def _set_aside(self, error: SaveError) -> None:
        try:
            aside = self.store.set_aside().name
            self.notice = f"The saved game {error}: it is kept as {aside}, and a new one begins."
        except OSError as problem:
            self.saves = False
            self.unsaved = f"The saved game {error} and cannot be moved away ({problem.strerror}): not saving."

    def _answer_offer(self, key: str) -> None:
        self.message = Note("")
        if key == "n":
            self._begin()
        elif key not in (k.ENTER, " ", "y"):
            self.press(key)
