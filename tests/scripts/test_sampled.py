"""Networks that draw their moves and networks that make the most likely ones: evaluate and watch."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from puzzlegym.agents.evaluation import games, play
from puzzlegym.agents.policy import load
from puzzlegym.scripts.cli import main
from reference.untrained import save_untrained

ENV = "Puzzle2048-v0"


def evaluated(capsys: pytest.CaptureFixture[str], *argv: str) -> list[dict]:
    assert main(["evaluate", ENV, "--episodes", "5", "--json", *argv]) == 0
    found = json.loads(capsys.readouterr().out)
    return found if isinstance(found, list) else [found]


@pytest.mark.parametrize("by_card", [True, False])
def test_evaluate_both_ways(by_card: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(save_untrained(tmp_path / "run", by_card))
    (usual,) = evaluated(capsys, "--agent", run)
    (sampled,) = evaluated(capsys, "--agent", run, "--sampled")
    (likely,) = evaluated(capsys, "--agent", run, "--greedy")
    assert [one["sampled"] for one in (usual, sampled, likely)] == [by_card, True, False]
    assert sampled["score"] != likely["score"]
    assert usual["score"] == (sampled if by_card else likely)["score"]


def test_only_networks_are_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(save_untrained(tmp_path / "run", False))
    found = evaluated(capsys, "--agent", "greedy", run, "expectimax", "--sampled", "--depth", "1")
    assert ["sampled" in one for one in found] == [False, True, False]
    assert main(["evaluate", ENV, "--agent", "random", run, "--episodes", "2", "--sampled"]) == 0
    assert "\nSampled moves: run.\n" in capsys.readouterr().out
    assert main(["evaluate", ENV, "--agent", "random", run, "--episodes", "2"]) == 0
    assert "\nMost likely moves: run.\n" in capsys.readouterr().out


@pytest.mark.parametrize("by_card", [True, False])
def test_watch_both_ways(by_card: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The game is the first that evaluate plays."""
    run = str(save_untrained(tmp_path / "run", by_card))
    for option, sample in ((), by_card), (("--sampled",), True), (("--greedy",), False):
        assert main(["watch", ENV, "--agent", run, "--seed", "3", *option]) == 0
        last = capsys.readouterr().out.splitlines()[-1]
        played = play(load(ENV, run, sample=sample), games(ENV, 1, 3))
        assert re.search(rf"after {played.moves[0]:,} moves.*score {int(played.scores[0]):,},", last)
