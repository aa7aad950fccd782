"""FreeCell does not mind how the suits are called; this asks a network about a board under several names."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor, nn

from ...envs.common.cards import CARDS
from ...envs.freecell.actions import ACTIONS, DESTINATIONS
from ...envs.freecell.state import CELLS, SUIT_COUNT
from .layers import ILLEGAL

# Clubs and spades (0, 3) may change places, diamonds and hearts (1, 2), and the black suits with the red ones: what
# each suit is called in each of the 8 views, the first one as it is.
_BLACK, _RED = (0, 3), (1, 2)


def _named(colours: bool, first: bool, second: bool) -> tuple[int, ...]:
    names = [0] * SUIT_COUNT
    for suits, to, swap in ((_BLACK, _RED if colours else _BLACK, first), (_RED, _BLACK if colours else _RED, second)):
        for suit, name in zip(suits, reversed(to) if swap else to, strict=True):
            names[suit] = name
    return tuple(names)


VIEWS = tuple(_named(*swaps) for swaps in product((False, True), repeat=3))


class SuitViews(nn.Module):
    """A network's mean judgement of a board in so many views: its log-probabilities and values, averaged.

    Where a network has learned the same thing eight times over, once for each way to call the suits, its errors differ,
    and the mean of all is better than one. Costs as much as so many boards; nothing is searched.
    """

    cards: Tensor
    actions: Tensor
    suits: Tensor

    def __init__(self, network: nn.Module, views: int = len(VIEWS)) -> None:
        """``network``: one for FreeCell. Raises ValueError for a number of views that there is not."""
        super().__init__()
        if not 1 <= views <= len(VIEWS):
            raise ValueError(f"a position has 1 to {len(VIEWS)} views, not {views}")
        self.network = network
        names = torch.tensor(VIEWS[:views])
        card = torch.arange(CARDS)
        named = card // SUIT_COUNT * SUIT_COUNT + names[:, card % SUIT_COUNT]  # [V, 52]
        nothing = torch.zeros((views, 1), dtype=torch.long)
        action = torch.arange(ACTIONS)
        self.register_buffer("cards", torch.cat([nothing, named + 1], 1).to(torch.uint8), persistent=False)
        self.register_buffer("suits", names.argsort(1) + CELLS, persistent=False)
        actions = named[:, action // DESTINATIONS] * DESTINATIONS + action % DESTINATIONS
        self.register_buffer("actions", actions, persistent=False)

    def forward(self, obs: Tensor, masks: Tensor) -> tuple[Tensor, Tensor]:
        """Mean log-probabilities of the legal moves, ``ILLEGAL`` elsewhere, and mean values."""
        views, n = len(self.cards), len(obs)
        parts = [self.seen(obs, masks, view) for view in range(views)]
        boards, seen = (torch.cat(part) for part in zip(*parts, strict=True))
        logits, values = self.network(boards, seen)
        chances = torch.log_softmax(logits, 1).view(views, n, ACTIONS)
        total = sum((self.told(part, view) for view, part in enumerate(chances)), torch.zeros(n, ACTIONS))
        return torch.where(masks, total / views, ILLEGAL), values.view(views, n).mean(0)

    def seen(self, obs: Tensor, masks: Tensor, view: int) -> tuple[Tensor, Tensor]:
        """Boards and masks with the suits called otherwise."""
        board = self.cards[view][obs.long()]
        board[:, 0, CELLS:] = board[:, 0, self.suits[view]]
        return board, torch.zeros_like(masks).index_copy(1, self.actions[view], masks)

    def told(self, logits: Tensor, view: int) -> Tensor:
        """Logits of a view as those of the actions that they are for."""
        return logits[:, self.actions[view]]
