"""``watch --record``: the game that is shown, in a file."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import imageio_ffmpeg
import numpy as np
import pyte
import pytest
from PIL import Image, ImageSequence
from puzzlegym import PUZZLES
from puzzlegym.agents.evaluation import games
from puzzlegym.scripts.cli import main

CALL = [sys.executable, "-m", "puzzlegym.scripts.cli", "watch"]
every_puzzle = pytest.mark.parametrize("env_id", PUZZLES)


def watched(capsys: pytest.CaptureFixture[str], path: Path, *argv: str) -> tuple[str, int, str]:
    """What was printed before the last two lines, how many moves the game had, and the last line."""
    assert main(["watch", *argv, "--agent", "random", "--record", str(path)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    shown, over, last = out.rstrip("\n").rsplit("\n", 2)
    return shown, int(re.search(r"Over after ([\d,]+) moves", over)[1].replace(",", "")), last


def size_in_words(path: Path) -> str:
    size = path.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{round(size / 1e3)} kB"


@every_puzzle
def test_text_is_what_a_pipe_gets(env_id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "game.txt"
    shown, moves, last = watched(capsys, path, env_id, "--seed", "5")
    assert path.read_text(encoding="utf-8") == f"{shown}\n"
    assert last == f"Recorded in {path}: {moves + 1} pictures, {size_in_words(path)}"


@every_puzzle
def test_cast_ends_with_the_last_picture(env_id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "game.cast"
    shown, moves, last = watched(capsys, path, env_id, "--seed", "5")
    header, *events = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    assert header["title"] == f"{env_id}, agent random, seed 5"
    assert header["width"] <= 80
    screen = pyte.Screen(header["width"], header["height"])
    stream = pyte.Stream(screen)
    for _, _, data in events:
        stream.feed(data)
    picture = "\n".join(line.rstrip() for line in screen.display).rstrip()
    assert shown.rstrip().endswith(f"\n{picture}")
    assert picture.startswith(header["title"])
    assert any(
        character.bg != "default" or character.bold for line in screen.buffer.values() for character in line.values()
    )
    assert events[-1][0] == pytest.approx(0.15 * moves + 2)
    assert f"{moves + 1} pictures" in last


@every_puzzle
def test_gif_is_the_drawn_board(env_id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "game.gif"
    _, moves, last = watched(capsys, path, env_id, "--seed", "5", "--delay", "0.001")
    with Image.open(path) as gif:
        assert gif.n_frames == moves + 1
        frames = [(np.asarray(frame.convert("RGB")), frame.info["duration"]) for frame in ImageSequence.Iterator(gif)]
    assert [duration for _, duration in frames] == [20] * moves + [2000]
    env = gym.make(env_id)
    chosen = games(env_id, 1, 5)
    env.reset(seed=int(chosen.seeds[0]), options={name: int(values[0]) for name, values in chosen.options.items()})
    first = env.unwrapped.render_as("rgb_array")  # type: ignore[attr-defined]
    assert frames[0][0].shape == first.shape
    assert np.abs(frames[0][0].astype(int) - first).mean() < 1
    assert size_in_words(path) in last


@every_puzzle
def test_mp4_has_every_move(env_id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "game.mp4"
    _, moves, _ = watched(capsys, path, env_id, "--seed", "5", "--delay", "0.01")
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(path))
    assert frames == moves + 200
    assert seconds == pytest.approx(0.01 * moves + 2, abs=0.05)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("game.avi", "the suffix of a recording must be one of .cast, .gif, .mp4, .png, .txt, not '.avi'"),
        ("nowhere/game.gif", "there is no folder"),
        ("", "is a folder"),
    ],
)
def test_wrong_files_are_refused_before_the_game(
    name: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["watch", "Puzzle2048-v0", "--agent", "random", "--record", str(tmp_path / name)]
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("puzzlegym watch: ")
    assert err.count("\n") == 1
    assert says in err


def test_missing_encoder_is_said_before_the_game(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    assert main(["watch", "Puzzle2048-v0", "--agent", "random", "--record", str(tmp_path / "game.mp4")]) == 2
    assert capsys.readouterr() == ("", 'puzzlegym watch: .mp4 needs an encoder: pip install "puzzlegym[video]"\n')


def test_unknown_agent_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["watch", "Puzzle2048-v0", "--agent", str(tmp_path / "none"), "--record", str(tmp_path / "game.cast")]
    assert main(argv) == 2
    assert "unknown agent" in capsys.readouterr().err
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_game_is_kept(number: int, code: int, tmp_path: Path) -> None:
    path = tmp_path / "game.cast"
    argv = [*CALL, "Puzzle2048-v0", "--agent", "greedy", "--seed", "1", "--delay", "0.1", "--record", str(path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while "move 2" not in process.stdout.readline():
            pass
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert "Traceback" not in err
    assert re.search(rf"^Recorded in {re.escape(str(path))}: \d+ pictures, \d+ kB\n\Z", out, re.M)
    assert os.listdir(tmp_path) == [path.name]
    last = json.loads(path.read_text(encoding="utf-8").splitlines()[-2])
    assert re.search(r"move \d+: ", last[2])


def test_reader_that_has_enough_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "game.txt"
    argv = [*CALL, "Puzzle2048-v0", "--agent", "greedy", "--delay", "0.002", "--record", str(path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=20) == 0
    assert path.read_text(encoding="utf-8").startswith("Puzzle2048-v0, agent greedy")
    assert os.listdir(tmp_path) == [path.name]


def test_recording_does_not_wait(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a pipe, a game is recorded as fast as it is played; its pace is that of the file alone."""
    before = time.monotonic()
    _, moves, _ = watched(capsys, tmp_path / "game.cast", "Puzzle2048-v0", "--seed", "5")
    assert time.monotonic() - before < 0.15 * moves / 2
