"""FreeCell by hand."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from pathlib import Path

from ...agents.hints import hint
from ...envs.common.cards import card_name, spoken_name
from ...envs.freecell import UNWINNABLE, action_name, decode_action, encode_action, format_move, refusal
from ...envs.freecell.deals import CLASSIC_DEALS, RANDOM_DEALS
from ...envs.freecell.rendering import table_lines
from ...envs.freecell.state import CELLS, home_counts
from .._console import Frames, counted
from . import keys as k
from .app import App
from .cursor import Cursor, Square
from .freecell_session import Board, SessionFreeCell
from .keys import Keys
from .layout import BAD, BOLD, GOOD, Note
from .typed import read, tapped

HOME_SECONDS = 0.15  # between cards that go home by themselves
BEST = "FreeCell best seconds"
LONGEST, SHOWN = 2000, 24  # characters of a text that is typed or pasted, and of it that are shown


def clock(seconds: float) -> str:
    """Minutes and seconds, such as ``3:07``."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


class PlayFreeCell(App):
    """Moves are typed in standard notation, or made by the arrow keys."""

    session: SessionFreeCell
    ticking = True
    keys_help = (
        ("26 b3 4h", "from, to; then Enter"),
        ("26v4", "4 cards to empty column"),
        ("KS 2 b", "a card to its best place"),
        ("arrows", "point; Enter takes, drops"),
        ("h u y r", "hint, undo, redo, restart"),
        ("n g", "new deal, numbered deal"),
        ("s q", "save as a file, quit"),
    )

    def __init__(self, folder: Path, frames: Frames, keys: Keys, deal: int | None) -> None:
        """``deal``: the number of the first new game (None: a random one)."""
        super().__init__(SessionFreeCell(), folder, frames, keys)
        self.deal = deal
        self.text = ""  # what is being typed
        self.asks_deal = False  # ... as the number of a deal?
        self.cursor = Cursor()
        self.hinted: Collection[Square] = ()
        self.passing: Board | None = None  # the table while cards go home
        self.record = ""
        self.commands = {
            "u": self.undo,
            "y": self.redo,
            k.REDO: self.redo,
            "r": self.restart,
            "n": self.ask_new,
            "g": self.ask_deal,
            "h": self.give_hint,
            "?": self.give_hint,
            "s": self.save_file,
            "q": self.leave,
            k.ENTER: self.take_or_drop,
            " ": self.take_or_drop,
            k.ESCAPE: self.put_back,
        }

    def new_game(self) -> None:
        """Deal."""
        low, high = RANDOM_DEALS
        number = self.deal or low + secrets.randbelow(high - low + 1)
        self.deal = None
        self.session.start(secrets.randbelow(2**32), {"deal": number})
        if number in UNWINNABLE:
            self.say("This deal is one of the eight that cannot be won.", BOLD)

    def new_words(self) -> str:
        """What the key n would begin."""
        return f"deal {self.deal}" if self.deal else "new deal"

    # -- keys ------------------------------------------------------------------------------------------------------

    def press(self, key: str) -> None:
        """Do what a key means: a command, part of a text, or a step of the cursor."""
        self.hinted = ()
        if not self.session.is_won():
            self.session.clock.run(True)
        if self.is_typing():
            self._typing(key)
        elif key in self.commands:
            self.commands[key]()
        elif key in (k.UP, k.DOWN, k.LEFT, k.RIGHT):
            self.cursor.move(key, self.session.board)
        elif len(key) == 1:
            self.text = key

    def put_back(self) -> None:
        """Put a held card back; with none held, put the cursor away."""
        if self.cursor.held is None:
            self.cursor.hide()
        self.cursor.held = None

    def is_typing(self) -> bool:
        """Is a move or the number of a deal half typed?"""
        return bool(self.text) or self.asks_deal

    def _typing(self, key: str) -> None:
        if key == k.ENTER:
            self._typed()
        elif key in (k.ESCAPE, k.CLEAR):
            self.text, self.asks_deal = "", False
        elif key == k.BACKSPACE:
            self.text = self.text[:-1]
        elif len(key) == 1 and len(self.text) < LONGEST:
            self.text += key

    def _typed(self) -> None:
        text, self.text = self.text.strip(), ""
        if not text:
            return
        if self.asks_deal:
            self.asks_deal = False
            self._numbered(text)
        elif text.lower() in self.commands:  # Caps Lock
            self.commands[text.lower()]()
        else:
            self._moves(text.split())

    def _moves(self, words: list[str]) -> None:
        """Make one move after another, up to the first that is refused."""
        for word in words:
            try:
                self.make(read(self.session.state.array, word, self.session.names))
            except ValueError as error:
                self.say(f"Refused: {error}.", BAD)
                return

    def make(self, move: str) -> None:
        """Make a legal move and let the safe cards go home one by one. Raises ValueError for an illegal one."""
        steps = self.session.steps_of(move)
        self.session.play(move)
        self.settle()  # saved, with its time, before the cards are on their way
        home = [spoken_name(card) for _, card in steps if card is not None]
        for board, _ in steps if home else ():
            self.passing = board
            self.pause(HOME_SECONDS)
        self.passing = None
        self.say(f"Move {move}." + (f" Home by themselves: {' '.join(home)}." if home else ""))

    def settle(self) -> None:
        """Do what every change of the table asks for: the cursor, the clock, the records, the save."""
        self.cursor.held = None
        self.record = ""
        self.cursor.settle(self.session.board)
        if self.session.is_won():
            self._won()
        super().settle()

    def _won(self) -> None:
        self.session.clock.run(False)
        seconds = round(self.session.clock.seconds, 1)
        best = self.records.keep(BEST, seconds, min)
        best_here = self.records.keep(f"{BEST} {self.session.state.deal}", seconds, min)
        self.record = "Your best time of all!" if best else "Your best time for this deal!" if best_here else ""

    # -- what keys do ----------------------------------------------------------------------------------------------

    def undo(self) -> None:
        """Take a move back, with all that it sent home."""
        move = self.session.moves[-1] if self.session.moves else ""
        self._step_in_time(self.session.undo(), f"Took back {move}.", "Nothing to undo.")

    def redo(self) -> None:
        """Make an undone move again."""
        move = self.session.undone[-1] if self.session.undone else ""
        try:
            self._step_in_time(self.session.redo(), f"Move {move} again.", "Nothing to redo.")
        except ValueError:  # from a save that somebody edited
            self.say("Nothing to redo.")

    def _step_in_time(self, done: bool, words: str, otherwise: str) -> None:
        self.say(words if done else otherwise)
        if done:
            self.settle()

    def ask_deal(self) -> None:
        """Ask for the number of a deal."""
        if self.sure("g", "Another deal"):
            self.asks_deal = True

    def _numbered(self, text: str) -> None:
        number = text.replace(",", "")
        if not (number.isdecimal() and 1 <= int(number) <= CLASSIC_DEALS):
            self.say(f"A deal is a number from 1 to {CLASSIC_DEALS:,}, not {text}.", BAD)
            return
        self.deal = int(number)
        self._begin()

    def give_hint(self) -> None:
        """Name and show one move worth trying."""
        if self.session.is_over():
            return
        before = [state.array for state in self.session.states[:-1]]
        action = hint(self.session.env_id, self.session.state, before)
        if action is None:
            self.say("No move leads to anything new from here: undo (u) and try another way.")
            return
        move = format_move(self.session.state, action, self.session.names)
        card = decode_action(action)[0]
        self.say(f"Hint: {move} ({action_name(action).replace(card_name(card), spoken_name(card))}).", BOLD)
        self.hinted = self._squares(decode_action(action)[0] + 1)

    def _squares(self, x: int) -> list[Square]:
        return [(int(row), int(column)) for row, column in zip(*(self.session.board == x).nonzero(), strict=True)]

    def save_file(self) -> None:
        """Write the game as a file that ``puzzlegym replay`` reads, beside those that are there."""
        name, number = f"freecell-{self.session.state.deal or 'position'}", 1
        while (path := Path(f"{name}{f'-{number}' if number > 1 else ''}.txt")).exists():
            number += 1
        try:
            self.session.game().save(path)
        except OSError as error:
            self.say(f"Not saved: {path}: {error.strerror}.", BAD)
        else:
            self.say(f"Saved as {path}; 'puzzlegym replay {path}' plays it.")

    def take_or_drop(self) -> None:
        """Take the card under the cursor, or drop the one that is held; on its own place it goes to its best one."""
        cursor, board = self.cursor, self.session.board
        if cursor.square is None:
            if self.keys.is_terminal:
                cursor.move(k.RIGHT, board)
            return
        card = cursor.card(board)
        if cursor.held is None:
            cursor.held = card or None
            return
        held, cursor.held = cursor.held, None
        try:
            self.make(self._drop(held - 1))
        except ValueError as error:
            self.say(f"Refused: {error}.", BAD)

    def _drop(self, card: int) -> str:
        """The move of the held card to where the cursor is; ValueError with the reason if it is illegal."""
        session, (row, column) = self.session, self.cursor.square or (0, 0)
        here = session.board[row, column] == card + 1 or (row > 0 and card + 1 in session.board[1:, column])
        if here:
            return tapped(session.state.array, card, session.names)
        action = encode_action(card, self.cursor.destination())
        if reason := refusal(session.state, action):
            raise ValueError(reason)
        move = format_move(session.state, action, session.names)
        # A cell that is pointed at is the one that is filled, if it is free.
        free = row == 0 and column < CELLS and not session.board[row, column]
        return move[0] + "abcd"[column] if free else move

    # -- what is shown ---------------------------------------------------------------------------------------------

    def is_done(self) -> bool:
        """Won or stuck."""
        return self.session.is_over()

    def is_finished(self) -> bool:
        """Won."""
        return self.session.is_won()

    def board(self) -> list[str]:
        """The table, with the cursor or the hinted card in brackets."""
        if self.passing is not None:
            return table_lines(self.passing)
        held = self._squares(self.cursor.held) if self.cursor.held else []
        pointed = [self.cursor.square] if self.cursor.square is not None else []
        return table_lines(self.session.board, {*held, *pointed, *self.hinted})

    def notes(self) -> list[Note]:
        """Deal, moves, time, best times, what is typed, and how the game ended."""
        state, records = self.session.state, self.records
        best, best_here = records.get(BEST), records.get(f"{BEST} {state.deal}")
        times = f"time {clock(self.session.clock.seconds)}" if self.frames.in_place else ""
        times += f"   best {clock(best_here)}" if best_here is not None else ""
        typed = "deal number: " if self.asks_deal else "move: "
        held = f"  (holding {spoken_name(self.cursor.held - 1)})" if self.cursor.held else ""
        return [
            Note(f"FreeCell, {self._name()}", BOLD),
            Note(f"moves {state.moves}   home {sum(home_counts(state.array))}"),
            Note(times.strip()),
            *([Note(f"best time of all deals {clock(best)}")] if best is not None else []),
            *([Note(""), Note(f"{typed}{self.text[-SHOWN:]}_{held}", BOLD)] if self.frames.in_place else []),
            *self._banner(),
        ]

    def _banner(self) -> list[Note]:
        if self.passing is not None:
            return []
        if self.session.is_won():
            won = f"YOU WIN in {clock(self.session.clock.seconds)}. {self.record}"
            return [Note(""), Note(won, GOOD), Note("n: new deal   r: this one again", BOLD)]
        if self.session.is_over():
            return [Note(""), Note("NO MOVES LEFT.", BAD), Note("u: undo   r: restart   n: new deal", BOLD)]
        return []

    def _name(self) -> str:
        deal = self.session.state.deal
        return f"deal {deal}" if deal else "set position"

    def describe(self) -> str:
        """Deal, moves and time."""
        state = self.session.state
        time = clock(self.session.clock.seconds)
        moves = counted(len(self.session.moves), "move")
        return f"{self._name()}, {moves}, {sum(home_counts(state.array))} home, {time}"
