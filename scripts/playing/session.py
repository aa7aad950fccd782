"""A person's game on the very environment that agents play: its past, what was undone, and the time it took."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from typing import Any, cast

import gymnasium

from ...envs.base.env import PuzzleEnv
from .store import Data, SaveError

_UNREADABLE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    gymnasium.error.Error,
)


class Clock:
    """Seconds that a game was played for, over all sittings."""

    def __init__(self, seconds: float = 0.0) -> None:
        """Stopped, at so many seconds."""
        self._before = seconds
        self._since: float | None = None

    @property
    def seconds(self) -> float:
        """Time so far."""
        return self._before + (time.monotonic() - self._since if self._since is not None else 0.0)

    def run(self, on: bool) -> None:
        """Let it run, or stop it."""
        if on == (self._since is None):
            self._before, self._since = self.seconds, time.monotonic() if on else None


class Session(ABC):
    """One game: every state since its start, the moves between them as text, and the moves that were undone."""

    env_id: str
    state_type: type[Any]  # the puzzle's State

    def __init__(self) -> None:
        """There is no game before ``start`` or ``restore``."""
        # Without its wrappers: people take as many moves as they like.
        self.env = cast(PuzzleEnv, gymnasium.make(self.env_id, disable_env_checker=True).unwrapped)
        self.states: list[Any] = []
        self.moves: list[str] = []
        self.undone: list[str] = []
        self.clock = Clock()
        self.seed: int | None = None

    @abstractmethod
    def action(self, move: str) -> int:
        """The action that a move means now. Raises ValueError with the reason for an illegal one."""

    @abstractmethod
    def is_over(self) -> bool:
        """Is no move left?"""

    @property
    def state(self) -> Any:
        """The game as it is now."""
        return self.states[-1]

    def start(self, seed: int, options: dict[str, Any] | None = None) -> None:
        """Begin a new game."""
        self.env.reset(seed=seed, options=options)
        self.seed = seed
        self._begin(self.env.get_state())
        self.clock = Clock()

    def restart(self) -> None:
        """Begin the same game again."""
        self._begin(self.states[0])
        self.clock = Clock()

    def _begin(self, state: Any) -> None:
        self.env.set_state(state)
        self.states, self.moves, self.undone = [state], [], []

    def play(self, move: str) -> None:
        """Make a move. Raises ValueError, with nothing changed, if it is illegal."""
        self._step(move)
        self.undone.clear()

    def _step(self, move: str) -> None:
        self.env.step(self.action(move))
        self.states.append(self.env.get_state())
        self.moves.append(move)

    def undo(self) -> bool:
        """Take a move back, with all that followed from it; False at the start."""
        if not self.moves:
            return False
        self.states.pop()
        self.undone.append(self.moves.pop())
        self.env.set_state(self.state)
        return True

    def redo(self) -> bool:
        """Make the move that was undone last once more; False if there is none."""
        if not self.undone:
            return False
        self._step(self.undone.pop())
        return True

    def to_data(self) -> Data:
        """The game for a save."""
        return {
            "env_id": self.env_id,
            "seed": self.seed,
            "start": self.states[0].to_json(),
            "moves": " ".join(self.moves),
            "undone": " ".join(self.undone),
            "end": self.state.to_json(),
            "seconds": round(self.clock.seconds, 1),
        }

    def restore(self, data: Data) -> None:
        """Go on with a saved game. Raises SaveError if this is none, or if its moves do not lead to its end."""
        try:
            if data["env_id"] != self.env_id:
                raise SaveError(f"is a game of {data['env_id']}")
            self._begin(self.state_type.from_json(data["start"]))
            for move in data["moves"].split():
                self._step(move)
            if self.state != self.state_type.from_json(data["end"]):
                raise SaveError("is damaged: its moves do not lead to its board")
            self.undone, self.seed, seconds = data["undone"].split(), data["seed"], float(data["seconds"])
            if not 0 <= seconds < math.inf:
                raise SaveError("is damaged: its time is none")
            self.clock = Clock(seconds)
        except _UNREADABLE as error:
            raise error if isinstance(error, SaveError) else SaveError("is damaged") from None
