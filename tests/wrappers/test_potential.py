"""Potential-based shaping: what it adds is the fall of the estimate, and over a game only its ends count."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from puzzlegym.agents.solver import Solver
from puzzlegym.envs.freecell import board_from, deal_board
from puzzlegym.envs.freecell.estimate import USUAL
from puzzlegym.wrappers import IllegalMoveVector, PotentialFreeCell, PotentialFreeCellVector, StartPositionsVector
from reference import freecell
from reference.freecell_estimate import estimate
from reference.playing import choose, choose_all

every_mode = pytest.mark.parametrize("mode", list(AutoresetMode))
GAMES, SCALE = 6, 0.25
WON = freecell.squares(freecell.Position([[] for _ in range(8)], [None] * 4, [13] * 4))


def shaped(before, after, scale=SCALE):
    """What a game gives between two boards."""
    there, here = freecell.from_squares(before), freecell.from_squares(after)
    return sum(here.home) - sum(there.home) + scale * (estimate(there, USUAL) - estimate(here, USUAL))


def easy_board(seed):
    """A position with many cards at home."""
    return gym.make("FreeCell-v0", start_rank=6 + seed % 6).reset(seed=seed)[0]


@pytest.mark.parametrize("autoplay", [True, False])
def test_every_step_adds_the_fall_of_the_estimate(autoplay):
    env = PotentialFreeCell(gym.make("FreeCell-v0", autoplay=autoplay, start_rank=3), scale=SCALE)
    rng = np.random.default_rng(0)
    for seed in range(4):
        before, info = env.reset(seed=seed)
        for _ in range(40):
            after, reward, terminated, truncated, info = env.step(choose(info["action_mask"], rng, illegal=0.1))
            assert reward == pytest.approx(shaped(before, after))
            before = after
            if terminated or truncated:
                break


def test_going_round_in_circles_gains_nothing():
    env = PotentialFreeCell(gym.make("FreeCell-v0", deal=9))
    env.reset()
    there, back = env.step(298)[1], env.step(297)[1]
    assert there != 0.0
    assert there + back == 0.0


def test_a_won_game_gives_its_cards_and_its_first_estimate():
    env = PotentialFreeCell(gym.make("FreeCell-v0", deal=1))
    board, _ = env.reset()
    total = sum(env.step(action)[1] for action in Solver().solve(board).actions)
    assert total == pytest.approx(shaped(deal_board(1), WON, scale=0.05))
    assert total > 52


@every_mode
@pytest.mark.parametrize("start_rank", [0, 10], ids=["truncated", "won"])
def test_sums_over_whole_games_depend_on_their_ends(mode, start_rank):
    """Where the next game has the row already, too, and where games begin with positions of their own."""
    arguments = {"max_episode_steps": None if start_rank else 7, "start_rank": start_rank, "autoreset_mode": mode}
    inner = StartPositionsVector(gym.make_vec("FreeCell-v0", GAMES, **arguments), some_boards())
    venv = PotentialFreeCellVector(inner, SCALE)
    obs, _ = venv.reset(seed=0)
    first, total, rng, games = obs.copy(), np.zeros(GAMES), np.random.default_rng(0), 0
    for _ in range(80):
        obs, rewards, terminated, truncated, infos = venv.step(choose_all(venv.action_masks(), rng, illegal=0.05))
        total, ended = total + rewards, terminated | truncated
        for i in np.flatnonzero(ended):
            last = infos["final_obs"][i] if mode == AutoresetMode.SAME_STEP else obs[i]
            assert total[i] == pytest.approx(shaped(first[i], last))
            games += 1
        total[ended] = 0.0
        if mode == AutoresetMode.DISABLED and ended.any():
            obs, _ = venv.reset(options={"reset_mask": ended})
        begun = venv.get_state()[:, 1] == 0
        assert not total[begun].any(), "a step that only resets"
        first[begun] = obs[begun]
    assert games > 2 * GAMES


def some_boards():
    """Every second game begins with an easy position."""
    numbers = iter(range(1000))
    return lambda rows: [easy_board(i) if i % 2 else None for i in (next(numbers) for _ in rows)]


@pytest.mark.parametrize("autoplay", [True, False])
def test_safe_cards_that_follow_the_last_move_count(autoplay):
    board = board_from(["KC", "KD", "KH", "KS QS", "", "", "", ""], (), {"C": 12, "D": 12, "H": 12, "S": 11})
    after = WON if autoplay else board_from(["KC", "KD", "KH", "KS"] + [""] * 4, (), dict.fromkeys("CDHS", 12))
    inner = gym.make_vec("FreeCell-v0", GAMES, autoreset_mode="SameStep", autoplay=autoplay, max_episode_steps=1)
    venv = PotentialFreeCellVector(inner, SCALE)
    venv.reset(options={"board": board})
    _, rewards, terminated, truncated, _ = venv.step([freecell.card("QS") * 10 + 9] * GAMES)
    assert truncated.all()
    assert terminated.all() == autoplay
    assert rewards == pytest.approx(shaped(board, after))


def test_an_illegal_move_that_ends_a_game_adds_nothing():
    inner = gym.make_vec("FreeCell-v0", GAMES, autoreset_mode="SameStep")
    venv = PotentialFreeCellVector(IllegalMoveVector(inner, penalty=0.0, terminate=True), SCALE)
    venv.reset(seed=0)
    _, rewards, terminated, *_ = venv.step([519] * GAMES)  # the king of spades is not the first to go home
    assert terminated.all()
    assert not rewards.any()


def test_other_games_are_refused():
    with pytest.raises(TypeError, match="FreeCellEnv"):
        PotentialFreeCell(gym.make("Puzzle2048-v0"))
    with pytest.raises(TypeError, match="FreeCellVectorEnv"):
        PotentialFreeCellVector(gym.make_vec("Puzzle2048-v0", 2))
