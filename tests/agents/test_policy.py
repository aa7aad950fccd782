"""Finding players, and what the named ones do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from puzzlegym import PUZZLES
from puzzlegym.agents.baselines import Greedy2048, GreedyFreeCell, Random, draw
from puzzlegym.agents.errors import AgentError
from puzzlegym.agents.policy import load, named_agents, samples
from puzzlegym.envs.common.rng import Streams
from puzzlegym.envs.freecell import board_from, card_id, encode_action
from puzzlegym.envs.freecell import legal_mask as freecell_mask
from puzzlegym.envs.puzzle2048 import Action, legal_moves, move
from reference.untrained import save_untrained

NAMED = [(env_id, name) for env_id in PUZZLES for name in named_agents(env_id)]


@pytest.mark.parametrize(("env_id", "name"), NAMED)
def test_named_agents_play_legal_moves_to_the_end(env_id: str, name: str) -> None:
    policy = load(env_id, name)
    assert policy.name == name
    envs = gym.make_vec(env_id, num_envs=8, autoreset_mode="SameStep")
    observations, _ = envs.reset(seed=0)
    rng = Streams.seeded(range(8))
    for _ in range(150):
        masks = envs.action_masks()
        before = observations.copy()
        actions = policy.act(observations, masks, rng)
        assert actions.dtype == np.int64
        assert actions.shape == (8,)
        assert masks[np.arange(8), actions].all()
        assert np.array_equal(observations, before), "a policy must not write into what it is shown"
        observations, _, _, _, infos = envs.step(actions)
        assert np.all(infos["legal"])


@pytest.mark.parametrize(("env_id", "name"), NAMED)
def test_a_game_does_not_depend_on_the_others_in_the_batch(env_id: str, name: str) -> None:
    envs = gym.make_vec(env_id, num_envs=6, autoreset_mode="SameStep")
    observations, _ = envs.reset(seed=3)
    masks = envs.action_masks()
    policy = load(env_id, name)
    together = policy.act(observations, masks, Streams.seeded(range(6)))
    alone = [policy.act(observations[[i]], masks[[i]], Streams.seeded([i]))[0] for i in range(6)]
    assert together.tolist() == alone


@pytest.mark.parametrize("env_id", list(PUZZLES))
def test_unknown_agent_lists_the_accepted_ones(env_id: str) -> None:
    with pytest.raises(ValueError, match="or a path to a trained agent") as error:
        load(env_id, "nobody")
    assert ", ".join(named_agents(env_id)) in str(error.value)
    assert "\n" not in str(error.value)
    assert "nobody" in str(error.value)


@pytest.mark.parametrize("name", ["", "no/such/folder", "agent.zip"])
def test_missing_path_is_an_unknown_agent(name: str) -> None:
    with pytest.raises(ValueError, match="path to a trained agent"):
        load("Puzzle2048-v0", name)


def test_unknown_id_lists_the_ids() -> None:
    with pytest.raises(ValueError, match=r"'Chess-v0'.*Puzzle2048-v0 or FreeCell-v0"):
        load("Chess-v0", "random")


@pytest.mark.parametrize("by_card", [True, False])
def test_networks_draw_their_moves_or_make_the_most_likely_ones(by_card: bool, tmp_path: Path) -> None:
    path = str(save_untrained(tmp_path / "run", by_card))
    boards, masks = np.ones((200, 4, 4), np.uint8), np.ones((200, 4), np.bool_)
    for sample, drawn in (None, by_card), (True, True), (False, False):
        policy = load("Puzzle2048-v0", path, sample=sample)
        actions = policy.act(boards, masks, Streams.seeded(range(200)))
        assert policy.sample is drawn
        assert (len(set(actions.tolist())) > 1) is drawn
    assert load("Puzzle2048-v0", "ppo", sample=True).sample
    assert not load("Puzzle2048-v0", "ppo").sample


def test_who_has_no_choice_of_moves_says_so(tmp_path: Path) -> None:
    assert samples("Puzzle2048-v0", str(save_untrained(tmp_path / "run", True)))
    for env_id, name in NAMED:
        if not samples(env_id, name):
            with pytest.raises(ValueError, match=rf"^{name} has no choice between sampled and most likely moves"):
                load(env_id, name, sample=False)
    assert [name for env_id, name in NAMED if env_id == "Puzzle2048-v0" and samples(env_id, name)] == ["ppo"]


def test_folder_without_agent(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"agent\.zip is missing"):
        load("Puzzle2048-v0", str(tmp_path))


def test_corrupt_agent(tmp_path: Path) -> None:
    (tmp_path / "agent.zip").write_bytes(b"this is not a zip file")
    for path in (tmp_path, tmp_path / "agent.zip"):
        with pytest.raises(AgentError) as error:
            load("Puzzle2048-v0", str(path))
        assert "\n" not in str(error.value)


def test_baselines_load_no_torch() -> None:
    code = "import sys; from puzzlegym.agents import policy; policy.load('FreeCell-v0', 'greedy'); print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "stable_baselines3", "matplotlib", "rich"} & set(out.stdout.split())


def test_draw_follows_the_weights() -> None:
    rng = Streams.seeded(range(20_000))
    weights = np.tile([0.0, 1.0, 0.0, 3.0], (20_000, 1))
    counts = np.bincount(draw(weights, rng), minlength=4)
    assert counts[[0, 2]].tolist() == [0, 0]
    assert counts[3] / 20_000 == pytest.approx(0.75, abs=0.015)  # 5 standard deviations


def test_draw_survives_the_largest_uniform_number() -> None:
    class Edge(Streams):
        def uniform(self) -> np.ndarray:
            return np.full(2, np.nextafter(1.0, 0.0))

    weights = np.array([[1.0, 0.0], [1e-300, 0.0]])
    assert draw(weights, Edge(np.zeros(2, dtype=np.uint64))).tolist() == [0, 0]


def test_random_is_uniform_over_legal_moves() -> None:
    n = 9_000
    masks = np.tile([True, False, True, True], (n, 1))
    counts = np.bincount(Random().act(np.zeros((n, 4, 4), np.uint8), masks, Streams.seeded(range(n))), minlength=4)
    assert counts[1] == 0
    assert np.all(np.abs(counts[[0, 2, 3]] - n / 3) < 5 * np.sqrt(n * 2 / 9))


def test_greedy_2048_takes_the_largest_gain_and_then_the_corner() -> None:
    rng = np.random.default_rng(0)
    boards = rng.integers(0, 5, (300, 4, 4)).astype(np.uint8)
    masks = np.array([legal_moves(board) for board in boards])
    boards, masks = boards[masks.any(axis=1)], masks[masks.any(axis=1)]
    actions = Greedy2048().act(boards, masks, Streams.seeded(range(len(boards))))
    for board, mask, action in zip(boards, masks, actions, strict=True):
        gains = {way: move(board, way)[1] for way in Action if mask[way]}
        best = [way for way in Greedy2048.preference if gains.get(way, -1) == max(gains.values())]
        assert action == best[0]


def test_greedy_2048_sees_merges_of_the_largest_tiles() -> None:
    board = np.zeros((4, 4), np.uint8)
    board[0] = [16, 16, 3, 3]
    board[1, 0] = 1
    action = Greedy2048().act(board[None], legal_moves(board)[None], Streams.seeded([0]))[0]
    assert action == Action.LEFT  # 131072 by left or right; left comes first


def _greedy_freecell(board: np.ndarray, n: int = 200) -> np.ndarray:
    boards, masks = np.repeat(board[None], n, axis=0), np.repeat(freecell_mask(board)[None], n, axis=0)
    return GreedyFreeCell().act(boards, masks, Streams.seeded(range(n)))


def test_greedy_freecell_sends_cards_home() -> None:
    columns = ["KC QD JC TD", "KD QC JD TC", "KH QS JH TS", "KS QH JS TH", "9C 9D", "9H 9S", "8C", "8D 8H 8S"]
    board = board_from(columns, [], dict.fromkeys("CDHS", 7))
    actions = _greedy_freecell(board)
    home = {encode_action(card_id(name), 9) for name in ("8C", "8S")}
    assert np.mean([int(a) in home for a in actions]) > 0.7


def test_greedy_freecell_does_not_shift_whole_columns() -> None:
    """Columns 6-8 are empty: moving the lone kings there changes nothing."""
    columns = ["KC", "KD", "KH QS", "KS QH", "QC QD", "", "", ""]
    board = board_from(columns, [], dict.fromkeys("CDHS", 11))
    moved = {int(a) // 10 for a in _greedy_freecell(board)}
    assert not moved & {card_id("KC"), card_id("KD")}
