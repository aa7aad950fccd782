"""The evaluate command: JSON for programs, a table for people."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import Any

import pytest
from puzzlegym.agents.evaluation import Evaluation, Rate
from puzzlegym.scripts import evaluate as command
from puzzlegym.scripts.cli import main
from rich.console import Console

KEYS = ["env_id", "agent", "episodes", "seed", "score", "rates", "moves", "illegal_moves", "moves_per_second"]


def played(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(["evaluate", *argv]) == 0
    out, err = capsys.readouterr()
    assert err == "", "progress belongs on a terminal only"
    return out


def test_json_of_one_agent_is_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["FreeCell-v0", "--agent", "random", "--episodes", "20", "--seed", "3", "--json"]
    data, again = (json.loads(played(capsys, *argv)) for _ in range(2))
    assert list(data) == KEYS
    assert (data["env_id"], data["agent"], data["episodes"], data["seed"]) == ("FreeCell-v0", "random", 20, 3)
    del data["moves_per_second"], again["moves_per_second"]
    assert data == again


def test_json_of_several_agents_is_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(played(capsys, "Puzzle2048-v0", "--agent", "random", "greedy", "--episodes", "5", "--json"))
    assert [one["agent"] for one in data] == ["random", "greedy"]
    assert data[1]["score"]["mean"] > data[0]["score"]["mean"]


def test_nothing_but_json_on_stdout_of_the_process() -> None:
    argv = [sys.executable, "-m", "puzzlegym.scripts.cli", "evaluate", "Puzzle2048-v0", "--agent", "greedy"]
    done = subprocess.run([*argv, "--episodes", "5", "--json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["episodes"] == 5
    assert done.stderr == ""


@pytest.mark.parametrize("env_id", ["Puzzle2048-v0", "FreeCell-v0"])
def test_table_fits_80_columns_and_cuts_nothing(env_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = played(capsys, env_id, "--agent", "random", "greedy", "--episodes", "30")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in out
    assert "\x1b" not in out
    for word in ["agent", "score", "95% CI", "median", "max", "moves/s", "random", "greedy", env_id, "30 whole games"]:
        assert word in out
    assert "Illegal moves: none" in out
    assert ("win" if env_id == "FreeCell-v0" else "512") in lines[0]


def result(agent: str, rates: dict[str, float], illegal: int = 0, **changes: Any) -> Evaluation:
    values: dict[str, Any] = {
        "env_id": "Puzzle2048-v0",
        "agent": agent,
        "episodes": 1000,
        "seed": 0,
        "score_mean": 245_678.25,
        "score_ci95": (241_000.0, 250_500.5),
        "score_median": 240_000.0,
        "score_max": 812_345.0,
        "rates": {name: Rate(value, (max(value - 0.01, 0), min(value + 0.01, 1))) for name, value in rates.items()},
        "moves_mean": 9_876.5,
        "illegal_moves": illegal,
        "moves_per_second": 1_234_567.8,
    }
    return Evaluation(**{**values, **changes})


TILES = [str(2**k) for k in range(9, 17)]


def test_rates_are_trimmed_after_the_next_unreached_tile() -> None:
    weak = result("weak", dict.fromkeys(TILES, 0.0))
    better = result("better", {name: 0.5 if i < 2 else 0.0 for i, name in enumerate(TILES)})
    assert command.shown_rates([weak]) == ["512"]
    assert command.shown_rates([weak, better]) == ["512", "1024", "2048"]
    assert command.shown_rates([result("best", dict.fromkeys(TILES, 0.9))]) == TILES


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_table_of_strong_players_fits_any_width(width: int) -> None:
    stream = io.StringIO()
    best = result("runs/2026-11-30/best/agent.zip", dict.fromkeys(TILES, 0.987))
    command.show([best, result("random", dict.fromkeys(TILES, 0.0))], Console(file=stream, width=width))
    text = stream.getvalue()
    table = text.splitlines()[:4]
    assert "…" not in text
    assert max(map(len, table)) <= width
    assert "245,678" in text
    assert "241,000 - 250,500" in text
    assert table[2].split()[0] == "best"
    if width >= 80:
        assert "65536" in table[0]
    assert ("1,234,568" in text) == (width == 200)


def test_illegal_moves_are_named() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=80)
    command.show([result("good", {"win": 0.5}), result("bad", {"win": 0.5}, illegal=1234)], console)
    assert "Illegal moves: bad 1,234." in stream.getvalue()


def test_start_rank_is_shown() -> None:
    stream = io.StringIO()
    command.show([result("a", {"win": 0.5}, start_rank=3)], Console(file=stream, width=80))
    assert "start_rank 3" in stream.getvalue()


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("random", "random"),
        ("runs/a/agent.zip", "a"),
        ("runs/a/", "a"),
        ("./x.zip", "x.zip"),
        ("agent.zip", "agent.zip"),
    ],
)
def test_agents_are_shown_by_their_last_part(path: str, shown: str) -> None:
    assert command.short(path) == shown


@pytest.mark.parametrize(
    ("share", "shown"), [(0, "0%"), (1, "100%"), (0.018, "1.8%"), (0.5, "50.0%"), (0.9999, ">99.9%"), (1e-5, "<0.1%")]
)
def test_percentages_never_round_to_certainty(share: float, shown: str) -> None:
    assert command.percent(share) == shown
