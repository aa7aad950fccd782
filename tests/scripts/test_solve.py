"""The solve command: lines, proofs and limits, of a deal, a position and a range that goes on where it stopped."""

from __future__ import annotations

import io
import json
import os
import pty
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from puzzlegym.agents import solving
from puzzlegym.agents.solving import Answer, Limits, solve_deals
from puzzlegym.envs.freecell import Game, State, board_from, deal_board, is_won
from puzzlegym.scripts import solve as command
from puzzlegym.scripts._answers import Summary
from puzzlegym.scripts.cli import main
from reference.terminal import Terminal

KEYS = ["deal", "result", "moves", "positions", "seconds"]
RANGE = "11975-11990"
ENDGAME = "Foundations: C-J D-J H-Q S-Q\nFreecells: - - - QD\nKC QC\nKS\nKD\nKH\n-\n-\n-\n-\n"


def called(capsys: pytest.CaptureFixture[str], *argv: str, code: int = 0) -> str:
    """What the command prints."""
    assert main(["solve", *argv]) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """The one line that says what is wrong."""
    assert main(["solve", *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("puzzlegym solve: ")
    return err


def assert_won(game: Game) -> None:
    *_, last = game.replay()
    assert is_won(last.board)


def timeless(text: str) -> str:
    return re.sub(r'"seconds": [\d.e-]+', "", text)


def test_a_solved_deal_is_a_file_for_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = called(capsys, "--deal", "617")
    first, second = out.splitlines()[:2]
    assert re.fullmatch(r"# Deal 617: solved in \d+ moves \([\d,]+ positions, [\d.]+ m?s\)", first)
    assert second == "Deal: 617"
    (tmp_path / "game.txt").write_text(out)
    assert main(["replay", str(tmp_path / "game.txt"), "--check"]) == 0
    assert "won, all 52 cards are home" in capsys.readouterr().out


def test_a_proof(capsys: pytest.CaptureFixture[str]) -> None:
    out = called(capsys, "--deal", "781948", code=3)
    assert out.startswith("Deal 781948: unwinnable, proved by a complete search (4,381 positions, ")
    assert out.count("\n") == 1


@pytest.mark.parametrize(("option", "limit"), [("--memory", "memory (2 MB)"), ("--time", "time (1e-06 s)")])
def test_undecided_names_the_limit(option: str, limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    value = "2" if option == "--memory" else "1e-6"
    out = called(capsys, "--deal", "517776", option, value, code=4)
    assert out.startswith(f"Deal 517776: undecided, stopped at the limit of {limit} (")
    data = json.loads(called(capsys, "--deal", "517776", option, value, "--json", code=4))
    assert (data["result"], data["moves"], data["limit"]) == ("undecided", [], limit)


@pytest.mark.parametrize(("deal", "result", "code"), [(617, "solved", 0), (781948, "unwinnable", 3)])
def test_json_of_a_deal(deal: int, result: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    out = called(capsys, "--deal", str(deal), "--json", code=code)
    assert out.count("\n") == 1
    data = json.loads(out)
    assert list(data) == KEYS
    assert (data["deal"], data["result"]) == (deal, result)
    assert data["positions"] > 1000
    assert 0 < data["seconds"] < 60
    if result == "solved":
        assert_won(Game.of_deal(deal, data["moves"]))
    else:
        assert data["moves"] == []


def test_shorter_lines(capsys: pytest.CaptureFixture[str]) -> None:
    quick, short = (
        json.loads(called(capsys, "--deal", "617", "--json", *option))["moves"] for option in ([], ["--short"])
    )
    assert len(short) < len(quick)
    assert_won(Game.of_deal(617, short))


def test_a_position_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "board.txt"
    path.write_text(ENDGAME)
    out = called(capsys, "--board", str(path))
    assert out.startswith(f"# Position of {path}: solved in ")
    game = Game.parse(out)
    assert (game.start.deal, game.start.board) == (0, State.parse(ENDGAME).board)
    assert_won(game)
    data = json.loads(called(capsys, "--board", str(path), "--json"))
    assert list(data) == KEYS
    assert (data["deal"], tuple(data["moves"])) == (None, game.moves)


def test_a_position_from_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(str(State(deal_board(781948).tobytes()))))
    out = called(capsys, "--board", "-", code=3)
    assert out.startswith("Position of standard input: unwinnable, proved")


def test_a_position_that_is_won_already(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "won.txt"
    path.write_text(str(State(board_from([""] * 8, (), dict.fromkeys("CDHS", 13)).tobytes())))
    out = called(capsys, "--board", str(path))
    assert "solved in 0 moves (0 positions" in out
    assert Game.parse(out).moves == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ENDGAME.replace("QD", "-"), "once; missing QD"),
        (ENDGAME.replace("KS\n", "KH\n"), "missing KS; more than once KH"),
        (ENDGAME.replace("KS\n", "XS\n"), "'XS'"),
        (ENDGAME.replace("C-J", "C-14"), "C-14"),
        (ENDGAME + "-\n-\nKC\n", "8 columns"),
        ("", "8 columns"),
    ],
)
def test_what_is_no_position(text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "board.txt"
    path.write_text(text)
    line = refused(capsys, "--board", str(path))
    assert str(path) in line
    assert message in line


def test_files_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "No such file" in refused(capsys, "--board", str(tmp_path / "nothing.txt"))
    assert "Is a directory" in refused(capsys, "--board", str(tmp_path))
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff")
    assert "no text in UTF-8" in refused(capsys, "--board", str(tmp_path / "picture.png"))
    monkeypatch.setattr("sys.stdin", None)
    assert "standard input: there is none" in refused(capsys, "--board", "-")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "give one of --deal N, --deals A-B and --board FILE"),
        (["--deal", "1", "--deals", "1-2"], "not several"),
        (["--deal", "1", "--board", "x"], "not several"),
        (["--deals", "9-3"], "from the lower number to the higher one, 3-9, not 9-3"),
        (["--deals", "5"], "a range such as 1-32000, not '5'; for one deal there is --deal"),
        (["--deals", "one-two"], "not 'one-two'"),
        (["--deals", ""], "not ''"),
        (["--deals", "0-5"], "from 1 to 2147483647, not 0"),
        (["--deals", "1-2147483648"], "from 1 to 2147483647, not 2147483648"),
        (["--deal", "0"], "from 1 to 2147483647, not 0"),
        (["--deal", "-7"], "not -7"),
        (["--deal", "2147483648"], "not 2147483648"),
        (["--deal", "1", "--time", "0"], "the time must be greater than 0 seconds, not 0"),
        (["--deal", "1", "--time", "-2"], "not -2"),
        (["--deals", "1-2", "--time", "nan"], "not nan"),
        (["--deals", "1-2", "--memory", "1"], "the memory must be at least 2 MB, not 1"),
        (["--deal", "1", "--memory", "-1"], "not -1"),
        (["--deals", "1-2", "--jobs", "0"], "--jobs must be at least 1, not 0"),
        (["--deal", "1", "--jobs", "2"], "are for ranges"),
        (["--deal", "1", "--ray"], "are for ranges"),
        (["--deals", "1-2", "--ray", "--jobs", "2"], "leave it out with --ray"),
        (["--deals", "1-2", "--ray", "one", "two"], "--ray takes one address, not 'one two'"),
        (["--board", "x", "--out", "y"], "are for ranges"),
        (["--deals", "1-2", "--out", "/nowhere/x.jsonl"], "/nowhere/x.jsonl: No such file or directory"),
        (["--deals", "1-2", "--out", "/"], "/: Is a directory"),
    ],
)
def test_wrong_options(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in refused(capsys, *argv)


def test_help_explains_results_and_codes(capsys: pytest.CaptureFixture[str]) -> None:
    out = " ".join(called(capsys, "--help").split())
    assert "0 solved, 3 unwinnable, 4 undecided" in out
    assert "STR" not in out, "a metavar is missing"


def test_summary_of_a_range(capsys: pytest.CaptureFixture[str]) -> None:
    out = called(capsys, "--deals", RANGE)
    lines = out.splitlines()
    assert lines[0] == f"Deals {RANGE}: 15 solved, 1 unwinnable, 0 undecided"
    assert [line.split()[0] for line in lines[1:5]] == ["mean", "milliseconds", "positions", "moves"]
    assert lines[5:] == ["Unwinnable: 11982"]
    assert max(map(len, lines)) <= 80
    answers = list(solve_deals(range(11_975, 11_991), Limits()))
    assert f"{max(answer.positions for answer in answers):,}" in lines[3]
    assert f"{sum(len(answer.moves) for answer in answers) / 15:.1f}" in lines[4]


def test_a_range_with_undecided_deals(capsys: pytest.CaptureFixture[str]) -> None:
    out = called(capsys, "--deals", RANGE, "--memory", "2", code=4)
    assert f"Deals {RANGE}: 15 solved, 0 unwinnable, 1 undecided" in out
    assert out.endswith("Undecided at the limit of memory (2 MB): 11982\n")


def test_many_deals_are_named_on_lines_that_fit() -> None:
    summary = Summary()
    for deal in range(10_000, 10_100):
        summary.add(Answer(deal, "undecided", (), 5, 0.1, "time (1 s)"))
    lines = str(summary).splitlines()
    assert lines[0] == "0 solved, 0 unwinnable, 100 undecided"
    assert max(map(len, lines)) <= 80
    assert all(str(deal) in str(summary) for deal in range(10_000, 10_100))
    assert "moves of the line" not in str(summary)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_json_of_a_range_is_in_order(
    jobs: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(solving, "_ALONE", 0.0)
    lines = [json.loads(line) for line in called(capsys, "--deals", RANGE, "--json", "--jobs", jobs).splitlines()]
    assert [line["deal"] for line in lines] == list(range(11_975, 11_991))
    assert all(list(line) == KEYS for line in lines)
    assert [line["deal"] for line in lines if line["result"] == "unwinnable"] == [11_982]


@pytest.fixture
def whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """A file that was never interrupted."""
    called(capsys, "--deals", RANGE, "--out", str(tmp_path / "whole.jsonl"), "--jobs", "1")
    return (tmp_path / "whole.jsonl").read_text()


def test_the_file_of_a_range(whole: str, capsys: pytest.CaptureFixture[str]) -> None:
    head, *lines = whole.splitlines()
    assert json.loads(head) == {"deals": RANGE, "time": None, "memory": 2048, "short": False}
    assert timeless("\n".join(lines)) == timeless(called(capsys, "--deals", RANGE, "--json").rstrip())


def test_the_file_does_not_depend_on_the_processes(
    whole: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(solving, "_ALONE", 0.0)
    path = tmp_path / "two.jsonl"
    called(capsys, "--deals", RANGE, "--out", str(path), "--jobs", "2")
    assert timeless(path.read_text()) == timeless(whole)


def test_untimed_is_equal_byte_for_byte(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more in ([], ["--json"]):
        first, again = (called(capsys, "--deals", RANGE, "--untimed", *more) for _ in range(2))
        assert first == again
        assert "second" not in first
    path = tmp_path / "untimed.jsonl"
    argv = ["--deals", RANGE, "--out", str(path)]
    called(capsys, *argv, "--untimed")
    assert path.read_text().partition("\n")[2] == first
    assert '"untimed": true' in path.read_text().partition("\n")[0]
    assert called(capsys, *argv, "--untimed", "--json") == first
    assert "the same options" in refused(capsys, *argv), "one file does not have both kinds"
    assert called(capsys, "--deal", "11982", "--untimed", code=3).endswith(" positions)\n")


@pytest.mark.parametrize("end", ["", '{"deal": 11985, "res', '{"deal": 11985, "result": "solved", "moves": [], "pos\n'])
def test_a_file_is_gone_on_with(end: str, whole: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As it is left by several processes: in any order, the last line perhaps half-way."""
    path = tmp_path / "half.jsonl"
    head, *lines = whole.splitlines(keepends=True)
    kept = random.Random(1).sample(lines, 7)
    path.write_text(head + "".join(kept) + end)
    out = called(capsys, "--deals", RANGE, "--out", str(path))
    assert "15 solved, 1 unwinnable" in out
    assert timeless(path.read_text()) == timeless(whole)
    assert all(line in path.read_text() for line in kept), "they are not solved again"
    before = path.read_text()
    assert called(capsys, "--deals", RANGE, "--out", str(path), "--json") == before.partition("\n")[2]
    assert path.read_text() == before
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def test_nothing_is_left_of_a_long_last_line(whole: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "long.jsonl"
    path.write_text("".join(whole.splitlines(keepends=True)[:-1]) + '{"deal": 11990' + 5_000 * " ")
    called(capsys, "--deals", RANGE, "--out", str(path))
    assert timeless(path.read_text()) == timeless(whole)


@pytest.mark.parametrize("length", [0, 1, 20])
def test_a_file_that_was_hardly_begun(
    length: int, whole: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "begun.jsonl"
    path.write_text(whole[:length])
    called(capsys, "--deals", RANGE, "--out", str(path))
    assert timeless(path.read_text()) == timeless(whole)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("my notes\n", "holds something else"),
        ("{}\n", "holds something else"),
        ("[1]\n", "holds something else"),
        ('{"deals": "1-5", "time": null, "memory": 2048, "short": false}\n', 'holds answers to {"deals": "1-5"'),
        ('{"deals": "11975-11990", "time": 5.0, "memory": 2048, "short": false}\n', '"time": 5.0'),
        ('{"deals": "11975-11990", "time": null, "memory": 2048, "short": true}\n', "the same options"),
        ("HEADnonsense\nLINES", "is no answer"),
        ("HEADLINES3\n4\n", "is no answer"),
        ('HEAD{"deal": 5, "result": "solved", "moves": [], "positions": 1, "seconds": 1}\nLINES', "is no answer"),
    ],
)
def test_files_of_something_else_are_left_alone(
    content: str, message: str, whole: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head, _, lines = whole.partition("\n")
    path = tmp_path / "other.jsonl"
    path.write_text(content.replace("HEAD", head + "\n").replace("LINES", lines))
    before = path.read_text()
    line = refused(capsys, "--deals", RANGE, "--out", str(path))
    assert str(path) in line
    assert message in line
    assert path.read_text() == before


def test_ctrl_c_loses_nothing(
    whole: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "stopped.jsonl"

    def stopped(*arguments: object) -> Iterator[Answer]:
        for count, answer in enumerate(solving.as_solved(*arguments)):  # type: ignore[arg-type]
            if count == 5:
                raise KeyboardInterrupt
            yield answer

    with monkeypatch.context() as patch:
        patch.setattr(command, "as_solved", stopped)
        assert main(["solve", "--deals", RANGE, "--out", str(path), "--json"]) == 130
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"puzzlegym solve: stopped, 5 of 16 deals in {path}: the same command goes on\n"
    assert timeless(whole).startswith(timeless(path.read_text()))
    assert path.read_text().count("\n") == 6
    called(capsys, "--deals", RANGE, "--out", str(path))
    assert timeless(path.read_text()) == timeless(whole)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_process_that_is_stopped_goes_on(
    number: signal.Signals, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stopped by a signal to all of its processes, as Ctrl-C is."""
    path = tmp_path / "stopped.jsonl"
    argv = ["solve", "--deals", "1-1000000", "--out", str(path), "--jobs", "2"]
    call = [sys.executable, "-m", "puzzlegym.scripts.cli", *argv]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(call, text=True, start_new_session=True, **pipes) as process:
        end = time.monotonic() + 60
        while not path.exists() or path.read_bytes().count(b"\n") < 20:
            assert time.monotonic() < end
            time.sleep(0.02)
        os.killpg(process.pid, number)
        out, err = process.communicate(timeout=20)
    assert out == ""
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}.get(number, -number)
    if number == signal.SIGINT:
        assert re.fullmatch(
            r"puzzlegym solve: stopped, [\d,]+ of 1,000,000 deals in .*: the same command goes on\n", err
        )
    else:
        assert err == ""
    answers = [Answer.from_json(line) for line in path.read_text().splitlines()[1:]]
    expected = list(solve_deals([answer.deal for answer in answers[:20] if answer.deal], Limits()))
    assert [answer.moves for answer in answers[:20]] == [answer.moves for answer in expected]
    assert len({answer.deal for answer in answers}) == len(answers)


def test_ctrl_c_while_json_is_printed() -> None:
    call = [sys.executable, "-m", "puzzlegym.scripts.cli", "solve", "--deals", "1-1000000", "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(call, text=True, start_new_session=True, **pipes) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["deal"] == 1
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err == "puzzlegym solve: stopped\n"


def test_on_a_terminal() -> None:
    with Terminal("solve", "--deals", RANGE) as terminal:
        assert terminal.end() == 0
        assert b"0/16" in terminal.received
        assert b"0 solved, 0 unwinnable, 0 undecided" in terminal.received
        assert terminal.lines[0] == f"Deals {RANGE}: 15 solved, 1 unwinnable, 0 undecided", "the bar is gone"


def test_json_goes_into_a_pipe_though_there_is_a_bar() -> None:
    mine, terminal = pty.openpty()
    call = [sys.executable, "-m", "puzzlegym.scripts.cli", "solve", "--deals", "1-5", "--json"]
    environment = {**os.environ, "TERM": "xterm-256color"}
    done = subprocess.run(call, stdout=subprocess.PIPE, stderr=terminal, text=True, env=environment)
    assert [json.loads(line)["deal"] for line in done.stdout.splitlines()] == [1, 2, 3, 4, 5]
    assert b"0/5" in os.read(mine, 65536)
    os.close(mine)
    os.close(terminal)


def test_json_on_a_terminal_has_no_bar() -> None:
    with Terminal("solve", "--deals", "1-3", "--json", columns=2000) as terminal:
        assert terminal.end() == 0
        assert [json.loads(line)["deal"] for line in terminal.lines if line] == [1, 2, 3]
