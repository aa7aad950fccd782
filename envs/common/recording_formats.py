"""The formats of recordings, one class each: they write pictures one after another and keep none but the last."""

from __future__ import annotations

import json
import math
import struct
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .ansi import plain, size

Image = NDArray[np.uint8]


class Format(Protocol):
    """Writes one recording. ``close`` finishes the file; ``abort`` lets go of it, whatever state it is in."""

    def __init__(self, path: Path, seconds: float, title: str) -> None:
        """Write to ``path``, ``seconds`` per picture."""

    def add(self, text: str, image: Image | None, seconds: float) -> None:
        """The next picture and how long it stays."""

    def close(self) -> None:
        """The recording is complete."""

    def abort(self) -> None:
        """The recording is not wanted."""


class PlainText:
    """``.txt``: the pictures without colours, a blank line after each."""

    def __init__(self, path: Path, seconds: float, title: str) -> None:
        """Text has no pace and no title."""
        self._file = path.open("wb")

    def add(self, text: str, image: Image | None, seconds: float) -> None:
        """The next picture."""
        self._file.write((plain(text).rstrip() + "\n\n").encode())

    def close(self) -> None:
        """The recording is complete."""
        self._file.close()

    abort = close


class Cast:
    """``.cast``: what a terminal is sent, as asciicast v2. The times are the recording's own, not those of a clock."""

    _CLEAR = "\x1b[0m\x1b[H\x1b[2J"
    _HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
    _ROOM = (9999, 9999)

    def __init__(self, path: Path, seconds: float, title: str) -> None:
        """The header, which says how large a terminal it needs, is written again at the end."""
        self._file, self._title = path.open("wb"), title
        self._size, self._time = (1, 1), 0.0
        self._header = len(self._write(self._heading(self._ROOM)))
        self._event(self._HIDE_CURSOR)

    def add(self, text: str, image: Image | None, seconds: float) -> None:
        """The next picture, on a cleared screen: nothing scrolls."""
        columns, lines = size(text)
        self._size = max(self._size[0], columns), max(self._size[1], lines)
        self._event(self._CLEAR + text.replace("\n", "\r\n"))
        self._time += seconds

    def close(self) -> None:
        """The last picture stays until the last event."""
        self._event(self._SHOW_CURSOR)
        self._file.seek(0)
        self._write(self._heading(self._size).ljust(self._header - 1))
        self._file.close()

    def abort(self) -> None:
        """The recording is not wanted."""
        self._file.close()

    def _heading(self, terminal: tuple[int, int]) -> str:
        heading = {"version": 2, "width": terminal[0], "height": terminal[1], "title": self._title}
        return json.dumps({**heading, "env": {"TERM": "xterm-256color"}})

    def _event(self, data: str) -> None:
        self._write(json.dumps([round(self._time, 6), "o", data], ensure_ascii=False))

    def _write(self, line: str) -> bytes:
        encoded = (line + "\n").encode()
        self._file.write(encoded)
        return encoded


