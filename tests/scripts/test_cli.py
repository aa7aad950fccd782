"""The command's front: help, versions, and one clear line with exit code 2 for everything that is wrong."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from puzzlegym import PUZZLES, __version__
from puzzlegym.agents.policy import named_agents
from puzzlegym.scripts import cli
from puzzlegym.scripts._console import interruptible
from puzzlegym.scripts.cli import COMMANDS, main

CALL = [sys.executable, "-m", "puzzlegym.scripts.cli"]


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Run a call that must be refused and return its one line."""
    assert main(list(argv)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"]])
def test_help_lists_commands_and_puzzles(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    out = capsys.readouterr().out
    for name in [*COMMANDS, *PUZZLES]:
        assert name in out
    assert max(map(len, out.splitlines())) <= 110


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"puzzlegym {__version__}\n"


def test_unknown_command(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "evalute", "Puzzle2048-v0")
    assert "'evalute'" in line
    assert all(name in line for name in COMMANDS)


@pytest.mark.parametrize("command", ["evaluate", "watch"])
def test_unknown_id_lists_the_ids(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, command, "Tetris-v0", "--agent", "random")
    assert "Puzzle2048-v0 or FreeCell-v0" in line


@pytest.mark.parametrize("command", ["evaluate", "watch"])
def test_unknown_agent_lists_the_agents(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, command, "FreeCell-v0", "--agent", "alphazero")
    assert "'alphazero'" in line
    assert f"{', '.join(named_agents('FreeCell-v0'))} or a path to a trained agent" in line


@pytest.mark.parametrize("command", ["evaluate", "watch"])
def test_foreign_file_as_agent(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "agent.zip").write_text("no agent")
    refused(capsys, command, "FreeCell-v0", "--agent", str(tmp_path))
    refused(capsys, command, "FreeCell-v0", "--agent", str(tmp_path / "agent.zip"))


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["evaluate", "Puzzle2048-v0", "--agent"], "at least one agent"),
        (["evaluate", "Puzzle2048-v0", "--agent", "random", "--episodes", "0"], "at least 1, not 0"),
        (["evaluate", "FreeCell-v0", "--agent", "random", "--episodes", "32001"], "from 1 to 32,000"),
        (["evaluate", "FreeCell-v0", "--agent", "random", "--seed", "-1"], "from 0"),
        (["evaluate", "Puzzle2048-v0", "--agent", "random", "--seed", str(10**12)], "from 0"),
        (["evaluate", "Puzzle2048-v0", "--agent", "random", "--start-rank", "2"], "no start_rank"),
        (["evaluate", "FreeCell-v0", "--agent", "random", "--start-rank", "13"], "to 12"),
        (["evaluate", "FreeCell-v0", "--agent", "random", "--sampled"], "none of these agents is one"),
        (["evaluate", "FreeCell-v0", "--agent", "random", "--sampled", "--greedy"], "not both"),
        (["watch", "FreeCell-v0", "--agent", "greedy", "--greedy"], "greedy has no choice"),
        (["watch", "FreeCell-v0", "--agent", "random", "--sampled", "--greedy"], "not both"),
        (["watch", "Puzzle2048-v0", "--agent", "random", "--deal", "5"], "no numbered deals"),
        (["watch", "FreeCell-v0", "--agent", "random", "--deal", "0"], "from 1 to 1,000,000, not 0"),
        (["watch", "FreeCell-v0", "--agent", "random", "--deal", "-4"], "not -4"),
        (["watch", "FreeCell-v0", "--agent", "random", "--deal", "1000001"], "not 1,000,001"),
        (["watch", "FreeCell-v0", "--agent", "random", "--delay", "-1"], "0 or more seconds"),
        (["watch", "FreeCell-v0", "--agent", "random", "--delay", "nan"], "0 or more seconds"),
    ],
)
def test_wrong_options(argv: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert words in refused(capsys, *argv)


@pytest.mark.parametrize(
    "argv",
    [
        ["evaluate"],
        ["evaluate", "Puzzle2048-v0"],
        ["evaluate", "Puzzle2048-v0", "--agent", "random", "--episodes", "many"],
        ["watch", "FreeCell-v0", "--agent", "random", "--deal", "1.5"],
        ["watch", "FreeCell-v0", "--agent", "random", "--speed", "3"],
    ],
)
def test_usage_errors(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert err


@pytest.mark.parametrize("command", ["evaluate", "watch"])
def test_every_option_is_explained(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert "Puzzle2048-v0 or FreeCell-v0" in out
    assert out.count("default:") >= 3
    assert "STR" not in out, "a metavar is missing"


def test_exit_codes_of_the_process() -> None:
    for argv, code in ([], 0), (["evaluate", "X", "--agent", "random"], 2), (["nothing"], 2), (["watch"], 2):
        done = subprocess.run([*CALL, *argv], capture_output=True, text=True)
        assert done.returncode == code, argv
        assert "Traceback" not in done.stderr
        assert bool(done.stderr) == bool(code)


@pytest.mark.parametrize(
    ("module", "extra", "argv"),
    [
        ("tyro", "play", ["evaluate", "Puzzle2048-v0", "--agent", "random", "--episodes", "2"]),
        ("rich", "play", ["evaluate", "Puzzle2048-v0", "--agent", "random", "--episodes", "2"]),
        ("scipy", "play", ["evaluate", "Puzzle2048-v0", "--agent", "random", "--episodes", "2"]),
        ("platformdirs", "play", ["play", "FreeCell-v0"]),
        ("filelock", "play", ["play", "FreeCell-v0"]),
        ("torch", "train", ["train", "Puzzle2048-v0", "--steps", "10", "--out", "/nowhere"]),
        ("matplotlib", "train", ["plot", "x"]),
    ],
)
def test_missing_extra(module: str, extra: str, argv: list[str]) -> None:
    code = f"import sys; sys.modules['{module}'] = None; from puzzlegym.scripts.cli import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].endswith(f'is not installed: pip install "puzzlegym[{extra}]"')
    assert "Traceback" not in done.stderr


def test_import_errors_of_our_own_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "broken", cli.Command("no_such_module", "Options", "help"))
    with pytest.raises(ModuleNotFoundError):
        main(["broken"])


def test_a_broken_command_harms_no_other(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(COMMANDS, "train", cli.Command("no_such_module", "Options", "help"))
    assert main(["evaluate", "FreeCell-v0", "--agent", "random", "--episodes", "2", "--json"]) == 0
    assert main([]) == 0
    capsys.readouterr()


def test_unreadable_file_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "/somewhere/agent.zip")

    monkeypatch.setattr("puzzlegym.agents.policy.load", refuse)
    line = refused(capsys, "evaluate", "FreeCell-v0", "--agent", "random")
    assert "/somewhere/agent.zip: Permission denied" in line


def test_only_what_is_needed_is_imported() -> None:
    code = "import sys; from puzzlegym.scripts.cli import main; main(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "tyro", "rich", "scipy", "numba"} & set(done.stdout.split())
    argv = ["evaluate", "FreeCell-v0", "--agent", "greedy", "--episodes", "2", "--json"]
    done = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, check=True)
    assert not {"torch", "stable_baselines3", "matplotlib"} & set(done.stdout.split())


def test_ctrl_c_is_one_line_and_code_130() -> None:
    argv = [*CALL, "watch", "FreeCell-v0", "--agent", "random", "--delay", "0.5"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()  # by now it plays
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "puzzlegym watch: stopped"
    assert "Traceback" not in err


def test_ctrl_c_while_numba_stores_compiled_code() -> None:
    """What is raised in a callback from C is lost, so it must wait until the callback is over."""
    passed = []

    @ctypes.CFUNCTYPE(None)
    def _raw_object_cache_notify() -> None:
        signal.raise_signal(signal.SIGINT)
        passed.append(True)

    def store() -> None:
        with interruptible():
            _raw_object_cache_notify()
            for _ in range(500):
                time.sleep(0.01)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        store()
    assert passed
    assert signal.getsignal(signal.SIGINT) is before
