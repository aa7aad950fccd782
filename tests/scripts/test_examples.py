"""The example scripts run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from puzzlegym.scripts import examples

FOLDER = Path(examples.__file__).parent
NAMES = ["ppo_2048.py", "ppo_freecell.py"]


def test_these_are_all() -> None:
    assert sorted(path.name for path in FOLDER.glob("*.py") if path.name != "__init__.py") == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_under_60_lines(name: str) -> None:
    assert len((FOLDER / name).read_text(encoding="utf-8").splitlines()) < 60


@pytest.mark.parametrize(("name", "result"), [("ppo_2048.py", r"mean score [\d,]+"), ("ppo_freecell.py", r"\d+% won")])
def test_runs_by_its_path_and_compares_with_random(name: str, result: str, tmp_path: Path) -> None:
    call = [sys.executable, str(FOLDER / name), "2000"]
    done = subprocess.run(call, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    title, random, trained = done.stdout.splitlines()
    assert "2,000 steps" in title
    assert re.fullmatch("random:  " + result, random)
    assert re.fullmatch("trained: " + result, trained)
    assert list(tmp_path.iterdir()) == [], "an example leaves nothing behind"
