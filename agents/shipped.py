"""Trained agents that come with the package, in ``agents/weights``: small, in half precision, read without unpickling.

``python -m puzzlegym.agents.shipped RUN NAME`` makes one of a finished run.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from . import saved
from .ntuple_player import NTuplePlayer
from .ntuple_training import load_player

WEIGHTS = Path(__file__).with_name("weights")


def ntuple_2048(depth: int = 1, seconds: float | None = None) -> NTuplePlayer:
    """The n-tuple network for 2048; ``depth`` above 1 and ``seconds`` a move as in ``search``."""
    player = load_player(WEIGHTS / "ntuple-2048.zip", "Puzzle2048-v0", depth, seconds)
    player.name = "ntuple"
    return player


def ship(run: Path, name: str) -> Path:
    """Copy a run's card and weights, these in half precision, into ``agents/weights``; the file's path."""
    card, weights = saved.load_card(run), saved.load_weights(run)
    small = {key: array.astype(np.float16) for key, array in weights.items()}
    WEIGHTS.mkdir(exist_ok=True)
    path = WEIGHTS / f"{name}.zip"
    saved.save(path, {key: value for key, value in card.items() if key != "format"}, small, {})
    return path


if __name__ == "__main__":
    print(ship(Path(sys.argv[1]), sys.argv[2]))
