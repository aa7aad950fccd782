"""Learning FreeCell from the solver: runs that learn, are repeated, stopped and gone on with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from puzzlegym.agents import cloning, saved
from puzzlegym.agents.cloning import CloneRun, Pool
from puzzlegym.agents.configs import CLONE_CONFIGS, clone_config, ppo_config
from puzzlegym.agents.errors import AgentError
from puzzlegym.agents.lines import Lines, legal_masks
from puzzlegym.agents.network_policy import arrays_of
from puzzlegym.agents.policy import load
from puzzlegym.agents.runs import Budget, Progress
from puzzlegym.agents.seeds import TEST_DEALS
from puzzlegym.agents.training import Run
from puzzlegym.envs.freecell.state import DEAL

SMALL = replace(clone_config(), lines=6, num_envs=4, batch_size=128, pool=20_000)


class Silent:
    def update(self, progress: Progress) -> None:
        pass


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Sums do not depend on how they are split among threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def trained(steps: int, out: Path, seed: int = 0, **changes: Any) -> CloneRun:
    run = CloneRun(replace(SMALL, **changes), Budget(steps=steps), seed, out)
    run.train(Silent())
    return run


def agreement(policy: Any, lines: int = 40) -> float:
    """How often a player makes the solver's move on lines that it has not learned from."""
    source = Lines(0, seed=12345)
    found = [source.fresh() for _ in range(lines)]
    obs = np.concatenate([line.boards for line in found]).view(np.uint8).reshape(-1, 20, 8)
    return float(np.mean(policy.act(obs, legal_masks(obs), None) == np.concatenate([line.actions for line in found])))


def test_the_solvers_moves_are_learned(tmp_path: Path) -> None:
    fresh = trained(1, tmp_path / "fresh")
    run = trained(25_000, tmp_path / "run")
    before, after = (agreement(load("FreeCell-v0", str(one.out))) for one in (fresh, run))
    assert before < 0.45
    assert after > before + 0.2
    assert run.figures()["agrees"] > 0.5


def test_the_same_seed_gives_the_same_weights(tmp_path: Path) -> None:
    weights = [arrays_of(trained(1500, tmp_path / name, seed).network) for name, seed in (("a", 3), ("b", 3), ("c", 4))]
    for name in weights[0]:
        np.testing.assert_array_equal(weights[0][name], weights[1][name], err_msg=name)
    assert any((weights[0][name] != weights[2][name]).any() for name in weights[0])


def test_a_stopped_run_goes_on(tmp_path: Path) -> None:
    run = CloneRun(SMALL, Budget(steps=4000), 0, tmp_path)

    class Stop:
        def update(self, progress: Progress) -> None:
            run.stop = progress.steps > 800

    run.train(Stop())
    card = saved.load_card(tmp_path)
    assert 800 < card["steps"] < 4000
    again = CloneRun.resume(tmp_path)
    assert again.progress.steps == card["steps"]
    assert json.loads(json.dumps(again.card()["config"])) == card["config"]
    for name, value in arrays_of(again.network).items():
        np.testing.assert_array_equal(value, saved.load_weights(tmp_path)[name], err_msg=name)
    states = again.optimizer.state_dict()["state"]
    assert states, "the optimiser has its moments"
    assert {int(state["step"]) for state in states.values()} != {0}
    again.train(Silent())
    assert again.progress.fraction == 1.0
    assert saved.load_card(tmp_path)["steps"] >= 4000


