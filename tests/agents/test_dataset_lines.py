"""Lines out of datasets: the games that were won, in a new order each time, and a clear word about all other data."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import h5py
import minari
import numpy as np
import pytest
from minari.data_collector import EpisodeBuffer
from puzzlegym.agents.dataset import new_dataset, play_episode
from puzzlegym.agents.dataset_lines import DatasetLines
from puzzlegym.agents.errors import AgentError
from puzzlegym.agents.policy import load
from puzzlegym.agents.solver_player import SolverPlayer
from puzzlegym.envs.common.rng import Streams
from puzzlegym.wrappers import OneHotObservation

SOLVED, LOST = range(40_001, 40_007), 146_692  # which cannot be won


def episodes(env: gym.Env, deals: Any, agent: Any = None) -> Iterator[EpisodeBuffer]:
    player, streams = agent or SolverPlayer(), Streams.seeded([0])
    for deal in deals:
        options = {"deal": deal} if deal else None
        yield play_episode(env, lambda obs, mask: int(player.act(obs[None], mask[None], streams)[0]), 7, options)


def write(out: Path, env: gym.Env, found: Any) -> Path:
    with new_dataset(out, env, "test", "test") as writer:
        for episode in found:
            writer.add(episode)
    return out


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Games that were won, and one that was lost."""
    env = gym.make("FreeCell-v0")
    return write(tmp_path_factory.mktemp("datasets") / "mixed", env, episodes(env, [*SOLVED, LOST]))


def refused(folder: Path) -> str:
    """What is said about data that is of no use, in one line."""
    with pytest.raises(AgentError) as error:
        DatasetLines(folder, 0)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(str(folder))
    return str(error.value)


def test_won_games_are_lines_that_win(mixed: Path) -> None:
    dataset, lines = minari.MinariDataset(mixed / "data"), DatasetLines(mixed, 0)
    won = [episode for episode in dataset if episode.infos["is_success"][-1]]
    assert len(lines) == len(won) == len(SOLVED) == len(dataset) - 1
    env, deals = gym.make("FreeCell-v0"), set()
    for _ in range(len(lines)):
        line = lines.fresh()
        (deal,) = {episode.infos["deal"][0] for episode in won if np.array_equal(episode.actions, line.actions)}
        board, info = env.reset(options={"deal": int(deal)})
        assert (line.boards.shape, line.boards.dtype) == ((len(line.actions), 20), np.uint64)
        for told, action in zip(line.boards, line.actions.tolist(), strict=True):
            assert np.array_equal(told.view(np.uint8).reshape(20, 8), board)
            board, *_, info = env.step(action)
            assert info["legal"]
        assert info["is_success"]
        deals.add(int(deal))
    assert deals == set(SOLVED), "each one once before any comes again"


def order(lines: DatasetLines, n: int) -> list[int]:
    return [hash(lines.fresh().actions.tobytes()) for _ in range(n)]


def test_the_order_is_random_by_the_seed(mixed: Path) -> None:
    first, same, other = (order(DatasetLines(mixed, seed), 12) for seed in (1, 1, 2))
    assert first == same
    assert first != other
    assert first[:6] != first[6:]
    assert set(first[:6]) == set(first[6:]) == set(other[:6])


def test_the_inner_folder_is_the_dataset_too(mixed: Path) -> None:
    assert len(DatasetLines(mixed / "data", 0)) == len(SOLVED)


@pytest.mark.parametrize(("deals", "agent"), [([40_001, 32_000], "solver"), ([1], "random")])
def test_test_deals_are_refused_won_or_lost(deals: list[int], agent: str, tmp_path: Path) -> None:
    env = gym.make("FreeCell-v0")
    out = write(tmp_path / "x", env, episodes(env, deals, load("FreeCell-v0", agent)))
    assert refused(out) == f"{out} holds test deal {deals[-1]}: learn from deals above 32,000 only"


def test_lost_games_alone_are_no_data(tmp_path: Path) -> None:
    env = gym.make("FreeCell-v0")
    out = write(tmp_path / "x", env, episodes(env, [40_001], load("FreeCell-v0", "random")))
    assert refused(out).endswith("holds no won game of FreeCell-v0")


def test_other_games_are_refused(tmp_path: Path) -> None:
    env = gym.make("Puzzle2048-v0")
    out = write(tmp_path / "x", env, episodes(env, [None], load("Puzzle2048-v0", "random")))
    assert refused(out).endswith("holds games of Puzzle2048-v0, not of FreeCell-v0")


