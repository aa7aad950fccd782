"""Playing any registered puzzle with random actions, and comparing what two environments say."""

from __future__ import annotations

import gymnasium as gym
import numpy as np


def choose(mask, rng, illegal=0.0):
    """A random legal action; with probability ``illegal`` (or where nothing is legal) any action."""
    legal = np.flatnonzero(mask)
    if len(legal) == 0 or rng.random() < illegal:
        return int(rng.integers(len(mask)))
    return int(rng.choice(legal))


def choose_all(masks, rng, illegal=0.0):
    """``choose`` for each row."""
    return np.array([choose(mask, rng, illegal) for mask in masks])


def play(env, steps, rng, illegal=0.0):
    """Everything that up to ``steps`` random moves of a started game return, until the game ends."""
    results = []
    mask = env.unwrapped.action_masks()
    for _ in range(steps):
        results.append(env.step(choose(mask, rng, illegal)))
        mask = results[-1][4]["action_mask"]
        if results[-1][2] or results[-1][3]:
            break
    return results


def middle_of_a_game(puzzle_id, seed=3, moves=25, **arguments):
    """An environment after some legal moves of a random game that lasts at least as long again."""
    for start in range(seed, seed + 500):
        env = gym.make(puzzle_id, **arguments)
        env.reset(seed=start)
        if len(play(env, 2 * moves, np.random.default_rng(start))) == 2 * moves:
            env.reset(seed=start)
            play(env, moves, np.random.default_rng(start))
            return env
    raise AssertionError(f"no random game lasts {2 * moves} moves")


def end_of_a_game(puzzle_id):
    """An environment without a step limit whose game has just terminated, with what its last step returned."""
    for seed in range(50):
        env = gym.make(puzzle_id).unwrapped
        env.reset(seed=seed)
        last = play(env, 2000, np.random.default_rng(seed))[-1]
        if last[2]:
            return env, last
    raise AssertionError("no random game came to an end")


def assert_same(left, right, where="result"):
    """Equal in value, type, dtype and shape, down to the last array of nested tuples and dicts."""
    assert type(left) is type(right), f"{where}: {type(left)} and {type(right)}"
    if isinstance(left, dict):
        assert sorted(left) == sorted(right), where
        for key in left:
            assert_same(left[key], right[key], f"{where}[{key!r}]")
    elif isinstance(left, (tuple, list)):
        assert len(left) == len(right), where
        for i, (a, b) in enumerate(zip(left, right, strict=True)):
            assert_same(a, b, f"{where}[{i}]")
    elif isinstance(left, np.ndarray) and left.dtype == object:
        assert_same(list(left), list(right), where)
    elif isinstance(left, np.ndarray):
        assert (left.dtype, left.shape) == (right.dtype, right.shape), where
        assert np.array_equal(left, right), f"{where}: {left} and {right}"
    else:
        assert left == right, f"{where}: {left} and {right}"


def arrays_in(value):
    """Every array inside nested tuples, dicts and object arrays."""
    if isinstance(value, np.ndarray):
        yield value
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)) or (isinstance(value, np.ndarray) and value.dtype == object):
        for item in value:
            yield from arrays_in(item)
