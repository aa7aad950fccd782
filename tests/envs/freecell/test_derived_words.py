"""The words of a state row that follow from its cards (lengths, top cards, runs) do so after whatever happens."""

from __future__ import annotations

import random

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from hypothesis import given, settings
from hypothesis import strategies as st
from puzzlegym.envs.freecell import board_from, encode_action, rules
from puzzlegym.envs.freecell.state import DEPTH, LENGTHS, RUNS, TABLE, TABLE_WORDS, TOPS
from reference import freecell as oracle
from reference.playing import choose_all
from reference.shared_data import read_json

ID = "FreeCell-v0"
POSITIONS = [case["position"] for case in read_json("freecell_positions.json")]


def derived(table):
    """What lengths, top cards and runs are, by the cards of a table: three rows of a byte for each column."""
    columns = oracle.from_squares(table[: DEPTH + 1].copy().view(np.uint8).reshape(DEPTH + 1, 8)).columns
    runs = [0] * 8
    for c, column in enumerate(columns):
        while runs[c] < len(column) and oracle.is_run(column[-runs[c] - 1 :]):
            runs[c] += 1
    return [[len(column) for column in columns], [column[-1] + 1 if column else 0 for column in columns], runs]


def check(*tables):
    for table in tables:
        words = table[[LENGTHS, TOPS, RUNS]].view(np.uint8).reshape(3, 8)
        assert words.tolist() == derived(table)


def check_batch(venv):
    check(*venv.get_state()[:, TABLE:])


def board_of(position):
    return np.array(oracle.squares(position), dtype=np.uint8)


def test_the_plain_function():
    columns = ["KC QD JS", "KC", "", "AC KD QD", "5D 4D 3C", "9H 8S 7H 6S", "2C AD KC QH", "3D"]
    table = np.zeros(TABLE_WORDS, dtype=np.uint64)
    cards = table[: DEPTH + 1].view(np.uint8).reshape(DEPTH + 1, 8)
    for c, column in enumerate(columns):
        cards[1 : 1 + len(column.split()), c] = [oracle.card(name) + 1 for name in column.split()]
    tops = [oracle.card(column.split()[-1]) + 1 if column else 0 for column in columns]
    assert derived(table) == [[3, 1, 0, 3, 3, 4, 4, 1], tops, [3, 1, 0, 1, 2, 4, 2, 1]]


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("autoplay", [True, False])
def test_random_games(mode, autoplay):
    """Legal and illegal moves, ends and new games of every difficulty; resets of some games."""
    games = 13
    venv = gym.make_vec(ID, num_envs=games, max_episode_steps=45, autoreset_mode=mode, autoplay=autoplay)
    venv.set_attr("start_rank", list(range(games)))
    venv.reset(seed=1)
    check_batch(venv)
    rng, longest = np.random.default_rng(1), 0
    for t in range(60):
        _, _, terminated, truncated, _ = venv.step(choose_all(venv.action_masks(), rng, illegal=0.1))
        check_batch(venv)
        longest = max(longest, venv.get_state()[:, TABLE + RUNS].copy().view(np.uint8).max())
        ended = terminated | truncated
        if mode == AutoresetMode.DISABLED and ended.any():
            venv.reset(options={"reset_mask": ended})
            check_batch(venv)
        if t % 20 == 10:
            venv.set_attr("autoplay", [bool(i % 2) for i in range(games)])
            check_batch(venv)
    assert longest >= 3


@settings(max_examples=40)
@given(st.integers(1, 2**31 - 1), st.integers(0, 12), st.integers(0, 50), st.integers(0, 2**32))
def test_every_legal_move_from_a_board_that_was_set(deal, start_rank, moves, seed):
    """Runs of all lengths to every column, cells and foundations, one game of a batch for each move."""
    position = oracle.play(oracle.deal(deal, start_rank), moves, random.Random(seed), autoplay=False)[-1]
    legal = sorted(oracle.legal(position))[:12]
    if not legal:
        return
    venv = gym.make_vec(ID, num_envs=len(legal), autoplay=False)
    venv.reset(seed=0, options={"board": board_of(position)})
    check_batch(venv)
    obs, *_, infos = venv.step(np.array([encode_action(*move) for move in legal]))
    assert infos["legal"].all()
    assert obs.tolist() == [oracle.squares(oracle.apply(position, *move, autoplay=False)[0]) for move in legal]
    check_batch(venv)
    venv.set_attr("autoplay", True)
    venv.reset(options={"board": board_of(position)})
    venv.step(np.array([encode_action(*move) for move in legal]))
    check_batch(venv)


