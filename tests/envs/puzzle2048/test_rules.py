"""The rules of 2048: the original game's own moves, the written rules one by one, and the slow oracle everywhere."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from puzzlegym.envs.puzzle2048 import Action, is_over, legal_moves, move
from reference import game2048 as oracle
from reference.shared_data import read_lines

DIRECTION = {"up": Action.UP, "right": Action.RIGHT, "down": Action.DOWN, "left": Action.LEFT}
START, FIXED = (1,) + (0,) * 14 + (1,), (1, 1, 2, 3, 0, 2, 2, 3, 4, 0, 1, 1, 5, 4, 0, 2)


def square(board):
    """16 exponents as the package's (4, 4) board."""
    return np.array(board, dtype=np.uint8).reshape(4, 4)


def only_one_largest(board):
    """At most one 131072: two of them would need more than 16 squares to make."""
    at = [i for i, tile in enumerate(board) if tile == oracle.LARGEST]
    return tuple(oracle.LARGEST - 1 if i in at[1:] else tile for i, tile in enumerate(board))


# Few different tiles make many merges; the whole ladder makes all kinds of tiles, 65536 and 131072 among them.
_ALPHABETS = st.sampled_from([range(3), (0, 1, 2, 3, 4), (0, 14, 15, 16), (0, 15, 16, 17), (1, 15, 16), range(18)])
_ANY = _ALPHABETS.flatmap(lambda tiles: st.lists(st.sampled_from(list(tiles)), min_size=16, max_size=16))
boards = _ANY.filter(any).map(only_one_largest)
games = st.tuples(st.integers(0, 2**32), st.integers(0, 300), st.integers(0, 15))


def reachable(seed, moves, lift):
    """A board of a random game; ``lift`` makes every tile so many times twice as large."""
    rng = random.Random(seed)
    board = oracle.play(oracle.start(rng), moves, rng)[-1]
    lift = min(lift, oracle.LARGEST - max(board))
    return tuple(tile + lift if tile else 0 for tile in board)


def agrees_with_oracle(board):
    for direction in Action:
        after, gain, legal = move(square(board), direction)
        expected = oracle.move(board, int(direction))
        assert (tuple(after.ravel().tolist()), gain, legal) == expected, direction.name
        assert (after.dtype, after.shape, type(gain), type(legal)) == (np.uint8, (4, 4), int, bool)
    assert legal_moves(square(board)).tolist() == oracle.legal(board)
    assert is_over(square(board)) is oracle.is_over(board) is (not any(oracle.legal(board)))


def test_the_original_games_moves():
    rows = read_lines("2048_moves.jsonl.gz")
    assert len(rows) == 4008
    for row in rows:
        after, gain, legal = move(square(oracle.exponents(row["board"])), row["dir"])
        assert after.ravel().tolist() == list(oracle.exponents(row["after"]))
        assert (gain, legal) == (row["gain"], row["moved"])


def test_the_original_games_endings():
    rows = read_lines("2048_over.jsonl.gz")
    assert len(rows) == 1500
    assert {row["over"] for row in rows} == {True, False}
    for row in rows:
        board = square(oracle.exponents(row["board"]))
        assert is_over(board) is row["over"]
        assert legal_moves(board).any() == (not row["over"])


@given(boards)
def test_any_board_agrees_with_the_oracle(board):
    agrees_with_oracle(board)


@given(games)
def test_reachable_boards_agree_with_the_oracle(game):
    agrees_with_oracle(reachable(*game))


