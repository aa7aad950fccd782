"""What the networks are made of."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ...envs.common.jit import njit

ILLEGAL = -1e8  # the logit of an illegal action, as in sb3-contrib


def orthogonal(layer: nn.Linear, gain: float) -> nn.Linear:
    """A layer with orthogonal weights and no bias at first."""
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


def sample(log_probs: Tensor) -> Tensor:
    """One action a row by the Gumbel-max trick: faster than multinomial for wide rows."""
    noise = torch.empty_like(log_probs).exponential_()
    return (log_probs - noise.log()).argmax(1)


def body(widths: Sequence[int]) -> nn.Sequential:
    """Hidden layers of these widths; the first is what comes in."""
    layers = ((orthogonal(nn.Linear(a, b), np.sqrt(2)), nn.ReLU(inplace=True)) for a, b in pairwise(widths))
    return nn.Sequential(*(part for pair in layers for part in pair))


def both_heads(hidden: Tensor, logits: nn.Linear, value: nn.Linear) -> Tensor:
    """Logits and, in the last column, values as one product: the gradient of each alone would be a layer's work."""
    return F.linear(hidden, torch.cat([logits.weight, value.weight]), torch.cat([logits.bias, value.bias]))


@njit
def _add_rows(index: NDArray[np.int64], amounts: NDArray[np.float32], table: NDArray[np.float32]) -> None:
    """Add each row of ``amounts`` (``[B, D]``) to the rows of ``table`` that ``index`` (``[B, S]``) names."""
    for i in range(len(index)):
        for j in range(index.shape[1]):
            row = index[i, j]
            for d in range(table.shape[1]):
                table[row, d] += amounts[i, d]


class _SumRows(torch.autograd.Function):
    """``sum_rows`` with a compiled gradient: PyTorch's own of ``embedding_bag`` takes several times as long."""

    @staticmethod
    def forward(ctx: Any, index: Tensor, table: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.rows = len(table)
        return F.embedding_bag(index, table, mode="sum")

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        (index,) = ctx.saved_tensors
        table = grad.new_zeros((ctx.rows, grad.shape[1]))
        if grad.device.type == "cpu":
            _add_rows(index.numpy(), grad.contiguous().numpy(), table.numpy())
        else:
            table.index_add_(0, index.flatten(), grad.repeat_interleave(index.shape[1], 0))
        return None, table


def sum_rows(index: Tensor, table: Tensor) -> Tensor:
    """Sums of rows of a table: float32 ``[B, D]`` of ``index`` (int64 ``[B, S]``) and ``table`` (float32 ``[R, D]``).

    A dense layer on one-hot inputs at a fraction of its cost.
    """
    total: Tensor = _SumRows.apply(index.to(table.device), table)  # type: ignore[no-untyped-call]
    return total
