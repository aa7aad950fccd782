"""What the PPO recipe for 2048 owes to each of its parts: one thing changed at a time, several seeds each.

``python -m puzzlegym.agents.ablations FOLDER [VARIANT ...]`` trains and evaluates what the folder does not hold yet, a
small JSON file for each run, then prints the table of all that it holds.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..envs.common.files import atomic
from .configs import PPOConfig, ppo_config
from .evaluation import evaluate
from .policy import load
from .runs import Budget, Progress
from .training import Run

STEPS = 1_000_000
SEEDS = (0, 1, 2)
GAMES = 500  # of the selection stream
_ENV = "Puzzle2048-v0"
_PLAIN = ppo_config(_ENV, "mlp")

BASE = replace(ppo_config(_ENV), ent_coef=0.0)  # the bundled one before these runs, which gave it the entropy bonus

# Variant -> what it changes of the base.
VARIANTS: dict[str, dict[str, Any]] = {
    "base": {},
    "plain one-hot network": {"network": _PLAIN.network, "network_arguments": _PLAIN.network_arguments},
    "afterstates, squares only": {"network_arguments": {"tuples": "squares"}},
    "afterstates, pairs and lines of 3": {"network_arguments": {"tuples": "lines"}},
    "boards not oriented": {"network_arguments": {"orient": False}},
    "layers 256-128": {"network_arguments": {"hidden": (256, 128)}},
    "layers 64-32": {"network_arguments": {"hidden": (64, 32)}},
    "reward: points": {"wrappers": ()},
    "gamma 0.99": {"gamma": 0.99},
    "gamma 0.998": {"gamma": 0.998},
    "lambda 0.8": {"gae_lambda": 0.8},
    "lambda 0.95": {"gae_lambda": 0.95},
    "entropy bonus 0.01": {"ent_coef": 0.01},
    "entropy bonus 0.01, falling to 0": {"ent_coef": 0.01, "last_entropy": 0.0},
    "rate 5e-4": {"learning_rate": 5e-4},
    "rate 2e-3": {"learning_rate": 2e-3},
    "rate not annealed": {"last_rate": 1.0},
    "1 epoch": {"n_epochs": 1},
    "rollouts of 128": {"n_steps": 128},
}


class _Quiet:
    def update(self, progress: Progress) -> None:
        """Show nothing."""


def _result(config: PPOConfig, seed: int) -> dict[str, Any]:
    """Train and evaluate once."""
    with tempfile.TemporaryDirectory() as folder:
        run = Run(config, Budget(steps=STEPS), seed, Path(folder))
        run.train(_Quiet())
        played = evaluate(_ENV, load(_ENV, folder), GAMES, stream="selection")
    return {"seed": seed, "steps": STEPS, "seconds": round(run.progress.seconds, 1), **played.to_json()}


def measure(folder: Path, names: Sequence[str]) -> None:
    """Every run of these variants that has no file yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in SEEDS:
        for name in names:
            path = folder / f"{name.replace(' ', '-').replace(':', '').replace(',', '')}-{seed}.json"
            if not path.exists():
                result = _result(replace(BASE, **VARIANTS[name]), seed)
                with atomic(path) as temporary:
                    temporary.write_text(json.dumps({"variant": name, **result}, indent=1))
                print(name, seed, round(result["score"]["mean"]), f"{result['seconds']:.0f} s", flush=True)


def table(folder: Path) -> list[str]:
    """Markdown: mean score of each seed's agent, their mean, reach of 2048, seconds."""
    results = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    rows = ["| variant | score, mean over seeds | seeds | reach 2048 | seconds |", "|---|---|---|---|---|"]
    for name in VARIANTS:
        runs = [result for result in results if result["variant"] == name]
        if runs:
            scores = [run["score"]["mean"] for run in runs]
            reach = np.mean([run["rates"]["2048"]["value"] for run in runs])
            seconds = np.mean([run["seconds"] for run in runs])
            each = ", ".join(f"{score:,.0f}" for score in sorted(scores))
            rows.append(f"| {name} | {np.mean(scores):,.0f} | {each} | {reach:.0%} | {seconds:.0f} |")
    return rows


def main(folder: str, *names: str) -> None:
    """Measure, then print the table. Raises ValueError for an unknown variant."""
    if unknown := [name for name in names if name not in VARIANTS]:
        raise ValueError(f"unknown variant {unknown[0]!r}: use {', '.join(VARIANTS)}")
    torch.set_num_threads(1)  # as many cores as there are can measure at once, and sums are repeatable
    measure(Path(folder), names or tuple(VARIANTS))
    print("\n".join(table(Path(folder))))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (TypeError, ValueError, OSError) as error:
        print(f"ablations FOLDER [VARIANT ...]: {error}", file=sys.stderr)
        sys.exit(2)
