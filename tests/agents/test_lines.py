"""Winning lines to learn from: of training deals alone, won when they are played, and never all the same."""

from __future__ import annotations

from itertools import count
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from puzzlegym.agents import lines
from puzzlegym.agents.lines import Line, LineFinder, Lines, deal_table, legal_masks
from puzzlegym.agents.seeds import TRAIN_DEALS
from puzzlegym.envs.freecell import UNWINNABLE, deal_board, legal_mask
from puzzlegym.envs.freecell.planning import table_of
from reference import freecell, freecell_search
from reference.playing import choose_all, middle_of_a_game


@pytest.fixture
def dealt(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of all deals that are looked at."""
    numbers, inner = [], lines.deal_table

    def noted(number: int) -> np.ndarray:
        numbers.append(number)
        return inner(number)

    monkeypatch.setattr(lines, "deal_table", noted)
    return numbers


def assert_wins(line: Line, **start: Any) -> None:
    """The line is what the environment shows and takes, from its first board to the win."""
    env = gym.make("FreeCell-v0")
    board, info = env.reset(options=start)
    assert (line.boards.shape, line.boards.dtype) == ((len(line.actions), 20), np.uint64)
    assert line.actions.dtype == np.int64
    terminated = False
    for told, action in zip(line.boards, line.actions.tolist(), strict=True):
        assert not terminated
        assert np.array_equal(told.view(np.uint8).reshape(20, 8), board)
        board, _, terminated, _, info = env.step(action)
        assert info["legal"]
    assert terminated
    assert info["is_success"]


def test_tables_are_the_deals() -> None:
    for number in (1, 617, 32_001, 1_000_000):
        assert np.array_equal(deal_table(number), table_of(deal_board(number)))


@pytest.mark.parametrize("seed", [0, 1])
def test_lines_of_training_deals_win(seed: int, dealt: list[int]) -> None:
    source = Lines(4, seed)
    for take in (source.fresh, source.draw):
        for _ in range(12):
            dealt.clear()
            line = take()
            if dealt:
                assert_wins(line, deal=dealt[-1])
                assert all(TRAIN_DEALS[0] <= number <= TRAIN_DEALS[1] for number in dealt)


def test_all_training_deals_are_drawn_and_no_others(dealt: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = Line(np.zeros((0, 20), np.uint64), np.zeros(0, np.int64))
    monkeypatch.setattr(LineFinder, "find", lambda self, table: nothing)
    source = Lines(0, seed=2)
    for _ in range(3000):
        source.fresh()
    assert 32_001 <= min(dealt) < 34_000
    assert 998_000 < max(dealt) <= 1_000_000
    assert len(set(dealt)) > 2900

    class Ends:
        def integers(self, low: int, high: int) -> int:
            return low if len(dealt) % 2 else high - 1

    source._rng = Ends()  # type: ignore[assignment]
    dealt.clear()
    source.fresh()
    source.fresh()
    assert sorted(dealt) == [32_001, 1_000_000]


def test_deals_without_a_line_are_passed_over(dealt: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter([UNWINNABLE[1], UNWINNABLE[2], 32_001])
    source = Lines(0, 0)
    monkeypatch.setattr(source, "_rng", type("Given", (), {"integers": lambda *_: next(numbers)})())
    assert_wins(source.fresh(), deal=32_001)
    assert dealt == [UNWINNABLE[1], UNWINNABLE[2], 32_001]


def test_lines_from_the_middle_of_games() -> None:
    """A line, or none where there is no win; what was searched before makes no difference."""
    finder, found = LineFinder(), 0
    for i in range(12):
        board = middle_of_a_game("FreeCell-v0", seed=50 * i, moves=12).unwrapped.get_state().array
        line = finder.find(table_of(board))
        again = LineFinder().find(table_of(board))
        assert (line is None) == (again is None)
        if line is None or again is None:
            assert freecell_search.winnable(freecell.from_squares(board)) is not True
            continue
        assert np.array_equal(line.actions, again.actions)
        assert_wins(line, board=board)
        found += 1
    assert found > 5
    assert all(finder.find(deal_table(number)) is None for number in UNWINNABLE[:3])


def test_a_finder_gives_up_after_its_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    hopeless, usual = (lines._TRIES[0][0], 1), lines._TRIES[0]
    monkeypatch.setattr(lines, "_TRIES", (hopeless, usual))
    monkeypatch.setattr(lines, "_PART", 10)
    assert LineFinder(1).find(deal_table(32_001)) is None
    line = LineFinder(2).find(deal_table(32_001))
    assert line is not None
    assert_wins(line, deal=32_001)


def test_memory_grows_with_the_search() -> None:
    small = LineFinder()
    small._search.resize(64)
    for number in range(32_001, 32_006):
        here, there = small.find(deal_table(number)), LineFinder().find(deal_table(number))
        assert here is not None
        assert there is not None
        assert np.array_equal(here.actions, there.actions)
    assert small._search.room > 64


def test_the_seed_says_which_lines() -> None:
    (one, same, other) = (Lines(3, seed) for seed in (1, 1, 2))
    for _ in range(10):
        line = one.draw()
        assert np.array_equal(line.boards, same.draw().boards)
        assert not np.array_equal(line.boards, other.draw().boards)


def test_a_part_of_the_lines_is_always_new(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count()
    monkeypatch.setattr(Lines, "fresh", lambda self: next(numbers))
    source = Lines(10, seed=0)
    assert [source.draw() for _ in range(10)] == [*range(10)]
    drawn = [source.draw() for _ in range(2000)]
    found = next(numbers)
    assert 200 < found < 300, "one draw of eight replaces a line"
    assert len(source._lines) == 10
    assert min(source._lines) > 100, "all of the first ones were replaced"
    assert set(drawn) | set(range(10)) == set(range(found)), "a new line is the one that is drawn"


def test_of_size_nothing_all_are_new_and_none_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count()
    monkeypatch.setattr(Lines, "fresh", lambda self: next(numbers))
    source = Lines(0, seed=0)
    assert [source.draw() for _ in range(50)] == [*range(50)]
    assert source._lines == []


def test_masks_are_those_of_the_environment() -> None:
    envs = gym.make_vec("FreeCell-v0", num_envs=12)
    obs, infos = envs.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(60):
        masks = legal_masks(obs)
        assert (masks.shape, masks.dtype) == ((12, 520), np.bool_)
        assert np.array_equal(masks, infos["action_mask"])
        assert np.array_equal(legal_masks(obs[::-2]), masks[::-2])
        obs, *_, infos = envs.step(choose_all(infos["action_mask"], rng))
    assert np.array_equal(legal_masks(obs), [legal_mask(board) for board in obs])
    assert legal_masks(obs[:0]).shape == (0, 520)
