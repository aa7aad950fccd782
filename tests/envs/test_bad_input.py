"""Every puzzle refuses nonsense with one clear line and stays as it was."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from puzzlegym.envs.registry import PUZZLES
from reference.playing import assert_same, middle_of_a_game

every_puzzle = pytest.mark.parametrize("puzzle_id", PUZZLES)

NO_ACTIONS = {
    "float": 1.0,
    "NaN": float("nan"),
    "numpy float": np.float64(1),
    "negative": -1,
    "too large": 10_000,
    "beyond 64 bits": 2**70,
    "beyond 64 bits, negative": -(2**70),
    "numpy too large": np.int64(10_000),
    "None": None,
    "text": "1",
    "bool": True,
    "list": [1],
    "array of one": np.array([1]),
    "array of two": np.array([1, 2]),
    "complex": 1j,
}
NO_ACTION_ARRAYS = {
    "floats": [1.0, 1.0, 1.0],
    "NaN": [1.0, float("nan"), 1.0],
    "one negative": [0, 0, -1],
    "one too large": [0, 10_000, 0],
    "beyond 64 bits": [0, 2**70, 0],
    "unsigned 64 bits": np.array([0, 2**64 - 1, 0], dtype=np.uint64),
    "too few": [0, 0],
    "too many": [0, 0, 0, 0],
    "one number": 0,
    "None": None,
    "text": ["0", "1", "2"],
    "bools": [True, False, True],
    "matrix": [[0], [0], [0]],
    "ragged": [[0, 1], [0], [1]],
    "with None": [0, None, 0],
}


def one_line(error):
    return str(error.value) and "\n" not in str(error.value)


@every_puzzle
@pytest.mark.parametrize("action", NO_ACTIONS.values(), ids=NO_ACTIONS.keys())
def test_wrong_action_is_refused(puzzle_id, action):
    env = middle_of_a_game(puzzle_id).unwrapped
    state = env.get_state()
    with pytest.raises(ValueError, match=r"action .*Discrete\(\d+\)") as error:
        env.step(action)
    assert one_line(error)
    assert env.get_state() == state


@every_puzzle
def test_every_kind_of_whole_number_is_an_action(puzzle_id):
    env = middle_of_a_game(puzzle_id).unwrapped
    state, action = env.get_state(), int(np.flatnonzero(env.action_masks())[-1])
    results = []
    for kind in (int, np.int64, np.int32, np.uint16, np.array):
        env.set_state(state)
        results.append(env.step(kind(action)))
    for result in results[1:]:
        assert_same(result, results[0])


@every_puzzle
@pytest.mark.parametrize("actions", NO_ACTION_ARRAYS.values(), ids=NO_ACTION_ARRAYS.keys())
def test_wrong_actions_of_a_batch_are_refused(puzzle_id, actions):
    venv = gym.make_vec(puzzle_id, num_envs=3)
    venv.reset(seed=0)
    rows = venv.unwrapped.get_state()
    with pytest.raises(ValueError, match=r"action.*Discrete\(\d+\)") as error:
        venv.step(actions)
    assert one_line(error)
    assert np.array_equal(venv.unwrapped.get_state(), rows)


@every_puzzle
def test_unknown_arguments_and_render_modes_are_refused(puzzle_id):
    for kind in (type(gym.make(puzzle_id).unwrapped), type(gym.make_vec(puzzle_id))):
        with pytest.raises(ValueError, match="render_mode"):
            kind(render_mode="hologram")
        with pytest.raises((TypeError, ValueError), match="colour"):
            kind(colour="blue")


@every_puzzle
@pytest.mark.parametrize("make", [gym.make, gym.make_vec])
@pytest.mark.parametrize("options", [{"bord": 1}, {"board": "nonsense"}, {"board": np.full((3, 3), 1)}, {"board": 7}])
def test_wrong_reset_options_are_refused_and_the_game_goes_on(puzzle_id, make, options):
    env = make(puzzle_id)
    env.reset(seed=0)
    before = env.unwrapped.get_state()
    with pytest.raises(ValueError, match=r"board|position") as error:
        env.reset(seed=1, options=options)
    assert one_line(error)
    after = env.unwrapped.get_state()
    assert np.array_equal(after, before) if isinstance(before, np.ndarray) else after == before


@every_puzzle
@pytest.mark.parametrize("seed", [-1, 1.5, "7"])
def test_wrong_seed_is_refused(puzzle_id, seed):
    env, venv = gym.make(puzzle_id).unwrapped, gym.make_vec(puzzle_id, num_envs=2)
    env.reset(seed=0)
    venv.reset(seed=0)
    state, rows = env.get_state(), venv.get_state()
    for call in (lambda: env.reset(seed=seed), lambda: venv.reset(seed=seed), lambda: venv.reset(seed=[0, seed])):
        with pytest.raises((ValueError, TypeError, gym.error.Error)):
            call()
    assert env.get_state() == state
    assert np.array_equal(venv.get_state(), rows)


@every_puzzle
def test_wrong_batches_are_refused(puzzle_id):
    with pytest.raises(ValueError, match="num_envs"):
        gym.make_vec(puzzle_id, num_envs=0)
    with pytest.raises(ValueError, match="AutoresetMode"):
        gym.make_vec(puzzle_id, num_envs=2, autoreset_mode="Sometimes")
    venv = gym.make_vec(puzzle_id, num_envs=2)
    with pytest.raises(ValueError, match="seed"):
        venv.reset(seed=[1, 2, 3])
    drawn = gym.make_vec(puzzle_id, num_envs=2, render_mode="ansi")
    for call in (lambda: venv.step([0, 0]), venv.unwrapped.action_masks, venv.unwrapped.get_state, drawn.render):
        with pytest.raises(gym.error.ResetNeeded, match="reset"):
            call()
