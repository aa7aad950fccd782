"""The example scripts run as they stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from reference.example_lines import FOLDER, run_example

# Steps after which the examples for this environment are clearly better than random.
HERE = {"cleanrl_ppo.py": 98_304, "ppo_2048.py": 40_000, "ppo_freecell.py": 40_000, "sb3_ppo.py": 16_384}
# Those that need other libraries are run by tests/ecosystem and tests/on_ray, each in an environment of its own.
ECOSYSTEM = ["minari_clone.py", "tianshou_dqn.py", "torchrl_ppo.py"]
RAY = ["rllib_ppo.py"]
NAMES = sorted([*HERE, *ECOSYSTEM, *RAY])


def test_these_are_all() -> None:
    assert sorted(path.name for path in FOLDER.glob("*.py") if path.name != "__init__.py") == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_under_60_lines(name: str) -> None:
    assert len((FOLDER / name).read_text(encoding="utf-8").splitlines()) < 60


@pytest.mark.parametrize("name", NAMES)
def test_says_how_to_run_it(name: str) -> None:
    assert f"Run it: python scripts/examples/{name} " in (FOLDER / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", HERE)
def test_learns_and_compares_with_random(name: str, tmp_path: Path) -> None:
    trained, random = run_example(name, HERE[name], tmp_path)
    assert trained > 1.1 * random
