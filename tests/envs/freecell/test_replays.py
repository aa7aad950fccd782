"""40 deals won by an independent solver, replayed in all three written forms, with and without an environment."""

from __future__ import annotations

import gymnasium as gym
import pytest
from puzzlegym.envs.freecell import CellNames, apply, deal_board, encode_action, format_move, is_won, parse_move
from reference import freecell as oracle
from reference.notation import Reader
from reference.shared_data import read_lines

REPLAYS = read_lines("freecell_replays.jsonl.gz")
# The three written forms, and whether safe cards go home by themselves in it.
FORMS = {"moves_manual": False, "moves_single": False, "moves_auto_nostart": True}


def read_games(form):
    """(deal, moves, cards that each move sends home by itself or None, cards that it moves or None)."""
    for row in REPLAYS:
        sent = row["autoplayed_nostart"] if FORMS[form] else [None] * len(row[form])
        moved = row["cards_manual"] if form == "moves_manual" else [None] * len(row[form])
        yield row["deal"], zip(row[form], sent, moved, strict=True)


def test_there_are_forty():
    assert len(REPLAYS) == len({row["deal"] for row in REPLAYS}) == 40


@pytest.mark.parametrize("form", FORMS)
def test_replays_are_won(form):
    for deal, moves in read_games(form):
        env = gym.make("FreeCell-v0", deal=deal, autoplay=FORMS[form], max_episode_steps=1000)
        obs, info = env.reset()
        position = oracle.deal(deal)
        board, reader, names = deal_board(deal), Reader(position), CellNames(deal_board(deal))
        total, terminated = 0.0, False
        for text, sent, moved in moves:
            assert not terminated
            card, destination = reader.read(position, text)
            action = encode_action(card, destination)
            assert parse_move(board, text, names) == action
            if text[0].isdigit() and text[1].isdigit():  # cells have the writer's letters, columns are the same for all
                assert format_move(board, action) == text
            assert info["action_mask"][action]
            expected, went = oracle.apply(position, card, destination, FORMS[form])
            if sent is not None:
                by_hand = [oracle.name(card)] if destination == oracle.HOME else []
                assert sorted(map(oracle.name, went)) == sorted(sent + by_hand)
            if moved is not None:
                assert moved[0] == oracle.name(card)
            board, home, legal = apply(board, action, FORMS[form])
            obs, reward, terminated, _, info = env.step(action)
            assert legal
            assert sorted(home) == sorted(went)
            assert reward == len(went)
            assert obs.tolist() == board.tolist() == oracle.squares(expected)
            position, total = expected, total + reward
        assert (terminated, info["is_success"], info["cards_home"], total) == (True, True, 52, 52.0), deal
        assert is_won(board)


def test_cards_that_go_home_come_in_a_possible_order():
    for deal, moves in read_games("moves_auto_nostart"):
        board, names = deal_board(deal), CellNames(deal_board(deal))
        home = []
        for text, *_ in moves:
            board, went, _ = apply(board, parse_move(board, text, names))
            home += went
        assert sorted(home) == list(range(52))
        for suit in range(4):
            assert [card for card in home if card % 4 == suit] == list(range(suit, 52, 4))
