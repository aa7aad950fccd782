"""The native batch is, step for step, Gymnasium's SyncVectorEnv over single environments, in every autoreset mode."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from puzzlegym.envs.registry import PUZZLES
from reference.playing import arrays_in, assert_same, choose_all, end_of_a_game

every_puzzle = pytest.mark.parametrize("puzzle_id", PUZZLES)
every_mode = pytest.mark.parametrize("mode", list(AutoresetMode))
GAMES = 6


def both(puzzle_id, mode, limit=None):
    """(native batch, SyncVectorEnv) of the same games."""
    limit = limit or PUZZLES[puzzle_id].max_episode_steps
    one = lambda: gym.make(puzzle_id, max_episode_steps=limit, disable_env_checker=True)  # noqa: E731
    native = gym.make_vec(puzzle_id, num_envs=GAMES, max_episode_steps=limit, autoreset_mode=mode)
    return native, SyncVectorEnv([one] * GAMES, autoreset_mode=mode)


def finish_off(native, sync, ended, mode):
    """DISABLED leaves it to the caller to reset the games that ended."""
    if mode != AutoresetMode.DISABLED or not ended.any():
        return
    results = [venv.reset(options={"reset_mask": ended.copy()}) for venv in (native, sync)]
    assert_same(results[0], results[1], "masked reset")


@every_puzzle
@every_mode
@pytest.mark.parametrize("limit", [None, 7, 110])
def test_native_is_sync(puzzle_id, mode, limit):
    native, sync = both(puzzle_id, mode, limit)
    assert_same(native.reset(seed=14), sync.reset(seed=14), "reset")
    rng, endings = np.random.default_rng(14), {}
    for t in range(40 if limit == 7 else 650):
        actions = choose_all(native.action_masks(), rng, illegal=0.1)
        here, there = native.step(actions), sync.step(actions)
        assert_same(here, there, f"step {t}")
        ended = here[2] | here[3]
        for i in np.flatnonzero(ended):
            endings.setdefault(int(i), t)
        finish_off(native, sync, ended, mode)
    assert len(endings) == GAMES
    assert limit == 7 or len(set(endings.values())) >= 3


@every_puzzle
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_each_game_is_the_single_game_with_its_own_seed(puzzle_id, mode):
    """Game i of a batch seeded s is the single environment seeded s + i, over several games."""
    venv = gym.make_vec(puzzle_id, num_envs=GAMES, autoreset_mode=mode)
    envs = [gym.make(puzzle_id) for _ in range(GAMES)]
    obs, infos = venv.reset(seed=40)
    for i, env in enumerate(envs):
        assert np.array_equal(env.reset(seed=40 + i)[0], obs[i])
    rng, over, endings = np.random.default_rng(40), [False] * GAMES, 0
    for _ in range(550):
        actions = choose_all(infos["action_mask"], rng, illegal=0.1)
        obs, rewards, terminated, truncated, infos = venv.step(actions)
        for i, env in enumerate(envs):
            if over[i] and mode == AutoresetMode.NEXT_STEP:
                shown, reward, ended = env.reset()[0], 0.0, (False, False)
            else:
                shown, reward, *ended, _ = env.step(int(actions[i]))
            over[i] = any(ended)
            endings += over[i]
            assert (reward, *ended) == (rewards[i], terminated[i], truncated[i])
            if over[i] and mode == AutoresetMode.SAME_STEP:
                assert np.array_equal(infos["final_obs"][i], shown)
                shown = env.reset()[0]
            assert np.array_equal(shown, obs[i])
    assert endings >= GAMES


@every_puzzle
def test_seeds_as_a_list_some_of_them_none(puzzle_id):
    native, sync = both(puzzle_id, AutoresetMode.NEXT_STEP)
    assert_same(native.reset(seed=[5, 1, 5, 9, 0, 2]), sync.reset(seed=[5, 1, 5, 9, 0, 2]))
    some = [None, 1, None, 2, 3, None]
    assert_same(native.reset(seed=some), sync.reset(seed=some))
    assert_same(native.reset(), sync.reset(), "goes on without a seed")


@every_puzzle
@every_mode
def test_reset_of_some_games_with_seeds(puzzle_id, mode):
    native, sync = both(puzzle_id, mode, limit=30)
    native.reset(seed=2)
    sync.reset(seed=2)
    rng, mask = np.random.default_rng(2), np.array([True, False, True, False, True, False])
    for _ in range(3):
        for _ in range(9):
            actions = choose_all(native.action_masks(), rng, illegal=0.1)
            here, there = native.step(actions), sync.step(actions)
            assert_same(here, there)
            finish_off(native, sync, here[2] | here[3], mode)
        seeds = [7, 8, None, 9, 1, None]
        results = [venv.reset(seed=seeds, options={"reset_mask": mask.copy()}) for venv in (native, sync)]
        assert_same(results[0], results[1], "masked reset")


@every_puzzle
@pytest.mark.parametrize(
    "mask", [[True] * GAMES, np.ones(3, bool), np.ones(GAMES, np.int8), np.zeros(GAMES, bool), "all"], ids=str
)
def test_wrong_reset_mask_is_refused_by_both(puzzle_id, mask):
    native, sync = both(puzzle_id, AutoresetMode.DISABLED)
    # SyncVectorEnv asserts in gymnasium 1.1 and raises TypeError or ValueError today.
    for venv, errors in ((native, ValueError), (sync, (TypeError, ValueError, AssertionError))):
        venv.reset(seed=0)
        with pytest.raises(errors, match="reset_mask"):
            venv.reset(options={"reset_mask": mask})


@every_puzzle
def test_disabled_refuses_a_step_after_an_end(puzzle_id):
    native, sync = both(puzzle_id, AutoresetMode.DISABLED, limit=5)
    native.reset(seed=0)
    sync.reset(seed=0)
    for _ in range(5):
        native.step(choose_all(native.action_masks(), np.random.default_rng(0)))
    rows = native.get_state()
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        native.step(np.zeros(GAMES, dtype=int))
    assert np.array_equal(native.get_state(), rows)


@every_puzzle
@every_mode
def test_modes_by_name_and_spaces_and_metadata(puzzle_id, mode):
    native, sync = both(puzzle_id, mode)
    by_name = gym.make_vec(puzzle_id, num_envs=GAMES, autoreset_mode=mode.value)
    assert native.metadata["autoreset_mode"] is by_name.metadata["autoreset_mode"] is mode
    for name in ("single_observation_space", "single_action_space", "observation_space", "action_space"):
        assert getattr(native, name) == getattr(sync, name)
    assert native.num_envs == GAMES
    assert native.spec.id == puzzle_id


@every_puzzle
@every_mode
def test_no_array_of_a_batch_is_ever_reused(puzzle_id, mode):
    venv = gym.make_vec(puzzle_id, num_envs=3, max_episode_steps=4, autoreset_mode=mode)
    results = [venv.reset(seed=0)]
    for t in range(12):
        if mode == AutoresetMode.DISABLED and t % 4 == 0:
            results.append(venv.reset())
        for array in (*arrays_in(results[-1]), venv.action_masks(), venv.get_state()):
            if array.dtype != object:
                array[...] = 1
        results.append(venv.step(choose_all(venv.action_masks(), np.random.default_rng(t))))
    arrays = [array for result in results for array in arrays_in(result)]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])


@every_puzzle
def test_masks_of_a_batch(puzzle_id):
    venv = gym.make_vec(puzzle_id, num_envs=3)
    _, infos = venv.reset(seed=0)
    for t in range(30):
        masks = venv.action_masks()
        assert (masks.dtype, masks.shape) == (np.bool_, (3, venv.single_action_space.n))
        assert np.array_equal(masks, infos["action_mask"])
        *_, infos = venv.step(choose_all(masks, np.random.default_rng(t)))


@every_puzzle
@every_mode
def test_a_finished_board_may_be_set_but_not_played(puzzle_id, mode):
    over = end_of_a_game(puzzle_id)[0].get_state().array
    for venv in both(puzzle_id, mode):
        _, infos = venv.reset(seed=0, options={"board": over})
        assert not infos["action_mask"].any()
        with pytest.raises(gym.error.ResetNeeded, match="reset"):
            venv.step(np.zeros(GAMES, dtype=int))


@every_puzzle
def test_options_hold_for_one_game(puzzle_id):
    """A board set by option comes back with neither an automatic nor a plain reset."""
    native, sync = both(puzzle_id, AutoresetMode.SAME_STEP, limit=3)
    board = gym.make(puzzle_id).reset(seed=123)[0]
    for venv in (native, sync):
        assert all(np.array_equal(one, board) for one in venv.reset(seed=1, options={"board": board})[0])
    for t in range(8):
        actions = choose_all(native.action_masks(), np.random.default_rng(t))
        assert_same(native.step(actions), sync.step(actions))
    assert_same(native.reset(), sync.reset())


@every_puzzle
def test_batch_refuses_unknown_attributes(puzzle_id):
    venv = gym.make_vec(puzzle_id, num_envs=2)
    with pytest.raises(ValueError, match="unknown parameter 'colour'"):
        venv.set_attr("colour", "blue")
