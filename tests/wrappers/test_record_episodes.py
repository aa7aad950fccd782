"""RecordEpisodes: any environment that renders, unchanged, its episodes in files."""

from __future__ import annotations

import copy
import gc
import json
import os
import pickle
import re
import subprocess
import sys
from typing import ClassVar

import gymnasium as gym
import imageio_ffmpeg
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from PIL import Image
from puzzlegym.envs.common import ansi
from puzzlegym.envs.common.recording import RecordingError
from puzzlegym.envs.registry import PUZZLES
from puzzlegym.wrappers import NoRepeat, RecordEpisodes
from reference.playing import assert_same, choose

every_puzzle = pytest.mark.parametrize("puzzle_id", PUZZLES)


class Counter(gym.Env):
    """Somebody's environment: counts to ``length``."""

    metadata: ClassVar = {"render_modes": ["human", "ansi", "rgb_array"], "render_fps": 20}
    observation_space = gym.spaces.Discrete(100)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, render_mode=None, length=3):
        self.render_mode, self.length, self.count, self.shows = render_mode, length, 0, None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self.count, {}

    def step(self, action):
        self.count += 1
        return self.count, 1.0, self.count == self.length, False, {"of": self.length}

    def render(self):
        if self.shows is not None:
            return self.shows
        if self.render_mode == "rgb_array":
            return np.full((20, 30, 3), 40 * self.count, dtype=np.uint8)
        return f"count \x1b[32m{self.count}\x1b[0m"


def play(env, episodes, **options):
    """Results of whole episodes."""
    results = []
    for seed in range(episodes):
        results.append(env.reset(seed=seed, **options))
        over = False
        while not over:
            results.append(
                env.step(choose(results[-1][-1].get("action_mask", np.ones(2)), np.random.default_rng(seed)))
            )
            over = results[-1][2] or results[-1][3]
    return results


def pictures(path):
    return path.read_text(encoding="utf-8").rstrip("\n").split("\n\n")


def test_every_third_episode_of_somebodys_environment(tmp_path):
    env = RecordEpisodes(Counter("ansi"), tmp_path / "new" / "folder", every=3, suffix=".txt", name_prefix="count")
    for _ in range(8):
        env.reset()
        while not env.step(0)[2]:
            pass
    files = sorted((tmp_path / "new" / "folder").iterdir())
    assert [path.name for path in files] == [f"count-{n:06d}.txt" for n in (0, 3, 6)]
    assert all(pictures(path) == ["count 0", "count 1", "count 2", "count 3"] for path in files)


def test_all_formats_at_once_from_text(tmp_path):
    env = RecordEpisodes(Counter("ansi"), tmp_path, suffix=[".cast", ".gif", ".mp4", ".txt"])
    env.reset()
    for _ in range(3):
        env.step(0)
    assert sorted(os.listdir(tmp_path)) == [f"episode-000000{suffix}" for suffix in (".cast", ".gif", ".mp4", ".txt")]
    header, *events = map(json.loads, (tmp_path / "episode-000000.cast").read_text().splitlines())
    assert header["title"].endswith("episode 0")
    assert [event[0] for event in events[1:5]] == [0, 0.05, 0.1, 0.15], "render_fps"
    with Image.open(tmp_path / "episode-000000.gif") as gif:
        assert (gif.n_frames, gif.info["duration"]) == (4, 50)
    assert imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "episode-000000.mp4"))[0] == 3 + 40


def test_images(tmp_path):
    env = RecordEpisodes(Counter("rgb_array"), tmp_path, suffix=(".gif", ".mp4"), fps=10)
    env.reset()
    for _ in range(3):
        env.step(0)
    with Image.open(tmp_path / "episode-000000.gif") as gif:
        assert (gif.size, gif.n_frames, gif.info["duration"]) == ((30, 20), 4, 100)
        gif.seek(3)
        assert gif.convert("RGB").getpixel((5, 5)) == (120, 120, 120)
    assert imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "episode-000000.mp4"))[0] == 3 + 20


