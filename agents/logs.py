"""The log of a training run: a row of running figures after each rollout, as CSV."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import AgentError

FILE = "log.csv"
RECENT = 500  # ended games that the running figures speak of
_STEPS, _SECONDS = "steps", "seconds"


def _reached(tile: int, info: dict[str, Any]) -> float:
    return float(info["max_tile"] >= tile)


# Running figures by puzzle: name -> how to read it from the last infos of ended games.
FIGURES: dict[str, dict[str, Callable[[dict[str, Any]], float]]] = {
    "Puzzle2048-v0": {
        "score": lambda info: info["score"],
        **{str(tile): partial(_reached, tile) for tile in (512, 1024, 2048, 4096, 8192, 16384)},
    },
    "FreeCell-v0": {"home": lambda info: info["cards_home"], "win": lambda info: info["is_success"]},
}


class Recent:
    """The last games of a puzzle that ended, and what there is to say of them."""

    def __init__(self, env_id: str) -> None:
        """No game has ended yet."""
        self._readers, self._infos = FIGURES[env_id], deque[dict[str, Any]](maxlen=RECENT)

    def add(self, infos: Iterable[dict[str, Any]]) -> None:
        """Note the last infos of games."""
        self._infos.extend(infos)

    def figures(self) -> dict[str, float]:
        """The mean of every figure; none before a game has ended."""
        if not self._infos:
            return {}
        return {name: float(np.mean([read(info) for info in self._infos])) for name, read in self._readers.items()}


def final_numbers(infos: Mapping[str, Any], row: int) -> dict[str, Any]:
    """The numbers that a batch with autoreset in the same step tells of the game of ``row`` that has just ended."""
    final = infos["final_info"]
    return {name: values[row].item() for name, values in final.items() if _is_number(name, values)}


def _is_number(name: str, values: Any) -> bool:
    return not name.startswith("_") and isinstance(values, np.ndarray) and values.ndim == 1


@dataclass(frozen=True)
class Log:
    """A log of N rows: steps rise strictly; seconds of training, figures by name (all float64 ``[N]``)."""

    steps: NDArray[np.float64]
    seconds: NDArray[np.float64]
    figures: Mapping[str, NDArray[np.float64]]


def append(folder: Path, steps: int, seconds: float, figures: Mapping[str, float]) -> None:
    """Add a row to the log in ``folder``, which begins with the first one."""
    path, row = folder / FILE, {_STEPS: steps, _SECONDS: round(seconds, 1), **figures}
    fresh = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(row))
        if fresh:
            writer.writeheader()
        writer.writerow(row)


def read(folder: Path) -> Log:
    """The log in ``folder``, also of a run that goes on or was killed: rows half written are left out, and so are
    those of steps that were trained again after a resumption. Raises AgentError where there is no log, or no row.
    """
    path = folder / FILE
    if not path.is_file():
        raise AgentError(f"no run at {folder}: expected a folder with {FILE}, that train wrote")
    text = path.read_text(encoding="utf-8", errors="replace")
    names, *lines = [line.split(",") for line in text[: text.rfind("\n") + 1].splitlines()] or [[]]
    if names and (names[:2] != [_STEPS, _SECONDS] or len(names) < 3):
        raise AgentError(f"{path} is not the log of a run: it should begin with {_STEPS},{_SECONDS} and figures")
    rows = [row for line in lines if (row := _numbers(line)) and len(row) == len(names)]
    if not rows:
        raise AgentError(f"{path} has no figures yet: no game has ended")
    steps, seconds, *columns = _last_of_each(np.array(rows)).T
    return Log(steps, seconds, dict(zip(names[2:], columns, strict=True)))


def _numbers(cells: list[str]) -> list[float] | None:
    try:
        return [float(cell) for cell in cells]
    except ValueError:
        return None


def _last_of_each(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Without the rows that a later one of fewer or equal steps replaces."""
    least_from_here = np.minimum.accumulate(rows[::-1, 0])[::-1]
    least_after = np.append(least_from_here[1:], np.inf)
    return rows[rows[:, 0] < least_after]
