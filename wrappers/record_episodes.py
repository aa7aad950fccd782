"""Recordings of whole episodes, of any environment that shows itself as text or as images."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from ..envs.common.checks import whole_number
from ..envs.common.recording import DRAWN, FORMATS, Recording, RecordingError, format_of
from ._batch import AnyEnv, Infos, Step

_FPS = 10.0  # where neither the user nor the environment says
# What each render mode can be recorded into, and what its pictures are.
_SUFFIXES = {"ansi": tuple(FORMATS), "rgb_array": DRAWN}
_PICTURES = {"ansi": (str, "text"), "rgb_array": (np.ndarray, "an array")}


class RecordEpisodes(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Records every ``every``-th episode into a file of its own and changes nothing else.

    For any single environment made with ``render_mode="ansi"`` or ``"rgb_array"``. The files are ``.cast`` (terminal,
    for asciinema), ``.gif``, ``.mp4``, ``.png`` (the last picture) and ``.txt``; images can become all but ``.cast``
    and ``.txt``. A file is complete when its episode ends, at the next ``reset``, or at ``close``. Copies of the
    environment record nothing.

    Example:
        >>> import gymnasium, puzzlegym, tempfile
        >>> from pathlib import Path
        >>> from puzzlegym.wrappers import RecordEpisodes
        >>> folder = tempfile.TemporaryDirectory()
        >>> env = RecordEpisodes(gymnasium.make("Puzzle2048-v0", render_mode="ansi"), folder.name, suffix=".txt")
        >>> obs, info = env.reset(seed=0, options={"board": [[1, 1, 2, 3]] + [[0] * 4] * 3})
        >>> obs, reward, terminated, truncated, info = env.step(3)
        >>> env.close()
        >>> print(Path(folder.name, "episode-000000.txt").read_text().splitlines()[2])
        |   2    |   2    |   4    |   8    |
        >>> folder.cleanup()
    """

    def __init__(
        self,
        env: AnyEnv,
        folder: str | Path,
        every: int = 1,
        suffix: str | Sequence[str] = ".cast",
        name_prefix: str = "episode",
        fps: float | None = None,
    ) -> None:
        """Record the episodes 0, ``every``, 2 ``every``, ... into ``folder/name_prefix-000000.cast`` and so on.

        Args:
            env: the environment.
            folder: where the files go; it is made, files of the same names are replaced.
            every: how many episodes from one that is recorded to the next.
            suffix: one format or several.
            name_prefix: how the names of the files begin; environments that share a folder need different ones.
            fps: pictures a second; None: ``env.metadata["render_fps"]``, or 10.

        Raises ValueError for a suffix, render mode or number that cannot be, or a format that needs a library which
        is not installed. While recording, ValueError says which file could not be written.
        """
        RecordConstructorArgs.__init__(
            self, folder=str(folder), every=every, suffix=suffix, name_prefix=name_prefix, fps=fps
        )
        super().__init__(env)
        self._suffixes = [suffix] if isinstance(suffix, str) else list(suffix)
        self._every = _checked_every(every)
        self._seconds = 1 / _checked_fps(env.metadata.get("render_fps", _FPS) if fps is None else fps)
        _check_mode(env.render_mode, self._suffixes)
        self._start, self._episode = Path(folder, name_prefix), -1
        self._start.parent.mkdir(parents=True, exist_ok=True)
        self._recordings: list[Recording] = []
        weakref.finalize(self, _close, self._recordings)  # for those who never call close()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Infos]:
        """Start an episode and, if it is its turn, its recording."""
        _close(self._recordings)
        answer = self.env.reset(seed=seed, options=options)
        self._episode += 1
        if self._episode % self._every == 0:
            self._open()
            self._record()
        return answer

    def step(self, action: Any) -> Step:
        """Make a step."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        if self._recordings:
            self._record()
        if terminated or truncated:
            _close(self._recordings)
        return obs, reward, terminated, truncated, info

    def close(self) -> None:
        """Complete the recording and close the environment."""
        try:
            _close(self._recordings)
        finally:
            super().close()

    def _open(self) -> None:
        title = f"{self.spec.id if self.spec else self.unwrapped}, episode {self._episode}"
        for suffix in self._suffixes:
            path = self._start.with_name(f"{self._start.name}-{self._episode:06d}{suffix}")
            self._recordings.append(Recording(path, self._seconds, title))

    def _record(self) -> None:
        picture: Any = self.env.render()
        wanted, name = _PICTURES[str(self.env.render_mode)]
        try:
            if not isinstance(picture, wanted):
                raise RecordingError(f"render() must return {name}, not {type(picture).__name__}")
            for recording in self._recordings:
                recording.add(*((picture, None) if wanted is str else ("", picture)))
        except Exception:
            _discard(self._recordings)
            raise

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: they record nothing, as their files would be those of the original."""
        return {**self.__dict__, "_suffixes": [], "_recordings": []}


def _close(recordings: list[Recording]) -> None:
    while recordings:
        recordings.pop().close()


def _discard(recordings: list[Recording]) -> None:
    while recordings:
        recordings.pop().discard()


def _checked_every(every: int) -> int:
    number = whole_number(every)
    if number is None or number < 1:
        raise ValueError(f"every must be a whole number from 1, not {every!r}")
    return number


def _checked_fps(fps: float) -> float:
    if not (math.isfinite(fps) and fps > 0):
        raise ValueError(f"fps must be more than 0, not {fps}")
    return fps


def _check_mode(mode: str | None, suffixes: list[str]) -> None:
    """Can every suffix be recorded, here and from this render mode?"""
    if mode not in _SUFFIXES:
        raise ValueError(f"recording needs render_mode {' or '.join(map(repr, _SUFFIXES))}, not {mode!r}")
    for suffix in suffixes:
        format_of(suffix)
        if suffix not in _SUFFIXES[mode]:
            raise ValueError(f'render_mode={mode!r} records {", ".join(_SUFFIXES[mode])}; {suffix} needs "ansi"')
