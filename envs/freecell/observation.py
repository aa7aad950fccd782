"""Spaces of FreeCell. The encoder itself is ``rules.advance_rows``: a state row holds the observation's bytes."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from ..common.cards import CARDS
from .actions import ACTIONS
from .state import SHAPE

OBSERVATION_SPACE = spaces.Box(0, CARDS, SHAPE, np.uint8)
ACTION_SPACE = spaces.Discrete(ACTIONS)
NUMBERS = ("deal", "cards_home", "moves")  # in the info dict
