"""The bridge to stable-baselines3: the native batch, step for step, in its words."""

from __future__ import annotations

import doctest
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from puzzlegym.agents import vec_env
from puzzlegym.agents.vec_env import SB3VecEnv
from puzzlegym.agents.wrapping import wrap_batch
from puzzlegym.wrappers._batch import PuzzleVectorWrapper
from reference.playing import choose_all
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.vec_env import VecNormalize

# id, wrappers, and a limit and arguments with which games end by themselves and by the limit
GAMES: list[Any] = [
    pytest.param("Puzzle2048-v0", (), {"max_episode_steps": 110}, id="2048"),
    pytest.param("Puzzle2048-v0", ("shaped_2048",), {"max_episode_steps": 110}, id="2048-shaped"),
    pytest.param("FreeCell-v0", (), {"max_episode_steps": 60, "start_rank": 7}, id="freecell"),
    pytest.param(
        "FreeCell-v0",
        ("no_repeat", "shaped_freecell"),
        {"max_episode_steps": 60, "start_rank": 7},
        id="freecell-shaped",
    ),
]
N = 12


def batch(env_id: str, wrappers: tuple[str, ...], arguments: dict[str, Any]) -> Any:
    return wrap_batch(gym.make_vec(env_id, num_envs=N, autoreset_mode="SameStep", **arguments), wrappers)


@pytest.mark.parametrize(("env_id", "wrappers", "arguments"), GAMES)
def test_equals_the_native_batch_step_for_step(env_id: str, wrappers: Any, arguments: dict[str, Any]) -> None:
    native, venv = batch(env_id, wrappers, arguments), SB3VecEnv(batch(env_id, wrappers, arguments), seed=7)
    expected, infos = native.reset(seed=7)
    np.testing.assert_array_equal(venv.reset(), expected)
    rng = np.random.default_rng(0)
    returns, lengths, endings = np.zeros(N), np.zeros(N, dtype=int), set()
    for _ in range(250):
        masks = venv.env_method("action_masks")
        assert (masks.dtype, masks.shape) == (np.bool_, (N, venv.action_space.n))
        np.testing.assert_array_equal(masks, infos["action_mask"].astype(bool))
        actions = choose_all(masks, rng, illegal=0.02)
        expected, rewards, terminated, truncated, infos = native.step(actions)
        obs, sb3_rewards, dones, sb3_infos = venv.step(actions)
        returns, lengths = returns + rewards, lengths + 1
        np.testing.assert_array_equal(obs, expected)
        assert sb3_rewards.dtype == np.float32
        np.testing.assert_array_equal(sb3_rewards, rewards.astype(np.float32))
        np.testing.assert_array_equal(dones, terminated | truncated)
        for i in range(N):
            if not dones[i]:
                assert sb3_infos[i] == {}
                continue
            info, final = sb3_infos[i], infos["final_info"]
            np.testing.assert_array_equal(info["terminal_observation"], infos["final_obs"][i])
            assert info["TimeLimit.truncated"] is bool(truncated[i] and not terminated[i])
            assert info["episode"] == {"r": pytest.approx(returns[i]), "l": lengths[i]}
            assert info["is_success"] == final["is_success"][i]
            key = "score" if "score" in final else "cards_home"
            assert info[key] == final[key][i]
            endings.add(info["TimeLimit.truncated"])
            returns[i], lengths[i] = 0, 0
    assert endings == {True, False}, "games should have ended by themselves and by the limit"


@pytest.mark.parametrize("env_id", ["Puzzle2048-v0", "FreeCell-v0"])
def test_masks_are_one_array_and_the_environments_own(env_id: str) -> None:
    venv = SB3VecEnv.make(env_id, num_envs=5, seed=1)
    normalised = VecNormalize(venv, norm_obs=False)
    normalised.reset()
    assert is_masking_supported(normalised)
    rng = np.random.default_rng(1)
    for _ in range(20):
        masks = venv.env_method("action_masks")
        assert isinstance(masks, np.ndarray)
        np.testing.assert_array_equal(masks, venv.env.action_masks())
        np.testing.assert_array_equal(get_action_masks(normalised), masks)
        np.testing.assert_array_equal(venv.env_method("action_masks", indices=[3, 0]), masks[[3, 0]])
        np.testing.assert_array_equal(venv.env_method("action_masks", indices=2), masks[[2]])
        normalised.step(choose_all(masks, rng))


def test_masks_stay_as_they_were_given() -> None:
    venv = SB3VecEnv.make("Puzzle2048-v0", num_envs=5, seed=1)
    venv.reset()
    given = venv.env_method("action_masks")
    before = given.copy()
    venv.step(given.argmax(1))
    np.testing.assert_array_equal(given, before)


class Count(PuzzleVectorWrapper):
    """Counts what was played."""

    steps = illegal = 0

    def step(self, actions: Any) -> Any:
        result = self.env.step(actions)
        infos = result[4]
        ended = result[2] | result[3]
        legal = infos["legal"] if not ended.any() else np.where(ended, infos["final_info"]["legal"], infos["legal"])
        self.steps += self.num_envs
        self.illegal += int((~legal.astype(bool)).sum())
        return result


@pytest.mark.parametrize("env_id", ["Puzzle2048-v0", "FreeCell-v0"])
def test_maskable_ppo_learns_on_it_without_an_illegal_move(env_id: str) -> None:
    counted = Count(gym.make_vec(env_id, num_envs=8, autoreset_mode="SameStep", max_episode_steps=40))
    venv = VecNormalize(SB3VecEnv(counted, seed=0), norm_obs=False)
    model = MaskablePPO("MlpPolicy", venv, n_steps=64, batch_size=128, n_epochs=2, seed=0, device="cpu")
    model.learn(1024)
    assert counted.steps == 1024
    assert counted.illegal == 0
    assert len(model.ep_info_buffer) > 10, "SB3 reads returns and lengths of games from info['episode']"
    assert venv.ret_rms.count > 1000
    model.learn(512, use_masking=False)
    assert counted.illegal > 10, "the count works"


@pytest.mark.parametrize("mode", ["NextStep", "Disabled"])
def test_another_autoreset_mode_is_refused(mode: str) -> None:
    with pytest.raises(ValueError, match="SameStep"):
        SB3VecEnv(gym.make_vec("Puzzle2048-v0", num_envs=2, autoreset_mode=mode))


def test_seed_counts_once() -> None:
    venv = SB3VecEnv.make("Puzzle2048-v0", num_envs=3)
    assert venv.seed(5) == [5, 6, 7]
    first, second = venv.reset(), venv.reset()
    assert (first != second).any(), "a reset without a seed goes on"
    venv.seed(5)
    np.testing.assert_array_equal(venv.reset(), first)


def test_parameters_are_set_for_all_games() -> None:
    venv = SB3VecEnv.make("FreeCell-v0", num_envs=3, seed=0)
    venv.set_attr("start_rank", [2, 3, 4])
    np.testing.assert_array_equal(venv.reset()[:, 0, 4:].max(1) + 3 >> 2, [2, 3, 4])
    with pytest.raises(ValueError, match="all games"):
        venv.set_attr("start_rank", 1, indices=[0])
    assert venv.get_attr("num_envs", indices=[0, 2]) == [3, 3]
    assert venv.env_is_wrapped(gym.Wrapper) == [False] * 3


def test_the_docstrings_example() -> None:
    assert doctest.testmod(vec_env).failed == 0
    assert doctest.testmod(vec_env).attempted > 0
