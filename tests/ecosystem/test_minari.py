"""Minari's DataCollector: what it keeps is what was played, and a network learns from it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import minari
import numpy as np
import pytest
from puzzlegym.agents.dataset_lines import DatasetLines
from puzzlegym.agents.errors import AgentError
from puzzlegym.scripts.examples import minari_clone

# Its temporary folder goes without a word to Python about it.
pytestmark = pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")

LAST = r"mean score ([\d,]+), random ([\d,]+), on the same 100 games"


@pytest.mark.parametrize(("env_id", "games", "times_random"), [("Puzzle2048-v0", 2, 4.0), ("FreeCell-v0", 50, 1.5)])
def test_the_example_learns_and_leaves_nothing_behind(
    env_id: str, games: int, times_random: float, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    call = [sys.executable, minari_clone.__file__, env_id, str(games)]
    places = dict.fromkeys(["TMPDIR", "MINARI_DATASETS_PATH"], str(tmp_path))
    places["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path_factory.mktemp("torch"))  # torch makes it whenever it learns
    done = subprocess.run(call, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **places}, timeout=200)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{games} games, ")
    told = re.fullmatch(LAST, done.stdout.splitlines()[-1])
    assert told is not None, done.stdout
    clone, random = (int(mean.replace(",", "")) for mean in told.groups())
    assert clone > times_random * random
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


def replayed(env_id: str, episode: minari.EpisodeData, start: dict) -> Iterator[tuple]:
    """What a fresh environment says to the same actions: board, mask, reward, ends."""
    env = gym.make(env_id)
    obs, info = env.reset(seed=start["seed"], options=start["options"])
    yield obs, info["action_mask"], None, False, False
    for action in episode.actions.tolist():
        obs, reward, terminated, truncated, info = env.step(action)
        yield obs, info["action_mask"], reward, terminated, truncated


@pytest.mark.parametrize(("env_id", "agent"), [("Puzzle2048-v0", "greedy"), ("FreeCell-v0", "solver")])
def test_what_comes_back_is_what_was_played(env_id: str, agent: str, datasets: Path) -> None:
    minari_clone.collect(env_id, agent, 3)
    dataset = minari.load_dataset("clone-v0")
    assert dataset.total_episodes == 3
    starts = [{"options": {}} | dict(start) for start in dataset.storage.get_episode_metadata(range(3))]
    assert len({start["seed"] for start in starts}) == 3
    for episode, start in zip(dataset.iterate_episodes(), starts, strict=True):
        boards, masks, rewards, terminated, truncated = zip(*replayed(env_id, episode, start), strict=True)
        assert episode.observations.dtype == np.uint8
        assert np.array_equal(episode.observations, np.stack(boards))
        assert np.array_equal(episode.infos["action_mask"], np.stack(masks))
        assert np.array_equal(episode.rewards, rewards[1:])
        assert np.array_equal(episode.terminations, terminated[1:])
        assert np.array_equal(episode.truncations, truncated[1:])
        assert terminated[-1], "whole games"


def test_cloning_learns_from_what_was_won(datasets: Path) -> None:
    minari_clone.collect("FreeCell-v0", "solver", 4)
    lines = DatasetLines(datasets / "clone-v0", 0)
    assert len(lines) == 4
    won = {episode.actions.tobytes() for episode in minari.load_dataset("clone-v0")}
    assert {lines.fresh().actions.tobytes() for _ in range(4)} == won


def begun(record_infos: bool) -> None:
    """A dataset of one game that was left after a move."""
    with minari.DataCollector(gym.make("FreeCell-v0"), record_infos=record_infos) as env:
        _, info = env.reset(options={"deal": 40_001})
        env.step(int(info["action_mask"].argmax()))
        env.create_dataset("begun-v0", env.spec, "first", "you", "you@example.org", "none", description="begun")


@pytest.mark.parametrize(
    ("record_infos", "reason"),
    [(True, "holds no won game"), (False, "does not hold the infos deal and is_success")],
)
def test_cloning_refuses_the_rest(record_infos: bool, reason: str, datasets: Path) -> None:
    begun(record_infos)
    with pytest.raises(AgentError, match=reason):
        DatasetLines(datasets / "begun-v0", 0)
