"""Playing cards as numbers 0..51: ``id = 4 * rank + suit``, suits C D H S, ranks ace (0) to king (12)."""

from __future__ import annotations

SUITS = "CDHS"
RANKS = "A23456789TJQK"
CARDS = 52
RED = (1, 2)  # suit numbers of diamonds and hearts


def card_name(card: int) -> str:
    """``card`` id 0..51 as two letters, e.g. ``"TS"``."""
    return RANKS[card // 4] + SUITS[card % 4]


def spoken_name(card: int) -> str:
    """``card`` as people write it, with ``10`` for ``T``, e.g. ``"10S"``."""
    return card_name(card).replace("T", "10")


def card_id(name: str) -> int:
    """Two letters (any case, ``10`` for ``T`` allowed) as an id. Raises ValueError for anything else."""
    text = name.strip().upper().replace("10", "T")
    if len(text) != 2 or text[0] not in RANKS or text[1] not in SUITS:
        raise ValueError(f"unknown card {name!r}: expected a rank of {RANKS} and a suit of {SUITS}, such as TS or 4H")
    return RANKS.index(text[0]) * 4 + SUITS.index(text[1])
