"""The example script for RLlib runs as it stands."""

from __future__ import annotations

from pathlib import Path

from reference.example_lines import run_example


def test_learns_and_compares_with_random(tmp_path: Path) -> None:
    trained, random = run_example("rllib_ppo.py", 60_000, tmp_path)
    assert trained > 1.5 * random
