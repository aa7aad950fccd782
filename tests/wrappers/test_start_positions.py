"""Batches whose games begin with positions of the caller's choice, against single games on the same boards."""

from __future__ import annotations

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from puzzlegym.envs.common.rows import RNG, STEPS
from puzzlegym.envs.registry import PUZZLES
from puzzlegym.wrappers import (
    IllegalMoveVector,
    NoRepeatVector,
    OneHotObservationVector,
    PotentialFreeCellVector,
    ShapedReward2048Vector,
    ShapedRewardFreeCellVector,
    StartPositionsVector,
)
from puzzlegym.wrappers._batch import seat
from reference.playing import assert_same, choose_all, middle_of_a_game

P2048, FREECELL = "Puzzle2048-v0", "FreeCell-v0"
every_puzzle = pytest.mark.parametrize("puzzle_id", PUZZLES)
every_mode = pytest.mark.parametrize("mode", list(AutoresetMode))
both_copies = pytest.mark.parametrize("copied", [True, False], ids=["copies", "same-arrays"])
GAMES, LIMIT = 5, 6
LOST = {  # boards without a legal move
    P2048: np.array([[1, 2, 1, 2], [2, 1, 2, 1]] * 2),
    FREECELL: np.vstack([[0] * 4 + [49, 50, 51, 52], np.zeros((19, 8), int)]),
}
WRONG = {P2048: np.zeros((4, 4), int), FREECELL: np.zeros((20, 8), int)}


@pytest.fixture(scope="module")
def boards():
    """Positions of each puzzle, all different."""
    return {
        puzzle_id: [middle_of_a_game(puzzle_id, seed=40 * i, moves=4 + i).unwrapped.get_state().array for i in range(7)]
        for puzzle_id in PUZZLES
    }


class Source:
    """Answers with one board after the other, and with None for every third game; notes who asked."""

    def __init__(self, boards):
        self.boards, self.asked, self.given = boards, [], {}

    def __call__(self, rows):
        assert rows.dtype == np.int64
        self.given = {}
        for row in rows.tolist():
            number = len(self.asked)
            self.asked.append(row)
            self.given[row] = None if number % 3 == 2 else self.boards[number % len(self.boards)]
        return list(self.given.values())


def make(puzzle_id, mode="NextStep", source=lambda rows: [None for _ in rows], **arguments):
    arguments = {"max_episode_steps": LIMIT, **arguments}
    return StartPositionsVector(gym.make_vec(puzzle_id, GAMES, autoreset_mode=mode, **arguments), source)


def assert_begins(venv, obs, infos, given):
    """Games that were given a board show it as a single game that is reset to it does, and begin there."""
    masks = venv.action_masks()
    for row, board in given.items():
        assert infos["_action_mask"][row]
        assert np.array_equal(masks[row], infos["action_mask"][row])
        if board is None:
            continue
        shown, info = gym.make(venv.unwrapped.spec.id).reset(seed=0, options={"board": board})
        assert np.array_equal(obs[row], shown)
        assert np.array_equal(shown, board)
        for key, value in info.items():
            assert np.array_equal(infos[key][row], value), key
    assert not venv.get_state()[list(given), STEPS].any()


@every_puzzle
@every_mode
@both_copies
def test_games_begin_where_the_source_says(puzzle_id, mode, copied, boards):
    source = Source(boards[puzzle_id])
    venv = make(puzzle_id, mode, source, copy=copied)
    obs, infos = venv.reset(seed=1)
    assert_begins(venv, obs, infos, source.given)
    rng, over = np.random.default_rng(1), np.zeros(GAMES, dtype=bool)
    for t in range(4 * LIMIT):
        if t == 2:  # from here on not all games end at once
            obs, infos = venv.reset(options={"reset_mask": np.arange(GAMES) % 2 == 0})
            assert list(source.given) == [0, 2, 4]
            assert_begins(venv, obs, infos, source.given)
        source.given = {}
        before = obs.copy()
        obs, rewards, terminated, truncated, infos = venv.step(choose_all(venv.action_masks(), rng))
        ended = terminated | truncated
        if mode == AutoresetMode.DISABLED and ended.any():
            assert source.given == {}
            obs, infos = venv.reset(options={"reset_mask": ended})
        begun = over if mode == AutoresetMode.NEXT_STEP else ended
        assert list(source.given) == np.flatnonzero(begun).tolist()
        assert_begins(venv, obs, infos, source.given)
        if mode == AutoresetMode.NEXT_STEP:
            assert not rewards[over].any()
            assert not (ended & over).any()
        assert not (obs[~begun] == before[~begun]).all(axis=(1, 2)).any(), "the others go on"
        over = ended
    assert len(source.asked) >= 3 * GAMES


