"""The replay command: games from files, and where and why a wrong one stops."""

from __future__ import annotations

import re

import pytest
from PIL import Image
from puzzlegym.envs.freecell import Game, State, board_from, deal_board
from puzzlegym.scripts.cli import main
from reference.shared_data import read_lines
from reference.terminal import Terminal

REPLAYS = read_lines("freecell_replays.jsonl.gz")
FORMS = {"moves_manual": False, "moves_single": False, "moves_auto_nostart": True}


def written(tmp_path, game, name="game.txt"):
    path = tmp_path / name
    game.save(path)
    return str(path)


def called(capsys, *argv, code=0):
    """What the command prints."""
    assert main(["replay", *argv]) == code
    return capsys.readouterr()


@pytest.mark.parametrize("form", FORMS)
def test_forty_games_are_won(tmp_path, capsys, form):
    for row in REPLAYS:
        path = written(tmp_path, Game.of_deal(row["deal"], row[form], FORMS[form]))
        out, err = called(capsys, path, "--check")
        assert err == ""
        assert out == f"Over after {len(row[form])} moves: won, all 52 cards are home.\n"


def test_a_game_is_shown_move_by_move(tmp_path, capsys):
    row = REPLAYS[3]
    path = written(tmp_path, Game.of_deal(row["deal"], row["moves_auto_nostart"]))
    out, err = called(capsys, path)
    assert err == ""
    pictures = out.split("FreeCell-v0, game.txt")[1:]
    assert len(pictures) == len(row["moves_auto_nostart"]) + 1
    assert "move 0: start" in pictures[0]
    assert "home 52" in pictures[-1]
    assert out.endswith("won, all 52 cards are home.\n")


@pytest.mark.parametrize("check", [["--check"], []])
def test_a_wrong_move_is_refused_by_its_number(tmp_path, capsys, check):
    moves = list(REPLAYS[0]["moves_auto_nostart"])
    moves[6] = "12"
    path = written(tmp_path, Game.of_deal(1, moves))
    out, err = called(capsys, path, *check, code=2)
    assert err.startswith(f"puzzlegym replay: {path}: move 7 (12): ")
    assert err.count("\n") == 1
    assert out.count("FreeCell-v0, game.txt") == (0 if check else 7), "the moves before it are shown"
    assert "Over" not in out


def test_a_position_without_automatic_moves_that_is_not_finished(tmp_path, capsys):
    path = written(tmp_path, Game(State(deal_board(5).tobytes()), ("1a", "2b"), autoplay=False))
    out, _ = called(capsys, path)
    assert "set position" in out
    assert out.endswith("Ends after 2 moves: 0 of 52 cards are home.\n")


def test_games_longer_than_an_episode(tmp_path, capsys):
    start = board_from(["QC QS KC KS", *[""] * 7], (), {"C": 11, "D": 13, "H": 13, "S": 11})
    path = written(tmp_path, Game(State(start.tobytes()), ("15", *["56", "65"] * 300)))
    assert "Ends after 601 moves: 48 of 52" in called(capsys, path)[0]


def test_recorded(tmp_path, capsys):
    path = written(tmp_path, Game.of_deal(1, REPLAYS[0]["moves_auto_nostart"][:6]))
    picture = tmp_path / "last.png"
    out, _ = called(capsys, path, "--record", str(picture))
    assert "7 pictures" in out
    with Image.open(picture) as image:
        assert image.size == (400, 512)


def test_on_a_terminal(tmp_path):
    path = written(tmp_path, Game.of_deal(1, REPLAYS[0]["moves_auto_nostart"]))
    with Terminal("replay", path, "--delay", "0.01") as terminal:
        terminal.wait("Over after 80 moves: won")
        assert terminal.end() == 0
        assert terminal.received.count(b"\x1b[2J") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        ("hello", "line 1: 'hello' is no move"),
        ("", "begins with a line such as 'Deal: 617'"),
        ("Deal: 617\n3a 3z", "line 2: '3z' is no move"),
    ],
)
def test_what_is_no_game(tmp_path, capsys, content, message):
    path = tmp_path / "game.txt"
    if content is not None:
        path.write_text(content)
    out, err = called(capsys, str(path), code=2)
    assert out == ""
    assert str(path) in err
    assert message in err
    assert err.count("\n") == 1


def test_watched_games_are_saved_and_played_again(tmp_path, capsys):
    path = tmp_path / "watched.txt"
    argv = ["FreeCell-v0", "--agent", "greedy", "--deal", "617", "--seed", "3", "--save", str(path)]
    assert main(["watch", *argv]) == 0
    watched = capsys.readouterr().out
    ending = re.search(r"^Over after .*$", watched, re.MULTILINE)[0]
    assert f"Saved in {path}" in watched
    assert Game.load(path).fields == {"Player": "greedy"}
    assert ending in called(capsys, str(path), "--check")[0]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["Puzzle2048-v0", "--save", "x.txt"], "--save is for FreeCell-v0"),
        (["FreeCell-v0", "--save", "/nowhere/x.txt"], "/nowhere/x.txt: No such file or directory"),
        (["FreeCell-v0", "--save", "/"], "/: Is a directory"),
    ],
)
def test_games_that_cannot_be_saved_are_not_begun(capsys, argv, message):
    assert main(["watch", *argv, "--agent", "random"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def test_a_recording_never_takes_the_place_of_the_game(tmp_path, capsys):
    path = written(tmp_path, Game.of_deal(1, ["5a"]))
    before = (tmp_path / "game.txt").read_text()
    _, err = called(capsys, path, "--record", str(tmp_path / "x" / ".." / "game.txt"), code=2)
    assert "are the same file" in err
    assert main(["watch", "FreeCell-v0", "--agent", "random", "--save", path, "--record", path]) == 2
    assert "--record and --save are the same file" in capsys.readouterr().err
    assert (tmp_path / "game.txt").read_text() == before
