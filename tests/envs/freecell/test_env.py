"""FreeCell-v0: the contract's row, whole games against the oracle, ends, options."""

from __future__ import annotations

import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from puzzlegym.envs.freecell import FreeCellEnv, State, deal_board, encode_action
from reference import freecell as oracle
from reference.shared_data import read_json

ID = "FreeCell-v0"
INFO = {"action_mask", "legal", "deal", "cards_home", "moves", "is_success"}
POSITIONS = {case["kind"]: case["position"] for case in read_json("freecell_positions.json")}
STUCK, ONE_CELL = POSITIONS["stuck"], POSITIONS["not_stuck_free_cell"]


def test_contract():
    env = gym.make(ID)
    _, info = env.reset(seed=0)
    assert env.observation_space == spaces.Box(0, 52, (20, 8), np.uint8)
    assert env.action_space == spaces.Discrete(520)
    assert gym.spec(ID).max_episode_steps == 500
    assert set(info) == INFO
    assert all(type(info[key]) is int for key in ("deal", "cards_home", "moves"))
    assert 1 <= info["deal"] <= 32_000
    assert (info["cards_home"], info["moves"]) == (0, 0)


@given(
    deal=st.integers(1, 1_000_000),
    start_rank=st.sampled_from([0, 0, 4, 9, 12]),
    autoplay=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_whole_games_agree_with_the_oracle(deal, start_rank, autoplay, seed):
    env = gym.make(ID, deal=deal, start_rank=start_rank, autoplay=autoplay).unwrapped
    obs, info = env.reset(seed=seed)
    position, rng, moves = oracle.deal(deal, start_rank), np.random.default_rng(seed), 0
    for _ in range(40):
        legal = oracle.legal(position)
        assert obs.tolist() == oracle.squares(position)
        assert np.flatnonzero(info["action_mask"]).tolist() == sorted(encode_action(*move) for move in legal)
        if not legal:
            break
        choices = sorted(legal) if rng.random() < 0.8 else [divmod(int(rng.integers(520)), 10)]
        move = choices[rng.integers(len(choices))]
        went = []
        if move in legal:
            position, went = oracle.apply(position, *move, autoplay)
        obs, reward, terminated, _, info = env.step(encode_action(*move))
        moves += move in legal
        assert_cards(obs)
        assert (reward, info["legal"], info["moves"]) == (len(went), move in legal, moves)
        assert (info["cards_home"], info["deal"]) == (sum(position.home), deal)
        assert info["is_success"] is oracle.won(position)
        assert terminated is (oracle.won(position) or oracle.stuck(position))


def assert_cards(obs):
    """52 cards, once each, no gaps in the columns."""
    position = oracle.from_squares(obs)
    assert oracle.squares(position) == obs.tolist()
    cards = [card for column in position.columns for card in column] + [c for c in position.cells if c is not None]
    cards += [4 * rank + suit for suit in range(4) for rank in range(position.home[suit])]
    assert sorted(cards) == list(range(52))


def test_games_get_stuck_by_every_kind_of_move():
    """Many short games in a batch: each end is stuck by the oracle, after moves to a column, a cell, and home."""
    venv = gym.make_vec(ID, num_envs=400, max_episode_steps=60, autoreset_mode="SameStep")
    _, infos = venv.reset(seed=1)
    rng, ways = np.random.default_rng(1), set()
    for _ in range(40):
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in infos["action_mask"]])
        _, _, terminated, _, infos = venv.step(actions)
        for i in np.flatnonzero(terminated):
            position = oracle.from_squares(infos["final_obs"][i])
            assert oracle.won(position) is bool(infos["final_info"]["is_success"][i])
            assert oracle.won(position) or oracle.stuck(position)
            if not oracle.won(position):
                ways.add({oracle.CELL: "cell", oracle.HOME: "home"}.get(int(actions[i]) % 10, "column"))
    assert ways == {"column", "cell", "home"}


def test_stuck_ends_the_game_without_success():
    env, ends = gym.make(ID), set()
    _, info = env.reset(options={"board": ONE_CELL})
    for action in np.flatnonzero(info["action_mask"]).tolist():
        env.reset(options={"board": ONE_CELL})
        obs, reward, terminated, truncated, info = env.step(action)
        assert terminated is oracle.stuck(oracle.from_squares(obs)) is (not info["action_mask"].any())
        assert (reward, truncated, info["is_success"]) == (0.0, False, False)
        ends.add(terminated)
    assert True in ends


def test_an_open_home_move_is_not_stuck():
    """Nothing else can move, but a card can still go home."""
    position = oracle.read(STUCK)
    assert oracle.stuck(position)
    position.columns[0].remove(oracle.card("AC"))
    position.columns[0].append(oracle.card("AC"))
    env = gym.make(ID, autoplay=False)
    _, info = env.reset(options={"board": np.array(oracle.squares(position), dtype=np.uint8)})
    assert np.flatnonzero(info["action_mask"]).tolist() == [encode_action(oracle.card("AC"), oracle.HOME)]
    *_, terminated, _, info = env.step(encode_action(oracle.card("AC"), oracle.HOME))
    assert info["cards_home"] == 1
    assert terminated is oracle.stuck(oracle.from_squares(env.unwrapped.get_state().array))


