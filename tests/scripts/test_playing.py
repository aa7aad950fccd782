"""The parts of playing by hand: keys, layout, saves and records, sessions, the cursor, what is typed."""

from __future__ import annotations

import json
import os
import random
import threading
import time

import numpy as np
import pytest
from puzzlegym.envs.common.ansi import plain
from puzzlegym.envs.freecell import CellNames, apply, board_from, deal_board, format_move, legal_moves, parse_move
from puzzlegym.scripts._console import counted
from puzzlegym.scripts.playing import keys as k
from puzzlegym.scripts.playing import store as store_module
from puzzlegym.scripts.playing.cursor import Cursor
from puzzlegym.scripts.playing.freecell_session import SessionFreeCell
from puzzlegym.scripts.playing.keys import Keys
from puzzlegym.scripts.playing.layout import Note, arrange
from puzzlegym.scripts.playing.play2048 import Session2048
from puzzlegym.scripts.playing.store import Records, SaveError, Store
from puzzlegym.scripts.playing.typed import read
from reference.shared_data import read_lines

# -- keys --------------------------------------------------------------------------------------------------------------


def pressed(data: bytes) -> list[str]:
    """What ``Keys`` reads from a pipe."""
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    with os.fdopen(reading) as stream:
        keys = Keys(stream)
        found = []
        while (key := keys.read()) is not None:
            found.append(key)
    return found


def test_an_arrow_may_come_in_pieces():
    reading, writing = os.pipe()
    with os.fdopen(reading) as stream:
        keys = Keys(stream)
        os.write(writing, b"\x1b")
        timer = threading.Timer(0.01, lambda: (os.write(writing, b"[A"), os.close(writing)))
        timer.start()
        assert keys.read() == k.UP
        timer.join()


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"aB7?", ["a", "B", "7", "?"]),
        (b"\x1b[A\x1bOB\x1b[1;5C\x1b[D", [k.UP, k.DOWN, k.RIGHT, k.LEFT]),
        (b"\x1b[3~x", [k.NOTHING, "x"]),
        (b"\x1bq", [k.ESCAPE, "q"]),
        (b"a\nb\r\nc\r", ["a", k.ENTER, "b", k.ENTER, "c", k.ENTER]),
        (b"\x7f\b\x12\x15\x01", [k.BACKSPACE, k.BACKSPACE, k.REDO, k.CLEAR, k.NOTHING]),
        ("é♥ x".encode(), [k.NOTHING, k.NOTHING, " ", "x"]),
        (b"\xff\xfea", ["a"]),
        (b"a\x04b", ["a"]),
    ],
)
def test_keys(data, found):
    assert pressed(data) == found


