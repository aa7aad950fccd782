"""Rollouts with advantages: what they hold is what was played, and what was played is judged as SB3 does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from puzzlegym.agents.configs import PPO_CONFIGS, PPOConfig
from puzzlegym.agents.curriculum import Lessons
from puzzlegym.agents.networks import build
from puzzlegym.agents.rollouts import Rollout, Rollouts, estimate_advantages
from stable_baselines3.common.buffers import RolloutBuffer

SMALL = {
    "Puzzle2048-v0": replace(PPO_CONFIGS["Puzzle2048-v0"]["10min"], num_envs=8),
    "FreeCell-v0": replace(PPO_CONFIGS["FreeCell-v0"]["ranks"], num_envs=8),
}
STEPS = 40


def begun(config: PPOConfig, seed: int = 0) -> tuple[Rollouts, Any]:
    torch.manual_seed(seed)
    lessons = Lessons(config, seed)
    return Rollouts(config, lessons.batch, lessons, seed), build(config.network, config.network_arguments)


@pytest.fixture(params=SMALL)
def config(request: pytest.FixtureRequest) -> PPOConfig:
    return SMALL[request.param]


def test_advantages_are_those_of_sb3() -> None:
    rng = np.random.default_rng(0)
    rewards, values = (rng.normal(size=(30, 5)).astype(np.float32) for _ in range(2))
    ends, last = rng.random((30, 5)) < 0.2, rng.normal(size=5).astype(np.float32)
    ends[-1, 0] = True
    box, discrete = spaces.Box(0, 1, (1,)), spaces.Discrete(2)
    buffer = RolloutBuffer(30, box, discrete, "cpu", gae_lambda=0.9, gamma=0.97, n_envs=5)
    buffer.rewards, buffer.values = rewards, values
    buffer.episode_starts = np.concatenate([np.zeros((1, 5)), ends[:-1]]).astype(np.float32)
    buffer.compute_returns_and_advantage(torch.from_numpy(last), ends[-1].astype(np.float32))
    found = estimate_advantages(rewards, values, last, ends, 0.97, 0.9)
    np.testing.assert_allclose(found, buffer.advantages, rtol=1e-4, atol=1e-5)


def test_what_is_in_a_rollout(config: PPOConfig) -> None:
    rollouts, network = begun(config)
    rollout = rollouts.play(network, STEPS)
    moves = STEPS * config.num_envs
    assert {len(part) for part in vars(rollout).values()} == {moves}
    assert rollout.masks[np.arange(moves), rollout.actions].all()
    assert rollouts.illegal_moves == 0
    with torch.no_grad():
        logits, values = network(torch.from_numpy(rollout.boards), torch.from_numpy(rollout.masks))
    log_probs = torch.log_softmax(logits, 1).numpy()
    np.testing.assert_allclose(log_probs[np.arange(moves), rollout.actions], rollout.log_probs, atol=1e-4)
    np.testing.assert_allclose(rollout.returns - rollout.advantages, values.numpy(), atol=1e-4)
    assert len(np.unique(rollout.actions)) > 3


def test_boards_follow_each_other(config: PPOConfig) -> None:
    """The second rollout begins where the first one ended, and every board is what the move before has made."""
    rollouts, network = begun(config)
    first, second = (rollouts.play(network, STEPS) for _ in range(2))
    twin, _ = begun(config)
    whole = twin.play(Replay(np.concatenate([first.actions, second.actions]), network), 2 * STEPS)
    assert np.array_equal(whole.boards, np.concatenate([first.boards, second.boards]))
    assert np.array_equal(whole.rewards, np.concatenate([first.rewards, second.rewards]))


class Replay(torch.nn.Module):
    """A network that finds nothing likely but the moves of a list, one row after the other."""

    def __init__(self, actions: Any, network: torch.nn.Module) -> None:
        super().__init__()
        self._actions, self._network, self._at = actions, network, 0

    def forward(self, boards: torch.Tensor, masks: torch.Tensor) -> Any:
        logits, values = self._network(boards, masks)
        if masks.any():  # not when only values are asked for
            chosen = torch.from_numpy(self._actions[self._at : self._at + len(boards)])
            logits = torch.full_like(logits, -1e8).scatter(1, chosen[:, None], 0.0)
            self._at += len(boards)
        return logits, values


def test_seeds(config: PPOConfig) -> None:
    def boards(seed: int) -> Any:
        rollouts, network = begun(config, seed)
        return rollouts.play(network, 3).boards

    assert np.array_equal(boards(5), boards(5))
    assert not np.array_equal(boards(5), boards(6))


def test_a_game_cut_off_goes_on_in_its_value() -> None:
    """Games of two moves: the second one's reward holds the value of the board that it led to."""
    config = replace(SMALL["FreeCell-v0"], curriculum=None, env_arguments={"max_episode_steps": 2}, wrappers=())
    rollouts, network = begun(config)
    with torch.no_grad():
        network.value.bias.fill_(7.0)  # no board of a running game is worth less than 6
    rollout = rollouts.play(network, 2)
    rewards = rollout.rewards.reshape(2, config.num_envs)
    assert (rewards[0] < 4).all()
    assert (rewards[1] > config.gamma * 6).all()
    assert np.allclose(rollout.returns.reshape(2, -1)[1], rewards[1], atol=1e-4), "nothing follows it"


def test_rewards_are_scaled_by_the_deviation_of_returns(config: PPOConfig) -> None:
    rollouts, network = begun(config)
    for _ in range(3):
        rollout: Rollout = rollouts.play(network, 100)
    _, variance, count = rollouts.state()["scale"]
    assert count == pytest.approx(3 * 100 * config.num_envs, abs=1)
    assert np.abs(rollout.rewards).max() <= 10 * (1 + config.gamma)
    raw = begun(config)[0]
    raw.load({"scale": [0.0, 1.0, 1e12], "curriculum": None})
    unscaled = raw.play(Replay(begun(config)[0].play(network, 100).actions, network), 100)
    assert 0.2 < np.std(unscaled.rewards) / np.sqrt(variance) / np.std(rollout.rewards) < 5


def test_state_goes_on_elsewhere(config: PPOConfig) -> None:
    rollouts, network = begun(config)
    rollouts.play(network, 200)
    other, _ = begun(config, 1)
    other.load(rollouts.state())
    assert other.state() == rollouts.state()