@pytest.mark.parametrize("kind", ["mapping", "array", "text", "state"])
def test_board_option_in_every_form(kind):
    state = State(np.array(oracle.squares(oracle.read(ONE_CELL)), dtype=np.uint8).tobytes())
    board = {"mapping": ONE_CELL, "array": state.array, "text": str(state), "state": state}[kind]
    obs, info = gym.make(ID).reset(options={"board": board})
    assert np.array_equal(obs, state.array)
    assert (info["deal"], info["moves"], info["legal"]) == (0, 0, True)
    boards = [board, board]
    obs, _ = gym.make_vec(ID, num_envs=2).reset(options={"board": boards})
    assert np.array_equal(obs, [state.array] * 2)


def test_each_game_of_a_batch_gets_its_board():
    venv = gym.make_vec(ID, num_envs=3)
    boards = np.stack([deal_board(deal) for deal in (1, 2, 3)])
    assert np.array_equal(venv.reset(options={"board": boards})[0], boards)
    with pytest.raises(ValueError, match="board"):
        venv.reset(options={"board": boards[:2]})
    mixed = [boards[1], POSITIONS["stuck"], str(State(boards[2].tobytes()))]
    obs, infos = venv.reset(options={"board": mixed})
    assert np.array_equal(obs[[0, 2]], boards[[1, 2]])
    assert infos["action_mask"].any(axis=1).tolist() == [True, False, True]


def test_safe_cards_wait_for_the_first_move():
    """Not at the deal: the safe cards of a new game go home after the first move, counted as its reward."""
    deal = next(d for d in range(1, 999) if oracle.send_safe_cards(oracle.deal(d)))
    env = gym.make(ID, deal=deal)
    obs, info = env.reset()
    assert np.array_equal(obs, deal_board(deal))
    assert info["cards_home"] == 0
    move = next(m for m in sorted(oracle.legal(oracle.deal(deal))) if m[1] == oracle.CELL)
    _, reward, _, _, info = env.step(encode_action(*move))
    assert reward == info["cards_home"] == len(oracle.apply(oracle.deal(deal), *move)[1]) > 0


def test_autoplay_can_be_switched_off():
    board = {**POSITIONS["win_by_autoplay"]}
    for autoplay, reward in ((True, 13.0), (False, 1.0)):
        env = gym.make(ID, autoplay=autoplay)
        env.reset(options={"board": board})
        result = env.step(encode_action(oracle.card("AC"), oracle.HOME))
        assert (result[1], result[2], result[4]["is_success"]) == (reward, autoplay, autoplay)
    for wrong in (1, None, "yes"):
        with pytest.raises(ValueError, match="autoplay"):
            FreeCellEnv(autoplay=wrong)


def broken(change):
    """A deal's position after a change that makes it impossible."""
    position = oracle.deal(1)
    change(position)
    return np.array(oracle.squares(position), dtype=np.int64)


def gap(board):
    board[3, 0] = 0
    return board


IMPOSSIBLE = {
    "a card twice": broken(lambda p: p.columns[0].append(p.columns[1][0])),
    "a card missing": broken(lambda p: p.columns[0].pop()),
    "home and in a column": broken(lambda p: p.home.__setitem__(0, 1)),
    "53": np.where(deal_board(1) == 52, 53, deal_board(1).astype(int)),
    "negative": np.where(deal_board(1) == 0, -1, deal_board(1).astype(int)),
    "gap": gap(np.array(deal_board(1))),
    "wrong foundation": np.vstack([[[0] * 4 + [2, 0, 0, 0]], deal_board(1)[1:]]),
    "nothing": np.zeros((20, 8), dtype=np.uint8),
    "fractions": deal_board(1) + 0.5,
    "19 rows": deal_board(1)[:19],
    "nine columns": {**POSITIONS["stuck"], "cols": [*POSITIONS["stuck"]["cols"], ""]},
    "unknown card": {**POSITIONS["stuck"], "cells": ["7D", "7H", "5S", "1X"]},
    "five cells": {**POSITIONS["stuck"], "cells": ["7D", "7H", "5S", "5C", None]},
    "14 home": {**POSITIONS["stuck"], "home": {"C": 14}},
    "no home": {"cols": POSITIONS["stuck"]["cols"], "cells": []},
}


@pytest.mark.parametrize("board", IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_impossible_positions_are_refused(board):
    env = gym.make(ID).unwrapped
    env.reset(seed=0)
    before = env.get_state()
    with pytest.raises(ValueError, match=r".") as error:
        env.reset(options={"board": board})
    assert "\n" not in str(error.value)
    assert env.get_state() == before
    if isinstance(board, np.ndarray) and board.dtype.kind in "iu" and board.min() >= 0:
        with pytest.raises(ValueError, match=r"FreeCell"):
            env.set_state(State(board.astype(np.uint8).tobytes()))
        assert env.get_state() == before


@pytest.mark.parametrize("key", ["deal", "moves"])
@pytest.mark.parametrize("value", [-1, 2**64, 1.5, "1", None, True])
def test_impossible_numbers_are_refused(key, value):
    env = gym.make(ID).unwrapped
    env.reset(seed=0)
    data = {**json.loads(env.get_state().to_json()), key: value}
    with pytest.raises(ValueError, match=key):
        State.from_json(json.dumps(data))
