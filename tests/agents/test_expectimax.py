"""The search of 2048 against the slow one, and how it plays."""

from __future__ import annotations

import random
import time

import gymnasium as gym
import numpy as np
import pytest
from puzzlegym.agents.evaluation import evaluate
from puzzlegym.agents.expectimax import Expectimax, row_values
from puzzlegym.agents.search import memory, rows_leaf, search_rows
from puzzlegym.envs.common.rng import Streams
from puzzlegym.envs.puzzle2048 import Action, legal_moves
from puzzlegym.envs.puzzle2048.state import board_words
from reference import expectimax as slow
from reference import game2048

SLOTS = {"one slot": 1, "colliding": 16, "all": 1 << 14}


def boards(n: int, exponents: range) -> list[tuple[int, ...]]:
    """Boards on which a move is left: from random games, and thrown together of these exponents, a third empty."""
    rng = random.Random(n)
    games = [rng.choice(game2048.play(game2048.start(rng), 200, rng)) for _ in range(n)]
    thrown = [tuple(rng.choice((0, rng.choice(exponents), rng.choice(exponents))) for _ in range(16)) for _ in range(n)]
    return [board for board in games + thrown if any(game2048.legal(board))]


ORDINARY, LARGE = boards(25, range(1, 12)), boards(25, range(13, 18))


def searched(positions: list[tuple[int, ...]], depth: int, cutoff: float = 0.0, slots: int = 1 << 14) -> np.ndarray:
    """Values of all moves (``[N, 4]``), minus infinity for illegal ones."""
    array = np.array(positions, dtype=np.uint8).reshape(-1, 4, 4)
    masks = np.array([legal_moves(board) for board in array])
    found = np.full(masks.shape, -np.inf)
    search_rows(*board_words(array), masks, depth, cutoff, rows_leaf(row_values()), memory(slots), found)
    return found


def act(player: Expectimax, array: np.ndarray, masks: np.ndarray) -> list[int]:
    return player.act(array, masks, Streams.seeded(range(len(array)))).tolist()


def test_rows_are_worth_what_the_formula_says() -> None:
    rows = random.Random(0).sample(range(1 << 16), 2000)
    expected = [slow.row_value([row >> 4 * i & 15 for i in range(4)]) for row in rows]
    np.testing.assert_allclose(row_values()[rows], expected, rtol=1e-12)


@pytest.mark.parametrize("positions", [ORDINARY, LARGE], ids=["ordinary", "large tiles"])
@pytest.mark.parametrize("depth", [1, 2])
def test_values_are_those_of_the_slow_search(positions: list[tuple[int, ...]], depth: int) -> None:
    found = searched(positions, depth)
    for board, values in zip(positions, found, strict=True):
        expected = slow.move_values(board, depth)
        np.testing.assert_allclose(values, [expected.get(way, -np.inf) for way in Action], rtol=1e-9)


@pytest.mark.parametrize("slots", SLOTS.values(), ids=SLOTS)
def test_three_moves_deep_with_any_table(slots: int) -> None:
    crowded = [board for board in ORDINARY + LARGE if len(game2048.empties(board)) < 3][:4]
    assert len(crowded) == 4
    for board, values in zip(crowded, searched(crowded, 3, slots=slots), strict=True):
        expected = slow.move_values(board, 3)
        np.testing.assert_allclose(values, [expected.get(way, -np.inf) for way in Action], rtol=1e-9)


def test_a_cutoff_of_all_chances_leaves_two_moves() -> None:
    """Every new tile is less probable than 1.1, so nothing below the first ones is looked into."""
    assert np.array_equal(searched(ORDINARY, 4, cutoff=1.1), searched(ORDINARY, 2))
    assert not np.array_equal(searched(ORDINARY, 3), searched(ORDINARY, 2))


def test_the_largest_tiles_are_told_from_empty_squares() -> None:
    board = np.zeros((4, 4), np.uint8)
    board[0], board[1, 0] = [16, 16, 3, 3], 1
    assert act(Expectimax(), board[None], legal_moves(board)[None])[0] in (Action.LEFT, Action.RIGHT)


