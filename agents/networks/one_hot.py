"""A plain network on one-hot squares."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from .layers import ILLEGAL, body, both_heads, orthogonal, sum_rows


class OneHotMLP(nn.Module):
    """A plain network on small boards: one-hot squares, shared hidden layers, two heads.

    The first layer is a sum of table rows, one per square: the same function as a dense layer on the one-hot vector.
    """

    def __init__(self, squares: int, values: int, actions: int, hidden: tuple[int, ...] = (256, 256)) -> None:
        """``squares`` of ``values`` kinds each; widths of the hidden layers."""
        super().__init__()
        self.values = values
        self.first = nn.EmbeddingBag(squares * values, hidden[0], mode="sum")
        nn.init.orthogonal_(self.first.weight, np.sqrt(2))
        self.bias = nn.Parameter(torch.zeros(hidden[0]))
        self.body = body(hidden)
        self.logits = orthogonal(nn.Linear(hidden[-1], actions), 0.01)
        self.value = orthogonal(nn.Linear(hidden[-1], 1), 1.0)

    def forward(self, obs: Tensor, masks: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and values."""
        squares = obs.flatten(1).long()
        squares = squares + torch.arange(0, squares.shape[1] * self.values, self.values, device=obs.device)
        hidden = self.body(F.relu_(sum_rows(squares, self.first.weight) + self.bias))
        both = both_heads(hidden, self.logits, self.value)
        return torch.where(masks, both[:, :-1], ILLEGAL), both[:, -1]
