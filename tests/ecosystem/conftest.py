"""Settings for the tests with other libraries."""

from __future__ import annotations

import gymnasium as gym
import pytest
from puzzlegym import PUZZLES


@pytest.fixture(autouse=True, scope="session")
def _compiled() -> None:
    """The first use on a machine says on stderr that it compiles; here it has happened."""
    for env_id in PUZZLES:
        gym.make(env_id).reset()
