"""Whole games of a batch on threads against the slow oracles: every game, at every step, in every autoreset mode."""

from __future__ import annotations

import dataclasses

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from puzzlegym.envs.freecell import FreeCellVectorEnv, encode_action
from puzzlegym.envs.puzzle2048 import Puzzle2048VectorEnv
from reference import freecell, game2048
from reference.playing import choose_all

every_mode = pytest.mark.parametrize("mode", list(AutoresetMode))
some_threads = pytest.mark.parametrize("num_threads", [2, 3])


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """No batch is too small for a part of its own to every row."""
    for kind in (Puzzle2048VectorEnv, FreeCellVectorEnv):
        monkeypatch.setattr(kind, "puzzle", dataclasses.replace(kind.puzzle, rows_per_thread=1))


class Games2048:
    """What 2048 may show, game by game."""

    def __init__(self, n, limit):
        self.boards, self.scores, self.steps, self.limit = [()] * n, [0] * n, [0] * n, limit
        self.seen = set()

    def set(self, i, board):
        self.boards[i], self.scores[i], self.steps[i] = board, 0, 0

    def begin(self, i, obs, info):
        board = tuple(obs.ravel().tolist())
        tiles = [tile for tile in board if tile]
        assert len(tiles) == 2
        assert set(tiles) <= {1, 2}
        self.set(i, board)
        self.told(i, info, True)

    def play(self, i, action, obs, reward, ended, info):
        board, now = self.boards[i], tuple(obs.ravel().tolist())
        after, points, legal = game2048.move(board, action)
        assert now in game2048.spawns(after) if legal else now == board
        self.boards[i], self.scores[i], self.steps[i] = now, self.scores[i] + points, self.steps[i] + 1
        assert reward == points
        assert ended == (game2048.is_over(now), self.steps[i] == self.limit)
        self.told(i, info, legal)
        self.seen |= {("made", tile) for tile in now if now.count(tile) > board.count(tile)}
        self.seen |= {"over"} if ended[0] else set() if legal else {"illegal"}

    def told(self, i, info, legal):
        board = self.boards[i]
        assert info == {
            "action_mask": game2048.legal(board),
            "legal": legal,
            "score": self.scores[i],
            "max_tile": 2 ** max(board),
            "is_success": max(board) >= 11,
        }


class GamesFreeCell:
    """What FreeCell may show, game by game, after the first one the same deal again and again."""

    def __init__(self, deals, start_ranks, autoplay, limit):
        self.deals, self.start_ranks, self.autoplay, self.limit = deals, start_ranks, autoplay, limit
        self.positions, self.moves, self.steps = [None] * len(deals), [0] * len(deals), [0] * len(deals)
        self.deal = [0] * len(deals)  # of the game that is played now
        self.seen = set()

    def begin(self, i, obs, info, deal=None):
        self.deal[i] = deal or self.deals[i]
        self.positions[i], self.moves[i], self.steps[i] = freecell.deal(self.deal[i], self.start_ranks[i]), 0, 0
        self.told(i, obs, info, True)

    def play(self, i, action, obs, reward, ended, info):
        move, went = divmod(action, 10), []
        legal = move in freecell.legal(self.positions[i])
        if legal:
            self.positions[i], went = freecell.apply(self.positions[i], *move, self.autoplay)
        self.moves[i], self.steps[i] = self.moves[i] + legal, self.steps[i] + 1
        assert reward == len(went)
        won, stuck = freecell.won(self.positions[i]), freecell.stuck(self.positions[i])
        assert ended == (won or stuck, self.steps[i] == self.limit)
        self.told(i, obs, info, legal)
        kinds = {"won": won, "stuck": stuck, "illegal": not legal, "safe cards": len(went) > 1}
        self.seen |= {kind for kind, happened in kinds.items() if happened}

    def told(self, i, obs, info, legal):
        position = self.positions[i]
        assert obs.tolist() == freecell.squares(position)
        mask = np.zeros(520, dtype=int)
        mask[[encode_action(*move) for move in freecell.legal(position)]] = 1
        assert info == {
            "action_mask": mask.tolist(),
            "legal": legal,
            "deal": self.deal[i],
            "cards_home": sum(position.home),
            "moves": self.moves[i],
            "is_success": freecell.won(position),
        }


def info_of(infos, i):
    """The info dict of one game, as plain Python values."""
    keys = [key for key in infos if not key.startswith(("_", "final_"))]
    assert all(infos["_" + key][i] for key in keys)
    return {key: infos[key][i].tolist() for key in keys}


def play_all(venv, games, steps, seed):
    """Random moves in a started batch, followed by ``games``; what was seen."""
    mode, rng, pending = venv.metadata["autoreset_mode"], np.random.default_rng(seed), np.zeros(venv.num_envs, bool)
    for _ in range(steps):
        actions = choose_all(venv.action_masks(), rng, illegal=0.15)
        obs, rewards, *ends, infos = venv.step(actions)
        ended = ends[0] | ends[1]
        for i in range(venv.num_envs):
            if pending[i]:
                assert (rewards[i], ends[0][i], ends[1][i]) == (0, False, False)
                games.begin(i, obs[i], info_of(infos, i))
                continue
            begun = ended[i] and mode == AutoresetMode.SAME_STEP
            shown, info = (infos["final_obs"][i], infos["final_info"]) if begun else (obs[i], infos)
            games.play(i, int(actions[i]), shown, rewards[i], (ends[0][i], ends[1][i]), info_of(info, i))
            if begun:
                games.begin(i, obs[i], info_of(infos, i))
        pending = ended if mode == AutoresetMode.NEXT_STEP else pending
        if mode == AutoresetMode.DISABLED and ended.any():
            obs, infos = venv.reset(options={"reset_mask": ended})
            for i in np.flatnonzero(ended):
                games.begin(i, obs[i], info_of(infos, i))
    return games.seen


