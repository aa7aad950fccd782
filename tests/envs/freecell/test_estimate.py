"""The estimate against a count of everything that it minds, card by card."""

from __future__ import annotations

import random

import gymnasium as gym
import numpy as np
import pytest
from puzzlegym.envs.freecell.estimate import USUAL, WEIGHTS, Weights, estimate, estimate_rows
from puzzlegym.envs.freecell.planning import table_of
from reference import freecell, freecell_estimate
from reference.playing import choose_all

WON = freecell.Position([[] for _ in range(8)], [None] * 4, [13] * 4)


def shuffled(rng):
    """Any position, with a random number of cards at home, in cells and in each column."""
    home = [rng.randrange(rng.randint(1, 14)) for _ in range(4)]
    cards = [card for card in range(52) if freecell.rank(card) >= home[freecell.suit(card)]]
    rng.shuffle(cards)
    cells = [cards.pop() if cards and rng.random() < 0.4 else None for _ in range(4)]
    columns = [[] for _ in range(8)]
    while cards:
        rng.choice([column for column in columns if len(column) < 19][: rng.randint(1, 8)]).append(cards.pop())
    return freecell.Position(columns, cells, home)


def positions():
    """Games of random moves, from the deal and from easier ones, and positions without any order."""
    rng = random.Random(0)
    for number in range(12):
        yield from freecell.play(freecell.deal(number + 1, start_rank=number), 25, rng)
    for _ in range(150):
        yield shuffled(rng)
    yield WON


POSITIONS = list(positions())


def estimated(position, weights=USUAL):
    return estimate(table_of(freecell.squares(position)), weights.array())


def some_weights(rng):
    number = lambda: rng.randint(-50, 50)  # noqa: E731
    lists = [tuple(number() for _ in usual) for usual in USUAL[4:]]
    return Weights(*(number() for _ in range(4)), *lists)


def test_it_is_the_weighted_sum_of_what_is_counted():
    rng, seen = random.Random(1), set()
    for position in POSITIONS:
        weights = some_weights(rng)
        assert estimated(position) == freecell_estimate.estimate(position, USUAL)
        assert estimated(position, weights) == freecell_estimate.estimate(position, weights)
        seen |= {thing for thing, number in freecell_estimate.counts(position).items() if number}
    assert len(seen) == WEIGHTS - 1, "the positions show all but the price of a move, which is no part of it"


def test_order_of_columns_and_of_cells_does_not_matter():
    rng = random.Random(2)
    for position in POSITIONS:
        columns, cells = rng.sample(position.columns, 8), rng.sample(position.cells, 4)
        assert estimated(freecell.Position(columns, cells, position.home)) == estimated(position)


def test_a_won_position_looks_nearest():
    assert estimated(WON) == USUAL.cells[0] + USUAL.empty[3]
    assert all(estimated(position) > estimated(WON) for position in POSITIONS if not freecell.won(position))


@pytest.mark.parametrize("weights", [USUAL, some_weights(random.Random(3))], ids=["usual", "others"])
def test_all_rows_of_a_batch(weights):
    envs = gym.make_vec("FreeCell-v0", num_envs=16)
    obs, infos = envs.reset(seed=0)
    rng, estimates = np.random.default_rng(0), np.full(16, np.nan)
    for _ in range(30):
        estimate_rows(envs.get_state(), weights.array(), estimates)
        expected = [freecell_estimate.estimate(freecell.from_squares(board), weights) for board in obs]
        assert estimates.tolist() == expected
        obs, *_, infos = envs.step(choose_all(infos["action_mask"], rng))