@pytest.mark.parametrize("name", ["FrozenLake", "Taxi"])
def test_environments_of_gymnasium(tmp_path, name):
    newest = max(env_id for env_id in gym.registry if env_id.startswith(f"{name}-v"))
    env = RecordEpisodes(gym.make(newest, render_mode="ansi", max_episode_steps=9), tmp_path, suffix=[".txt", ".cast"])
    results = play(env, 2)
    env.close()
    shown = pictures(tmp_path / "episode-000000.txt")
    assert len(results) > 2
    assert len(shown) >= 2
    assert sorted(os.listdir(tmp_path)) == [f"episode-00000{n}{suffix}" for n in (0, 1) for suffix in (".cast", ".txt")]


@every_puzzle
def test_results_are_unchanged(tmp_path, puzzle_id):
    plain = gym.make(puzzle_id, render_mode="ansi", max_episode_steps=30)
    env = RecordEpisodes(gym.make(puzzle_id, render_mode="ansi", max_episode_steps=30), tmp_path, suffix=".cast")
    assert_same(play(env, 2), play(plain, 2))
    assert len(os.listdir(tmp_path)) == 2


@every_puzzle
def test_last_picture_is_the_end_of_the_game(tmp_path, puzzle_id, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    env = RecordEpisodes(gym.make(puzzle_id, render_mode="ansi", max_episode_steps=20), tmp_path, suffix=".txt")
    results = play(env, 1)
    text = (tmp_path / "episode-000000.txt").read_text(encoding="utf-8")
    assert text.endswith(f"{env.render().rstrip()}\n\n")
    first = env.render().partition("\n")[0].partition(" ")[0]
    assert text.count(f"\n\n{first}") == len(results) - 1


def test_file_is_complete_at_the_end_at_reset_and_at_close(tmp_path):
    env = RecordEpisodes(Counter("ansi"), tmp_path, suffix=".txt")
    files = lambda: sorted(name for name in os.listdir(tmp_path) if not name.startswith("."))  # noqa: E731
    env.reset()
    env.step(0)
    assert files() == []
    env.reset()
    assert files() == ["episode-000000.txt"]
    for _ in range(3):
        env.step(0)
    assert files() == ["episode-000000.txt", "episode-000001.txt"]
    env.reset()
    env.close()
    env.close()
    assert files() == sorted(os.listdir(tmp_path)) == [f"episode-00000{n}.txt" for n in range(3)]
    assert [len(pictures(tmp_path / name)) for name in files()] == [2, 4, 1]


def test_environment_that_is_dropped_keeps_its_recording(tmp_path):
    env = RecordEpisodes(Counter("ansi"), tmp_path, suffix=".txt")
    env.reset()
    del env
    gc.collect()
    assert os.listdir(tmp_path) == ["episode-000000.txt"]


def test_program_that_never_closes_keeps_its_recording(tmp_path):
    code = f"""
import gymnasium, puzzlegym
from puzzlegym.wrappers import RecordEpisodes
env = RecordEpisodes(gymnasium.make("Puzzle2048-v0", render_mode="ansi"), {str(tmp_path)!r}, suffix=[".gif", ".mp4"])
env.reset(seed=0)
raise SystemExit(3)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, "")
    assert sorted(os.listdir(tmp_path)) == ["episode-000000.gif", "episode-000000.mp4"]


@every_puzzle
@pytest.mark.parametrize("twin", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"])
def test_copies_go_on_and_record_nothing(tmp_path, puzzle_id, twin):
    env = RecordEpisodes(
        gym.make(puzzle_id, render_mode="ansi", max_episode_steps=20), tmp_path, suffix=[".txt", ".mp4"]
    )
    env.reset(seed=1)
    env.step(0)
    other = twin(env)
    assert_same(other.step(1), env.step(1))
    play(other, 2)
    other.close()
    assert all(name.startswith(".") for name in os.listdir(tmp_path))
    env.close()
    assert sorted(os.listdir(tmp_path)) == ["episode-000000.mp4", "episode-000000.txt"]
    first = env.render().partition("\n")[0].partition(" ")[0]
    text = (tmp_path / "episode-000000.txt").read_text(encoding="utf-8")
    assert len(re.findall(rf"^{re.escape(ansi.plain(first))} ", text, re.M)) == 3


def test_spec_makes_it_again_and_the_checker_is_content(tmp_path):
    env = RecordEpisodes(gym.make("Puzzle2048-v0", render_mode="ansi"), tmp_path, every=2, suffix=[".cast"], fps=5)
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert str(again) == str(env)
    assert (again._every, again._seconds, again._suffixes) == (2, 0.2, [".cast"])
    again.close()
    with pytest.warns(UserWarning, match="is different from the unwrapped version") as caught:
        check_env(env, skip_render_check=True)
    assert len(caught) == 1


def test_masks_are_found_through_it_and_other_wrappers_go_around_it(tmp_path):
    env = NoRepeat(RecordEpisodes(gym.make("FreeCell-v0", render_mode="ansi"), tmp_path))
    _, info = env.reset(seed=0)
    assert np.array_equal(env.action_masks(), info["action_mask"])
    inner = RecordEpisodes(NoRepeat(gym.make("FreeCell-v0", render_mode="ansi")), tmp_path)
    _, info = inner.reset(seed=0)
    assert np.array_equal(inner.get_wrapper_attr("action_masks")(), info["action_mask"])
    env.close()
    inner.close()


@pytest.mark.parametrize(
    ("mode", "arguments", "says"),
    [
        (None, {}, "needs render_mode 'ansi' or 'rgb_array', not None"),
        ("human", {}, "needs render_mode 'ansi' or 'rgb_array', not 'human'"),
        ("rgb_array", {}, "render_mode='rgb_array' records .gif, .mp4, .png; .cast needs \"ansi\""),
        ("rgb_array", {"suffix": [".gif", ".txt"]}, '.txt needs "ansi"'),
        ("ansi", {"suffix": ".avi"}, "must be one of .cast, .gif, .mp4, .png, .txt, not '.avi'"),
        ("ansi", {"every": 0}, "every must be a whole number from 1, not 0"),
        ("ansi", {"every": 1.5}, "every must be a whole number from 1, not 1.5"),
        ("ansi", {"fps": 0}, "fps must be more than 0, not 0"),
        ("ansi", {"fps": float("nan")}, "fps must be more than 0, not nan"),
    ],
)
def test_wrong_arguments_are_refused_at_once(tmp_path, mode, arguments, says):
    with pytest.raises(ValueError, match=re.escape(says) + "$"):
        RecordEpisodes(Counter(mode), tmp_path / "folder", **arguments)
    assert not os.listdir(tmp_path)


def test_missing_encoder_is_said_at_once(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ValueError, match=r'^.mp4 needs an encoder: pip install "puzzlegym\[video\]"$'):
        RecordEpisodes(Counter("ansi"), tmp_path, suffix=[".cast", ".mp4"])


@pytest.mark.parametrize(
    ("mode", "shows", "says"),
    [
        ("ansi", [["a"]], "render() must return text, not list"),
        ("rgb_array", "text", "render() must return an array, not str"),
        ("rgb_array", np.zeros((5, 5)), "an image must be uint8 [height, width, 3], not float64 [5, 5]"),
    ],
)
def test_pictures_that_are_none_end_the_recording(tmp_path, mode, shows, says):
    env = RecordEpisodes(Counter(mode), tmp_path, suffix=".gif")
    env.reset()
    env.unwrapped.shows = shows
    with pytest.raises(RecordingError) as caught:
        env.step(0)
    assert str(caught.value) == says
    assert not os.listdir(tmp_path)
    env.step(0)
    env.close()


def test_full_disk_ends_the_recording_and_not_the_episode(tmp_path, monkeypatch):
    env = RecordEpisodes(Counter("ansi"), tmp_path, suffix=[".txt", ".gif"])
    env.reset()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(env._recordings[1]._format, "add", full)
    with pytest.raises(RecordingError, match=r"episode-000000.gif cannot be written: No space left on device"):
        env.step(0)
    assert not os.listdir(tmp_path)
    assert env.step(0)[0] == 2
