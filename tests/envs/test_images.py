"""Every puzzle draws itself as a picture: what Gymnasium and video writers expect of it, with Pillow and without."""

from __future__ import annotations

import subprocess
import sys

import gymnasium as gym
import imageio_ffmpeg
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from puzzlegym.envs.common import drawing
from puzzlegym.envs.freecell import picture as freecell
from puzzlegym.envs.puzzle2048 import picture as game2048
from puzzlegym.envs.registry import PUZZLES
from reference.playing import choose_all, middle_of_a_game, play

every_puzzle = pytest.mark.parametrize("puzzle_id", PUZZLES)
SIZES = {
    "Puzzle2048-v0": (game2048.HEIGHT, game2048.WIDTH, 3),
    "FreeCell-v0": (freecell.HEIGHT, freecell.WIDTH, 3),
}


@every_puzzle
def test_picture_is_a_fresh_array_that_videos_take(puzzle_id):
    env = middle_of_a_game(puzzle_id, render_mode="rgb_array")
    picture = env.render()
    assert (type(picture), picture.dtype, picture.shape) == (np.ndarray, np.uint8, SIZES[puzzle_id])
    assert picture.flags.c_contiguous
    assert picture.flags.writeable
    assert not any(side % 16 for side in picture.shape[:2])
    same = picture.copy()
    picture[:] = 0
    assert np.array_equal(env.render(), same), "a picture belongs to who asked for it"


@every_puzzle
def test_looking_changes_nothing(puzzle_id):
    env = middle_of_a_game(puzzle_id, render_mode="rgb_array").unwrapped
    state = env.get_state()
    first = env.render()
    assert env.get_state() == state
    other = gym.make(puzzle_id, render_mode="rgb_array").unwrapped
    other.set_state(state)
    assert np.array_equal(other.render(), first)


@every_puzzle
def test_each_position_has_its_own_picture(puzzle_id):
    env = gym.make(puzzle_id, render_mode="rgb_array")
    obs, _ = env.reset(seed=0)
    seen = {obs.tobytes(): env.render().tobytes()}
    rng = np.random.default_rng(0)
    for t in range(40):
        *_, (obs, _, over, *_) = play(env, 1, rng)
        seen[obs.tobytes()] = env.render().tobytes()
        if over:
            env.reset(seed=t)
    assert len(seen) > 20
    assert len(set(seen.values())) == len(seen)


@every_puzzle
def test_batch_draws_each_game(puzzle_id):
    venv = gym.make_vec(puzzle_id, num_envs=3, render_mode="rgb_array")
    singles = [gym.make(puzzle_id, render_mode="rgb_array") for _ in range(3)]
    venv.reset(seed=4)
    for i, env in enumerate(singles):
        env.reset(seed=4 + i)
    rng = np.random.default_rng(0)
    for _ in range(5):
        pictures = venv.render()
        assert type(pictures) is tuple
        assert all(np.array_equal(picture, env.render()) for picture, env in zip(pictures, singles, strict=True))
        actions = choose_all(venv.unwrapped.action_masks(), rng)
        venv.step(actions)
        for env, action in zip(singles, actions, strict=True):
            env.step(int(action))


@every_puzzle
def test_gymnasium_checkers_are_content(puzzle_id):
    env = gym.make(puzzle_id, render_mode="rgb_array")
    check_env(env.unwrapped)
    env.reset(seed=0)
    env.render()  # the passive checker looks at the first picture


@every_puzzle
def test_rgb_array_list_collects_the_frames(puzzle_id):
    env = gym.make(puzzle_id, render_mode="rgb_array_list")
    env.reset(seed=0)
    play(env, 5, np.random.default_rng(0))
    assert [frame.shape for frame in env.render()] == [SIZES[puzzle_id]] * 6


@every_puzzle
def test_record_video_writes_every_frame(puzzle_id, tmp_path):
    env = gym.wrappers.RecordVideo(gym.make(puzzle_id, render_mode="rgb_array"), str(tmp_path / "videos"))
    env.reset(seed=0)
    moves = len(play(env, 10, np.random.default_rng(0)))
    env.close()
    (video,) = (tmp_path / "videos").glob("*.mp4")
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(video))
    assert frames == moves + 1
    assert seconds == pytest.approx(frames / env.metadata["render_fps"], abs=0.3)


@every_puzzle
@pytest.mark.parametrize("render_mode", [None, "ansi", "rgb_array"])
def test_render_as_draws_in_any_mode(puzzle_id, render_mode):
    env = gym.make(puzzle_id, render_mode=render_mode).unwrapped
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        env.render_as("rgb_array")
    env.reset(seed=1)
    for mode in ("ansi", "rgb_array"):
        same = gym.make(puzzle_id, render_mode=mode)
        same.reset(seed=1)
        assert np.array_equal(env.render_as(mode), same.render())
    for mode in ("human", "rgb", None):
        with pytest.raises(ValueError, match=r"\['ansi', 'rgb_array'\], not "):
            env.render_as(mode)


WITHOUT_PILLOW = """
import sys
sys.modules["PIL"] = None
import gymnasium, puzzlegym
text = gymnasium.make({id!r}, render_mode="ansi").unwrapped
text.reset(seed=0)
assert text.render()
for call in (
    lambda: gymnasium.make({id!r}, render_mode="rgb_array"),
    lambda: gymnasium.make_vec({id!r}, num_envs=2, render_mode="rgb_array"),
    lambda: text.render_as("rgb_array"),
):
    try:
        call()
    except ImportError as error:
        print(error.name, error)
"""


@every_puzzle
def test_without_pillow_one_line_says_so_at_once(puzzle_id, tmp_path):
    command = [sys.executable, "-W", "error", "-c", WITHOUT_PILLOW.format(id=puzzle_id)]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ['PIL rgb_array needs Pillow: pip install "puzzlegym[play]"'] * 3


def test_text_shrinks_to_its_width():
    for size in (10, 40, 200):
        sketch = drawing.Sketch(100, 50, "#ffffff")
        sketch.text("131072", (50, 25), size, "#000000", bold=0.02, width=60)
        inked = np.flatnonzero((drawing.pixels(sketch.finished()) < 128).any(axis=(0, 2)))
        assert 20 <= inked[0] <= inked[-1] <= 80
        assert abs(inked[0] + inked[-1] - 99) <= 3, "centred"
