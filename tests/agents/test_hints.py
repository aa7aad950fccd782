"""Hints: a legal move that leads somewhere new, or none."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator

import gymnasium as gym
import numpy as np
import pytest
import torch
from puzzlegym import PUZZLES
from puzzlegym.agents.baselines import GreedyFreeCell
from puzzlegym.agents.hints import HINTS, hint
from puzzlegym.agents.networks.suit_views import SuitViews
from puzzlegym.agents.policy import load
from puzzlegym.envs.common.rng import Streams
from puzzlegym.envs.freecell import (
    HOME,
    State,
    apply,
    board_from,
    card_id,
    deal_board,
    encode_action,
    is_won,
    legal_mask,
    legal_moves,
    position_key,
)
from puzzlegym.envs.puzzle2048 import State as State2048
from puzzlegym.envs.puzzle2048 import legal_moves as legal_2048
from reference import freecell as slow
from reference import game2048

FREECELL, PUZZLE2048 = "FreeCell-v0", "Puzzle2048-v0"
Game = list[np.ndarray]


def position(board: np.ndarray, settle: bool = True) -> tuple[object, ...]:
    """A board up to the order of columns and of cells, after its safe cards went home."""
    here = slow.from_squares(board)
    if settle:
        slow.send_safe_cards(here)
    cells = sorted(card for card in here.cells if card is not None)
    return tuple(sorted(map(tuple, here.columns))), tuple(cells), tuple(here.home)


def random_game(board: np.ndarray, moves: int, seed: int) -> Game:
    rng, game = random.Random(seed), [board]
    while len(game) < moves and (choices := legal_moves(game[-1]).tolist()):
        game.append(apply(game[-1], rng.choice(choices))[0])
    return game


def greedy_game(board: np.ndarray, moves: int, seed: int) -> Game:
    stream, game = Streams.seeded([seed]), [board]
    while len(game) < moves and (mask := legal_mask(game[-1])).any():
        action = GreedyFreeCell().act(game[-1][None], mask[None], stream)[0]
        game.append(apply(game[-1], int(action))[0])
    return game


def followed(board: np.ndarray) -> Game:
    """The boards of a game that follows the hints until there is none (138 moves in the longest of deals 1 to 100)."""
    game = [board]
    while (action := hint(FREECELL, game[-1], game[:-1])) is not None and len(game) < 300:
        board, _, legal = apply(game[-1], action)
        assert legal
        game.append(board)
    return game


@pytest.fixture(scope="module")
def games() -> list[Game]:
    """Full deals and easier ones, whose columns get empty sooner."""
    boards = [deal_board(deal, start_rank=max(0, deal - 2)) for deal in range(1, 11)]
    return [play(board, 60, seed) for seed, board in enumerate(boards) for play in (random_game, greedy_game)]


def moments(games: list[Game]) -> Iterator[tuple[np.ndarray, Game]]:
    for game in games:
        for i, board in enumerate(game):
            yield board, game[:i]


def shifts_a_column(board: np.ndarray, action: int) -> bool:
    card, to = divmod(action, 10)
    return to < 8 and board[1, to] == 0 and card + 1 in board[1]


def test_freecell_hints_are_legal_and_lead_to_a_new_position(games: list[Game]) -> None:
    hints = backs = shifts = 0
    for board, before in moments(games):
        legal = legal_moves(board).tolist()
        shifts += any(shifts_a_column(board, action) for action in legal)
        seen = {position(one) for one in [*before, board]}
        new = {action for action in legal if action % 10 == HOME or position(apply(board, action)[0]) not in seen}
        backs += len(new) < len(legal)
        action = hint(FREECELL, board, before)
        assert (action is None) == (not new)
        if action is not None:
            assert action in new
            assert not shifts_a_column(board, action)
            hints += 1
    assert min(hints, backs) > 200
    assert shifts > 50


def test_a_shifted_column_is_not_even_the_last_resort(games: list[Game]) -> None:
    found = 0
    for board, _ in moments(games):
        legal = legal_moves(board).tolist()
        others = [action for action in legal if not shifts_a_column(board, action)]
        if len(others) < len(legal) and not any(action % 10 == HOME for action in legal):
            found += 1
            assert hint(FREECELL, board, [apply(board, action)[0] for action in others]) is None
    assert found > 20


def test_freecell_hints_are_the_favourites_of_the_shipped_network(games: list[Game]) -> None:
    """Of the network as torch runs it, looking at the board as it is."""
    network = load(FREECELL, "learned").network
    network = network.network if isinstance(network, SuitViews) else network
    for board, _ in moments(games):
        action, mask = hint(FREECELL, board), legal_mask(board)
        if action is not None:
            with torch.no_grad():
                logits, _ = network(torch.as_tensor(board[None]), torch.as_tensor(mask[None]))
            scores = logits[0].numpy()
            better = np.flatnonzero(scores > scores[action] + 1e-3).tolist()
            assert all(position(apply(board, other)[0]) == position(board) for other in better)


@pytest.mark.parametrize("deal", range(1, 21))
def test_following_the_hints_ends_without_a_loop(deal: int) -> None:
    game = followed(deal_board(deal))
    positions = [position(board, settle=False) for board in game]
    assert len(set(positions)) == len(positions) > 5


def test_following_the_hints_wins_some_deals() -> None:
    assert sum(is_won(followed(deal_board(deal))[-1]) for deal in range(1, 31)) >= 8  # 42 of deals 1 to 100


def test_no_hint_without_a_move_or_after_the_win() -> None:
    won = board_from([""] * 8, [], dict.fromkeys("CDHS", 13))
    assert hint(FREECELL, won) is None
    assert hint(PUZZLE2048, [[1, 2, 1, 2], [2, 1, 2, 1], [1, 2, 1, 2], [2, 1, 2, 1]]) is None


def test_a_safe_card_may_be_sent_home() -> None:
    """Only so does a position that was set, or one without autoplay, get on."""
    last = board_from(["KC", *[""] * 7], [], {"C": 12, "D": 13, "H": 13, "S": 13})
    assert hint(FREECELL, last, [last]) == encode_action(card_id("KC"), HOME)


def test_the_key_tells_positions_apart_but_not_the_order(games: list[Game]) -> None:
    boards = [board for board, _ in moments(games)]
    assert len({position_key(board) for board in boards}) == len({position(board) for board in boards})
    for board in boards:
        mixed = board[:, np.random.default_rng(0).permutation(8)]
        mixed[0] = [*board[0, [2, 0, 3, 1]], *board[0, 4:]]
        assert position_key(mixed) == position_key(board)


def test_2048_hints_are_moves_of_the_shipped_network() -> None:
    rng = random.Random(0)
    boards = [b for _ in range(6) for b in game2048.play(game2048.start(rng), 60, rng) if any(game2048.legal(b))]
    assert len(boards) > 200
    array = np.array(boards, dtype=np.uint8).reshape(-1, 4, 4)
    masks = np.array([legal_2048(board) for board in array])
    expected = load(PUZZLE2048, "ntuple", depth=3).act(array, masks, Streams.seeded(range(len(array))))
    assert [hint(PUZZLE2048, board, array[:i]) for i, board in enumerate(array)] == expected.tolist()


def test_boards_in_every_form() -> None:
    array, text = deal_board(7), str(State(deal_board(7).tobytes()))
    assert hint(FREECELL, array) == hint(FREECELL, text) == hint(FREECELL, State.parse(text), [text])
    flat = [1, 1, *[0] * 14]
    assert hint(PUZZLE2048, flat) == hint(PUZZLE2048, State2048(tuple(flat))) == hint(PUZZLE2048, "2 2" + " ." * 14)


@pytest.mark.parametrize("env_id", PUZZLES)
def test_every_puzzle_gives_hints_at_its_start(env_id: str) -> None:
    board, info = gym.make(env_id).reset(seed=0)
    action = hint(env_id, board)
    assert type(action) is int
    assert info["action_mask"][action]


def test_a_puzzle_without_hints_gives_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(HINTS, FREECELL)
    assert hint(FREECELL, deal_board(1)) is None


@pytest.mark.parametrize(("env_id", "board"), [("Chess-v0", None), (FREECELL, [1, 2]), (PUZZLE2048, "2 3")])
def test_bad_input_is_one_line(env_id: str, board: object) -> None:
    with pytest.raises(ValueError, match=r"Puzzle2048-v0 or FreeCell-v0|a FreeCell board is|a 2048 board") as error:
        hint(env_id, board)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("env_id", "limit"), [(FREECELL, 0.05), (PUZZLE2048, 0.1)])
def test_a_hint_is_quick(env_id: str, limit: float) -> None:
    env = gym.make(env_id)
    board, _ = env.reset(seed=0)
    hint(env_id, board)  # compiles
    times = []
    for _ in range(5):
        started = time.process_time()
        hint(env_id, board, [board] * 200)
        times.append(time.process_time() - started)
    assert min(times) < limit


def test_hints_load_no_learning_library() -> None:
    code = "import sys; import puzzlegym.agents.hints; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "stable_baselines3", "matplotlib", "rich"} & set(out.stdout.split())
