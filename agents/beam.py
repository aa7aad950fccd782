"""Beam search for FreeCell: many games at once, each with the few positions of every depth that look best.

A position is judged by the moves that lead to it, as likely as a network finds them (the sum of their logarithms), or
by the estimate that the solver goes by. Nothing is found twice in a game, whatever the order of columns and cells.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ..envs.common.cards import CARDS
from ..envs.common.jit import njit
from ..envs.common.rng import Streams
from ..envs.common.rows import ZERO
from ..envs.freecell import rules
from ..envs.freecell.actions import ACTIONS
from ..envs.freecell.estimate import USUAL, estimate
from ..envs.freecell.planning import lay_out
from ..envs.freecell.state import DEPTH, SHAPE, TABLE_WORDS
from .policy import Actions, Masks, Observations

Words = NDArray[np.uint64]
Judge = Callable[[Observations], NDArray[np.float32]]
"""Logits of all actions (float32 ``[N, 520]``, -1e8 where illegal) on boards (uint8 ``[N, 20, 8]``)."""

BEAM_PUZZLE = "FreeCell-v0"
WIDTH = 16
DEPTH_LIMIT = 200  # moves of a line
_GAMES_AT_ONCE = 128
_WORDS = DEPTH + 1
_DEAD = np.float32(-1e8)  # what is illegal is worth no more
_MOST_PLANS = 200_000


@njit
def _is_new(slots: Words, key: np.uint64) -> bool:
    """Note a key in an open-addressing set (0: empty); False if it was there, or the set is full."""
    last = len(slots) - 1
    j = np.int64(key & np.uint64(last))
    for _ in range(len(slots)):
        if slots[j] == key:
            return False
        if slots[j] == ZERO:
            slots[j] = key
            return True
        j = (j + 1) & last
    return False


@njit
def score_by_estimate(
    boards: Words,
    weights: NDArray[np.int64],
    table: Words,
    spare: Words,
    mask: NDArray[np.int8],
    sent: NDArray[np.int8],
    scores: NDArray[np.float32],
) -> None:
    """Write how near to the win the estimate finds each move's position (float32 ``[N, 520]``)."""
    for i in range(len(boards)):
        lay_out(table, boards[i])
        rules.legal_mask(table, mask)
        for action in range(ACTIONS):
            scores[i, action] = _DEAD
            if mask[action]:
                for j in range(TABLE_WORDS):
                    spare[j] = table[j]
                rules.move(spare, action)
                rules.autoplay(spare, sent)
                scores[i, action] = np.float32(-estimate(spare, weights))


@njit
def _widen(
    boards: Words,
    order: NDArray[np.int64],
    scores: NDArray[np.float32],
    width: int,
    slots: Words,
    table: Words,
    sent: NDArray[np.int8],
    children: Words,
    parents: NDArray[np.int64],
    actions: NDArray[np.int64],
    values: NDArray[np.float32],
) -> tuple[int, bool]:
    """Make the best moves of one game's positions, until ``width`` new positions are found, or one that is won.

    ``order``: places in ``scores`` (``[n * 520]``), the best first. Writes the positions, which of ``boards`` each one
    comes from, by which action, and its score; returns how many there are, and whether the last one is won.
    """
    count = 0
    for place in order:
        if scores[place] <= _DEAD:
            break
        parent, action = place // ACTIONS, place % ACTIONS
        lay_out(table, boards[parent])
        if not rules.move(table, action):
            continue
        rules.autoplay(table, sent)
        won = rules.cards_home(table) == CARDS
        if not won and not _is_new(slots, rules.position_key(table)):
            continue
        for j in range(boards.shape[1]):
            children[count, j] = table[j]
        parents[count], actions[count], values[count] = parent, action, scores[place]
        count += 1
        if won:
            return count, True
        if count == width:
            break
    return count, False


