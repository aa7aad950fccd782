"""The evaluate command: JSON for programs, a table for people."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from puzzlegym import PUZZLES
from puzzlegym.agents.evaluation import Evaluation, Played, Rate
from puzzlegym.scripts import _comparison, _plotting
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
    assert list(data) == [*KEYS[:6], "losses", *KEYS[6:]]
    assert list(data["losses"]) == ["stuck", "repeated", "step_limit"]
    assert sum(loss["value"] for loss in data["losses"].values()) == pytest.approx(1 - data["rates"]["win"]["value"])
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


def printed(results: list[Evaluation]) -> str:
    stream = io.StringIO()
    command.show(results, Console(file=stream, width=80))
    return stream.getvalue()


def test_losses_are_shown_by_cause() -> None:
    losses = {name: Rate(value, (0, 1)) for name, value in (("stuck", 0.25), ("repeated", 0.125), ("step_limit", 0))}
    never = dict.fromkeys(losses, Rate(0, (0, 0.1)))
    text = printed([result("runs/a", {"win": 0.625}, losses=losses), result("other", {"win": 1}, losses=never)])
    head, *lines = text.splitlines()[-3:]
    assert head.startswith("Lost games (repeated")
    assert lines == [
        "a       stuck 25.0%   repeated 12.5%   step limit    0%",
        "other   stuck    0%   repeated    0%   step limit    0%",
    ]
    assert "Lost" not in printed([result("a", {"512": 0.5})])


def test_whose_moves_were_sampled_is_shown() -> None:
    results = [result(name, {"512": 0.5}, sampled=how) for name, how in (("a", True), ("b", False), ("c", None))]
    assert "\nSampled moves: a. Most likely moves: b.\n" in printed(results)
    assert "\nMost likely moves: b.\n" in printed(results[1:])
    assert "moves:" not in printed(results[2:]).replace("Illegal moves:", "")


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


# The picture


def shown_in(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def compared(agents: int, env_id: str = "Puzzle2048-v0") -> list[Evaluation]:
    """Results of agents, each ten times as good as the one before, with their games."""
    names = ["512", "1024"] if env_id == "Puzzle2048-v0" else ["win"]
    found = []
    for i in range(agents):
        scores = np.array([1.0, 2.0, 2.0, 5.0]) * (10**i)
        moves, illegal = np.ones(4, np.int64), np.zeros(4, np.int64)
        reached, lost = np.zeros((4, len(names)), np.bool_), np.zeros((4, 0), np.bool_)
        games = Played(scores, moves, illegal, reached, lost, 1.0)
        mean, rates = float(scores.mean()), dict.fromkeys(names, 0.1 * (i + 1))
        changes = {"score_mean": mean, "score_ci95": (mean / 2, mean * 2), "played": games, "env_id": env_id}
        found.append(result(f"runs/_agent${i}$", rates, **changes))
    return found


def drawn(results: list[Evaluation]) -> Any:
    names = _plotting.apart([one.agent for one in results])
    return _comparison.draw(results, names, command.shown_rates(results))


def test_share_of_games_with_at_least_a_score() -> None:
    scores = np.array([5.0, 2.0, 1.0, 2.0])
    values, shares = _comparison.profile(scores)
    assert values.tolist() == [1, 2, 5]
    assert shares.tolist() == [1, 0.75, 0.25]
    assert shares.tolist() == [float(np.mean(scores >= value)) for value in values]


@pytest.mark.parametrize("env_id", PUZZLES)
@pytest.mark.parametrize("agents", [1, 2, 6, 10])
def test_numbers_behind_the_picture(agents: int, env_id: str, tmp_path: Path) -> None:
    results = compared(agents, env_id)
    figure = drawn(results)
    left, right = figure.axes
    curves = [line for line in left.get_lines() if line.get_drawstyle() == "steps-pre"]
    assert len(curves) == agents
    for i, line in enumerate(curves):
        np.testing.assert_allclose(line.get_xdata(), [1, *(np.array([1, 2, 5]) * 10**i)])
        np.testing.assert_allclose(line.get_ydata(), [1, 1, 0.75, 0.25])
        mean, _, (arms,) = left.containers[i]
        assert (mean.get_xdata(), mean.get_ydata()) == ([2.5 * 10**i], [0.25])
        np.testing.assert_allclose(arms.get_segments()[0][:, 0], [1.25 * 10**i, 5 * 10**i])
        points, _, (arms,) = right.containers[i]
        np.testing.assert_allclose(points.get_xydata()[:, 1], [rate.value for rate in results[i].rates.values()])
        np.testing.assert_allclose(arms.get_segments()[0][:, 1], results[i].rates[command.shown_rates(results)[0]].ci95)
        assert line.get_color() == points.get_color()
    assert shown_in(figure) == [f"_agent${i}$" for i in range(agents)]
    assert figure.get_suptitle() == f"{env_id}: 1,000 games, seed 0"
    assert left.get_xscale() == ("log" if env_id == "Puzzle2048-v0" else "linear")
    _plotting.save(figure, tmp_path / "x.png")
    with Image.open(tmp_path / "x.png") as picture:
        assert 1000 < picture.width < 2500
        assert 500 < picture.height < 1000


def test_points_of_a_rate_stand_side_by_side() -> None:
    right = drawn(compared(3)).axes[1]
    at = np.array([points.get_xdata() for points, _, _ in right.containers])
    assert np.all(np.diff(at, axis=0) > 0)
    assert np.all(np.abs(at - np.round(at)) < 0.5)


@pytest.mark.parametrize("json_too", [False, True])
def test_a_picture_of_games_played(json_too: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.svg"
    argv = ["evaluate", "FreeCell-v0", "--agent", "random", "greedy", "--episodes", "8", "--plot", str(out)]
    assert main([*argv, *["--json"] * json_too]) == 0
    text, err = capsys.readouterr()
    if json_too:
        assert len(json.loads(text)) == 2
    assert (err if json_too else text.splitlines()[-1] + "\n") == f"Plot in {out}\n"
    assert ElementTree.parse(out).getroot().tag.endswith("svg")
    assert [path.name for path in tmp_path.iterdir()] == ["out.svg"]


@pytest.mark.parametrize(
    ("out", "words"),
    [("x.txt", "png, "), ("x", "png, "), ("no/x.png", "No such file"), ("folder.png", "Is a directory")],
)
def test_a_wrong_picture_is_refused_before_the_games(
    out: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "evaluate", lambda *_, **__: pytest.fail("it played"))
    (tmp_path / "folder.png").mkdir()
    assert main(["evaluate", "FreeCell-v0", "--agent", "random", "--plot", str(tmp_path / out)]) == 2
    text, err = capsys.readouterr()
    assert (text, err.count("\n")) == ("", 1)
    assert str(tmp_path / out) in err
    assert words in err


def test_no_picture_no_matplotlib_needed() -> None:
    code = "import sys; sys.modules['matplotlib'] = None; from puzzlegym.scripts.cli import main; sys.exit(main())"
    argv = [sys.executable, "-c", code, "evaluate", "FreeCell-v0", "--agent", "random", "--episodes", "2"]
    assert subprocess.run(argv, capture_output=True, text=True).returncode == 0
    done = subprocess.run([*argv, "--plot", "x.png"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith('matplotlib is not installed: pip install "puzzlegym[train]"\n')


def test_after_ctrl_c_the_agents_that_have_played_are_shown(capsys, monkeypatch):
    inner = command.evaluate

    def interrupted(env_id, player, *args, **kwargs):
        if player.name == "greedy":
            raise KeyboardInterrupt
        return inner(env_id, player, *args, **kwargs)

    monkeypatch.setattr(command, "evaluate", interrupted)
    assert main(["evaluate", "Puzzle2048-v0", "--agent", "random", "greedy", "--episodes", "5", "--json"]) == 130
    out, err = capsys.readouterr()
    assert [result["agent"] for result in json.loads(out)] == ["random"]
    assert err == "puzzlegym evaluate: stopped\n"
