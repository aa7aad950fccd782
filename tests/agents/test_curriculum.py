"""The curricula of FreeCell: which games are dealt, and when harder ones follow."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from puzzlegym.agents.configs import PPO_CONFIGS, BackwardCurriculum, RankCurriculum, ppo_config
from puzzlegym.agents.curriculum import Backward, Ranks, curriculum_of, make_batch
from puzzlegym.agents.seeds import TEST_DEALS, TRAIN_DEALS
from puzzlegym.agents.solver import Solver
from reference.playing import choose_all

BOTH: list[Any] = [
    pytest.param(Ranks, RankCurriculum(first=5, window=6, threshold=0.7), id="ranks"),
    pytest.param(Backward, BackwardCurriculum(first=5, window=6, threshold=0.7, lines=3), id="backward"),
]


def test_the_rank_goes_down_when_enough_is_won() -> None:
    curriculum = Ranks(RankCurriculum(first=3, threshold=0.75, window=4, easier=0.0, full=0.0), 1, seed=0)
    frontiers = []
    for won in (True, True, False, False, True, True, True) + (True,) * 20:
        curriculum.ended(0, won)
        frontiers.append(curriculum.frontier)
    assert frontiers[:6] == [3] * 6, "of the last four two, then three were won"
    assert 2 in frontiers
    assert min(frontiers) == frontiers[-1] == 0, "and stops at the full game"


def test_the_moves_before_the_win_grow_when_enough_is_won() -> None:
    config = BackwardCurriculum(first=4, growth=1.5, last=20, threshold=0.75, window=4, easier=0.0, full=0.0)
    curriculum = Backward(config, 1, seed=0)
    frontiers = [curriculum.frontier]
    for _ in range(60):
        curriculum.ended(0, True)
        if curriculum.frontier != frontiers[-1]:
            frontiers.append(curriculum.frontier)
    assert frontiers == [4, 6, 9, 14, curriculum.full]
    assert curriculum.figures()["before"] == 20, "a figure that can be drawn"
    lost = Backward(config, 1, seed=0)
    for _ in range(60):
        lost.ended(0, False)
    assert lost.frontier == 4


@pytest.mark.parametrize(("make", "config"), BOTH)
def test_games_are_mixed_as_configured(make: Any, config: Any) -> None:
    curriculum = make(config, 10, seed=0)
    curriculum.frontier = easy = 3 if make is Ranks else 8
    drawn = np.concatenate([_restarted(curriculum) for _ in range(500)])
    easier = {4, 5} if make is Ranks else {5, 6, 7}
    assert set(drawn) == {curriculum.full, easy, *easier}
    assert np.mean(drawn == curriculum.full) == pytest.approx(config.full, abs=0.03)
    assert np.mean(np.isin(drawn, list(easier))) == pytest.approx(config.easier, abs=0.03)


def _restarted(curriculum: Any) -> Any:
    class Nothing:
        def set_attr(self, *_: Any) -> None:
            pass

    curriculum.restart(Nothing())
    return curriculum.next.copy()


@pytest.mark.parametrize(("make", "config"), BOTH)
def test_the_state_is_whole(make: Any, config: Any) -> None:
    one, other = make(config, 4, seed=1), make(config, 4, seed=2)
    for won in (True, False, True, True):
        one.ended(2, won)
    other.load(json.loads(json.dumps(one.state())))
    assert other.state() == one.state()
    np.testing.assert_array_equal(_restarted(other), _restarted(one))


def test_games_begin_the_solvers_moves_before_the_win() -> None:
    """Of 8 rows a few are full deals; the others can be won in so many moves at most."""
    curriculum = Backward(BackwardCurriculum(first=3, easier=0.0, full=0.3, lines=4), 8, seed=0)
    env = gymnasium.make_vec("FreeCell-v0", num_envs=8, autoreset_mode="SameStep")
    batch = curriculum.wrap(env)
    curriculum.restart(batch)
    obs, infos = batch.reset(seed=0)
    full = curriculum.next == curriculum.full
    assert 0 < full.sum() < 8
    assert (infos["cards_home"][full] == 0).all()
    assert (infos["cards_home"][~full] > 0).all()
    solver = Solver(short=True)
    assert all(0 < len(solver.solve(board).actions) <= 3 for board in obs[~full])


def test_the_configuration_says_which() -> None:
    assert isinstance(curriculum_of(ppo_config("FreeCell-v0", "backward"), 0), Backward)
    assert isinstance(curriculum_of(ppo_config("FreeCell-v0", "ranks"), 0), Ranks)
    assert curriculum_of(ppo_config("FreeCell-v0", "deals"), 0) is None
    assert curriculum_of(ppo_config("Puzzle2048-v0"), 0) is None


@pytest.mark.parametrize("name", PPO_CONFIGS["FreeCell-v0"])
def test_training_never_plays_a_test_deal(name: str) -> None:
    config = replace(ppo_config("FreeCell-v0", name), num_envs=32)
    curriculum = curriculum_of(config, 0)
    batch = make_batch(config, curriculum)
    if curriculum:
        curriculum.restart(batch)
    _, infos = batch.reset(seed=0)
    dealt, rng = [infos["deal"]], np.random.default_rng(0)
    for _ in range(60):
        _, _, _, _, infos = batch.step(choose_all(infos["action_mask"].astype(bool), rng))
        dealt.append(infos["deal"])
    numbers = np.concatenate(dealt)
    numbers = numbers[numbers != 0]  # the solver's positions, which come from ``Lines``
    assert len(np.unique(numbers)) > 8
    assert numbers.min() > TEST_DEALS[1]
    assert numbers.max() <= TRAIN_DEALS[1]
