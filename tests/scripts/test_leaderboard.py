"""The leaderboard: every named agent, best first."""

from __future__ import annotations

import json
import sys

import pytest
from puzzlegym.agents.policy import named_agents
from puzzlegym.scripts import evaluate as evaluating
from puzzlegym.scripts.cli import main


@pytest.fixture
def quick(monkeypatch):
    """Games of a few moves: the order of the agents does not matter here."""
    inner = evaluating.evaluate

    def evaluate(env_id, player, *args, **kwargs):
        player.games = 1  # roll-outs, of those that make some
        player.depth = min(getattr(player, "depth", 1), 1)
        return inner(env_id, player, *args, **kwargs)

    monkeypatch.setattr(evaluating, "evaluate", evaluate)


@pytest.mark.parametrize("env_id", ["Puzzle2048-v0", "FreeCell-v0"])
def test_all_named_agents_best_first(capsys, quick, env_id):
    assert main(["leaderboard", env_id, "--episodes", "3", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert {result["agent"] for result in results} == set(named_agents(env_id))
    means = [result["score"]["mean"] for result in results]
    assert means == sorted(means, reverse=True)
    assert {result["illegal_moves"] for result in results} == {0}


def test_as_a_table(capsys, quick):
    assert main(["leaderboard", "FreeCell-v0", "--episodes", "3"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in named_agents("FreeCell-v0"))
    assert out.split("\n")[0].split()[-2:] == ["moves/s", "training"]


def test_how_long_agents_were_trained(capsys, quick, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["leaderboard", "Puzzle2048-v0", "--episodes", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    trained = {line.split()[0]: line for line in lines if " min" in line}
    assert set(trained) == {"ppo", "ntuple"}
    assert trained["ntuple"].rstrip().endswith("25 min")
    assert all(len(line) <= 80 for line in lines)


def test_agents_that_need_more_are_left_out(capsys, quick, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for module in [name for name in sys.modules if name.startswith("puzzlegym.agents.network")]:
        monkeypatch.delitem(sys.modules, module)
    assert main(["leaderboard", "Puzzle2048-v0", "--episodes", "2", "--json"]) == 0
    out, err = capsys.readouterr()
    assert "ppo left out: torch is not installed\n" in err
    assert "ppo" not in {result["agent"] for result in json.loads(out)}


@pytest.mark.parametrize("argv", [["Chess-v0"], ["FreeCell-v0", "--episodes", "0"]])
def test_wrong_calls(capsys, argv):
    assert main(["leaderboard", *argv]) == 2
    assert capsys.readouterr().err.count("\n") == 1
