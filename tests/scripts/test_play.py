"""Both games by hand, on a real pseudo-terminal and through a pipe."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import gymnasium as gym
import pytest
from puzzlegym.envs.freecell import Game, State, board_from
from puzzlegym.envs.puzzle2048 import State as Board2048
from puzzlegym.scripts.cli import main
from puzzlegym.scripts.playing import store
from reference.shared_data import read_lines
from reference.terminal import Terminal

P2048, FREECELL = "Puzzle2048-v0", "FreeCell-v0"
UP, DOWN, RIGHT, LEFT = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
ENTER = "\r"
REPLAY = read_lines("freecell_replays.jsonl.gz")[0]
assert REPLAY["deal"] == 1


@pytest.fixture
def home(tmp_path):
    """The environment of a user without saved games, and the folder that they come to."""
    return {"XDG_DATA_HOME": str(tmp_path / "data"), "NO_COLOR": "1"}


def play(home, *arguments, **options):
    return Terminal("play", *arguments, **home, **options)


def saved(home, env_id):
    """The game of a save as JSON."""
    return json.loads((store_of(home) / f"{env_id}.json").read_text())


def store_of(home):
    return Path(home["XDG_DATA_HOME"]) / "puzzlegym"


def put(home, env_id, data):
    """Write a save."""
    folder = store_of(home)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{env_id}.json").write_text(json.dumps({"format": store.FORMAT, "puzzlegym": "0.1.0", **data}))


def put_game(home, env_id, state, **data):
    """Write a save of a game that begins with ``state``."""
    text = state.to_json()
    known = {"start": text, "end": text, "moves": "", "undone": "x", "seconds": 0, "seed": 1}
    put(home, env_id, {"env_id": env_id, **known, **data})


def goes_on(terminal):
    """Accept the saved game."""
    terminal.wait("Your saved game")
    terminal.press(ENTER, gone=["Your saved game"])


# The last move but one is 3d, after which no card can move.
STUCK = State.parse(
    """
