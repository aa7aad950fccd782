"""The numbers behind learning curves: runs, those of one configuration together, their mean and spread."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..agents import logs, saved
from ..agents.errors import AgentError

Floats = NDArray[np.float64]
Curve = tuple[Floats, Floats]
_MOST_WORDS, _LONGEST_LABEL = 3, 60


@dataclass(frozen=True)
class Run:
    """A run folder: its log, and from ``agent.zip`` seed and settings (None before the first checkpoint)."""

    path: Path
    log: logs.Log
    env_id: str
    seed: int | None
    settings: Mapping[str, Any] | None

    def curve(self, x: str, figure: str) -> Curve:
        """A figure over ``x``: steps or minutes."""
        return (self.log.steps if x == "steps" else self.log.seconds / 60), self.log.figures[figure]


def load(path: Path) -> Run:
    """Read a run, also one that goes on. Raises AgentError for anything else."""
    log = logs.read(path)
    if not (path / saved.FILE).exists():
        return Run(path, log, _puzzle_of(log), None, None)
    card = saved.load_card(path)
    return Run(path, log, card["env_id"], card["seed"], _settings(card))


def _puzzle_of(log: logs.Log) -> str:
    fitting = (env_id for env_id, figures in logs.FIGURES.items() if figures.keys() <= log.figures.keys())
    return next(fitting, "an unknown puzzle")


def _settings(card: Mapping[str, Any]) -> dict[str, Any]:
    """What shapes a run, its seed apart. The learning rate falls over the budget, so that is part of it."""
    counted = {unit: count for unit in ("steps", "games") if (count := card["budget"].get(unit))}
    told = [f"{count:,} {unit}" for unit, count in counted.items()] or [f"{card['budget']['seconds'] / 60:g} minutes"]
    # A configuration's own budget is used only where no other is given.
    config = {name: value for name, value in card["config"].items() if name != "minutes"}
    return {**config, "budget": told[0]}


def load_all(paths: Sequence[Path]) -> list[Run]:
    """The runs, each folder once. Raises AgentError for what is no run, or where they are not of one puzzle."""
    runs = [load(path) for path in {path.resolve(): path for path in paths}.values()]
    ids = sorted({run.env_id for run in runs})
    if len(ids) > 1:
        raise AgentError(f"runs of one puzzle make a picture, these are of {' and '.join(ids)}")
    return runs


def grouped(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs of equal settings together, in the order of the first of each; one without a checkpoint stays alone."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        key = str(run.path) if run.settings is None else json.dumps(run.settings, sort_keys=True)
        groups.setdefault(key, []).append(run)
    return list(groups.values())


def labels(groups: Sequence[Sequence[Run]], names: Mapping[Path, str]) -> list[str]:
    """What to call each group: the settings that it does not share with all others, or its folders' names if
    these are too many words (or there is but one group).
    """
    settings = [group[0].settings for group in groups]
    known = [one for one in settings if one is not None]
    keys = list(_differing(known)) if len(known) == len(groups) else []
    told = [", ".join(_word(path, one) for path in keys) for one in known]
    if not 0 < len(keys) <= _MOST_WORDS or max(map(len, told)) > _LONGEST_LABEL:
        told = [_folders([names[run.path] for run in group]) for group in groups]
    return told


def _differing(values: Sequence[Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of keys to what is not the same in all of the values."""
    if all(isinstance(value, Mapping) for value in values):
        for key in dict.fromkeys(key for value in values for key in value):
            yield from _differing([value.get(key) for value in values], (*path, key))
    elif any(value != values[0] for value in values):
        yield path


def _word(path: Sequence[str], value: Any) -> str:
    for key in path:
        value = value.get(key)
    if isinstance(value, (list, tuple)):
        value = "+".join(map(str, value)) or None
    if value is None or isinstance(value, Mapping):
        return f"{'no' if value is None else 'with'} {path[-1]}"
    return value if path == ("budget",) else f"{path[-1]} {value}"


def _folders(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} ... {names[-1]}"


def size(group: Sequence[Run]) -> str:
    """How many seeds a group has; how many runs, if some have the same."""
    if len(group) == 1:
        return "1 run"
    return f"{len(group)} {'seeds' if len({run.seed for run in group}) == len(group) else 'runs'}"


@dataclass(frozen=True)
class Band:
    """Mean, lowest and highest of several curves at ``x``, which all of them cover (all float64 ``[N]``)."""

    x: Floats
    mean: Floats
    low: Floats
    high: Floats


def band(curves: Sequence[Curve]) -> Band:
    """The curves together, at every x that any of them has within the range of all of them (none: N is 0)."""
    first, last = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    every = np.unique(np.concatenate([x for x, _ in curves]))
    grid = every[(every >= first) & (every <= last)]
    values = np.stack([np.interp(grid, x, y) for x, y in curves])
    return Band(grid, values.mean(axis=0), values.min(axis=0), values.max(axis=0))


def beyond(curve: Curve, grid: Floats) -> list[Curve]:
    """The parts of a curve before and after the grid, each from where it leaves it; without a grid all of it."""
    x, y = curve
    if not len(grid):
        return [curve]
    parts = [np.append(x[x < grid[0]], grid[0]), np.insert(x[x > grid[-1]], 0, grid[-1])]
    return [(part, np.interp(part, x, y)) for part in parts if len(part) > 1]
