"""Every puzzle draws itself as text: a plain string, in colour unless NO_COLOR says otherwise."""

from __future__ import annotations

import re

import gymnasium as gym
import numpy as np
import pytest
from puzzlegym.envs.registry import PUZZLES
from reference.playing import choose_all, middle_of_a_game, play

every_puzzle = pytest.mark.parametrize("puzzle_id", PUZZLES)
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(autouse=True)
def _colours(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)


@every_puzzle
def test_ansi_is_a_coloured_string(puzzle_id):
    env = middle_of_a_game(puzzle_id, render_mode="ansi")
    text = env.render()
    assert type(text) is str
    assert text == env.render(), "looking changes nothing"
    assert ESCAPE.search(text)
    for line in text.splitlines():
        assert "\x1b" not in line or line.rstrip().endswith("\x1b[0m") or "\x1b[0m" in line
    assert "\x1b" not in ESCAPE.sub("", text)


@every_puzzle
def test_no_color_takes_the_colours_and_nothing_else(puzzle_id, monkeypatch):
    env = middle_of_a_game(puzzle_id, render_mode="ansi")
    coloured = env.render()
    monkeypatch.setenv("NO_COLOR", "")
    assert env.render() == coloured, "an empty NO_COLOR means nothing"
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in env.render()
    assert env.render() == ESCAPE.sub("", coloured)


@every_puzzle
def test_picture_follows_the_board(puzzle_id):
    env = gym.make(puzzle_id, render_mode="ansi")
    obs, _ = env.reset(seed=0)
    seen = {obs.tobytes(): env.render()}
    rng = np.random.default_rng(0)
    for t in range(20):
        *_, (obs, _, over, *_) = play(env, 1, rng)
        seen[obs.tobytes()] = env.render()
        if over:
            env.reset(seed=t)
    assert len(set(seen.values())) == len(seen)


@every_puzzle
def test_widths_fit_a_terminal(puzzle_id, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    lines = middle_of_a_game(puzzle_id, render_mode="ansi").render().splitlines()
    assert 5 <= len(lines) <= 24
    assert max(map(len, lines)) <= 80


@every_puzzle
def test_ansi_list_collects_the_frames(puzzle_id):
    env = gym.make(puzzle_id, render_mode="ansi_list")
    env.reset(seed=0)
    play(env, 5, np.random.default_rng(0))
    frames = env.render()
    assert [type(frame) for frame in frames] == [str] * 6


@every_puzzle
def test_human_prints_each_frame(puzzle_id, capsys):
    human, ansi = gym.make(puzzle_id, render_mode="human"), gym.make(puzzle_id, render_mode="ansi")
    human.reset(seed=0)
    ansi.reset(seed=0)
    assert capsys.readouterr().out == ansi.render() + "\n"
    play(human, 1, np.random.default_rng(0))
    play(ansi, 1, np.random.default_rng(0))
    assert capsys.readouterr().out == ansi.render() + "\n"


@every_puzzle
def test_without_a_mode_rendering_warns(puzzle_id):
    env = gym.make(puzzle_id).unwrapped
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


@every_puzzle
def test_batch_draws_each_game(puzzle_id):
    venv = gym.make_vec(puzzle_id, num_envs=3, render_mode="ansi")
    venv.reset(seed=4)
    single = gym.make(puzzle_id, render_mode="ansi")
    single.reset(seed=5)
    frames = venv.render()
    assert [type(frame) for frame in frames] == [str] * 3
    assert frames[1] == single.render()
    venv.step(choose_all(venv.action_masks(), np.random.default_rng(0)))
    assert all(after != before for after, before in zip(venv.render(), frames, strict=True))
    assert gym.make_vec(puzzle_id, num_envs=3).render() is None
