"""``puzzlegym bench``: how many steps a second the environments make on this machine."""

from __future__ import annotations

import json
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

import gymnasium
import numpy as np
import tyro
from numpy.typing import NDArray

from .. import PUZZLES
from ..agents.policy import check_id

_SIZES = (1, 64, 1024, 8192)
_LEAST_SECONDS = 0.2  # stepping time of one round


@dataclass(frozen=True)
class Bench:
    """Measure environment steps per second: observation, mask, infos and autoreset included, legal play."""

    ids: Annotated[list[str], tyro.conf.Positional] = field(default_factory=list)
    """Puzzles to measure (default: all)."""
    rounds: int = 5
    """Rounds; the median is reported, with the slowest and fastest."""
    json: bool = False
    """Print JSON instead of a table."""


def run(args: Bench) -> int:
    """Measure all cases in interleaved rounds and print them."""
    ids = args.ids or list(PUZZLES)
    for env_id in ids:
        check_id(env_id)
    if args.rounds < 1:
        raise ValueError("--rounds must be at least 1")
    cases = {(env_id, name): case for env_id in ids for name, case in _cases(env_id).items()}
    samples: dict[tuple[str, str], list[float]] = {key: [] for key in cases}
    for _ in range(args.rounds):
        for key, case in cases.items():
            samples[key].append(case())
    rows = [
        {"env_id": key[0], "case": key[1], "steps_per_second": statistics.median(s), "min": min(s), "max": max(s)}
        for key, s in samples.items()
    ]
    print(json.dumps(rows, indent=1)) if args.json else _print_table(rows, args.rounds)
    return 0


def _cases(env_id: str) -> dict[str, Callable[[], float]]:
    cases: dict[str, Callable[[], float]] = {"gymnasium.make": _Single(env_id).measure}
    for size in _SIZES:
        cases[f"make_vec, {size:,} games"] = _Batch(env_id, size).measure
    return cases


class _Single:
    """One environment as users make it."""

    def __init__(self, env_id: str) -> None:
        self.env = gymnasium.make(env_id)
        self.rng = np.random.default_rng(0)
        _, self.info = self.env.reset(seed=0)
        self.env.step(int(self.info["action_mask"].argmax()))  # compiles, outside the clock
        _, self.info = self.env.reset(seed=0)

    def measure(self) -> float:
        """Steps per second; the actions are chosen outside the clock."""
        spent, steps = 0.0, 0
        while spent < _LEAST_SECONDS:
            action = int(self.rng.choice(np.flatnonzero(self.info["action_mask"])))
            before = time.perf_counter()
            _, _, terminated, truncated, self.info = self.env.step(action)
            spent += time.perf_counter() - before
            steps += 1
            if terminated or truncated:
                _, self.info = self.env.reset()
        return steps / spent


class _Batch:
    """A native batch."""

    def __init__(self, env_id: str, size: int) -> None:
        self.envs = gymnasium.make_vec(env_id, num_envs=size, autoreset_mode="SameStep")
        self.rng = np.random.default_rng(0)
        _, self.infos = self.envs.reset(seed=0)
        _, _, _, _, self.infos = self.envs.step(self.infos["action_mask"].argmax(axis=1))

    def measure(self) -> float:
        """Game steps per second; the actions are chosen outside the clock."""
        spent, steps = 0.0, 0
        while spent < _LEAST_SECONDS:
            actions = _legal(self.infos["action_mask"], self.rng)
            before = time.perf_counter()
            _, _, _, _, self.infos = self.envs.step(actions)
            spent += time.perf_counter() - before
            steps += len(actions)
        return steps / spent


def _legal(mask: NDArray[np.int8], rng: np.random.Generator) -> NDArray[np.int64]:
    """A uniformly random legal action per row."""
    counts = mask.cumsum(axis=1, dtype=np.int16)
    wanted = (rng.random(len(mask)) * counts[:, -1]).astype(np.int16)
    return np.asarray((counts <= wanted[:, None]).sum(axis=1))


def _print_table(rows: list[dict[str, Any]], rounds: int) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for name, justify in (("environment", "left"), ("case", "left"), ("steps/s", "right"), ("min - max", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for row in rows:
        spread = f"{row['min']:,.0f} - {row['max']:,.0f}"
        table.add_row(row["env_id"], row["case"], f"{row['steps_per_second']:,.0f}", spread)
    console = Console()
    console.print(table)
    console.print(
        f"Medians of {rounds} interleaved rounds on one core; Python {platform.python_version()}, "
        f"{platform.machine()}.",
        highlight=False,
    )
