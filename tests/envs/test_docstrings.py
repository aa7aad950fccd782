"""The page of each environment, its docstring, says what the environment really does."""

from __future__ import annotations

import inspect
import re

import gymnasium as gym
import pytest
from puzzlegym.envs.registry import PUZZLES

every_puzzle = pytest.mark.parametrize("puzzle_id", PUZZLES)
SECTIONS = [
    "Description",
    "Action Space",
    "Observation Space",
    "Starting State",
    "Rewards",
    "Episode End",
    "Information",
    "Arguments",
    "Version History",
]


def page(puzzle_id):
    """(environment, sections of its docstring)."""
    env = gym.make(puzzle_id).unwrapped
    parts = re.split(r"^## (.+)$", inspect.getdoc(type(env)), flags=re.MULTILINE)
    return env, dict(zip(parts[1::2], parts[2::2], strict=True))


@every_puzzle
def test_sections_in_order_and_filled(puzzle_id):
    _, sections = page(puzzle_id)
    assert list(sections) == SECTIONS
    assert all(text.strip() for text in sections.values())


@every_puzzle
def test_spaces_are_the_real_ones(puzzle_id):
    env, sections = page(puzzle_id)
    assert f"`{env.action_space}`" in sections["Action Space"]
    assert f"`{env.observation_space}`" in sections["Observation Space"]


@every_puzzle
def test_information_lists_every_key_with_its_type(puzzle_id):
    env, sections = page(puzzle_id)
    rows = dict(re.findall(r"^\| `(\w+)` \| (\w+)", sections["Information"], flags=re.MULTILINE))
    _, info = env.reset(seed=0)
    assert rows == {key: getattr(value, "dtype", type(value).__name__) for key, value in info.items()}


@every_puzzle
def test_arguments_and_their_defaults(puzzle_id):
    env, sections = page(puzzle_id)
    documented = dict(re.findall(r"^\* `(\w+)(?:=([^`]+))?`", sections["Arguments"], flags=re.MULTILINE))
    parameters = list(inspect.signature(type(env).__init__).parameters.values())[1:]
    assert list(documented) == [parameter.name for parameter in parameters]
    for parameter in parameters:
        assert documented[parameter.name] in ("", repr(parameter.default))


@every_puzzle
def test_step_limit_and_version(puzzle_id):
    _, sections = page(puzzle_id)
    spec = gym.spec(puzzle_id)
    assert str(spec.max_episode_steps) in sections["Episode End"]
    assert f"v{spec.version}:" in sections["Version History"]


@every_puzzle
def test_batch_says_how_to_make_it(puzzle_id):
    venv = gym.make_vec(puzzle_id, num_envs=1)
    assert puzzle_id in inspect.getdoc(type(venv))