def test_other_observations_are_refused(tmp_path: Path) -> None:
    env = OneHotObservation(gym.make("FreeCell-v0"))
    found = play_episode(env, lambda obs, mask: int(mask.argmax()), 7, {"deal": 40_001})
    assert "other observations" in refused(write(tmp_path / "x", env, [found]))


class OtherNumbers(gym.ObservationWrapper):
    """Boards in another type."""

    def __init__(self, env: gym.Env, dtype: type) -> None:
        super().__init__(env)
        self.observation_space = gym.spaces.Box(0, 52, env.observation_space.shape, dtype)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        return observation.astype(self.observation_space.dtype)


def in_numbers(dtype: type, out: Path) -> Path:
    env = gym.make("FreeCell-v0")
    (found,) = episodes(env, [40_001])
    return write(out, OtherNumbers(env, dtype), [replace(found, observations=found.observations.astype(dtype))])


def test_wider_numbers_are_the_same_boards(mixed: Path, tmp_path: Path) -> None:
    line, lines = DatasetLines(in_numbers(np.int64, tmp_path / "x"), 0).fresh(), DatasetLines(mixed, 0)
    known = {line.boards.tobytes(): line for line in (lines.fresh() for _ in SOLVED)}
    assert np.array_equal(known[line.boards.tobytes()].actions, line.actions)


def test_fractions_are_no_boards(tmp_path: Path) -> None:
    assert "other observations" in refused(in_numbers(np.float32, tmp_path / "x"))


def test_pictures_are_no_boards(mixed: Path, tmp_path: Path) -> None:
    """Minari 0.5.3 took boards for pictures: each came to be the content of a file."""
    shutil.copytree(mixed, tmp_path / "x")
    with h5py.File(tmp_path / "x" / "data" / "main_data.hdf5", "a") as file:
        for episode in file.values():
            pictures = [b"\xff\xd8" + bytes(i) for i in range(len(episode["observations"]))]
            del episode["observations"]
            files = [np.frombuffer(picture, np.uint8) for picture in pictures]
            episode.create_dataset("observations", data=files, dtype=h5py.vlen_dtype(np.uint8))
    assert "holds pictures in place of boards" in refused(tmp_path / "x")


@pytest.mark.parametrize("left", [None, {"deal"}, {"is_success"}])
def test_games_without_infos_are_refused(left: set[str] | None, tmp_path: Path) -> None:
    env = gym.make("FreeCell-v0")
    (episode,) = episodes(env, [40_001])
    bare = replace(episode, infos=left and {name: episode.infos[name] for name in left})
    assert "does not hold the infos deal and is_success" in refused(write(tmp_path / "x", env, [bare]))


def without_environment(data: Path) -> None:
    metadata = json.loads((data / "metadata.json").read_text())
    del metadata["env_spec"]
    (data / "metadata.json").write_text(json.dumps(metadata))


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "no metadata": lambda data: (data / "metadata.json").unlink(),
    "cut metadata": lambda data: (data / "metadata.json").write_text('{"total_'),
    "other metadata": lambda data: (data / "metadata.json").write_text("[]"),
    "empty metadata": lambda data: (data / "metadata.json").write_text("{}"),
    "binary metadata": lambda data: (data / "metadata.json").write_bytes(b"\xff\xfe\x00"),
    "no games": lambda data: (data / "main_data.hdf5").unlink(),
    "other games": lambda data: (data / "main_data.hdf5").write_bytes(b"x" * 5000),
    "cut games": lambda data: (data / "main_data.hdf5").write_bytes((data / "main_data.hdf5").read_bytes()[:-3000]),
    "nothing": shutil.rmtree,
    "an empty folder": lambda data: [path.unlink() for path in data.iterdir()],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_no_dataset_is_refused(damage: str, mixed: Path, tmp_path: Path) -> None:
    shutil.copytree(mixed, tmp_path / "x")
    DAMAGE[damage](tmp_path / "x" / "data")
    assert f"{tmp_path / 'x'} is no Minari dataset (" in refused(tmp_path / "x")


def test_neither_a_file_nor_nothing_is_a_dataset(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "missing"):
        assert "is no Minari dataset (" in refused(path)


def test_data_without_an_environment_is_refused(mixed: Path, tmp_path: Path) -> None:
    shutil.copytree(mixed, tmp_path / "x")
    without_environment(tmp_path / "x" / "data")
    assert "holds games of None, not of FreeCell-v0" in refused(tmp_path / "x")
