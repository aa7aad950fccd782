"""Recordings: what other programs read from them, and what is left when something goes wrong."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pyte
import pytest
from PIL import Image, ImageSequence
from puzzlegym.envs.common import ansi
from puzzlegym.envs.common.recording import FORMATS, LAST_SECONDS, Recording, RecordingError
from puzzlegym.envs.common.recording_formats import Canvas
from puzzlegym.envs.common.text_image import CELL, draw

every_suffix = pytest.mark.parametrize("suffix", FORMATS)
TEXTS = [f"\x1b[1;31mmove {n}\x1b[0m ♥♠\n\x1b[48;5;214m  {1 << n}  \x1b[0m|" + "\nmore lines" * n for n in range(4)]
PLAIN = [ansi.plain(text) for text in TEXTS]


def images(count=4, height=41, width=63):
    """Flat colours, so that every format can show them exactly (or nearly)."""
    made = [np.full((height, width, 3), (20, 60, 90), dtype=np.uint8) for _ in range(count)]
    for n, image in enumerate(made):
        image[10 : 20 + n, 5 * n : 5 * n + 20] = (200, 30 * n, 250 - 20 * n)
    return made


def record(path, texts=TEXTS, pictures=None, seconds=0.25, title="a game"):
    with Recording(path, seconds, title) as recording:
        for n, text in enumerate(texts):
            recording.add(text, None if pictures is None else pictures[n])
    return recording


def decoded_gif(path):
    with Image.open(path) as file:
        assert file.info["loop"] == 0
        frames = [(np.asarray(frame.convert("RGB")), frame.info["duration"]) for frame in ImageSequence.Iterator(file)]
        assert len(frames) == file.n_frames
    return [image for image, _ in frames], [duration for _, duration in frames]


def decoded_mp4(path):
    """What ffmpeg says about the stream, and all frames (imageio_ffmpeg.read_frames leaves its pipes open)."""
    read = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    done = subprocess.run(read, capture_output=True, check=True)
    facts = re.search(r"Video: .*", done.stderr.decode())[0]
    width, height = map(int, re.search(r" (\d+)x(\d+)[, ]", facts).groups())
    return facts, np.frombuffer(done.stdout, dtype=np.uint8).reshape(-1, height, width, 3)


def test_cast_is_asciicast_2(tmp_path):
    path = tmp_path / "game.cast"
    record(path, title="ein Spiel ♥")
    header, *events = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    assert header["version"] == 2
    assert (header["width"], header["height"]) == (len("more lines"), 5)
    assert header["title"] == "ein Spiel ♥"
    assert header["env"] == {"TERM": "xterm-256color"}
    assert "timestamp" not in header
    assert all(kind == "o" and type(data) is str for _, kind, data in events)
    assert [time for time, *_ in events] == [0, 0, 0.25, 0.5, 0.75, 0.75 + LAST_SECONDS]


def test_cast_shows_each_picture_alone_and_never_scrolls(tmp_path):
    path = tmp_path / "game.cast"
    texts = [*TEXTS[::-1], TEXTS[2] + "\n"]
    record(path, texts)
    header, *events = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    screen = pyte.HistoryScreen(header["width"], header["height"])
    stream = pyte.Stream(screen)
    stream.feed(events[0][2])
    for text, (_, _, data) in zip(texts, events[1:-1], strict=True):
        assert "\n" not in data.replace("\r\n", "")
        stream.feed(data)
        shown = "\n".join(line.rstrip() for line in screen.display).rstrip()
        assert shown == ansi.plain(text).rstrip()
        assert screen.cursor.hidden
    assert (screen.buffer[0][0].fg, screen.buffer[0][0].bold) == ("red", True)
    stream.feed(events[-1][2])
    assert not screen.cursor.hidden
    assert not screen.history.top


@every_suffix
def test_the_same_game_gives_the_same_bytes(tmp_path, suffix):
    first, second = (record(tmp_path / f"{name}{suffix}").path.read_bytes() for name in "ab")
    assert first == second


def test_text_has_no_colours_and_a_blank_line_after_each_picture(tmp_path):
    record(tmp_path / "game.txt")
    assert (tmp_path / "game.txt").read_text(encoding="utf-8") == "".join(f"{text}\n\n" for text in PLAIN)


def test_gif_shows_the_images_exactly(tmp_path):
    pictures = images()
    pictures.insert(2, pictures[1])  # nothing changes here
    record(tmp_path / "game.gif", [""] * 5, pictures)
    shown, durations = decoded_gif(tmp_path / "game.gif")
    assert durations == [250] * 4 + [2000]
    for there, image in zip(shown, pictures, strict=True):
        assert np.array_equal(there, image)


def test_gif_holds_only_what_changed(tmp_path):
    rng = np.random.default_rng(0)
    first = rng.integers(0, 256, (200, 200, 3), dtype=np.uint8)
    second = first.copy()
    second[50:60, 70:80] = 0
    record(tmp_path / "one.gif", [""], [first])
    record(tmp_path / "two.gif", [""] * 2, [first, second])
    assert (tmp_path / "two.gif").stat().st_size < (tmp_path / "one.gif").stat().st_size + 1000
    (before, after), _ = decoded_gif(tmp_path / "two.gif")
    assert (before != after).any(axis=2).sum() <= 100
    assert not after[50:60, 70:80].any()


@pytest.mark.parametrize(("fps", "durations"), [(30, [30, 40, 30, 30, 40, 30, 30, 40]), (1000, [20] * 8)])
def test_gif_times_are_whole_hundredths_and_do_not_drift(tmp_path, fps, durations):
    record(tmp_path / "game.gif", [""] * 9, images(9), seconds=1 / fps)
    assert decoded_gif(tmp_path / "game.gif")[1][:-1] == durations


@pytest.mark.parametrize(
    ("seconds", "frames", "length"), [(0.1, 3 + 20, 2.3), (0.25, 3 * 2 + 16, 2.75), (1.0, 3 * 5 + 10, 5.0)]
)
def test_mp4_lasts_as_long_as_it_should(tmp_path, seconds, frames, length):
    """Pictures that stay long are written several times, as players expect five a second; the last is held."""
    record(tmp_path / "game.mp4", [""] * 4, images(), seconds)
    assert imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "game.mp4")) == (frames, pytest.approx(length, abs=0.02))


def test_mp4_is_what_every_player_shows(tmp_path):
    pictures = images()
    record(tmp_path / "game.mp4", [""] * 4, pictures, 0.1)
    facts, shown = decoded_mp4(tmp_path / "game.mp4")
    assert re.match(r"Video: h264 .*yuv420p", facts)
    assert shown.shape == (23, 42, 64, 3), "even"
    assert np.abs(shown[0][12:18, 4:16].astype(int) - pictures[0][12:18, 4:16]).mean() < 8
    assert np.abs(shown[-1][12:18, 20:30].astype(int) - pictures[-1][12:18, 20:30]).mean() < 8


@pytest.mark.parametrize("suffix", [".gif", ".mp4"])
def test_text_is_drawn_where_there_is_no_image(tmp_path, suffix):
    """With room for a quarter more lines; a text that is still too large is shrunk."""
    texts = ["line\n" * 8 + "end", "line\n" * 10 + "end", "\x1b[41m" + "wide " * 20]
    record(tmp_path / f"game{suffix}", texts, seconds=0.1)
    shown = decoded_gif(tmp_path / "game.gif")[0] if suffix == ".gif" else decoded_mp4(tmp_path / "game.mp4")[1]
    assert len({image.shape for image in shown}) == 1
    expected = draw(texts[1], 4, 11)
    assert np.abs(shown[1][: len(expected), : expected.shape[1]].astype(int) - expected).mean() < 4
    red = shown[2].astype(int) @ [2, -1, -1] > 100
    assert np.flatnonzero(red.any(axis=0))[[0, -1]] == pytest.approx([1, shown[2].shape[1] - 2], abs=2)


@pytest.mark.parametrize(
    ("code", "ink", "ground"),
    [
        ("", (197, 200, 198), (41, 41, 41)),
        ("38;5;196", (255, 0, 0), (41, 41, 41)),
        ("38;2;1;2;3;48;2;200;201;202", (1, 2, 3), (200, 201, 202)),
        ("7;38;5;21;48;5;226", (255, 255, 0), (0, 0, 255)),
        ("2;38;2;101;101;101;48;2;1;1;1", (51, 51, 51), (1, 1, 1)),
    ],
)
def test_colours_of_drawn_text(code, ink, ground):
    """A character of full height and width, and a space."""
    image = draw(f"x\x1b[{code}m█ \x1b[0m")
    y, x = image.shape[0] // 2, image.shape[1] // 2
    assert tuple(image[y, x]) == ink
    assert tuple(image[y, x + CELL[0]]) == ground


@pytest.fixture
def _without_matplotlib(monkeypatch):
    from puzzlegym.envs.common import text_image

    for cached in (text_image._font, text_image._cell):
        cached.cache_clear()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    yield
    for cached in (text_image._font, text_image._cell):
        cached.cache_clear()


def assert_drawn_on_the_grid():
    image = draw("iW.\n\x1b[1mi\x1b[0m\U0001f600|")
    assert image.shape == draw("    \n    ").shape
    ground = image[0, 0]
    ink = (image != ground).any(axis=2)[11:-11, 11:-11]
    cells = [[ink[y : y + 22, x : x + 11] for x in (0, 11, 22)] for y in (0, 22)]
    i, wide, dot = (cell.sum() for cell in cells[0])
    assert wide > i > dot > 0
    assert cells[1][0].sum() > i, "bold"
    assert not cells[1][1].any(), "two columns, no box for a character that the font lacks"


def test_drawn_text_stands_in_cells():
    assert_drawn_on_the_grid()


@pytest.mark.usefixtures("_without_matplotlib")
def test_drawn_text_stands_in_cells_without_matplotlib():
    assert_drawn_on_the_grid()
    wide = draw("W")[11:-11, 11:-11].astype(int)
    assert np.abs(wide - wide[:, ::-1]).mean() < 15, "the whole W, made narrower"


@every_suffix
def test_file_appears_when_it_is_complete(tmp_path, suffix):
    path = tmp_path / f"game{suffix}"
    path.write_text("old")
    with Recording(path, 0.1) as recording:
        recording.add("one", images()[0])
        recording.add("two", images()[1])
        assert path.read_text() == "old"
        assert sorted(name.startswith(".") for name in os.listdir(tmp_path)) == [False, True]
    assert os.listdir(tmp_path) == [path.name]
    assert path.stat().st_size == recording.size > 0
    recording.close()
    assert recording.frames == 2


def stopped(path, stop):
    """Three pictures, and something happens."""
    with Recording(path, 0.1) as recording:
        for text in TEXTS[:3]:
            recording.add(text)
        raise stop


@every_suffix
def test_error_removes_the_recording_and_keeps_the_old_file(tmp_path, suffix):
    path = tmp_path / f"game{suffix}"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError):
        stopped(path, ZeroDivisionError)
    assert os.listdir(tmp_path) == [path.name]
    assert path.read_text() == "old"


@every_suffix
def test_without_a_picture_there_is_no_file(tmp_path, suffix):
    record(tmp_path / f"game{suffix}", [])
    assert not os.listdir(tmp_path)


def drawn_last(texts):
    """The last of several texts as an image."""
    return Canvas().draw(texts[-1], None)


def test_png_is_the_last_picture(tmp_path):
    path = tmp_path / "game.png"
    with Recording(path, 0.1, "A title: é") as recording:
        for image in images()[:3]:
            recording.add("text", image)
    with Image.open(path) as picture:
        assert (np.asarray(picture) == images()[2]).all()
        assert picture.text["Title"] == "A title: é"


def pictures_in(path):
    counts = {
        ".cast": lambda: path.read_text(encoding="utf-8").count("[2J"),
        ".gif": lambda: len(decoded_gif(path)[0]),
        ".mp4": lambda: imageio_ffmpeg.count_frames_and_secs(str(path))[0] - 19,
        ".png": lambda: 3 if (np.asarray(Image.open(path)) == drawn_last(TEXTS[:3])).all() else 0,
        ".txt": lambda: path.read_text(encoding="utf-8").count("\n\n"),
    }
    return counts[path.suffix]()


@every_suffix
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, BrokenPipeError])
def test_stopping_keeps_what_was_recorded(tmp_path, suffix, stop):
    path = tmp_path / f"game{suffix}"
    with pytest.raises(stop):
        stopped(path, stop)
    assert os.listdir(tmp_path) == [path.name]
    assert pictures_in(path) == 3


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
from puzzlegym.envs.common.recording import Recording
signal.signal(signal.SIGINT, signal.default_int_handler)  # some parents hand it down as ignored
rng = np.random.default_rng(0)
picture = rng.integers(0, 256, (500, 500, 3), dtype=np.uint8)
with Recording(sys.argv[1], 0.1) as recording:
    for n in range(100_000):
        recording.add(str(n), np.roll(picture, n, axis=0))
        if n == 5:
            print("go", flush=True)
"""


