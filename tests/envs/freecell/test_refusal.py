"""Every illegal move is refused with its reason, and no legal one is."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from puzzlegym.envs.freecell import (
    board_from,
    card_id,
    deal_board,
    encode_action,
    legal_mask,
    parse_move,
    refusal,
)
from reference import freecell as oracle

games = st.tuples(st.integers(1, 10**6), st.integers(0, 12), st.integers(0, 60), st.integers(0, 2**32))
SUITS = "CDHS"


@settings(max_examples=30)
@given(games)
def test_a_reason_exactly_for_what_is_illegal(game):
    deal, start_rank, moves, seed = game
    position = oracle.play(oracle.deal(deal, start_rank), moves, random.Random(seed), True)[-1]
    board = np.array(oracle.squares(position), dtype=np.uint8)
    legal = legal_mask(board)
    for action in range(520):
        reason = refusal(board, action)
        assert (reason is None) == legal[action]
        assert reason is None or ("\n" not in reason and 10 < len(reason) < 90)


def position(cells, *columns):
    """A board with these open columns first; the other cards lie in the columns behind them."""
    named = [name for text in (cells, *columns) for name in text.split()]
    rest = [name for name in map(oracle.name, range(52)) if name not in named]
    behind = 8 - len(columns)
    piles = [rest[i::behind] for i in range(behind)]
    return board_from([*columns, *piles], cells.split())


REASONS = [
    ("", ["5H", "6D"], "12", "5H and 6D are both red: colours must alternate"),
    ("", ["5H", "7S"], "12", "5H goes on a black 6, not on 7S"),
    ("", ["9H", "8S"], "12", "9H goes on a black 10, not on 8S"),
    ("", ["KH", "QS"], "12", "KH goes on no card: a king moves only to an empty column"),
    ("AC 2C 3C 4C", ["9H 8S", "TS"], "12", "2 cards would move, but at most 1 can (0 empty cells, 0 empty columns)"),
    (
        "AC 2C 3C",
        ["9H 8S 7D 6S 5H", "TS", ""],
        "12",
        "5 cards would move, but at most 4 can (1 empty cell, 1 empty column)",
    ),
    (
        "AC 2C 3C",
        ["9H 8S 7D", ""],
        "12v3",
        "3 cards would move, but at most 2 can (1 empty cell, 0 empty columns beside this one)",
    ),
    ("AC 2C 3C 4C", ["5H"], "1a", "all four cells are taken"),
    ("AC 2C 3C", ["5H"], "1b", "cell b is taken by 2C: cell d is free"),
    ("AC 2C", ["5H"], "ad", "AC is in a cell already"),
    ("AC", ["5H"], "b1", "cell b is empty"),
    ("", ["5H", ""], "21", "column 2 is empty"),
    ("", ["5H"], "1h", "5H cannot go home yet: its foundation needs AH first"),
    ("", ["5H 9C"], "11", "9C is in column 1 already"),
    ("", ["5H 9C 6S", ""], "12v3", "5H is covered by 2 cards, and they make no run"),
    ("", ["5H 9C", ""], "12v7", "there are not 7 cards to move, only 2"),
]


@pytest.mark.parametrize(("cells", "columns", "text", "reason"), REASONS, ids=[row[3][:30] for row in REASONS])
def test_reasons(cells, columns, text, reason):
    board = position(cells, *columns)
    before = board.copy()
    with pytest.raises(ValueError, match=r"\w") as error:
        parse_move(board, text)
    assert str(error.value) == reason
    assert (board == before).all()


def test_cards_that_are_home_or_covered():
    board = board_from(["KC KD KH KS"] + [""] * 7, (), dict.fromkeys(SUITS, 12))
    assert refusal(board, encode_action(card_id("QC"), 3)) == "QC is home, and cards never come back from there"
    assert refusal(board, encode_action(card_id("KC"), 8)) == (
        "KC is covered by 3 cards: only the last card of a column goes there"
    )


def test_action_outside_the_space_is_an_error():
    with pytest.raises(ValueError, match=r"0\.\.519"):
        refusal(deal_board(1), 520)
