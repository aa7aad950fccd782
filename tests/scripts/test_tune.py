"""The tune command: a search that reports, is stopped and goes on, and whose result can be trained."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from puzzlegym.agents import saved, tuning
from puzzlegym.agents.configs import PPOConfig, ppo_config
from puzzlegym.agents.runs import Budget
from puzzlegym.agents.tuning import Outcome, Report, Tuning
from puzzlegym.scripts import tune
from puzzlegym.scripts.cli import main

ID = "Puzzle2048-v0"
CALL = [sys.executable, "-m", "puzzlegym.scripts.cli", "tune"]


def objective(config: PPOConfig, budget: Budget, seed: int, games: int, report: Report) -> Outcome | None:
    """In place of training, which takes long: the higher the learning rate, the better."""
    score = 1e6 * config.learning_rate
    if any(report(percent / 100, score) for percent in range(1, 101)):
        return None
    return Outcome(score, (score - 10, score + 10), 1_234_567)


@pytest.fixture
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Tuning.__init__.__defaults__ is not None
    monkeypatch.setattr(Tuning.__init__, "__defaults__", (*Tuning.__init__.__defaults__[:-1], objective))


def called(capsys: Any, *argv: str) -> str:
    assert main(["tune", *argv]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return str(out)


def refused(capsys: Any, *argv: str) -> str:
    capsys.readouterr()
    assert main(["tune", *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1, err
    assert err.startswith("puzzlegym tune: ")
    return str(err)


def printed(out: str) -> dict[str, Any]:
    """The configuration among the output."""
    text = out[out.index("\n{") : out.index("\n}") + 2]
    data: dict[str, Any] = json.loads(text)
    return data


def test_a_real_search_into_a_pipe_and_what_comes_of_it(tmp_path: Path, capsys: Any) -> None:
    out, best = tmp_path / "runs" / "study.journal", tmp_path / "best.json"
    call = [*CALL, ID, "--steps", "17000", "--trials", "2", "--games", "5", "--out", str(out), "--save", str(best)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert done.stdout.startswith(f"Tuning {ID}: 2 trials of 17,000 steps, 0 done\nIn {out} (Ctrl-C stops")
    assert re.search(
        r"^trial 1 of 2: score [\d,.]+ in 0.02 M steps; best [\d,.]+ \(trial 1\); [\d.]+ min left$", done.stdout, re.M
    )
    assert re.search(r"^trial 2 of 2: score [\d,.]+ in 0.02 M steps; best [\d,.]+ \(trial \d\)$", done.stdout, re.M)
    assert printed(done.stdout) == json.loads(best.read_text())

    with Tuning(out, ppo_config(ID), Budget(steps=17_000), 0, 5) as search:
        winner = tuning.best_of(search.done())[0]
    assert ppo_config(ID, str(best)) == winner.config
    assert main(["train", ID, "--config", str(best), "--steps", "100", "--out", str(tmp_path / "run")]) == 0
    assert PPOConfig.from_dict(saved.load_card(tmp_path / "run")["config"]).as_dict() == {
        **winner.config.as_dict(),
        "network_arguments": json.loads(json.dumps(winner.config.network_arguments)),
    }


@pytest.mark.usefixtures("_fast")
def test_the_report(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "_SHOWN", 2)
    argv = [ID, "--out", str(tmp_path / "study"), "--save", str(tmp_path / "best.json")]
    out = called(capsys, *argv, "--trials", "12")
    assert "12 trials of 1 minute, 0 done\n" in out
    assert re.search(r"^trial \d+ of 12: given up at 30%; best [\d,]+ \(trial \d+\)", out, re.M)
    assert "trial 1 of 12: score 1,000 in 1.23 M steps; best 1,000 (trial 1); " in out
    given_up = out.count("given up at")
    assert f"12 trials, {given_up} of them given up early" in out
    assert re.search(r"^Best: ([\d,]+) \[[\d,]+, [\d,]+\], start: 1,000 \[990, 1,010\], \+\d+\.\d%$", out, re.M)
    assert re.search(r"^start +1,000 +0\.001 +0\.01 +0\.995 +0\.9 +64 +256 +2048 +3 *$", out, re.M)
    assert f"Train: puzzlegym train {ID} --config {tmp_path / 'best.json'}" in out
    table = [line for line in out.splitlines() if re.match(r" *(start|\d+) +[\d,]+ +0", line)]
    assert len(table) == 3, "the best two and the start"
    scores = [float(line.split()[1].replace(",", "")) for line in table]
    assert scores == sorted(scores, reverse=True)
    assert max(map(len, table)) <= 79
    best = printed(out)
    assert best.items() >= {"env_id": ID, "base": "2min"}.items() or best["base"] == "10min"
    assert best["learning_rate"] > 0.001

    again = called(capsys, *argv, "--trials", "12")
    assert "12 trials of 1 minute, 12 done\n" in again
    assert "trial 13" not in again
    assert printed(again) == best
    more = called(capsys, *argv, "--trials", "13")
    assert [line for line in more.splitlines() if line.startswith("trial 13 of 13: ")]
    assert "trial 12 of" not in more


@pytest.mark.usefixtures("_fast")
def test_a_search_that_finds_nothing_says_so(tmp_path: Path, capsys: Any) -> None:
    out = called(capsys, ID, "--trials", "1", "--minutes", "2", "--out", str(tmp_path / "study"))
    assert "1 trial of 2 minutes" in out
    assert "No trial beat the start: 1,000 [990, 1,010]" in out
    assert printed(out) == {"env_id": ID, "base": "2min"}
    assert "(--save FILE writes it)" in out


@pytest.mark.usefixtures("_fast")
def test_a_search_begins_with_any_configuration(tmp_path: Path, capsys: Any) -> None:
    own = tmp_path / "own.json"
    own.write_text(json.dumps({"env_id": ID, "base": "mlp", "learning_rate": 0.02}), encoding="utf-8")
    out = called(capsys, ID, "--trials", "2", "--config", str(own), "--out", str(tmp_path / "study"))
    assert "No trial beat the start: 20,000" in out
    assert printed(out) == {"env_id": ID, "base": "mlp", "learning_rate": 0.02}


@pytest.mark.usefixtures("_fast")
def test_the_default_file_is_in_runs(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "3 trials of 5 minutes" in called(capsys, "FreeCell-v0", "--trials", "3")
    assert (tmp_path / "runs" / "tune-FreeCell-v0.journal").is_file()


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "study"
    argv = [ID, "--steps", "9000", "--games", "2", "--out", str(out)]
    with subprocess.Popen(
        [*CALL, *argv, "--trials", "1000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        while not process.stdout.readline().startswith("trial 2 "):
            assert process.poll() is None
        time.sleep(0.3)  # the next one is under way
        process.send_signal(signal.SIGINT)
        told, err = process.communicate(timeout=60)
    assert process.returncode == 130
    found = re.fullmatch(rf"puzzlegym tune: stopped, (\d+) of 1,000 trials in {out}: the same command goes on\n", err)
    assert found, err
    done = int(found[1])
    assert done >= 2
    assert f"{done} trials, " in told
    assert "env_id" in told
    assert not list(tmp_path.glob(".*.alive"))
    more = called(capsys, *argv, "--trials", str(done + 1))
    assert f" of 9,000 steps, {done} done\n" in more
    assert [line for line in more.splitlines() if line.startswith(f"trial {done + 1} of {done + 1}: ")]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["Tetris-v0"], "Puzzle2048-v0 or FreeCell-v0"),
        ([ID, "--trials", "0"], "--trials must be at least 1, not 0"),
        ([ID, "--games", "-1"], "--games must be at least 1, not -1"),
        ([ID, "--seed", "-1"], "--seed must be 0 or more"),
        ([ID, "--steps", "5", "--minutes", "5"], "not both"),
        ([ID, "--steps", "0"], "greater than 0"),
        ([ID, "--steps", "-5"], "greater than 0"),
        ([ID, "--minutes", "0"], "greater than 0"),
        ([ID, "--minutes", "nan"], "greater than 0"),
        ([ID, "--config", "3min"], "unknown configuration '3min' for Puzzle2048-v0: use 10min"),
        ([ID, "--save", "/nowhere/best.json"], "/nowhere/best.json: No such file or directory"),
    ],
)
def test_a_wrong_call_starts_nothing(argv: list[str], words: str, tmp_path: Path, capsys: Any) -> None:
    assert words in refused(capsys, *argv, "--out", str(tmp_path / "study"))
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("_fast")
def test_a_file_that_is_no_such_search(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "file").write_text("mine\n", encoding="utf-8")
    assert "holds something else" in refused(capsys, ID, "--out", str(tmp_path / "file"))
    assert str(tmp_path) in refused(capsys, ID, "--out", str(tmp_path))
    called(capsys, ID, "--trials", "1", "--out", str(tmp_path / "study"))
    line = refused(capsys, "FreeCell-v0", "--minutes", "1", "--out", str(tmp_path / "study"))
    assert "puzzle Puzzle2048-v0, not FreeCell-v0" in line
    assert "minutes 1.0, not 3.0" in refused(capsys, ID, "--minutes", "3", "--out", str(tmp_path / "study"))


@pytest.mark.parametrize(("module", "extra"), [("optuna", "tune"), ("torch", "train")])
def test_a_missing_extra(module: str, extra: str, tmp_path: Path) -> None:
    code = f"import sys; sys.modules['{module}'] = None; from puzzlegym.scripts.cli import main; sys.exit(main())"
    call = [sys.executable, "-c", code, "tune", ID, "--out", str(tmp_path / "study")]
    done = subprocess.run(call, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f'puzzlegym tune: {module} is not installed: pip install "puzzlegym[{extra}]"\n'


def test_every_option_is_explained(capsys: Any) -> None:
    assert main(["tune", "--help"]) == 0
    out = capsys.readouterr().out
    assert "Puzzle2048-v0 or FreeCell-v0" in out
    assert "STR" not in out
    assert "PATH" not in out
