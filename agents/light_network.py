"""The shipped FreeCell network without torch: for hints, where nobody wants to wait for an import."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..envs.freecell.actions import ACTIONS
from . import saved
from .card_features import Floats, Looker, first_layer
from .policy import Masks, Observations


class LightNetwork:
    """A saved ``card_afterstate_net`` as scores of the moves, looking at the board as it is."""

    def __init__(self, path: Path) -> None:
        """The agent at ``path``. Raises AgentError for a file that is none."""
        weights = {name: array.astype(np.float32) for name, array in saved.load_weights(path).items()}
        self._table, self._gain, self._bias = weights["table"], weights["gain"], weights["bias"]
        layers = sorted(
            name.removesuffix(".weight") for name in weights if name.startswith("body.") and "weight" in name
        )
        self._layers = [(weights[f"{name}.weight"], weights[f"{name}.bias"]) for name in (*layers, "logits")]
        self._looker = Looker()

    def scores(self, observations: Observations, masks: Masks) -> NDArray[np.float64]:
        """How good each action looks (float64 ``[N, 520]``), minus infinity where it is masked."""
        seen = self._looker.look(observations)
        hidden: Floats = first_layer(seen, self._table) + seen.gains[:, None] * self._gain + self._bias
        for weight, bias in self._layers:
            hidden = np.maximum(hidden, 0) @ weight.T + bias
        scores = np.full(len(observations) * ACTIONS, -np.inf)
        scores[seen.actions] = hidden[seen.children, 0]
        return np.where(masks, scores.reshape(-1, ACTIONS), -np.inf)
