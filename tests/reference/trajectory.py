"""Run as a program: plays every puzzle, single and batched, and prints one hash per puzzle of all that was returned."""

from __future__ import annotations

import hashlib
import sys

import gymnasium as gym
import numpy as np
from puzzlegym.envs.registry import PUZZLES


def feed(digest, value):
    """Hash the bytes of everything in a result."""
    if isinstance(value, dict):
        for key in sorted(value):
            digest.update(key.encode())
            feed(digest, value[key])
    elif isinstance(value, tuple) or (isinstance(value, np.ndarray) and value.dtype == object):
        for item in value:
            feed(digest, item)
    else:
        array = np.asarray(value if value is not None else "None")
        digest.update(str(array.dtype).encode() + array.tobytes())


def hash_of(env, steps, masks):
    """Hash of ``steps`` random moves; ``masks`` gives a matrix of the legal actions."""
    digest, rng = hashlib.sha256(), np.random.default_rng(123)
    feed(digest, env.reset(seed=2024))
    for _ in range(steps):
        actions = [int(rng.choice(np.flatnonzero(mask))) if mask.any() else 0 for mask in masks()]
        result = env.step(np.array(actions) if hasattr(env, "num_envs") else actions[0])
        feed(digest, result)
        if not hasattr(env, "num_envs") and (result[2] or result[3]):
            feed(digest, env.reset())
    return digest.hexdigest()


if __name__ == "__main__":
    for puzzle_id in PUZZLES:
        single = gym.make(puzzle_id, max_episode_steps=50)
        print(puzzle_id, "single", hash_of(single, 120, lambda env=single: [env.unwrapped.action_masks()]))
        for mode in ("NextStep", "SameStep"):
            venv = gym.make_vec(puzzle_id, num_envs=3, max_episode_steps=40, autoreset_mode=mode)
            print(puzzle_id, mode, hash_of(venv, 50, venv.action_masks))
    sys.exit(0)
