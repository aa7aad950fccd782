"""The same seed gives the same game: within a process, across processes, compiled or not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from puzzlegym.envs.registry import PUZZLES
from reference import trajectory
from reference.playing import assert_same, play

every_puzzle = pytest.mark.parametrize("puzzle_id", PUZZLES)


def trajectories(disable_jit, **more):
    """The hashes that a fresh process prints."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": disable_jit, **more}
    script = str(Path(trajectory.__file__))
    command = [sys.executable, "-W", "error", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_processes_agree_with_and_without_jit():
    compiled = trajectories("0", PYTHONHASHSEED="1")
    assert compiled.count("\n") == 3 * len(PUZZLES)
    assert len(set(compiled.split())) == 3 + len(PUZZLES) + 3 * len(PUZZLES), "two trajectories are the same"
    assert trajectories("0", PYTHONHASHSEED="2") == compiled
    assert trajectories("1") == compiled


@every_puzzle
def test_a_seed_repeats_the_game_on_fresh_and_used_environments(puzzle_id):
    used, fresh = gym.make(puzzle_id), gym.make(puzzle_id)
    used.reset(seed=99)
    play(used, 40, np.random.default_rng(0))
    assert_same(used.reset(seed=7), fresh.reset(seed=7))
    assert_same(play(used, 60, np.random.default_rng(7)), play(fresh, 60, np.random.default_rng(7)))
    assert_same(used.reset(), fresh.reset(), "the next game is seeded, too")


@every_puzzle
def test_seeds_and_games_differ(puzzle_id):
    env = gym.make(puzzle_id).unwrapped
    seeds = [0, 1, 2, 2**31, 2**32, 2**63, 2**64, 2**64 + 1, 2**90]
    assert len({first_state(env, seed) for seed in seeds}) == len(seeds)
    assert len({first_state(env) for _ in range(20)}) == 20
    assert len({first_state(gym.make(puzzle_id).unwrapped) for _ in range(3)}) == 3


def first_state(env, seed=None):
    env.reset(seed=seed)
    return env.get_state()


@every_puzzle
def test_a_seed_also_seeds_the_generator_of_gymnasium(puzzle_id):
    env, venv = gym.make(puzzle_id), gym.make_vec(puzzle_id, num_envs=2)
    for one in (env, venv):
        one.reset(seed=5)
        first = one.unwrapped.np_random.random()
        one.reset(seed=5)
        assert one.unwrapped.np_random.random() == first


@every_puzzle
def test_games_of_a_batch_differ(puzzle_id):
    for seed in (None, 3):
        venv = gym.make_vec(puzzle_id, num_envs=64)
        obs, _ = venv.reset(seed=seed)
        assert len({one.tobytes() for one in obs}) >= 48
        assert len({row.tobytes() for row in venv.get_state()}) == 64
