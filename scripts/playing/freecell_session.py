"""A person's game of FreeCell, in which cells keep the letters that the player gave them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...envs.freecell import HOME, CellNames, Game, State, apply, encode_action, has_moves, is_won, parse_move
from ...envs.freecell.notation import normal_form
from ...envs.freecell.state import CELLS
from .session import Session

Board = NDArray[np.uint8]


class SessionFreeCell(Session):
    """A game of FreeCell. Moves are written in standard notation."""

    env_id = "FreeCell-v0"
    state_type = State

    def __init__(self) -> None:
        """There is no game before ``start`` or ``restore``."""
        super().__init__()
        self._names: list[CellNames] = []  # of each state
        self._next = CellNames(Game.of_deal(1).start)

    @property
    def names(self) -> CellNames:
        """Which letter each card in a cell has now."""
        return self._names[-1]

    def action(self, move: str) -> int:
        """The action that a written move means; ValueError with the reason if it is illegal."""
        self._next = self.names.copy()
        return parse_move(self.state, move, self._next)

    def is_over(self) -> bool:
        """Won or stuck."""
        return not has_moves(self.state)

    def is_won(self) -> bool:
        """Are all cards home?"""
        return is_won(self.state)

    def _begin(self, state: Any) -> None:
        super()._begin(state)
        self._names = [CellNames(state)]

    def _step(self, move: str) -> None:
        super()._step(normal_form(move))
        self._next.sync(self.state)
        self._names.append(self._next)

    def undo(self) -> bool:
        """Take a move back, with the cards that it sent home."""
        undone = super().undo()
        if undone:
            self._names.pop()
        return undone

    @property
    def board(self) -> Board:
        """The table as the player sees it: each cell's card under its letter."""
        return _lettered(self.state.array, self.names)

    def steps_of(self, move: str) -> list[tuple[Board, int | None]]:
        """The tables that a legal move leads over: after it alone (None), then after each safe card (id) went home."""
        names = self.names.copy()
        action = parse_move(self.state, move, names)
        board, moved, _ = apply(self.state, action, autoplay=False)
        _, home, _ = apply(self.state, action)
        steps: list[tuple[Board, int | None]] = [(_lettered(board, names), None)]
        for card in home[len(moved) :]:
            board, _, _ = apply(board, encode_action(card, HOME), autoplay=False)
            steps.append((_lettered(board, names), card))
        return steps

    def game(self) -> Game:
        """The game so far, for a file."""
        result = "won" if self.is_won() else "stuck" if self.is_over() else "unfinished"
        start: State = self.states[0]
        return Game(State(start.board, start.deal), tuple(self.moves), fields={"Result": result})


def _lettered(board: Board, names: CellNames) -> Board:
    """A copy of a board with each cell's card under its letter."""
    shown = board.copy()
    held = set(board[0, :CELLS].tolist())
    cards = [names.card(letter) or 0 for letter in "abcd"]
    shown[0, :CELLS] = [x if x in held else 0 for x in cards]
    return shown
