"""What every registered puzzle promises: spaces, masks, endings, types, fresh arrays, and the two public checkers."""

from __future__ import annotations

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from puzzlegym.envs.registry import PUZZLES, register_all
from reference.playing import arrays_in, choose, end_of_a_game, middle_of_a_game, play
from stable_baselines3.common.env_checker import check_env as sb3_check_env

every_puzzle = pytest.mark.parametrize("puzzle_id", PUZZLES)


@every_puzzle
@pytest.mark.parametrize("render_mode", [None, "ansi"])
def test_gymnasium_checker_is_content(puzzle_id, render_mode):
    check_env(gym.make(puzzle_id, render_mode=render_mode).unwrapped)


@every_puzzle
def test_stable_baselines3_checker_is_content(puzzle_id):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sb3_check_env(gym.make(puzzle_id), warn=True)
    advice = [str(warning.message) for warning in caught]  # two dimensions are the contract; it prefers one or three
    assert all("unconventional shape" in text for text in advice), advice


@every_puzzle
def test_registered_with_native_batch_and_limit(puzzle_id):
    spec, row = gym.spec(puzzle_id), PUZZLES[puzzle_id]
    assert spec.max_episode_steps == row.max_episode_steps
    assert isinstance(gym.make_vec(puzzle_id, num_envs=2), gym.vector.VectorEnv)
    assert gym.make(f"puzzlegym:{puzzle_id}").spec.id == puzzle_id


def test_registering_again_changes_nothing():
    before = dict(gym.registry)
    register_all()
    assert gym.registry == before


@every_puzzle
def test_types_of_reset_and_step(puzzle_id):
    env = gym.make(puzzle_id)
    obs, info = env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(60):
        check_observation_and_info(env, obs, info)
        obs, reward, terminated, truncated, info = env.step(choose(info["action_mask"], rng, illegal=0.3))
        assert type(reward) is float
        assert type(terminated) is type(truncated) is bool
        if terminated or truncated:
            obs, info = env.reset()


def check_observation_and_info(env, obs, info):
    assert env.observation_space.contains(obs)
    mask = info["action_mask"]
    assert (mask.dtype, mask.shape) == (np.int8, (env.action_space.n,))
    assert set(mask.tolist()) <= {0, 1}
    masks = env.unwrapped.action_masks()
    assert masks.dtype == np.bool_
    assert np.array_equal(masks, mask)
    assert type(info["legal"]) is type(info["is_success"]) is bool
    assert "episode" not in info
    assert env.action_space.contains(env.action_space.sample(mask=mask))


@every_puzzle
def test_reset_says_legal(puzzle_id):
    env = middle_of_a_game(puzzle_id)
    env.step(int(np.flatnonzero(~env.unwrapped.action_masks())[0]) if not env.unwrapped.action_masks().all() else 0)
    _, info = env.reset()
    assert info["legal"] is True
    assert info["is_success"] is False


@every_puzzle
@pytest.mark.parametrize("moves", [1, 8, 30])
@pytest.mark.parametrize("seed", [3, 4])
def test_mask_holds_exactly_the_actions_that_change_the_board(puzzle_id, moves, seed):
    env = middle_of_a_game(puzzle_id, seed, moves).unwrapped
    state, mask = env.get_state(), env.action_masks()
    for action in range(env.action_space.n):
        env.set_state(state)
        obs, reward, terminated, _, info = env.step(action)
        assert info["legal"] is bool(mask[action])
        assert np.array_equal(obs, state.array) is not bool(mask[action])
        if not mask[action]:
            assert (reward, terminated) == (0.0, False)
            assert np.array_equal(info["action_mask"], mask)
            assert env.get_state().rng == state.rng


@every_puzzle
def test_game_ends_exactly_when_no_action_is_left(puzzle_id):
    for seed in range(6):
        env = gym.make(puzzle_id)
        env.reset(seed=seed)
        for *_, terminated, _, info in play(env, 600, np.random.default_rng(seed), illegal=0.1):
            assert terminated is (not info["action_mask"].any())


@every_puzzle
def test_truncated_by_the_step_limit_illegal_steps_counted(puzzle_id):
    env = gym.make(puzzle_id, max_episode_steps=12)
    env.reset(seed=1)
    ends = [result[2:4] for result in play(env, 50, np.random.default_rng(1), illegal=0.5)]
    assert ends == [(False, False)] * 11 + [(False, True)]


@every_puzzle
def test_no_array_is_ever_reused(puzzle_id):
    """Results keep their values while the game goes on, and may be scribbled on."""
    env, twin = gym.make(puzzle_id).unwrapped, gym.make(puzzle_id).unwrapped
    results, twins = [env.reset(seed=5)], [twin.reset(seed=5)]
    for _ in range(20):
        action = choose(twins[-1][-1]["action_mask"], np.random.default_rng(len(twins)))
        for array in [*arrays_in(results[-1]), env.action_masks()]:
            array[...] = 77
        results.append(env.step(action))
        twins.append(twin.step(action))
        assert np.array_equal(results[-1][0], twins[-1][0])
        assert np.array_equal(results[-1][-1]["action_mask"], twins[-1][-1]["action_mask"])
    arrays = [array for result in results for array in arrays_in(result)]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])


@every_puzzle
def test_spaces_are_not_shared(puzzle_id):
    """Sampling in one environment must not move another's generator."""
    a, b = gym.make(puzzle_id), gym.make(puzzle_id)
    a.action_space.seed(1)
    alone = [a.action_space.sample() for _ in range(8)]
    a.action_space.seed(1)
    b.action_space.seed(2)
    together = [(a.action_space.sample(), b.action_space.sample())[0] for _ in range(8)]
    assert alone == together


@every_puzzle
def test_finished_game_refuses_to_go_on_and_starts_again(puzzle_id):
    env, last = end_of_a_game(puzzle_id)
    state = env.get_state()
    assert not last[4]["action_mask"].any()
    assert not env.action_masks().any()
    for action in range(4):
        with pytest.raises(gym.error.ResetNeeded, match="reset"):
            env.step(action)
    assert env.get_state() == state
    _, info = env.reset()
    assert info["action_mask"].any()


@every_puzzle
@pytest.mark.parametrize("wrapped", [True, False])
def test_nothing_works_before_reset(puzzle_id, wrapped):
    env = gym.make(puzzle_id, render_mode="ansi")
    env = env if wrapped else env.unwrapped
    for call in (lambda: env.step(0), env.render, env.unwrapped.action_masks, env.unwrapped.get_state):
        with pytest.raises(gym.error.ResetNeeded, match="reset"):
            call()
