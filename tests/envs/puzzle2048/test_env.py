"""Puzzle2048-v0: the contract's row, score, win, options, the largest tiles, snapshots, text."""

from __future__ import annotations

import json
import re

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from puzzlegym.envs.puzzle2048 import Action, Puzzle2048Env, State, action_name, exponents, parse_action
from reference import game2048 as oracle

ID = "Puzzle2048-v0"
INFO = {"action_mask", "legal", "score", "max_tile", "is_success"}
MERGE_1024 = np.reshape([10, 10] + [0] * 14, (4, 4))
OVER = np.reshape([1, 2] * 2 + [2, 1] * 2 + [1, 2] * 2 + [2, 1] * 2, (4, 4))


def env_on(board, **arguments):
    env = gym.make(ID, **arguments)
    env.reset(seed=0, options={"board": np.reshape(board, (4, 4))})
    return env


def test_contract():
    env = gym.make(ID)
    _, info = env.reset(seed=0)
    assert env.observation_space == spaces.Box(0, 17, (4, 4), np.uint8)
    assert env.action_space == spaces.Discrete(4)
    assert gym.spec(ID).max_episode_steps == 131072
    assert set(info) == INFO
    assert (info["score"], info["is_success"]) == (0, False)
    assert type(info["score"]) is type(info["max_tile"]) is int
    assert info["max_tile"] in (2, 4)


@given(seed=st.integers(0, 2**32))
def test_score_identity(seed):
    """score = sum over tiles of (k - 1) * 2^k, less 4 for each 4 that appeared; rewards add up to it."""
    env = gym.make(ID, prob_four=0.3).unwrapped
    obs, info = env.reset(seed=seed)
    fours, total = int((obs == 2).sum()), 0.0
    rng = np.random.default_rng(seed)
    while info["action_mask"].any():
        board = tuple(obs.ravel().tolist())
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        obs, reward, *_, info = env.step(action)
        new = obs.ravel().astype(int) - np.array(oracle.move(board, action)[0])
        fours += int(new.max() == 2)
        total += reward
        tiles = [int(k) for k in obs.ravel() if k]
        assert info["score"] == total == sum((k - 1) * 2**k for k in tiles) - 4 * fours
        assert info["max_tile"] == 2 ** max(tiles)
    assert total > 0


def test_2048_from_twos_alone_is_worth_20480():
    env = gym.make(ID, prob_four=0.0).unwrapped
    env.set_state(State((10, 10) + (0,) * 14, score=2 * 9 * 2**10))
    assert env.step(Action.LEFT)[4]["score"] == 20480


def test_win_does_not_end_the_game():
    env = env_on(MERGE_1024)
    _, reward, terminated, _, info = env.step(Action.LEFT)
    assert (reward, terminated, info["is_success"], info["max_tile"]) == (2048.0, False, True, 2048)
    assert info["action_mask"].any()
    env.step(int(np.flatnonzero(info["action_mask"])[0]))


def test_terminate_on_win():
    env = env_on(MERGE_1024, terminate_on_win=True)
    _, reward, terminated, truncated, info = env.step(Action.LEFT)
    assert (reward, terminated, truncated, info["is_success"]) == (2048.0, True, False, True)
    assert not info["action_mask"].any()
    with pytest.raises(gym.error.ResetNeeded):
        env.step(Action.LEFT)
    small = env_on(np.reshape([9, 9] + [0] * 14, (4, 4)), terminate_on_win=True)
    assert small.step(Action.LEFT)[2] is False


def test_loss_by_the_spawn():
    """The move fills the board: over if and only if the new tile leaves no pair."""
    ends = set()
    for seed in range(40):
        env = gym.make(ID, prob_four=0.5)
        env.reset(seed=seed, options={"board": [[0, 3, 4, 5], [4, 5, 6, 1], [5, 6, 7, 8], [1, 3, 8, 9]]})
        obs, _, terminated, _, info = env.step(Action.LEFT)
        assert terminated is oracle.is_over(tuple(obs.ravel().tolist())) is (not info["action_mask"].any())
        ends.add(terminated)
    assert ends == {True, False}


def test_a_board_that_is_over_may_be_set_but_not_played():
    env = gym.make(ID)
    _, info = env.reset(options={"board": OVER})
    assert not info["action_mask"].any()
    with pytest.raises(gym.error.ResetNeeded, match="over"):
        env.step(0)


@pytest.mark.parametrize("tile", range(1, 17))
@pytest.mark.parametrize("direction", Action)
def test_every_tile_up_to_131072_can_be_made(tile, direction):
    line = oracle.LINES[int(direction)][2]
    env = env_on([tile if square in line[1:3] else 0 for square in range(16)])
    obs, reward, _, _, info = env.step(direction)
    assert obs.ravel()[line[0]] == tile + 1
    assert (reward, info["score"], info["max_tile"]) == (2.0 ** (tile + 1), 2 ** (tile + 1), 2 ** (tile + 1))
    assert env.observation_space.contains(obs)


