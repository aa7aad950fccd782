"""The solver as a player."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..envs.common.cards import CARDS
from ..envs.common.rng import Streams
from ..envs.freecell import rules
from ..envs.freecell.planning import table_of
from ..envs.freecell.state import DEPTH
from .baselines import GreedyFreeCell
from .policy import Actions, Masks, Observations
from .solver import MEGABYTES, Solver

_MOST_PLANS, _NO_PLAN = 100_000, -1


class SolverPlayer:
    """Plays the solver's line, and solves anew wherever a game is not on it.

    Where there is no win, or none was found within the limits, it plays like ``GreedyFreeCell``.
    """

    name = "solver"

    def __init__(self, seconds: float | None = 10.0, megabytes: int = MEGABYTES) -> None:
        """Limits of each search as in ``Solver``."""
        self._solver = Solver(seconds, megabytes)
        self._lost = GreedyFreeCell()
        self._plans: dict[bytes, int] = {}

    def act(self, observations: Observations, masks: Masks, rng: Streams) -> Actions:
        """One action per row; see ``policy.Policy``."""
        actions = self._lost.act(observations, masks, rng)
        for i, board in enumerate(observations):
            planned = self._planned(board)
            if planned is not None and masks[i, planned]:
                actions[i] = planned
        return actions

    def _planned(self, board: NDArray[np.uint8]) -> int | None:
        """The move of the plan that this board is on, or of a new one."""
        key = board.tobytes()
        if key not in self._plans:
            if len(self._plans) > _MOST_PLANS:
                self._plans.clear()
            self._plan(board)
        planned = self._plans[key]
        return planned if planned >= 0 else None

    def _plan(self, board: NDArray[np.uint8]) -> None:
        """Solve a board, and note the move for every board of the line."""
        solution = self._solver.solve(board)
        table, sent = table_of(board), np.empty(CARDS, dtype=np.int8)
        self._plans[board.tobytes()] = _NO_PLAN
        for action in solution.actions:
            self._plans[table[: DEPTH + 1].tobytes()] = action
            rules.move(table, action)
            rules.autoplay(table, sent)
