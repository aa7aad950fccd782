"""Standard notation, text forms of positions, and the picture of a table."""

from __future__ import annotations

import random
import re

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from puzzlegym.envs.freecell import (
    State,
    board_from,
    card_id,
    card_name,
    deal_board,
    encode_action,
    format_move,
    legal_moves,
    parse_move,
)
from reference import freecell as oracle
from reference.notation import Reader

deals, seeds = st.integers(1, 2**31 - 1), st.integers(0, 2**32)
games = st.tuples(deals, st.integers(0, 12), st.integers(0, 60), st.booleans(), seeds)


def reachable(deal, start_rank, moves, sends_home, seed):
    return oracle.play(oracle.deal(deal, start_rank), moves, random.Random(seed), sends_home)[-1]


@given(games)
def test_every_legal_move_is_written_and_read_back(game):
    position = reachable(*game)
    board = np.array(oracle.squares(position), dtype=np.uint8)
    texts = [format_move(board, int(action)) for action in legal_moves(board)]
    assert len(set(texts)) == len(texts), "each move has its own text"
    for text, action in zip(texts, legal_moves(board).tolist(), strict=True):
        assert parse_move(board, text) == parse_move(board, f" {text.upper()} ") == action
        assert encode_action(*Reader(position).read(position, text)) == action


def test_deal_1_in_words():
    board = deal_board(1)
    assert parse_move(board, "5a") == parse_move(board, "5d") == encode_action(oracle.card("6C"), oracle.CELL)
    assert format_move(board, encode_action(oracle.card("6C"), oracle.CELL)) == "5a"


RUN = "QH JS TH 9S 8H 7S 6H 5S 4H 3S 2H AS"


@pytest.mark.parametrize(("cards", "text"), [(1, "12"), (2, "12v2"), (9, "12v9"), (10, "12va"), (12, "12vc")])
def test_length_of_a_run_to_an_empty_column(cards, text):
    words = RUN.split()
    rest = [oracle.name(card) for card in range(52) if oracle.name(card) not in words]
    board = board_from([words, [], [], [], [], rest[:14], rest[14:28], rest[28:]])
    action = encode_action(oracle.card(words[-cards]), 1)
    assert parse_move(board, text) == action
    assert format_move(board, action) == text


NO_NOTATION = ["", "1", "9a", "01", "1e", "h1", "hh", "12v", "12v13", "12vz", "1h2", "1 2", "１２", "1\n2"]
NOT_HERE = ["ab", "a1", "11", "12v0", "1h"]


@pytest.mark.parametrize("text", NO_NOTATION + NOT_HERE)
def test_what_is_no_legal_move_is_refused_with_a_reason(text):
    with pytest.raises(ValueError, match=r"\w+ \w+") as error:
        parse_move(deal_board(1), text)
    assert "\n" not in str(error.value)


def test_cards_have_names_and_numbers():
    names = [card_name(card) for card in range(52)]
    assert names == [oracle.name(card) for card in range(52)]
    assert names[:5] == ["AC", "AD", "AH", "AS", "2C"]
    assert [card_id(name) for name in names] == list(range(52))
    assert card_id("10h") == card_id("th") == oracle.card("TH")
    for text in ("", "T", "1C", "TX", "11H", "TSS", "ZZ"):
        with pytest.raises(ValueError, match="card"):
            card_id(text)


@given(games)
def test_text_round_trip(game):
    board = np.array(oracle.squares(reachable(*game)), dtype=np.uint8)
    state = State(board.tobytes())
    assert State.parse(str(state)) == state
    assert State.parse(str(state).lower()) == state


@pytest.mark.parametrize("text", ["", "hello", "Foundations: X-3", "Freecells: QQ", "AC\n" * 8, "AC AC\n" * 9])
def test_text_of_no_position_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        State.parse(text)


def test_picture_shows_every_card_once(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    env = gym.make("FreeCell-v0", deal=617, render_mode="ansi")
    env.reset()
    text = env.render()
    shown = re.findall(r"(10|[A2-9JQK])([CDHS])", text)
    assert sorted(rank.replace("10", "T") + suit for rank, suit in shown) == sorted(map(oracle.name, range(52)))
    assert "617" in text


def test_picture_shows_cells_foundations_and_ranks_in_line(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    env = gym.make("FreeCell-v0", render_mode="ansi")
    position = oracle.deal(1, start_rank=5)
    position.cells[2] = position.columns[0].pop()
    env.reset(options={"board": np.array(oracle.squares(position), dtype=np.uint8)})
    lines = env.render().splitlines()
    head = next(line for line in lines if "--" in line)
    assert all(word in head for word in ("5C", "5D", "5H", "5S", oracle.name(position.cells[2]).replace("T", "10")))
    numbers = next(i for i, line in enumerate(lines) if re.match(r"\s+1\s+2\s+3\s+4", line))
    first_row = lines[numbers + 1]
    assert len(re.findall(r"(?:10|[A2-9JQK])[CDHS]", first_row)) == 8


def test_red_and_black_differ_in_colour(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    env = gym.make("FreeCell-v0", deal=1, render_mode="ansi")
    env.reset()
    styles = {}
    for style, suit in re.findall(r"\x1b\[([0-9;]+)m *(?:10|[A2-9JQK])([CDHS])", env.render()):
        styles.setdefault(suit, set()).add(style)
    assert {suit: len(found) for suit, found in styles.items()} == dict.fromkeys("CDHS", 1)
    assert styles["D"] == styles["H"] != styles["C"] == styles["S"]
