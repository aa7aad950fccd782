"""FreeCell: a network that sees cards, and scores moves."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ...envs.freecell.state import CELLS, COLUMNS, DEPTH
from .layers import ILLEGAL

_CARDS = 53  # 52 cards and nothing
_PLACES = 10  # 8 columns, the cells, the foundations
_NEEDS = 8


class CardNet(nn.Module):
    """FreeCell: columns as sums of cards by their distance from the open end; one score per legal move.

    A column is a sum of embeddings[card, places from its open end] and [how soon it can go home, whether it lies in
    order, places from its open end], through a small network. The sum over columns with cells and foundations is the
    global view. A move is scored from its card, how deep that lies, the card it uncovers,
    its column, its destination and the global view; only legal moves are scored, a dozen of the 520. The order of
    columns and cells does not matter to it.
    """

    def __init__(self, width: int = 64, hidden: int = 96, heads: int = 64) -> None:
        """``width`` of embeddings, ``hidden`` of column and global layers, ``heads`` of the move layers."""
        super().__init__()
        self.cards = nn.EmbeddingBag(_CARDS * DEPTH, width, mode="sum", padding_idx=0)
        self.needs = nn.EmbeddingBag(_NEEDS * 2 * DEPTH, width, mode="sum", padding_idx=0)
        self.column = nn.Sequential(
            nn.ReLU(inplace=True),
            nn.Linear(width, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
        )
        self.cells = nn.EmbeddingBag(_CARDS, hidden, mode="sum", padding_idx=0)
        self.empty_cells = nn.Embedding(CELLS + 1, hidden)
        self.home = nn.EmbeddingBag(_CARDS + CELLS, hidden, mode="sum")
        self.whole = nn.Sequential(
            nn.Linear(hidden, 2 * hidden), nn.ReLU(inplace=True), nn.Linear(2 * hidden, hidden), nn.ReLU(inplace=True)
        )
        self.value = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(inplace=True), nn.Linear(hidden, 1))
        self.moved = nn.Embedding(_CARDS, heads)
        self.depth = nn.Embedding(DEPTH, heads)
        self.uncovered = nn.Embedding(_CARDS, heads)
        self.covered = nn.Embedding(_CARDS, heads)
        self.source = nn.Linear(hidden, heads)
        self.target = nn.Linear(hidden, heads)
        self.view = nn.Linear(hidden, heads)
        self.moved_need = nn.Embedding(2 * _NEEDS, heads)
        self.uncovered_need = nn.Embedding(_NEEDS, heads)
        self.place = nn.Embedding(2 * _PLACES, heads)  # kinds of source and target: column, cell, foundation
        last = nn.Linear(heads, 1)
        self.score = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(heads, heads), nn.ReLU(inplace=True), last)
        for table in (self.cards, self.needs, self.cells, self.home, self.empty_cells):
            nn.init.normal_(table.weight, std=0.3)
        for embedding in (
            self.moved,
            self.depth,
            self.uncovered,
            self.covered,
            self.moved_need,
            self.uncovered_need,
            self.place,
        ):
            nn.init.normal_(embedding.weight, std=0.3)
        nn.init.normal_(last.weight, std=0.01)

    def forward(self, obs: Tensor, masks: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and values."""
        n = len(obs)
        board = obs.long()
        columns = board[:, 1:].transpose(1, 2)  # [B, 8, 19]
        length = (columns != 0).sum(2)
        depth = (length[:, :, None] - 1 - torch.arange(DEPTH, device=length.device)).clamp(min=0)  # 0 at the open end
        index = torch.where(columns != 0, columns * DEPTH + depth, 0)
        cells, home = board[:, 0, :CELLS], board[:, 0, CELLS:]
        need = _needs(board, home)
        kind = need[:, 1:] * 2 + _in_order(board)  # [B, 19, 8]
        kinds = torch.where(columns != 0, kind.transpose(1, 2) * DEPTH + depth, 0)
        bags = self.cards(index.reshape(n * COLUMNS, DEPTH)) + self.needs(kinds.reshape(n * COLUMNS, DEPTH))
        column = self.column(bags).view(n, COLUMNS, -1)
        home = torch.where(home == 0, _CARDS + torch.arange(CELLS, device=home.device), home)
        rest = self.cells(cells) + self.empty_cells((cells == 0).sum(1)) + self.home(home)
        whole = self.whole(column.sum(1) / COLUMNS + rest)
        return self._logits(board, need, length, column, whole, masks), self.value(whole).squeeze(1)

    def _logits(
        self, board: Tensor, need: Tensor, length: Tensor, column: Tensor, whole: Tensor, masks: Tensor
    ) -> Tensor:
        """Scores of the legal moves at their places among the actions, ``ILLEGAL`` elsewhere."""
        game, action = masks.nonzero(as_tuple=True)
        card, to = action // _PLACES + 1, action % _PLACES
        row, place = _find(board, game, card)
        flat = board.flatten(1)
        in_column = row > 0
        below = ((row - 1) * COLUMNS + place).clamp(min=0)
        under = torch.where(in_column & (row > 1), flat[game, below], 0)
        under_need = torch.where(under > 0, need.flatten(1)[game, below], 0)
        own_need = need.flatten(1)[game, row * COLUMNS + place] * 2 + _stacks(card, under)
        depth = torch.where(in_column, length[game, place.clamp(max=COLUMNS - 1)] - row, 0)
        end = length[game, to.clamp(max=COLUMNS - 1)]
        top = torch.where(to < COLUMNS, flat[game, end * COLUMNS + to.clamp(max=COLUMNS - 1)] * (end > 0), 0)
        sources = F.pad(self.source(column), (0, 0, 0, 2))[game, torch.where(in_column, place, COLUMNS)]
        targets = F.pad(self.target(column), (0, 0, 0, 2))[game, to]
        kinds = self.place((~in_column).long() * _PLACES + (to - COLUMNS + 1).clamp(min=0))
        small = self.moved(card) + self.depth(depth) + self.uncovered(under) + self.covered(top) + kinds
        small = small + self.moved_need(own_need) + self.uncovered_need(under_need)
        score = self.score(small + sources + targets + self.view(whole)[game]).squeeze(1)
        return torch.full(masks.shape, ILLEGAL, device=masks.device).index_put((game, action), score)