ROWS = {  # left: (before, after, points), in face values
    "a merged tile does not merge again": ([4, 4, 4, 4], [8, 8, 0, 0], 16),
    "pairs from the edge": ([4, 4, 4, 0], [8, 4, 0, 0], 8),
    "not into a made tile": ([4, 4, 8, 0], [8, 8, 0, 0], 8),
    "not after a made tile": ([8, 4, 4, 0], [8, 8, 0, 0], 8),
    "over gaps": ([2, 0, 0, 2], [4, 0, 0, 0], 4),
    "two pairs": ([2, 2, 4, 4], [4, 8, 0, 0], 12),
    "no merge past a tile": ([2, 4, 2, 0], [2, 4, 2, 0], 0),
    "slide only": ([0, 2, 0, 4], [2, 4, 0, 0], 0),
    "256 + 256 adds 512": ([256, 256, 0, 0], [512, 0, 0, 0], 512),
    "win": ([1024, 1024, 0, 0], [2048, 0, 0, 0], 2048),
    "32768": ([16384, 16384, 16384, 16384], [32768, 32768, 0, 0], 65536),
    "65536": ([32768, 32768, 2, 2], [65536, 4, 0, 0], 65540),
    "two 65536": ([32768, 32768, 32768, 32768], [65536, 65536, 0, 0], 131072),
    "131072": ([65536, 65536, 32768, 32768], [131072, 65536, 0, 0], 196608),
    "131072 slides": ([0, 0, 131072, 65536], [131072, 65536, 0, 0], 0),
    "65536 beside 2": ([65536, 2, 65536, 2], [65536, 2, 65536, 2], 0),
    "131072 beside 4": ([131072, 4, 4, 131072 // 2], [131072, 8, 65536, 0], 8),
    "32768 beside an empty square": ([0, 32768, 0, 32768], [65536, 0, 0, 0], 65536),
}


@pytest.mark.parametrize("direction", DIRECTION)
@pytest.mark.parametrize("line", [0, 1, 2, 3])
@pytest.mark.parametrize("case", ROWS)
def test_written_rules(case, line, direction):
    before, after, points = ROWS[case]
    squares = oracle.LINES[int(DIRECTION[direction])][line]
    board, expected = [0] * 16, [0] * 16
    for at, tile, result in zip(squares, oracle.exponents(before), oracle.exponents(after), strict=True):
        board[at], expected[at] = tile, result
    got, gain, legal = move(square(board), DIRECTION[direction])
    assert (got.ravel().tolist(), gain, legal) == (expected, points, before != after)


def test_directions_have_the_original_numbers():
    assert [(action.name, int(action)) for action in Action] == [("UP", 0), ("RIGHT", 1), ("DOWN", 2), ("LEFT", 3)]


def test_equal_neighbours_across_the_move_stay():
    board = square([1, 0, 0, 0] * 2 + [0] * 8)
    after, gain, legal = move(board, Action.RIGHT)
    assert (after[0, 3], after[1, 3], gain, legal) == (1, 1, 0, True)


CHECKERBOARD = [5 + (i + i // 4) % 2 for i in range(16)]  # full, and no two neighbours are equal
NEIGHBOURS = [(i, i + 1) for i in range(16) if i % 4 < 3] + [(i, i + 4) for i in range(12)]


@pytest.mark.parametrize("pair", NEIGHBOURS, ids=str)
@pytest.mark.parametrize("tile", [1, 15, 16])
def test_full_board_goes_on_with_an_equal_pair(pair, tile):
    """A full board is over unless two neighbours are equal, wherever and however large they are."""
    assert is_over(square(CHECKERBOARD))
    board = [tile if i in pair else CHECKERBOARD[i] for i in range(16)]
    across = pair[1] - pair[0] == 1
    assert not is_over(square(board))
    assert legal_moves(square(board)).tolist() == [not across, across, not across, across]


@pytest.mark.parametrize("empty", range(16))
def test_one_empty_square_is_never_the_end(empty):
    board = [0 if i == empty else tile for i, tile in enumerate(CHECKERBOARD)]
    assert not is_over(square(board))
    assert legal_moves(square(board)).tolist() == oracle.legal(tuple(board))


def test_nothing_given_is_changed_and_all_forms_of_a_board_work():
    board = square(FIXED)
    before = board.copy()
    after, gain, legal = move(board, Action.LEFT)
    legal_moves(board), is_over(board)
    assert np.array_equal(board, before)
    assert not np.shares_memory(after, board)
    for same in (board.tolist(), FIXED, board.astype(np.int64), board.T.copy().T, tuple(map(tuple, board.tolist()))):
        again, points, ok = move(same, 3)
        assert (again.tolist(), points, ok) == (after.tolist(), gain, legal)


NO_BOARDS = {
    "exponent 18": [18] + [0] * 15,
    "negative": [-1] + [1] * 15,
    "fraction": [1.5] + [0] * 15,
    "NaN": [float("nan")] + [1] * 15,
    "15 squares": [1] * 15,
    "3 x 4": np.ones((3, 4), dtype=int),
    "batch": np.ones((2, 4, 4), dtype=int),
    "text": "2048",
    "None": None,
    "ragged": [[1, 1], [1], [1], [1]],
    "nothing": [],
}


@pytest.mark.parametrize("board", NO_BOARDS.values(), ids=NO_BOARDS.keys())
def test_impossible_boards_are_refused(board):
    for call in (legal_moves, is_over, lambda b: move(b, 0)):
        with pytest.raises(ValueError, match="2048") as error:
            call(board)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("direction", [-1, 4, 1.5, "up", None])
def test_impossible_directions_are_refused(direction):
    with pytest.raises(ValueError, match=str(direction)):
        move(square(FIXED), direction)


def leaves(board, depth):
    """``oracle.leaves`` with the package's moves."""
    total = 0
    for direction in np.flatnonzero(legal_moves(square(board))):
        after = tuple(move(square(board), int(direction))[0].ravel().tolist())
        children = oracle.spawns(after)
        total += len(children) if depth == 1 else sum(leaves(child, depth - 1) for child in children)
    return total


@pytest.mark.parametrize(
    ("board", "counts"), [(START, [112, 11536]), (FIXED, [44, 2012]), ((16, 16, 15, 15) + (1, 2, 3, 4) * 3, [24, 628])]
)
def test_move_tree(board, counts):
    assert [oracle.leaves(board, depth) for depth in (1, 2)] == counts
    assert [leaves(board, depth) for depth in (1, 2)] == counts
