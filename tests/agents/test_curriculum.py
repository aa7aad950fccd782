"""The curriculum of FreeCell: which ranks are dealt, and when the next one opens."""

from __future__ import annotations

import json

import numpy as np
import pytest
from puzzlegym.agents.configs import Curriculum
from puzzlegym.agents.curriculum import RankCurriculum


def test_the_frontier_goes_down_when_enough_is_won() -> None:
    curriculum = RankCurriculum(Curriculum(first_rank=3, threshold=0.75, window=4, easier=0.0, full=0.0), 1, seed=0)
    frontiers = []
    for won in (True, True, False, False, True, True, True) + (True,) * 20:
        curriculum.ended(0, won)
        frontiers.append(curriculum.frontier)
    assert frontiers[:6] == [3] * 6, "of the last four two, then three were won"
    assert 2 in frontiers
    assert min(frontiers) == frontiers[-1] == 0, "and stops at the full game"


def test_the_curriculum_mixes_ranks_as_configured() -> None:
    curriculum = RankCurriculum(Curriculum(first_rank=6, easier=0.2, full=0.3), 10, seed=0)
    curriculum.frontier = 4
    drawn = np.concatenate([curriculum.restart().copy() for _ in range(500)])
    assert set(drawn) == {0, 4, 5, 6}
    assert np.mean(drawn == 0) == pytest.approx(0.3, abs=0.03)
    assert np.mean(drawn > 4) == pytest.approx(0.2, abs=0.03)


def test_the_curriculums_state_is_whole() -> None:
    config = Curriculum(first_rank=5, window=6)
    one, other = RankCurriculum(config, 4, seed=1), RankCurriculum(config, 4, seed=2)
    for won in (True, False, True, True):
        one.ended(2, won)
    other.load(json.loads(json.dumps(one.state())))
    assert other.state() == one.state()
    np.testing.assert_array_equal(other.restart(), one.restart())
