"""The head of every state row: a game is one row of uint64 words, the first of which mean the same in all puzzles."""

from __future__ import annotations

import numpy as np

RNG = 0  # splitmix64 state
STEPS = 1  # actions since the reset, illegal ones included
STATUS = 2  # the bits below
HEAD = 3  # the puzzle's own words begin here

OVER = np.uint64(1)  # the game has ended
LEGAL = np.uint64(2)  # the last action was legal (set after a reset, too)
ZERO = np.uint64(0)
ONE = np.uint64(1)
