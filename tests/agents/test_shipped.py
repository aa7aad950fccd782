"""Agents that come with the package play as their cards say."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
from puzzlegym.agents import logs, saved, shipped
from puzzlegym.agents.evaluation import evaluate
from puzzlegym.agents.policy import load

P2048 = "Puzzle2048-v0"


def test_the_n_tuple_network_is_strong():
    result = evaluate(P2048, load(P2048, "ntuple"), 100)
    assert result.score_mean > 90_000
    assert result.rates["2048"].value > 0.9
    assert result.illegal_moves == 0
    assert result.agent == "ntuple"


def test_looking_ahead_is_better_still():
    deep = evaluate(P2048, load(P2048, "ntuple", depth=2), 20)
    assert deep.score_mean > evaluate(P2048, load(P2048, "ntuple"), 20).score_mean


@pytest.mark.parametrize("path", sorted(shipped.WEIGHTS.iterdir()), ids=lambda path: path.name)
def test_files_are_small_and_hold_arrays_and_a_card(path):
    card = saved.load_card(path)
    assert {"env_id", "algorithm", "config", "seed", "steps", "seconds", "versions"} <= set(card)
    assert path.stat().st_size < 8_000_000
    assert sorted(zipfile.ZipFile(path).namelist()) == ["card.json", "trainer.npz", "weights.npz"]
    assert all(array.dtype == np.float16 for array in saved.load_weights(path).values())
    assert not saved.load_trainer(path)


def test_a_run_is_shipped_in_half_precision(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "WEIGHTS", tmp_path / "weights")
    saved.save(tmp_path / "agent.zip", {"env_id": P2048}, {"values": np.arange(5, dtype=np.float32)}, {"x": np.ones(3)})
    path = shipped.ship(tmp_path, "name")
    assert path.name == "name.zip"
    assert saved.load_card(path)["env_id"] == P2048
    assert saved.load_weights(path)["values"].tolist() == [0, 1, 2, 3, 4]


def test_results_of_a_run_are_kept_small(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "RESULTS", tmp_path / "results")
    saved.save(tmp_path / "agent.zip", {"env_id": P2048, "seed": 5}, {}, {})
    for step in range(1, 1235):
        logs.append(tmp_path, step, step / 2, {"score": float(step)})
    folder = shipped.keep(tmp_path, "name")
    assert json.loads((folder / "card.json").read_text())["seed"] == 5
    steps = logs.read(folder).steps
    assert (steps[0], steps[-1]) == (1, 1234)
    assert 150 < len(steps) < 300


def test_the_ppo_network_is_strong():
    result = evaluate(P2048, load(P2048, "ppo"), 50)
    assert result.score_mean > 45_000
    assert result.rates["2048"].value > 0.8
    assert (result.agent, result.illegal_moves) == ("ppo", 0)
    assert "min, " in result.training


FREECELL = "FreeCell-v0"


@pytest.mark.parametrize(("name", "least"), [("ppo", 0.5), ("learned", 0.6)])
def test_freecell_networks_win_without_search(name, least):
    result = evaluate(FREECELL, load(FREECELL, name), 120)
    assert result.rates["win"].value > least
    assert (result.agent, result.illegal_moves) == (name, 0)
    assert "min, " in result.training


def test_a_beam_wins_nearly_all():
    result = evaluate(FREECELL, load(FREECELL, "learned", width=8), 40)
    assert result.rates["win"].value > 0.85
    assert (result.agent, result.width, result.illegal_moves) == ("learned", 8, 0)


@pytest.mark.parametrize("name", ["ppo", "learned"])
def test_cards_say_nothing_of_the_machine(name):
    card = json.dumps(saved.load_card(shipped.WEIGHTS / f"{name}-freecell.zip"))
    assert "/tmp" not in card
    assert "/home" not in card
    assert (
        saved.load_card(shipped.WEIGHTS / f"{name}-freecell.zip")["config"]["env_arguments"]["deal_range"][0] > 32_000
    )
