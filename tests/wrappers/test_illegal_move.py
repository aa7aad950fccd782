"""IllegalMove: the price and the end of an illegal move, single and in each autoreset mode."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from puzzlegym.envs.registry import PUZZLES
from puzzlegym.wrappers import IllegalMove, IllegalMoveVector
from reference.playing import choose

every_puzzle = pytest.mark.parametrize("puzzle_id", PUZZLES)
every_mode = pytest.mark.parametrize("mode", list(AutoresetMode))
TOP_LEFT = [[1, 2, 0, 0]] + [[0] * 4] * 3  # up and left are illegal
UP, RIGHT = 0, 1


@every_puzzle
@pytest.mark.parametrize("terminate", [False, True])
def test_only_illegal_moves_pay(puzzle_id, terminate):
    plain, env = gym.make(puzzle_id), IllegalMove(gym.make(puzzle_id), penalty=-2.5, terminate=terminate)
    plain.reset(seed=0)
    env.reset(seed=0)
    rng, illegal = np.random.default_rng(0), 0
    for _ in range(200):
        action = choose(plain.unwrapped.action_masks(), rng, illegal=0.5)
        obs, reward, ended, cut, info = plain.step(action)
        shown, paid, over, late, told = env.step(action)
        assert np.array_equal(shown, obs)
        assert told["legal"] is info["legal"]
        assert paid == reward - 2.5 * (not info["legal"])
        assert over is (ended or (terminate and not info["legal"]))
        assert late is cut
        illegal += not info["legal"]
        if over:
            seed = int(rng.integers(1000))
            plain.reset(seed=seed)
            env.reset(seed=seed)
    assert illegal > 5


def batch(mode, **arguments):
    limit = arguments.pop("max_episode_steps", None)
    venv = gym.make_vec("Puzzle2048-v0", 3, autoreset_mode=mode, max_episode_steps=limit)
    venv = IllegalMoveVector(venv, **arguments)
    venv.reset(seed=0, options={"board": TOP_LEFT})
    return venv


@every_mode
def test_batch_pays_without_an_end(mode):
    venv = batch(mode)
    obs, rewards, terminated, truncated, infos = venv.step(np.array([UP, RIGHT, UP]))
    assert rewards.tolist() == [-1.0, 0.0, -1.0]
    assert infos["legal"].tolist() == [False, True, False]
    assert not terminated.any()
    assert not truncated.any()
    assert np.array_equal(obs[0], TOP_LEFT)


def test_end_in_the_same_step_shows_the_next_game():
    venv = batch("SameStep", terminate=True)
    obs, rewards, terminated, _, infos = venv.step(np.array([UP, RIGHT, UP]))
    assert terminated.tolist() == infos["_final_obs"].tolist() == infos["_final_info"].tolist() == [True, False, True]
    assert np.array_equal(infos["final_obs"][0], TOP_LEFT)
    assert infos["final_obs"][1] is None
    assert infos["final_info"]["legal"].tolist() == [False, False, False]
    assert infos["final_info"]["_legal"].tolist() == [True, False, True]
    assert infos["legal"].all()
    assert [np.count_nonzero(board) for board in obs] == [2, 3, 2]
    assert np.array_equal(infos["action_mask"], venv.action_masks())
    assert rewards.tolist() == [-1.0, 0.0, -1.0]


def test_end_at_the_next_step_ignores_the_action():
    venv = batch("NextStep", terminate=True)
    obs, _, terminated, *_ = venv.step(np.array([UP, RIGHT, UP]))
    assert terminated.tolist() == [True, False, True]
    assert np.array_equal(obs[2], TOP_LEFT)
    obs, rewards, terminated, _, infos = venv.step(np.array([UP, RIGHT, RIGHT]))
    assert rewards[[0, 2]].tolist() == [0.0, 0.0]
    assert not terminated[[0, 2]].any()
    assert infos["legal"][[0, 2]].all()
    assert np.count_nonzero(obs[0]) == 2


def test_end_without_autoreset_waits_for_the_reset():
    venv = batch("Disabled", terminate=True)
    assert venv.step(np.array([UP, RIGHT, UP]))[2].tolist() == [True, False, True]
    with pytest.raises(gym.error.ResetNeeded):
        venv.step(np.array([RIGHT] * 3))
    venv.reset(options={"reset_mask": np.array([True, False, True])})
    assert not venv.step(venv.action_masks().argmax(axis=1))[2].any()


@every_mode
def test_illegal_move_at_the_step_limit_pays_and_ends_once(mode):
    venv = batch(mode, terminate=True, penalty=-3.0, max_episode_steps=1)
    _, rewards, terminated, truncated, infos = venv.step(np.array([UP, RIGHT, UP]))
    assert rewards.tolist() == [-3.0, 0.0, -3.0]
    assert terminated.tolist() == [True, False, True]
    assert truncated.all()
    if mode == AutoresetMode.SAME_STEP:
        assert infos["_final_obs"].all()
        assert infos["final_info"]["legal"].tolist() == [False, True, False]


def test_ending_needs_a_batch_of_this_package():
    venv = gym.make_vec("Puzzle2048-v0", 2, vectorization_mode="sync")
    venv = IllegalMoveVector(venv, terminate=True)
    venv.reset(seed=0, options={"board": TOP_LEFT})
    with pytest.raises(TypeError, match="PuzzleVectorEnv"):
        venv.step(np.array([UP, UP]))