def test_a_position_is_remembered_with_its_depth() -> None:
    """Four moves deep, one 4 and two 2s can make the same board at different depths."""
    np.testing.assert_allclose(searched(ORDINARY[:8], 4), searched(ORDINARY[:8], 4, slots=1), rtol=1e-9)


def test_a_batch_is_its_single_games_and_nothing_is_remembered() -> None:
    """Boards that follow each other: what one search saw, the next one meets again, with other chances."""
    rng = random.Random(1)
    game = game2048.play(game2048.start(rng), 60, rng)[20:]
    together = searched(game, 4, cutoff=1e-3)
    assert np.array_equal(searched(game[::-1], 4, cutoff=1e-3), together[::-1])
    assert np.array_equal(np.concatenate([searched([board], 4, cutoff=1e-3) for board in game]), together)


def test_masked_moves_are_never_made() -> None:
    array = np.array(ORDINARY, dtype=np.uint8).reshape(-1, 4, 4)
    masks = np.array([legal_moves(board) for board in array])
    best = act(Expectimax(2), array, masks)
    masks[np.arange(len(array)), best] = False
    array, masks = array[masks.any(axis=1)], masks[masks.any(axis=1)]
    assert len(array) > 20
    assert masks[np.arange(len(array)), act(Expectimax(2), array, masks)].all()


def test_among_equals_the_first_direction() -> None:
    board = np.zeros((4, 4), np.uint8)
    board[1:3, 1:3] = 3  # merges to exponents of 4, whose values are whole numbers: not even rounding tells ways apart
    for way in Action:
        masks = np.array([[other >= way for other in Action]])
        assert act(Expectimax(depth=1), board[None], masks) == [way]


@pytest.mark.parametrize("depth", [0, -1, 1.5, True, None, "3"])
def test_depth_is_a_whole_number(depth: object) -> None:
    with pytest.raises(ValueError, match="whole number of 1 or more"):
        Expectimax(depth)  # type: ignore[arg-type]


def test_plays_to_2048() -> None:
    env = gym.make("Puzzle2048-v0", terminate_on_win=True)
    player, over = Expectimax(3), False
    observation, info = env.reset(seed=1)
    while not over:
        action = act(player, observation[None], info["action_mask"][None].view(bool))[0]
        observation, _, over, _, info = env.step(action)
    assert info["max_tile"] == 2048


def test_a_deeper_search_plays_better() -> None:
    shallow, deep = (evaluate("Puzzle2048-v0", Expectimax(depth), 30) for depth in (1, 2))
    assert deep.score_ci95[0] > shallow.score_ci95[1]
    assert deep.illegal_moves == 0


def test_work_that_runs_out_is_told_and_leaves_nothing_behind() -> None:
    array = np.array(ORDINARY[:4], dtype=np.uint8).reshape(-1, 4, 4)
    masks, scratch = np.array([legal_moves(board) for board in array]), memory()
    low, high = board_words(array)
    found = np.full(masks.shape, -np.inf)
    for work, enough in ((50, False), (10**9, True)):
        scratch.work[0] = work
        search_rows(low, high, masks, 3, 0.0, rows_leaf(row_values()), scratch, found)
        assert (scratch.work[0] >= 0) == enough
    np.testing.assert_array_equal(found, searched(ORDINARY[:4], 3))


def test_time_for_a_move_is_used_and_kept() -> None:
    array = np.array(ORDINARY, dtype=np.uint8).reshape(-1, 4, 4)
    masks = np.array([legal_moves(board) for board in array])
    times = []
    for seconds in (0.001, 0.03):
        player = Expectimax(seconds=seconds)
        act(player, array[:3], masks[:3])  # it learns how fast it is
        started = time.perf_counter()
        chosen = act(player, array, masks)
        times.append((time.perf_counter() - started) / len(array))
        assert masks[np.arange(len(array)), chosen].all()
    assert times[0] < times[1] < 10 * 0.03  # with room for a busy machine
    deep = act(Expectimax(4), array, masks)
    assert np.mean(np.array(chosen) == deep) > 0.8


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan")])
def test_seconds_are_more_than_none(seconds: float) -> None:
    with pytest.raises(ValueError, match="seconds for a move must be more than 0"):
        Expectimax(seconds=seconds)
