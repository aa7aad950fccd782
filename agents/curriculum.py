"""Easier starts for FreeCell: which ones the games of a batch get, and when harder ones follow."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ..envs.freecell.state import SHAPE
from ..wrappers import StartPositionsVector
from .configs import BackwardCurriculum, Curriculum, PPOConfig
from .lines import Lines
from .logs import Recent
from .wrapping import wrap_batch

_FULL_GAMES = 400  # games from the deal that their running figure speaks of


class _Frontier:
    """A difficulty that games are played at, and that moves on when enough of its last games were won.

    Games are at the frontier, at an easier difficulty, or full ones: numbered deals from their start.
    """

    figure: str  # what the frontier is called in logs
    full: int  # the difficulty of a full game

    def __init__(self, config: Curriculum, num_envs: int, seed: int) -> None:
        self.config, self.frontier = config, config.first
        self._recent: deque[bool] = deque(maxlen=config.window)
        self._whole: deque[bool] = deque(maxlen=_FULL_GAMES)
        self._rng = np.random.default_rng(seed)
        self.playing = np.full(num_envs, self.frontier)  # difficulty of the game in each row
        self.next = self.playing.copy()  # and of the row's next game

    def wrap(self, batch: Any) -> Any:
        """The batch, as its games must be started."""
        return batch

    def deal(self, batch: Any) -> None:
        """Tell the batch how the next games start."""

    def ended(self, row: int, won: bool) -> None:
        """Note the result of a row's game, which its next game has already followed; draw the one after that."""
        if self.playing[row] == self.frontier:
            self._recent.append(won)
        if self.playing[row] == self.full:
            self._whole.append(won)
        self.playing[row] = self.next[row]
        self.next[row] = self._draw()
        enough = len(self._recent) == self.config.window and self.win_rate >= self.config.threshold
        if enough and self.frontier != self.full:
            self.frontier = self._harder()
            self._recent.clear()

    @property
    def win_rate(self) -> float:
        """Of the frontier's last games."""
        return float(np.mean(self._recent)) if self._recent else 0.0

    def figures(self) -> dict[str, float]:
        """For the log: the frontier, and the share of full games won."""
        return {self.figure: float(self._shown()), "full": float(np.mean(self._whole)) if self._whole else 0.0}

    def _shown(self) -> int:
        return self.frontier

    def _draw(self) -> int:
        u = self._rng.random()
        if u < self.config.full:
            return self.full
        if u < self.config.full + self.config.easier and self.frontier != self.config.first:
            return self._easier()
        return self.frontier

    def _harder(self) -> int:
        raise NotImplementedError

    def _easier(self) -> int:
        raise NotImplementedError

    def restart(self, batch: Any) -> None:
        """Draw a whole batch of new games, before it is reset."""
        self.next = np.array([self._draw() for _ in self.playing])
        self.deal(batch)

    def began(self, batch: Any) -> None:
        """The first games of the batch have their difficulty; those that follow them get the next ones."""
        self.playing = self.next
        self.next = np.array([self._draw() for _ in self.playing])
        self.deal(batch)

    def state(self) -> dict[str, Any]:
        """Plain data to save."""
        recent, whole = ([int(won) for won in games] for games in (self._recent, self._whole))
        return {"frontier": self.frontier, "recent": recent, "full": whole, "rng": dict(self._rng.bit_generator.state)}

    def load(self, state: dict[str, Any]) -> None:
        """Go on from saved data."""
        self.frontier = int(state["frontier"])
        for games, name in ((self._recent, "recent"), (self._whole, "full")):
            games.clear()
            games.extend(bool(won) for won in state[name])
        self._rng.bit_generator.state = state["rng"]


class Ranks(_Frontier):
    """Games start with all cards up to a rank at home; the rank goes down, 0 is the deal itself."""

    figure, full = "rank", 0

    def deal(self, batch: Any) -> None:
        """The ranks of the next games."""
        batch.set_attr("start_rank", [int(rank) for rank in self.next])

    def _harder(self) -> int:
        return self.frontier - 1

    def _easier(self) -> int:
        return int(self._rng.integers(self.frontier + 1, self.config.first + 1))


