"""Short runs that learn, and runs that are repeated, stopped and gone on with."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from puzzlegym.agents import network_policy, ppo, saved
from puzzlegym.agents.configs import PPOConfig, RankCurriculum, ppo_config
from puzzlegym.agents.errors import AgentError
from puzzlegym.agents.evaluation import Evaluation, evaluate
from puzzlegym.agents.policy import load
from puzzlegym.agents.training import Budget, Progress, Run

GAMES = 300
RANK = 3  # of the FreeCell that is learned here: half of its games are won by chance

# The bundled configurations, their numbers apart: those are tuned for minutes.
NUMBERS: dict[str, Any] = {"num_envs": 32, "n_steps": 64, "batch_size": 256, "n_epochs": 3, "ent_coef": 0.005}
SMALL: dict[str, PPOConfig] = {
    "Puzzle2048-v0": replace(ppo_config("Puzzle2048-v0"), **NUMBERS, learning_rate=5e-4, gamma=0.995, gae_lambda=0.9),
    "FreeCell-v0": replace(
        ppo_config("FreeCell-v0"),
        **NUMBERS,
        learning_rate=2e-3,
        gamma=0.99,
        gae_lambda=0.95,
        backward=None,
        env_arguments={"start_rank": RANK},
    ),
}
STEPS = {"Puzzle2048-v0": 80_000, "FreeCell-v0": 40_000}
IDS = list(SMALL)


class Silent:
    """Looks on; may do something at each step of the batch."""

    def __init__(self, at_step: Callable[[Progress], None] | None = None) -> None:
        self.at_step = at_step

    def update(self, progress: Progress) -> None:
        if self.at_step:
            self.at_step(progress)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Sums do not depend on how they are split among threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def played(env_id: str, policy: Any, games: int = GAMES) -> Evaluation:
    start_rank = RANK if env_id == "FreeCell-v0" else 0
    return evaluate(env_id, policy, games, stream="selection", start_rank=start_rank)


class Unmasked(network_policy.NetworkPolicy):
    """Plays without looking at the masks."""

    def act(self, observations: Any, masks: Any, rng: Any) -> Any:
        return super().act(observations, np.ones_like(masks), rng)


def learned(config: PPOConfig, out: Path, use_masking: bool = True) -> Evaluation:
    """How a run plays at its end. Without masks it draws its moves: the likeliest may be illegal for ever."""
    run = Run(config, Budget(steps=STEPS[config.env_id]), 0, out)
    run.learner.learn = partial(run.learner.learn, use_masking=use_masking)  # type: ignore[method-assign]
    run.train(Silent())
    assert run.finished
    if use_masking:
        return played(config.env_id, load(config.env_id, str(out)))
    return played(config.env_id, Unmasked("unmasked", ppo.network_of(run.learner), True, config.play_wrappers))


def test_2048_is_learned_and_less_so_without_masks(tmp_path: Path) -> None:
    """By a plain network: the bundled one knows from the rules what is legal."""
    config = replace(ppo_config("Puzzle2048-v0", "mlp"), **NUMBERS, learning_rate=5e-4)
    random = played(config.env_id, load(config.env_id, "random"))
    masked, unmasked = learned(config, tmp_path / "masked"), learned(config, tmp_path / "unmasked", use_masking=False)
    assert masked.illegal_moves == random.illegal_moves == 0
    assert masked.score_mean > 2.5 * random.score_mean
    assert masked.score_ci95[0] > random.score_ci95[1]
    assert unmasked.illegal_moves > 100
    assert masked.score_ci95[0] > unmasked.score_ci95[1]


def test_2048_is_learned_by_the_bundled_network(tmp_path: Path) -> None:
    result = learned(SMALL["Puzzle2048-v0"], tmp_path)
    assert result.illegal_moves == 0
    assert result.score_mean > 4_000  # three to four times what random play scores


def test_a_teacher_is_imitated_first(tmp_path: Path) -> None:
    """After so few steps that PPO alone would not get anywhere."""
    config = replace(ppo_config("Puzzle2048-v0", "distill"), **NUMBERS, teacher_share=1.0)
    steps = STEPS[config.env_id] // 2
    run = Run(config, Budget(steps=steps), 0, tmp_path)
    run.train(Silent())
    assert run.learner.policy.teacher is not None
    assert run.lessons.figures()["score"] > 10_000  # the teacher's own games
    assert played(config.env_id, load(config.env_id, str(tmp_path))).score_mean > 8_000

    shorter = Run(replace(config, teacher_share=0.5), Budget(steps=steps), 0, tmp_path / "shorter")
    teachers = []
    shorter.train(Silent(lambda progress: teachers.append((progress.fraction, shorter.learner.policy.teacher is None))))
    assert all(own == (fraction > 0.5) for fraction, own in teachers if abs(fraction - 0.5) > 0.06)
    assert {own for _, own in teachers} == {True, False}


def test_freecell_is_learned(tmp_path: Path) -> None:
    config = SMALL["FreeCell-v0"]
    random = played(config.env_id, load(config.env_id, "random"))
    masked = learned(config, tmp_path)
    assert masked.illegal_moves == random.illegal_moves == 0
    assert masked.score_ci95[0] > random.score_ci95[1]
    assert masked.rates["win"].value > random.rates["win"].value + 0.1


def test_freecell_is_worse_without_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a plain network: FreeCell's own scores the moves of the mask, and all 520 without one, which takes long."""
    squares = {"squares": 160, "values": 53, "actions": 520, "hidden": (32, 32)}
    config = replace(SMALL["FreeCell-v0"], network="one_hot_mlp", network_arguments=squares)
    monkeypatch.setitem(STEPS, config.env_id, 15_000)
    masked, unmasked = learned(config, tmp_path / "masked"), learned(config, tmp_path / "unmasked", use_masking=False)
    assert masked.illegal_moves == 0
    assert unmasked.illegal_moves > 100
    assert masked.score_ci95[0] > unmasked.score_ci95[1]


