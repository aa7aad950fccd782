"""What is measured of each puzzle's games."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .losses import CAUSES, KeysOf, freecell_keys

Infos = Mapping[str, Any]


@dataclass(frozen=True)
class Measures:
    """What to read from the infos of a finished game.

    ``score`` is an info entry, or None for the sum of rewards; ``rates`` name events, each an info entry that is at
    least a threshold; ``deals`` says whether games are numbered deals. ``keys`` tell the positions of a game apart;
    where there are some, a game that is no success is lost, by one of ``losses.CAUSES``.
    """

    score: str | None
    rates: Mapping[str, tuple[str, int]]
    deals: bool = False
    keys: KeysOf | None = None

    @property
    def causes(self) -> tuple[str, ...]:
        """Names of the causes by which games are lost."""
        return CAUSES if self.keys else ()

    def reached(self, infos: Infos) -> NDArray[np.bool_]:
        """Events per row (bool ``[N, R]``): is the info entry at least the threshold?"""
        return np.stack([np.asarray(infos[key]) >= least for key, least in self.rates.values()], axis=1)


# A puzzle without a row here is measured by its return and by `is_success`.
_DEFAULT = Measures(None, {"success": ("is_success", 1)})
MEASURES: dict[str, Measures] = {
    "Puzzle2048-v0": Measures("score", {str(2**k): ("max_tile", 2**k) for k in range(9, 17)}),
    "FreeCell-v0": Measures("cards_home", {"win": ("is_success", 1)}, deals=True, keys=freecell_keys),
}


def measures_of(env_id: str) -> Measures:
    """What is measured of a puzzle."""
    return MEASURES.get(env_id, _DEFAULT)