@every_puzzle
def test_what_a_finished_game_left_is_not_touched(puzzle_id, boards):
    """Rewards, ends and final infos of SAME_STEP are those of the batch that was put on the same boards by hand."""
    source = Source(boards[puzzle_id])
    venv = make(puzzle_id, "SameStep", source)
    plain = gym.make_vec(puzzle_id, GAMES, autoreset_mode="SameStep", max_episode_steps=LIMIT)
    rng = np.random.default_rng(2)
    venv.reset(seed=2)
    plain.reset(seed=2)
    for _ in range(3 * LIMIT):
        plain.set_state(venv.get_state())
        actions = choose_all(venv.action_masks(), rng)
        here, there = venv.step(actions), plain.step(actions)
        assert_same(here[1:4], there[1:4])
        for key in ("final_obs", "_final_obs", "final_info", "_final_info"):
            assert_same(here[4].get(key), there[4].get(key), key)
    assert len(source.asked) > 2 * GAMES


@every_puzzle
@every_mode
def test_without_positions_it_is_the_batch(puzzle_id, mode):
    venv = make(puzzle_id, mode)
    plain = gym.make_vec(puzzle_id, GAMES, autoreset_mode=mode, max_episode_steps=LIMIT)
    assert_same(venv.reset(seed=3), plain.reset(seed=3))
    rng = np.random.default_rng(3)
    for _ in range(3 * LIMIT):
        actions = choose_all(plain.action_masks(), rng, illegal=0.1)
        here, there = venv.step(actions), plain.step(actions)
        assert_same(here, there)
        if mode == AutoresetMode.DISABLED and (ended := here[2] | here[3]).any():
            assert_same(*[both.reset(options={"reset_mask": ended.copy()}) for both in (venv, plain)])


@every_mode
def test_later_deals_are_those_of_the_batch(mode):
    """The generators go on as if the positions had not been set: every game has the deal that it would have had."""
    easy = gym.make(FREECELL, start_rank=12).reset(seed=0)[0]
    venv = make(FREECELL, mode, lambda rows: [easy if row % 2 else None for row in rows])
    plain = gym.make_vec(FREECELL, GAMES, autoreset_mode=mode)
    venv.reset(seed=4)
    plain.reset(seed=4)
    for _ in range(4):
        some = np.arange(GAMES) != 2
        assert np.array_equal(venv.get_state()[:, RNG], plain.get_state()[:, RNG])
        here, there = (both.reset(options={"reset_mask": some.copy()})[1]["deal"] for both in (venv, plain))
        assert here[::2].tolist() == there[::2].tolist()
        assert not here[1::2].any()


@every_puzzle
def test_generators_are_not_touched(puzzle_id, boards):
    """Dealing draws from them as ever, putting a game on a board does not."""
    venv, plain = make(puzzle_id, "NextStep", Source(boards[puzzle_id])), make(puzzle_id)
    for options in ({}, {"reset_mask": np.arange(GAMES) > 2}):
        for both in (venv, plain):
            both.reset(seed=5, options=dict(options))
        assert np.array_equal(venv.get_state()[:, RNG], plain.get_state()[:, RNG])
        assert not np.array_equal(venv.get_state(), plain.get_state())


@every_puzzle
def test_a_masked_reset_asks_for_its_games_alone(puzzle_id, boards):
    source = Source(boards[puzzle_id])
    venv = make(puzzle_id, "NextStep", source)
    obs, _ = venv.reset(seed=6)
    rows = venv.get_state()
    some = np.array([False, True, False, True, False])
    again, infos = venv.reset(options={"reset_mask": some})
    assert source.asked == [0, 1, 2, 3, 4, 1, 3]
    assert np.array_equal(infos["_action_mask"], some)
    assert np.array_equal(venv.get_state()[~some], rows[~some])
    assert np.array_equal(again[~some], obs[~some])
    assert_begins(venv, again, infos, source.given)
    assert not infos["action_mask"][~some].any(), "the infos are those of the games that were reset"


@every_puzzle
def test_a_board_option_counts_before_the_source(puzzle_id, boards):
    first, second, *_ = boards[puzzle_id]
    source = Source([first])
    venv = make(puzzle_id, "NextStep", source)
    obs, infos = venv.reset(seed=7, options={"board": second})
    assert source.asked == []
    assert_begins(venv, obs, infos, dict.fromkeys(range(GAMES), second))
    venv.reset(options={"board": None})
    assert source.asked == [*range(GAMES)]


def test_other_options_count_where_the_source_has_no_board(boards):
    venv = make(FREECELL, "NextStep", lambda rows: [None if row else boards[FREECELL][0] for row in rows])
    _, infos = venv.reset(seed=8, options={"deal": [11, 12, 13, 14, 15]})
    assert infos["deal"].tolist() == [0, 12, 13, 14, 15]


@every_puzzle
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_what_is_no_board_is_refused_and_the_games_go_on_as_dealt(puzzle_id, mode, boards):
    answers = [boards[puzzle_id][0], WRONG[puzzle_id], None, None, None]
    venv, plain = make(puzzle_id, mode, lambda rows: answers), make(puzzle_id, mode)
    with pytest.raises(ValueError, match="board"):
        venv.reset(seed=9)
    plain.reset(seed=9)
    assert np.array_equal(venv.get_state(), plain.get_state())
    rng, refused = np.random.default_rng(9), 0
    for _ in range(2 * LIMIT + 3):
        actions = choose_all(plain.action_masks(), rng)
        try:
            assert_same(venv.step(actions), plain.step(actions))
        except ValueError:
            refused += 1
            plain.step(actions)
        assert np.array_equal(venv.get_state(), plain.get_state())
        assert np.array_equal(venv.action_masks(), plain.action_masks())
    assert refused == 2


