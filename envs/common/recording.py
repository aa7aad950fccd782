"""Recordings of games: one picture after another into a file whose suffix says which format."""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

import numpy as np

from .files import beside, put_in_place
from .recording_formats import Cast, Format, Gif, Image, Mp4, PlainText, Png

FORMATS: dict[str, type[Format]] = {".cast": Cast, ".gif": Gif, ".mp4": Mp4, ".png": Png, ".txt": PlainText}
DRAWN = (".gif", ".mp4", ".png")  # made of images; the others are made of text
LAST_SECONDS = 2.0  # how long the last picture stays

# What the formats need beyond numpy, by import name, and that as it is put to the user with the extra that brings it.
_IMAGES = ("PIL", "rich")
_NEEDS = {".gif": _IMAGES, ".mp4": ("imageio_ffmpeg", *_IMAGES), ".png": _IMAGES}
_NAMES = {"imageio_ffmpeg": ("an encoder", "video"), "PIL": ("Pillow", "play"), "rich": ("rich", "play")}

_Picture = tuple[str, Image | None]


class RecordingError(ValueError):
    """A recording cannot be made. The message is one line for the user."""


def format_of(suffix: str) -> type[Format]:
    """The format that a file with this suffix gets. Raises RecordingError if there is none, or not here."""
    if suffix not in FORMATS:
        raise RecordingError(f"the suffix of a recording must be one of {', '.join(FORMATS)}, not {suffix!r}")
    for module in _NEEDS.get(suffix, ()):
        if find_spec(module) is None:
            name, extra = _NAMES[module]
            raise RecordingError(f'{suffix} needs {name}: pip install "puzzlegym[{extra}]"')
    return FORMATS[suffix]


class Recording:
    """A game that is being recorded. The file appears when it is complete; until then it is a hidden one beside it.

    In a ``with`` statement the end, Ctrl-C and a reader who left keep what was recorded so far; an error removes it.
    """

    def __init__(self, path: Path | str, seconds: float, title: str = "") -> None:
        """Record into ``path``, each picture shown for ``seconds``, the last for two seconds or more.

        Raises RecordingError, before anything is recorded: unknown suffix, a place that cannot be written, a format
        that needs what is not installed, a pace that is none.
        """
        self.path, self.frames = Path(path), 0
        self.size = 0  # of the complete file, in bytes
        if not (math.isfinite(seconds) and seconds > 0):
            raise RecordingError(f"a recording needs more than 0 seconds per picture, not {seconds}")
        _check_place(self.path)
        kind = format_of(self.path.suffix)
        self._seconds = seconds
        self._waiting: _Picture | None = None  # until it is known how long it stays
        self._temporary = _begun(self.path)
        try:
            self._format = kind(self._temporary, seconds, title)
        except RuntimeError as error:  # imageio-ffmpeg is there, but has no ffmpeg for this machine
            self._temporary.unlink()
            raise RecordingError(f"{self.path.suffix} needs an encoder: {error}") from None
        self._open = True

    @property
    def drawn(self) -> bool:
        """Is it made of images?"""
        return self.path.suffix in DRAWN

    def add(self, text: str, image: Image | None = None) -> None:
        """The next picture, as text and, for ``.gif`` and ``.mp4``, as an image (uint8 ``[height, width, 3]``).

        Without an image these two draw the text. The first picture sets their size. RecordingError: it cannot be
        written, or is no image; the recording is given up.
        """
        try:
            before, self._waiting = self._waiting, (text.rstrip("\n"), _checked(image))
            self.frames += 1
            self._write(before, self._seconds)
        except Exception as error:
            self.discard()
            raise self._failure(error) from error

    def close(self) -> None:
        """Complete the file and put it in its place; a recording without pictures leaves none. Once is enough."""
        if not self._open:
            return
        try:
            self._write(self._waiting, max(self._seconds, LAST_SECONDS))
            self._format.close()
            if self.frames:
                put_in_place(self._temporary, self.path)
                self.size = self.path.stat().st_size
        except Exception as error:
            raise self._failure(error) from error
        finally:
            self.discard()

    def discard(self) -> None:
        """Give up the recording, if it is not complete yet: no file is left."""
        if self._open:
            self._open = False
            self._format.abort()
            self._temporary.unlink(missing_ok=True)

    def _write(self, picture: _Picture | None, seconds: float) -> None:
        if picture is not None:
            self._format.add(*picture, seconds)

    def _failure(self, error: Exception) -> Exception:
        if not isinstance(error, OSError):
            return error
        return RecordingError(f"{self.path} cannot be written: {error.strerror or error}")

    def __enter__(self) -> Recording:
        """The recording itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Keep the recording, or remove it after an error."""
        if isinstance(error, Exception) and not isinstance(error, BrokenPipeError):
            self.discard()
        else:
            self.close()


def _checked(image: Image | None) -> Image | None:
    """A copy of ``image``, which may be written over by its owner."""
    if image is None:
        return None
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or not image.size:
        raise RecordingError(f"an image must be uint8 [height, width, 3], not {image.dtype} {list(image.shape)}")
    return image.copy()


def _check_place(path: Path) -> None:
    if path.is_dir():
        raise RecordingError(f"{path} is a folder, not a file to record into")
    if not path.parent.is_dir():
        raise RecordingError(f"{path}: there is no folder {path.parent}")


def _begun(path: Path) -> Path:
    """A new temporary file beside ``path``."""
    temporary = beside(path)
    try:
        temporary.touch()
    except OSError as error:
        raise RecordingError(f"{path} cannot be written: {error.strerror}") from None
    return temporary
