"""The head of every state row: a game is one row of uint64 words, the first of which mean the same in all puzzles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .jit import njit

RNG = 0  # splitmix64 state
STEPS = 1  # actions since the reset, illegal ones included
STATUS = 2  # the bits below
HEAD = 3  # the puzzle's own words begin here

OVER = np.uint64(1)  # the game has ended
LEGAL = np.uint64(2)  # the last action was legal (set after a reset, too)
ZERO = np.uint64(0)
ONE = np.uint64(1)


def words(*values: int) -> tuple[np.uint64, ...]:
    """Numbers as constants that kernels calculate with."""
    return tuple(np.uint64(value) for value in values)


# What to do with a row: nothing; tell about it; start a new game; play an action. ``Batch`` computes with the numbers.
SKIP, SHOW, START, PLAY = np.uint8(0), np.uint8(1), np.uint8(2), np.uint8(3)

# Rows of the flags reported with each step: has the game ended, was the action legal, and is the puzzle's goal reached.
TERMINATED, TRUNCATED, WAS_LEGAL, SUCCESS, FLAGS = 0, 1, 2, 3, 4


@njit
def all_below(actions: NDArray[np.int64], n: int) -> bool:
    """Are all numbers from 0 to n - 1?"""
    outside = 0
    for i in range(np.uint64(len(actions))):
        outside |= (actions[i] < 0) | (actions[i] >= n)
    return outside == 0
