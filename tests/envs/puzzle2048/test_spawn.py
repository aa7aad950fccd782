"""New tiles: exactly one after each legal move, none else, on any empty square alike, 2 with 90 % and 4 with 10 %."""

from __future__ import annotations

from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from puzzlegym.envs.puzzle2048 import Action
from reference import game2048 as oracle
from scipy import stats

SAMPLES = 20_000
UNLIKELY = 1e-4  # seeds are fixed: a correct generator stays above this on every run

# name: (board, direction): the empty squares after the slide differ in number and place
PLACES = {
    "almost empty": ((1,) + (0,) * 15, Action.RIGHT),
    "half full": ((1, 2, 3, 4) * 2 + (0,) * 8, Action.DOWN),
    "scattered": ((1, 0, 2, 0, 0, 3, 0, 4, 5, 0, 6, 0, 0, 7, 0, 8), Action.LEFT),
    "full, one merge": ((1, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 3, 4, 5, 6), Action.LEFT),
    "full, merges in all rows": ((1, 1, 2, 2, 3, 3, 4, 4) * 2, Action.RIGHT),
    "large tiles, full": ((16, 15, 15, 14, 1, 1, 2, 3, 5, 6, 7, 8, 6, 5, 4, 3), Action.LEFT),
    "large tiles": ((16, 15, 15, 14, 1, 1, 2, 3) + (0,) * 8, Action.RIGHT),
}


def spawned(board, direction, samples=SAMPLES, seed=1, **arguments):
    """(squares, exponents) of the tile that appeared in each of many games, all checked against the oracle."""
    venv = gym.make_vec("Puzzle2048-v0", num_envs=samples, **arguments)
    venv.reset(seed=seed, options={"board": np.reshape(board, (4, 4))})
    obs, *_ = venv.step(np.full(samples, int(direction)))
    after = np.array(oracle.move(board, int(direction))[0])
    new = obs.reshape(samples, 16).astype(int) - after
    assert ((new != 0).sum(axis=1) == 1).all(), "exactly one new tile"
    squares = new.argmax(axis=1)
    assert (after[squares] == 0).all(), "on an empty square"
    return squares, new.max(axis=1)


@pytest.mark.parametrize("place", PLACES)
def test_uniform_over_all_empty_squares(place):
    board, direction = PLACES[place]
    empty = oracle.empties(oracle.move(board, int(direction))[0])
    squares, tiles = spawned(board, direction)
    counts = [int((squares == square).sum()) for square in empty]
    assert sum(counts) == SAMPLES
    if len(empty) > 1:
        assert stats.chisquare(counts).pvalue > UNLIKELY
        by_tile = [[((squares == square) & (tiles == tile)).sum() for square in empty] for tile in (1, 2)]
        assert stats.chi2_contingency(by_tile).pvalue > UNLIKELY, "the tile depends on the square"


@pytest.mark.parametrize("prob_four", [0.1, 0.0, 0.5, 1.0, 1 / 3])
def test_share_of_fours(prob_four):
    _, tiles = spawned(*PLACES["half full"], prob_four=prob_four)
    assert set(tiles.tolist()) == {0.0: {1}, 1.0: {2}}.get(prob_four, {1, 2})
    assert stats.binomtest(int((tiles == 2).sum()), SAMPLES, prob_four).pvalue > UNLIKELY


def test_default_share_of_fours_is_a_tenth():
    _, tiles = spawned(*PLACES["scattered"], seed=77)
    assert stats.binomtest(int((tiles == 2).sum()), SAMPLES, 0.1).pvalue > UNLIKELY


def test_uniform_within_one_long_sequence():
    """The generator of a single environment, game after game."""
    env = gym.make("Puzzle2048-v0").unwrapped
    board, direction = PLACES["almost empty"]
    env.reset(seed=5)
    squares, tiles = [], []
    for _ in range(6000):
        env.reset(options={"board": np.reshape(board, (4, 4))})
        new = env.step(int(direction))[0].ravel().astype(int) - np.array(oracle.move(board, int(direction))[0])
        squares.append(int(new.argmax()))
        tiles.append(int(new.max()))
    empty = oracle.empties(oracle.move(board, int(direction))[0])
    assert stats.chisquare([squares.count(square) for square in empty]).pvalue > UNLIKELY
    assert stats.binomtest(tiles.count(2), len(tiles), 0.1).pvalue > UNLIKELY
    repeats = sum(a == b for a, b in pairwise(squares))
    assert stats.binomtest(repeats, len(squares) - 1, 1 / 15).pvalue > UNLIKELY, "neighbouring draws are related"


def test_start_has_two_tiles_on_two_squares_alike():
    venv = gym.make_vec("Puzzle2048-v0", num_envs=SAMPLES)
    obs, infos = venv.reset(seed=3)
    boards = obs.reshape(SAMPLES, 16)
    assert ((boards != 0).sum(axis=1) == 2).all()
    assert (infos["score"] == 0).all()
    pairs = np.array([16 * a + b for a, b in (np.flatnonzero(board) for board in boards)])
    counts = np.bincount(pairs, minlength=256)
    assert (counts > 0).sum() == 16 * 15 // 2
    assert stats.chisquare(counts[counts > 0]).pvalue > UNLIKELY
    fours, both = int((boards == 2).sum()), int(((boards == 2).sum(axis=1) == 2).sum())
    assert stats.binomtest(fours, 2 * SAMPLES, 0.1).pvalue > UNLIKELY
    assert stats.binomtest(both, SAMPLES, 0.01).pvalue > UNLIKELY, "the two tiles depend on each other"


@given(seed=st.integers(0, 2**40), lift=st.sampled_from([0, 0, 9, 12]), prob_four=st.sampled_from([0.1, 0.5]))
def test_one_tile_for_each_legal_move_and_none_else(seed, lift, prob_four):
    """Whole games against the oracle: board, points, mask, end, and no spawn by an illegal move."""
    env = gym.make("Puzzle2048-v0", prob_four=prob_four).unwrapped
    obs, info = env.reset(seed=seed)
    obs, info = env.reset(options={"board": np.where(obs > 0, obs + lift, 0)})
    rng, full_merges = np.random.default_rng(seed), 0
    for _ in range(250):
        board = tuple(obs.ravel().tolist())
        action = int(rng.integers(4))
        after, points, legal = oracle.move(board, action)
        obs, reward, terminated, _, info = env.step(action)
        now = tuple(obs.ravel().tolist())
        assert now in oracle.spawns(after) if legal else now == board
        assert (reward, info["legal"]) == (points, legal)
        assert info["action_mask"].tolist() == oracle.legal(now)
        assert terminated is oracle.is_over(now)
        full_merges += legal and 0 not in board
        if terminated:
            break


@pytest.mark.parametrize("place", ["full, one merge", "full, merges in all rows", "large tiles, full"])
def test_merge_on_a_full_board_spawns(place):
    board, direction = PLACES[place]
    assert 0 not in board
    spawned(board, direction, samples=200)
