"""Players without learning, to measure others by: uniform legal play and a sensible greedy player per puzzle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..envs.common.jit import njit
from ..envs.common.masks import choose_legal
from ..envs.common.rng import Streams
from ..envs.puzzle2048 import Action
from ..envs.puzzle2048.rules import exponent, slide
from ..envs.puzzle2048.state import SIDE, SQUARES, board_words
from .policy import Actions, Masks, Observations

Floats = NDArray[np.float64]
_SQUARE_FREE = 1 << 22  # more than six times the sum of all tiles can be


def draw(weights: NDArray[np.float64], rng: Streams) -> Actions:
    """One index per row of ``weights`` (``[N, A]``, not negative, some positive), with chances in proportion."""
    heights = weights.cumsum(axis=1)
    total = heights[:, -1]
    point = np.minimum(rng.uniform() * total, np.nextafter(total, 0))
    return np.asarray((heights > point[:, None]).argmax(axis=1), dtype=np.int64)


class Random:
    """Every legal move is equally likely."""

    name = "random"

    def act(self, observations: Observations, masks: Masks, rng: Streams) -> Actions:
        """One uniform legal action per row."""
        return choose_legal(masks, rng.uniform())


@njit
def _gains(low: NDArray[np.uint64], high: NDArray[np.uint64], gains: NDArray[np.int64]) -> None:
    """Write what each of the four directions gains on each board, given as its two words, into int64 ``[N, 4]``."""
    for i in range(len(low)):
        for way in range(gains.shape[1]):
            gains[i, way] = slide(low[i], high[i], way)[2]


class Greedy2048:
    """The move that gains most now; among equals the one that keeps the tiles in the lower left corner."""

    name = "greedy"
    preference = (Action.DOWN, Action.LEFT, Action.RIGHT, Action.UP)

    def act(self, observations: Observations, masks: Masks, rng: Streams) -> Actions:
        """One action per row; no chance is used."""
        order = np.array(self.preference, dtype=np.int64)
        gains = np.zeros(masks.shape, dtype=np.int64)
        _gains(*board_words(observations), gains)
        gains[~masks] = -1
        return np.asarray(order[gains[:, order].argmax(axis=1)], dtype=np.int64)


@njit
def _slopes(low: NDArray[np.uint64], high: NDArray[np.uint64], slopes: NDArray[np.int64]) -> None:
    """Write how good the board after each direction is for one that heaps up its tiles in the lower left corner.

    Into int64 ``[N, 4]``: first empty squares count, then all tiles, each times the steps (0 to 6) between its square
    and the upper right one.
    """
    for i in range(len(low)):
        for way in range(slopes.shape[1]):
            to_low, to_high, _ = slide(low[i], high[i], way)
            for square in range(SQUARES):
                tile = exponent(to_low, to_high, square)
                if tile == 0:
                    slopes[i, way] += _SQUARE_FREE
                else:
                    slopes[i, way] += (1 << tile) * (square // SIDE + SIDE - 1 - square % SIDE)


class Corner2048:
    """Two directions all the time, a third when neither moves, the fourth when nothing else does.

    That is the advice given to people: down or left, whichever frees more squares, or else heaps the tiles up better in
    the lower left corner; points are not chased. Right leads back there, up almost never.
    """

    name = "corner"
    last = (Action.RIGHT, Action.UP)

    def act(self, observations: Observations, masks: Masks, rng: Streams) -> Actions:
        """One action per row; no chance is used."""
        slopes = np.zeros(masks.shape, dtype=np.int64)
        _slopes(*board_words(observations), slopes)
        for rank, way in enumerate(self.last, 1):
            slopes[:, way] = -rank
        slopes[~masks] = -len(Action)
        order = np.array([Action.DOWN, Action.LEFT, *self.last])
        return np.asarray(order[slopes[:, order].argmax(axis=1)], dtype=np.int64)


@dataclass(frozen=True)
class _Moves:
    """The legal moves of many FreeCell boards as one list; every array has one entry per move, ``[M]``."""

    board: NDArray[np.int64]  # which board
    action: NDArray[np.int64]
    rank: NDArray[np.int64]  # of the moved card, 0 the ace
    to_home: NDArray[np.bool_]
    to_cell: NDArray[np.bool_]
    to_empty: NDArray[np.bool_]  # an empty column
    from_cell: NDArray[np.bool_]
    whole: NDArray[np.bool_]  # all cards of a column
    breaks: NDArray[np.bool_]  # tears a card off one that it properly lies on
    length: NDArray[np.int64]  # cards moved
    dig: Floats  # 1 / cards that lie on the next needed card below, the moved one included; 0: no such card
    cells_left: NDArray[np.int64]  # empty cells before the move


def _moves(boards: Observations, masks: Masks) -> _Moves:
    """Describe every legal move of uint8 ``[N, 20, 8]`` boards."""
    values = boards.astype(np.int64)
    board, action = np.nonzero(masks)
    card, destination = action // 10, action % 10
    row, column = _places(values)[:, board, card + 1]
    homes = (values[:, 0, 4:] + 3) // 4  # cards home per suit
    heights = (values[:, 1:] > 0).sum(axis=1)
    below = np.where(row >= 2, values[board, np.maximum(row - 1, 0), column], 0)
    on_table = row >= 1
    return _Moves(
        board=board,
        action=action,
        rank=card // 4,
        to_home=destination == 9,
        to_cell=destination == 8,
        to_empty=(destination < 8) & (heights[board, np.minimum(destination, 7)] == 0),
        from_cell=~on_table,
        whole=row == 1,
        breaks=(below > 0) & _fits(card, below - 1),
        length=np.where(on_table, heights[board, column % 8] - row + 1, 1),
        dig=np.where(on_table, _dig(values, homes)[board, column % 8, row], 0.0),
        cells_left=(values[:, 0, :4] == 0).sum(axis=1)[board],
    )


def _places(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row and column of every card value, ``[2, N, 53]``; row 0 are the cells and the foundations."""
    place = np.zeros((len(values), 53), dtype=np.int64)
    flat = values.reshape(len(values), -1)
    np.put_along_axis(place, flat, np.broadcast_to(np.arange(flat.shape[1]), flat.shape), axis=1)
    return np.stack([place // 8, place % 8])


def _fits(card: NDArray[np.int64], under: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Is ``under`` one rank higher and of the other colour? Suits 1 and 2 are red."""
    red, under_red = np.isin(card % 4, (1, 2)), np.isin(under % 4, (1, 2))
    return np.asarray((card // 4 + 1 == under // 4) & (red != under_red))


def _dig(values: NDArray[np.int64], homes: NDArray[np.int64]) -> Floats:
    """For lifting the card at (column, row): 1 / cards that lie on the next needed one below it, ``[N, 8, 20]``."""
    cards = values[:, 1:, :].transpose(0, 2, 1) - 1
    home = np.take_along_axis(homes, (cards % 4).reshape(len(cards), -1), axis=1).reshape(cards.shape)
    needed = (cards >= 0) & (home == cards // 4)
    last = np.maximum.accumulate(np.where(needed, np.arange(1, 20), 0), axis=2)[:, :, :-1]  # its row, 0: none
    result = np.zeros((*cards.shape[:2], 20))
    result[:, :, 2:] = np.where(last > 0, 1.0 / (np.arange(2, 20) - last), 0.0)
    return result


class GreedyFreeCell:
    """Follows the advice given to players, one move ahead.

    Cards go home; runs grow; columns that hide a card needed next are dug up; cells and empty columns are filled only
    if nothing better is there, a whole column never goes to an empty one. Near equals are drawn by chance, which
    leads out of circles without a memory.
    """

    name = "greedy"
    temperature = 0.5

    def act(self, observations: Observations, masks: Masks, rng: Streams) -> Actions:
        """One action per row, drawn among the best."""
        scores = self.scores(observations, masks)
        best = scores.max(axis=1, keepdims=True)
        return draw(np.exp((scores - best) / self.temperature), rng)

    def scores(self, observations: Observations, masks: Masks) -> Floats:
        """How good each action looks (float64 ``[N, 520]``), minus infinity where it is masked."""
        moves = _moves(observations, masks)
        scores = np.full(masks.shape, -np.inf)
        scores[moves.board, moves.action] = self._judge(moves)
        return scores

    def _judge(self, m: _Moves) -> Floats:
        opens = 2.0 * (m.dig == 1) + 4.0 * m.dig - 10.0 * m.breaks
        onto_card = 9.0 + np.where(m.from_cell, 4.0, opens + 3.0 * m.whole)
        to_empty = -3.0 + 0.25 * m.rank + m.length + np.where(m.from_cell, 0.0, opens) - 100.0 * m.whole
        to_cell = -4.0 + m.cells_left + opens
        return np.select([m.to_home, m.to_cell, m.to_empty], [np.full(len(m.rank), 16.0), to_cell, to_empty], onto_card)
