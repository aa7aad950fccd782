"""Why games were lost: stuck, gone round in circles, or out of steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..envs.common.jit import njit
from ..envs.common.rows import STEPS
from ..envs.freecell import rules
from ..envs.freecell.state import TABLE

Keys = NDArray[np.uint64]
KeysOf = Callable[[NDArray[np.uint64]], Keys]
"""A key for each state row (uint64 ``[N, words]`` -> ``[N]``), the same for positions that count as the same."""

# No legal move was left; the step limit came, and more than half of the moves had led to positions already seen in the
# game; it came otherwise.
CAUSES = ("stuck", "repeated", "step_limit")
_STEPS_AT_FIRST = 512  # FreeCell has no more


@njit
def _write_keys(rows: NDArray[np.uint64], keys: Keys) -> None:
    for i in range(len(rows)):
        keys[i] = rules.position_key(rows[i, TABLE:])


def freecell_keys(rows: NDArray[np.uint64]) -> Keys:
    """Keys of FreeCell positions: the same whatever the order of columns and of cells."""
    keys = np.empty(len(rows), dtype=np.uint64)
    _write_keys(rows, keys)
    return keys


class Trail:
    """The positions that each game of a native batch has been in since it began."""

    def __init__(self, envs: Any, keys_of: KeysOf) -> None:
        """``envs``: the batch, possibly wrapped."""
        self._envs, self._keys_of = envs, keys_of
        self._keys = np.zeros((envs.num_envs, _STEPS_AT_FIRST), dtype=np.uint64)
        self._steps = np.zeros(envs.num_envs, dtype=np.int64)

    def note(self, which: NDArray[np.bool_]) -> None:
        """Note where these games stand: at their beginning, and after every step."""
        rows = self._envs.get_state()[which]
        steps = self._steps[which] = rows[:, STEPS].astype(np.int64)
        if steps.max(initial=0) >= self._keys.shape[1]:
            self._keys = np.concatenate([self._keys, np.zeros_like(self._keys)], axis=1)
        self._keys[which, steps] = self._keys_of(rows)

    def repeats(self, row: int) -> int:
        """Moves of a game that led to a position already seen in it; an illegal one leads to where the game stood."""
        positions = int(self._steps[row]) + 1
        return positions - len(set(self._keys[row, :positions].tolist()))

    def causes(
        self, rows: NDArray[np.int64], won: NDArray[np.bool_], terminated: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """For which of ``CAUSES`` the games that just ended in these rows were lost (bool ``[G, 3]``).

        ``won`` and ``terminated``: which of them were won, and which were ended by the rules; none has two causes, and
        a game that was won has none.
        """
        causes = np.zeros((len(rows), len(CAUSES)), dtype=np.bool_)
        causes[:, 0] = ~won & terminated
        for i in np.flatnonzero(~won & ~terminated):
            circled = 2 * self.repeats(rows[i]) > self._steps[rows[i]]
            causes[i, 1 if circled else 2] = True
        return causes