class Canvas:
    """Images of one size, that of the first; a larger one is shrunk to fit.

    The first text gets a quarter more lines than it has, so that a later one may grow.
    """

    def __init__(self, multiple: int = 1) -> None:
        """Width and height will be multiples of ``multiple``."""
        self._multiple = multiple
        self._shape: tuple[int, int] | None = None
        self._grid = (0, 0)

    def draw(self, text: str, image: Image | None) -> Image:
        """``image``, or ``text`` where there is none, as uint8 ``[height, width, 3]``, the same size every time."""
        image = self._drawn(text) if image is None else image
        if self._shape is None:
            m = self._multiple
            self._shape = -(-image.shape[0] // m) * m, -(-image.shape[1] // m) * m
        return image if image.shape[:2] == self._shape else _fitted(image, self._shape)

    def _drawn(self, text: str) -> Image:
        from .text_image import draw

        if self._shape is None:
            columns, lines = size(text)
            self._grid = columns, lines + lines // 4
        return draw(text, *self._grid)


def _fitted(image: Image, shape: tuple[int, int]) -> Image:
    """``image`` in the upper left of ``shape``, shrunk if too large, its last row and column repeated if too small."""
    from PIL import Image as Images

    scale = min(shape[0] / image.shape[0], shape[1] / image.shape[1], 1)
    if scale < 1:
        width, height = (max(1, int(length * scale)) for length in (image.shape[1], image.shape[0]))
        image = np.asarray(Images.fromarray(image).resize((width, height)))
    missing = ((0, shape[0] - image.shape[0]), (0, shape[1] - image.shape[1]), (0, 0))
    return np.pad(image, missing, mode="edge")


class Gif:
    """``.gif``: an endless loop. Each picture holds what changed since the one before, with colours of its own."""

    _FASTEST = 0.02  # seconds: browsers slow down what is faster
    _COLOURS = 127  # and one for what did not change
    _LOOP = b"!\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"

    def __init__(self, path: Path, seconds: float, title: str) -> None:
        """A GIF shows no title."""
        self._file, self._canvas = path.open("wb"), Canvas()
        self._seconds, self._hundredths = 0.0, 0
        self._shown: Image | None = None

    def add(self, text: str, image: Image | None, seconds: float) -> None:
        """The next picture. Times are in hundredths of a second here; what rounding takes, the next one gets."""
        image = self._canvas.draw(text, image)
        self._seconds += max(seconds, self._FASTEST)
        hundredths = round(self._seconds * 100) - self._hundredths
        head, changed = self._head(image), np.ones(image.shape[:2], dtype=np.bool_)
        if self._shown is not None:
            head, changed = b"", (image != self._shown).any(axis=2)
        self._file.write(head + self._picture(image, changed, hundredths))
        self._hundredths += hundredths
        self._shown = image

    def _head(self, image: Image) -> bytes:
        """The size, no colours in common, and the loop."""
        return struct.pack("<6sHHxxx", b"GIF89a", image.shape[1], image.shape[0]) + self._LOOP

    def _picture(self, image: Image, changed: NDArray[np.bool_], hundredths: int) -> bytes:
        from PIL import GifImagePlugin
        from PIL import Image as Images

        rows, columns = _extent(np.flatnonzero(changed.any(axis=1))), _extent(np.flatnonzero(changed.any(axis=0)))
        reduced = Images.fromarray(image[rows, columns]).quantize(self._COLOURS, dither=Images.Dither.NONE)
        colours = (reduced.getpalette() or [])[: 3 * self._COLOURS]
        unchanged = len(colours) // 3
        picture = Images.fromarray(np.where(changed[rows, columns], np.asarray(reduced), np.uint8(unchanged)))
        picture.putpalette([*colours, 0, 0, 0])
        settings = {"duration": hundredths * 10, "transparency": unchanged, "include_color_table": True}
        return b"".join(GifImagePlugin.getdata(picture, (columns.start, rows.start), **settings))

    def close(self) -> None:
        """The recording is complete."""
        self._file.write(b";")
        self._file.close()

    def abort(self) -> None:
        """The recording is not wanted."""
        self._file.close()


def _extent(places: NDArray[np.intp]) -> slice:
    """From the first to the last of the places that changed; the very first place where there are none."""
    return slice(int(places[0]), int(places[-1]) + 1) if places.size else slice(0, 1)


class Png:
    """``.png``: the last picture alone."""

    def __init__(self, path: Path, seconds: float, title: str) -> None:
        """An image has no pace; the title goes into its description."""
        self._path, self._title = path, title
        self._last: tuple[str, Image | None] | None = None

    def add(self, text: str, image: Image | None, seconds: float) -> None:
        """What may be the last picture."""
        self._last = text, image

    def close(self) -> None:
        """The recording is complete."""
        if self._last is None:
            return
        from PIL import Image as Images
        from PIL import PngImagePlugin

        told = PngImagePlugin.PngInfo()
        told.add_text("Title", self._title)
        Images.fromarray(Canvas().draw(*self._last)).save(self._path, "png", optimize=True, pnginfo=told)

    def abort(self) -> None:
        """The recording is not wanted."""
        self._last = None


class Mp4:
    """``.mp4``: H.264 by the ffmpeg that imageio-ffmpeg brings. It runs by itself: Ctrl-C is not for it."""

    _SLOWEST = 5  # pictures a second, as players expect; a picture that stays longer is written several times

    def __init__(self, path: Path, seconds: float, title: str) -> None:
        """RuntimeError: there is no ffmpeg."""
        from imageio_ffmpeg import get_ffmpeg_exe

        self._path, self._title, self._program = path, title, get_ffmpeg_exe()
        self._rate = Fraction(math.ceil(seconds * self._SLOWEST) / seconds).limit_denominator(1000)
        self._canvas = Canvas(multiple=2)  # half as many pixels of colour as of light
        self._ffmpeg: subprocess.Popen[bytes] | None = None
        self._torn = False

    def add(self, text: str, image: Image | None, seconds: float) -> None:
        """The next picture. OSError: ffmpeg gave up."""
        image = self._canvas.draw(text, image)
        if self._ffmpeg is None:
            self._ffmpeg = self._start(image.shape[1], image.shape[0])
        for _ in range(max(1, round(seconds * self._rate))):
            self._write(image.tobytes())

    def _start(self, width: int, height: int) -> subprocess.Popen[bytes]:
        raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(self._rate), "-i", "-"]
        coded = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "20", "-movflags", "+faststart"]
        title = ["-metadata", f"title={self._title}"]
        return subprocess.Popen(
            [self._program, "-y", "-v", "error", *raw, *coded, *title, "-f", "mp4", str(self._path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # the same on Windows
        )

    def _write(self, frame: bytes) -> None:
        """One frame. After one that Ctrl-C cut off, the next would begin in its middle: there is none."""
        if self._torn or self._ffmpeg is None or self._ffmpeg.stdin is None:
            return
        self._torn = True
        try:
            self._ffmpeg.stdin.write(frame)
        except OSError:  # ffmpeg has ended, and says why
            self.close()
            raise
        self._torn = False

    def close(self) -> None:
        """The recording is complete. OSError: ffmpeg gave up."""
        if self._ffmpeg is None:
            return
        _, errors = self._ffmpeg.communicate()
        if self._ffmpeg.returncode:
            raise OSError(f"ffmpeg: {errors.decode(errors='replace').strip().rpartition(chr(10))[2]}")

    def abort(self) -> None:
        """The recording is not wanted."""
        if self._ffmpeg is not None:
            self._ffmpeg.kill()
            self._ffmpeg.communicate()
