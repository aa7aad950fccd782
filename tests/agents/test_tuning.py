"""The search for good numbers: what is proposed, what is given up, and how it goes on."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from puzzlegym.agents import ppo, tuning
from puzzlegym.agents.config_file import LIMITS
from puzzlegym.agents.configs import PPO_CONFIGS, PPOConfig, ppo_config
from puzzlegym.agents.evaluation import evaluate
from puzzlegym.agents.runs import Budget
from puzzlegym.agents.study_file import seeds
from puzzlegym.agents.tuning import SPACE, Choice, Outcome, Report, Tried, Tuning, best_of

ID = "Puzzle2048-v0"
BASE = ppo_config(ID, "2min")
MINUTE = Budget(seconds=60.0)
GOAL = 2e-3  # the learning rate that the objective of these tests likes best


def value(config: PPOConfig) -> float:
    return -abs(math.log(config.learning_rate / GOAL))


def objective(config: PPOConfig, budget: Budget, seed: int, games: int, report: Report) -> Outcome | None:
    """Takes no time; its figure is the final one from the start."""
    score = value(config)
    if any(report(percent / 100, score) for percent in range(1, 101)):
        return None
    return Outcome(score, (score - 1, score + 1), 1000)


def watch(fraction: float, score: float | None) -> None:
    """Show nothing."""


def made(path: Path, total: int, **settings: Any) -> list[Tried]:
    with Tuning(path, **{"base": BASE, "budget": MINUTE, "objective": objective, **settings}) as search:
        return list(search.run(total, watch))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.journal"


def test_the_first_trial_is_the_configuration_that_it_begins_with(path: Path) -> None:
    odd = replace(BASE, learning_rate=1.23456789e-2, num_envs=77)  # outside of what is searched, with many digits
    trials = made(path, 3, base=odd)
    assert trials[0].config == odd
    assert all(tried.config.learning_rate <= odd.learning_rate for tried in trials)


def test_proposals_are_in_the_space_and_have_few_digits(path: Path) -> None:
    trials = made(path, 12)
    assert [tried.index for tried in trials] == list(range(12))
    for tried in trials:
        for name, where in SPACE.items():
            number = getattr(tried.config, name)
            assert number == float(f"{number:.3g}") or isinstance(number, int)
            if isinstance(where, Choice):
                assert number in where.values
            else:
                assert where.low <= number <= where.high
        same = {name: getattr(BASE, name) for name in SPACE}
        assert replace(tried.config, **same) == BASE, "nothing else is searched"
    for name in SPACE:
        assert len({getattr(tried.config, name) for tried in trials}) > 1, f"{name} never changes"


def test_the_search_finds_what_is_better(path: Path) -> None:
    trials = made(path, 30)
    best = best_of(trials)[0]
    assert value(best.config) > -0.2 > value(BASE)
    early, late = (np.mean([abs(value(tried.config)) for tried in part]) for part in (trials[1:11], trials[-10:]))
    assert late < early


@pytest.mark.parametrize("known", PPO_CONFIGS.values(), ids=PPO_CONFIGS)
def test_every_rollout_holds_whole_batches(known: dict[str, PPOConfig]) -> None:
    """Of any puzzle's configurations; fields are those of a configuration, within their limits."""
    choices = {name: where.values for name, where in SPACE.items() if isinstance(where, Choice)}
    for config in known.values():
        assert set(SPACE) <= set(vars(config))
        for batch in (*choices["batch_size"], config.batch_size):
            assert min(choices["n_steps"]) * min(choices["num_envs"]) % batch == 0
    for name, where in SPACE.items():
        low, high = LIMITS[name]
        ends = where.values if isinstance(where, Choice) else (where.low, where.high)
        assert low <= min(ends) <= max(ends) <= high


def test_the_same_seed_gives_the_same_search(tmp_path: Path) -> None:
    given: list[list[int]] = []

    def noting(config: PPOConfig, budget: Budget, seed: int, *rest: Any) -> Outcome | None:
        given[-1].append(seed)
        return objective(config, budget, seed, *rest)

    searches = []
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        given.append([])
        searches.append([tried.config for tried in made(tmp_path / name, 8, seed=seed, objective=noting)])
    assert searches[0] == searches[1] != searches[2]
    assert given[0] == given[1] == [seeds(5, index)[1] for index in range(8)]
    assert not set(given[0]) & set(given[2])
    assert len(set(given[0])) == 8, "every trial trains by a seed of its own"


