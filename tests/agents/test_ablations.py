"""The table of what the recipe owes to its parts: measured once, and only what it says is changed."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from puzzlegym.agents import ablations
from puzzlegym.agents.ablations import BASE


@pytest.fixture
def tiny(monkeypatch):
    for name, value in {"STEPS": 100, "SEEDS": (0, 1), "GAMES": 3}.items():
        monkeypatch.setattr(ablations, name, value)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_runs_are_measured_once_and_told(tmp_path, tiny, capsys):
    names = ("base", "reward: points")
    ablations.main(str(tmp_path), names[0])
    ablations.main(str(tmp_path), *names)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "base-0.json",
        "base-1.json",
        "reward-points-0.json",
        "reward-points-1.json",
    ]
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if line.startswith("base ")]) == 2
    assert [line.split(" | ")[0] for line in lines[-2:]] == ["| base", "| reward: points"]


def test_every_variant_is_a_configuration_and_another_one():
    made = [replace(BASE, **changes) for changes in ablations.VARIANTS.values()]
    assert made[0] == BASE
    for i, config in enumerate(made):
        assert config not in made[:i]


def test_unknown_variant(tmp_path):
    with pytest.raises(ValueError, match="unknown variant 'luck': use base, plain one-hot network"):
        ablations.main(str(tmp_path), "luck")