class Game:
    """One game's search: the best positions of every depth, and how they were reached."""

    def __init__(self, board: Words, width: int) -> None:
        """``board``: the words of the first position (uint64 ``[20]``)."""
        self.boards, self.values = board[None].copy(), np.zeros(1, dtype=np.float32)
        self.width, self.won = width, False
        self._layers: list[tuple[NDArray[np.int64], NDArray[np.int64], Words]] = []  # parents, actions, boards before
        self._slots = np.zeros(1 << (2 * width * DEPTH_LIMIT).bit_length(), dtype=np.uint64)
        self._table, self._sent = np.zeros(TABLE_WORDS, dtype=np.uint64), np.zeros(CARDS, dtype=np.int8)
        lay_out(self._table, board)
        _is_new(self._slots, np.uint64(rules.position_key(self._table)))

    @property
    def over(self) -> bool:
        """Is it won, or is there nowhere to go on?"""
        return self.won or len(self.boards) == 0 or len(self._layers) == DEPTH_LIMIT

    def widen(self, scores: NDArray[np.float32]) -> None:
        """Go one move deeper; ``scores``: float32 ``[n, 520]`` of the moves of its positions."""
        flat = scores.ravel()
        most = min(len(flat), 8 * self.width + 64)
        order = np.argpartition(-flat, most - 1)[:most]
        order = order[np.argsort(-flat[order], kind="stable")]
        children = np.empty((self.width, _WORDS), dtype=np.uint64)
        parents, actions = np.empty((2, self.width), dtype=np.int64)
        values = np.empty(self.width, dtype=np.float32)
        scratch = (self._slots, self._table, self._sent)
        n, self.won = _widen(self.boards, order, flat, self.width, *scratch, children, parents, actions, values)
        self._layers.append((parents[:n], actions[:n], self.boards))
        self.boards, self.values = children[:n], values[:n]

    def line(self) -> tuple[Words, NDArray[np.int64]]:
        """Boards (uint64 ``[L + 1, 20]``) and moves (int64 ``[L]``) to the win, or to the best of the deepest."""
        layers, last = (self._layers, self.boards) if len(self.boards) else (self._layers[:-1], self._layers[-1][2])
        i = len(last) - 1 if self.won else 0
        boards, moves = [last[i]], list[int]()
        for parents, actions, before in reversed(layers):
            moves.append(int(actions[i]))
            i = int(parents[i])
            boards.append(before[i])
        return np.array(boards[::-1]), np.array(moves[::-1], dtype=np.int64)


def search(boards: Words, judge: Judge, width: int, adds: bool = True) -> list[Game]:
    """Search from each of these boards (uint64 ``[N, 20]``), all at once.

    ``judge``: what the moves are worth; ``adds``: as logits, whose log-probabilities add up, or as they are.
    """
    games = [Game(board, width) for board in boards]
    while live := [game for game in games if not game.over]:
        scores = judge(np.concatenate([game.boards for game in live]).view(np.uint8).reshape(-1, *SHAPE))
        if adds:
            values = np.concatenate([game.values for game in live])[:, None]
            scores = np.where(scores > _DEAD, _log_softmax(scores) + values, _DEAD)
        ends = np.cumsum([len(game.boards) for game in live])
        for game, part in zip(live, np.split(scores, ends[:-1]), strict=True):
            game.widen(part)
    return games


class Beam:
    """Plays the lines that beam search finds; where it finds no win, the line that got deepest.

    Searches anew where a game has left its line.
    """

    def __init__(self, name: str, judge: Judge, width: int = WIDTH, adds: bool = True, training: str = "") -> None:
        """``judge`` and ``adds`` as in ``search``; ``training``: how long the judge learned.

        Raises ValueError for a width below 1.
        """
        if width < 1:
            raise ValueError(f"the width must be 1 or more, not {width}")
        self.name, self.width, self.training = name, width, training
        self._judge, self._adds = judge, adds
        self._plans: dict[bytes, int] = {}

    def act(self, observations: Observations, masks: Masks, rng: Streams) -> Actions:
        """One action per row; see ``policy.Policy``."""
        keys = [board.tobytes() for board in observations]
        if len(self._plans) > _MOST_PLANS:
            self._plans = dict(islice(self._plans.items(), _MOST_PLANS // 2, None))  # the oldest games are over
        unknown = [i for i, key in enumerate(keys) if key not in self._plans or not masks[i, self._plans[key]]]
        for first in range(0, len(unknown), _GAMES_AT_ONCE):
            self._search(observations[unknown[first : first + _GAMES_AT_ONCE]])
        actions = np.array([self._plans.get(key, -1) for key in keys])
        lost = np.flatnonzero((actions < 0) | ~masks[np.arange(len(masks)), actions])
        actions[lost] = masks[lost].argmax(axis=1)
        return actions

    def _search(self, observations: Observations) -> None:
        """Find a line for each of these boards and note its moves."""
        boards = np.ascontiguousarray(observations).reshape(len(observations), -1).view(np.uint64)
        for game in search(boards, self._judge, self.width, self._adds):
            line, actions = game.line()
            *keys, end = (board.tobytes() for board in line)
            self._plans.update(zip(keys, actions.tolist(), strict=True))
            if not game.won:
                self._plans.pop(end, None)  # an older plan might lead back onto this line


def _log_softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    shifted = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


class _Estimate:
    """Judges by the solver's estimate."""

    def __init__(self) -> None:
        self._weights, self._tables = USUAL.array(), np.zeros((2, TABLE_WORDS), dtype=np.uint64)
        self._mask, self._sent = np.zeros(ACTIONS, dtype=np.int8), np.zeros(CARDS, dtype=np.int8)

    def __call__(self, observations: Observations) -> NDArray[np.float32]:
        scores = np.empty((len(observations), ACTIONS), dtype=np.float32)
        boards = np.ascontiguousarray(observations).reshape(len(observations), -1).view(np.uint64)
        score_by_estimate(boards, self._weights, self._tables[0], self._tables[1], self._mask, self._sent, scores)
        return scores


def estimate_beam(width: int = WIDTH) -> Beam:
    """Beam search by the estimate alone."""
    return Beam("beam", _Estimate(), width, adds=False)
