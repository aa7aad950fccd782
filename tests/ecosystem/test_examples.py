"""The example scripts for other libraries run as they stand, and so do these libraries on the wrappers for them."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import pytest
import torch
from puzzlegym.wrappers import MaskInObservation, MaskInObservationVector, OneHotObservationVector
from reference.example_lines import run_example
from torchrl.envs import ActionMask, EnvBase, GymWrapper, TransformedEnv, check_env_specs


@pytest.mark.parametrize(("name", "steps"), [("tianshou_dqn.py", 20_000), ("torchrl_ppo.py", 300_000)])
def test_learns_and_compares_with_random(name: str, steps: int, tmp_path: Path) -> None:
    trained, random = run_example(name, steps, tmp_path)
    assert trained > 1.5 * random


def masked(env: gym.Env | gym.vector.VectorEnv) -> EnvBase:
    """What TorchRL makes of an environment with masks in its observations."""
    return TransformedEnv(GymWrapper(env, categorical_action_encoding=True), ActionMask())


@pytest.mark.parametrize("puzzle_id", ["Puzzle2048-v0", "FreeCell-v0"])
@pytest.mark.parametrize("batched", [False, True])
def test_torchrl_draws_legal_moves(puzzle_id: str, batched: bool) -> None:
    if batched:
        batch = OneHotObservationVector(gym.make_vec(puzzle_id, 3, autoreset_mode="Disabled"))
        env = masked(MaskInObservationVector(batch, preset="torchrl"))
    else:
        env = masked(MaskInObservation(gym.make(puzzle_id), preset="torchrl"))
    env.set_seed(0)
    check_env_specs(env)
    played = env.rollout(700, break_when_any_done=False)
    assert played["action_mask"].gather(-1, played["action"][..., None]).all()
    assert played["next", "done"].any()
    goes_on = ~played["next", "done"][..., :-1, 0]
    assert torch.equal(played["next", "observation"][..., :-1, :][goes_on], played["observation"][..., 1:, :][goes_on])
