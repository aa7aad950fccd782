"""NoRepeat against a set of positions kept in plain Python."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from puzzlegym.envs.freecell import CELL, HOME, apply, board_from, card_id, deal_board, encode_action, legal_moves
from puzzlegym.wrappers import NoRepeat, NoRepeatVector, ShapedRewardFreeCell
from reference.playing import choose, choose_all

every_mode = pytest.mark.parametrize("mode", list(AutoresetMode))
every_autoplay = pytest.mark.parametrize("autoplay", [True, False])
REST = (
    "KC QD JC TD 9C 8D 7C 6D 5C 4D 3C|KD QC JD TC 9D 8C 7D 6C 5D 4C 3D|KH QS JH TS 9H 8S 7H 6S 5H|KS QH JS TH 9S 8H 7S"
)


def position(board):
    """A board up to the order of columns and of cells."""
    return tuple(sorted(map(bytes, board[1:].T))), tuple(sorted(board[0, :4])), bytes(board[0, 4:])


def filtered(board, seen, autoplay=True):
    """The mask that NoRepeat should show, by trying every legal move."""
    legal = [int(action) for action in legal_moves(board)]
    new = [action for action in legal if position(apply(board, action, autoplay)[0]) not in seen]
    mask = np.zeros(520, dtype=np.int8)
    mask[new or legal] = 1
    return mask


def assert_filtered(mask, board, seen, autoplay=True):
    assert (mask.dtype, mask.shape) == (np.int8, (520,))
    assert np.array_equal(mask, filtered(board, seen, autoplay))


def follow(env, rng, obs, info, autoplay=True, start_masked=0.9, limit=500):
    """Play one game and compare every mask and every ``repeated``; returns (positions seen, forced repeats)."""
    seen, forced = {position(obs)}, 0
    for _ in range(limit):
        assert_filtered(info["action_mask"], obs, seen, autoplay)
        masks = env.action_masks()
        assert masks.dtype == np.bool_
        assert np.array_equal(masks, info["action_mask"])
        mask = info["action_mask"] if rng.random() < start_masked else env.unwrapped.action_masks()
        obs, _, terminated, truncated, info = env.step(choose(mask, rng, illegal=0.02))
        assert info["repeated"] is (info["legal"] and position(obs) in seen)
        forced += info["repeated"]
        seen.add(position(obs))
        if terminated or truncated:
            break
    return seen, forced


@every_autoplay
def test_masks_are_those_of_a_plain_search(autoplay):
    env = NoRepeat(gym.make("FreeCell-v0", autoplay=autoplay))
    rng, forced = np.random.default_rng(0), 0
    for seed in range(12):
        obs, info = env.reset(seed=seed, options={"start_rank": seed % 6})
        assert info["repeated"] is False
        forced += follow(env, rng, obs, info, autoplay, limit=120)[1]
    assert forced > 20, "the whole mask stays where every move leads back"


def long_games(env, wanted):
    """Games that see at least ``wanted`` positions."""
    for seed in range(200):
        obs, info = env.reset(seed=seed, options={"start_rank": 4})
        if len(follow(env, np.random.default_rng(seed), obs, info, start_masked=1.0, limit=400)[0]) >= wanted:
            return True
    return False


def test_long_games_outgrow_the_first_set():
    assert long_games(NoRepeat(gym.make("FreeCell-v0")), wanted=140)


def test_whole_column_to_an_empty_column_is_a_repeat():
    columns = [*REST.split("|"), "AC AD AH AS 2C 2D 2H 2S 4H 3S", "6H 5S", "4S 3H", ""]
    env = NoRepeat(gym.make("FreeCell-v0"))
    _, info = env.reset(options={"board": board_from(columns)})
    whole, part = (encode_action(card_id(name), 7) for name in ("4S", "3H"))
    legal = env.unwrapped.action_masks()
    assert legal[whole]
    assert legal[part]
    assert not info["action_mask"][whole]
    assert info["action_mask"][part]


def unstable():
    """A position with AH to send, 4S alone in its column, and an empty column."""
    return board_from([*REST.split("|"), "4H 3S 2S", "6H 5S 2H 2C 3H 2D", "4S", ""], ["AH", "AS", "AC"], {"D": 1})


@every_autoplay
def test_moves_that_let_safe_cards_go_are_new(autoplay):
    """A set position can have an ace to send: a whole column to an empty one then leads on, not back."""
    env = NoRepeat(gym.make("FreeCell-v0", autoplay=autoplay))
    board = unstable()
    _, info = env.reset(options={"board": board})
    to_empty = encode_action(card_id("4S"), 7)
    assert env.unwrapped.action_masks()[to_empty]
    assert info["action_mask"][to_empty] == autoplay
    assert_filtered(info["action_mask"], board, {position(board)}, autoplay)


def undo_of_deal_9():
    return encode_action(card_id("8D"), CELL), encode_action(card_id("8D"), 7)


def test_masked_move_can_be_played_and_is_told():
    env = NoRepeat(gym.make("FreeCell-v0", deal=9))
    env.reset(seed=0)
    there, back = undo_of_deal_9()
    assert not env.step(there)[4]["repeated"]
    assert not env.action_masks()[back]
    obs, *_, info = env.step(back)
    assert info["legal"]
    assert info["repeated"]
    assert np.array_equal(obs, deal_board(9))
    assert not info["action_mask"][there], "8D in a cell was seen, too"


def test_illegal_action_is_no_repeat():
    env = NoRepeat(gym.make("FreeCell-v0", deal=9))
    env.reset(seed=0)
    info = env.step(encode_action(card_id("KS"), HOME))[4]
    assert not info["legal"]
    assert not info["repeated"]


def test_a_new_game_forgets():
    env = NoRepeat(gym.make("FreeCell-v0", deal=9))
    there, _ = undo_of_deal_9()
    for _ in range(3):
        _, info = env.reset()
        assert info["action_mask"][there]
        env.step(there)


def test_history_begins_at_a_snapshot_put_back():
    env = NoRepeat(gym.make("FreeCell-v0", deal=9))
    env.reset(seed=0)
    start, (there, back) = env.get_state(), undo_of_deal_9()
    env.step(there)
    middle = env.get_state()
    env.set_state(middle)
    assert env.action_masks()[back]
    assert not env.step(back)[4]["repeated"]
    env.set_state(start)
    assert env.action_masks()[there]


def test_action_masks_look_again_after_a_state_was_set_beneath():
    env, other = (NoRepeat(gym.make("FreeCell-v0", deal=9)) for _ in range(2))
    there, back = undo_of_deal_9()
    for one in (env, other):
        one.reset(seed=0)
        one.step(there)
    assert not env.action_masks()[back]
    other.step(encode_action(card_id("3D"), CELL))
    env.unwrapped.set_state(other.unwrapped.get_state())
    assert env.action_masks()[back], "this leads to a new position now"
    assert not env.action_masks()[~env.unwrapped.action_masks()].any()


def batch(mode, num_envs=5, **arguments):
    return NoRepeatVector(gym.make_vec("FreeCell-v0", num_envs=num_envs, autoreset_mode=mode, **arguments))


class Shadow:
    """The sets of seen positions of a batch."""

    def __init__(self, obs):
        self.seen = [{position(board)} for board in obs]

    def begin(self, which, obs):
        for i in np.flatnonzero(which):
            self.seen[i] = {position(obs[i])}

    def repeated(self, i, board, legal):
        back = bool(legal and position(board) in self.seen[i])
        self.seen[i].add(position(board))
        return back

    def check(self, infos, venv, obs):
        for i, board in enumerate(obs):
            assert_filtered(infos["action_mask"][i], board, self.seen[i])
        assert np.array_equal(venv.action_masks(), infos["action_mask"])


@every_mode
@pytest.mark.parametrize("limit", [9, None])
def test_batch_masks_are_those_of_a_plain_search(mode, limit):
    venv, rng = batch(mode, max_episode_steps=limit), np.random.default_rng(1)
    obs, infos = venv.reset(seed=1, options={"start_rank": [0, 1, 3, 5, 0]})
    shadow, ended, games, repeats = Shadow(obs), np.zeros(5, dtype=bool), 0, 0
    for t in range(150):
        shadow.check(infos, venv, obs)
        masks = infos["action_mask"] if t % 2 else venv.unwrapped.action_masks()
        begins = ended.copy()
        obs, _, terminated, truncated, infos = venv.step(choose_all(masks, rng, illegal=0.05))
        ended = terminated | truncated
        games += ended.sum()
        repeats += check_step(mode, shadow, obs, infos, begins, ended)
        if mode == AutoresetMode.DISABLED and ended.any():
            obs, masked = venv.reset(options={"reset_mask": ended.copy()})
            assert np.array_equal(masked["_repeated"], ended)
            assert not masked["action_mask"][~ended].any(), "they speak of the games that were reset"
            shadow.begin(ended, obs)
            infos["action_mask"] = np.where(ended[:, None], masked["action_mask"], infos["action_mask"])
            ended[:] = False
    assert games >= 3
    assert repeats >= 3


def check_step(mode, shadow, obs, infos, begins, ended):
    """Compare ``repeated`` of one step; returns how many were true."""
    same, next_step = mode == AutoresetMode.SAME_STEP, mode == AutoresetMode.NEXT_STEP
    new = ended if same else begins & next_step
    final = infos.get("final_info", {"repeated": np.zeros(len(obs), bool)})
    assert infos["_repeated"].all()
    if same and ended.any():
        assert np.array_equal(final["_repeated"], ended)
    count = 0
    for i in range(len(obs)):
        if new[i] and not same:
            assert not infos["repeated"][i]
            continue
        board, info = (infos["final_obs"][i], final) if new[i] else (obs[i], infos)
        told = info["repeated"][i]
        assert told == shadow.repeated(i, board, info["legal"][i])
        assert not (new[i] and infos["repeated"][i])
        count += told
    shadow.begin(new, obs)
    return count


def test_reset_of_some_games_keeps_the_history_of_the_others():
    venv = batch("Disabled", num_envs=2, deal=9)
    venv.reset(seed=0)
    there, back = undo_of_deal_9()
    venv.step([there, there])
    _, infos = venv.reset(options={"reset_mask": np.array([True, False])})
    assert infos["action_mask"][0, there]
    masks = venv.action_masks()
    assert masks[0, there]
    assert not masks[1, back]
    assert venv.step([there, back])[4]["repeated"].tolist() == [False, True]


def test_autoplay_may_differ_between_the_games_of_a_batch():
    venv = batch("NextStep", num_envs=2)
    venv.set_attr("autoplay", [True, False])
    _, infos = venv.reset(seed=0, options={"board": unstable()})
    assert infos["action_mask"][:, encode_action(card_id("4S"), 7)].tolist() == [1, 0]


def test_batch_snapshot_begins_the_histories():
    venv = batch("NextStep", num_envs=2, deal=9)
    venv.reset(seed=0)
    there, back = undo_of_deal_9()
    venv.step([there, there])
    venv.set_state(venv.get_state())
    assert venv.action_masks()[:, back].all()


@pytest.mark.parametrize("wrapper", [NoRepeat, ShapedRewardFreeCell])
def test_other_games_are_refused(wrapper):
    with pytest.raises(TypeError, match="FreeCellEnv"):
        wrapper(gym.make("Puzzle2048-v0"))
    with pytest.raises(TypeError, match="FreeCellVectorEnv"):
        NoRepeatVector(gym.make_vec("Puzzle2048-v0", num_envs=2))