def test_hopeless_trials_are_given_up_and_others_are_not(path: Path) -> None:
    """After four whole trials, at 30 % of the budget, if the figure is below the median."""
    figures = iter([4.0, 1.0, 3.0, 2.0, 2.4, 2.6, 0.0])
    told: list[float] = []

    def fixed(config: PPOConfig, budget: Budget, seed: int, games: int, report: Report) -> Outcome | None:
        figure = next(figures)
        for step in range(1, 1001):
            told.append(step / 1000)
            if report(step / 1000, figure):
                return None
        return Outcome(figure, (figure, figure), 1000)

    trials = []
    for total in range(1, 8):
        told.clear()
        trials += made(path, total, objective=fixed)
        if trials[-1].outcome is None:
            assert told[-1] == 0.3, "the rest of its budget is saved"
        else:
            assert told[-1] == 1.0
    assert [tried.outcome is None for tried in trials] == [False] * 4 + [True, False, True]
    assert [tried.percent for tried in trials] == [90] * 4 + [30, 90, 30]
    assert [tried.index for tried in best_of(trials)] == [0, 2, 5, 3, 1]


def test_figures_may_be_missing_at_first(path: Path) -> None:
    def slow(config: PPOConfig, budget: Budget, seed: int, games: int, report: Report) -> Outcome | None:
        for step in range(1, 101):
            assert not report(step / 100, None if step < 55 else 1.0)
        return Outcome(1.0, (1.0, 1.0), 1000)

    assert [tried.percent for tried in made(path, 6, objective=slow)] == [90] * 6


class Stop(BaseException):
    """As KeyboardInterrupt, which would end the tests where it is not caught."""


def stopping(at: int) -> Any:
    """The objective, interrupted in the middle of the trial number ``at`` of this session."""
    trials = 0

    def interrupted(*arguments: Any) -> Outcome | None:
        nonlocal trials
        trials += 1
        if trials > at:
            arguments[-1](0.15, 1.0)
            raise Stop
        return objective(*arguments)

    return interrupted


@pytest.mark.parametrize("at", [0, 3, 7])
def test_a_stopped_search_goes_on_as_if_it_had_not_been(at: int, path: Path, tmp_path: Path) -> None:
    with pytest.raises(Stop):
        made(path, 9, objective=stopping(at))
    with Tuning(path, BASE, MINUTE, objective=objective) as search:
        assert [tried.index for tried in search.done()] == list(range(at)), "that under way does not count"
        rest = list(search.run(9, watch))
        assert search.done() == made(tmp_path / "whole", 9)
    assert [tried.index for tried in rest] == list(range(at, 9))
    assert made(path, 9) == []
    assert [tried.index for tried in made(path, 11)] == [9, 10]


def test_a_trial_that_failed_is_made_again_in_the_same_session(path: Path) -> None:
    with Tuning(path, BASE, MINUTE, objective=stopping(1)) as search:
        for _ in range(2):
            with pytest.raises(Stop):
                list(search.run(3, watch))
        assert [tried.index for tried in search.done()] == [0]
        search._objective = objective
        assert [tried.index for tried in search.run(3, watch)] == [1, 2]


CHILD = f"""
import sys, time
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from puzzlegym.agents.tuning import Tuning, Outcome
from puzzlegym.agents.configs import ppo_config
from puzzlegym.agents.runs import Budget

def objective(config, budget, seed, games, report):
    print("begun", flush=True)
    time.sleep(float(sys.argv[3]))
    return Outcome(-config.learning_rate, (0, 0), 1)

with Tuning(Path(sys.argv[1]), ppo_config("{ID}", "2min"), Budget(seconds=60.0), objective=objective) as search:
    for tried in search.run(int(sys.argv[2]), lambda fraction, score: None):
        print(tried.index, flush=True)
"""


def child(path: Path, total: int, seconds: float) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", CHILD, str(path), str(total), str(seconds)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_killed_process_leaves_its_trial_to_the_next(path: Path) -> None:
    made(path, 2)
    with child(path, 9, 100.0) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        with Tuning(path, BASE, MINUTE, objective=objective) as search:
            assert [tried.index for tried in search.run(4, watch)] == [3], "it has trial 2"
        process.kill()
        process.communicate()
    assert [tried.index for tried in made(path, 5)] == [2, 4]
    assert not list(path.parent.glob(".*.alive"))


def test_two_processes_share_the_trials(path: Path) -> None:
    with child(path, 8, 0.05) as first, child(path, 8, 0.05) as second:
        results = [process.communicate(timeout=120) for process in (first, second)]
    assert all(process.returncode == 0 for process in (first, second)), results
    made_by = [[int(line) for line in out.splitlines() if line.isdigit()] for out, _ in results]
    assert sorted(made_by[0] + made_by[1]) == list(range(8))
    assert made(path, 8) == []
    with Tuning(path, BASE, MINUTE) as search:
        trials = search.done()
    assert len({tried.config.learning_rate for tried in trials}) == 8, "no proposal twice"
    assert trials[0].config == BASE


def test_a_line_written_half_way_counts_as_not_there(path: Path) -> None:
    whole = made(path, 3)
    with path.open("ab") as file:
        file.write(b'{"op_code":5,"worker_id":"some')
    assert [tried.index for tried in made(path, 4)] == [3]
    with Tuning(path, BASE, MINUTE) as search:
        assert search.done()[:3] == whole