Foundations: C-0 D-0 H-0 S-0
Freecells: 9C 8C 6S -
JD KD 2S 4C 3S 6D
2D KC KS 5C TD 8S
9H 9S 9D TS 4S 8D 2H
JC 5S QD QH TH QS 6H
5D AD JS 4H 8H
7H QC AS AC 2C 3D
7C KH AH 4D JH TC
5H 3H 3C 7S 7D 6C
""".strip()
)
STUCK_MOVE = "3d"


# -- 2048 --------------------------------------------------------------------------------------------------------------

LETTERS = {"w": 0, "d": 1, "s": 2, "a": 3}


def numbers(terminal):
    """Score, best score, moves and the board of the screen, row by row."""
    words = terminal.text
    score, best, moves = (
        int(re.search(rf"{name} +([\d,]+)", words)[1].replace(",", "")) for name in ("score", "best", "moves")
    )
    rows = [re.findall(r"\|\s*(\d*)\s*(?=\|)", line) for line in terminal.lines if line.startswith("|")]
    return score, best, moves, [int(x or 0) for row in rows for x in row]


def faces(obs):
    return [1 << int(e) if e else 0 for e in obs.ravel()]


def test_2048_to_its_end_with_a_kill_in_the_middle(home):
    env = gym.make(P2048)
    obs, info = env.reset(seed=7)
    keys, over = "", False
    while not over:
        key = next(key for key in ("sasdsasw"[len(keys) % 8 :] + "sadw") if info["action_mask"][LETTERS[key]])
        obs, _, over, _, info = env.step(LETTERS[key])
        keys += key
    middle = len(keys) // 2
    with play(home, P2048, "--seed", "7") as terminal:
        terminal.wait("moves 0", "seed 7")
        terminal.press(keys[:middle], f"moves {middle}")
        before = numbers(terminal)
        terminal.process.kill()
        assert terminal.end() == -signal.SIGKILL
    with play(home, P2048) as terminal:
        terminal.wait("Your saved game", "any key: go on   n: new game", f"moves {middle}")
        assert numbers(terminal) == before
        terminal.press(ENTER, gone=["Your saved game"])
        terminal.press(keys[middle:], "NO MOVES LEFT")
        assert numbers(terminal) == (info["score"], info["score"], len(keys), faces(obs))
        terminal.press("u", f"moves {len(keys) - 1}", gone=["NO MOVES LEFT"])
        terminal.press(keys[-1], "NO MOVES LEFT", f"moves {len(keys)}")
        assert numbers(terminal)[3] == faces(obs), "the same tile comes after an undo"
        terminal.press("r", "moves 0", gone=["NO MOVES LEFT"])
        assert numbers(terminal)[3] == faces(gym.make(P2048).reset(seed=7)[0])
        terminal.send("q")
        assert terminal.end() == 0
        assert b"\x1b[?25h" in terminal.received[-200:], "the cursor comes back"


@pytest.mark.parametrize("keys", [(UP, RIGHT, DOWN, LEFT), "wdsa", ("k", "l", "j", "a"), "WDSA"])
def test_2048_keys(home, keys):
    env = gym.make(P2048)
    obs, info = env.reset(seed=5)
    with play(home, P2048, "--seed", "5") as terminal:
        terminal.wait("moves 0")
        for action in (3, 2, 1, 0, 3, 2, 1, 2):
            obs, reward, _, _, info = env.step(action)
            assert info["legal"]
            terminal.press(
                keys[action], f"(+{int(reward)})", f"score {info['score']} ", f"moves {env.unwrapped.get_state().steps}"
            )
            assert numbers(terminal)[3] == faces(obs)


def test_2048_h_is_a_hint_or_with_vi_a_move(home):
    with play(home, P2048, "--seed", "5") as terminal:
        terminal.wait("moves 0", "h        hint")
        terminal.press("h", "Hint: ")
        assert re.search(r"Hint: (up|right|down|left)\.", terminal.text)
        terminal.press("?", "Hint: ")
    with play(home, P2048, "--seed", "5", "--vi") as terminal:
        terminal.wait("moves 0", "?        hint")
        terminal.press("h", "moves 1")


def test_2048_illegal_move_changes_nothing(home):
    put_game(home, P2048, Board2048((1, 2, 3, 4) + (0,) * 12))
    with play(home, P2048) as terminal:
        goes_on(terminal)
        before = numbers(terminal)
        for key, name in (("w", "Up"), (LEFT, "Left"), ("l", "Right")):
            terminal.press(key, f"{name} moves nothing.")
            assert numbers(terminal) == before


def test_2048_banner_keep_playing_and_new_game(home):
    put_game(home, P2048, Board2048((10, 10, 0, 0) + (0,) * 8 + (1, 2, 3, 1), 18_000))
    with play(home, P2048) as terminal:
        goes_on(terminal)
        terminal.press("a", "YOU WIN", "c: keep playing", "n: new game", "2048", "score 20,048  (+2,048)")
        terminal.press("sd?", "YOU WIN", "moves 1")
        terminal.press("u", "moves 0", gone=["YOU WIN"])
        terminal.press("a", "YOU WIN")
        terminal.press("c", gone=["YOU WIN"])
        terminal.press("d", "moves 2")
        terminal.process.kill()
        terminal.end()
    with play(home, P2048) as terminal:
        goes_on(terminal)
        terminal.press("u", "moves 1", "2048")
        assert "YOU WIN" not in terminal.text, "the player has chosen to go on"
        terminal.press("n", "New game?", "n: yes   any other key: no")
        terminal.press("s", gone=["New game?"])
        terminal.press("n", "New game?")
        terminal.press("n", "moves 0", "score 0 ")
        assert numbers(terminal)[1] >= 20_048


def test_2048_undone_is_not_won_and_restart_asks(home):
    put_game(home, P2048, Board2048((10, 10, 0, 0) + (0,) * 8 + (1, 2, 3, 1), 18_000))
    with play(home, P2048) as terminal:
        goes_on(terminal)
        terminal.press("a", "YOU WIN")
        terminal.press("r", "Restart?")
        terminal.press("c", gone=["YOU WIN", "Restart?"])
        terminal.press("u", "moves 0")
        terminal.press("a", "YOU WIN")
        terminal.press("n", "moves 0", "score 0 ")


def test_2048_capital_letters_are_the_same(home):
    with play(home, P2048, "--seed", "7") as terminal:
        terminal.wait("moves 0")
        terminal.press("W", "moves 1")
        terminal.press("N", "New game?")
        terminal.press("N", "moves 0")


def test_2048_best_score_stays(home):
    with play(home, P2048, "--seed", "7") as terminal:
        terminal.wait("moves 0")
        terminal.send("sdsasdsasdsaw" * 4)
        terminal.wait("moves 4")
        terminal.send("q")
        assert terminal.end() == 0
        best = numbers(terminal)[1]
    assert best > 0
    with play(home, P2048, "--new") as terminal:
        terminal.wait(f"best  {best}", "moves 0")


# -- FreeCell ----------------------------------------------------------------------------------------------------------


def type_move(terminal, move, number):
    terminal.press(move + ENTER, f"Move {move}", f"moves {number} ")


def test_deal_1_is_won_by_typed_notation(home, tmp_path):
    moves = REPLAY["moves_auto_nostart"]
    with play(home, FREECELL, "--deal", "1", cwd=tmp_path) as terminal:
        terminal.wait("FreeCell, deal 1", "moves 0   home 0")
        start = table(terminal)
        for number, move in enumerate(moves[:10], 1):
            type_move(terminal, move, number)
        terminal.press("r", "r: yes   any other key: no")
        terminal.press("r", "moves 0 ")
        assert table(terminal) == start
        for number, move in enumerate(moves[:40], 1):
            type_move(terminal, move, number)
        picture = table(terminal)
        for number in range(39, 29, -1):
            terminal.press("u", f"moves {number} ")
        for number in range(31, 41):
            terminal.press("y" if number % 2 else "\x12", f"moves {number} ")
        assert table(terminal) == picture
        terminal.press("y", "Nothing to redo.")
        for number, move in enumerate(moves[40:-1], 41):
            type_move(terminal, move, number)
        terminal.press(moves[-1] + ENTER, "YOU WIN in", "Your best time", "home 52", seconds=40)
        terminal.press("s", "Saved as freecell-1.txt")
        terminal.press("u", f"moves {len(moves) - 1} ", gone=["YOU WIN"])
        terminal.press("y", "YOU WIN")
        terminal.send("q")
        assert terminal.end() == 0
    game = Game.load(tmp_path / "freecell-1.txt")
    assert game.moves == tuple(moves)
    assert game.fields["Result"] == "won"


def test_safe_cards_go_home_visibly(home):
    moves, sent = REPLAY["moves_auto_nostart"], REPLAY["autoplayed_nostart"]
    several = next(i for i, names in enumerate(sent) if len(names) > 2)
    with play(home, FREECELL, "--deal", "1") as terminal:
        terminal.wait("moves 0")
        for number, move in enumerate(moves[:several], 1):
            terminal.send(move + ENTER)
            terminal.wait(f"moves {number} ")
        start = len(terminal.received)
        terminal.press(moves[several] + ENTER, "Home by themselves:")
        named = words_beside(terminal).partition("Home by themselves: ")[2].partition(".")[0].split()
        assert sorted(named) == sorted(sent[several])
        pictures = terminal.received[start:].decode().split("\x1b[H")
        shown = {tuple(re.findall(r"(?:10|[A2-9JQK])[CDHS]", picture)) for picture in pictures}
        assert len(shown) > len(sent[several]), "a picture for each card that goes home"


def position(cells, *columns):
    """A board with these open columns first; the other cards lie in the columns behind them."""
    named = [name for text in (cells, *columns) for name in text.split()]
    rest = [rank + suit for rank in "A23456789TJQK" for suit in "CDHS" if rank + suit not in named]
    behind = 8 - len(columns)
    return board_from([*columns, *(rest[i::behind] for i in range(behind))], cells.split())


REFUSED = [
    ("", ["5H", "6D"], "12", "5H and 6D are both red: colours must alternate"),
    ("", ["5H", "7S"], "12", "5H goes on a black 6, not on 7S"),
    ("AC 2C 3C 4C", ["9H 8S", "TS"], "12", "2 cards would move, but at most 1 can"),
    ("AC 2C 3C 4C", ["5H"], "1a", "all four cells are taken"),
    ("AC 2C", ["5H"], "1b", "cell b is taken by 2C: cell c is free"),
    ("", ["5H"], "1h", "5H cannot go home yet: its foundation needs AH first"),
    ("", ["5H", ""], "21", "column 2 is empty"),
    ("", ["5H 9C"], "9z", "'9z' is no move"),
    ("", ["5H 9C", ""], "th", "no place takes 10H"),
]


@pytest.mark.parametrize("row", REFUSED, ids=[row[3][:24] for row in REFUSED])
def test_moves_are_refused_with_their_reason(home, row):
    cells, columns, text, reason = row
    put_game(home, FREECELL, State(position(cells, *columns).tobytes()))
    with play(home, FREECELL) as terminal:
        goes_on(terminal)
        picture = table(terminal)
        terminal.press(text + ENTER, "Refused:")
        assert reason in words_beside(terminal)
        assert table(terminal) == picture
        assert "moves 0 " in terminal.text
        assert saved(home, FREECELL)["moves"] == ""


def table(terminal):
    """The cards on the screen."""
    return [line[:41].rstrip() for line in terminal.lines]


def words_beside(terminal):
    """What stands beside the table."""
    return " ".join(" ".join(line[41:] for line in terminal.lines).split())


def test_cards_are_tapped_and_cells_keep_their_letters(home):
    put_game(home, FREECELL, State(position("", "9C 4D", "5S", "KH", "").tobytes()))
    with play(home, FREECELL) as terminal:
        goes_on(terminal)
        terminal.press("1" + ENTER, "Move 12.")
        terminal.press("t9c" + ENTER, "Move 1a.", gone=["Move 12."])
        terminal.press("u", gone=["Move 1a."])
        terminal.press("1D" + ENTER, "Move 1d.")
        assert table(terminal)[1].startswith("  --   --   --   9C")
        terminal.press("KH" + ENTER, "Move 3a.")
        assert table(terminal)[1].startswith("  KH♥  --   --   9C")
        terminal.press("d4" + ENTER, "Move d4.")
        terminal.press("A" + ENTER, "Move a1.")
        assert table(terminal)[4].startswith("  KH♥  5S♠       9C♣")


def test_a_text_that_is_a_move_and_a_card_is_the_move(home):
    with play(home, FREECELL, "--deal", "1") as terminal:
        terminal.wait("moves 0")
        terminal.press("5h" + ENTER, "Refused: 6C cannot go home yet")
        assert "(t5h taps the card 5H)" in words_beside(terminal)
        terminal.press("t5h" + ENTER, "Refused: no place takes 5H")
        assert "no place takes 5H: it is covered by 5 cards." in words_beside(terminal)
        terminal.press("5H\x7f\x7f5x\x15", "move: _")
        terminal.press("5\x1b", "move: _")
        assert "moves 0 " in terminal.text


def test_cursor_takes_drops_and_taps(home):
    put_game(home, FREECELL, State(position("", "9C 4D", "5S", "").tobytes()))
    with play(home, FREECELL) as terminal:
        goes_on(terminal)
        terminal.press(RIGHT, "[ 4D♦]")
        terminal.press(ENTER, "(holding 4D)")
        terminal.press(RIGHT, "[ 5S♠]")
        terminal.press(ENTER, "Move 12.", gone=["holding"])
        terminal.press(LEFT, "[ 9C♣]")
        terminal.press(" ", "(holding 9C)")
        terminal.press(UP + RIGHT, "[ -- ]")
        terminal.press(" ", "Move 1b.")
        assert table(terminal)[1].startswith("  -- [ 9C♣]")
        terminal.press(" ", "(holding 9C)")
        terminal.press("\x1b", "[ 9C♣]", gone=["holding"])
        terminal.press("\x1b", gone=["["])
        terminal.press(DOWN, "[    ]")
        terminal.press(RIGHT, "[ 4D♦]")
        terminal.press(UP, "[ 5S♠]")
        terminal.press(ENTER, "(holding 5S)")
        terminal.press(ENTER, "Move 21v2.")
        terminal.press(LEFT + LEFT + ENTER, "(holding")
        terminal.press(RIGHT + ENTER, "Refused:", gone=["holding"])


def test_no_moves_left(home):
    put_game(home, FREECELL, STUCK)
    with play(home, FREECELL) as terminal:
        goes_on(terminal)
        terminal.press(STUCK_MOVE + ENTER, "NO MOVES LEFT.", "u: undo   r: restart   n: new deal")
        terminal.press("h", "NO MOVES LEFT.")
        terminal.press("1a" + ENTER, "Refused: all four cells are taken")
        terminal.press("u", "moves 0 ", gone=["NO MOVES LEFT"])


def test_a_line_of_moves_and_commands_in_capitals(home):
    with play(home, FREECELL, "--deal", "1") as terminal:
        terminal.wait("moves 0")
        terminal.press("5a 5b 26 5c" + ENTER, "moves 2 ", "Refused: 9C goes on a red 10")
        terminal.press("U" + ENTER, "moves 1 ", "Took back 5b.")
        terminal.press("Y" + ENTER, "moves 2 ", "Move 5b again.")
        terminal.press("x" * 3000 + ENTER, "Refused: 'xxxxxxxxxxxxxxxxxxxx...'", "is no move")


def test_hints_do_not_lead_back(home):
    with play(home, FREECELL, "--deal", "1") as terminal:
        terminal.wait("moves 0")
        seen = {tuple(table(terminal)[:12])}
        for number in range(1, 10):
            terminal.press("h", "Hint: ")
            move = re.search(r"Hint: (\S+) ", words_beside(terminal))[1]
            terminal.press(move + ENTER, f"Move {move}.", f"moves {number} ")
            seen.add(tuple(table(terminal)[:12]))
        assert len(seen) == 10


def test_undo_is_saved(home):
    with play(home, FREECELL, "--deal", "1") as terminal:
        terminal.wait("moves 0")
        terminal.press("5a" + ENTER, "moves 1 ")
        terminal.press("u", "moves 0 ")
        assert (saved(home, FREECELL)["moves"], saved(home, FREECELL)["undone"]) == ("", "5a")


def test_the_clock_stops_at_the_win_before_cards_go_home(home):
    game = Game.of_deal(1, REPLAY["moves_auto_nostart"][:-1])
    end = list(game.replay())[-1].board
    put_game(
        home,
        FREECELL,
        game.start,
        moves=" ".join(game.moves),
        end=State(end.tobytes(), 1, 79, 79).to_json(),
        seconds=100,
    )
    with play(home, FREECELL) as terminal:
        goes_on(terminal)
        terminal.press(REPLAY["moves_auto_nostart"][-1] + ENTER, "home 5")
        terminal.process.kill()
        terminal.end()
    records = json.loads((store_of(home) / "records.json").read_text())
    assert 100 <= records["FreeCell best seconds 1"] == records["FreeCell best seconds"] < 103
    with play(home, FREECELL) as terminal:
        terminal.wait("moves 0 ", "best time of all deals 1:4")


def test_hint_points_and_changes_nothing(home):
    with play(home, FREECELL, "--deal", "1") as terminal:
        terminal.wait("moves 0")
        terminal.press("h", "Hint: ", "[")
        text, card = re.search(r"Hint: (\S+) \((\w{2,3}) to ", words_beside(terminal)).groups()
        assert f"[{card.replace('T', '10'):>3}" in terminal.text
        terminal.press(text + ENTER, f"Move {text}.", "moves 1 ", gone=["Hint"])


def test_numbered_deals(home):
    with play(home, FREECELL, "--deal", "1000000") as terminal:
        terminal.wait("FreeCell, deal 1000000")
        terminal.press("g", "deal number: _")
        terminal.press("617" + ENTER, "FreeCell, deal 617")
        terminal.press("1a" + ENTER, "moves 1 ")
        terminal.press("g", "Another deal?", "g: yes   any other key: no")
        terminal.press("u", "moves 0 ", gone=["Another deal?"])
        terminal.press("g", "deal number: _")
        terminal.press("1000001" + ENTER, "A deal is a number from 1 to", "not 1000001.", "FreeCell, deal 617")
        terminal.press("g0" + ENTER, "A deal is a number")
        terminal.press("g\x1b", gone=["deal number"])
        terminal.press("g11982" + ENTER, "cannot be won")
        terminal.press("n", gone=["deal 11982"])
        assert 1 <= int(re.search(r"FreeCell, deal (\d+)", terminal.text)[1]) <= 32_000


# -- saves -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env_id", "start", "first_move", "second_move"),
    [(P2048, ["--seed", "7"], "w", "d"), (FREECELL, ["--deal", "1"], "1a" + ENTER, "1b" + ENTER)],
)
def test_two_processes_on_one_save(home, env_id, start, first_move, second_move):
    with play(home, env_id, *start) as first:
        first.wait("moves 0")
        first.press(first_move, "moves 1")
        with play(home, env_id, *start) as second:
            second.wait("Another puzzlegym has the", "moves 0")
            before = saved(home, env_id)
            second.press(first_move, "moves 1")
            second.send("q")
            assert second.end() == 0
            assert "not saved" in second.words
        assert saved(home, env_id) == before
        first.press(second_move, "moves 2")
        first.process.kill()
        first.end()
    with play(home, env_id) as third:
        third.wait("Your saved game", "moves 2")


WRONG = {
    "nothing": "",
    "text": "hello",
    "half": '{"format": "puzzlegym-play-1", "env_id": "Puzz',
    "list": "[1, 2]",
    "keys": '{"format": "puzzlegym-play-1"}',
    "version": '{"format": "puzzlegym-play-9", "puzzlegym": "9.0"}',
    "bytes": "\udcff\udcfe",
}


@pytest.mark.parametrize("env_id", [P2048, FREECELL])
@pytest.mark.parametrize("kind", [*WRONG, "moves", "puzzle", "impossible"])
def test_unreadable_saves_are_said_and_kept(home, env_id, kind, monkeypatch, capsys):
    state = Board2048((1, 1) + (0,) * 14) if env_id == P2048 else STUCK
    put_game(home, env_id, state, undone="")
    good = saved(home, env_id)
    bad = {
        "moves": {**good, "moves": "l" if env_id == P2048 else STUCK_MOVE},
        "puzzle": {**good, "env_id": "Other-v0"},
        "impossible": {**good, "start": good["start"].replace('"steps": 0', '"steps": -5')},
    }
    content = WRONG[kind].encode("utf-8", "surrogateescape") if kind in WRONG else json.dumps(bad[kind]).encode()
    path = store_of(home) / f"{env_id}.json"
    path.write_bytes(content)
    out = piped(monkeypatch, capsys, home, "q", env_id, "--new")
    said = " ".join(" ".join(line[40:] for line in out.splitlines()).split())
    assert ("from another version of puzzlegym (9.0)" if kind == "version" else "The saved game is ") in said
    aside = store_of(home) / f"{env_id}-unreadable-1.json"
    assert aside.read_bytes() == content
    assert json.loads(path.read_text())["moves"] == ""


def test_nothing_can_be_written(home):
    blocked = Path(home["XDG_DATA_HOME"])
    blocked.write_text("a file where a folder should be")
    with play(home, P2048, "--seed", "7") as terminal:
        terminal.wait("Games cannot be saved in", "moves 0")
        terminal.press("w", "moves 1")
        terminal.send("q")
        assert terminal.end() == 0
    assert blocked.read_text() == "a file where a folder should be"


def test_records_of_another_version_are_kept_aside(home):
    folder = store_of(home)
    folder.mkdir(parents=True)
    (folder / "records.json").write_text("{}")
    with play(home, P2048, "--seed", "7") as terminal:
        terminal.wait("The file of records is")
        terminal.press("w", "moves 1")
    assert (folder / "records-unreadable-1.json").read_text() == "{}"


# -- screens, pipes, options -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (200, 60), (50, 40), (60, 24), (80, 12)])
@pytest.mark.parametrize("env_id", [P2048, FREECELL])
def test_screens_fit(home, env_id, columns, rows):
    with play(home, env_id, "--new", columns=columns, rows=rows) as terminal:
        terminal.wait("moves 0")
        assert "seed" in terminal.lines[0] or "home" in terminal.lines[0] or columns < 70
        assert (columns, rows) == (80, 12) or "quit" in terminal.text


def piped(monkeypatch, capsys, home, keys, *arguments):
    """What the command writes into a pipe when it reads ``keys`` from one."""
    for name, value in home.items():
        monkeypatch.setenv(name, value)
    reading, writing = os.pipe()
    os.write(writing, keys.encode())
    os.close(writing)
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert main(["play", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "\x1b" not in out
    return out


@pytest.mark.parametrize("newline", ["\n", "\r\n", ""])
def test_2048_in_a_pipe(home, monkeypatch, capsys, newline):
    keys = newline.join("wdhuq")
    out = piped(monkeypatch, capsys, home, keys, P2048, "--seed", "7")
    pictures = out.split("\n\n")
    assert [re.search(r"moves (\d+)", text)[1] for text in pictures[:-1]] == ["0", "1", "2", "2", "1"]
    assert "Saved: score" in pictures[-1]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_freecell_in_a_pipe(home, monkeypatch, capsys, newline):
    keys = newline.join([*REPLAY["moves_auto_nostart"], "q", ""])
    out = piped(monkeypatch, capsys, home, keys, FREECELL, "--deal", "1")
    assert "YOU WIN" in out
    assert out.count("moves 1 ") == 1
    again = piped(monkeypatch, capsys, home, newline.join(["5a 5b 5c 26 5d", "", "u"]), FREECELL, "--deal", "1")
    assert "Your saved game" not in again, "a game that is won is over"
    assert "Refused: 9C goes on a red 10, not on 3D." in " ".join(" ".join(x[41:] for x in again.splitlines()).split())
    assert "Took back 5c." in again
    third = piped(monkeypatch, capsys, home, newline.join(["g", "g", "5", "1a", ""]), FREECELL)
    assert "Your saved game: deal 1, 2 moves" in third
    assert "FreeCell, deal 5" in third


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([P2048, "--deal", "1"], "--deal is for FreeCell-v0"),
        ([FREECELL, "--seed", "1"], "FreeCell-v0 takes --deal"),
        ([FREECELL, "--vi"], "FreeCell-v0 takes --deal"),
        ([FREECELL, "--deal", "0"], "--deal must be from 1 to 1,000,000, not 0"),
        ([P2048, "--seed", "-1"], "seed"),
        (["Chess-v0"], "unknown environment 'Chess-v0'"),
    ],
)
def test_wrong_options(home, monkeypatch, capsys, arguments, message):
    for name, value in home.items():
        monkeypatch.setenv(name, value)
    assert main(["play", *arguments]) == 2
    _, err = capsys.readouterr()
    assert message in err
    assert err.count("\n") == 1
    assert not store_of(home).exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_keep_the_game_and_give_the_terminal_back(home, number, code):
    with play(home, P2048, "--seed", "7") as terminal:
        terminal.wait("moves 0")
        terminal.press("w", "moves 1")
        terminal.process.send_signal(number)
        assert terminal.end() == code
        assert b"\x1b[?25h" in terminal.received[-300:]
        assert b"Traceback" not in terminal.received
    assert saved(home, P2048)["moves"] == "u"


def test_ctrl_z_gives_the_terminal_back_until_the_game_goes_on(home):
    with play(home, P2048, "--seed", "7") as terminal:
        terminal.press("w", "moves 1")
        raw = terminal.settings()
        terminal.process.send_signal(signal.SIGTSTP)
        terminal.wait_for_state("T")
        assert terminal.settings() != raw
        assert b"\x1b[?25h" in terminal.received
        terminal.process.send_signal(signal.SIGCONT)
        terminal.press("d", "moves 2")
        assert terminal.settings() == raw
        before = terminal.settings()
        terminal.send("q")
        assert terminal.end() == 0
        assert terminal.settings() != before, "every key needs Enter again"


def test_saving_begins_again_when_there_is_room(home):
    folder = store_of(home)
    with play(home, P2048, "--seed", "7") as terminal:
        terminal.wait("moves 0")
        (folder / "Puzzle2048-v0.json").unlink()
        (folder / "Puzzle2048-v0.json").mkdir()
        terminal.press("w", "moves 1", "The game cannot be saved")
        (folder / "Puzzle2048-v0.json").rmdir()
        terminal.press("d", "moves 2", gone=["cannot be saved"])
        assert saved(home, P2048)["moves"] == "u r"


def test_no_suit_symbols_where_the_encoding_has_none(home):
    with play(home, FREECELL, "--deal", "1", PYTHONIOENCODING="ascii") as terminal:
        terminal.wait("JD   2D   9H   JC   5D")
