"""Lines out of a Minari dataset, for learners that take them from the solver else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import minari
import numpy as np
from numpy.typing import NDArray

from ..envs.freecell.state import SHAPE, SQUARES
from .errors import AgentError
from .lines import Line
from .seeds import TEST_DEALS


class DatasetLines:
    """The won games of a FreeCell dataset, again and again in random order.

    ``puzzlegym dataset`` writes such ones, and so does ``minari.DataCollector`` with ``record_infos=True``.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        """Read all. Raises AgentError for what is no such dataset, and for games of test deals."""
        self._lines = [line for episode in _episodes(folder) if (line := _line(episode, folder))]
        if not self._lines:
            raise AgentError(f"{folder} holds no won game of FreeCell-v0")
        self._rng = np.random.default_rng(seed)
        self._order: list[int] = []

    def __len__(self) -> int:
        """How many lines there are."""
        return len(self._lines)

    def fresh(self) -> Line:
        """The next line."""
        if not self._order:
            self._order = self._rng.permutation(len(self._lines)).tolist()
        return self._lines[self._order.pop()]


def _episodes(folder: Path) -> Iterator[minari.EpisodeData]:
    """The episodes of a dataset of FreeCell games."""
    data = folder / "data" if (folder / "data").is_dir() else folder
    try:
        dataset = minari.MinariDataset(str(data))
        _check(dataset, folder)
        yield from dataset.iterate_episodes()
    except AgentError:
        raise
    except (OSError, KeyError, ValueError, AssertionError, AttributeError) as error:
        raise AgentError(f"{folder} is no Minari dataset ({' '.join(str(error).split()) or 'unreadable'})") from None


def _check(dataset: minari.MinariDataset, folder: Path) -> None:
    if dataset.env_spec is None or dataset.env_spec.id != "FreeCell-v0":
        raise AgentError(f"{folder} holds games of {dataset.env_spec and dataset.env_spec.id}, not of FreeCell-v0")
    space = dataset.observation_space
    if space.shape != SHAPE or not np.issubdtype(space.dtype, np.integer):
        raise AgentError(f"{folder} holds other observations than those of FreeCell-v0")


def _line(episode: minari.EpisodeData, folder: Path) -> Line | None:
    """The line of an episode, or None if it was not won."""
    infos = episode.infos or {}
    if not {"deal", "is_success"} <= set(infos):
        raise AgentError(f"{folder} does not hold the infos deal and is_success of its games")
    deal = int(infos["deal"][0])
    if TEST_DEALS[0] <= deal <= TEST_DEALS[1]:
        raise AgentError(f"{folder} holds test deal {deal}: learn from deals above {TEST_DEALS[1]:,} only")
    if not infos["is_success"][-1]:
        return None
    told = np.asarray(episode.observations[:-1])
    if told.shape[1:] != SHAPE:  # each is the content of a .jpg file
        raise AgentError(
            f"{folder} holds pictures in place of boards, as Minari 0.5.3 writes them: use another version"
        )
    boards: NDArray[np.uint8] = np.ascontiguousarray(told, dtype=np.uint8).reshape(-1, SQUARES)
    return Line(boards.view(np.uint64), np.asarray(episode.actions, dtype=np.int64))
