"""The solver as a player: it wins what can be won, whatever happens on the way, and plays on where it cannot."""

from __future__ import annotations

import random

import gymnasium as gym
import numpy as np
import pytest
from puzzlegym.agents.evaluation import evaluate
from puzzlegym.agents.solver import SOLVED, Solver
from puzzlegym.agents.solver_player import SolverPlayer
from puzzlegym.envs.common.rng import Streams
from puzzlegym.envs.freecell import legal_moves

SURPRISES = frozenset({2, 3, 9, 20, 21, 30})


@pytest.fixture
def solved(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The results of every search."""
    results, solve = [], Solver.solve

    def noted(self: Solver, board: np.ndarray) -> object:
        solution = solve(self, board)
        results.append(solution.result)
        return solution

    monkeypatch.setattr(Solver, "solve", noted)
    return results


def play(
    player: SolverPlayer, env: gym.Env, surprises: frozenset[int] = frozenset(), **start: object
) -> tuple[dict, np.ndarray]:
    """Play a game, in which some moves are made at random instead; the last info, and the board after the last such."""
    board, info = env.reset(options=start)
    rng, streams, number, over = random.Random(0), Streams.seeded([0]), 0, False
    left = board
    while not over:
        mask = info["action_mask"].astype(bool)
        action = int(player.act(board[None], mask[None], streams)[0])
        assert mask[action]
        if number in surprises:
            action = rng.choice(legal_moves(board).tolist())
        board, _, terminated, truncated, info = env.step(action)
        left = board if number in surprises else left
        number, over = number + 1, terminated or truncated
    return info, left


def test_a_game_is_solved_once(solved: list[str]) -> None:
    player, env = SolverPlayer(), gym.make("FreeCell-v0")
    solved.clear()
    for deal in (1, 2, 1):
        assert play(player, env, deal=deal)[0]["is_success"]
    assert solved == [SOLVED, SOLVED]


def test_after_surprises_it_wins_where_a_win_is_left() -> None:
    env, results = gym.make("FreeCell-v0"), []
    for deal in range(1, 13):
        info, left = play(SolverPlayer(), env, SURPRISES, deal=deal)
        assert info["is_success"] == (Solver().solve(left).result == SOLVED), deal
        results.append(info["is_success"])
    assert 4 < sum(results) < 12, "both happens"


@pytest.mark.parametrize("limits", [{}, {"seconds": 1e-6}])
def test_without_a_line_it_plays_on(limits: dict[str, float], solved: list[str]) -> None:
    player = SolverPlayer(**limits)
    solved.clear()
    info, _ = play(player, gym.make("FreeCell-v0"), deal=11982)
    assert not info["is_success"]
    assert info["moves"] > 5
    assert SOLVED not in solved


def test_its_plans_are_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("puzzlegym.agents.solver_player._MOST_PLANS", 100)
    player, env = SolverPlayer(), gym.make("FreeCell-v0")
    for deal in range(1, 7):
        assert play(player, env, deal=deal)[0]["is_success"]
        assert len(player._plans) < 250


def test_it_wins_evaluations() -> None:
    result = evaluate("FreeCell-v0", SolverPlayer(), 40, seed=1)
    assert result.rates["win"].value == 1
    assert result.illegal_moves == 0
    assert result.score_mean == 52
