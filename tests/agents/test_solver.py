"""The solver: lines that win in the environment, proofs that a plain search agrees with, and its limits."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from puzzlegym.agents import solver as module
from puzzlegym.agents import solver_kernels as kernels
from puzzlegym.agents.solver import LEAST_MEGABYTES, SOLVED, UNDECIDED, UNWINNABLE, Search, Solver
from puzzlegym.envs.common.cards import CARDS
from puzzlegym.envs.freecell import UNWINNABLE as NEVER_WON
from puzzlegym.envs.freecell import apply, autoplay, board_from, deal_board, legal_moves
from puzzlegym.envs.freecell.estimate import USUAL
from puzzlegym.envs.freecell.planning import table_of
from puzzlegym.envs.freecell.state import DEPTH, TABLE_WORDS
from reference import freecell as oracle
from reference.freecell_search import key, winnable
from reference.shared_data import read_json

HARD = [
    739671,
    57148,
    31465,
    1941,
    98714,
]  # other solvers give up on the first; greedy automatic moves lose the last two
POSITIONS = {case["kind"]: case["position"] for case in read_json("freecell_positions.json")}
# (deal, cards home at the start, random moves made) of positions that the plain search can decide.
WON = [(39, 3, 120), (15, 3, 120), (226, 6, 52), (458, 6, 24), (14, 6, 50), (12, 4, 57), (545, 5, 60), (160, 7, 32)]
LOST = [(10, 2, 120), (92, 0, 5), (72, 0, 5), (9, 1, 17), (16, 0, 10), (68, 0, 7), (76, 0, 23), (4, 0, 22), (80, 0, 5)]


@pytest.fixture(scope="module")
def solver() -> Solver:
    return Solver()


@pytest.fixture(scope="module")
def env() -> gym.Env:
    return gym.make("FreeCell-v0")


def assert_wins(env: gym.Env, actions: tuple[int, ...], **start: object) -> None:
    """Every move is legal in the environment, and the last one wins."""
    _, info = env.reset(options=start)
    for action in actions:
        assert info["action_mask"][action]
        _, _, terminated, _, info = env.step(action)
    assert terminated
    assert info["is_success"]


def shuffled(deal: int, start_rank: int, moves: int) -> list[oracle.Position]:
    """The positions of a random game."""
    return oracle.play(oracle.deal(deal, start_rank), moves, random.Random(deal))


def board_of(position: oracle.Position) -> np.ndarray:
    return np.array(oracle.squares(position), dtype=np.uint8)


@pytest.mark.parametrize("case", WON, ids=str)
def test_wins_that_a_plain_search_finds(case: tuple[int, int, int], solver: Solver, env: gym.Env) -> None:
    position = shuffled(*case)[-1]
    assert winnable(position) is True
    solution = solver.solve(board_of(position))
    assert solution.result == SOLVED
    assert_wins(env, solution.actions, board=board_of(position))


@pytest.mark.parametrize("case", LOST, ids=str)
def test_proofs_that_a_plain_search_agrees_with(case: tuple[int, int, int], solver: Solver) -> None:
    position = shuffled(*case)[-1]
    assert winnable(position) is False
    assert solver.solve(board_of(position)).result == UNWINNABLE


@pytest.mark.parametrize("case", [*WON[:4], *LOST], ids=str)
def test_a_position_is_won_if_one_after_it_is(case: tuple[int, int, int], solver: Solver) -> None:
    """On the whole way from a position that can be won to one that cannot, or to the end."""
    for position in shuffled(*case)[-4:]:
        board = board_of(position)
        after = [solver.solve(apply(board, action)[0]).result for action in legal_moves(board)]
        assert set(after) <= {SOLVED, UNWINNABLE}
        assert solver.solve(board).result == (SOLVED if SOLVED in after else UNWINNABLE)


@pytest.mark.parametrize("deal", NEVER_WON)
def test_the_unwinnable_deals_are_proved(deal: int, solver: Solver) -> None:
    solution = solver.solve(deal_board(deal))
    assert (solution.result, solution.actions, solution.limit) == (UNWINNABLE, (), "")
    assert solution.positions > 1000


def test_deals_are_won_in_the_environment(solver: Solver, env: gym.Env) -> None:
    for deal in [*range(1, 101), *HARD]:
        solution = solver.solve(deal_board(deal))
        assert solution.result == SOLVED, deal
        assert 0 < len(solution.actions) < 250
        assert solution.positions >= len(solution.actions)
        assert_wins(env, solution.actions, deal=deal)


@pytest.mark.parametrize("kind", POSITIONS)
def test_set_positions(kind: str, solver: Solver, env: gym.Env) -> None:
    solution = solver.solve(POSITIONS[kind])
    assert solution.result == (UNWINNABLE if kind == "stuck" else SOLVED)
    if solution.actions:
        assert_wins(env, solution.actions, board=POSITIONS[kind])


def test_what_is_over(solver: Solver) -> None:
    won = board_from([""] * 8, (), dict.fromkeys("CDHS", 13))
    assert (solver.solve(won).result, solver.solve(won).actions) == (SOLVED, ())
    stuck = next(end for n in range(1, 50) if oracle.stuck(end := shuffled(n, 0, 300)[-1]))
    solution = solver.solve(board_of(stuck))
    assert (solution.result, solution.positions) == (UNWINNABLE, 1)


@pytest.mark.parametrize("start_rank", range(7, 13))
def test_safe_cards_lie_open_at_the_start(start_rank: int, solver: Solver, env: gym.Env) -> None:
    """They go home with the first move, not before it."""
    boards = [deal_board(n, start_rank) for n in range(1, 25)]
    assert any(autoplay(board)[1] for board in boards)
    for board in boards:
        solution = solver.solve(board)
        assert solution.result == SOLVED
        assert_wins(env, solution.actions, board=board)


def test_no_legal_move_but_safe_cards_home(solver: Solver, env: gym.Env) -> None:
    """Cells full, nothing fits anywhere: the first move has to be an open ace's."""
    columns = [
        "QS KD AC",
        "QC KH 2C",
        "KS QD 3C",
        "KC QH 4C",
        "JS JD TH 5C",
        "JC JH TD 6C",
        "TS 9D 8D 7D 7C",
        "TC 9H 8H",
    ]
    cells, home = ["9S", "9C", "8S", "8C"], {"D": 6, "H": 7, "S": 7, "C": 0}
    board = board_from(columns, cells, home)
    solution = solver.solve(board)
    assert solution.result == SOLVED
    assert_wins(env, solution.actions, board=board)


