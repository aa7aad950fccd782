"""MaskInObservation and OneHotObservation: what each library finds in the observation."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from puzzlegym.envs.registry import PUZZLES
from puzzlegym.wrappers import (
    MaskInObservation,
    MaskInObservationVector,
    NoRepeatVector,
    OneHotObservation,
    OneHotObservationVector,
)
from reference.playing import choose, choose_all

every_puzzle = pytest.mark.parametrize("puzzle_id", PUZZLES)
PRESETS = {
    "rllib": ("observations", "action_mask", np.float32, True),
    "tianshou": ("obs", "mask", np.bool_, False),
    "torchrl": ("observation", "action_mask", np.bool_, True),
}
every_preset = pytest.mark.parametrize("preset", PRESETS)


def expected(preset, obs, mask):
    """The dict for one observation (or, with one more dimension, for a batch)."""
    name, mask_name, mask_dtype, flat = PRESETS[preset]
    squares = 2 if obs.ndim == 2 else 3
    if flat:
        obs = obs.reshape(*obs.shape[: squares - 2], -1).astype(np.float32)
    return {name: obs, mask_name: mask.astype(mask_dtype)}


def assert_dict(shown, preset, obs, mask):
    wanted = expected(preset, obs, mask)
    assert sorted(shown) == sorted(wanted)
    for key, value in wanted.items():
        assert (shown[key].dtype, shown[key].shape) == (value.dtype, value.shape)
        assert np.array_equal(shown[key], value)


@every_puzzle
@every_preset
def test_dict_of_observation_and_mask(puzzle_id, preset):
    plain, env = gym.make(puzzle_id), MaskInObservation(gym.make(puzzle_id), preset)
    obs, info = plain.reset(seed=0)
    shown, told = env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(30):
        assert_dict(shown, preset, obs, info["action_mask"])
        assert np.array_equal(told["action_mask"], info["action_mask"])
        action = choose(info["action_mask"], rng, illegal=0.1)
        obs, *_, info = plain.step(action)
        shown, *_, told = env.step(action)
        if not info["action_mask"].any():
            break


@every_preset
def test_space_of_the_dict(preset):
    env = MaskInObservation(gym.make("FreeCell-v0"), preset)
    name, mask_name, mask_dtype, flat = PRESETS[preset]
    inner = env.observation_space[name]
    assert inner.shape == ((160,) if flat else (20, 8))
    assert (inner.low == 0).all()
    assert (inner.high == 52).all()
    assert env.observation_space[mask_name] == spaces.Box(0, 1, (520,), mask_dtype)


@every_puzzle
@every_preset
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_batch_of_dicts_with_final_observations(puzzle_id, preset, mode):
    make = lambda: gym.make_vec(puzzle_id, 4, autoreset_mode=mode, max_episode_steps=9)  # noqa: E731
    plain, venv = make(), MaskInObservationVector(make(), preset)
    obs, infos = plain.reset(seed=1)
    shown, _ = venv.reset(seed=1)
    rng, finals = np.random.default_rng(1), 0
    for _ in range(30):
        assert_dict(shown, preset, obs, plain.action_masks())
        actions = choose_all(plain.action_masks(), rng)
        obs, _, terminated, truncated, infos = plain.step(actions)
        shown, *_, told = venv.step(actions)
        for i in np.flatnonzero(infos.get("_final_obs", [])):
            assert_dict(told["final_obs"][i], preset, infos["final_obs"][i], infos["final_info"]["action_mask"][i])
            finals += 1
        if mode == AutoresetMode.DISABLED and (terminated | truncated).any():
            reset = {"reset_mask": terminated | truncated}
            obs, _ = plain.reset(options={**reset})
            shown, _ = venv.reset(options={**reset})
    assert finals >= 4 if mode == AutoresetMode.SAME_STEP else finals == 0


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_batch_says_its_autoreset_mode_where_torchrl_looks(mode):
    batch = MaskInObservationVector(gym.make_vec("Puzzle2048-v0", 2, autoreset_mode=mode), preset="torchrl")
    assert batch.autoreset_mode is mode


def test_mask_is_the_filtered_one_over_no_repeat():
    venv = MaskInObservationVector(NoRepeatVector(gym.make_vec("FreeCell-v0", 2, deal=9)), "tianshou")
    venv.reset(seed=0)
    shown, *_ = venv.step([298, 98])
    assert np.array_equal(shown["mask"], venv.action_masks())
    assert venv.unwrapped.action_masks()[0, 297]
    assert not shown["mask"][0, 297]


def test_what_rllib_does_with_the_mask():
    """Its action-masking module adds log(mask), clamped, to the logits."""
    env = MaskInObservation(gym.make("Puzzle2048-v0"))
    obs, info = env.reset(seed=0, options={"board": [[1, 2, 0, 0]] + [[0] * 4] * 3})
    with np.errstate(divide="ignore"):
        logits = np.maximum(np.log(obs["action_mask"]), np.finfo(np.float32).min)
    assert np.array_equal(logits == 0, info["action_mask"] == 1)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: MaskInObservation(gym.make("Puzzle2048-v0"), "keras"), ValueError, "rllib, tianshou, torchrl"),
        (lambda: MaskInObservation(MaskInObservation(gym.make("Puzzle2048-v0"))), TypeError, "Box"),
        (lambda: MaskInObservation(gym.make("Pendulum-v1")), TypeError, "Discrete"),
        (lambda: OneHotObservation(gym.make("CartPole-v1")), TypeError, "whole numbers"),
        (lambda: OneHotObservation(gym.make("FrozenLake-v1")), TypeError, "Box"),
        (lambda: MaskInObservation(gym.make("CartPole-v1")).reset(), KeyError, "action_mask"),
    ],
)
def test_what_does_not_fit_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@every_puzzle
@pytest.mark.parametrize("dtype", ["uint8", np.float32])
def test_one_hot_is_one_at_the_value_of_each_square(puzzle_id, dtype):
    plain, env = gym.make(puzzle_id), OneHotObservation(gym.make(puzzle_id), dtype)
    assert env.observation_space.shape == {"Puzzle2048-v0": (4, 4, 18), "FreeCell-v0": (20, 8, 53)}[puzzle_id]
    assert env.observation_space.dtype == np.dtype(dtype)
    obs, info = plain.reset(seed=0)
    shown, _ = env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert (shown.dtype, shown.shape) == (np.dtype(dtype), env.observation_space.shape)
        assert np.array_equal(shown.argmax(axis=-1), obs)
        assert (shown.sum(axis=-1) == 1).all()
        action = choose(info["action_mask"], rng)
        obs, _, ended, _, info = plain.step(action)
        shown, *_ = env.step(action)
        if ended:
            break


def test_one_hot_of_the_largest_tile_and_of_a_batch():
    venv = OneHotObservationVector(gym.make_vec("Puzzle2048-v0", 2), "float32")
    board = np.arange(2, 18).reshape(4, 4)
    obs, _ = venv.reset(options={"board": board})
    assert obs.shape == (2, 4, 4, 18)
    assert np.array_equal(obs.argmax(axis=-1), [board, board])


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_one_hot_of_other_environments_without_masks(mode):
    """Only Box observations of whole numbers are needed."""

    class Dice(gym.Env):
        observation_space, action_space = spaces.Box(0, 6, (2,), np.int64), spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return self.np_random.integers(7, size=2), {}

        def step(self, action):
            return self.np_random.integers(7, size=2), 0.0, bool(action), False, {}

    venv = OneHotObservationVector(gym.vector.SyncVectorEnv([Dice] * 3, autoreset_mode=mode))
    assert venv.reset(seed=0)[0].shape == (3, 2, 7)
    obs, _, ended, _, infos = venv.step(np.array([0, 1, 1]))
    assert obs.shape == (3, 2, 7)
    assert ended.tolist() == [False, True, True]
    if mode == AutoresetMode.SAME_STEP:
        assert infos["final_obs"][0] is None
        assert infos["final_obs"][2].shape == (2, 7)