@pytest.mark.parametrize("target", ["KS", "KD", ""])
def test_runs_of_every_length(target):
    """All of a run or a part of it, onto a card that it continues, onto another king, and onto the ground."""
    run = ["QH", "JS", "TH", "9S", "8H", "7S", "6H", "5S", "4H", "3S", "2H", "AS"]
    boards, actions = [], []
    for length in range(1, 13):
        rest = [oracle.name(card) for card in range(52) if oracle.name(card) not in [*run[:length], target]]
        columns = [" ".join([rest.pop(0), *run[:length]]), target, "", "", *(" ".join(rest[i::4]) for i in range(4))]
        for first in range(length):
            boards.append(board_from(columns))
            actions.append(encode_action(oracle.card(run[first]), 1))
    venv = gym.make_vec(ID, num_envs=len(boards), autoplay=False)
    venv.reset(seed=0, options={"board": np.stack(boards)})
    check_batch(venv)
    *_, infos = venv.step(np.array(actions))
    # Onto the king of spades goes the queen alone or with all that lies on her; onto the ground up to 20 cards go.
    assert infos["legal"].sum() == {"KS": 12, "KD": 0, "": 78}[target]
    check_batch(venv)


def test_positions_in_every_form_and_among_games_that_go_on():
    venv = gym.make_vec(ID, num_envs=len(POSITIONS), autoreset_mode="Disabled")
    venv.reset(seed=2, options={"board": POSITIONS})
    check_batch(venv)
    some = np.arange(len(POSITIONS)) % 3 == 0
    venv.reset(options={"reset_mask": some, "start_rank": 6})
    check_batch(venv)
    venv.reset(options={"reset_mask": ~some, "board": POSITIONS[0]})
    check_batch(venv)


@pytest.mark.parametrize("damage", [0, 1, 2**64 - 1, "mixed up"])
def test_snapshots(damage):
    """Whatever the three words of a snapshot's rows hold."""
    venv, other, rng = gym.make_vec(ID, num_envs=6), gym.make_vec(ID, num_envs=6), np.random.default_rng(3)
    venv.reset(seed=3)
    for _ in range(25):
        venv.step(choose_all(venv.action_masks(), rng))
    rows = venv.get_state()
    damaged = rows.copy()
    words = [TABLE + LENGTHS, TABLE + TOPS, TABLE + RUNS]
    damaged[:, words] = rows[::-1, words] if damage == "mixed up" else np.uint64(damage)
    other.set_state(damaged)
    assert np.array_equal(other.get_state(), rows)
    for _ in range(5):
        actions = choose_all(venv.action_masks(), rng)
        venv.step(actions), other.step(actions)
        check_batch(other)
        assert np.array_equal(other.get_state(), venv.get_state())


@given(st.integers(1, 2**31 - 1), st.integers(0, 12), st.integers(0, 40), st.integers(0, 2**32))
@settings(max_examples=40)
def test_kernels_on_a_table(deal, start_rank, moves, seed):
    """The kernels that change a table, called one by one, without a row loop that could repair it."""
    table, deck = np.zeros(TABLE_WORDS, dtype=np.uint64), np.zeros(52, dtype=np.int8)
    mask, rng = np.zeros(520, dtype=np.int8), random.Random(seed)
    rules.deal_cards(table, deal, start_rank, deck)
    check(table)
    for _ in range(moves):
        if not rules.legal_mask(table, mask):
            break
        assert rules.move(table, rng.choice(np.flatnonzero(mask).tolist()))
        check(table)
        if rng.random() < 0.3:
            rules.autoplay(table, deck)
            check(table)
    rules.legal_mask(table, mask)
    before = table.copy()
    for action in np.flatnonzero(mask == 0)[::29].tolist():
        assert not rules.move(table, action)
    assert np.array_equal(table, before), "illegal moves"
    table[[LENGTHS, TOPS, RUNS]] = rng.getrandbits(64)
    rules.complete(table)
    assert np.array_equal(table, before), "derived anew"
