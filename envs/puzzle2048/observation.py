"""Spaces of 2048. The encoder itself is ``rules.advance_rows``: 16 exponents, the same numbers the board holds."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from .actions import ACTIONS
from .state import MAX_EXPONENT, SIDE

OBSERVATION_SPACE = spaces.Box(0, MAX_EXPONENT, (SIDE, SIDE), np.uint8)
ACTION_SPACE = spaces.Discrete(ACTIONS)
NUMBERS = ("score", "max_tile")  # in the info dict
