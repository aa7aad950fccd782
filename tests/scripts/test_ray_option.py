"""The option ``--ray`` where there is no Ray; what it does is in tests/on_ray."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CALLS = {
    "solve": ["--deals", "1-5"],
    "evaluate": ["Puzzle2048-v0", "--agent", "random", "--episodes", "2"],
    "leaderboard": ["FreeCell-v0", "--episodes", "1"],
    "dataset": ["FreeCell-v0", "--deals", "32001", "--out", "x"],
}
WITHOUT_RAY = "import sys; sys.modules['ray'] = None; from puzzlegym.scripts.cli import main; sys.exit(main())"


def run(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WITHOUT_RAY, *argv], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("command", CALLS)
def test_missing_extra(command: str, tmp_path: Path) -> None:
    done = run(tmp_path, command, *CALLS[command], "--ray")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f'puzzlegym {command}: ray is not installed: pip install "puzzlegym[ray]"\n'
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", sorted(set(CALLS) - {"leaderboard"}))
def test_nothing_of_ray_is_imported_without_the_option(command: str, tmp_path: Path) -> None:
    done = run(tmp_path, command, *CALLS[command])
    assert (done.returncode, done.stderr) == (0, "")
