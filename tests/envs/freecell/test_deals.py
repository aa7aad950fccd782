"""Numbered deals: the classic ones by two independent dealers, the range of numbers, random deals, start ranks."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from puzzlegym.envs.freecell import UNWINNABLE, deal_board
from reference import freecell as oracle
from reference.shared_data import read_json
from scipy import stats

ID = "FreeCell-v0"
LAST = 2**31 - 1
LAYOUTS = {row["deal"]: row["layout"] for row in read_json("freecell_deals.json")}
NO_DEALS = [0, -1, 1.5, 2.0, float("nan"), True, "7", 2**31, 2**64 + 1, np.array([1, 2]), [1, 2, 3, 4]]


def columns(board):
    return [[oracle.name(int(x) - 1) for x in column if x] for column in board[1:].T]


def test_reference_layouts():
    assert len(LAYOUTS) == 25
    dealt = {deal: columns(deal_board(deal)) for deal in LAYOUTS if deal <= LAST}
    assert len(dealt) == 21
    assert dealt == {deal: [line.split() for line in LAYOUTS[deal].splitlines()] for deal in dealt}


@pytest.mark.parametrize("deal", [deal for deal in LAYOUTS if deal > LAST])
def test_numbers_beyond_the_formula_are_refused(deal):
    with pytest.raises(ValueError, match=f"from 1 to {LAST}, not {deal}"):
        deal_board(deal)


@given(st.integers(1, LAST))
def test_any_deal_is_the_formula(deal):
    board = deal_board(deal)
    assert board.tolist() == oracle.squares(oracle.deal(deal))
    assert (board.dtype, board.shape) == (np.uint8, (20, 8))
    assert [len(column) for column in columns(board)] == [7] * 4 + [6] * 4


@given(st.integers(1, 2**31 - 1), st.integers(0, 12))
def test_start_rank_deals_the_higher_cards(deal, start_rank):
    expected = oracle.squares(oracle.deal(deal, start_rank))
    assert deal_board(deal, start_rank).tolist() == expected
    obs, info = gym.make(ID).reset(options={"deal": deal, "start_rank": start_rank})
    assert obs.tolist() == expected
    assert (info["deal"], info["cards_home"]) == (deal, 4 * start_rank)
    assert gym.make(ID, start_rank=start_rank, deal=deal).reset()[0].tolist() == expected


def ways_to_ask(deal):
    yield lambda: deal_board(deal)
    for make in (gym.make, gym.make_vec):
        yield lambda make=make: make(ID, deal=deal)
        yield lambda make=make: started(make(ID)).reset(options={"deal": deal})


def started(env):
    env.reset(seed=0)
    return env


@pytest.mark.parametrize("deal", NO_DEALS, ids=str)
def test_no_deals_are_refused_and_say_what_is_accepted(deal):
    for ask in ways_to_ask(deal):
        with pytest.raises(ValueError, match=f"from 1 to {LAST}|for each of the 1 environments") as error:
            ask()
        assert "\n" not in str(error.value)


def test_a_refused_deal_leaves_the_game():
    env = started(gym.make(ID)).unwrapped
    state = env.get_state()
    with pytest.raises(ValueError, match="deal"):
        env.reset(options={"deal": 0})
    assert env.get_state() == state


@pytest.mark.parametrize("start_rank", [-1, 13, 1.5, True, "3", float("nan")])
def test_impossible_start_ranks_are_refused(start_rank):
    for make in (gym.make, gym.make_vec):
        for ask in (
            lambda make=make: make(ID, start_rank=start_rank),
            lambda make=make: started(make(ID)).reset(options={"start_rank": start_rank}),
        ):
            with pytest.raises(ValueError, match="start_rank must be a whole number from 0 to 12"):
                ask()


NO_RANGES = [(0, 5), (5, 4), (1, 2**31), (1,), (1, 2, 3), 5, "ab", None, (1.0, 2.0), (1, True)]


@pytest.mark.parametrize("deal_range", NO_RANGES, ids=str)
def test_impossible_deal_ranges_are_refused(deal_range):
    for make in (gym.make, gym.make_vec):
        with pytest.raises(ValueError, match="deal_range"):
            make(ID, deal_range=deal_range)


@pytest.mark.parametrize("kind", [int, np.int64, np.int32, np.uint32])
def test_whole_numbers_of_any_kind_are_deals(kind):
    board = deal_board(617)
    assert np.array_equal(deal_board(kind(617)), board)
    assert np.array_equal(gym.make(ID, deal=kind(617)).reset()[0], board)
    assert np.array_equal(gym.make(ID).reset(options={"deal": kind(617)})[0], board)


def test_constructor_deal_holds_for_all_games_and_option_for_one():
    env = gym.make(ID, deal=617)
    deals = [env.reset(seed=1)[1], env.reset()[1], env.reset(options={"deal": 5})[1], env.reset()[1]]
    assert [info["deal"] for info in deals] == [617, 617, 5, 617]
    ranked = [env.reset(options={"start_rank": 9})[1], env.reset()[1]]
    assert [(info["deal"], info["cards_home"]) for info in ranked] == [(617, 36), (617, 0)]


def test_random_deals_are_the_classic_ones():
    """A random deal is a number from 1 to 32,000, each alike, and its board is that number's board."""
    obs, infos = gym.make_vec(ID, num_envs=16_000).reset(seed=1)
    deals = infos["deal"]
    assert deals.min() >= 1
    assert deals.max() <= 32_000
    assert stats.chisquare(np.bincount((deals - 1) // 1000, minlength=32)).pvalue > 1e-4
    for i in range(0, 16_000, 400):
        assert obs[i].tolist() == oracle.squares(oracle.deal(int(deals[i])))


def test_deal_range_reaches_both_ends_alike():
    _, infos = gym.make_vec(ID, num_envs=8_000, deal_range=(LAST - 15, LAST)).reset(seed=1)
    counts = np.bincount(infos["deal"] - (LAST - 15), minlength=16)
    assert len(counts) == 16
    assert stats.chisquare(counts).pvalue > 1e-4
    assert gym.make(ID, deal_range=(9, 9)).reset()[1]["deal"] == 9


def test_each_game_of_a_batch_gets_its_deal_and_rank():
    venv = gym.make_vec(ID, num_envs=3)
    obs, infos = venv.reset(options={"deal": [1, 617, 1_000_000], "start_rank": np.array([0, 3, 12])})
    assert infos["deal"].tolist() == [1, 617, 1_000_000]
    for board, deal, rank in zip(obs, (1, 617, 1_000_000), (0, 3, 12), strict=True):
        assert board.tolist() == oracle.squares(oracle.deal(deal, rank))
    obs, infos = venv.reset(options={"deal": 5})
    assert infos["deal"].tolist() == [5, 5, 5]
    assert infos["cards_home"].tolist() == [0, 0, 0]
    for wrong in ({"deal": [1, 2]}, {"start_rank": [0] * 4}, {"deal": [1, 0, 3]}, {"deal": [1, None, "x"]}):
        with pytest.raises(ValueError, match=r"deal|start_rank"):
            venv.reset(options=wrong)


def test_start_rank_of_a_running_batch():
    """What a curriculum does: each game's next reset, automatic ones included, has its new rank."""
    venv = gym.make_vec(ID, num_envs=3, max_episode_steps=4, autoreset_mode="SameStep")
    venv.reset(seed=0)
    venv.set_attr("start_rank", [0, 7, 12])
    for _ in range(4):
        *_, infos = venv.step(np.argmax(venv.action_masks(), axis=1))
    assert infos["cards_home"].tolist() == [0, 28, 48]
    venv.set_attr("start_rank", 3)
    assert venv.reset()[1]["cards_home"].tolist() == [12, 12, 12]
    for wrong in (13, [1, 2], [0, 0, -1]):
        with pytest.raises(ValueError, match="start_rank"):
            venv.set_attr("start_rank", wrong)
    assert venv.reset()[1]["cards_home"].tolist() == [12, 12, 12]


def test_the_deals_that_cannot_be_won():
    assert UNWINNABLE == (11982, 146692, 186216, 455889, 495505, 512118, 517776, 781948)