@pytest.mark.parametrize("form", ["stack", "list of boards", "one board"])
def test_each_game_of_a_batch_gets_its_board(form):
    boards = [np.reshape([k] + [0] * 14 + [k + 1], (4, 4)) for k in (1, 5, 15)]
    if form == "one board":
        boards = [boards[1]] * 3
    option = {"stack": np.stack(boards), "list of boards": boards, "one board": boards[0]}[form]
    obs, infos = gym.make_vec(ID, num_envs=3).reset(seed=0, options={"board": option})
    assert np.array_equal(obs, boards)
    assert infos["max_tile"].tolist() == [2 ** int(board.max()) for board in boards]


def test_batch_refuses_too_few_boards():
    with pytest.raises(ValueError, match="board"):
        gym.make_vec(ID, num_envs=3).reset(options={"board": np.ones((2, 4, 4), dtype=int)})


def test_a_board_that_is_set_starts_at_score_zero():
    env = env_on(MERGE_1024)
    assert env.step(Action.LEFT)[4]["score"] == 2048
    obs, info = env.reset(options={"board": MERGE_1024})
    assert np.array_equal(obs, MERGE_1024)
    assert (info["score"], info["legal"], info["is_success"]) == (0, True, False)
    assert env.reset()[1]["max_tile"] in (2, 4), "the option holds for one game"


@pytest.mark.parametrize("prob_four", [-0.1, 1.1, float("nan"), "0.1", None, True])
def test_impossible_prob_four_is_refused(prob_four):
    for make in (gym.make, gym.make_vec):
        with pytest.raises(ValueError, match="prob_four"):
            make(ID, prob_four=prob_four)


@pytest.mark.parametrize("flag", [1, "yes", None])
def test_terminate_on_win_is_a_bool(flag):
    with pytest.raises(ValueError, match="terminate_on_win"):
        Puzzle2048Env(terminate_on_win=flag)


@pytest.mark.parametrize(
    "board", [(18,) + (1,) * 15, (-1,) + (1,) * 15, (1,) * 15, (1.5,) * 16, (0,) * 16, (17, 17) + (1,) * 14], ids=str
)
def test_impossible_positions_are_refused(board):
    env = env_on(MERGE_1024).unwrapped
    before = env.get_state()
    for call in (
        lambda: env.set_state(State(board)),
        lambda: env.reset(options={"board": board}),
        lambda: State.from_json(json.dumps({"board": board, "score": 0, "steps": 0, "rng": 0})),
    ):
        with pytest.raises(ValueError, match="2048"):
            call()
        assert env.get_state() == before


@pytest.mark.parametrize("value", [-1, 2**64, 1.5, "1", None, True])
def test_impossible_score_is_refused(value):
    with pytest.raises(ValueError, match="score"):
        gym.make(ID).unwrapped.set_state(State((1,) * 16, score=value))


def possible(board):
    return 0 < sum(2**k for k in board if k) <= 262_140


@given(st.lists(st.integers(0, 17), min_size=16, max_size=16).filter(possible))
def test_text_round_trip(board):
    state = State(tuple(board))
    assert State.parse(str(state)) == state
    assert exponents([2**k if k else 0 for k in board]) == list(oracle.exponents([2**k if k else 0 for k in board]))


@pytest.mark.parametrize("text", ["", "2 4", "3 " + ". " * 15, "1 " + ". " * 15, "262144 " + ". " * 15, "x " * 16])
def test_text_of_no_board_is_refused(text):
    with pytest.raises(ValueError, match="2048"):
        State.parse(text)


def test_picture_shows_every_tile_and_the_score(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    env = gym.make(ID, render_mode="ansi").unwrapped
    env.reset(seed=0)
    env.set_state(State((0, *range(1, 16)), score=12345))
    text = env.render()
    numbers = re.findall(r"\d+", text)
    assert numbers == ["12345", *(str(2**k) for k in range(1, 16))]
    env.set_state(State((16, 17) + (0,) * 14, score=1))
    assert re.findall(r"\d+", env.render()) == ["1", "65536", "131072"]


def test_words_for_directions():
    assert [action_name(a) for a in range(4)] == ["up", "right", "down", "left"]
    for action in Action:
        assert parse_action(action_name(action)) == parse_action(action.name[0]) == action
    for text in ("", "north", "0"):
        with pytest.raises(ValueError, match="expected up, right, down or left"):
            parse_action(text)
