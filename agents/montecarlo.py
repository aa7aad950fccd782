"""Random roll-outs for 2048: every legal move is judged by games that are played to their end at random."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..envs.common import rng
from ..envs.common.jit import njit
from ..envs.common.rng import Streams
from ..envs.common.rows import ONE
from ..envs.puzzle2048.actions import ACTIONS
from ..envs.puzzle2048.rules import FOURS, legal_bits, slide, spawn
from ..envs.puzzle2048.state import board_words
from .policy import Actions, Masks, Observations

_ACTIONS = np.uint64(ACTIONS)


@njit
def _roll_out(low: np.uint64, high: np.uint64, word: np.uint64) -> tuple[int, np.uint64]:
    """Points of a game that goes on at random from an afterstate, and the generator word behind it."""
    total = 0
    while True:
        word += rng.GAMMA
        low, _ = spawn(low, high, rng.mix(word), FOURS)
        legal = legal_bits(low, high)
        if legal == 0:
            return total, word
        word += rng.GAMMA
        random = rng.mix(word)
        way = np.int64(rng.below(random, _ACTIONS))
        while not legal >> way & 1:  # each direction is as likely as any other: draw again
            random = rng.mix(random + ONE)
            way = np.int64(rng.below(random, _ACTIONS))
        low, high, gain = slide(low, high, way)
        total += gain


@njit
def judge_rows(
    low: NDArray[np.uint64],
    high: NDArray[np.uint64],
    masks: Masks,
    seeds: NDArray[np.uint64],
    games: int,
    found: NDArray[np.float64],
) -> None:
    """Write the mean points of ``games`` random games after each legal move, its own included, into ``found``.

    ``low``, ``high`` and ``seeds`` (generator words) are uint64 ``[N]``, ``masks`` and ``found`` ``[N, 4]``.
    """
    for i in range(len(low)):
        word = seeds[i]
        for way in range(ACTIONS):
            if not masks[i, way]:
                continue
            to_low, to_high, gain = slide(low[i], high[i], way)
            total = 0
            for _ in range(games):
                points, word = _roll_out(to_low, to_high, word)
                total += points
            found[i, way] = gain + total / games


class MonteCarlo:
    """The move after which games that go on at random score most (Rodgers and Levine 2014)."""

    name = "montecarlo"

    def __init__(self, games: int = 50) -> None:
        """``games``: roll-outs for each legal move. Raises ValueError unless it is at least 1."""
        if games < 1:
            raise ValueError(f"games must be 1 or more, not {games}")
        self.games = games

    def act(self, observations: Observations, masks: Masks, rng: Streams) -> Actions:
        """One action per row; the chance of the roll-outs comes from the row's stream."""
        found = np.full(masks.shape, -np.inf)
        seeds = (rng.uniform() * 2**53).astype(np.uint64)
        judge_rows(*board_words(observations), np.ascontiguousarray(masks), seeds, self.games, found)
        return np.asarray(found.argmax(axis=1), dtype=np.int64)
