"""n-tuple networks against plain Python: look-ups, values, learning, search; and that they learn."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from puzzlegym.agents import ntuple
from puzzlegym.agents.ntuple import NETWORKS, Trace
from puzzlegym.agents.ntuple_player import NTuplePlayer
from puzzlegym.envs.common.rng import Streams
from puzzlegym.envs.puzzle2048 import legal_moves, move
from puzzlegym.envs.puzzle2048.state import board_words

every_network = pytest.mark.parametrize("name", NETWORKS)
BOARDS = np.zeros(8, dtype=np.uint64)


def random_board(rng: random.Random, most: int = 17) -> np.ndarray:
    return np.array([[rng.choice([0, 0, *range(1, most + 1)]) for _ in range(4)] for _ in range(4)], dtype=np.uint8)


def word(board: np.ndarray) -> np.uint64:
    low, high = board_words(board[None])
    return np.uint64(ntuple.flat(low[0], high[0]))


def turned(board: np.ndarray) -> list[np.ndarray]:
    """The 8 boards by NumPy."""
    return [np.rot90(one, turns) for one in (board, board.T) for turns in range(4)]


def places(board: np.ndarray, name: str) -> list[int]:
    """Places in the table by plain arithmetic, for all tuples and symmetries."""
    found, start = [], 0
    for squares in NETWORKS[name]:
        for one in turned(np.minimum(board, 15)):
            flat = one.ravel().tolist()
            found.append(start + sum(flat[square] * 16**i for i, square in enumerate(squares)))
        start += 16 ** len(squares)
    return found


@every_network
def test_networks_are_tuples_of_different_squares(name):
    tuples, squares = int(name[0]), int(name[2])
    assert [len(set(one)) for one in NETWORKS[name]] == [squares] * tuples
    assert {square for one in NETWORKS[name] for square in one} <= set(range(16))
    assert len({frozenset(one) for one in NETWORKS[name]}) == tuples


@every_network
def test_places_in_the_table(name):
    rng, net = random.Random(1), ntuple.lookups(NETWORKS[name])
    for _ in range(30):
        board = random_board(rng)
        ntuple.symmetries(word(board), BOARDS)
        found = [int(ntuple.entry(one, t, net)) for t in range(len(NETWORKS[name])) for one in BOARDS]
        assert sorted(found) == sorted(places(board, name))
        assert max(found) < ntuple.entries(NETWORKS[name])


def random_table(rng: np.random.Generator, name: str, columns: int) -> np.ndarray:
    return rng.normal(0, 100, (ntuple.entries(NETWORKS[name]), columns)).astype(np.float32)


def test_value_is_the_sum_of_all_entries_and_does_not_change_with_symmetry():
    rng, net = random.Random(2), ntuple.lookups(NETWORKS["5x4"])
    table = random_table(np.random.default_rng(0), "5x4", 1)
    for _ in range(30):
        board = random_board(rng)
        expected = sum(float(table[place, 0]) for place in places(board, "5x4"))
        for one in turned(board):
            assert ntuple.value(word(one), table, net, BOARDS) == pytest.approx(expected, rel=1e-4, abs=1e-2)


@pytest.mark.parametrize("columns", [1, 3])
def test_learning_moves_every_entry_as_the_papers_say(columns):
    rng, net = random.Random(3), ntuple.lookups(NETWORKS["5x4"])
    table = np.zeros((ntuple.entries(NETWORKS["5x4"]), columns), dtype=np.float32)
    plain = table.astype(np.float64)
    for _ in range(60):
        board, error = random_board(rng, 3), np.float32(rng.uniform(-50, 50))
        new = ntuple._learn_value(word(board), error, 0.7, table, net, BOARDS)
        step, total = 0.7 * float(error) / 40, 0.0
        for place in places(board, "5x4"):  # one may be looked up several times
            if columns == 1:
                plain[place, 0] += step
            else:
                scale = abs(plain[place, 1]) / plain[place, 2] if plain[place, 2] else 1.0
                plain[place] += step * scale, error, abs(error)
            total += plain[place, 0]
        assert new == pytest.approx(total, rel=1e-3, abs=1e-3)
    np.testing.assert_allclose(table, plain, rtol=1e-3, atol=1e-3)


def trace_of(moves: int) -> Trace:
    return Trace(*(np.zeros(moves, dtype=np.uint64) for _ in range(2)), np.zeros(moves, dtype=np.int64))


def play_one(seed: int, table: np.ndarray, moves: int = 4000) -> tuple[Trace, int, int, int]:
    """A game without learning: (trace, moves, score, largest exponent)."""
    trace, net = trace_of(moves), ntuple.lookups(NETWORKS["5x4"])
    scores, tops = np.zeros((2, 1), dtype=np.int64)
    state = np.array([seed, 0], dtype=np.uint64)
    games, made = ntuple.learn_games(state, 1, 0.0, 0.5, False, table, net, BOARDS, trace, scores, tops)
    assert games == 1
    return trace, made, int(scores[0]), int(tops[0])


def unpacked(low: np.uint64, high: np.uint64) -> np.ndarray:
    squares = [int(low) >> 4 * i & 15 | (int(high) >> 4 * i & 1) << 4 for i in range(16)]
    return np.array(squares, dtype=np.uint8).reshape(4, 4)


def test_games_follow_the_rules_greedily():
    table = random_table(np.random.default_rng(4), "5x4", 1)
    net = ntuple.lookups(NETWORKS["5x4"])
    for seed in range(5):
        trace, made, score, top = play_one(seed, table)
        boards = [unpacked(trace.low[i], trace.high[i]) for i in range(made)]
        assert score == trace.gain[:made].sum()
        assert top == boards[-1].max()
        for (before, after), gain in zip(pairwise(boards), trace.gain[1:made], strict=True):
            empty = np.argwhere(before == 0)
            spawned = [(tuple(square), tile) for square in empty for tile in (1, 2)]
            reached = []
            for square, tile in spawned:
                start = before.copy()
                start[square] = tile
                options = [move(start, way) for way in range(4)]
                worth = [g + float(ntuple.value(word(b), table, net, BOARDS)) for b, g, legal in options if legal]
                legal = [(b, g) for b, g, is_legal in options if is_legal]
                if legal:
                    best = legal[int(np.argmax(worth))]
                    reached.append((best[0].tobytes(), best[1]))
            assert (after.tobytes(), gain) in reached


@pytest.mark.parametrize("decay", [0.0, 0.5, 1.0])
def test_targets_go_backwards_from_the_end(decay):
    name, net = "5x4", ntuple.lookups(NETWORKS["5x4"])
    table = random_table(np.random.default_rng(5), name, 1) * np.float32(0.1)
    trace, made, _, _ = play_one(9, table.copy())
    plain, target = table[:, 0].astype(np.float64), 0.0
    for i in reversed(range(made)):
        found = places(unpacked(trace.low[i], trace.high[i]), name)
        error = target - plain[found].sum()
        for place in found:
            plain[place] += 0.1 * error / len(found)
        target = float(trace.gain[i]) + (1 - decay) * plain[found].sum() + decay * target
    ntuple._learn_game(made, 0.1, decay, table, net, BOARDS, trace)
    np.testing.assert_allclose(table[:, 0], plain, rtol=2e-2, atol=2.0)


def test_restarted_games_begin_in_the_middle_and_are_not_counted():
    table, net = np.zeros((ntuple.entries(NETWORKS["5x4"]), 3), dtype=np.float32), ntuple.lookups(NETWORKS["5x4"])
    scores, tops = np.zeros((2, 1000), dtype=np.int64)
    state, trace = np.array([1, 0], dtype=np.uint64), trace_of(131072)
    counts = []
    for _ in range(20):
        games, made = ntuple.learn_games(state, 1, 1.0, 0.5, True, table, net, BOARDS, trace, scores, tops)
        counts.append((games, made, int(state[1])))
    assert {games for games, _, _ in counts} == {0, 1}
    for (_, made, begin), (games, _, _) in pairwise(counts):
        assert begin == (made // 2 if made > 2 * ntuple.SHORTEST else 0)
        assert games == (begin == 0)


def expected(board: np.ndarray, depth: int, values: dict) -> float:
    """What an afterstate is worth, by plain expectimax."""
    if depth == 0:
        return values(board)
    total, empty = 0.0, np.argwhere(board == 0)
    for square in empty:
        for tile, chance in ((1, 0.9), (2, 0.1)):
            start = board.copy()
            start[tuple(square)] = tile
            options = [move(start, way) for way in range(4)]
            worth = [gain + expected(after, depth - 1, values) for after, gain, legal in options if legal]
            total += chance / len(empty) * max(worth, default=0.0)
    return total


@pytest.mark.parametrize("depth", [1, 2])
def test_player_searches_as_deep_as_it_says(depth):
    table = random_table(np.random.default_rng(6), "5x4", 1)
    player, net = NTuplePlayer("x", "5x4", table[:, 0], depth), ntuple.lookups(NETWORKS["5x4"])

    def values(board):
        return float(ntuple.value(word(board), table, net, BOARDS))

    rng = random.Random(7)
    for _ in range(6):
        board = random_board(rng, 9)
        mask = legal_moves(board)
        if not mask.any():
            continue
        options = [move(board, way) for way in range(4)]
        worth = [gain + expected(after, depth - 1, values) if legal else -np.inf for after, gain, legal in options]
        assert player.act(board[None], mask[None], Streams.seeded([0]))[0] == int(np.argmax(worth))


def test_what_does_not_fit_is_refused():
    size = ntuple.entries(NETWORKS["5x4"])
    values = np.zeros(size, dtype=np.float32)
    for arguments, message in [
        (("9x9", values), "unknown n-tuple network '9x9': use 5x4, 4x5, 4x6, 8x6"),
        (("4x5", values), "a 4x5 network has 4,194,304 values"),
        (("5x4", values, 0), "depth must be a whole number of 1 or more"),
    ]:
        with pytest.raises(ValueError, match=message):
            NTuplePlayer("x", *arguments)
