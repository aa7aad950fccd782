"""A snapshot is the whole game: it goes on exactly as it would have, elsewhere, copied, pickled or through JSON."""

from __future__ import annotations

import copy
import json
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from puzzlegym.envs.registry import PUZZLES
from reference.playing import assert_same, choose_all, end_of_a_game, middle_of_a_game, play

every_puzzle = pytest.mark.parametrize("puzzle_id", PUZZLES)

COPIES = {
    "the same": lambda state: state,
    "pickled": lambda state: pickle.loads(pickle.dumps(state)),
    "deep copy": copy.deepcopy,
    "json": lambda state: type(state).from_json(state.to_json()),
}
TWINS = {"deep copy": copy.deepcopy, "pickled": lambda env: pickle.loads(pickle.dumps(env))}


def continuation(env):
    return play(env, 40, np.random.default_rng(8), illegal=0.1)


@every_puzzle
@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
def test_state_continues_the_game_elsewhere(puzzle_id, copied):
    env, other = middle_of_a_game(puzzle_id).unwrapped, gym.make(puzzle_id).unwrapped
    before = env.get_state()
    state = copied(before)
    assert state == before
    assert hash(state) == hash(before)
    expected = continuation(env)
    assert env.get_state() != before
    assert copied(before) == state, "a snapshot does not change while the game goes on"
    other.set_state(state)  # never reset
    assert other.get_state() == state
    assert_same(continuation(other), expected)
    assert other.get_state() == env.get_state()
    assert_same(other.reset(), env.reset(), "the game after it")


@every_puzzle
def test_state_text_keeps_the_board(puzzle_id):
    state = middle_of_a_game(puzzle_id).unwrapped.get_state()
    kind = type(state)
    assert kind.parse(str(state)).board == state.board
    assert "\n" not in state.to_json()
    array = state.array
    array[...] = 0
    assert state.array.any(), "state.array is fresh"


@every_puzzle
@pytest.mark.parametrize("twin", TWINS.values(), ids=TWINS.keys())
@pytest.mark.parametrize("wrapped", [True, False])
def test_environment_copies_with_its_game(puzzle_id, twin, wrapped):
    env = middle_of_a_game(puzzle_id, max_episode_steps=50)
    env = env if wrapped else env.unwrapped
    other = twin(env)
    state = env.unwrapped.get_state()
    assert other.unwrapped.get_state() == state
    results = continuation(other)
    assert env.unwrapped.get_state() == state, "playing the copy leaves the original alone"
    assert_same(results, continuation(env))
    assert_same(other.reset(), env.reset())


@every_puzzle
def test_fresh_environment_copies(puzzle_id):
    for twin in TWINS.values():
        assert_same(twin(gym.make(puzzle_id)).reset(seed=1), gym.make(puzzle_id).reset(seed=1))


@every_puzzle
def test_end_is_part_of_the_state(puzzle_id):
    env, _ = end_of_a_game(puzzle_id)
    other = gym.make(puzzle_id).unwrapped
    other.set_state(env.get_state())
    assert not other.action_masks().any()
    with pytest.raises(gym.error.ResetNeeded, match="over"):
        other.step(0)
    other.set_state(middle_of_a_game(puzzle_id).unwrapped.get_state())
    other.step(int(np.flatnonzero(other.action_masks())[0]))


@every_puzzle
def test_no_state_is_refused(puzzle_id):
    env = middle_of_a_game(puzzle_id).unwrapped
    state = env.get_state()
    foreign = [middle_of_a_game(other).unwrapped.get_state() for other in PUZZLES if other != puzzle_id]
    for nonsense in (None, 0, "", state.array, state.to_json(), {}, *foreign):
        with pytest.raises(ValueError, match=r"[Ss]tate"):
            env.set_state(nonsense)
        assert env.get_state() == state


@every_puzzle
@pytest.mark.parametrize("text", ["", "null", "7", "[]", "{}", '{"board": 1}', '{"board": []}', '"text"', "{", "[[1]]"])
def test_json_of_no_state_is_refused(puzzle_id, text):
    kind = type(middle_of_a_game(puzzle_id).unwrapped.get_state())
    with pytest.raises(ValueError, match=r".") as error:
        kind.from_json(text)
    assert "\n" not in str(error.value)


@every_puzzle
@pytest.mark.parametrize("key", ["rng", "steps"])
@pytest.mark.parametrize("value", [-1, 2**64, 1.5, "1", None, True])
def test_json_with_impossible_numbers_is_refused(puzzle_id, key, value):
    state = middle_of_a_game(puzzle_id).unwrapped.get_state()
    data = {**json.loads(state.to_json()), key: value}
    with pytest.raises(ValueError, match=key):
        type(state).from_json(json.dumps(data))


@every_puzzle
@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("steps", [20, 23, 24])  # at 24 all games have just reached the limit
def test_rows_continue_a_batch_elsewhere(puzzle_id, mode, steps):
    make = lambda: gym.make_vec(puzzle_id, num_envs=3, max_episode_steps=24, autoreset_mode=mode)  # noqa: E731
    venv, other, rng = make(), make(), np.random.default_rng(1)
    venv.reset(seed=1)
    for _ in range(steps):
        venv.step(choose_all(venv.action_masks(), rng))
    rows = venv.get_state()
    other.set_state(rows.copy())
    assert np.array_equal(other.get_state(), rows)
    if mode == AutoresetMode.DISABLED and steps == 24:
        for one in (venv, other):
            with pytest.raises(gym.error.ResetNeeded):
                one.step(np.zeros(3, dtype=int))
        return
    for _ in range(20 if mode != AutoresetMode.DISABLED else 24 - steps):
        actions = choose_all(venv.action_masks(), rng)
        assert_same(other.step(actions), venv.step(actions))


@every_puzzle
def test_rows_are_copies_and_checked(puzzle_id):
    venv = gym.make_vec(puzzle_id, num_envs=3)
    venv.reset(seed=1)
    rows = venv.get_state()
    venv.get_state()[...] = 0
    assert np.array_equal(venv.get_state(), rows)
    for nonsense in (rows[:2], rows.astype(np.int64), rows[0], None, rows.astype(float), np.full_like(rows, 2**64 - 1)):
        with pytest.raises(ValueError, match=r"."):
            venv.set_state(nonsense)
        assert np.array_equal(venv.get_state(), rows)


@every_puzzle
def test_batch_copies_with_its_games(puzzle_id):
    venv = gym.make_vec(puzzle_id, num_envs=3)
    venv.reset(seed=1)
    for t in range(10):
        venv.step(choose_all(venv.action_masks(), np.random.default_rng(t)))
    for twin in TWINS.values():
        other = twin(venv)
        rows = venv.get_state()
        assert np.array_equal(other.get_state(), rows)
        other.step(choose_all(other.action_masks(), np.random.default_rng(1)))
        assert np.array_equal(venv.get_state(), rows)


def test_a_snapshot_frees_a_batch_from_a_board_that_was_over():
    venv = gym.make_vec("Puzzle2048-v0", num_envs=2)
    venv.reset(seed=0)
    rows = venv.get_state()
    over = np.array([[1, 2, 1, 2], [2, 1, 2, 1]] * 2)
    venv.reset(options={"board": over})
    with pytest.raises(gym.error.ResetNeeded):
        venv.step(np.zeros(2, dtype=int))
    venv.set_state(rows)
    _, _, terminated, _, _ = venv.step(venv.action_masks().argmax(axis=1))
    assert not terminated.any()
