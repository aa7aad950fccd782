"""The protocol: whole games on held-out seeds, the same for every agent and every batch size."""

from __future__ import annotations

import dataclasses
import itertools
import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from puzzlegym import PUZZLES
from puzzlegym.agents import seeds, statistics
from puzzlegym.agents.evaluation import Games, evaluate, games, play
from puzzlegym.agents.measures import MEASURES
from puzzlegym.agents.policy import load
from puzzlegym.envs.common.rng import Streams

KEYS = ["env_id", "agent", "episodes", "seed", "score", "rates", "moves", "illegal_moves", "moves_per_second"]


def test_streams_are_disjoint() -> None:
    size = seeds.STREAM_SIZE
    ranges = sorted(
        (int(found.min()), int(found.max()))
        for stream in seeds.STREAMS
        for found in [np.concatenate([seeds.stream_seeds(stream, 0, 5), seeds.stream_seeds(stream, size - 6, 5)])]
    )
    assert len(ranges) == 3
    for (_, last), (first, _) in itertools.pairwise(ranges):
        assert last < first


@pytest.mark.parametrize(("seed", "n"), [(-1, 1), (0, 0), (0, -3), (seeds.STREAM_SIZE, 1), (seeds.STREAM_SIZE - 5, 5)])
def test_seeds_outside_a_stream_are_refused(seed: int, n: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        seeds.stream_seeds("test", seed, n)


def test_freecell_test_deals_are_those_of_random_games_and_never_trained_on() -> None:
    deals = seeds.stream_deals("test", 5, 32_000)
    assert sorted(deals) == list(range(1, 32_001))
    assert deals[:100].tolist() == (np.random.default_rng(5).permutation(32_000)[:100] + 1).tolist()
    assert seeds.TRAIN_DEALS == (32_001, 1_000_000)
    spans = sorted(seeds.DEALS.values())
    assert all(last < first for (_, last), (first, _) in itertools.pairwise(spans))


@pytest.mark.parametrize("n", [0, 32_001])
def test_impossible_numbers_of_deals_are_refused(n: int) -> None:
    with pytest.raises(ValueError, match="from 1 to 32,000"):
        seeds.stream_deals("test", 0, n)


def test_fewer_games_are_the_first_of_more() -> None:
    for env_id in PUZZLES:
        few, many = games(env_id, 3, 9), games(env_id, 8, 9)
        assert few.seeds.tolist() == many.seeds[:3].tolist()
        assert all(few.options[k].tolist() == many.options[k][:3].tolist() for k in few.options)


def test_mean_interval_is_repeatable_and_near_the_normal_one() -> None:
    sample = np.random.default_rng(0).normal(10, 2, 400)
    mean, (low, high) = statistics.mean_interval(sample)
    assert statistics.mean_interval(sample) == (mean, (low, high))
    assert mean == pytest.approx(sample.mean())
    half = 1.96 * sample.std() / 20
    assert low == pytest.approx(mean - half, abs=0.03)
    assert high == pytest.approx(mean + half, abs=0.03)


@pytest.mark.parametrize("sample", [[7.0], [3.0] * 50])
def test_sample_without_spread(sample: list[float]) -> None:
    assert statistics.mean_interval(sample) == (sample[0], (sample[0], sample[0]))


def test_empty_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        statistics.mean_interval([])


def test_wilson_interval_by_its_formula() -> None:
    value, (low, high) = statistics.rate_interval(18, 1000)
    z, n, p = 1.959964, 1000, 0.018
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    assert (value, low, high) == pytest.approx((p, centre - half, centre + half), abs=1e-6)
    assert statistics.rate_interval(0, 10)[1][0] == 0
    assert statistics.rate_interval(10, 10)[1][1] == pytest.approx(1)


@pytest.mark.parametrize("env_id", list(PUZZLES))
def test_json_has_exactly_the_promised_keys(env_id: str) -> None:
    result = evaluate(env_id, load(env_id, "random"), 12, 3)
    data = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert list(data) == [*KEYS[:6], *["losses"] * (env_id == "FreeCell-v0"), *KEYS[6:]]
    assert list(data["score"]) == ["mean", "ci95", "median", "max"]
    assert (data["env_id"], data["agent"], data["episodes"], data["seed"]) == (env_id, "random", 12, 3)
    assert data["illegal_moves"] == 0
    assert data["moves_per_second"] > 0
    names = [str(2**k) for k in range(9, 17)] if env_id == "Puzzle2048-v0" else ["win"]
    assert list(data["rates"]) == names
    for rate in data["rates"].values():
        low, high = rate["ci95"]
        assert 0 <= low <= rate["value"] <= high <= 1


@pytest.mark.parametrize("env_id", list(PUZZLES))
@pytest.mark.parametrize("name", ["random", "greedy"])
def test_result_does_not_depend_on_the_batch(env_id: str, name: str) -> None:
    policy = load(env_id, name)
    found = [play(policy, games(env_id, 7, 1), num_envs=n) for n in (1, 3, 7, 50)]
    for other in found[1:]:
        assert other.scores.tolist() == found[0].scores.tolist()
        assert other.moves.tolist() == found[0].moves.tolist()
        assert other.reached.tolist() == found[0].reached.tolist()
        assert other.lost.tolist() == found[0].lost.tolist()


def test_a_network_never_judges_a_few_rows_alone() -> None:
    """The last bits would be others than in a batch, and so might be the choice between moves as good as equal."""
    env = gym.make_vec("FreeCell-v0", num_envs=20)
    boards, infos = env.reset(seed=0)
    masks, rows = infos["action_mask"].astype(np.bool_), list[int]()
    policy: Any = load("FreeCell-v0", "learned")
    inner = policy.network
    policy.network = lambda *seen: rows.append(len(seen[0])) or inner(*seen)
    together = policy.act(boards, masks, Streams.seeded(range(20)))
    alone = [policy.act(boards[i : i + 1], masks[i : i + 1], Streams.seeded([i])) for i in range(20)]
    assert together.tolist() == np.concatenate(alone).tolist()
    assert set(rows) == {16, 20}
    env.close()


@pytest.mark.parametrize("env_id", list(PUZZLES))
def test_games_are_those_of_the_single_environment(env_id: str) -> None:
    policy = load(env_id, "random")
    chosen = games(env_id, 4, 2)
    played = play(policy, chosen, num_envs=2)
    env = gym.make(env_id)
    key = MEASURES[env_id].score
    for i, seed in enumerate(chosen.seeds.tolist()):
        options = {name: int(values[i]) for name, values in chosen.options.items()}
        observation, info = env.reset(seed=seed, options=options)
        rng, moves, over = Streams.seeded([seed]), 0, False
        while not over:
            action = policy.act(observation[None], info["action_mask"][None].astype(bool), rng)[0]
            observation, _, terminated, truncated, info = env.step(int(action))
            moves, over = moves + 1, terminated or truncated
        assert (played.scores[i], played.moves[i]) == (info[key], moves)
        assert played.reached[i].tolist() == [info[k] >= least for k, least in MEASURES[env_id].rates.values()]


class Stubborn:
    """Plays action 0 whether legal or not, then the first legal one."""

    name = "stubborn"

    def __init__(self) -> None:
        self.turn = 0

    def act(self, observations: Any, masks: Any, rng: Streams) -> Any:
        self.turn += 1
        first = masks.argmax(axis=1)
        return np.where(self.turn % 2, np.zeros_like(first), first)


def test_illegal_moves_are_counted() -> None:
    env = gym.make("Puzzle2048-v0")
    chosen = games("Puzzle2048-v0", 1, 4)
    played = play(Stubborn(), chosen)
    _, info = env.reset(seed=int(chosen.seeds[0]))
    policy, illegal, over = Stubborn(), 0, False
    policy.turn = 1  # the uncounted first move
    while not over:
        action = policy.act(None, info["action_mask"][None].astype(bool), Streams.seeded([0]))[0]
        _, _, over, _, info = env.step(int(action))
        illegal += not info["legal"]
    assert played.illegal.tolist() == [illegal]
    assert illegal > 0


def test_policy_is_only_asked_for_live_games() -> None:
    class Recorder:
        name = "recorder"
        sizes: list[int] = []  # noqa: RUF012

        def act(self, observations: Any, masks: Any, rng: Streams) -> Any:
            assert len(observations) == len(masks) == len(rng)
            assert masks.any(axis=1).all()
            self.sizes.append(len(masks))
            return load("Puzzle2048-v0", "random").act(observations, masks, rng)

    recorder = Recorder()
    played = play(recorder, games("Puzzle2048-v0", 6), num_envs=3)
    assert sum(recorder.sizes) - 1 == played.moves.sum()  # one uncounted move before the start
    assert recorder.sizes[-1] == 1


def test_wrong_number_of_actions_is_said() -> None:
    class Broken:
        name = "broken"

        def act(self, observations: Any, masks: Any, rng: Streams) -> Any:
            return masks.argmax(axis=1)[:1]

    with pytest.raises(ValueError, match="broken returned actions"):
        play(Broken(), games("Puzzle2048-v0", 3))


def test_progress_counts_up_to_the_end() -> None:
    calls: list[tuple[int, int, int]] = []
    result = evaluate("FreeCell-v0", load("FreeCell-v0", "random"), 5, progress=lambda *call: calls.append(call))
    assert [call[0] for call in calls] == sorted(call[0] for call in calls)
    assert calls[-1] == (5, 5, result.played.moves.sum())


def test_start_rank_makes_freecell_easier() -> None:
    policy = load("FreeCell-v0", "random")
    easy = evaluate("FreeCell-v0", policy, 40, start_rank=9)
    full = evaluate("FreeCell-v0", policy, 40)
    assert easy.rates["win"].value > 0.5 > full.rates["win"].value
    assert easy.to_json()["start_rank"] == 9
    assert easy.played.scores.min() >= 36


@pytest.mark.parametrize("rank", [-1, 13])
def test_wrong_start_rank_is_refused(rank: int) -> None:
    with pytest.raises(ValueError, match="from 0"):
        games("FreeCell-v0", 1, start_rank=rank)


def test_start_rank_is_refused_for_2048() -> None:
    with pytest.raises(ValueError, match="no start_rank"):
        games("Puzzle2048-v0", 1, start_rank=3)


def test_selection_games_are_not_test_games() -> None:
    for env_id in PUZZLES:
        test, selection = games(env_id, 500), games(env_id, 500, stream="selection")
        assert not set(test.seeds.tolist()) & set(selection.seeds.tolist())
        for name in test.options:
            assert not set(test.options[name].tolist()) & set(selection.options[name].tolist())


def test_a_puzzle_without_measures_counts_its_return(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = load("Puzzle2048-v0", "random")
    chosen = games("Puzzle2048-v0", 5)
    known = play(policy, chosen, num_envs=2)
    monkeypatch.delitem(MEASURES, "Puzzle2048-v0")
    unknown = play(policy, chosen, num_envs=2)
    assert unknown.scores.tolist() == known.scores.tolist()  # the rewards of 2048 add up to its score
    assert unknown.reached.tolist() == [[False]] * 5


def test_set_boards_can_be_played() -> None:
    """Any reset option works as long as it has an entry per game."""
    deals = np.array([1, 617, 11982])
    chosen = Games("FreeCell-v0", np.arange(3), {"deal": deals})
    one = play(load("FreeCell-v0", "greedy"), chosen, num_envs=1)
    all_three = play(load("FreeCell-v0", "greedy"), chosen)
    assert dataclasses.replace(one, seconds=0).scores.tolist() == all_three.scores.tolist()


def test_greedy_beats_random() -> None:
    for env_id in PUZZLES:
        random, greedy = (evaluate(env_id, load(env_id, name), 60) for name in ("random", "greedy"))
        assert greedy.score_ci95[0] > random.score_ci95[1], env_id
