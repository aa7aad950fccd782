"""The numbered deals: the classic Microsoft ones, 1 to 1,000,000, and the same formula up to 2^31 - 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..common.cards import CARDS
from ..common.checks import whole_number
from .rules import deal_cards
from .state import TABLE, WORDS, squares

MAX_DEAL = 2**31 - 1
CLASSIC_DEALS = 1_000_000
RANDOM_DEALS = (1, 32000)  # a random deal of the original game is one of these
MAX_START_RANK = 12
# The only classic deals that cannot be won.
UNWINNABLE = (11982, 146692, 186216, 455889, 495505, 512118, 517776, 781948)


def check_whole(value: Any, low: int, high: int, what: str) -> int:
    """``value`` as an int within [low, high]. Raises ValueError that says what is accepted."""
    number = whole_number(value)
    if number is None or not low <= number <= high:
        raise ValueError(f"{what} must be a whole number from {low} to {high}, not {value!r}")
    return number


def check_deal(value: Any) -> int:
    """A deal number 1..2^31-1. Raises ValueError for anything else."""
    return check_whole(value, 1, MAX_DEAL, "a deal")


def deal_board(number: int, start_rank: int = 0) -> NDArray[np.uint8]:
    """The position of a numbered deal as a ``(20, 8)`` uint8 board.

    ``start_rank`` 0..12: cards of rank up to it (ace = 1) start on the foundations and the others are shuffled by the
    same generator; 0 is the classic deal. Raises ValueError for numbers outside 1..2^31-1.
    """
    row, deck = np.zeros(WORDS, dtype=np.uint64), np.empty(CARDS, dtype=np.int8)
    start_rank = check_whole(start_rank, 0, MAX_START_RANK, "start_rank")
    deal_cards(row[TABLE:], check_deal(number), start_rank, deck)
    return squares(row).copy()
