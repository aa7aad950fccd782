"""2048: a network that judges the boards which the legal moves lead to."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ...envs.common.jit import njit
from ...envs.puzzle2048.actions import ACTIONS
from ...envs.puzzle2048.rules import slide
from ...envs.puzzle2048.state import SIDE, SQUARES, board_words
from ..ntuple import SYMMETRIES, Lookups, Words, entries, entry, flat, lookups, symmetries
from .layers import ILLEGAL, body, both_heads, orthogonal, sum_rows

_SINGLE = tuple((square,) for square in range(SQUARES))
_ACROSS = tuple((square, square + 1) for square in range(SQUARES) if square % SIDE < SIDE - 1)
_DOWN = tuple((square, square + SIDE) for square in range(SQUARES - SIDE))
_LINES = (
    *((square, square + 1, square + 2) for square in range(SQUARES) if square % SIDE < SIDE - 2),
    *((square, square + SIDE, square + 2 * SIDE) for square in range(SQUARES - 2 * SIDE)),
)
# What the first layer sees of a board, by name: tuples of squares, as in ``ntuple.NETWORKS``.
TUPLES: dict[str, tuple[tuple[int, ...], ...]] = {
    "squares": _SINGLE,
    "pairs": (*_SINGLE, *_ACROSS, *_DOWN),
    "lines": (*_SINGLE, *_ACROSS, *_DOWN, *_LINES),
}
_GAIN_UNIT = 10.0  # doublings: gains come to the network as about 0 to 1.5


@njit
def _oriented(board: np.uint64, boards: Words) -> np.uint64:
    """The largest of the 8 board words that a board is turned and mirrored into; ``boards`` is scratch."""
    symmetries(board, boards)
    for one in boards:
        board = max(board, one)
    return board


@njit
def _afterstates(
    low: Words,
    high: Words,
    net: Lookups,
    orient: bool,
    boards: Words,
    legal: NDArray[np.bool_],
    gains: NDArray[np.float32],
    places: NDArray[np.int64],
) -> int:
    """Say which moves are legal (bool ``[N, 4]``) and, for one after the other, the doublings of its points and the
    places in the table of its afterstate's tuples (``[4 N]``, ``[4 N, T]``); returns how many there are.
    """
    k = 0
    for i in range(len(low)):
        for way in range(ACTIONS):
            to_low, to_high, gain = slide(low[i], high[i], way)
            legal[i, way] = to_low != low[i] or to_high != high[i]
            if legal[i, way]:
                board = flat(to_low, to_high)
                if orient:
                    board = _oriented(board, boards)
                for t in range(np.uint64(len(net.starts))):
                    places[k, np.intp(t)] = np.intp(entry(board, t, net))
                gains[k] = np.log2(np.float32(1 + gain))
                k += 1
    return k


class AfterstateNet(nn.Module):
    """2048: one judgement of every legal move's afterstate, whatever its direction.

    A logit is a function of the afterstate and of the points gained on the way. The board comes turned and mirrored
    into one of its 8 orientations, so that what holds in one corner holds in all. The first layer is an n-tuple network
    whose entries are vectors; tuples of two show what can merge and what lies in order. The board's value is the mean
    of its afterstates' values under the policy.
    """

    def __init__(self, tuples: str = "pairs", hidden: tuple[int, ...] = (128, 64), orient: bool = True) -> None:
        """``tuples``: a name of ``TUPLES``; ``hidden``: widths, the first one of the vectors in the table.

        Raises ValueError for an unknown name.
        """
        super().__init__()
        if tuples not in TUPLES:
            raise ValueError(f"unknown tuples {tuples!r}: use {', '.join(TUPLES)}")
        self.orient, self.width = orient, len(TUPLES[tuples])
        self.table = nn.Parameter(torch.empty(entries(TUPLES[tuples]), hidden[0]))
        nn.init.normal_(self.table, std=0.63 / self.width**0.5)
        self.gain = nn.Parameter(torch.zeros(hidden[0]))
        self.bias = nn.Parameter(torch.zeros(hidden[0]))
        self.body = body(hidden)
        self.logits = orthogonal(nn.Linear(hidden[-1], 1), 0.01)
        self.value = orthogonal(nn.Linear(hidden[-1], 1), 1.0)
        self._lookups, self._boards = lookups(TUPLES[tuples]), np.zeros(SYMMETRIES, dtype=np.uint64)

    def forward(self, obs: Tensor, masks: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and values; the value of a board without a legal move is 0."""
        n, device = len(obs), self.bias.device  # the boards are looked at by the CPU, wherever the layers are
        legal = np.empty((n, ACTIONS), dtype=np.bool_)
        gains, places = np.empty(ACTIONS * n, np.float32), np.empty((ACTIONS * n, self.width), np.int64)
        k = _afterstates(
            *board_words(obs.cpu().numpy()), self._lookups, self.orient, self._boards, legal, gains, places
        )
        first = sum_rows(torch.from_numpy(places[:k]), self.table)
        first = first + torch.from_numpy(gains[:k, None] / _GAIN_UNIT).to(device) * self.gain
        both = both_heads(self.body(F.relu_(first + self.bias)), self.logits, self.value)
        where = torch.from_numpy(legal).to(device).nonzero(as_tuple=True)
        logits = torch.full((n, ACTIONS), ILLEGAL, device=device).index_put(where, both[:, 0])
        values = torch.zeros((n, ACTIONS), device=device).index_put(where, both[:, 1])
        chances = torch.softmax(logits.detach(), 1)
        return torch.where(masks, logits, ILLEGAL), (chances * values).sum(1)
