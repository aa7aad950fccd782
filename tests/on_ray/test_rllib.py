"""Training on RLlib: what is learned, saved, resumed and exported, and what happens when processes are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from puzzlegym.agents import logs, saved
from puzzlegym.agents.configs import PPO_CONFIGS, PPOConfig
from puzzlegym.agents.curriculum import Lessons
from puzzlegym.agents.errors import AgentError
from puzzlegym.agents.evaluation import evaluate
from puzzlegym.agents.policy import load
from puzzlegym.agents.rllib.learner import RolloutLearner, RolloutsToBatch
from puzzlegym.agents.rllib.module import MaskedModule
from puzzlegym.agents.rllib.runner import episode_of, make_env
from puzzlegym.agents.rllib.training import Cluster, RLlibRun
from puzzlegym.agents.rollouts import Rollouts
from puzzlegym.agents.runs import Budget, Progress
from puzzlegym.scripts.cli import main

TINY = {
    "Puzzle2048-v0": replace(PPO_CONFIGS["Puzzle2048-v0"]["10min"], num_envs=16, n_steps=32, batch_size=128),
    "FreeCell-v0": replace(PPO_CONFIGS["FreeCell-v0"]["ranks"], num_envs=16, n_steps=32, batch_size=128),
}
ROLLOUT = 16 * 32
pytestmark = [
    pytest.mark.usefixtures("local_ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray[.].*"),  # of one part of Ray about another
]


class Silent:
    def update(self, progress: Progress) -> None:
        pass


def trained(env_id: str, rollouts: int, out: Path, **settings: Any) -> RLlibRun:
    run = RLlibRun(TINY[env_id], Budget(steps=rollouts * ROLLOUT), 0, out, **settings)
    run.train(Silent())
    return run


@pytest.mark.parametrize("env_id", TINY)
def test_a_run_and_its_agent(env_id: str, tmp_path: Path) -> None:
    run = trained(env_id, 4, tmp_path)
    card = saved.load_card(tmp_path, env_id)
    assert card["steps"] == run.progress.steps == 4 * ROLLOUT
    assert card["illegal_moves"] == 0
    assert run.finished
    assert card["cluster"] == {"address": None, "env_runners": 2, "learners": 0, "gpus": 0}
    assert card["seconds_of_an_iteration"]["learning"] > 0
    with zipfile.ZipFile(tmp_path / "agent.zip") as file:
        assert sorted(file.namelist()) == ["card.json", "trainer.npz", "weights.npz"]
    assert len(logs.read(tmp_path).steps) >= 1
    assert list((tmp_path / "tensorboard").iterdir())
    result = evaluate(env_id, load(env_id, str(tmp_path)), 20)
    assert result.illegal_moves == 0
    start = RLlibRun(TINY[env_id], Budget(steps=1), 0, tmp_path / "start").network.state_dict()
    moved = {name: not torch.equal(start[name], value) for name, value in run.network.state_dict().items()}
    assert all(moved.values()), moved


def test_it_learns(tmp_path: Path) -> None:
    config = replace(PPO_CONFIGS["Puzzle2048-v0"]["10min"], num_envs=128, batch_size=1024)
    run = RLlibRun(config, Budget(steps=120_000), 0, tmp_path)
    run.train(Silent())
    score, random = (evaluate("Puzzle2048-v0", load("Puzzle2048-v0", who), 50) for who in (str(tmp_path), "random"))
    assert score.score_mean > 2 * random.score_mean
    assert score.illegal_moves == 0


def test_resume(tmp_path: Path) -> None:
    first = trained("FreeCell-v0", 3, tmp_path)
    state = first.card()["worker_state"]
    assert state["curriculum"]["frontier"] <= 11
    run = RLlibRun.resume(tmp_path, Budget(steps=5 * ROLLOUT), "FreeCell-v0", {"env_runners": 1})
    assert not run.finished
    assert all(torch.equal(a, b) for a, b in zip(run.network.parameters(), first.network.parameters(), strict=True))
    run.train(Silent())
    card = saved.load_card(tmp_path)
    assert card["steps"] == 5 * ROLLOUT
    assert card["cluster"]["env_runners"] == 1
    assert card["worker_state"]["scale"][2] > state["scale"][2], "the scale of the rewards went on"
    steps = {name: int(value) for name, value in saved.load_trainer(tmp_path).items() if name.endswith(".step")}
    assert set(steps.values()) == {5 * 3 * ROLLOUT // 128}, "the optimiser went on"


def test_begin_with_another_agent(tmp_path: Path) -> None:
    trained("Puzzle2048-v0", 1, tmp_path / "a")
    run = RLlibRun(TINY["Puzzle2048-v0"], Budget(steps=1), 1, tmp_path / "b", tmp_path / "a")
    weights = saved.load_weights(tmp_path / "a")
    assert all(np.array_equal(weights[name], value.numpy()) for name, value in run.network.state_dict().items())
    assert run.card()["steps_before"] == ROLLOUT
    other = replace(TINY["Puzzle2048-v0"], network_arguments={"tuples": "pairs", "hidden": (32, 32)})
    with pytest.raises(AgentError, match="does not fit its own card"):
        RLlibRun(other, Budget(steps=1), 1, tmp_path / "c", tmp_path / "a")


class Killer(RLlibRun):
    """Kills a process after the first iteration."""

    find: Callable[[Any], int]

    def _iterate(self, algorithm: Any, illegal_before: int) -> int:
        steps = super()._iterate(algorithm, illegal_before)
        if not self.progress.steps:
            os.kill(self.find(algorithm), signal.SIGKILL)
        return steps


def worker(algorithm: Any) -> int:
    return algorithm.env_runner_group.foreach_env_runner(lambda _: os.getpid(), local_env_runner=False)[0]  # type: ignore[no-any-return]


def learner(algorithm: Any) -> int:
    (result,) = algorithm.learner_group.foreach_learner(lambda _: os.getpid())
    return result.get()  # type: ignore[no-any-return]


@pytest.mark.parametrize(("find", "learners"), [(worker, 0), (learner, 1)])
def test_killed_processes(find: Any, learners: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    cluster = Cluster(env_runners=2 - learners, learners=learners)
    run = Killer(TINY["Puzzle2048-v0"], Budget(steps=40 * ROLLOUT), 0, tmp_path, cluster=cluster)
    run.find = find  # type: ignore[method-assign]
    run.train(Silent())
    assert run.progress.lost == 1
    assert saved.load_card(tmp_path)["steps"] >= 40 * ROLLOUT
    assert load("Puzzle2048-v0", str(tmp_path))


def test_two_learners_learn_the_same(tmp_path: Path) -> None:
    """Each has half of every batch, and both have the same network."""

    class Compared(RLlibRun):
        def _iterate(self, algorithm: Any, illegal_before: int) -> int:
            steps = super()._iterate(algorithm, illegal_before)
            states = [result.get()[0] for result in algorithm.learner_group.foreach_learner(lambda it: it.arrays())]
            assert len(states) == 2
            assert all(np.array_equal(states[0][name], states[1][name]) for name in states[0])
            return steps

    cluster = Cluster(env_runners=1, learners=2)
    run = Compared(TINY["Puzzle2048-v0"], Budget(steps=2 * ROLLOUT), 0, tmp_path, cluster=cluster)
    run.train(Silent())
    assert run.progress.steps == 2 * ROLLOUT


def test_one_update_is_ppos(tmp_path: Path) -> None:
    """Against the loss as it stands in the paper, written again, on one batch and one step of Adam."""
    config: PPOConfig = replace(TINY["Puzzle2048-v0"], n_epochs=1, batch_size=ROLLOUT, max_grad_norm=1e9)
    run = RLlibRun(config, Budget(steps=1), 0, tmp_path)
    lessons = Lessons(config, 0)
    rollouts = Rollouts(config, lessons.batch, lessons, 0)
    rollouts.play(run.network, 32)
    rollout = rollouts.play(run.network, 32)
    rllib = run._rllib_config()
    batch = make_env({"config": config.as_dict(), "seed": 0, "num_envs": 1})
    spaces = (batch.single_observation_space, batch.single_action_space)
    spec = rllib.get_multi_rl_module_spec(spaces={"default_policy": spaces})
    learned = RolloutLearner(config=rllib, module_spec=spec)
    learned.build()
    before = {name: value.numpy().copy() for name, value in run.network.state_dict().items()}
    learned.restore(before, {})
    learned.fraction_done = 0.5
    learned.update(episodes=[episode_of(rollout)], timesteps={}, num_epochs=1, minibatch_size=ROLLOUT)

    network = run.network
    optimizer = torch.optim.Adam(network.parameters(), lr=config.learning_rate * 0.5, eps=1e-5)
    logits, values = network(torch.from_numpy(rollout.boards), torch.from_numpy(rollout.masks))
    chances = torch.distributions.Categorical(logits=logits)
    ratio = (chances.log_prob(torch.from_numpy(rollout.actions)) - torch.from_numpy(rollout.log_probs)).exp()
    advantages = torch.from_numpy((rollout.advantages - rollout.advantages.mean()) / rollout.advantages.std(ddof=1))
    surrogate = torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
    error = ((values - torch.from_numpy(rollout.returns)) ** 2).mean()
    (-surrogate + config.vf_coef * error - config.ent_coef * chances.entropy().mean()).backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    found = learned.arrays()[0]
    for name, value in network.state_dict().items():
        wanted = value.numpy() - before[name]
        np.testing.assert_allclose(found[name] - before[name], wanted, atol=0.05 * config.learning_rate, err_msg=name)


def test_a_batch_has_every_move_once() -> None:
    module = {"default_policy": torch.nn.Linear(1, 1)}

    class Episode:
        def __init__(self, first: int) -> None:
            self.rows = np.arange(first, first + 5)

        def __len__(self) -> int:
            return 5

        def get_observations(self, _: Any) -> Any:
            return {"observations": self.rows[:, None], "action_mask": self.rows[:, None] % 2}

        def get_actions(self) -> Any:
            return self.rows

        def get_extra_model_outputs(self, _: str) -> Any:
            return self.rows.astype(np.float32)

    batch = RolloutsToBatch()(rl_module=module, episodes=[Episode(0), Episode(5)])["default_policy"]
    assert sorted(batch["actions"].tolist()) == list(range(10))
    assert batch["actions"].tolist() != list(range(10)), "in random order"
    assert batch["obs"]["observations"].flatten().tolist() == batch["actions"].tolist()


def test_the_module_masks() -> None:
    model = {"network": "afterstate_net", "network_arguments": {"hidden": (8, 8)}, "board": (4, 4)}
    module = MaskedModule(observation_space=None, action_space=None, model_config=model)
    board = torch.zeros((1, 16))
    board[0, 0] = 1.0  # only right and down are legal
    masks = torch.tensor([[0.0, 1.0, 1.0, 0.0]])
    told = module.forward_exploration({"obs": {"observations": board, "action_mask": masks}})
    assert (told["action_dist_inputs"][0] < -1e7).tolist() == [True, False, False, True]


def failed(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(["train", "Puzzle2048-v0", *argv]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ("--env-runners 0", "--env-runners must be at least 1, not 0"),
        ("--gpus -1", "must not be negative"),
        ("--env-runners 50", "--env-runners 50 --learners 0 --gpus 0 need 50 CPUs, but Ray has "),
        ("--address ray://head:10001", "--address is auto or HOST:PORT, from a node of the cluster"),
        ("--gpus 1", "need 1 GPUs, but Ray has 0"),
        ("--config distill", "rllib-ppo has no teacher"),
        ("--games 3", "--games: for --algo ntuple only"),
    ],
)
def test_bad_options(argv: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--algo", "rllib-ppo", "--out", str(tmp_path / "run"), *argv.split()]
    assert words in failed(capsys, *options)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    assert main(["train", "Puzzle2048-v0", "--algo", "rllib-ppo", "--steps", "20000", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "Saved in" in said
    assert "0 illegal moves" in said
    assert main(["train", "Puzzle2048-v0", "--resume", str(out)]) == 0
    assert "has already used its budget" in capsys.readouterr().out
    assert main(["evaluate", "Puzzle2048-v0", "--agent", str(out), "--episodes", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["illegal_moves"] == 0


CLUSTER = """
import sys
from puzzlegym.agents.rllib.scaling import nodes_here
from puzzlegym.scripts.cli import main
with nodes_here(2) as address:
    sys.exit(main(["train", "FreeCell-v0", "--algo", "rllib-ppo", "--address", address, *sys.argv[1:]]))
"""


def test_on_two_nodes_by_their_address(tmp_path: Path) -> None:
    """Each has one core, so each has one of the workers; no worker writes to the folder of the run."""
    call = [sys.executable, "-c", CLUSTER, "--steps", "40000", "--config", "ranks", "--out", "run"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "Saved in run" in done.stdout
    assert saved.load_card(tmp_path / "run", "FreeCell-v0")["steps"] >= 40_000