@pytest.mark.parametrize(
    "content", [b"hello\n", b"SQLite format 3\x00", b"{}", b'{"op_code":0,"study_name":"mine"}\n', b'{"op_code":0,"x']
)
def test_a_file_of_something_else_is_refused_and_kept(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(ValueError, match="holds something else than trials of 'puzzlegym tune'"):
        made(path, 3)
    assert path.read_bytes() == content


def test_a_damaged_file_is_refused(path: Path) -> None:
    made(path, 2)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:5], b"nonsense\n", *lines[5:]]))
    with pytest.raises(ValueError, match=r"study.journal is damaged \(.*\): choose another file"):
        made(path, 3)


@pytest.mark.parametrize("content", [b"", b'{"op_c'])
def test_a_file_that_has_hardly_begun_is_begun_again(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    assert len(made(path, 2)) == 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"base": ppo_config("FreeCell-v0")}, "puzzle Puzzle2048-v0, not FreeCell-v0"),
        ({"budget": Budget(seconds=30.0)}, "minutes 1.0, not 0.5"),
        ({"budget": Budget(steps=100)}, "steps null, not 100"),
        ({"seed": 1}, "seed 0, not 1"),
        ({"games": 20}, "games 200, not 20"),
        ({"base": replace(BASE, vf_coef=0.4)}, "configuration"),
    ],
)
def test_a_search_of_another_kind_is_refused(settings: dict[str, Any], words: str, path: Path) -> None:
    made(path, 2)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="choose another file, or the same options") as caught:
        made(path, 3, **settings)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


def test_what_matters_is_told_of_a_long_search(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "_TELLING", 10)
    with Tuning(path, BASE, MINUTE, objective=objective) as search:
        list(search.run(4, watch))
        assert search.importances() == {}, "it would be noise"
        list(search.run(25, watch))
        shares = search.importances()
    assert next(iter(shares)) == "learning_rate"
    assert sum(shares.values()) == pytest.approx(1.0)


@pytest.fixture
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


SMALL: dict[str, PPOConfig] = {
    ID: replace(BASE, num_envs=8, n_steps=32, batch_size=64),
    "FreeCell-v0": replace(ppo_config("FreeCell-v0", "ranks"), num_envs=8, n_steps=32, batch_size=64),
}


@pytest.mark.usefixtures("_one_thread")
@pytest.mark.parametrize("env_id", SMALL)
def test_a_trial_trains_and_plays_selection_games(env_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    played, reports = [], []

    def noting(*arguments: Any, **options: Any) -> Any:
        played.append(evaluate(*arguments, **options))
        assert options["stream"] == "selection"
        return played[-1]

    def report(fraction: float, score: float | None) -> bool:
        reports.append((fraction, score))
        return False

    monkeypatch.setattr(tuning, "evaluate", noting)
    outcome = tuning.train_and_play(SMALL[env_id], Budget(steps=3000), 1, 5, report)
    assert outcome == Outcome(played[0].score_mean, played[0].score_ci95, 3000)
    assert played[0].episodes == 5
    assert reports[0][1] is None
    assert reports[-1][0] == 1.0
    assert reports[-1][1] is not None
    assert reports[-1][1] > 0


@pytest.mark.usefixtures("_one_thread")
def test_figures_are_those_of_whole_games(tmp_path: Path) -> None:
    """Easier starts have most cards at home from the start: no figure to compare trials by."""
    scores: list[float] = []

    def report(fraction: float, score: float | None) -> bool:
        scores.append(score or 0.0)
        return False

    run = tuning._Watched(SMALL["FreeCell-v0"], Budget(steps=4000), 0, tmp_path, report)
    run.train(run)
    assert 0 < max(scores) < 20
    assert run.progress.figures["home"] > 40


@pytest.mark.usefixtures("_one_thread")
def test_a_trial_that_is_given_up_stops_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "evaluate", None)
    fractions = []

    def report(fraction: float, score: float | None) -> bool:
        fractions.append(fraction)
        return fraction >= 0.3

    assert tuning.train_and_play(SMALL[ID], Budget(steps=10_000), 1, 5, report) is None
    assert 0.3 <= fractions[-1] < 0.31


@pytest.mark.usefixtures("_one_thread")
def test_a_network_that_is_not_a_number_does_not_play(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would play for ever: its likeliest move need not be legal."""
    weights = ppo.weights_of
    monkeypatch.setattr(ppo, "weights_of", lambda learner: {**weights(learner), "last": np.array([0.0, np.nan])})
    monkeypatch.setattr(tuning, "evaluate", None)
    assert tuning.train_and_play(SMALL[ID], Budget(steps=500), 1, 5, lambda fraction, score: False) is None
