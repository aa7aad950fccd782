"""FreeCell: a network that judges the positions which the legal moves lead to."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ...envs.common.cards import CARDS
from ...envs.common.jit import njit
from ...envs.freecell.actions import ACTIONS
from ..card_features import NOTHING, ROWS, Afterstates, Looker, first_layer
from .layers import ILLEGAL, body, both_heads, orthogonal

Floats = NDArray[np.float32]


@njit
def _spread(seen: Afterstates, grads: Floats, boards: Floats, table: Floats) -> None:
    """Add the gradients of the sums (``[K, D]``) to those of the table; ``boards`` (zeros, ``[N, D]``): scratch."""
    for k in range(len(seen.games)):
        for d in range(table.shape[1]):
            boards[seen.games[k], d] += grads[k, d]
        for j in range(seen.starts[k], seen.starts[k + 1]):
            row = seen.rows[j]
            if row >= 0:
                for d in range(table.shape[1]):
                    table[row, d] += grads[k, d]
            else:
                for d in range(table.shape[1]):
                    table[~row, d] -= grads[k, d]
    for i in range(len(seen.whole)):
        for j in range(seen.whole.shape[1]):
            row = seen.whole[i, j]
            if row != NOTHING:
                for d in range(table.shape[1]):
                    table[row, d] += boards[i, d]


class _Sums(torch.autograd.Function):
    """Sums of table rows for all afterstates, ``[K, D]``."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, seen: Afterstates) -> Tensor:
        ctx.seen, ctx.shape = seen, table.shape
        return torch.from_numpy(first_layer(seen, table.detach().cpu().numpy())).to(table.device)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        table = torch.zeros(ctx.shape)
        boards = np.zeros((len(ctx.seen.whole), ctx.shape[1]), np.float32)
        _spread(ctx.seen, grad.cpu().contiguous().numpy(), boards, table.numpy())
        return table.to(grad.device), None


class CardAfterstateNet(nn.Module):
    """FreeCell: one judgement of every legal move's afterstate, its safe cards at home.

    The first layer is a table of vectors. A position is the sum of rows for each of its cards - what it lies on, how
    soon its turn to go home comes, what lies above and beneath it, how the cards that take it can be reached - and for
    its runs, foundations and room. So the order of columns and of cells cannot matter, and an afterstate is its board's
    sum and a few changes. A logit is a function of the afterstate and of the cards sent home on the way; the board's
    value is the mean of its afterstates' values under the policy.
    """

    def __init__(self, hidden: tuple[int, ...] = (128, 64)) -> None:
        """``hidden``: widths, the first one of the vectors in the table."""
        super().__init__()
        self.table = nn.Parameter(torch.empty(ROWS, hidden[0]))
        nn.init.normal_(self.table, std=0.63 / (3 * CARDS) ** 0.5)
        self.gain = nn.Parameter(torch.zeros(hidden[0]))
        self.bias = nn.Parameter(torch.zeros(hidden[0]))
        self.body = body(hidden)
        self.logits = orthogonal(nn.Linear(hidden[-1], 1), 0.01)
        self.value = orthogonal(nn.Linear(hidden[-1], 1), 1.0)
        self._looker = Looker()

    def forward(self, obs: Tensor, masks: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and values; the value of a board without a legal move is 0."""
        device = self.bias.device  # the boards are looked at by the CPU, wherever the layers are
        n, seen = len(obs), self._looker.look(obs.cpu().numpy())
        first: Tensor = _Sums.apply(self.table, seen)  # type: ignore[no-untyped-call]
        first = first + torch.from_numpy(seen.gains[:, None]).to(device) * self.gain
        both = both_heads(self.body(F.relu_(first + self.bias)), self.logits, self.value)
        both, where = both[torch.from_numpy(seen.children).to(device)], torch.from_numpy(seen.actions).to(device)
        logits = torch.full((n * ACTIONS,), ILLEGAL, device=device).index_put((where,), both[:, 0]).view(n, ACTIONS)
        chances = torch.softmax(logits.detach(), 1).view(-1)[where]
        values = torch.zeros(n, device=device).index_add(0, where // ACTIONS, chances * both[:, 1])
        return torch.where(masks, logits, ILLEGAL), values
