"""Beam search against a plain one, and as a player: lines that hold, nothing twice, no game depends on another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from puzzlegym.agents import beam, saved
from puzzlegym.agents.beam import Beam, Game, estimate_beam, search
from puzzlegym.agents.configs import ppo_config
from puzzlegym.agents.evaluation import evaluate
from puzzlegym.agents.lines import legal_masks
from puzzlegym.agents.network_policy import NetworkJudge, arrays_of
from puzzlegym.agents.networks import build
from puzzlegym.agents.policy import load
from puzzlegym.envs.common.rng import Streams
from puzzlegym.envs.freecell import apply, deal_board, is_won
from puzzlegym.envs.freecell.estimate import USUAL
from puzzlegym.scripts.cli import main
from reference import freecell, freecell_search
from reference.freecell_estimate import estimate
from reference.playing import choose
from reference.untrained import save_untrained

UNWINNABLE = 11982


def words(boards: Any) -> np.ndarray:
    return np.ascontiguousarray(boards, dtype=np.uint8).reshape(len(boards), -1).view(np.uint64)


def squares(board: np.ndarray) -> np.ndarray:
    return board.view(np.uint8).reshape(20, 8)


def random_judge(seed: int) -> beam.Judge:
    """Logits from 0 to 10 by a hash of each board."""
    factors = np.random.default_rng(seed).integers(2**40, size=(160, 520))

    def judge(boards: np.ndarray) -> np.ndarray:
        logits = boards.reshape(len(boards), -1).astype(np.int64) @ factors % 1_000_003 / 100_000
        return np.where(legal_masks(boards), logits, -1e8).astype(np.float32)

    return judge


def estimating(boards: np.ndarray) -> np.ndarray:
    """What ``estimate_beam`` goes by, by the plain estimate."""
    scores = np.full((len(boards), 520), -1e8, dtype=np.float32)
    for i, action in zip(*np.nonzero(legal_masks(boards)), strict=True):
        scores[i, action] = -estimate(freecell.from_squares(apply(boards[i], action)[0]), USUAL)
    return scores


def actions_of(policy: Beam, boards: Any) -> list[int]:
    boards = np.asarray(boards, dtype=np.uint8)
    return policy.act(boards, legal_masks(boards), Streams.seeded(range(len(boards)))).tolist()


def played(policy: Beam, deal: int, moves: int = 500, leave_at: int | None = None) -> Iterator[np.ndarray]:
    """The boards of a game, the first and the last one included; at one move the game goes another way."""
    env = gym.make("FreeCell-v0", deal=deal)
    board, info = env.reset()
    yield board
    for number in range(moves):
        mask = info["action_mask"].astype(bool)
        (action,) = policy.act(board[None], mask[None], Streams.seeded([0]))
        assert mask[action]
        if number == leave_at:
            others = mask & (np.arange(520) != action)
            action = choose(others, np.random.default_rng(number))
        board, _, terminated, truncated, info = env.step(action)
        yield board
        if terminated or truncated:
            return


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many games every call of the search was for."""
    calls, inner = [], beam.search

    def noted(boards: np.ndarray, *args: Any) -> list[Game]:
        calls.append(len(boards))
        return inner(boards, *args)

    monkeypatch.setattr(beam, "search", noted)
    return calls


def key(board: np.ndarray) -> object:
    return freecell_search.key(freecell.from_squares(board))


def plain_search(board: np.ndarray, judge: beam.Judge, width: int, depth: int) -> list[set[bytes]]:
    """The boards of every depth, by looking at all moves of all positions in the order of their worth."""
    layer, seen, layers = [(0.0, board)], {key(board)}, list[set[bytes]]()
    while len(layers) < depth and layer and not is_won(layer[-1][1]):
        moves = []
        for value, one in layer:
            legal, logits = legal_masks(one[None])[0], judge(one[None])[0].astype(np.float64)
            worth = value + logits - np.log(np.exp(logits[legal]).sum()) if legal.any() else logits
            moves += [(worth[action], one, action) for action in np.flatnonzero(legal)]
        layer = []
        for worth, one, action in sorted(moves, key=lambda move: -move[0]):
            after = apply(one, action)[0]
            if is_won(after) or key(after) not in seen:
                seen.add(key(after))
                layer.append((worth, after))
            if is_won(after) or len(layer) == width:
                break
        layers.append({after.tobytes() for _, after in layer})
    return layers