# -- layout ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [20, 39, 60, 80, 200])
def test_words_stand_beside_the_board_or_below_it(width, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    board = ["\x1b[1mx\x1b[0m" * 20, "y" * 30]
    notes = [Note("some words " * 9, "1;32"), Note(""), Note("one\ntwo", rows=4), Note("end")]
    lines = arrange(board, notes, (), width, 60)
    assert all(len(plain(line)) <= max(width, 30) for line in lines)
    assert plain(lines[0]).startswith("x" * 20)
    words = " ".join(plain(line)[33 if width >= 63 else 0 :].strip() for line in lines)
    assert words.count("some words") == 9
    assert "one two   end" in words, "a note of four rows"


def test_empty_lines_go_first_where_the_screen_is_short():
    notes = [Note("first"), Note(""), Note("message", rows=3), Note(""), Note("last")]
    for height in (4, 5, 6, 7, 30):
        lines = arrange(["board", "board"], notes, (), 20, height)
        assert [line for line in lines if line] == ["board", "board", "first", "message", "last"]
        assert len(lines) == min(max(height, 5), 11)


def test_numbers_have_their_noun():
    assert [counted(n, "move") for n in (0, 1, 2, 1204)] == ["0 moves", "1 move", "2 moves", "1,204 moves"]


# -- saves -------------------------------------------------------------------------------------------------------------


def test_a_store_is_for_one_holder(tmp_path):
    first, second = Store(tmp_path, "game"), Store(tmp_path, "game")
    assert first.claim()
    assert not second.claim()
    assert Store(tmp_path, "other").claim()
    first.release()
    assert second.claim()


def test_a_store_is_written_whole(tmp_path, monkeypatch):
    store = Store(tmp_path, "game")
    assert store.read() is None
    store.write({"a": 1})
    assert store.read()["a"] == 1

    def fail(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", fail)
    with pytest.raises(OSError, match="No space"):
        store.write({"a": 2})
    monkeypatch.undo()
    assert store.read()["a"] == 1
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == ["game.json"]


def test_files_that_are_set_aside_never_meet(tmp_path):
    store = Store(tmp_path, "game")
    for i in range(3):
        store.path.write_text(str(i))
        with pytest.raises(SaveError):
            store.read()
        assert store.set_aside().read_text() == str(i)
    assert len(list(tmp_path.glob("game-unreadable-*.json"))) == 3


def test_records_keep_the_best_of_all_processes(tmp_path):
    one, other = Records(tmp_path), Records(tmp_path)
    assert one.get("time") is None
    assert one.keep("time", 30.0, min)
    assert one.keep("score", 10, max)
    assert not other.keep("time", 40.0, min)
    assert other.get("time") == 30.0
    assert other.keep("time", 20.0, min)
    assert not other.keep("score", 10, max)
    assert Records(tmp_path).get("time") == 20.0
    assert one.keep("score", 12, max)
    assert (Records(tmp_path).get("score"), Records(tmp_path).get("time")) == (12, 20.0)


@pytest.mark.parametrize("text", ["1e999", "Infinity", "NaN", "-5", "true", '"7"', "[1]", "null"])
def test_records_that_cannot_be_are_none(tmp_path, text):
    (tmp_path / "records.json").write_text(f'{{"format": "{store_module.FORMAT}", "score": {text}}}')
    records = Records(tmp_path)
    assert records.get("score") is None
    assert records.keep("score", 10, max)
    assert Records(tmp_path).get("score") == 10


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, '"x"', '{"format": 1}', "\x00"])
def test_files_that_are_no_saves(tmp_path, text):
    store = Store(tmp_path, "game")
    store.path.write_text(text)
    with pytest.raises(SaveError, match="is "):
        store.read()


