"""Learning FreeCell from the solver: cloning of its lines, then DAgger (Ross, Gordon, Bagnell 2011).

The network is taught the solver's moves on lines of random training deals. Once it plays a little, half of the lines
begin where its own games have led it: it learns to go on from there, too. Lines are found while it learns, as fast as
it can use them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..envs.freecell.planning import table_of
from ..envs.freecell.state import DEPTH, SHAPE
from . import saved
from .configs import CloneConfig
from .lines import Line, LineFinder, Lines, legal_masks
from .runs import Budget
from .supervised import UNFIT, SupervisedRun, unfit

if TYPE_CHECKING:
    from .dataset_lines import DatasetLines

_WORDS = DEPTH + 1
_NO_MOVE = -1  # in place of a move, where no win was found


class Pool:
    """The last positions that were labelled: boards, moves, and how much a win is worth from there."""

    def __init__(self, size: int) -> None:
        """Room for ``size`` positions; the oldest make place for new ones."""
        self._boards = np.zeros((size, _WORDS), dtype=np.uint64)
        self._actions = np.zeros(size, dtype=np.int16)
        self._values = np.zeros(size, dtype=np.float32)
        self._added = 0

    def __len__(self) -> int:
        """Positions that are there."""
        return min(self._added, len(self._actions))

    def add(self, boards: NDArray[np.uint64], actions: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Take positions in."""
        places = (self._added + np.arange(len(actions))) % len(self._actions)
        self._boards[places], self._actions[places], self._values[places] = boards, actions, values
        self._added += len(actions)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """``n`` of them: observations, actions (-1: no move is known to win), values."""
        i = rng.integers(len(self), size=n)
        obs = torch.from_numpy(self._boards[i].view(np.uint8).reshape(n, *SHAPE))
        return obs, torch.from_numpy(self._actions[i].astype(np.int64)), torch.from_numpy(self._values[i])


def _source(data: Path | None, seed: int) -> Lines | DatasetLines:
    if data is None:
        return Lines(0, seed)
    from .dataset_lines import DatasetLines  # Minari is imported for those who need it

    return DatasetLines(data, seed)


class CloneRun(SupervisedRun[CloneConfig]):
    """A run that learns the solver's moves; see ``SupervisedRun``."""

    algorithm = "cloning"

    def __init__(
        self,
        config: CloneConfig,
        budget: Budget,
        seed: int,
        out: Path,
        start: Path | None = None,
        data: Path | None = None,
    ) -> None:
        """A fresh run. ``data``: a dataset to take lines from in place of the solver's; AgentError for what is none."""
        self._data, self._lines = data, _source(data, seed)
        super().__init__(config, budget, seed, out, start)
        self._pool, self._finder = Pool(config.pool), LineFinder(tries=1)
        self._counted, self._due = 0, 0.0

    @classmethod
    def resume(cls, path: Path, budget: Budget | None = None, env_id: str | None = None) -> CloneRun:
        """Go on with a saved run: weights and optimiser are restored, lines and games are new ones.

        Raises AgentError for what is no such run.
        """
        folder, card = saved.run_folder(path), saved.load_card(path, env_id)
        try:
            config, data = CloneConfig.from_dict(card["config"]), Path(card["data"]) if card["data"] else None
            run = cls(config, budget or Budget(**card["budget"]), int(card["seed"]), folder, data=data)
            run.restore(card, path)
        except UNFIT as error:
            raise unfit(path, error) from None
        run._counted = run.progress.steps
        return run

    def card(self) -> dict[str, Any]:
        """The agent's JSON card."""
        return {**super().card(), "data": self._data and str(self._data.absolute())}

    def collect(self) -> None:
        """Label positions: some of whole lines, some of the pupil's own games."""
        config = self.config
        self.play(config.moves)
        own = round(config.lines * config.own) if self.progress.fraction >= config.own_from else 0
        for _ in range(config.lines - own):
            self._take(self._lines.fresh())
        for row in self.rng.permutation(np.flatnonzero(~self.pupil.over))[:own]:
            self._label(int(row))

    def _label(self, row: int) -> None:
        """Learn to go on from where a game of the pupil stands; one that looks lost is given up."""
        table = table_of(self.pupil.obs[row])
        line = self._finder.find(table)
        if line is not None:
            self._take(line)
            return
        self._pool.add(table[None, :_WORDS], np.array([_NO_MOVE]), np.zeros(1))
        self.pupil.over[row] = True

    def _take(self, line: Line) -> None:
        moves_to_go = np.arange(len(line.actions), 0, -1)
        self._pool.add(line.boards, line.actions, np.power(self.config.discount, moves_to_go))
        self.progress.steps += len(line.actions)

    def learn(self) -> None:
        """Look at each position ``reuse`` times on average."""
        config, new = self.config, self.progress.steps - self._counted
        self._counted, self._due = self.progress.steps, self._due + config.reuse * new
        while self._due >= config.batch_size:
            self._due -= config.batch_size
            self._imitate(*self._pool.draw(config.batch_size, self.rng))

    def _imitate(self, obs: Tensor, actions: Tensor, values: Tensor) -> None:
        """One step: cross-entropy of the moves, squared error of the values."""
        logits, guessed = self.network(obs, torch.from_numpy(legal_masks(obs.numpy())))
        known = actions != _NO_MOVE
        loss = F.cross_entropy(logits[known], actions[known]) + self.config.vf_coef * F.mse_loss(guessed, values)
        self.descend(loss, (logits.detach().argmax(1) == actions)[known])