def test_positions_of_its_own_games_are_learned_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines from deals alone begin with no card at home; those from its own games begin anywhere."""
    taken: list[int] = []
    take = CloneRun._take

    def spy(run: CloneRun, line: Any) -> None:
        taken.append(int((line.boards[0].view(np.uint8).reshape(20, 8)[0] > 0).sum()))
        take(run, line)

    monkeypatch.setattr(CloneRun, "_take", spy)
    trained(1500, tmp_path / "deals", own=0.0)
    assert sum(taken) == 0
    taken.clear()
    trained(1500, tmp_path / "own", own=0.5, own_from=0.0, moves=12)
    assert sum(taken) > 0


def test_what_cannot_be_won_teaches_a_value_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = CloneRun(replace(SMALL, own_from=0.0), Budget(steps=500), 0, tmp_path)
    monkeypatch.setattr(run._finder, "find", lambda table: None)
    run.train(Silent())
    actions, values = run._pool._actions[: len(run._pool)], run._pool._values[: len(run._pool)]
    assert (values[actions == cloning._NO_MOVE] == 0).all()
    assert 0 < (actions == cloning._NO_MOVE).sum() < len(actions)
    assert np.isfinite(run._agrees).all()


def test_the_pool_forgets_the_oldest() -> None:
    pool, rng = Pool(10), np.random.default_rng(0)
    for start in range(0, 24, 4):
        numbers = np.arange(start, start + 4)
        pool.add(np.zeros((4, 20), dtype=np.uint64), numbers, 0.5 * numbers)
    assert len(pool) == 10
    obs, actions, values = pool.draw(500, rng)
    assert obs.shape == (500, 20, 8)
    assert set(actions.tolist()) == set(range(14, 24))
    np.testing.assert_allclose(values.numpy(), 0.5 * actions.numpy())


def test_no_test_deal_is_played_or_learned(tmp_path: Path) -> None:
    run = CloneRun(SMALL, Budget(steps=1), 0, tmp_path)
    deals = run.pupil._envs.get_state()[:, DEAL]
    assert (deals > TEST_DEALS[1]).all()
    assert all(config.env_arguments["deal_range"][0] > TEST_DEALS[1] for config in CLONE_CONFIGS.values())


def test_the_network_can_be_learned_further(tmp_path: Path) -> None:
    first = trained(600, tmp_path / "first")
    further = CloneRun(SMALL, Budget(steps=1), 7, tmp_path / "further", start=first.out)
    config = replace(ppo_config("FreeCell-v0", "finetune"), num_envs=4, n_steps=8)
    tuned = Run(config, Budget(steps=32), 0, tmp_path / "tuned", start=first.out)
    for network in (further.network, tuned.learner.policy.net):
        for name, value in arrays_of(network).items():
            np.testing.assert_array_equal(value, arrays_of(first.network)[name], err_msg=name)
    assert tuned.card()["start"] == str(first.out)
    assert tuned.card()["steps_before"] == first.progress.steps
    told = saved.training_told({**tuned.card(), "steps": 400, "seconds": 60.0})
    assert told == saved.training_told({"steps": 400 + first.progress.steps, "seconds": 60 + first.card()["seconds"]})
    other = replace(config, network="card_net", network_arguments={})
    with pytest.raises(AgentError, match="does not fit"):
        Run(other, Budget(steps=32), 0, tmp_path / "other", start=first.out)


def test_at_first_only_the_last_layer_of_the_values_learns(tmp_path: Path) -> None:
    config = replace(
        ppo_config("FreeCell-v0", "finetune"), num_envs=4, n_steps=16, batch_size=32, critic_share=0.5, last_entropy=1.0
    )
    run = Run(config, Budget(steps=128), 0, tmp_path)
    before = arrays_of(run.learner.policy.net)
    run.budget = Budget(steps=10_000)

    class Once:
        def update(self, progress: Progress) -> None:
            run.stop = progress.steps >= 128

    run.train(Once())
    after = arrays_of(run.learner.policy.net)
    assert {name for name in before if (before[name] != after[name]).any()} == {"value.weight", "value.bias"}


def test_the_card_is_plain_and_unknown_configurations_are_one_line(tmp_path: Path) -> None:
    card = trained(300, tmp_path).card()
    assert json.loads(json.dumps(card))["algorithm"] == "cloning"
    with pytest.raises(ValueError, match="unknown configuration 'x' for cloning: use dagger, lines"):
        clone_config("x")


@pytest.mark.parametrize("change", [{"config": {}}, {"config": None}, {"steps": "many"}, {"data": 3}])
def test_a_card_that_does_not_fit_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    run = trained(300, tmp_path)
    saved.save(tmp_path / "agent.zip", {**run.card(), **change}, arrays_of(run.network), {})
    with pytest.raises(AgentError, match="cannot be resumed"):
        CloneRun.resume(tmp_path)
