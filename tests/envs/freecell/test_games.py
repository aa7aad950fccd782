"""Games as files: parse, print, parse is stable; a wrong move is refused by its number."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import pytest
from puzzlegym.envs.freecell import Game, GameError, State, deal_board, is_won
from reference.shared_data import read_lines

REPLAYS = read_lines("freecell_replays.jsonl.gz")
FORMS = {"moves_manual": False, "moves_single": False, "moves_auto_nostart": True}
every_form = pytest.mark.parametrize("form", FORMS)


def games(form):
    return [Game.of_deal(row["deal"], row[form], FORMS[form]) for row in REPLAYS]


@every_form
def test_forty_games_parse_print_parse(form):
    assert len(REPLAYS) == 40
    for game in games(form):
        text = str(game)
        assert max(map(len, text.splitlines())) <= 80
        read = Game.parse(text)
        assert read == game
        assert hash(read) == hash(game)
        assert str(read) == text
        assert Game.parse("\ufeff" + text.upper().replace("\n", "\r\n")) == game
        assert pickle.loads(pickle.dumps(game)) == copy.deepcopy(game) == game


@every_form
def test_forty_games_are_won_again_from_their_actions(form):
    for game in games(form):
        played = list(game.replay())
        assert [one.number for one in played] == list(range(1, len(game.moves) + 1))
        assert is_won(played[-1].board)
        assert sum(len(one.home) for one in played) == 52
        again = Game.of_actions(game.start, [one.action for one in played], game.autoplay)
        assert [one.action for one in again.replay()] == [one.action for one in played]


@every_form
def test_one_wrong_move_is_refused_at_that_move(form):
    for number, game in enumerate(games(form), 3):
        moves = list(game.moves)
        moves[number - 1] = "5h" if moves[number - 1] != "5h" else "1h"
        with pytest.raises(GameError) as error:
            list(Game(game.start, tuple(moves), game.autoplay).replay())
        found = error.value
        assert found.number >= number
        assert found.move == moves[found.number - 1]
        assert str(found) == f"move {found.number} ({found.move}): {found.reason}"
        moves[found.number - 1 :] = []
        assert len(list(Game(game.start, tuple(moves), game.autoplay).replay())) == found.number - 1


def test_files(tmp_path):
    path = tmp_path / "game.txt"
    game = Game.of_deal(617, ["3a", "32"])
    game.save(path)
    assert Game.load(path) == Game.load(str(path)) == game
    assert [p.name for p in tmp_path.iterdir()] == ["game.txt"]
    path.write_bytes(str(game).replace("\n", "\r\n").encode("utf-8-sig"))
    assert Game.load(path) == game


def test_what_other_programs_write_is_read():
    game = Game.parse("#617\n\n1. 3A 32  2) 7a 18V10  # a comment\n   # another: one\n3b\n")
    assert game.moves == ("3a", "32", "7a", "18va", "3b")
    assert game.start == State(deal_board(617).tobytes(), 617)
    assert game.autoplay


POSITION = str(State(deal_board(5).tobytes()))


@pytest.mark.parametrize("title", ["Position:\n", ""])
def test_a_position_instead_of_a_deal(title):
    for text in (POSITION, POSITION.replace("Freecells", "FC").replace("Foundations", "Founds").replace("T", "10")):
        game = Game.parse(f"Player: me\n{title}{text}\n\nAutoplay: OFF\n1a 2b\n")
        assert game.start.board == deal_board(5).tobytes()
        assert game.start.deal == 0
        assert (game.moves, game.autoplay, game.fields) == (("1a", "2b"), False, {"Player": "me"})
        assert Game.parse(str(game)) == game


@pytest.mark.parametrize("line", ["Deal: 1,000,000", "Game #1000000", "ms deal 1000000", "#1,000,000", "DEAL 1000000 "])
def test_numbers_of_deals_as_others_write_them(line):
    assert Game.parse(f"# 2024, a comment\n{line}\n1a").start.deal == 1_000_000


@pytest.mark.parametrize("value", ["runs/a#1", "a: b", "C:\\x", "", "é"])
def test_fields_are_kept_as_they_are(value):
    game = replace(Game.of_deal(1, ["5a"]), fields={"Player": value})
    assert Game.parse(str(game)) == game


@pytest.mark.parametrize(
    "fields", [{"Deal": "2"}, {"fc": "x"}, {"a1": "x"}, {"Player": " x"}, {"Player": "x\ny"}, {"": "x"}]
)
def test_fields_that_would_not_be_read_back_are_refused(fields):
    with pytest.raises(ValueError, match="a field of a game is words and one line"):
        replace(Game.of_deal(1), fields=fields)


BAD = {
    "": "Deal: 617",
    "26 3a": "Deal: 617",
    "Deal: x\n": "line 1: a deal is a number such as 617, not 'x'",
    "Deal: 0\n": "line 1: a deal must be a whole number",
    "#1\n#2\n": "line 2: a second game begins here",
    "#1\nAutoplay: maybe": "line 2: Autoplay is on or off, not 'maybe'",
    "#1\n26 3a\n26 9z\n": "line 3: '9z' is no move",
    "Position:\nAC\n": "line 1: a FreeCell position has 8 columns",
}


@pytest.mark.parametrize("text", BAD)
def test_what_is_no_game_is_refused_in_one_line(text, tmp_path):
    path = tmp_path / "game.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"\w") as error:
        Game.load(path)
    assert str(error.value).startswith(f"{path}: ")
    assert BAD[text] in str(error.value)
    assert "\n" not in str(error.value)


def test_no_text_at_all(tmp_path):
    path = tmp_path / "game.gif"
    path.write_bytes(b"GIF89a\xff\xfe\x00")
    with pytest.raises(ValueError, match="no text file"):
        Game.load(path)
    with pytest.raises(FileNotFoundError):
        Game.load(tmp_path / "nothing.txt")


def test_an_illegal_action_is_no_game():
    with pytest.raises(GameError, match="move 1"):
        Game.of_actions(State(deal_board(1).tobytes(), 1), [9])
