"""The four directions, numbered as in the original game."""

from __future__ import annotations

from enum import IntEnum

ACTIONS = 4


class Action(IntEnum):
    """Directions of a 2048 move."""

    UP = 0
    RIGHT = 1
    DOWN = 2
    LEFT = 3


def action_name(action: int) -> str:
    """``"up"``, ``"right"``, ``"down"`` or ``"left"``."""
    return Action(action).name.lower()


def parse_action(text: str) -> int:
    """A direction's name (any case) or first letter as its number. Raises ValueError for other text."""
    for action in Action:
        if text.strip().upper() in (action.name, action.name[0]):
            return int(action)
    raise ValueError(f"unknown direction {text!r}: expected up, right, down or left")
