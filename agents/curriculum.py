"""Which ``start_rank`` each game of a FreeCell batch gets next."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .configs import Curriculum


class RankCurriculum:
    """A frontier that goes down one rank when enough of its last games were won."""

    def __init__(self, config: Curriculum, num_envs: int, seed: int) -> None:
        """Start at ``config.first_rank`` for all games."""
        self.config = config
        self.frontier = config.first_rank
        self._recent: deque[bool] = deque(maxlen=config.window)
        self._rng = np.random.default_rng(seed)
        self.playing = np.full(num_envs, self.frontier)  # rank of the game in each row
        self.next = self.playing.copy()  # rank of the row's next game

    def ended(self, row: int, won: bool) -> None:
        """Note the result of a row's game, which its next game has already followed; draw the one after that."""
        if self.playing[row] == self.frontier:
            self._recent.append(won)
        self.playing[row] = self.next[row]
        self.next[row] = self._draw()
        full = len(self._recent) == self.config.window
        if full and self.frontier > 0 and self.win_rate >= self.config.threshold:
            self.frontier -= 1
            self._recent.clear()

    @property
    def win_rate(self) -> float:
        """Of the frontier's last games."""
        return float(np.mean(self._recent)) if self._recent else 0.0

    def _draw(self) -> int:
        u = self._rng.random()
        if u < self.config.full:
            return 0
        if u < self.config.full + self.config.easier and self.frontier < self.config.first_rank:
            return int(self._rng.integers(self.frontier + 1, self.config.first_rank + 1))
        return self.frontier

    def restart(self) -> NDArray[np.int64]:
        """Ranks for a whole batch of new games."""
        self.playing = np.array([self._draw() for _ in self.playing])
        self.next = np.array([self._draw() for _ in self.playing])
        return self.playing

    def state(self) -> dict[str, Any]:
        """Plain data to save."""
        return {"frontier": self.frontier, "recent": [int(won) for won in self._recent], "rng": self._rng_state()}

    def _rng_state(self) -> dict[str, Any]:
        return dict(self._rng.bit_generator.state)

    def load(self, state: dict[str, Any]) -> None:
        """Go on from saved data."""
        self.frontier = int(state["frontier"])
        self._recent.clear()
        self._recent.extend(bool(won) for won in state["recent"])
        self._rng.bit_generator.state = state["rng"]
