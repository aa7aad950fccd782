"""A Ray for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from puzzlegym.agents import ray_work


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    """Three workers of a Ray of its own, whatever there are."""
    with ray_work.connected(cpus=3):
        yield