@pytest.mark.parametrize("width", [1, 3, 12])
@pytest.mark.parametrize("start_rank", [0, 9])
def test_every_depth_has_the_best_new_positions(width: int, start_rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a width of 1 that is the judge's likeliest move of those that lead to a new position."""
    depth = 8 if width == 12 else 20
    monkeypatch.setattr(beam, "DEPTH_LIMIT", depth)
    for seed in range(3):
        board, judge = deal_board(seed + 1, start_rank), random_judge(seed)
        (game,) = search(words([board]), judge, width)
        found = [before for _, _, before in game._layers[1:]] + [game.boards]
        layers = [{one.tobytes() for one in boards} for boards in found]
        assert layers == plain_search(board, judge, width, depth)
        assert all(len(boards) <= width for boards in found)


def test_the_estimate_is_a_judge() -> None:
    boards = np.array([*played(estimate_beam(1), 5, moves=12)])
    assert np.array_equal(beam._Estimate()(boards), estimating(boards))


@pytest.mark.parametrize(
    ("judge", "width", "adds"),
    [
        (random_judge(0), 2, True),
        (random_judge(1), 30, True),
        (beam._Estimate(), 1, False),
        (beam._Estimate(), 20, False),
    ],
)
def test_lines_are_legal_and_reach_what_they_say(judge: beam.Judge, width: int, adds: bool) -> None:
    deals = [deal_board(number, start_rank) for number in range(1, 6) for start_rank in (0, 8)]
    won = 0
    for game, deal in zip(search(words(deals), judge, width, adds), deals, strict=True):
        boards, actions = game.line()
        assert (len(boards), boards.dtype, actions.dtype) == (len(actions) + 1, np.uint64, np.int64)
        board = deal
        for told, action in zip(boards, actions.tolist(), strict=False):
            assert np.array_equal(squares(told), board)
            board, _, legal = apply(board, action)
            assert legal
        assert np.array_equal(squares(boards[-1]), board)
        assert is_won(board) == game.won
        assert game.over
        won += game.won
    assert won > 0


@pytest.mark.parametrize(("width", "depth"), [(30, 200), (250, 4)])
def test_nothing_is_found_twice_in_a_game(width: int, depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beam, "DEPTH_LIMIT", depth)
    shown: list[object] = []

    def judge(boards: np.ndarray) -> np.ndarray:
        shown.extend(map(key, boards))
        return random_judge(2)(boards)

    (game,) = search(words([deal_board(9)]), judge, width)  # where a move can be taken back
    shown.extend(map(key, map(squares, game.boards)))
    assert len(shown) == len(set(shown)) > 400


def stuck_after_one_move() -> tuple[np.ndarray, int]:
    """A board with several moves, and one of them that leaves none."""
    for seed in range(400):
        env, rng = gym.make("FreeCell-v0"), np.random.default_rng(seed)
        board, info = env.reset(seed=seed)
        over = False
        while not over:
            before, mask, action = board, info["action_mask"], choose(info["action_mask"], rng)
            board, _, over, truncated, info = env.step(action)
            assert not truncated
        others = [apply(before, other)[0] for other in np.flatnonzero(mask) if other != action]
        if any(legal_masks(after[None]).any() for after in others):
            return before, action
    raise AssertionError("no random game ends like this")


def test_a_position_without_a_move_does_not_take_the_places_of_others() -> None:
    board, action = stuck_after_one_move()

    def judge(boards: np.ndarray) -> np.ndarray:
        logits = np.where(legal_masks(boards), 0.0, -1e8)
        logits[[np.array_equal(one, board) for one in boards], action] = 30.0
        return logits.astype(np.float32)

    (game,) = search(words([board]), judge, 16)
    assert len(game.line()[1]) > 1
    assert len(game._layers[1][0]) > 0


def test_wider_beams_win_more() -> None:
    wins = [evaluate("FreeCell-v0", estimate_beam(width), 20).rates["win"].value for width in (1, 6, 32)]
    assert wins[0] < 0.3 < wins[1] < wins[2]
    assert wins[2] > 0.6


def test_a_won_game_is_searched_once(searches: list[int]) -> None:
    policy = estimate_beam(24)
    won = [deal for deal in range(1, 6) if is_won([*played(policy, deal)][-1])]
    assert len(won) > 2
    searches.clear()
    assert all(is_won([*played(policy, deal)][-1]) for deal in won)
    assert searches == [], "its plans are known"


def test_a_game_that_left_its_plan_is_searched_anew(searches: list[int]) -> None:
    policy = estimate_beam(24)
    assert is_won([*played(policy, 1)][-1])
    assert len(searches) == 1
    *_, last = played(policy, 1, leave_at=4)
    assert len(searches) == 2
    assert is_won(last)


@pytest.mark.parametrize("depth", [2, 5])
def test_without_a_new_search_no_board_comes_twice(
    depth: int, searches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plans may cross each other, but never lead round in circles."""
    monkeypatch.setattr(beam, "DEPTH_LIMIT", depth)
    for seed in range(6):
        policy, since, known = Beam("beam", random_judge(seed), 1), set[bytes](), -1
        searches.clear()
        for board in played(policy, UNWINNABLE, moves=120):
            if len(searches) > known:
                since, known = set(), len(searches)
            assert board.tobytes() not in since
            since.add(board.tobytes())


@pytest.mark.parametrize("policy", [estimate_beam(2), Beam("beam", random_judge(3), 4)], ids=["estimate", "judge"])
def test_lost_games_are_played_on(policy: Beam) -> None:
    boards = [*played(policy, UNWINNABLE)]
    assert len(boards) > 10
    assert not is_won(boards[-1])


def test_moves_are_legal_by_the_mask_alone() -> None:
    """Wrappers may mask out what the plan wants: then a new search may find another move, or any is made."""
    policy, others = estimate_beam(4), 0
    for board in [*played(policy, 2)][:-1]:
        mask, planned, anew = (
            legal_masks(board[None]),
            actions_of(policy, [board]),
            actions_of(estimate_beam(4), [board]),
        )
        mask[0, planned] = False
        if mask.any():
            action = policy.act(board[None], mask, Streams.seeded([0])).tolist()
            assert mask[0, action].all()
            assert anew in (planned, action)
            others += anew != planned
    assert others


def test_neither_the_batch_nor_its_order_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    boards = [board for deal in range(1, 8) for board in [*played(estimate_beam(2), deal, moves=20)][::10]]
    judge = random_judge(4)
    for make in (lambda: estimate_beam(5), lambda: Beam("beam", judge, 3)):
        alone = [actions_of(make(), [board])[0] for board in boards]
        for at_once in (128, 4):
            monkeypatch.setattr(beam, "_GAMES_AT_ONCE", at_once)
            assert actions_of(make(), boards) == alone
            assert actions_of(make(), boards[::-1]) == alone[::-1]


def test_old_plans_are_forgotten_and_those_in_use_are_kept(
    searches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beam, "_MOST_PLANS", 200)
    policy, wins, forgot = estimate_beam(24), 0, 0
    for deal in range(1, 13):
        searches.clear()
        before = set(policy._plans)
        won = is_won([*played(policy, deal)][-1])
        assert len(searches) == 1 or not won
        assert len(policy._plans) < 500
        wins, forgot = wins + won, forgot + bool(before - set(policy._plans))
    assert wins > 5
    assert forgot > 2


@pytest.mark.parametrize("make", [estimate_beam, lambda width: load("FreeCell-v0", "beam", width=width)])
@pytest.mark.parametrize("width", [0, -3])
def test_a_width_below_one_is_refused(make: Any, width: int) -> None:
    with pytest.raises(ValueError, match=rf"^the width must be 1 or more, not {width}$"):
        make(width)


def test_the_named_agent() -> None:
    assert load("FreeCell-v0", "beam").width == beam.WIDTH
    policy = load("FreeCell-v0", "beam", width=4)
    assert (policy.name, policy.width) == ("beam", 4)
    assert evaluate("FreeCell-v0", policy, 2).width == 4


def save_network(folder: Path) -> Path:
    """A run folder with a small network for FreeCell that has learned nothing."""
    config = replace(ppo_config("FreeCell-v0"), network="card_net", network_arguments={"width": 8, "hidden": 8})
    torch.manual_seed(0)
    card = {"env_id": config.env_id, "algorithm": "masked PPO", "config": config.as_dict()}
    folder.mkdir()
    saved.save(folder / saved.FILE, card, arrays_of(build(config.network, config.network_arguments)), {})
    return folder


def test_a_network_judges(tmp_path: Path) -> None:
    path = str(save_network(tmp_path / "run"))
    narrow, policy = load("FreeCell-v0", path, width=1), load("FreeCell-v0", path, sample=False)
    boards = np.array([*played(narrow, 3, moves=30)])
    scores = NetworkJudge(policy.network)(boards)
    assert np.array_equal(scores > beam._DEAD, legal_masks(boards))
    assert np.array_equal(scores.argmax(1), policy.act(boards, legal_masks(boards), Streams.seeded(range(31))))
    first = narrow.act(boards[:1], legal_masks(boards[:1]), Streams.seeded([0]))
    assert first == scores[0].argmax(), "nothing is old yet"
    assert (narrow.name, narrow.width) == (path, 1)


@pytest.mark.parametrize(
    ("env_id", "agent", "choice", "message"),
    [
        ("FreeCell-v0", "random", {}, "random makes no beam search, so it has no width"),
        ("FreeCell-v0", "solver", {}, "solver makes no beam search, so it has no width"),
        ("FreeCell-v0", "beam", {"sample": True}, "beam has no choice between sampled and most likely moves"),
        ("FreeCell-v0", "run", {"sample": False}, "give a width, or how to choose moves, not both"),
        ("FreeCell-v0", "run", {"depth": 2}, "does not search, so it has no depth"),
        ("Puzzle2048-v0", "ppo", {}, "ppo makes no beam search, so it has no width"),
        ("Puzzle2048-v0", "expectimax", {}, "expectimax makes no beam search, so it has no width"),
        (
            "Puzzle2048-v0",
            "run",
            {},
            "a beam is for FreeCell-v0, where nothing is left to chance, not for Puzzle2048-v0",
        ),
    ],
)
def test_who_has_no_width_says_so(
    env_id: str, agent: str, choice: dict[str, Any], message: str, tmp_path: Path
) -> None:
    if agent == "run":
        folder = tmp_path / agent
        agent = str(save_network(folder) if env_id == "FreeCell-v0" else save_untrained(folder, True))
    with pytest.raises(ValueError, match=message) as error:
        load(env_id, agent, width=4, **choice)
    assert "\n" not in str(error.value)


def test_evaluation_tells_the_width(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["evaluate", "FreeCell-v0", "--agent", "beam", "--episodes", "5"]
    assert main([*argv, "--width", "4", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["width"], result["episodes"], result["illegal_moves"]) == (4, 5, 0)
    assert "sampled" not in result
    assert main([*argv, "--width", "4"]) == 0
    assert "Beam search: beam (width 4)." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ["FreeCell-v0", "--agent", "random", "greedy"],
            "--width is for FreeCell's networks and beam, and none of these",
        ),
        (["Puzzle2048-v0", "--agent", "ppo"], "--width is for FreeCell's networks and beam, and none of these"),
        (["FreeCell-v0", "--agent", "beam", "--width", "0"], "the width must be 1 or more, not 0"),
    ],
)
def test_evaluation_refuses_in_one_line(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    width = [] if "--width" in argv else ["--width", "4"]
    assert main(["evaluate", *argv, *width, "--episodes", "2"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err