def permuted(board: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same position with its columns and cells in another order."""
    other = board.copy()
    other[1:] = board[1:, rng.permutation(8)]
    other[0, :4] = board[0, rng.permutation(4)]
    return other


@pytest.mark.parametrize("deal", [1, 617, 781948])
def test_the_order_of_columns_and_cells_does_not_matter(deal: int, solver: Solver, env: gym.Env) -> None:
    rng = np.random.default_rng(deal)
    board = deal_board(deal)
    for action in legal_moves(board)[:2]:  # something into the cells
        board = apply(board, int(action))[0]
    expected = solver.solve(board)
    for _ in range(5):
        solution = solver.solve(permuted(board, rng))
        assert solution.result == expected.result
        if expected.result == UNWINNABLE:
            assert solution.positions == expected.positions, "all of them, whatever their order"


def test_a_position_is_packed_and_unpacked() -> None:
    start, above, codes = np.zeros(CARDS + 1, np.int64), np.zeros(CARDS + 1, np.int64), np.zeros((2, 3), np.uint64)
    links, table = start.copy(), np.zeros(TABLE_WORDS, np.uint64)
    rng, seen = np.random.default_rng(0), {}
    for deal in range(1, 21):
        game = shuffled(deal, deal % 4, 60)
        kernels.read_links(table_of(board_of(game[0])), start)
        for position in game:
            board = board_of(position)
            kernels.read_links(table_of(board), links)
            kernels.pack(links, codes[0])
            kernels._unpack(codes[0], start, above, table)
            unpacked = table[: DEPTH + 1].view(np.uint8).reshape(DEPTH + 1, 8)
            assert sorted(unpacked[1:].T.tolist()) == sorted(board[1:].T.tolist())
            assert sorted(unpacked[0, :4]) == sorted(board[0, :4])
            assert unpacked[0, 4:].tolist() == board[0, 4:].tolist()
            assert np.array_equal(table, table_of(unpacked)), "the words that follow from the cards"
            kernels.read_links(table_of(permuted(board, rng)), links)
            kernels.pack(links, codes[1])
            assert np.array_equal(*codes)
            assert seen.setdefault((deal, codes[0].tobytes()), key(position)) == key(position)
    assert len({(deal, position) for (deal, _), position in seen.items()}) == len(seen) > 300


def same(solver: Solver, board: np.ndarray) -> tuple[object, ...]:
    """All of a solution but its time."""
    solution = solver.solve(board)
    return solution.result, solution.actions, solution.positions


@pytest.mark.parametrize("most", [10_000, 60_000])
def test_what_was_solved_before_makes_no_difference(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory that it left is there already, and where the first try stops does not depend on that."""
    first, *_, proof = module._QUICK_TRIES
    monkeypatch.setattr(module, "_QUICK_TRIES", (replace(first, most=most), proof))
    used = Solver()
    used.solve(deal_board(517776))
    for deal in [617, 1, 781948, 57148]:
        assert same(used, deal_board(deal)) == same(Solver(), deal_board(deal))


@pytest.mark.parametrize("megabytes", [LEAST_MEGABYTES, 3, 5])
def test_memory_is_a_limit(megabytes: int) -> None:
    solver = Solver(megabytes=megabytes)
    solution = solver.solve(deal_board(517776))
    assert (solution.result, solution.actions) == (UNDECIDED, ())
    assert solution.limit == f"memory ({megabytes} MB)"
    most = max(megabytes * 10**6 // 52, 1 << 15)  # three searches
    assert solution.positions < 3 * most
    assert solver.solve(deal_board(1)).result == SOLVED


def test_enough_memory_is_no_limit() -> None:
    assert Solver(megabytes=8).solve(deal_board(517776)).result == UNWINNABLE


def test_the_machine_has_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    solver, resize = Solver(), Search.resize

    def refuse(self: Search, room: int) -> None:
        if room > 1 << 15:
            raise MemoryError
        resize(self, room)

    monkeypatch.setattr(Search, "resize", refuse)
    solution = solver.solve(deal_board(517776))
    assert (solution.result, solution.limit) == (UNDECIDED, "memory (2,048 MB)")
    monkeypatch.undo()
    assert solver.solve(deal_board(517776)).result == UNWINNABLE


def test_time_is_a_limit() -> None:
    began = time.perf_counter()
    solution = Solver(seconds=1e-6).solve(deal_board(517776))
    assert (solution.result, solution.actions, solution.limit) == (UNDECIDED, (), "time (1e-06 s)")
    assert solution.seconds < 5
    assert time.perf_counter() - began < 10
    assert Solver(seconds=60).solve(deal_board(517776)).result == UNWINNABLE


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"seconds": 0}, "greater than 0 seconds, not 0"),
        ({"seconds": -1.5}, "greater than 0 seconds, not -1.5"),
        ({"seconds": float("nan")}, "greater than 0 seconds, not nan"),
        ({"megabytes": LEAST_MEGABYTES - 1}, f"at least {LEAST_MEGABYTES} MB"),
    ],
)
def test_limits_that_are_none(limits: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Solver(**limits)


@pytest.mark.parametrize("board", ["KC", np.zeros((20, 8), np.uint8), {"cols": []}, None])
def test_what_is_no_position(board: object, solver: Solver) -> None:
    with pytest.raises(ValueError, match="FreeCell"):
        solver.solve(board)


def test_short_lines_are_never_longer(solver: Solver, env: gym.Env) -> None:
    short, saved = Solver(short=True), 0
    for deal in [1, 3, 5, 617]:
        quick, solution = solver.solve(deal_board(deal)), short.solve(deal_board(deal))
        assert_wins(env, solution.actions, deal=deal)
        assert len(solution.actions) <= len(quick.actions)
        saved += len(quick.actions) - len(solution.actions)
    assert saved > 20
    assert short.solve(deal_board(781948)).result == UNWINNABLE


def test_a_try_that_does_not_fit_the_memory_leaves_it_to_the_next_one(
    monkeypatch: pytest.MonkeyPatch, env: gym.Env
) -> None:
    first, *_, proof = module._QUICK_TRIES
    other = replace(first, weights=USUAL._replace(move=6).array())
    monkeypatch.setattr(module, "_QUICK_TRIES", (replace(first, most=10**6), other, proof))
    solution = Solver(megabytes=LEAST_MEGABYTES).solve(deal_board(2393))
    assert_wins(env, solution.actions, deal=2393)
    assert 1 << 15 < solution.positions < 1 << 16, "the first has filled it, the second wins"
