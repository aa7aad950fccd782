"""``copy=False``: the same values in the same arrays at every step; what a finished game left is never overwritten."""

from __future__ import annotations

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from puzzlegym.envs.registry import PUZZLES
from reference.playing import arrays_in, assert_same, choose_all, middle_of_a_game

every_puzzle = pytest.mark.parametrize("puzzle_id", PUZZLES)
every_mode = pytest.mark.parametrize("mode", list(AutoresetMode))
GAMES, LIMIT = 5, 7


def make(puzzle_id, mode=AutoresetMode.NEXT_STEP, copied=False, limit=LIMIT):
    return gym.make_vec(puzzle_id, num_envs=GAMES, max_episode_steps=limit, autoreset_mode=mode, copy=copied)


def pair(puzzle_id, mode, limit=LIMIT):
    """Started batches of the same games, without and with copies, some of them a few steps ahead of the others."""
    venvs = [make(puzzle_id, mode, copied, limit) for copied in (False, True)]
    some, rng = np.arange(GAMES) % 2 == 0, np.random.default_rng(0)
    assert_same(*[venv.reset(seed=3) for venv in venvs])
    for _ in range(3):
        actions = choose_all(venvs[0].action_masks(), rng)
        assert_same(*[venv.step(actions) for venv in venvs])
    assert_same(*[venv.reset(options={"reset_mask": some.copy()}) for venv in venvs])
    return venvs


def ended_in(result):
    return result[2] | result[3]


def lasting(result):
    """What a step returned, without what the game that ended left behind."""
    *arrays, infos = result
    return *arrays, {key: value for key, value in infos.items() if not key.strip("_").startswith("final_")}


def after_an_end(venv, ended):
    """DISABLED leaves it to the caller to start new games; others step into them. What the caller got, or None."""
    if venv.autoreset_mode == AutoresetMode.DISABLED and ended.any():
        return venv.reset(options={"reset_mask": ended.copy()})
    return None


@every_puzzle
@every_mode
@pytest.mark.parametrize(("limit", "steps"), [(LIMIT, 50), (None, 330)])
def test_values_are_those_of_copies(puzzle_id, mode, limit, steps):
    (same, fresh), rng, endings = pair(puzzle_id, mode, limit), np.random.default_rng(1), 0
    for t in range(steps):
        actions = choose_all(fresh.action_masks(), rng, illegal=0.15)
        here, there = same.step(actions), fresh.step(actions)
        assert_same(here, there, f"step {t}")
        ended = ended_in(there).copy()
        endings += ended.sum()
        assert_same(after_an_end(same, ended), after_an_end(fresh, ended), f"masked reset at step {t}")
        assert_same(same.action_masks(), fresh.action_masks(), f"masks at step {t}")
        assert np.array_equal(same.get_state(), fresh.get_state())
    assert endings >= GAMES


@every_puzzle
@every_mode
def test_values_are_those_of_copies_whatever_is_called_between(puzzle_id, mode):
    """Resets of all and of some games, boards, snapshots, and refused actions."""
    same, fresh = pair(puzzle_id, mode)
    board, some = middle_of_a_game(puzzle_id).unwrapped.get_state().array, np.arange(GAMES) < 2
    rows = same.get_state()
    calls = [
        lambda venv: venv.reset(seed=4),
        lambda venv: venv.reset(options={"board": board}),
        lambda venv: venv.reset(seed=9, options={"reset_mask": some.copy()}),
        lambda venv: venv.reset(seed=9, options={"reset_mask": some.copy(), "board": board}),
        lambda venv: venv.set_state(rows),
        lambda venv: venv.set_attr(*changed_argument(venv)),
        refused,
    ]
    rng = np.random.default_rng(2)
    for call in calls:
        assert_same(call(same), call(fresh))
        for _ in range(3):
            assert_same(same.action_masks(), fresh.action_masks())
            actions = choose_all(same.action_masks(), rng, illegal=0.1)
            here, there = same.step(actions), fresh.step(actions)
            assert_same(here, there)
            after_an_end(same, ended_in(there)), after_an_end(fresh, ended_in(there))


def changed_argument(venv):
    """An argument that is True or False, the other way round in every second game."""
    name, default = next((k, p.default) for k, p in venv.puzzle.parameters.items() if isinstance(p.default, bool))
    return name, [default ^ (i % 2 == 0) for i in range(GAMES)]


def refused(venv):
    with pytest.raises(ValueError, match="action"):
        venv.step(np.full(GAMES, -1))
    return venv.action_masks()


