"""`puzzlegym bench` measures what it says it does."""

from __future__ import annotations

import json

import pytest
from puzzlegym.scripts import bench
from puzzlegym.scripts.cli import main


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr(bench, "_LEAST_SECONDS", 0.01)
    monkeypatch.setattr(bench, "_SIZES", (1, 8))


def test_json_has_a_row_for_each_case(capsys):
    assert main(["bench", "FreeCell-v0", "--rounds", "2", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["case"] for row in rows] == ["gymnasium.make", "make_vec, 1 games", "make_vec, 8 games"]
    assert all(0 < row["min"] <= row["steps_per_second"] <= row["max"] for row in rows)


def test_table_names_every_puzzle(capsys):
    assert main(["bench", "--rounds", "1"]) == 0
    out = capsys.readouterr().out
    assert "Puzzle2048-v0" in out
    assert "FreeCell-v0" in out


@pytest.mark.parametrize("arguments", [["Chess-v0"], ["--rounds", "0"]])
def test_bad_input_is_one_line(capsys, arguments):
    assert main(["bench", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1
