"""The action codec: ``action = card_id * 10 + destination``, one meaning per index."""

from __future__ import annotations

from ..common.cards import CARDS, card_name

DESTINATIONS = 10
CELL, HOME = 8, 9  # destinations 0-7 are the columns
ACTIONS = CARDS * DESTINATIONS


def encode_action(card: int, destination: int) -> int:
    """The action that moves ``card`` (id 0..51), with the run on top of it, to ``destination`` (0..9)."""
    if not (0 <= card < CARDS and 0 <= destination < DESTINATIONS):
        raise ValueError(f"a FreeCell action is a card 0..51 and a destination 0..9, not {card}, {destination}")
    return card * DESTINATIONS + destination


def decode_action(action: int) -> tuple[int, int]:
    """Inverse of ``encode_action``: (card id, destination)."""
    if not 0 <= action < ACTIONS:
        raise ValueError(f"a FreeCell action is a whole number 0..{ACTIONS - 1}, not {action}")
    return divmod(int(action), DESTINATIONS)


def action_name(action: int) -> str:
    """Words for an action that need no position, such as ``"TS to column 6"``."""
    card, destination = decode_action(action)
    place = {CELL: "a cell", HOME: "home"}.get(destination, f"column {destination + 1}")
    return f"{card_name(card)} to {place}"
