"""Why games were lost, by players that get stuck, go round in circles and wander about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from puzzlegym.agents import evaluation
from puzzlegym.agents.baselines import Random
from puzzlegym.agents.evaluation import Games, evaluate, games, play
from puzzlegym.agents.losses import CAUSES, Trail, freecell_keys
from puzzlegym.agents.statistics import rate_interval
from puzzlegym.envs.common.rng import Streams
from puzzlegym.envs.common.rows import STEPS
from puzzlegym.envs.freecell import board_from, card_id, encode_action

ENV = "FreeCell-v0"
STUCK, REPEATED, STEP_LIMIT = (np.array([cause == name for name in CAUSES]).tolist() for cause in CAUSES)


class There:
    """On deal 9: the eight of diamonds to a cell, and back to its column, for ever."""

    name = "there and back"

    def act(self, observations: Any, masks: Any, rng: Streams) -> Any:
        return np.where(masks[:, encode_action(card_id("8D"), 7)], encode_action(card_id("8D"), 7), 298)


class Illegal:
    """Never moves."""

    name = "illegal"

    def act(self, observations: Any, masks: Any, rng: Streams) -> Any:
        return masks.argmin(axis=1)


class Wanderer(Random):
    """Anywhere in the columns, nowhere twice; to the cells and home only if it must."""

    wrappers = ("no_repeat",)

    def act(self, observations: Any, masks: Any, rng: Streams) -> Any:
        columns = masks & (np.arange(520) % 10 < 8)
        return super().act(observations, np.where(columns.any(axis=1, keepdims=True), columns, masks), rng)


def deals(*numbers: int) -> Games:
    return Games(ENV, np.arange(len(numbers)), {"deal": np.array(numbers)})


@pytest.mark.parametrize("num_envs", [1, 3])
def test_going_round_in_circles(num_envs: int) -> None:
    played = play(There(), deals(9, 9, 9), num_envs=num_envs)
    assert played.moves.tolist() == [500] * 3
    assert played.lost.tolist() == [REPEATED] * 3


def test_illegal_moves_lead_nowhere_new() -> None:
    assert play(Illegal(), deals(1, 2)).lost.tolist() == [REPEATED] * 2


def test_a_wanderer_comes_to_the_step_limit() -> None:
    played = play(Wanderer(), games(ENV, 40), num_envs=16)
    lost = {i for i, cause in enumerate(played.lost.tolist()) if cause == STEP_LIMIT}
    assert lost
    assert set(played.moves[list(lost)].tolist()) == {500}


def positions(seed: int, deal: int, policy: Any) -> Iterator[tuple[Any, bool, bool]]:
    """Every position of a game, up to the order of columns and cells; ended by the rules; won."""
    env = gym.make(ENV)
    board, info = env.reset(seed=seed, options={"deal": deal})
    rng, terminated, truncated = Streams.seeded([seed]), False, False
    while True:
        columns = sorted(tuple(column) for column in board[1:].T.tolist())
        yield (tuple(columns), tuple(sorted(board[0, :4].tolist()))), terminated, info["is_success"]
        if terminated or truncated:
            return
        action = policy.act(board[None], info["action_mask"][None].astype(bool), rng)[0]
        board, _, terminated, truncated, info = env.step(int(action))


def test_causes_are_those_of_the_single_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    class Counting(Trail):
        def causes(self, rows: Any, won: Any, terminated: Any) -> Any:
            counted.extend(self.repeats(row) for row in rows)
            return super().causes(rows, won, terminated)

    monkeypatch.setattr(evaluation, "Trail", Counting)
    chosen, found = games(ENV, 40, 2), []
    played = play(Random(), chosen, num_envs=7)
    for seed, deal, lost in zip(chosen.seeds.tolist(), chosen.options["deal"].tolist(), played.lost, strict=True):
        game = list(positions(seed, deal, Random()))
        (_, terminated, won), moves = game[-1], len(game) - 1
        found.append(len(game) - len({position for position, _, _ in game}))
        expected = STUCK if terminated else REPEATED if found[-1] > moves / 2 else STEP_LIMIT
        assert lost.tolist() == ([False] * 3 if won else expected)
    assert sorted(counted) == sorted(found)
    assert (played.lost.sum(axis=0) > 0).all(), "games of every kind"
    assert played.reached.any(), "and one that is won"


def test_rates_and_intervals_of_all_games() -> None:
    result = evaluate(ENV, Random(), 30, 2)
    assert list(result.losses) == list(CAUSES)
    for i, rate in enumerate(result.losses.values()):
        assert (rate.value, rate.ci95) == rate_interval(int(result.played.lost[:, i].sum()), 30)
    assert result.to_json()["losses"]["stuck"] == {
        "value": result.losses["stuck"].value,
        "ci95": list(result.losses["stuck"].ci95),
    }
    assert evaluate("Puzzle2048-v0", Random(), 3).losses == {}


class Rows:
    """Games whose state is a number of steps and a position."""

    num_envs = 2

    def __init__(self) -> None:
        self.rows = np.zeros((2, STEPS + 2), dtype=np.uint64)

    def get_state(self) -> Any:
        return self.rows.copy()


def ended(walk: list[int]) -> tuple[int, list[bool]]:
    """Repeats and cause of a game with these positions, after another one in the same row."""
    envs = Rows()
    trail = Trail(envs, lambda rows: rows[:, -1])
    for game in ([7, 8, 9, *walk], walk):
        for step, position in enumerate(game):
            envs.rows[1, STEPS], envs.rows[1, -1] = step, position
            trail.note(np.array([False, True]))
    no = np.array([False])
    return trail.repeats(1), trail.causes(np.array([1]), no, no)[0].tolist()


@pytest.mark.parametrize(
    ("walk", "repeats", "cause"),
    [
        ([1, 2, 3, 4], 0, STEP_LIMIT),
        ([1, 2, 1, 3, 1], 2, STEP_LIMIT),
        ([1, 2, 1, 2], 2, REPEATED),
        ([1, 1], 1, REPEATED),
        ([7, 8, 9], 0, STEP_LIMIT),
        ([*range(1000)], 0, STEP_LIMIT),
        ([*range(400), *range(700)], 400, STEP_LIMIT),
        ([*range(400)] * 3, 800, REPEATED),
    ],
    ids=["none", "half", "most", "at_once", "as_before", "long", "long_half", "long_most"],
)
def test_more_than_half_of_the_moves(walk: list[int], repeats: int, cause: list[bool]) -> None:
    assert ended(walk) == (repeats, cause)


def test_columns_and_cells_have_no_order() -> None:
    """A king alone goes to an empty column: nothing has changed."""
    ranks = "A23456789TJQK"
    rest = [rank + suit for rank in ranks for suit in "CDHS" if rank + suit != "KC"]
    columns = ["KC", "", *(" ".join(rest[i::6]) for i in range(6))]
    envs = gym.make_vec(ENV, num_envs=1)
    envs.reset(seed=0, options={"board": [board_from(columns)]})
    trail = Trail(envs, freecell_keys)
    trail.note(np.array([True]))
    for card, to, repeats in (("KC", 1, 1), ("KH", 8, 1), ("KC", 0, 2)):
        envs.step(np.array([encode_action(card_id(card), to)]))
        trail.note(np.array([True]))
        assert trail.repeats(0) == repeats
