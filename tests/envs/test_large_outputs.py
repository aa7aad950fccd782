"""Large arrays are written to again, but only those that nobody can see any more."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from puzzlegym.envs.base import batch
from puzzlegym.envs.registry import PUZZLES

every_puzzle = pytest.mark.parametrize("puzzle_id", PUZZLES)


@pytest.fixture
def everything_is_large(monkeypatch):
    monkeypatch.setattr(batch, "_LARGE", 0)


def step(venv):
    return venv.step(venv.action_masks().argmax(axis=1))


@every_puzzle
def test_memory_that_nobody_holds_is_used_again(puzzle_id, everything_is_large):
    venv = gym.make_vec(puzzle_id, num_envs=3)
    venv.reset(seed=0)
    places = [step(venv)[0].ctypes.data for _ in range(8)]
    assert len(set(places)) <= 2


@every_puzzle
def test_small_arrays_are_not_kept(puzzle_id):
    venv = gym.make_vec(puzzle_id, num_envs=3)
    venv.reset(seed=0)
    step(venv)
    assert not venv.unwrapped._batch._shelf


# What a user may keep of a step: an array, a view of one, a view of a view, an object that exports its memory.
KEPT = {
    "observations": lambda result: result[0],
    "rewards": lambda result: result[1],
    "ends": lambda result: result[2],
    "mask": lambda result: result[4]["action_mask"],
    "numbers": lambda result: result[4]["is_success"],
    "view": lambda result: result[0][1:, ::2].reshape(-1)[3:],
    "memory": lambda result: memoryview(result[0]),
}


@every_puzzle
@pytest.mark.parametrize("keep", KEPT.values(), ids=KEPT.keys())
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_what_is_held_stays_as_it_is(puzzle_id, keep, mode, everything_is_large):
    venv = gym.make_vec(puzzle_id, num_envs=3, autoreset_mode=mode)
    venv.reset(seed=0)
    kept = [keep(step(venv)) for _ in range(5)]
    copies = [np.array(one) for one in kept]
    for _ in range(10):
        step(venv)
    for one, copy in zip(kept, copies, strict=True):
        assert np.array_equal(np.asarray(one), copy)


@every_puzzle
def test_the_results_are_those_of_fresh_arrays(puzzle_id, monkeypatch):
    plays = []
    for large in (0, 1 << 40):
        monkeypatch.setattr(batch, "_LARGE", large)
        venv = gym.make_vec(puzzle_id, num_envs=4, max_episode_steps=7)
        venv.reset(seed=3)
        plays.append([step(venv)[0].copy() for _ in range(20)])
    assert np.array_equal(*plays)
