"""The train command: what it leaves behind when it ends, is stopped, is killed, or cannot begin."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import struct
import subprocess
import sys
import termios
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from puzzlegym.agents import saved
from puzzlegym.agents.training import Progress
from puzzlegym.scripts import train
from puzzlegym.scripts._training_display import line, told
from puzzlegym.scripts.cli import main

ID = "Puzzle2048-v0"
CALL = [sys.executable, "-m", "puzzlegym.scripts.cli", "train"]
FOREVER = "1000000000"
# As CALL, after a statement of the test's own.
PREPARED = "{}\nimport sys\nfrom puzzlegym.scripts.cli import main\nsys.exit(main(['train', *sys.argv[1:]]))"


def prepared(statement: str, *argv: str) -> list[str]:
    return [sys.executable, "-c", PREPARED.format(statement), *argv]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A finished run of a few steps."""
    out = tmp_path / "run"
    assert main(["train", ID, "--steps", "2000", "--out", str(out)]) == 0
    return out


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Run a call that must be refused and return its one line."""
    capsys.readouterr()
    assert main(list(argv)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return one_line(err)


def one_line(err: str) -> str:
    assert err.count("\n") == 1, err
    assert err.startswith("puzzlegym train: ")
    assert "Traceback" not in err
    return err


def wait_for(condition: Callable[[], Any], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 100
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_run_into_a_pipe(tmp_path: Path) -> None:
    out = tmp_path / "my run"
    call = [*CALL, ID, "--steps", "40000", "--seed", "3", "--out", str(out)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout
    assert f"Done: {saved.load_card(out)['steps']:,} steps" in done.stdout
    assert re.search(r"score [\d,]+, 512 \d+%", done.stdout)
    assert f"Saved in {out}" in done.stdout
    assert f"--agent '{out}'" in done.stdout, "to be copied into a shell"
    assert files(out) == ["agent.zip", "log.csv", "tensorboard"]
    card = saved.load_card(out)
    assert (card["env_id"], card["seed"], card["budget"]["steps"]) == (ID, 3, 40_000)
    assert 40_000 <= card["steps"] < 41_000


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_says_where(number: signal.Signals, tmp_path: Path, capsys: Any) -> None:
    call = [*CALL, ID, "--steps", FOREVER, "--out", str(tmp_path)]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_for((tmp_path / "log.csv").exists, process)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (128 + number, "")
    steps = saved.load_card(tmp_path)["steps"]
    assert f"Stopped: {steps:,} steps" in out
    assert f"Saved in {tmp_path}" in out
    assert f"puzzlegym train {ID} --resume {tmp_path}" in out
    assert main(["train", ID, "--resume", str(tmp_path), "--steps", str(steps + 1000)]) == 0
    assert saved.load_card(tmp_path)["steps"] >= steps + 1000


def test_kill_and_resume(tmp_path: Path, capsys: Any) -> None:
    often = "from puzzlegym.agents import training; training.CHECKPOINT_SECONDS = 0.1"
    call = prepared(often, ID, "--steps", FOREVER, "--out", str(tmp_path))
    agent = tmp_path / "agent.zip"

    def second_checkpoint() -> bool:
        return agent.exists() and saved.load_card(agent)["steps"] > 0

    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_for(second_checkpoint, process)
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    before = saved.load_card(tmp_path)
    assert before["budget"]["steps"] == int(FOREVER)
    assert any(name.startswith("optimizer") for name in saved.load_trainer(tmp_path))
    goal = before["steps"] + 20_000
    assert main(["train", ID, "--resume", str(tmp_path), "--steps", str(goal)]) == 0
    after = saved.load_card(tmp_path)
    assert goal <= after["steps"] < goal + 1000
    assert after["seconds"] > before["seconds"]
    assert f"Done: {after['steps']:,} steps" in capsys.readouterr().out


def test_a_full_disk_leaves_the_last_checkpoint(run: Path) -> None:
    before = (run / "agent.zip").read_bytes()
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({len(before) // 2},) * 2)"
    call = prepared(limit, ID, "--resume", str(run), "--steps", "4000")
    done = subprocess.run(call, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2, done.stderr
    assert f"{run / 'agent.zip'}: File too large" in one_line(done.stderr)
    assert (run / "agent.zip").read_bytes() == before
    assert not [name for name in files(run) if name.endswith(".tmp")]
    assert main(["train", ID, "--resume", str(run), "--steps", "4000"]) == 0


@pytest.mark.parametrize("package", ["torch", "sb3_contrib", "stable_baselines3", "tensorboard"])
def test_a_missing_extra(package: str, tmp_path: Path) -> None:
    call = prepared(f"import sys; sys.modules[{package!r}] = None", ID, "--steps", "10", "--out", str(tmp_path / "run"))
    done = subprocess.run(call, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert one_line(done.stderr).endswith(f'{package} is not installed: pip install "puzzlegym[train]"\n')
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["Tetris-v0", "--steps", "10"], "Puzzle2048-v0 or FreeCell-v0"),
        ([ID, "--minutes", "0"], "greater than 0"),
        ([ID, "--minutes", "-1"], "greater than 0"),
        ([ID, "--minutes", "nan"], "greater than 0"),
        ([ID, "--steps", "0"], "greater than 0"),
        ([ID, "--steps", "-5"], "greater than 0"),
        ([ID, "--steps", "5", "--minutes", "5"], "not both"),
        ([ID, "--steps", "5", "--seed", "-1"], "--seed must be from 0 to 4,294,967,295"),
        ([ID, "--steps", "5", "--seed", "4294967296"], "--seed must be from 0 to 4,294,967,295"),
    ],
)
def test_a_wrong_call_starts_nothing(argv: list[str], words: str, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "run"
    assert words in refused(capsys, "train", *argv, "--out", str(out))
    assert not out.exists()


def test_a_folder_that_holds_a_run(run: Path, capsys: Any) -> None:
    before = (run / "agent.zip").read_bytes()
    assert f"--resume {run}" in refused(capsys, "train", ID, "--steps", "10", "--out", str(run))
    assert (run / "agent.zip").read_bytes() == before


@pytest.mark.parametrize("below", ["", "deeper"])
def test_out_is_a_file(below: str, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    assert "file" in refused(capsys, "train", ID, "--steps", "10", "--out", str(tmp_path / "file" / below))
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("out", ["/proc", "/proc/run"])
def test_out_cannot_be_written(out: str, capsys: Any) -> None:
    """Not even root may; the existing folder is as bad as the new one."""
    assert out in refused(capsys, "train", ID, "--steps", "10", "--out", out)


def test_resume_has_its_own_folder(run: Path, tmp_path: Path, capsys: Any) -> None:
    line = refused(capsys, "train", ID, "--resume", str(run), "--out", str(tmp_path / "other"))
    assert "leave --out away" in line


def test_resume_of_another_puzzle(run: Path, capsys: Any) -> None:
    line = refused(capsys, "train", "FreeCell-v0", "--resume", str(run))
    assert "trained on Puzzle2048-v0, not on FreeCell-v0" in line


def test_resume_of_a_finished_run_says_so(run: Path, capsys: Any) -> None:
    before = (run / "agent.zip").read_bytes()
    assert main(["train", ID, "--resume", str(run)]) == 0
    assert "larger --minutes or --steps" in capsys.readouterr().out
    assert (run / "agent.zip").read_bytes() == before


def missing(path: Path) -> None:
    path.unlink()


def text(path: Path) -> None:
    path.write_text("hello\n", encoding="utf-8")


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 50] = bytes(50)
    path.write_bytes(content)


def ordinary_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("readme.txt", "hello")


@pytest.mark.parametrize("change", [missing, text, truncated, damaged, ordinary_zip])
def test_resume_and_evaluate_refuse_nonsense(change: Callable[[Path], None], run: Path, capsys: Any) -> None:
    change(run / "agent.zip")
    before = files(run)
    assert str(run) in refused(capsys, "train", ID, "--resume", str(run), "--steps", "9000")
    assert files(run) == before
    assert main(["evaluate", ID, "--agent", str(run), "--episodes", "2"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert str(run) in err


def test_resume_of_nothing(tmp_path: Path, capsys: Any) -> None:
    assert "no trained agent" in refused(capsys, "train", ID, "--resume", str(tmp_path / "nowhere"))
    assert not (tmp_path / "nowhere").exists()


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a terminal of 80 columns."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    yield ours, theirs
    os.close(ours)


def everything_from(terminal: int) -> str:
    parts = []
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # how Linux says that the other end was closed
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode()


def test_one_line_of_progress_on_a_terminal(terminal: tuple[int, int], tmp_path: Path) -> None:
    ours, theirs = terminal
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [*CALL, ID, "--steps", "70000", "--out", str(tmp_path)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment, "TERM": "xterm-256color"},
    )
    os.close(theirs)
    shown = everything_from(ours)
    assert process.wait(timeout=60) == 0
    assert "\x1b[1A" not in shown, "a picture of one line needs no way up"
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    bars = [line.rstrip() for line in re.split(r"[\r\n]+", plain) if "━" in line]
    assert len(bars) > 3
    assert max(map(len, bars)) <= 80
    assert not any("…" in line for line in bars)
    pattern = r"━+ +\d+%  ?score [\d,]+(?:  \d+ \d+%)+  [\d.]+k steps/s  \d+:\d\d left"
    assert any(re.search(pattern, line) for line in bars), bars
    assert " 100% " in bars[-1]


@pytest.mark.parametrize(
    "figures",
    [
        {"score": 98_765.4, "512": 1.0, "1024": 0.99, "2048": 0.98},
        {"score": 198_765.4, "2048": 1.0, "4096": 0.99, "8192": 0.98, "16384": 0.97, "32768": 0.96},
        {"home": 47.25, "win": 0.6543, "rank": 11.0},
    ],
)
def test_a_long_line_leaves_room_for_percentage_and_bar(figures: dict[str, float]) -> None:
    progress = Progress(steps=9_999_999, seconds=7200.0, fraction=0.3, rate=23_456.7, figures=figures)
    assert len(line(progress)) <= 80 - len("━━━━ 100% ")


def test_shares_are_shown_up_to_the_first_that_nobody_reached() -> None:
    figures = {"score": 1.0, "512": 1.0, "1024": 0.5, "2048": 0.25, "4096": 0.0, "8192": 0.0}
    assert told(figures) == "score 1, 1024 50%, 2048 25%, 4096 0%"
    assert told({"score": 1.0, "512": 0.0, "1024": 0.0}) == "score 1, 512 0%"


def test_an_n_tuple_network_is_trained_resumed_and_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    argv = ["train", "Puzzle2048-v0", "--algo", "ntuple", "--network", "5x4"]
    assert main([*argv, "--steps", "300000", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "n-tuple network 5x4: 4 MB of memory" in told
    assert "Done: 30" in told
    assert main(["train", "Puzzle2048-v0", "--resume", str(out), "--steps", "500000"]) == 0
    assert saved.load_card(out)["steps"] >= 500_000
    for depth in ([], ["--depth", "2"]):
        assert main(["evaluate", "Puzzle2048-v0", "--agent", str(out), "--episodes", "5", *depth]) == 0
    assert main(["evaluate", "Puzzle2048-v0", "--agent", "random", "--episodes", "5", "--depth", "2"]) == 2
    assert "--depth and --move-time are for agents that search, and none of these does" in capsys.readouterr().err
    assert main(["watch", "Puzzle2048-v0", "--agent", "random", "--depth", "2"]) == 2
    assert "random does not search, so it has no depth and no time for a move" in capsys.readouterr().err
    timed = ["--agent", str(out), "--episodes", "2", "--move-time", "0.0002"]
    assert main(["evaluate", "Puzzle2048-v0", *timed]) == 0
    assert main(["evaluate", "Puzzle2048-v0", *timed, "--depth", "2"]) == 2
    assert "give a depth or a time for a move, not both" in capsys.readouterr().err
    assert main(["watch", "Puzzle2048-v0", "--agent", str(out), "--move-time", "0"]) == 2
    assert "seconds for a move must be more than 0" in capsys.readouterr().err
    mixed = ["--agent", "random", str(out), "--episodes", "2", "--depth", "2"]
    assert main(["evaluate", "Puzzle2048-v0", *mixed]) == 0


def test_n_tuple_settings_reach_the_run(tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "run"
    argv = ["train", "Puzzle2048-v0", "--algo", "ntuple", "--network", "5x4", "--games", "30", "--out", str(out)]
    assert main([*argv, "--plain", "--decay", "0.25", "--restart"]) == 0
    card = saved.load_card(out)
    assert card["games"] == 30
    assert card["budget"] == {"steps": None, "seconds": None, "games": 30}
    settings = {"coherent": False, "rate": 0.1, "decay": 0.25, "restart": True, "threads": 1}
    assert card["config"].items() >= settings.items()
    assert "--resume goes on with the run's own settings" in refused(
        capsys, "train", ID, "--resume", str(out), "--rate", "0.5"
    )
    assert main(["train", ID, "--resume", str(out), "--games", "60"]) == 0
    assert saved.load_card(out)["games"] == 60


@pytest.mark.parametrize(
    ("argv", "minutes", "hidden"),
    [
        (["--minutes", "90"], 120, (128, 64)),
        (["--minutes", "4"], 2, (128, 64)),
        (["--minutes", "80"], 60, (128, 64)),
        (["--steps", "100"], 10, (128, 64)),
        ([], 10, (128, 64)),
        (["--minutes", "90", "--config", "mlp"], 10, (256, 256)),
    ],
)
def test_the_configuration_for_a_budget(argv: list[str], minutes: float, hidden: Any, tmp_path: Path) -> None:
    run = train._open(train.tyro.cli(train.Train, args=[ID, "--out", str(tmp_path / "run"), *argv]))
    assert run.config.minutes == minutes  # type: ignore[union-attr]
    assert run.config.network_arguments["hidden"] == hidden  # type: ignore[union-attr]
    assert run.budget.seconds or run.budget.steps


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["FreeCell-v0", "--algo", "ntuple"], "--algo ntuple is for Puzzle2048-v0"),
        (["Puzzle2048-v0", "--algo", "ntuple", "--network", "9x9"], "unknown n-tuple network '9x9': use 5x4"),
        (["Puzzle2048-v0", "--algo", "ntuple", "--threads", "0"], "threads must be 1 or more"),
        (["Puzzle2048-v0", "--algo", "ntuple", "--rate", "0"], "the rate must be above 0 and at most 1, not 0.0"),
        (["Puzzle2048-v0", "--algo", "ntuple", "--decay", "1.5"], "the decay (lambda) must be from 0 to 1, not 1.5"),
        (["Puzzle2048-v0", "--algo", "ntuple", "--games", "0"], "must be greater than 0"),
        (
            ["Puzzle2048-v0", "--algo", "ntuple", "--config", "2min"],
            "--config and --from are not for --algo ntuple",
        ),
        (
            ["Puzzle2048-v0", "--algo", "clone"],
            "--algo clone is for FreeCell-v0, not for Puzzle2048",
        ),
        (["Puzzle2048-v0", "--algo", "clone+ppo"], "--algo clone+ppo is for FreeCell-v0"),
        (
            ["FreeCell-v0", "--algo", "clone", "--config", "x"],
            "unknown configuration 'x' for cloning: use dagger, lines",
        ),
        (["FreeCell-v0", "--algo", "distill"], "distilling needs a trained FreeCell agent to begin with: --from RUN"),
        (["FreeCell-v0", "--algo", "distill", "--config", "x"], "has one configuration: leave --config away"),
        (["FreeCell-v0", "--data", "games"], "--data is for --algo clone and clone+ppo only"),
        (["FreeCell-v0", "--from", "nowhere"], "no trained agent at nowhere"),
        (["FreeCell-v0", "--algo", "clone", "--plain"], "for --algo ntuple only"),
        (["Puzzle2048-v0", "--games", "10"], "for --algo ntuple only"),
        (["Puzzle2048-v0", "--plain"], "for --algo ntuple only"),
        (["Puzzle2048-v0", "--config", "3min"], "unknown configuration '3min' for Puzzle2048-v0: use 10min, 2min"),
    ],
)
def test_n_tuple_runs_that_cannot_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], argv: list[str], message: str
) -> None:
    assert main(["train", *argv, "--out", str(tmp_path / "x")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_clone_is_learned_resumed_and_watched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "clone")
    assert main(["train", "FreeCell-v0", "--algo", "clone", "--steps", "2000", "--out", out]) == 0
    assert "agrees" in capsys.readouterr().out
    assert saved.load_card(Path(out))["algorithm"] == "cloning"
    assert main(["train", "FreeCell-v0", "--resume", out, "--steps", "4000"]) == 0
    assert saved.load_card(Path(out))["steps"] >= 4000
    assert main(["evaluate", "FreeCell-v0", "--agent", out, "--episodes", "3", "--json"]) == 0


def test_cloning_comes_before_fine_tuning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One call runs both, each in its folder; the second begins with the network of the first."""
    out = tmp_path / "both"
    assert main(["train", "FreeCell-v0", "--algo", "clone+ppo", "--steps", "4000", "--out", str(out)]) == 0
    first, second = saved.load_card(out / "clone"), saved.load_card(out)
    assert (first["algorithm"], second["algorithm"]) == ("cloning", "masked PPO")
    assert (first["budget"]["steps"], second["budget"]["steps"]) == (1000, 3000)
    assert second["start"] == str(out / "clone")
    assert capsys.readouterr().out.count("Done: ") == 2
    again = tmp_path / "again"
    call = ["train", "FreeCell-v0", "--algo", "clone+ppo", "--from", str(out / "clone"), "--steps", "300"]
    assert main([*call, "--out", str(again)]) == 0
    assert not (again / "clone").exists(), "it has been cloned already"


def test_a_clone_of_a_dataset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = tmp_path / "data", tmp_path / "run"
    assert main(["dataset", "FreeCell-v0", "--deals", "40001-40006", "--out", str(data)]) == 0
    call = ["train", "FreeCell-v0", "--algo", "clone", "--config", "lines", "--data", str(data), "--steps", "2000"]
    assert main([*call, "--out", str(out)]) == 0
    assert saved.load_card(out)["data"] == str(data)
    assert main(["dataset", "FreeCell-v0", "--deals", "1-2", "--out", str(tmp_path / "test")]) == 0
    capsys.readouterr()
    call = ["train", "FreeCell-v0", "--algo", "clone", "--data", str(tmp_path / "test"), "--out", str(tmp_path / "x")]
    assert main(call) == 2
    assert "test deal 1: learn from deals above 32,000" in one_line(capsys.readouterr().err)
    assert main([*call[:-3], str(tmp_path / "nothing"), "--out", str(tmp_path / "x")]) == 2
    assert "is no Minari dataset" in one_line(capsys.readouterr().err)