TINY: dict[str, PPOConfig] = {
    "Puzzle2048-v0": replace(SMALL["Puzzle2048-v0"], num_envs=8, n_steps=32, batch_size=64),
    "FreeCell-v0": replace(
        SMALL["FreeCell-v0"],
        num_envs=8,
        n_steps=32,
        batch_size=64,
        curriculum=RankCurriculum(first=11, threshold=0.5, window=5),
        env_arguments={},
    ),
}
ROLLOUT = 8 * 32


def trained(config: PPOConfig, steps: int, out: Path, seed: int = 0) -> Run:
    run = Run(config, Budget(steps=steps), seed, out)
    run.train(Silent())
    return run


def assert_equal_arrays(left: saved.Arrays, right: saved.Arrays) -> None:
    assert set(left) == set(right)
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


@pytest.mark.parametrize("env_id", IDS)
def test_the_same_seed_gives_the_same_weights(env_id: str, tmp_path: Path) -> None:
    runs = [trained(TINY[env_id], 4 * ROLLOUT, tmp_path / name, seed) for name, seed in (("a", 5), ("b", 5), ("c", 6))]
    weights = [ppo.weights_of(run.learner) for run in runs]
    fresh = ppo.weights_of(Run(TINY[env_id], Budget(steps=1), 5, tmp_path / "d").learner)
    assert_equal_arrays(weights[0], weights[1])
    assert any((weights[0][name] != weights[2][name]).any() for name in fresh)
    assert all((weights[0][name] != fresh[name]).any() for name in fresh), "every array has learned"
    contents = [(tmp_path / name / "agent.zip").read_bytes() for name in "ab"]
    trainers = [saved.load_trainer(tmp_path / name) for name in "ab"]
    assert_equal_arrays(*trainers)
    assert all(contents)


def as_json(config: PPOConfig) -> str:
    return json.dumps(config.as_dict())


def stopped(env_id: str, out: Path) -> Run:
    """A run of 10 rollouts stopped in its fifth."""
    run = Run(TINY[env_id], Budget(steps=10 * ROLLOUT), 3, out)

    def stop(progress: Progress) -> None:
        run.stop = progress.steps >= 4.5 * ROLLOUT

    run.train(Silent(stop))
    return run