def _needs(board: Tensor, home: Tensor) -> Tensor:
    """How many cards of its suit must go home before each square's card and with it (0: no card, at most 7)."""
    counts = torch.where(home < _CARDS, home + 3, 0) // 4  # cards home, by suit
    suit = (board - 1).clamp(min=0) % 4
    home_of = counts.gather(1, suit.flatten(1)).view_as(board)
    return torch.where(board > 0, ((board + 3) // 4 - home_of).clamp(0, _NEEDS - 1), 0)


def _stacks(card: Tensor, on: Tensor) -> Tensor:
    """1 where ``card`` lies in order on ``on``: one rank lower, of the other colour; else 0 (cards are id + 1)."""
    suit, other = (card - 1) % 4, (on - 1) % 4
    red, other_red = (suit == 1) | (suit == 2), (other == 1) | (other == 2)
    return ((on > 0) & ((card + 3) // 4 + 1 == (on + 3) // 4) & (red != other_red)).long()


def _in_order(board: Tensor) -> Tensor:
    """Of each column square (``[B, 19, 8]``): does its card lie in order on the one beneath?"""
    return F.pad(_stacks(board[:, 2:], board[:, 1:-1]), (0, 0, 1, 0))


def _find(board: Tensor, game: Tensor, card: Tensor) -> tuple[Tensor, Tensor]:
    """Row (0 = the cells) and column of each card on its game's board."""
    n = len(board)
    where = torch.zeros((n, _CARDS), dtype=torch.long, device=board.device)
    squares = torch.arange(board[0].numel(), device=board.device).expand(n, -1)
    where.scatter_(1, board.flatten(1), squares)
    square = where[game, card]
    return square // COLUMNS, square % COLUMNS