class Backward(_Frontier):
    """Games start on the solver's line of a training deal, some moves before its win; at the end with the deal.

    The positions are what winning games look like, and each of them can be won (Salimans and Chen 2018, who learn from
    a demonstration backwards).
    """

    figure, full = "before", -1

    def __init__(self, config: BackwardCurriculum, num_envs: int, seed: int) -> None:
        """Lines are made when they are needed first."""
        super().__init__(config, num_envs, seed)
        self._growth, self._last = config.growth, config.last
        self._lines = Lines(config.lines, seed)

    def wrap(self, batch: Any) -> Any:
        """The batch, its games started from the solver's positions."""
        return StartPositionsVector(batch, self._positions)

    def _positions(self, rows: NDArray[np.int64]) -> list[NDArray[np.uint8] | None]:
        """Where the games of these rows begin; None: with the deal that they have."""
        return [self._position(int(self.next[row])) for row in rows]

    def _position(self, moves: int) -> NDArray[np.uint8] | None:
        if moves == self.full:
            return None
        boards = self._lines.draw().boards
        board: NDArray[np.uint8] = boards[max(0, len(boards) - moves)].view(np.uint8).reshape(SHAPE)
        return board

    def _harder(self) -> int:
        more = max(self.frontier + 1, round(self.frontier * self._growth))
        return more if more < self._last else self.full

    def _shown(self) -> int:
        return self._last if self.frontier == self.full else self.frontier

    def _easier(self) -> int:
        last = self._last if self.frontier == self.full else self.frontier - 1
        return int(self._rng.integers(self.config.first, last + 1))


def curriculum_of(config: PPOConfig, seed: int) -> Ranks | Backward | None:
    """The curriculum that a configuration names, if any."""
    if config.backward:
        return Backward(config.backward, config.num_envs, seed)
    return Ranks(config.curriculum, config.num_envs, seed) if config.curriculum else None


def make_batch(config: PPOConfig, curriculum: Ranks | Backward | None = None, autoreset_mode: str = "SameStep") -> Any:
    """The training batch of a configuration in its wrappers."""
    arguments = {"num_envs": config.num_envs, "autoreset_mode": autoreset_mode, **config.env_arguments}
    env = gymnasium.make_vec(config.env_id, **arguments)
    return wrap_batch(curriculum.wrap(env) if curriculum else env, config.wrappers)


class Lessons:
    """The training batch of a configuration, its curriculum, if any, and the last games: what every learner of PPO
    plays, and the books on it.
    """

    def __init__(self, config: PPOConfig, seed: int) -> None:
        """Make the batch; ``seed`` is that of the curriculum's draws."""
        self.curriculum = curriculum_of(config, seed)
        self.batch = make_batch(config, self.curriculum)
        self._recent = Recent(config.env_id)

    def restart(self) -> None:
        """To be called before the batch is reset."""
        if self.curriculum:
            self.curriculum.restart(self.batch)

    def began(self) -> None:
        """The first games of the batch are dealt; say how those that follow them start."""
        if self.curriculum:
            self.curriculum.began(self.batch)

    def ended(self, games: Mapping[int, dict[str, Any]]) -> None:
        """Games came to their end in this step: row -> last info."""
        for row, info in games.items():
            if self.curriculum is None or self.curriculum.playing[row] == self.curriculum.frontier:
                self._recent.add([info])
            if self.curriculum:
                self.curriculum.ended(row, bool(info["is_success"]))
        if self.curriculum and games:
            self.curriculum.deal(self.batch)

    def figures(self) -> dict[str, float]:
        """Means over the last games that ended; with a curriculum those of its frontier."""
        figures = self._recent.figures()
        return figures | self.curriculum.figures() if self.curriculum and figures else figures
