"""FreeCell with potential-based shaping (Ng, Harada, Russell 1999): progress towards the win counts at once."""

from __future__ import annotations

import numpy as np
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from ..envs.base.batch import Batch
from ..envs.common.cards import CARDS
from ..envs.freecell import FreeCellEnv, FreeCellVectorEnv, rules
from ..envs.freecell.estimate import USUAL, estimate, estimate_rows
from ..envs.freecell.state import TABLE
from ._batch import AnyEnv, AnyVectorEnv, PuzzleVectorWrapper, SingleWrapper, Step, VectorStep, batch_of

_WEIGHTS = USUAL.array()


def _estimates(batch: Batch) -> NDArray[np.float64]:
    estimates = np.empty(len(batch))
    estimate_rows(batch.rows, _WEIGHTS, estimates)
    return estimates


def _estimate_after(row: NDArray[np.uint64], action: int, autoplays: bool) -> int:
    """The estimate of the position that a move leads to; for games whose row the next one has taken."""
    table = row[TABLE:].copy()
    if rules.move(table, action) and autoplays:
        rules.autoplay(table, np.empty(CARDS, dtype=np.int8))
    return int(estimate(table, _WEIGHTS))


class PotentialFreeCell(SingleWrapper):
    """Adds to each reward how much nearer to the win the position looks than before, by the solver's estimate.

    The estimate weighs cards that are not home, breaks of order, covered cards, cells in use and what lies on the cards
    needed next (``envs.freecell.estimate``). What is added over a whole game depends on its first and its last position
    only (discount 1), so going round in circles gains nothing.

    Example:
        >>> import gymnasium, puzzlegym
        >>> from puzzlegym.wrappers import PotentialFreeCell
        >>> env = PotentialFreeCell(gymnasium.make("FreeCell-v0", deal=9))
        >>> obs, info = env.reset(seed=0)
        >>> there, back = env.step(298)[1], env.step(297)[1]  # 8D to a cell, and back
        >>> there + back
        0.0
    """

    def __init__(self, env: AnyEnv, scale: float = 0.05) -> None:
        """``env``: a FreeCell environment, possibly wrapped, TypeError for any other; ``scale``: reward per point."""
        RecordConstructorArgs.__init__(self, scale=scale)
        super().__init__(env)
        self._batch, self._scale = batch_of(env, FreeCellEnv), scale

    def step(self, action: int) -> Step:
        """Make a move."""
        before = _estimates(self._batch)
        obs, reward, terminated, truncated, info = self.env.step(action)
        nearer = float((before - _estimates(self._batch))[0])
        return obs, float(reward) + self._scale * nearer, terminated, truncated, info


class PotentialFreeCellVector(PuzzleVectorWrapper):
    """``PotentialFreeCell`` for the native batch, in every autoreset mode; a reset step gives 0.

    Example:
        >>> import gymnasium, puzzlegym
        >>> from puzzlegym.wrappers import PotentialFreeCellVector
        >>> venv = PotentialFreeCellVector(gymnasium.make_vec("FreeCell-v0", num_envs=2, deal=9))
        >>> obs, infos = venv.reset(seed=0)
        >>> there, back = venv.step([298, 298])[1], venv.step([297, 297])[1]  # 8D to a cell, and back
        >>> there + back
        array([0., 0.])
    """

    def __init__(self, env: AnyVectorEnv, scale: float = 0.05) -> None:
        """``env``: a ``FreeCellVectorEnv``, possibly wrapped, TypeError for any other; ``scale``: reward per point."""
        super().__init__(env)
        self._batch, self._scale = batch_of(env, FreeCellVectorEnv), scale

    def step(self, actions: NDArray[np.int64]) -> VectorStep:
        """Make a move in every game."""
        batch = self._batch
        rows, before, autoplays = batch.rows.copy(), _estimates(batch), batch.config[:, rules.AUTOPLAY]
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        after, ended, begun = _estimates(batch), terminated | truncated, batch.steps() == 0
        for i in np.flatnonzero(begun & ended):
            after[i] = _estimate_after(rows[i], actions[i], autoplays[i])
        nearer = np.where(begun & ~ended, 0.0, before - after)
        return obs, rewards + self._scale * nearer, terminated, truncated, infos