@every_puzzle
@every_mode
def test_every_step_returns_the_same_memory(puzzle_id, mode):
    venv, rng = make(puzzle_id, mode), np.random.default_rng(3)
    venv.reset(seed=3)
    first = lasting(venv.step(choose_all(venv.action_masks(), rng)))
    results = [first]
    for _ in range(4 * LIMIT):
        after_an_end(venv, ended_in(results[-1]))
        results.append(lasting(venv.step(choose_all(venv.action_masks(), rng))))
        arrays = list(arrays_in(results[-1]))
        assert len(arrays) == len(list(arrays_in(first))) == 4 + 2 * (len(venv.puzzle.numbers) + 3)
        for before, now in zip(arrays_in(first), arrays, strict=True):
            assert np.shares_memory(before, now)
            assert (before.__array_interface__["data"], before.shape) == (now.__array_interface__["data"], now.shape)
        assert_same(results[-1], first, "an earlier result holds the values of the latest one")


@every_puzzle
def test_infos_are_dicts_of_their_own(puzzle_id):
    """Wrappers add to them; the next step has none of it."""
    venv = make(puzzle_id)
    venv.reset(seed=0)
    for _ in range(3):
        *_, infos = venv.step(choose_all(venv.action_masks(), np.random.default_rng(0)))
        assert "mine" not in infos
        infos["mine"] = 1


@every_puzzle
@pytest.mark.parametrize("limit", [3, None])
def test_what_a_finished_game_left_is_not_overwritten(puzzle_id, limit):
    venv, rng = make(puzzle_id, AutoresetMode.SAME_STEP, limit=limit), np.random.default_rng(4)
    venv.reset(seed=4)
    kept, wanted = [], 12 if limit else GAMES
    for _ in range(1500):
        infos = venv.step(choose_all(venv.action_masks(), rng))[-1]
        if "final_obs" in infos:
            final = {key: value for key, value in infos.items() if key.strip("_").startswith("final_")}
            assert sorted(final) == ["_final_info", "_final_obs", "final_info", "final_obs"]
            kept.append((final, copy.deepcopy(final)))
        if len(kept) >= wanted:
            break
    for _ in range(5):
        venv.step(choose_all(venv.action_masks(), rng))
    assert len(kept) >= wanted
    for final, as_it_was in kept:
        assert_same(final, as_it_was)
    out = list(arrays_in(lasting(venv.step(choose_all(venv.action_masks(), rng)))))
    left = [array for final, _ in kept for array in arrays_in(final) if array.dtype != object]
    assert len(left) > len(kept)
    assert not any(np.shares_memory(a, b) for i, a in enumerate(left) for b in [*out, *left[:i]])


@every_puzzle
@every_mode
@pytest.mark.parametrize("copied", [True, False])
def test_masks_are_those_of_the_infos(puzzle_id, mode, copied):
    venv, rng = make(puzzle_id, mode, copied), np.random.default_rng(5)
    _, infos = venv.reset(seed=5)
    for _ in range(4 * LIMIT):
        masks = venv.action_masks()
        assert (masks.dtype, masks.shape) == (np.bool_, infos["action_mask"].shape)
        assert np.array_equal(masks, infos["action_mask"])
        assert np.shares_memory(masks, infos["action_mask"]) is not copied
        result = venv.step(choose_all(masks, rng, illegal=0.1))
        infos = result[-1]
        assert np.array_equal(venv.action_masks(), infos["action_mask"])
        if after_an_end(venv, ended_in(result)) is not None:
            infos = venv.reset()[1]


@every_puzzle
@every_mode
def test_copies_share_nothing(puzzle_id, mode):
    venv, rng = make(puzzle_id, mode, copied=True), np.random.default_rng(6)
    results = [venv.reset(seed=6)]
    for _ in range(3 * LIMIT):
        results.append(venv.step(choose_all(venv.action_masks(), rng, illegal=0.1)))
        results += [again for again in [after_an_end(venv, ended_in(results[-1]))] if again]
        results.append(venv.action_masks())
    arrays = [[array for array in arrays_in(result) if array.dtype != object] for result in results]
    for i, some in enumerate(arrays):
        assert some
        assert not any(np.may_share_memory(a, b) for a in some for earlier in arrays[:i] for b in earlier)


TWINS = {"deep copy": copy.deepcopy, "pickled": lambda venv: pickle.loads(pickle.dumps(venv))}


@every_puzzle
@every_mode
@pytest.mark.parametrize("twin", TWINS.values(), ids=TWINS.keys())
def test_a_copied_environment_writes_to_its_own_arrays(puzzle_id, mode, twin):
    (same, _), rng = pair(puzzle_id, mode), np.random.default_rng(7)
    shown = lasting(same.step(choose_all(same.action_masks(), rng)))
    other, reference = twin(same), make(puzzle_id, mode, copied=True)
    reference.reset(seed=0)
    reference.set_state(same.get_state())
    as_it_was = copy.deepcopy(shown)
    for t in range(3 * LIMIT):
        actions = choose_all(reference.action_masks(), rng, illegal=0.2)
        here, there = other.step(actions), reference.step(actions)
        assert_same(here, there, f"step {t}")
        assert_same(after_an_end(other, ended_in(there)), after_an_end(reference, ended_in(there)))
    assert_same(shown, as_it_was, "the original's arrays")
