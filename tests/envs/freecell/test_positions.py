"""21 positions around the faults that other FreeCells had, each with the outcome that the rules say."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from puzzlegym.envs.freecell import (
    apply,
    autoplay,
    board_from,
    decode_action,
    encode_action,
    has_moves,
    is_won,
    legal_mask,
    legal_moves,
    parse_move,
    tap,
)
from reference import freecell as oracle
from reference.notation import Reader
from reference.shared_data import read_json

CASES = {case["kind"]: case for case in read_json("freecell_positions.json")}


def board_of(parts):
    return board_from(parts["cols"], parts["cells"], parts["home"])


def with_expectation(key, kind=object):
    """The cases that say what to expect of ``key``, as a value of that kind."""
    known = {name: case["expect"][key] for name, case in CASES.items() if key in case["expect"]}
    chosen = [name for name, value in known.items() if isinstance(value, kind)]
    assert chosen, key
    return pytest.mark.parametrize("kind", chosen)


def action_of(kind, text):
    """The action that a written move means by the reference reader, or None."""
    position = oracle.read(CASES[kind]["position"])
    meant = Reader(position).read(position, text)
    return None if meant is None else encode_action(*meant)


def is_legal(kind, text):
    board = board_of(CASES[kind]["position"])
    action = action_of(kind, text)
    legal = action is not None and bool(legal_mask(board)[action])
    try:
        assert parse_move(board, text) == action
        assert legal
    except ValueError:
        assert not legal, "notation refuses a legal move"
    if action is not None:
        assert apply(board, action)[2] is legal
    return legal


def test_every_case_is_tested_below():
    assert len(CASES) == 21
    tested = {"legal", "cards", "home_cards", "won", "no_moves_left", "after_undo", "move"}
    assert all(set(case["expect"]) & tested for case in CASES.values())


@pytest.mark.parametrize("kind", CASES)
def test_positions_read_and_show_as_they_are(kind):
    parts = CASES[kind]["position"]
    board = board_of(parts)
    assert board.tolist() == oracle.squares(oracle.read(parts))
    for option in (board, parts):
        obs, info = gym.make("FreeCell-v0").reset(options={"board": option})
        assert np.array_equal(obs, board)
        assert (info["deal"], info["moves"], info["cards_home"]) == (0, 0, sum(parts["home"].values()))
    expected = sorted(encode_action(*move) for move in oracle.legal(oracle.read(parts)))
    assert legal_moves(board).tolist() == expected == np.flatnonzero(info["action_mask"]).tolist()


@with_expectation("legal", dict)
def test_legal_and_illegal_moves(kind):
    expected = CASES[kind]["expect"]["legal"]
    assert {text: is_legal(kind, text) for text in expected} == expected


@with_expectation("legal", list)
def test_all_legal_moves(kind):
    expected = {action_of(kind, text) for text in CASES[kind]["expect"]["legal"]}
    assert set(legal_moves(board_of(CASES[kind]["position"])).tolist()) == expected


@with_expectation("no_moves_left")
def test_stuck_or_not(kind):
    board, stuck = board_of(CASES[kind]["position"]), CASES[kind]["expect"]["no_moves_left"]
    env = gym.make("FreeCell-v0")
    _, info = env.reset(options={"board": board})
    assert has_moves(board) is bool(info["action_mask"].any()) is (not stuck)
    assert not is_won(board)
    if stuck:
        with pytest.raises(gym.error.ResetNeeded):
            env.step(0)


@with_expectation("cards")
def test_the_destination_decides_how_many_cards_go(kind):
    board = board_of(CASES[kind]["position"])
    for text, cards in CASES[kind]["expect"]["cards"].items():
        after, _, legal = apply(board, parse_move(board, text), autoplay=False)
        source, target = int(text[0]) - 1, int(text[1]) - 1
        moved = [oracle.name(int(x) - 1) for x in after[1:, target] if x and x not in board[1:, target]]
        assert legal
        assert moved == cards
        assert (after[1:, source] != 0).sum() == (board[1:, source] != 0).sum() - len(cards)


@with_expectation("home_cards")
def test_safe_cards(kind):
    case = CASES[kind]
    after, went = autoplay(board_of(case["position"]))
    expected = case["expect"]["home_cards"]
    assert (len(went) if isinstance(expected, int) else [oracle.name(card) for card in went]) == expected
    assert is_won(after) is case["expect"].get("won", False)


@with_expectation("autoplay_before")
def test_safe_cards_before_the_players_move(kind):
    board = board_of(CASES[kind]["position"])
    after, went = autoplay(board)
    assert went == CASES[kind]["expect"]["autoplay_before"]
    assert np.array_equal(after, board)


@with_expectation("after_undo")
def test_going_back_over_the_automatic_moves(kind):
    case = CASES[kind]
    env = gym.make("FreeCell-v0").unwrapped
    env.reset(options={"board": case["position"]})
    before = env.get_state()
    board = before.array
    for text in case["test"]["play"]:
        *_, terminated, _, info = env.step(parse_move(env.get_state().array, text))
    assert terminated is info["is_success"] is case["expect"]["after_play_won"]
    env.set_state(before)
    assert env.get_state().array.tolist() == oracle.squares(oracle.read(case["expect"]["after_undo"])) == board.tolist()
    assert env.action_masks().any()
    assert env.step(int(legal_moves(board)[0]))[4]["moves"] == 1


@with_expectation("move")
def test_tap_goes_to_the_best_place(kind):
    case = CASES[kind]
    card = oracle.card(case["test"]["tap"])
    action = tap(board_of(case["position"]), card)
    assert action == action_of(kind, case["expect"]["move"])
    assert decode_action(action)[1] in oracle.best_places(oracle.read(case["position"]), card)