@pytest.mark.parametrize("env_id", IDS)
def test_resume_restores_everything(env_id: str, tmp_path: Path) -> None:
    before = stopped(env_id, tmp_path)
    arrays, weights = ppo.trainer_arrays(before.learner, before.venv), ppo.weights_of(before.learner)
    curriculum = before.curriculum.state() if before.curriculum else None
    assert not before.finished
    assert any(name.startswith("optimizer.") for name in arrays)
    torch.manual_seed(99)
    np.random.seed(99)

    run = Run.resume(tmp_path, env_id=env_id)
    assert_equal_arrays(ppo.weights_of(run.learner), weights)
    assert_equal_arrays(ppo.trainer_arrays(run.learner, run.venv), arrays)
    assert (run.curriculum.state() if run.curriculum else None) == curriculum
    assert run.learner.num_timesteps == run.progress.steps == int(4.5 * ROLLOUT)
    assert (run.budget, run.seed, run.out) == (before.budget, 3, tmp_path)
    assert as_json(run.config) == as_json(before.config)
    assert run.card()["seconds"] >= 0
    assert np.random.get_state()[1].tolist() == arrays["numpy_rng"].tolist()  # type: ignore[index]
    np.testing.assert_array_equal(torch.get_rng_state().numpy(), arrays["torch_rng"])


def test_resume_goes_on_with_the_schedule_in_absolute_steps(tmp_path: Path) -> None:
    stopped("Puzzle2048-v0", tmp_path)
    run = Run.resume(tmp_path)
    seen: dict[int, float] = {}

    def look(progress: Progress) -> None:
        seen[progress.steps] = run.learner.policy.optimizer.param_groups[0]["lr"]
        assert progress.fraction == progress.steps / (10 * ROLLOUT)

    run.train(Silent(look))
    assert min(seen) == 4.5 * ROLLOUT + 8
    assert max(seen) == 10 * ROLLOUT
    assert run.finished
    for rollouts in (5.5, 7.5, 9.5):  # after the update at their end
        share = 1 - rollouts / 10
        assert seen[int(rollouts * ROLLOUT) + 8] == pytest.approx(5e-4 * max(share, 0.05))
    assert saved.load_card(tmp_path)["steps"] == 10 * ROLLOUT
    assert saved.load_card(tmp_path)["seconds"] > 0


@pytest.mark.parametrize("last", [1.0, 0.0])
def test_the_entropy_bonus_follows_the_budget(last: float, tmp_path: Path) -> None:
    config = replace(TINY["Puzzle2048-v0"], ent_coef=0.01, last_entropy=last)
    run = Run(config, Budget(steps=4 * ROLLOUT), 0, tmp_path)
    seen: list[float] = []
    run.train(Silent(lambda progress: seen.append(run.learner.ent_coef)))
    assert seen[0] == 0.01
    assert seen[-1] == pytest.approx(0.01 if last else 0.01 / 4)  # of the update before the last rollout


def test_a_resumed_run_may_get_a_larger_budget(tmp_path: Path) -> None:
    trained(TINY["Puzzle2048-v0"], ROLLOUT, tmp_path)
    assert Run.resume(tmp_path).finished
    run = Run.resume(tmp_path, Budget(steps=3 * ROLLOUT))
    assert not run.finished
    run.train(Silent())
    assert saved.load_card(tmp_path)["steps"] == 3 * ROLLOUT


def test_a_budget_of_seconds_ends_the_run(tmp_path: Path) -> None:
    run = Run(TINY["Puzzle2048-v0"], Budget(seconds=0.5), 0, tmp_path)
    run.train(Silent())
    card = saved.load_card(tmp_path)
    assert 0.5 <= card["seconds"] < 10
    assert Run.resume(tmp_path).finished


def test_budget() -> None:
    assert Budget(steps=100).fraction(25, 9.0) == 0.25
    assert Budget(seconds=10.0).fraction(25, 5.0) == 0.5
    assert Budget(steps=100).fraction(1000, 0.0) == 1.0


def test_checkpoints_are_written_between_rollouts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("puzzlegym.agents.training.CHECKPOINT_SECONDS", 0.0)
    steps: list[int] = []
    save = saved.save
    monkeypatch.setattr(saved, "save", lambda path, card, *rest: (steps.append(card["steps"]), save(path, card, *rest)))
    trained(TINY["Puzzle2048-v0"], 3 * ROLLOUT, tmp_path)
    assert steps == [0, ROLLOUT, 2 * ROLLOUT, 3 * ROLLOUT]


