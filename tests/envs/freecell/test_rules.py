"""The rules of FreeCell: run limits by the table, safe cards, ends by every path, and the slow oracle everywhere."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from puzzlegym.envs.freecell import (
    CELL,
    HOME,
    apply,
    autoplay,
    board_from,
    deal_board,
    decode_action,
    encode_action,
    has_moves,
    is_won,
    legal_mask,
    legal_moves,
    tap,
)
from reference import freecell as oracle

deals, seeds = st.integers(1, 2**31 - 1), st.integers(0, 2**32)
games = st.tuples(deals, st.integers(0, 12), st.integers(0, 60), st.booleans(), seeds)


def reachable(deal, start_rank, moves, sends_home, seed):
    """A position of a random game."""
    return oracle.play(oracle.deal(deal, start_rank), moves, random.Random(seed), sends_home)[-1]


def board_of(position):
    return np.array(oracle.squares(position), dtype=np.uint8)


def names(cards):
    return " ".join(map(oracle.name, cards))


def cards_on(board):
    """All card ids that a board shows, those under the foundations' tops included."""
    shown = [int(x) - 1 for x in [*board[1:].ravel(), *board[0, :4]] if x]
    return sorted(shown + [card for suit in range(4) for card in range(suit, int(board[0, 4 + suit]), 4)])


def position_with(run, target, empty_cells, empty_columns):
    """Column 1: a loose card and ``run``; column 2: ``target`` (may be empty); the others full of what is left."""
    used = [oracle.card(word) for word in (run + " " + target).split()]
    rest = [card for card in range(52) if card not in used]
    cells = [oracle.name(rest.pop()) for _ in range(4 - empty_cells)]
    loose = rest.pop(next(i for i, card in enumerate(rest) if not oracle.fits(used[0], card)))
    filled = 6 - empty_columns + (0 if target else 1)
    columns = [names(rest[i::filled]) for i in range(filled)] + [""] * (6 - filled)
    return board_from([f"{oracle.name(loose)} {run}", target, *columns], cells)