BOARDS_2048 = [
    (16, 16, 15, 15, 1, 2, 3, 4, 4, 3, 2, 1, 1, 2, 3, 4),  # full; makes 131072 and 65536 in one move
    (15, 15, 15, 15, 14, 14, 14, 14) + (0,) * 8,
    (15, 14, 13, 12, 15, 14, 13, 12, 1, 2, 3, 4, 5, 6, 7, 8),  # up and down
    (17, 16, 15, 14, 10, 11, 12, 13, 9, 8, 7, 6, 2, 2, 4, 5),  # the largest board there is, nearly
    (17, 0, 0, 0, 0, 16, 0, 0, 0, 0, 14, 0, 0, 0, 0, 14),
    (1, 15, 1, 15) * 2 + (1, 1, 1, 1) * 2,
    (16, 15, 15, 0) + (1, 1, 0, 0) * 3,
    (0, 16, 0, 16, 15, 0, 0, 0, 15) + (0,) * 7,
    (14, 14, 15, 16, 1, 0, 0, 1) + (0,) * 8,
]


def boards_with_large_tiles(count, seed):
    """Random boards of few kinds of tiles, 32768, 65536 and 131072 among them, that are not over."""
    rng, boards = np.random.default_rng(seed), []
    alphabets = [(0, 14, 15, 16), (0, 15, 16, 17), (0, 1, 15, 16), (1, 2, 15), range(18), (0, 1, 2)]
    while len(boards) < count:
        tiles = rng.choice(alphabets[len(boards) % len(alphabets)], size=16)
        while np.sum(2.0**tiles) > 262_000:  # more than a game can have
            tiles[tiles.argmax()] = rng.integers(3)
        board = tuple(tiles.tolist())
        if any(board) and not game2048.is_over(board):
            boards.append(board)
    return boards


@every_mode
@some_threads
def test_2048(mode, num_threads):
    boards = BOARDS_2048 + boards_with_large_tiles(28, seed=num_threads)
    n, limit = len(boards), 45
    assert n % 2 > 0
    assert n % 3 > 0
    venv = gym.make_vec(
        "Puzzle2048-v0", num_envs=n, max_episode_steps=limit, autoreset_mode=mode, num_threads=num_threads
    )
    obs, infos = venv.reset(seed=num_threads, options={"board": np.reshape(boards, (n, 4, 4))})
    games = Games2048(n, limit)
    for i, board in enumerate(boards):
        assert tuple(obs[i].ravel().tolist()) == board
        games.set(i, board)
        games.told(i, info_of(infos, i), True)
    seen = play_all(venv, games, 60, seed=1)
    assert seen >= {"over", "illegal", ("made", 15), ("made", 16), ("made", 17)}


@some_threads
def test_2048_from_the_start_to_the_end(num_threads):
    venv = gym.make_vec("Puzzle2048-v0", num_envs=7, autoreset_mode="SameStep", num_threads=num_threads)
    obs, infos = venv.reset(seed=num_threads)
    games = Games2048(7, None)
    for i in range(7):
        games.begin(i, obs[i], info_of(infos, i))
    assert play_all(venv, games, 200, seed=2) >= {"over", "illegal", ("made", 6)}


DEALS = [1, 2, 617, 1941, 11982, 25904, 32000, 1_000_000, 2**31 - 1, 3, 164]
START_RANKS = [0, 0, 0, 0, 2, 0, 5, 9, 11, 12, 7]


@every_mode
@some_threads
@pytest.mark.parametrize("autoplay", [True, False])
def test_freecell(mode, num_threads, autoplay):
    limit = 70
    venv = gym.make_vec(
        "FreeCell-v0",
        num_envs=len(DEALS),
        max_episode_steps=limit,
        autoreset_mode=mode,
        num_threads=num_threads,
        autoplay=autoplay,
    )
    venv.set_attr("deal", DEALS)
    venv.set_attr("start_rank", START_RANKS)
    games = GamesFreeCell(DEALS, START_RANKS, autoplay, limit)
    for options, deals in (({}, DEALS), ({"deal": DEALS[::-1]}, DEALS[::-1])):
        obs, infos = venv.reset(seed=0, options=options)
        for i, deal in enumerate(deals):
            games.begin(i, obs[i], info_of(infos, i), deal)
    seen = play_all(venv, games, 80, seed=3)
    assert seen == {"won", "stuck", "illegal"} | ({"safe cards"} if autoplay else set())


@some_threads
def test_freecell_with_autoplay_in_some_games(num_threads):
    """Each game by its own row of arguments: every second game is won by one move, the others go on."""
    home = dict.fromkeys("CDHS", 12)
    board = {"cols": ["KC", "KD", "KH", "KS", "", "", "", ""], "cells": [], "home": home}
    venv = gym.make_vec("FreeCell-v0", num_envs=7, num_threads=num_threads)
    autoplay = [i % 2 == 0 for i in range(7)]
    venv.set_attr("autoplay", autoplay)
    venv.reset(seed=0, options={"board": board})
    actions = [encode_action(freecell.card("K" + "CDHS"[i % 4]), freecell.HOME) for i in range(7)]
    _, rewards, terminated, _, infos = venv.step(np.array(actions))
    assert rewards.tolist() == [4 if alone else 1 for alone in autoplay]
    assert terminated.tolist() == infos["is_success"].tolist() == autoplay
