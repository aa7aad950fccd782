"""Random roll-outs, and the corner rule."""

from __future__ import annotations

import numpy as np
import pytest
from puzzlegym.agents import montecarlo
from puzzlegym.agents.baselines import Corner2048
from puzzlegym.agents.evaluation import evaluate
from puzzlegym.agents.montecarlo import MonteCarlo
from puzzlegym.agents.policy import load
from puzzlegym.envs.common.rng import Streams
from puzzlegym.envs.puzzle2048 import Action, legal_moves
from puzzlegym.envs.puzzle2048.state import board_words

P2048 = "Puzzle2048-v0"


def test_roll_outs_score_as_random_play_does():
    """Mean points of random games from an empty board: those of the agent ``random``."""
    word, points = np.uint64(1), []
    for _ in range(2000):
        total, word = montecarlo._roll_out(np.uint64(1), np.uint64(0), np.uint64(word))
        points.append(total)
    known = evaluate(P2048, load(P2048, "random"), 500).score_mean
    assert np.mean(points) == pytest.approx(known, rel=0.08)


def test_the_last_move_is_judged_by_its_points():
    """After it no square is free but one, and every game ends at once or nearly so."""
    board = np.array([[5, 5, 1, 2], [3, 4, 5, 6], [7, 8, 9, 10], [1, 2, 3, 4]], dtype=np.uint8)
    found = np.full((1, 4), -np.inf)
    low, high = board_words(board[None])
    montecarlo.judge_rows(low, high, legal_moves(board)[None], np.array([3], dtype=np.uint64), 200, found)
    assert found[0, Action.LEFT] >= 64
    assert found[0, Action.RIGHT] >= 64
    assert np.isinf(found[0, [Action.UP, Action.DOWN]]).all()


def test_it_plays_far_better_than_chance():
    result = evaluate(P2048, MonteCarlo(games=20), 5)
    assert result.score_mean > 8_000
    assert result.illegal_moves == 0


def test_games_must_be_some():
    with pytest.raises(ValueError, match="games must be 1 or more, not 0"):
        MonteCarlo(games=0)


def test_the_corner_rule_is_not_greedy():
    boards = np.random.default_rng(0).integers(0, 8, (300, 4, 4)).astype(np.uint8)
    masks = np.stack([legal_moves(board) for board in boards])
    boards, masks = boards[masks.any(axis=1)], masks[masks.any(axis=1)]
    streams = Streams.seeded(range(len(boards)))
    corner, greedy = (load(P2048, name).act(boards, masks, streams) for name in ("corner", "greedy"))
    assert 0.05 < np.mean(corner != greedy) < 0.6
    both = masks[:, Action.DOWN] | masks[:, Action.LEFT]
    assert np.isin(corner[both], (Action.DOWN, Action.LEFT)).all()


def choose(rows):
    board = np.array(rows, dtype=np.uint8)
    action = Corner2048().act(board[None], legal_moves(board)[None], Streams.seeded([0]))[0]
    return Action(int(action)).name


@pytest.mark.parametrize(
    ("board", "move"),
    [
        ([[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]], "DOWN"),
        ([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [3, 3, 0, 0]], "LEFT"),
        ([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 3, 0, 0]], "LEFT"),
        ([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [3, 2, 1, 0]], "RIGHT"),
        ([[0, 0, 0, 9], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 1]], "LEFT"),
        ([[9, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [2, 0, 0, 0]], "DOWN"),
        ([[5, 0, 0, 3], [5, 0, 0, 3], [1, 1, 0, 0], [0, 0, 0, 0]], "DOWN"),
        ([[1, 1, 0, 0], [2, 2, 0, 0], [9, 0, 0, 0], [9, 0, 0, 0]], "LEFT"),
        ([[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 9], [0, 0, 0, 0]], "LEFT"),
        ([[0, 0, 0, 0], [0, 0, 0, 0], [1, 2, 1, 2], [3, 4, 3, 4]], "UP"),
    ],
)
def test_the_corner_rule(board, move):
    assert choose(board) == move