def test_records_of_many_threads(tmp_path):
    def note(values):
        records = Records(tmp_path)
        for value in values:
            records.keep("score", value, max)

    threads = [threading.Thread(target=note, args=(range(i, 60, 3),)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Records(tmp_path).get("score") == 59


# -- sessions ----------------------------------------------------------------------------------------------------------


def started(kind, seed=3):
    session = kind()
    session.start(seed, {"deal": 617} if kind is SessionFreeCell else None)
    return session


def random_move(session, rng):
    """A legal move as text."""
    if isinstance(session, Session2048):
        return rng.choice([way for way in "urdl" if session.env.action_masks()["urdl".index(way)]])
    return format_move(session.state, int(rng.choice(legal_moves(session.state))), session.names)


every_session = pytest.mark.parametrize("kind", [Session2048, SessionFreeCell])


@every_session
def test_undo_and_redo_are_exact_and_a_save_holds_all_of_it(kind):
    session, rng = started(kind), random.Random(1)
    while not session.is_over() and len(session.moves) < 60:
        session.play(random_move(session, rng))
    assert not session.redo()
    states, moves = list(session.states), list(session.moves)
    back = len(moves) // 2
    for _ in range(back):
        assert session.undo()
    assert session.state == session.env.get_state() == states[-1 - back]
    session.clock.run(True)
    time.sleep(0.12)
    data = json.loads(json.dumps(session.to_data()))
    assert 0.1 <= data["seconds"] < 10
    again = kind()
    again.restore(data)
    for one in (session, again):
        while one.redo():
            pass
        assert (one.states, one.moves) == (states, moves)
    session.undo()
    session.play(moves[-1])
    assert session.states == states, "the same move brings the same chance"
    assert not session.redo()
    session.clock.run(True)
    session.restart()
    assert session.clock.seconds < 0.1
    assert (session.states, session.moves) == (states[:1], [])
    assert not session.undo()


@every_session
def test_a_save_that_does_not_add_up_is_refused(kind):
    session = started(kind)
    session.play(random_move(session, random.Random(2)))
    good = session.to_data()
    kind().restore(good)
    for key, value in [
        ("moves", ""),
        ("moves", "nonsense"),
        ("moves", None),
        ("env_id", "Other-v0"),
        ("start", "{}"),
        ("end", good["start"]),
        ("seconds", "x"),
        ("seconds", float("inf")),
        ("seconds", float("nan")),
        ("seconds", -2.5),
    ]:
        with pytest.raises(SaveError, match="is "):
            kind().restore({**good, key: value})
    for key in set(good) - {"kept_on"}:
        with pytest.raises(SaveError, match="is damaged"):
            kind().restore({name: value for name, value in good.items() if name != key})


def test_cards_go_home_one_by_one_in_steps():
    row = read_lines("freecell_replays.jsonl.gz")[0]
    session = SessionFreeCell()
    session.start(0, {"deal": row["deal"]})
    for move, sent in zip(row["moves_auto_nostart"], row["autoplayed_nostart"], strict=True):
        steps = session.steps_of(move)
        session.play(move)
        assert len(steps) == 1 + len(sent)
        assert (steps[-1][0] == session.board).all()
        homes = [int(((board[0, 4:].astype(int) + 3) // 4).sum()) for board, _ in steps]
        assert homes == list(range(homes[0], homes[0] + len(steps)))
    assert session.is_won()
    game = session.game()
    assert (game.start.deal, game.moves) == (row["deal"], tuple(row["moves_auto_nostart"]))
    assert (game.fields, list(game.replay())[-1].number) == ({"Result": "won"}, len(row["moves_auto_nostart"]))


def test_people_are_not_stopped_after_500_moves():
    session = SessionFreeCell()
    home = {"C": 11, "D": 13, "H": 13, "S": 11}
    session.start(0, {"board": board_from(["QC QS KC KS", *[""] * 7], (), home)})
    session.play("15")
    for _ in range(300):
        session.play("56")
        session.play("65")
    assert len(session.moves) == session.state.moves == 601


# -- FreeCell's cursor and typed moves ---------------------------------------------------------------------------------


def test_cursor_reaches_every_card_and_stays_on_the_table():
    cursor, board = Cursor(), deal_board(1)
    seen = set()
    for key in [k.LEFT, *([*[k.UP] * 8, k.DOWN, k.RIGHT] * 8), *[k.UP] * 8, *[k.RIGHT] * 9, k.DOWN, *[k.DOWN] * 9]:
        cursor.move(key, board)
        row, column = cursor.square
        assert 0 <= column < 8
        assert row == 0 or board[row, column], "on a card, or in the top row"
        assert cursor.destination() == (column if row else 8 if column < 4 else 9)
        seen.add(cursor.square)
    assert len(seen) == 52 + 8
    cursor.hide()
    assert cursor.square is None


def test_cursor_with_a_card_in_hand_knows_destinations_alone():
    rng, cursor, board = random.Random(0), Cursor(), deal_board(1)
    cursor.move(k.LEFT, board)
    cursor.held = cursor.card(board)
    for _ in range(300):
        cursor.move(rng.choice([k.UP, k.DOWN, k.LEFT, k.RIGHT]), board)
        row, column = cursor.square
        assert row in (0, int((board[1:, column] > 0).sum()))


def test_every_written_move_is_read_as_itself():
    rng, board = np.random.default_rng(0), deal_board(11)
    for _ in range(40):
        names = CellNames(board)
        for action in legal_moves(board):
            text = format_move(board, int(action))
            assert parse_move(board, read(board, text, names)) == action
            assert read(board, f" {text.upper()} ", names) == text
        if not len(legal_moves(board)):
            break
        board, *_ = apply(board, int(rng.choice(legal_moves(board))))


@pytest.mark.parametrize(
    ("text", "move"),
    [
        ("6c", "6c"),
        ("t6c", "5a"),
        ("tap6C", "5a"),
        ("5", "5a"),
        ("9C", "2a"),
        ("10c", "8a"),
        ("TC", "8a"),
        ("ttc", "8a"),
        ("t10C", "8a"),
    ],
)
def test_cards_are_tapped(text, move):
    board = deal_board(1)
    assert read(board, text, CellNames(board)) == move


@pytest.mark.parametrize("text", ["", "x", "5x", "t", "tap", "KX", "99", "26v4v", "hh", "t6c6c"])
def test_what_is_neither_move_nor_card_is_refused(text):
    board = deal_board(1)
    with pytest.raises(ValueError, match="is no move: type one like"):
        read(board, text, CellNames(board))
