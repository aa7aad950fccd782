"""The watch command: picture after picture into a pipe, in place on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable

import pytest
from puzzlegym.agents.evaluation import games, play
from puzzlegym.agents.policy import load
from puzzlegym.envs.freecell import deal_board
from puzzlegym.envs.freecell.notation import parse_move
from puzzlegym.envs.freecell.planning import apply
from puzzlegym.scripts.cli import main

CALL = [sys.executable, "-m", "puzzlegym.scripts.cli", "watch"]


def frames(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[list[str], str]:
    """All pictures and the last line."""
    assert main(["watch", *argv]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "\x1b" not in out
    body, _, last = out.rstrip("\n").rpartition("\n\n")
    found = re.split(rf"(?m)^(?={re.escape(argv[0])}, agent )", body)[1:]
    return found, last


def test_2048_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    found, last = frames(capsys, "Puzzle2048-v0", "--agent", "random", "--seed", "5")
    played = play(load("Puzzle2048-v0", "random"), games("Puzzle2048-v0", 1, 5))
    assert len(found) == played.moves[0] + 1
    assert "agent random, seed 5" in found[0]
    assert "move 0: start" in found[0]
    assert re.search(r"^move 1: (up|right|down|left)   reward \+\d+   score \d+$", found[1], re.M)
    assert re.search(r"^legal \(\d\): (up|right|down|left)( (right|down|left))*$", found[1], re.M)
    assert "legal: none" in found[-1]
    score = f"{int(played.scores[0]):,}"
    tile = int(re.search(r"largest tile (\d+)", last).group(1))
    assert tile & (tile - 1) == 0
    assert last == f"Over after {played.moves[0]} moves: no legal move left, score {score}, largest tile {tile}."


def test_rewards_add_up_to_the_score(capsys: pytest.CaptureFixture[str]) -> None:
    found, _ = frames(capsys, "Puzzle2048-v0", "--agent", "greedy", "--seed", "8")
    total = 0
    for frame in found[1:]:
        reward, score = re.search(r"reward \+(\d+)   score ([\d,]+)", frame).groups()
        total += int(reward)
        assert int(score.replace(",", "")) == total


def test_freecell_moves_are_standard_notation_and_legal_ones_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    found, last = frames(capsys, "FreeCell-v0", "--agent", "greedy", "--deal", "617", "--seed", "1")
    board = deal_board(617)
    offered: list[str] = []
    for number, frame in enumerate(found):
        assert "deal 617" in frame
        text = re.search(rf"^move {number}: (\S+)", frame, re.M).group(1)
        if number:
            assert text in offered or "..." in offered
            board, _, legal = apply(board, parse_move(board, text))
            assert legal
        listed = re.search(r"^legal(?: \(\d+\))?: ((?:.|\n)*)\Z", frame.rstrip(), re.M).group(1)
        offered = listed.split()
    home = sum((int(x) + 3) // 4 for x in board[0, 4:])
    assert ("won, all 52" if home == 52 else f"{home} of 52 cards are home") in last


def test_seed_places_the_game_of_evaluate(capsys: pytest.CaptureFixture[str]) -> None:
    found, last = frames(capsys, "FreeCell-v0", "--agent", "random", "--seed", "11")
    chosen = games("FreeCell-v0", 1, 11)
    assert f"deal {chosen.options['deal'][0]} " in found[0]
    played = play(load("FreeCell-v0", "random"), chosen)
    assert len(found) == played.moves[0] + 1
    assert "won" in last or f"{int(played.scores[0])} of 52" in last


def test_game_without_a_seed_can_be_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    found, last = frames(capsys, "FreeCell-v0", "--agent", "random")
    seed = re.search(r"seed (\d+)", found[0]).group(1)
    assert frames(capsys, "FreeCell-v0", "--agent", "random", "--seed", seed) == (found, last)


def test_largest_deal_is_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    found, _ = frames(capsys, "FreeCell-v0", "--agent", "random", "--deal", "1000000")
    assert "deal 1000000" in found[0]


def test_a_reader_that_has_enough_ends_it_quietly() -> None:
    argv = [*CALL, "Puzzle2048-v0", "--agent", "greedy", "--delay", "0.002"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("Puzzle2048-v0")
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=20) == 0


def test_ascii_pipe() -> None:
    done = subprocess.run(
        [*CALL, "FreeCell-v0", "--agent", "random", "--deal", "3"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=True,
    )
    assert done.stdout.decode("ascii").startswith("FreeCell-v0")


def on_terminal(
    *argv: str, act: Callable[[subprocess.Popen[bytes]], None] | None = None, rows: int = 24, **env: str
) -> tuple[str, int]:
    """Everything a terminal of 80 columns receives, and the exit code. ``act`` runs after the first output."""
    mine, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))
    variables = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "LINES")}
    process = subprocess.Popen(
        [*CALL, *argv],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**variables, "TERM": "xterm-256color", **env},
    )
    os.close(theirs)
    data = b""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if not select.select([mine], [], [], 0.2)[0]:
            continue
        try:
            chunk = os.read(mine, 65536)
        except OSError:  # Linux: the other end is closed
            break
        if not chunk:
            break
        data += chunk
        if act and b"move 0" in data:
            act(process)
            act = None
    os.close(mine)
    return data.decode(), process.wait(timeout=10)


HIDE, SHOW, HOME = "\x1b[?25l", "\x1b[?25h", "\x1b[H"


def test_in_place_on_a_terminal() -> None:
    out, code = on_terminal("FreeCell-v0", "--agent", "random", "--deal", "5", "--seed", "2", "--delay", "0")
    assert code == 0
    assert out.startswith(HIDE)
    assert out.count(HIDE) == out.count(SHOW) == 1
    assert out.index(SHOW) > out.rindex(HOME)
    assert out.count("\x1b[2J") == 1, "clearing between pictures flickers"
    pictures = out.split(HOME)[1:]
    assert len(pictures) > 10
    for number, text in enumerate(pictures):
        assert text.startswith("FreeCell-v0, agent random, seed 2")
        assert f"move {number}: " in text
        assert text.count("\n") <= 24
    assert "\x1b[1;31m" in out
    assert "Over after" in pictures[-1]


def test_no_color_on_a_terminal() -> None:
    out, code = on_terminal("FreeCell-v0", "--agent", "random", "--deal", "5", "--delay", "0", NO_COLOR="1")
    assert code == 0
    assert re.search(r"\x1b\[[0-9;]*m", out) is None
    assert HOME in out


def test_dumb_terminal_gets_plain_pictures() -> None:
    out, code = on_terminal("Puzzle2048-v0", "--agent", "random", "--delay", "0", TERM="dumb")
    assert code == 0
    assert "\x1b" not in out


def test_small_terminal_never_scrolls() -> None:
    out, code = on_terminal("FreeCell-v0", "--agent", "random", "--deal", "5", "--delay", "0", rows=10)
    assert code == 0
    for text in out.split(HOME)[1:-1]:
        assert text.count("\n") <= 9


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_cursor_comes_back_after_a_signal(number: int, code: int) -> None:
    out, ended = on_terminal(
        "Puzzle2048-v0", "--agent", "greedy", "--delay", "0.2", act=lambda process: process.send_signal(number)
    )
    assert ended == code
    assert SHOW in out
    assert out.index(SHOW) > out.rindex(HOME)
    assert "Traceback" not in out