@pytest.mark.parametrize("env_id", IDS)
def test_logs_and_card(env_id: str, tmp_path: Path) -> None:
    run = trained(replace(TINY[env_id], n_steps=256), 8 * 256 * 3, tmp_path)
    with (tmp_path / "log.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    tiles = [str(2**k) for k in range(9, 15)]
    expected = ["score", *tiles] if env_id == "Puzzle2048-v0" else ["home", "win", "rank", "full"]
    assert list(rows[0]) == ["steps", "seconds", *expected]
    assert [int(row["steps"]) for row in rows][-1] == run.progress.steps
    assert list((tmp_path / "tensorboard").iterdir())
    card = saved.load_card(tmp_path)
    assert card["env_id"] == env_id
    assert list(card["training_figures"]) == expected
    assert as_json(PPOConfig.from_dict(card["config"])) == as_json(run.config)
    assert {"puzzlegym", "python", "numpy", "torch", "gymnasium", "numba"} <= set(card["versions"])


def test_another_puzzles_run(tmp_path: Path) -> None:
    trained(TINY["Puzzle2048-v0"], ROLLOUT, tmp_path)
    with pytest.raises(AgentError, match="trained on Puzzle2048-v0, not on FreeCell-v0"):
        Run.resume(tmp_path, env_id="FreeCell-v0")


def test_a_copy_under_another_name_is_not_resumed_over_the_original(tmp_path: Path) -> None:
    trained(TINY["Puzzle2048-v0"], ROLLOUT, tmp_path)
    before = (tmp_path / "agent.zip").read_bytes()
    (tmp_path / "best.zip").write_bytes(before)
    with pytest.raises(AgentError, match=r"best\.zip"):
        Run.resume(tmp_path / "best.zip")
    assert not Run.resume(tmp_path / "agent.zip", Budget(steps=10**6)).finished


def _without(name: str) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(_card: dict[str, Any], arrays: dict[str, Any]) -> None:
        del arrays[name]

    return change


def _with(name: str, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(_card: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays[name] = value

    return change


def _card(name: str, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(card: dict[str, Any], _arrays: dict[str, Any]) -> None:
        card[name] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        _without("rewards"),
        _without("torch_rng"),
        _with("torch_rng", np.zeros(3, dtype=np.uint8)),
        _with("rewards", np.zeros(2)),
        _with("numpy_rng", np.zeros(2)),
        _with("optimizer.x", np.zeros(2)),
        _card("steps", "many"),
        _card("seed", None),
        _card("budget", {"years": 3}),
        _card("budget", None),
        _card("config", []),
        _card("curriculum", None),
        _card("curriculum", {"frontier": 3}),
    ],
)
def test_a_run_that_does_not_fit_is_refused(change: Any, tmp_path: Path) -> None:
    trained(TINY["FreeCell-v0"], 2 * ROLLOUT, tmp_path)
    card, weights = saved.load_card(tmp_path), saved.load_weights(tmp_path)
    arrays = saved.load_trainer(tmp_path)
    change(card, arrays)
    saved.save(tmp_path / "agent.zip", card, weights, arrays)
    with pytest.raises(AgentError) as caught:
        Run.resume(tmp_path)
    assert "\n" not in str(caught.value)


def test_the_card_is_plain_json(tmp_path: Path) -> None:
    trained(TINY["FreeCell-v0"], ROLLOUT, tmp_path)
    with zipfile.ZipFile(tmp_path / "agent.zip") as file:
        assert sorted(file.namelist()) == ["card.json", "trainer.npz", "weights.npz"]
        assert json.loads(file.read("card.json"))["algorithm"] == "masked PPO"


def test_every_game_is_booked_at_its_own_rank(tmp_path: Path) -> None:
    """The curriculum knows the rank of every game of the batch from its first move on."""
    run = Run(TINY["FreeCell-v0"], Budget(steps=4 * ROLLOUT), 0, tmp_path)
    assert run.curriculum is not None
    bridge: Any = run.venv.venv
    wait, after_step, latest, checked = bridge.step_wait, run.after_step, [], []

    def step_wait() -> Any:
        latest[:] = [wait()]
        return latest[0]

    def after(infos: Any, dones: Any) -> None:
        after_step(infos, dones)
        for row in np.flatnonzero(dones):
            home = (latest[0][0][row, 0, 4:].astype(int) + 3) // 4
            assert home.tolist() == [run.curriculum.playing[row]] * 4  # type: ignore[union-attr]
            checked.append(int(home[0]))

    bridge.step_wait, run.after_step = step_wait, after  # type: ignore[method-assign]
    run.train(Silent())
    assert len(checked) > 40
    assert len(set(checked)) > 2
