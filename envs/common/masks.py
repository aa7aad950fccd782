"""Choosing among legal actions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .jit import njit


@njit
def _choose(masks: NDArray[np.int8], uniform: NDArray[np.float64], actions: NDArray[np.int64]) -> None:
    for i in range(len(masks)):
        count = 0
        for action in range(masks.shape[1]):
            count += masks[i, action] != 0
        skip = int(uniform[i] * count)
        for action in range(masks.shape[1]):
            if masks[i, action]:
                actions[i] = action
                skip -= 1
                if skip < 0:
                    break


def choose_legal(masks: NDArray[np.bool_] | NDArray[np.int8], uniform: NDArray[np.float64]) -> NDArray[np.int64]:
    """One legal action per row, all alike (int64 ``[N]``; 0 where nothing is legal).

    ``masks``: ``[N, actions]``; ``uniform``: a random number in [0, 1) per row.
    """
    actions = np.zeros(len(masks), dtype=np.int64)
    _choose(np.ascontiguousarray(masks).view(np.int8), uniform, actions)
    return actions
