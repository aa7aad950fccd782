"""The shaped rewards against sums over the merges, cards and positions seen, one by one."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from hypothesis import given
from hypothesis import strategies as st
from puzzlegym.envs.freecell import parse_move
from puzzlegym.wrappers import (
    ShapedReward2048,
    ShapedReward2048Vector,
    ShapedRewardFreeCell,
    ShapedRewardFreeCellVector,
)
from reference import game2048
from reference.playing import choose, choose_all
from reference.shared_data import read_lines

every_mode = pytest.mark.parametrize("mode", list(AutoresetMode))


def merges(board, direction):
    """Exponents of the tiles that a move makes."""
    lines = [[int(np.ravel(board)[square]) for square in line] for line in game2048.LINES[direction]]
    return [made.bit_length() - 1 for line in lines for made in game2048.slide(line)[1]]


def worth(exponent):
    return 0.05 + 0.03 * max(0, exponent - 6) ** 1.5


BOARDS = st.lists(st.one_of(st.integers(0, 3), st.integers(0, 16)), min_size=16, max_size=16)


@given(board=BOARDS.filter(lambda board: 2 <= sum(2**e for e in board if e) <= 262140), direction=st.integers(0, 3))
def test_reward_of_any_move_is_the_sum_over_its_merges(board, direction):
    env = ShapedReward2048(gym.make("Puzzle2048-v0", disable_env_checker=True), end=0.0)
    _, info = env.reset(seed=0, options={"board": np.reshape(board, (4, 4))})
    if not info["action_mask"].any():
        return
    reward = env.step(direction)[1]
    assert reward == pytest.approx(sum(map(worth, merges(board, direction))), abs=1e-12)
    assert (reward == 0.0) == (not merges(board, direction))


def test_a_whole_game_of_2048_with_other_constants():
    env = ShapedReward2048(gym.make("Puzzle2048-v0"), base=1.0, slope=0.5, start=3, power=2.0, end=-7.0)
    obs, info = env.reset(seed=5)
    rng, endings = np.random.default_rng(5), 0
    for _ in range(400):
        action = choose(info["action_mask"], rng, illegal=0.2)
        made = merges(obs, action)
        obs, reward, terminated, _, info = env.step(action)
        assert reward == pytest.approx(sum(1.0 + 0.5 * max(0, e - 3) ** 2 for e in made) - 7.0 * terminated)
        if terminated:
            endings += 1
            obs, info = env.reset()
    assert endings


def test_end_counts_at_a_win_that_terminates_too():
    env = ShapedReward2048(gym.make("Puzzle2048-v0", terminate_on_win=True))
    env.reset(seed=0, options={"board": [[10, 10, 0, 0]] + [[0] * 4] * 3})
    _, reward, terminated, *_ = env.step(3)
    assert terminated
    assert reward == pytest.approx(worth(11) - 1.0)


@every_mode
def test_batch_of_2048_by_the_boards_before_each_step(mode):
    venv = ShapedReward2048Vector(gym.make_vec("Puzzle2048-v0", 6, autoreset_mode=mode, max_episode_steps=130))
    obs, infos = venv.reset(seed=0)
    rng, over, terminations, truncations = np.random.default_rng(0), np.zeros(6, dtype=bool), 0, 0
    for _ in range(300):
        actions = choose_all(infos["action_mask"], rng, illegal=0.1)
        expected = [sum(map(worth, merges(board, action))) for board, action in zip(obs, actions, strict=True)]
        obs, rewards, terminated, truncated, infos = venv.step(actions)
        expected = np.where(over, 0.0, expected - 1.0 * terminated)
        assert (rewards.dtype, rewards.shape) == (np.float64, (6,))
        assert rewards == pytest.approx(expected, abs=1e-12)
        terminations, truncations = terminations + terminated.sum(), truncations + truncated.sum()
        ended = terminated | truncated
        over = ended & (mode == AutoresetMode.NEXT_STEP)
        if mode == AutoresetMode.DISABLED and ended.any():
            obs, _ = venv.reset(options={"reset_mask": ended})
            infos = {"action_mask": venv.action_masks()}
    assert terminations > 2
    assert truncations > 2


def won_games(number):
    """(deal, actions with safe cards going home by themselves) of recorded wins."""
    for game in read_lines("freecell_replays.jsonl.gz")[:number]:
        env = gym.make("FreeCell-v0", deal=game["deal"])
        obs, _ = env.reset()
        actions = []
        for move in game["moves_auto_nostart"]:
            actions.append(parse_move(obs, move["move"] if isinstance(move, dict) else move))
            obs = env.step(actions[-1])[0]
        yield game["deal"], actions


def test_won_game_gives_its_cards_and_the_bonus():
    for deal, actions in won_games(3):
        env = ShapedRewardFreeCell(gym.make("FreeCell-v0", deal=deal), win=10.0)
        env.reset()
        rewards = [env.step(action)[1] for action in actions]
        assert sum(rewards) == pytest.approx(62.0)
        assert rewards[-1] > 10.0


@every_mode
def test_batch_gives_the_bonus_once_in_the_step_that_wins(mode):
    deal, actions = next(won_games(1))
    venv = ShapedRewardFreeCellVector(gym.make_vec("FreeCell-v0", 2, autoreset_mode=mode, deal=deal), win=3.0)
    venv.reset(seed=0)
    waits = np.append(actions, actions[-1])
    total = np.zeros(2)
    for t, action in enumerate(actions):
        _, rewards, terminated, *_ = venv.step(np.array([action, waits[t - 1] if t else 519]))
        total += rewards
    assert terminated.tolist() == [True, False]
    assert total[0] == pytest.approx(55.0)
    assert total[1] < 52.0
    if mode != AutoresetMode.DISABLED:
        _, rewards, terminated, *_ = venv.step(np.array([519, actions[-1]]))
        assert terminated.tolist() == [False, True]
        assert rewards[0] == 0.0
        assert (total + rewards)[1] == pytest.approx(55.0)


def test_repeats_cost_until_the_next_card_goes_home():
    """Positions are forgotten with every card that goes home, which changes nothing: they cannot come back."""
    env = ShapedRewardFreeCell(gym.make("FreeCell-v0"), win=10.0, repeat=-0.25)
    rng, repeats = np.random.default_rng(2), 0
    for seed in range(8):
        obs, info = env.reset(seed=seed, options={"start_rank": seed})
        home, seen = info["cards_home"], {canonical(obs)}
        for _ in range(80):
            obs, reward, terminated, truncated, info = env.step(choose(info["action_mask"], rng, illegal=0.1))
            sent, home = info["cards_home"] - home, info["cards_home"]
            seen = set() if sent else seen
            repeated = info["legal"] and canonical(obs) in seen
            repeats += repeated
            seen.add(canonical(obs))
            assert reward == pytest.approx(sent + 10.0 * info["is_success"] - 0.25 * repeated)
            if terminated or truncated:
                break
    assert repeats > 20


def canonical(board):
    return tuple(sorted(map(bytes, board[1:].T))), tuple(sorted(board[0, :4]))


def test_other_games_are_refused():
    for wrapper, one, many in (
        (ShapedReward2048, "Puzzle2048Env", "FreeCell-v0"),
        (ShapedRewardFreeCell, "FreeCellEnv", "Puzzle2048-v0"),
    ):
        with pytest.raises(TypeError, match=one):
            wrapper(gym.make(many))
    with pytest.raises(TypeError, match="Puzzle2048VectorEnv"):
        ShapedReward2048Vector(gym.make_vec("FreeCell-v0", 2))
    with pytest.raises(TypeError, match="FreeCellVectorEnv"):
        ShapedRewardFreeCellVector(gym.make_vec("Puzzle2048-v0", 2))