@pytest.mark.parametrize("suffix", [".gif", ".mp4"])
def test_ctrl_c_while_a_picture_is_written_leaves_a_whole_file(tmp_path, suffix):
    """Nearly all the time goes into writing, so that is where it strikes: in the middle of a frame for ffmpeg."""
    path = tmp_path / f"game{suffix}"
    argv = [sys.executable, "-c", INTERRUPTED, str(path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout.readline() == b"go\n"
        os.killpg(process.pid, signal.SIGINT)  # to ffmpeg, too, as from a terminal
        try:
            errors = process.communicate(timeout=60)[1]
        finally:
            process.kill()
    assert b"KeyboardInterrupt" in errors.splitlines()[-1]
    assert os.listdir(tmp_path) == [path.name]
    frames = pictures_in(path) if suffix == ".gif" else imageio_ffmpeg.count_frames_and_secs(str(path))[0]
    assert frames >= 5


class TornPipe:
    """To ffmpeg: Ctrl-C comes in the middle of the next frame."""

    def __init__(self, pipe):
        self.write_whole = pipe.write

    def write(self, frame):
        self.write_whole(frame[:1000])
        raise KeyboardInterrupt


def test_frame_that_is_cut_off_is_the_last(tmp_path, monkeypatch):
    path = tmp_path / "game.mp4"
    with Recording(path, 0.1) as recording:
        for picture in images():
            recording.add("", picture)
        with monkeypatch.context() as patch:
            patch.setattr(recording._format._ffmpeg, "stdin", TornPipe(recording._format._ffmpeg.stdin))
            with pytest.raises(KeyboardInterrupt):
                recording.add("", images()[0])
    assert imageio_ffmpeg.count_frames_and_secs(str(path))[0] == 3


def full_disk(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("suffix", [".cast", ".gif", ".txt"])
@pytest.mark.parametrize("when", ["add", "close"])
def test_full_disk_is_said_in_one_line(tmp_path, suffix, when, monkeypatch):
    path = tmp_path / f"game{suffix}"
    path.write_text("old")
    recording = Recording(path, 0.1)
    for text in TEXTS[: 1 if when == "add" else 3]:
        recording.add(text)
    real = recording._format._file
    monkeypatch.setattr(recording._format, "_file", type("Full", (), {"write": full_disk, "close": real.close})())
    with pytest.raises(RecordingError, match=rf"game{suffix} cannot be written: No space left on device$"):
        recording.add("next") if when == "add" else recording.close()
    assert os.listdir(tmp_path) == [path.name]
    assert path.read_text() == "old"
    recording.close()


@pytest.mark.parametrize("when", ["add", "close"])
def test_ffmpeg_that_dies_is_said_in_one_line(tmp_path, when):
    recording = Recording(tmp_path / "game.mp4", 0.1)
    for picture in images():
        recording.add("", picture)
    recording._format._ffmpeg.kill()
    recording._format._ffmpeg.wait()
    with pytest.raises(RecordingError, match=r"game.mp4 cannot be written: ffmpeg"):
        recording.add("", images()[0]) if when == "add" else recording.close()
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("game.avi", "must be one of .cast, .gif, .mp4, .png, .txt, not '.avi'"),
        ("game", "must be one of .cast, .gif, .mp4, .png, .txt, not ''"),
        ("nowhere/game.gif", "there is no folder .*nowhere"),
        ("folder.gif", "is a folder, not a file"),
    ],
)
def test_places_that_cannot_be(tmp_path, name, says):
    (tmp_path / "folder.gif").mkdir()
    with pytest.raises(RecordingError, match=says) as caught:
        Recording(tmp_path / name, 0.1)
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == ["folder.gif"]


def test_no_permission(tmp_path, monkeypatch):
    def refused(self):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr(Path, "touch", refused)
    with pytest.raises(RecordingError, match=r"game.gif cannot be written: Permission denied$"):
        Recording(tmp_path / "game.gif", 0.1)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_pace_that_is_none(tmp_path, seconds):
    with pytest.raises(RecordingError, match="more than 0 seconds"):
        Recording(tmp_path / "game.txt", seconds)


@pytest.mark.parametrize(
    "image", [np.zeros((4, 4, 3)), np.zeros((4, 4), dtype=np.uint8), np.zeros((4, 4, 4), dtype=np.uint8)]
)
def test_images_that_are_none(tmp_path, image):
    recording = Recording(tmp_path / "game.gif", 0.1)
    with pytest.raises(RecordingError, match=r"uint8 \[height, width, 3\]"):
        recording.add("", image)
    assert not os.listdir(tmp_path)


def test_image_that_its_owner_writes_over(tmp_path):
    picture = images()[0]
    with Recording(tmp_path / "game.gif", 0.1) as recording:
        for n in range(3):
            picture[...] = 50 * n
            recording.add("", picture)
    assert [int(image[0, 0, 0]) for image in decoded_gif(tmp_path / "game.gif")[0]] == [0, 50, 100]


@pytest.mark.parametrize(
    ("suffix", "module", "says"),
    [
        (".mp4", "imageio_ffmpeg", '.mp4 needs an encoder: pip install "puzzlegym[video]"'),
        (".gif", "PIL", '.gif needs Pillow: pip install "puzzlegym[play]"'),
        (".mp4", "rich", '.mp4 needs rich: pip install "puzzlegym[play]"'),
    ],
)
def test_what_is_not_installed_is_said_before_anything_else(tmp_path, suffix, module, says, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(RecordingError) as caught:
        Recording(tmp_path / f"game{suffix}", 0.1)
    assert str(caught.value) == says
    assert not os.listdir(tmp_path)
    record(tmp_path / "game.cast")
    record(tmp_path / "game.txt")


def test_no_ffmpeg_for_this_machine(tmp_path, monkeypatch):
    def nothing():
        raise RuntimeError("No ffmpeg exe could be found.")

    monkeypatch.setattr(imageio_ffmpeg, "get_ffmpeg_exe", nothing)
    with pytest.raises(RecordingError, match=r"^.mp4 needs an encoder: No ffmpeg exe could be found.$"):
        Recording(tmp_path / "game.mp4", 0.1)
    assert not os.listdir(tmp_path)


def test_memory_does_not_grow_with_the_pictures(tmp_path):
    """Text and images are let go of as they are written."""
    picture = images(1, 200, 200)[0]
    peaks = []
    for frames in (5, 200):
        with Recording(tmp_path / "game.gif", 0.1) as recording:
            tracemalloc.start()
            for n in range(frames):
                picture[n % 200] = n
                recording.add("", picture)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < peaks[0] + 10 * picture.nbytes
