"""The leaderboard: every named agent, best first."""

from __future__ import annotations

import json
import subprocess
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


WITHOUT_TORCH = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, Missing())
from puzzlegym.agents import policy
from puzzlegym.scripts.cli import main

for agents in policy.AGENTS.values():  # two are enough
    for name in set(agents) - {"greedy", "ppo"}:
        del agents[name]
sys.exit(main(["leaderboard", sys.argv[1], "--episodes", "2", "--json"]))
"""


@pytest.mark.parametrize("env_id", ["Puzzle2048-v0", "FreeCell-v0"])
def test_agents_that_need_more_are_left_out(env_id):
    """In an interpreter without torch, as an installation without the extra ``train`` has it."""
    call = [sys.executable, "-c", WITHOUT_TORCH, env_id]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "ppo left out: torch is not installed\n" in done.stderr
    assert {result["agent"] for result in json.loads(done.stdout)} == {"greedy", "random"}


@pytest.mark.parametrize("argv", [["Chess-v0"], ["FreeCell-v0", "--episodes", "0"]])
def test_wrong_calls(capsys, argv):
    assert main(["leaderboard", *argv]) == 2
    assert capsys.readouterr().err.count("\n") == 1
