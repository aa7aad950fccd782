"""What holds for all wrappers: a batch is its single games in every autoreset mode, spaces, copies, specs, checkers."""

from __future__ import annotations

import copy
import pickle

import gymnasium as gym
import numpy as np
import puzzlegym.wrappers as wrappers
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from puzzlegym.agents.vec_env import SB3VecEnv
from reference.playing import arrays_in, assert_same, choose, choose_all
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported

P2048, FREECELL = "Puzzle2048-v0", "FreeCell-v0"
GAMES = 5

# name -> (environment, [(wrapper's name, its arguments), ...] from the environment outwards)
STACKS = {
    "penalty-2048": (P2048, [("IllegalMove", {"penalty": -0.5})]),
    "penalty-freecell": (FREECELL, [("IllegalMove", {})]),
    "end-2048": (P2048, [("IllegalMove", {"terminate": True})]),
    "end-freecell": (FREECELL, [("IllegalMove", {"penalty": 0.0, "terminate": True})]),
    "one-hot-2048": (P2048, [("OneHotObservation", {"dtype": "float32"})]),
    "one-hot-freecell": (FREECELL, [("OneHotObservation", {})]),
    "rllib": (P2048, [("MaskInObservation", {})]),
    "tianshou": (FREECELL, [("MaskInObservation", {"preset": "tianshou"})]),
    "torchrl": (P2048, [("MaskInObservation", {"preset": "torchrl"})]),
    "no-repeat": (FREECELL, [("NoRepeat", {})]),
    "shaped-2048": (P2048, [("ShapedReward2048", {"end": -2.0})]),
    "shaped-freecell": (FREECELL, [("ShapedRewardFreeCell", {"win": 5.0, "repeat": -0.3})]),
    "potential": (FREECELL, [("PotentialFreeCell", {"scale": 0.5})]),
    "potential-outside": (FREECELL, [("OneHotObservation", {}), ("MaskInObservation", {}), ("PotentialFreeCell", {})]),
    "deep-2048": (
        P2048,
        [
            ("ShapedReward2048", {}),
            ("IllegalMove", {"terminate": True}),
            ("OneHotObservation", {}),
            ("MaskInObservation", {}),
        ],
    ),
    "deep-freecell": (
        FREECELL,
        [
            ("ShapedRewardFreeCell", {}),
            ("IllegalMove", {"terminate": True}),
            ("NoRepeat", {}),
            ("OneHotObservation", {}),
        ],
    ),
}
every_stack = pytest.mark.parametrize("stack", STACKS)
every_mode = pytest.mark.parametrize("mode", list(AutoresetMode))


def wrap(env, stack, suffix=""):
    for name, arguments in STACKS[stack][1]:
        env = getattr(wrappers, name + suffix)(env, **arguments)
    return env


def single(stack, **arguments):
    return wrap(gym.make(STACKS[stack][0], **arguments), stack)


def batch(stack, mode="NextStep", num_envs=GAMES, **arguments):
    return wrap(gym.make_vec(STACKS[stack][0], num_envs, autoreset_mode=mode, **arguments), stack, "Vector")


def without_final_masks(results):
    """NoRepeat's batch leaves the masks in ``final_info`` as the environment's."""
    for result in results:
        result[-1].get("final_info", {}).pop("action_mask", None)
    return results


def assert_both(here, there, stack, where):
    if any(name == "NoRepeat" for name, _ in STACKS[stack][1]):
        here, there = without_final_masks([here, there])
    assert_same(here, there, where)


def test_the_stacks_have_every_wrapper():
    used = {name + suffix for _, layers in STACKS.values() for name, _ in layers for suffix in ("", "Vector")}
    # test_record_episodes.py: any environment, no batch; test_start_positions.py: batches alone
    assert used | {"RecordEpisodes", "StartPositionsVector"} == set(wrappers.__all__)


@every_stack
@every_mode
@pytest.mark.parametrize("limit", [6, 500])
def test_batch_is_sync_over_single_wrappers(stack, mode, limit):
    native = batch(stack, mode, max_episode_steps=limit)
    one = lambda: single(stack, max_episode_steps=limit, disable_env_checker=True)  # noqa: E731
    sync = SyncVectorEnv([one] * GAMES, autoreset_mode=mode)
    assert_both(native.reset(seed=3), sync.reset(seed=3), stack, "reset")
    rng, games = np.random.default_rng(3), 0
    for t in range(24 if limit == 6 else 90):
        masks = native.action_masks() if t % 3 else native.unwrapped.action_masks()
        actions = choose_all(masks, rng, illegal=0.06)
        here, there = native.step(actions), sync.step(actions)
        assert_both(here, there, stack, f"step {t}")
        ended = here[2] | here[3]
        games += ended.sum()
        if mode == AutoresetMode.DISABLED and ended.any():
            options = {"reset_mask": ended}
            resets = [venv.reset(options={**options, "reset_mask": ended.copy()}) for venv in (native, sync)]
            assert_both(*resets, stack, "masked reset")
    assert games >= 2 * GAMES if limit == 6 else games or STACKS[stack][0] == P2048


@every_stack
def test_gymnasium_checker_is_content(stack):
    with pytest.warns(UserWarning, match="is different from the unwrapped version") as caught:
        check_env(single(stack), skip_render_check=True)
    assert len(caught) == 1