TABLE = {  # the table of the rules: (empty cells, empty columns): cards onto a card, onto an empty column
    (0, 0): (1, None),
    (3, 0): (4, None),
    (4, 0): (5, None),
    (2, 1): (6, 3),
    (4, 1): (10, 5),
    (2, 2): (12, 6),
}
LIMITS = {  # the formula, for all numbers that fit
    (cells, columns): ((cells + 1) * 2**columns, (cells + 1) * 2**columns // 2 if columns else None)
    for cells, columns in itertools.product(range(5), range(4))
}
RUN = ["QH", "JS", "TH", "9S", "8H", "7S", "6H", "5S", "4H", "3S", "2H", "AS"]


def test_the_formula_gives_the_table():
    assert {case: LIMITS[case] for case in TABLE} == TABLE


@pytest.mark.parametrize(("cells", "columns"), LIMITS)
def test_run_limit_onto_a_card(cells, columns):
    for length in range(1, 13):
        board = position_with(" ".join(RUN[:length]), "KS", cells, columns)
        goes = length <= LIMITS[cells, columns][0]
        action = encode_action(oracle.card(RUN[0]), 1)
        after, _, legal = apply(board, action, autoplay=False)
        assert bool(legal_mask(board)[action]) is legal is goes
        assert [oracle.name(int(x) - 1) for x in after[1:, 1] if x] == ["KS", *(RUN[:length] if goes else [])]


@pytest.mark.parametrize(("cells", "columns"), [case for case in LIMITS if case[1]])
def test_run_limit_onto_an_empty_column(cells, columns):
    board = position_with(" ".join(RUN), "", cells, columns)
    for length in range(1, 13):
        goes = length <= LIMITS[cells, columns][1]
        action = encode_action(oracle.card(RUN[-length]), 1)
        after, _, legal = apply(board, action, autoplay=False)
        assert bool(legal_mask(board)[action]) is legal is goes
        assert [oracle.name(int(x) - 1) for x in after[1:, 1] if x] == (RUN[-length:] if goes else [])


# Every suit, with every count on the foundations of the other colour; its own foundation is one below the card.
SAFE = [(card, a, b) for card in range(52) for a, b in itertools.product({0, 1, 2, 3, 11, 12, 13}, repeat=2)]


def home_with(card, a, b):
    """Foundation counts: both of the other colour as given, the card's own one below it, its colour's other full."""
    others = [suit for suit in range(4) if oracle.red(suit) != oracle.red(card)]
    home = [13] * 4
    home[others[0]], home[others[1]], home[oracle.suit(card)] = a, b, oracle.rank(card)
    return home


def test_safe_cards_by_both_foundations_of_the_other_colour():
    """The card alone in a column; the others lie kings last, so that they cannot help."""
    for card, a, b in SAFE:
        home = home_with(card, a, b)
        rest = sorted(c for c in range(52) if oracle.rank(c) >= home[oracle.suit(c)] and c != card)
        filled = -(-len(rest) // oracle.DEEPEST)
        columns = [[card], *(rest[i::filled] for i in range(filled))]
        position = oracle.Position(columns + [[]] * (8 - len(columns)), [None] * 4, home)
        _, went = autoplay(board_of(position))
        value = oracle.rank(card) + 1
        assert (card in went) is (value <= 2 or (a >= value - 1 and b >= value - 1)), (oracle.name(card), a, b)


@given(games)
def test_reachable_positions_agree_with_the_oracle(game):
    position = reachable(*game)
    board = board_of(position)
    legal = oracle.legal(position)
    mask = legal_mask(board)
    assert (mask.dtype, mask.shape) == (np.bool_, (520,))
    moves = legal_moves(board)
    assert moves.dtype == np.int64
    assert moves.tolist() == np.flatnonzero(mask).tolist() == sorted(encode_action(*move) for move in legal)
    assert has_moves(board) is bool(legal)
    assert is_won(board) is oracle.won(position)
    for sends_home in (True, False):
        for move in sorted(legal)[::3]:
            expected, sent = oracle.apply(position, *move, sends_home)
            after, went, ok = apply(board, encode_action(*move), sends_home)
            assert after.tolist() == oracle.squares(expected)
            assert (ok, sorted(went)) == (True, sorted(sent))
            assert cards_on(after) == list(range(52))


@given(games)
def test_illegal_moves_change_nothing(game):
    board = board_of(reachable(*game))
    for action in np.flatnonzero(~legal_mask(board))[::7].tolist():
        after, went, legal = apply(board, action)
        assert np.array_equal(after, board)
        assert not np.shares_memory(after, board)
        assert (went, legal) == ([], False)


@given(games)
def test_safe_cards_agree_with_the_oracle(game):
    position = reachable(*game[:3], False, game[4])
    board = board_of(position)
    before = board.copy()
    after, went = autoplay(board)
    sent = oracle.send_safe_cards(position)
    assert sorted(went) == sorted(sent)
    assert after.tolist() == oracle.squares(position)
    assert np.array_equal(board, before)
    assert autoplay(after)[1] == [], "repeated until none is left"


@given(games)
def test_tap_agrees_with_the_oracle(game):
    position = reachable(*game)
    board = board_of(position)
    for card in range(52):
        places = oracle.best_places(position, card)
        if places:
            assert decode_action(tap(board, card)) in {(card, place) for place in places}
        else:
            with pytest.raises(ValueError, match="cannot move"):
                tap(board, card)


def test_tap_takes_the_cards_above_along():
    board = position_with("QH JS TH", "KS", 4, 0)
    assert tap(board, oracle.card("QH")) == encode_action(oracle.card("QH"), 1)
    after, _, _ = apply(board, tap(board, oracle.card("QH")))
    assert [oracle.name(int(x) - 1) for x in after[1:5, 1]] == ["KS", "QH", "JS", "TH"]


def test_full_column_takes_no_more():
    """A column of 19 cards, deeper than any game goes with more to come, must not spill over."""
    deep = [card for card in range(52) if oracle.name(card) not in ("5H", "4S")][:18]
    rest = [card for card in range(52) if card not in deep and oracle.name(card) not in ("5H", "4S")]
    columns = [[*deep, oracle.card("5H")], [oracle.card("4S")], [], [], [], [], rest[:16], rest[16:]]
    position = oracle.Position(columns, [None] * 4, [0] * 4)
    board = board_of(position)
    assert legal_moves(board).tolist() == sorted(encode_action(*move) for move in oracle.legal(position))
    after, _, legal = apply(board, encode_action(oracle.card("4S"), 0))
    assert not legal
    assert np.array_equal(after, board)


WINS = {  # name: (columns, cells, cards home by suit, card, destination)
    "player sends the last card": (["KS"], [], (13, 13, 13, 12), "KS", HOME),
    "player sends the last card from a cell": ([], ["KC"], (12, 13, 13, 13), "KC", HOME),
    "safe cards after a move home": (["KS QS", "KH"], [], (13, 13, 12, 11), "KH", HOME),
    "safe cards after a move to a cell": (["KD QD", "KH"], [], (13, 11, 12, 13), "KH", CELL),
    "safe cards after a move to a column": (["KC", "KD"], [], (12, 12, 13, 13), "KC", 5),
    "safe cards out of cells": (["KC"], ["QS", "KS", "KH"], (12, 13, 12, 11), "KC", 5),
    "three home moves": (["KC QS"], ["KS"], (12, 13, 13, 11), "QS", HOME),
}


@pytest.mark.parametrize("path", WINS)
def test_won_by_every_path(path):
    columns, cells, home, card, destination = WINS[path]
    board = board_from(columns + [""] * (8 - len(columns)), cells, dict(zip("CDHS", home, strict=True)))
    assert has_moves(board)
    assert not is_won(board)
    after, went, legal = apply(board, encode_action(oracle.card(card), destination))
    assert (legal, len(went)) == (True, 52 - sum(home))
    assert is_won(after)
    assert not has_moves(after)
    last, _, _ = apply(board, encode_action(oracle.card(card), destination), autoplay=False)
    assert is_won(last) is (sum(home) == 51 and destination == HOME)
    assert has_moves(last) is not is_won(last)


def leaves(board, depth):
    """``oracle.leaves`` with the package's moves."""
    moves = legal_moves(board)
    return len(moves) if depth == 1 else sum(leaves(apply(board, int(move))[0], depth - 1) for move in moves)


@pytest.mark.parametrize(
    ("deal", "start_rank", "counts"),
    [(1, 0, [8, 70, 659]), (617, 0, [11, 118, 1259]), (11982, 0, [11, 118, 1250]), (5, 9, [16, 298, 6665])],
)
def test_move_tree(deal, start_rank, counts):
    expected = [oracle.leaves(oracle.deal(deal, start_rank), depth) for depth in (1, 2, 3)]
    assert expected == counts
    assert [leaves(deal_board(deal, start_rank), depth) for depth in (1, 2, 3)] == expected


@pytest.mark.parametrize("action", [-1, 520, 10**6])
def test_actions_outside_the_space_are_refused(action):
    for call in (lambda: apply(deal_board(1), action), lambda: decode_action(action)):
        with pytest.raises(ValueError, match="519"):
            call()


def test_action_codec():
    pairs = [(card, destination) for card in range(52) for destination in range(10)]
    assert [encode_action(*pair) for pair in pairs] == list(range(520))
    assert [decode_action(action) for action in range(520)] == pairs
    for pair in ((-1, 0), (52, 0), (0, -1), (0, 10)):
        with pytest.raises(ValueError, match="card"):
            encode_action(*pair)
