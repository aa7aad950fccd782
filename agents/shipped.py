"""Trained agents that come with the package, in ``agents/weights``: small, in half precision, read without unpickling.

``python -m puzzlegym.agents.shipped RUN NAME`` makes one of a finished run; with ``--results`` at the end it keeps the
run's card and a thinned log in ``agents/results/NAME`` instead.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from . import logs, saved
from .ntuple_player import NTuplePlayer
from .ntuple_training import load_player
from .policy import Policy

WEIGHTS, RESULTS = Path(__file__).with_name("weights"), Path(__file__).with_name("results")
ROWS = 200  # of a log


def ntuple_2048(depth: int = 1, seconds: float | None = None) -> NTuplePlayer:
    """The n-tuple network for 2048; ``depth`` above 1 and ``seconds`` a move as in ``search``."""
    player = load_player(WEIGHTS / "ntuple-2048.zip", "Puzzle2048-v0", depth, seconds)
    player.name = "ntuple"
    return player


def ppo_2048(sample: bool | None = None) -> Policy:
    """The network for 2048 that learned by masked PPO alone; ``sample`` as in ``network_policy.load_policy``."""
    return _network("ppo-2048", "Puzzle2048-v0", "ppo", sample)


def ppo_freecell(sample: bool | None = None, width: int | None = None) -> Policy:
    """The network for FreeCell that learned by masked PPO alone; arguments as in ``network_policy.load_policy``."""
    return _network("ppo-freecell", "FreeCell-v0", "ppo", sample, width)


def learned_freecell(sample: bool | None = None, width: int | None = None) -> Policy:
    """The best network for FreeCell, however it learned; arguments as in ``network_policy.load_policy``."""
    return _network("learned-freecell", "FreeCell-v0", "learned", sample, width)


def _network(file: str, env_id: str, name: str, *choice: Any) -> Policy:
    from .network_policy import load_policy  # torch is imported from here on

    policy = load_policy(WEIGHTS / f"{file}.zip", env_id, *choice)
    policy.name = name
    return policy


def ship(run: Path, name: str) -> Path:
    """Copy a run's card and weights, these in half precision, into ``agents/weights``; the file's path."""
    card, weights = saved.load_card(run), saved.load_weights(run)
    small = {key: array.astype(np.float16) for key, array in weights.items()}
    WEIGHTS.mkdir(exist_ok=True)
    path = WEIGHTS / f"{name}.zip"
    saved.save(path, {key: value for key, value in card.items() if key != "format"}, small, {})
    return path


def keep(run: Path, name: str) -> Path:
    """Copy a run's card, and about ``ROWS`` rows of its log, into ``agents/results/NAME``; the folder's path."""
    folder = RESULTS / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "card.json").write_text(json.dumps(saved.load_card(run), indent=1) + "\n", encoding="utf-8")
    head, *rows = (run / logs.FILE).read_text(encoding="utf-8").splitlines(keepends=True)
    thinned = [*rows[: -1 : max(1, len(rows) // ROWS)], *rows[-1:]]
    (folder / logs.FILE).write_text("".join([head, *thinned]), encoding="utf-8")
    return folder


if __name__ == "__main__":
    try:
        source, target, *options = sys.argv[1:]
        print((keep if options == ["--results"] else ship)(Path(source), target))
    except (ValueError, OSError) as error:
        print(f"shipped RUN NAME [--results]: {error}", file=sys.stderr)
        sys.exit(2)