@every_puzzle
def test_seat_changes_nothing_for_what_is_no_board(puzzle_id, boards):
    venv = gym.make_vec(puzzle_id, GAMES)
    result = venv.reset(seed=10)
    kept, rows = copy.deepcopy(result), venv.get_state()
    with pytest.raises(ValueError, match=r"\S"):
        seat(venv, {0: boards[puzzle_id][0], 1: WRONG[puzzle_id]}, result[1])
    assert_same(result, kept)
    assert np.array_equal(venv.get_state(), rows)


@every_puzzle
@every_mode
def test_a_board_without_a_move_is_not_stepped(puzzle_id, mode):
    lost = [False]
    venv = make(puzzle_id, mode, lambda rows: [LOST[puzzle_id] if lost[0] and row == 1 else None for row in rows])
    venv.reset(seed=11)
    rng, lost[0] = np.random.default_rng(11), True
    steps = LIMIT + (mode == AutoresetMode.NEXT_STEP)
    for _ in range(steps):
        *_, terminated, truncated, _ = venv.step(choose_all(venv.action_masks(), rng))
    if mode == AutoresetMode.DISABLED:
        venv.reset(options={"reset_mask": terminated | truncated})
    assert not venv.action_masks()[1].any()
    rows = venv.get_state()
    with pytest.raises(ResetNeeded, match="over when they were set"):
        venv.step([0] * GAMES)
    assert np.array_equal(venv.get_state(), rows)
    lost[0] = False
    venv.reset(options={"reset_mask": np.arange(GAMES) == 1})
    venv.step(choose_all(venv.action_masks(), rng))


@pytest.mark.parametrize(
    ("puzzle_id", "layers"),
    [
        (P2048, [(ShapedReward2048Vector, {"end": -2.0})]),
        (FREECELL, [(ShapedRewardFreeCellVector, {"repeat": -0.5})]),
        (FREECELL, [(PotentialFreeCellVector, {}), (NoRepeatVector, {})]),
        (FREECELL, [(IllegalMoveVector, {"terminate": True}), (NoRepeatVector, {}), (OneHotObservationVector, {})]),
    ],
    ids=["shaped-2048", "shaped-freecell", "potential", "deep"],
)
@every_mode
def test_below_other_wrappers(puzzle_id, layers, mode, boards):
    """Whole games are those of a stack whose batch is reset to the board, and so are their histories."""
    board = boards[puzzle_id][-1]
    venv = make(puzzle_id, mode, lambda rows: [board for _ in rows])
    plain = gym.make_vec(puzzle_id, GAMES, autoreset_mode="Disabled", max_episode_steps=LIMIT)
    for wrapper, options in layers:
        venv, plain = wrapper(venv, **options), wrapper(plain, **options)
    rng = np.random.default_rng(12)
    for number in range(3):
        begin(venv, mode, number)
        plain.reset(seed=12, options={"board": board})
        plain.set_state(venv.get_state())  # the generators are those of games that were dealt
        for step in range(LIMIT):
            assert np.array_equal(venv.action_masks(), plain.action_masks())
            actions = choose_all(plain.action_masks(), rng)
            here, there = venv.step(actions), plain.step(actions)
            assert_same(here[1:4], there[1:4])
            if step < LIMIT - 1 or mode != AutoresetMode.SAME_STEP:
                assert_same(here, there)
        assert (there[2] | there[3]).all()


def begin(venv, mode, number):
    """The next games of all rows, by what the mode asks for."""
    if number == 0 or mode == AutoresetMode.DISABLED:
        venv.reset(seed=12)
    elif mode == AutoresetMode.NEXT_STEP:
        _, rewards, terminated, truncated, _ = venv.step([0] * GAMES)
        assert not np.concatenate([rewards, terminated, truncated]).any()


@every_puzzle
@pytest.mark.parametrize("twin", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"])
def test_copies_go_on_as_the_original(puzzle_id, twin, boards):
    venv = make(puzzle_id, "SameStep", Source(boards[puzzle_id]), copy=False)
    venv.reset(seed=13)
    other = twin(venv)
    for t in range(3 * LIMIT):
        actions = choose_all(venv.action_masks(), np.random.default_rng(t))
        assert_same(other.step(actions), venv.step(actions))


def test_it_goes_below_all_others():
    nothing = lambda rows: [None for _ in rows]  # noqa: E731
    with pytest.raises(TypeError, match="below all other wrappers"):
        StartPositionsVector(NoRepeatVector(gym.make_vec(FREECELL, 2)), nothing)
    with pytest.raises(TypeError, match="PuzzleVectorEnv"):
        StartPositionsVector(gym.make_vec("CartPole-v1", 2), nothing)