@every_stack
@every_mode
def test_observations_are_in_the_declared_spaces(stack, mode):
    env, venv = single(stack), batch(stack, mode, num_envs=2)
    obs, info = env.reset(seed=1)
    many, infos = venv.reset(seed=1)
    assert venv.observation_space == SyncVectorEnv([lambda: single(stack)] * 2).observation_space
    assert venv.single_observation_space == env.observation_space
    rng = np.random.default_rng(1)
    for _ in range(5):
        assert env.observation_space.contains(obs)
        assert venv.observation_space.contains(many)
        obs, reward, terminated, truncated, info = env.step(choose(info["action_mask"], rng))
        many, *_, infos = venv.step(choose_all(infos["action_mask"], rng))
        assert type(reward) is float
        assert type(terminated) is type(truncated) is bool


def play_on(env, seed):
    rng = np.random.default_rng(seed)
    results = []
    for _ in range(20):
        results.append(env.step(choose(env.action_masks(), rng)))
        if results[-1][2] or results[-1][3]:
            break
    return results


def play_on_all(venv, seed):
    rng = np.random.default_rng(seed)
    return [venv.step(choose_all(venv.action_masks(), rng)) for _ in range(20)]


@every_stack
@pytest.mark.parametrize("twin", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"])
def test_copies_go_on_as_the_original(stack, twin):
    env, venv = single(stack), batch(stack)
    env.reset(seed=5)
    venv.reset(seed=5)
    for t in range(3):
        env.step(choose(env.action_masks(), np.random.default_rng(t)))
        venv.step(choose_all(venv.action_masks(), np.random.default_rng(t)))
    for original, play in ((env, play_on), (venv, play_on_all)):
        other = twin(original)
        expected = play(original, 9)
        assert_same(play(other, 9), expected)


@every_stack
def test_spec_makes_the_same_stack_again(stack):
    env = single(stack)
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert str(again) == str(env)
    assert_same(again.reset(seed=4), env.reset(seed=4))
    assert_same(play_on(again, 4), play_on(env, 4))


@every_stack
def test_masks_reach_sb3_contrib(stack):
    env, venv = single(stack), batch(stack, "SameStep")
    _, info = env.reset(seed=2)
    assert is_masking_supported(env)
    assert np.array_equal(get_action_masks(env), info["action_mask"])
    if isinstance(venv.single_observation_space, gym.spaces.Dict):
        return
    bridge = SB3VecEnv(venv, seed=2)
    bridge.reset()
    for _ in range(10):
        masks = get_action_masks(bridge)
        assert np.array_equal(masks, venv.action_masks())
        bridge.step(choose_all(masks, np.random.default_rng(0)))


@every_stack
def test_methods_of_the_puzzle_are_passed_on(stack):
    env, venv = single(stack), batch(stack)
    env.reset(seed=6)
    venv.reset(seed=6)
    state, rows = env.get_state(), venv.get_state()
    assert state == env.unwrapped.get_state()
    first, many = play_on(env, 6)[0], play_on_all(venv, 6)[0]
    env.set_state(state)
    venv.set_state(rows)
    assert_same(play_on(env, 6)[0], first)
    assert_same(play_on_all(venv, 6)[0], many)
    name, value = ("deal", 617) if STACKS[stack][0] == FREECELL else ("prob_four", 1.0)
    venv.set_attr(name, value)
    with pytest.raises(ValueError, match="unknown parameter 'colour'"):
        venv.set_attr("colour", "blue")
    infos = venv.reset()[1]
    assert name != "deal" or infos["deal"].tolist() == [617] * GAMES


@every_stack
def test_action_masks_through_gymnasium_vector_wrappers(stack):
    """Gymnasium's own vector wrappers pass no methods on; the wrappers here look through them."""
    plain = gym.make_vec(STACKS[stack][0], GAMES)
    venv = wrap(gym.wrappers.vector.RecordEpisodeStatistics(plain), stack, "Vector")
    _, infos = venv.reset(seed=0)
    assert np.array_equal(venv.action_masks(), infos["action_mask"])


@every_stack
def test_wrong_actions_change_nothing(stack):
    env, venv = single(stack, disable_env_checker=True), batch(stack)
    env.reset(seed=6)
    venv.reset(seed=6)
    state, rows = env.get_state(), venv.get_state()
    for wrong in (-1, 520, 1.5, None, "2"):
        with pytest.raises(ValueError, match="action"):
            env.step(wrong)
        with pytest.raises(ValueError, match="action"):
            venv.step([wrong] * GAMES)
    assert env.get_state() == state
    assert np.array_equal(venv.get_state(), rows)


@every_stack
@every_mode
def test_no_array_is_ever_reused(stack, mode):
    venv = batch(stack, mode, num_envs=3, max_episode_steps=4)
    results = [venv.reset(seed=0)]
    for t in range(9):
        masks = venv.action_masks()
        if mode == AutoresetMode.DISABLED and (t % 4 == 0 or results[-1][2].any()):
            results.append(venv.reset())
            masks = venv.action_masks()
        results.append(venv.step(choose_all(masks, np.random.default_rng(t))))
        for array in arrays_in(results[-1]):
            if array.dtype != object:
                array[...] = 1
    arrays = [array for result in results for array in arrays_in(result) if array.dtype != object]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])
