"""A network of this package as RLlib's ``RLModule``."""

from __future__ import annotations

from typing import Any

import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from torch import Tensor

from ..networks import build

OBSERVATIONS, ACTION_MASK = "observations", "action_mask"  # keys of the observation, as in ``MaskInObservation``


class MaskedModule(TorchRLModule, ValueFunctionAPI):  # type: ignore[misc]
    """A network that gives logits and values together, illegal actions masked.

    ``model_config``: ``network`` and ``network_arguments`` as for ``networks.build``, ``board`` the shape of an
    observation. The batch's observations are dicts of ``observations`` (``[B, ...]``, any dtype that holds the board's
    numbers, flat or not) and ``action_mask`` (``[B, A]``). ``scripts/examples/rllib_ppo.py`` uses it.
    """

    def setup(self) -> None:
        """Build the network."""
        self.net = build(self.model_config["network"], self.model_config["network_arguments"])

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Tensor]:
        logits, values = self._both(batch)
        return {Columns.ACTION_DIST_INPUTS: logits, Columns.EMBEDDINGS: values}

    def compute_values(self, batch: dict[str, Any], embeddings: Tensor | None = None) -> Tensor:
        """Values ``[B]``; ``embeddings`` are those that a forward pass has found on its way."""
        return self._both(batch)[1] if embeddings is None else embeddings

    def _both(self, batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
        obs = batch[Columns.OBS]
        boards = obs[OBSERVATIONS].to(torch.uint8).view(-1, *self.model_config["board"])
        logits, values = self.net(boards, obs[ACTION_MASK].bool())
        return logits, values
