"""The dataset command: solved deals and agents' games as Minari reads them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import minari
import numpy as np
import pytest
from puzzlegym.agents.dataset import Writer, dataset_id
from puzzlegym.envs.freecell import UNWINNABLE
from puzzlegym.scripts.cli import main
from puzzlegym.scripts.dataset import numbers

CALL = [sys.executable, "-m", "puzzlegym.scripts.cli", "dataset"]


def written(*argv: str) -> None:
    assert main(["dataset", *argv]) == 0


def replayed(env: gymnasium.Env, episode: minari.EpisodeData, facts: dict) -> None:
    """Play an episode again and compare all that it holds."""
    options = {name: int(value) for name, value in facts.get("options", {}).items()}
    observation, info = env.reset(seed=facts["seed"], options=options)
    for i, action in enumerate([*episode.actions.tolist(), None]):
        assert np.array_equal(episode.observations[i], observation)
        assert set(info) == set(episode.infos)
        for name, value in info.items():
            assert np.array_equal(episode.infos[name][i], value), name
        if action is not None:
            assert info["action_mask"][action]
            observation, reward, terminated, truncated, info = env.step(action)
            assert episode.rewards[i] == reward
            assert (episode.terminations[i], episode.truncations[i]) == (terminated, truncated)
    assert terminated or truncated
    assert len(episode.observations) == len(episode.actions) + 1 == i + 1


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of more deals than are written at once, with one that cannot be won."""
    out = tmp_path_factory.mktemp("datasets") / "solved"
    deal = UNWINNABLE[1]
    written("FreeCell-v0", "--deals", f"32001-32034,{deal - 1}-{deal}", "--out", str(out))
    return out


def test_episodes_are_wins_and_hold_what_the_environment_says(solved: Path) -> None:
    dataset = minari.MinariDataset(solved / "data")
    facts = list(dataset.storage.get_episode_metadata(range(len(dataset))))
    deals = [int(one["options"]["deal"]) for one in facts]
    assert deals == [*range(32001, 32035), UNWINNABLE[1] - 1]
    env = gymnasium.make("FreeCell-v0")
    for episode, one in zip(dataset, facts, strict=True):
        replayed(env, episode, one)
        assert episode.infos["is_success"][-1]
        assert episode.rewards.sum() == 52
        assert episode.infos["deal"].tolist() == [one["options"]["deal"]] * len(episode.observations)
    assert dataset.total_steps == sum(len(episode) for episode in dataset)
    assert dataset.storage.metadata["left_out"] == {"proved unwinnable": [UNWINNABLE[1]]}


def test_metadata_and_environment(solved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(solved.parent))
    dataset = minari.load_dataset("solved")
    assert dataset.id == "solved-v0"
    assert dataset.spec.version == 0
    assert dataset.observation_space == gymnasium.make("FreeCell-v0").observation_space
    assert dataset.action_space == gymnasium.spaces.Discrete(520)
    metadata = dataset.storage.metadata
    assert metadata["algorithm_name"].startswith("solver of puzzlegym ")
    assert "deals 32001-32034" in metadata["description"]
    assert metadata["author"] == {"puzzlegym"}
    for env in dataset.recover_environment(), dataset.recover_environment(eval_env=True):
        assert env.spec == gymnasium.make("FreeCell-v0", disable_env_checker=True).spec


def test_printed_lines_load_it_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written("FreeCell-v0", "--deals", f"32001,{UNWINNABLE[1]}", "--out", "it's new/deals-v3")
    out, err = capsys.readouterr()
    assert err == "", "progress belongs on a terminal, or every 15 seconds"
    lines = out.splitlines()
    assert lines[0].startswith("1 episode, ")
    assert lines[1] == f"Left out: 1 deal proved unwinnable: {UNWINNABLE[1]}"
    code = "\n".join([*lines[-2:], "print(dataset.id, len(dataset), dataset.recover_environment().spec.id)"])
    (tmp_path / "elsewhere").mkdir()
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=tmp_path / "elsewhere", capture_output=True, text=True, check=False)
    assert done.stdout == "deals-v3 1 FreeCell-v0\n", done.stderr


@pytest.mark.parametrize("env_id", ["Puzzle2048-v0", "FreeCell-v0"])
def test_other_agents_play_training_games(env_id: str, tmp_path: Path) -> None:
    for name in "a", "b":
        written(env_id, "--agent", "random", "--episodes", "3", "--seed", "4", "--out", str(tmp_path / name))
    first, second = (minari.MinariDataset(tmp_path / name / "data") for name in "ab")
    assert len(first) == 3
    facts = list(first.storage.get_episode_metadata(range(3)))
    env = first.recover_environment()
    for episode, again, one in zip(first, second, facts, strict=True):
        replayed(env, episode, one)
        assert np.array_equal(episode.actions, again.actions)
        assert one["seed"] < 10**12
        assert env_id == "Puzzle2048-v0" or 32_000 < one["options"]["deal"] <= 1_000_000


def test_a_game_does_not_depend_on_the_others(tmp_path: Path) -> None:
    for deals, name in ("40001-40003", "a"), ("40003", "b"):
        written("FreeCell-v0", "--agent", "random", "--deals", deals, "--out", str(tmp_path / name))
    first, second = (minari.MinariDataset(tmp_path / name / "data") for name in "ab")
    assert np.array_equal(first[2].actions, second[0].actions)


def test_short_lines(solved: Path, tmp_path: Path) -> None:
    written("FreeCell-v0", "--deals", "32001-32003", "--short", "--time", "0.3", "--out", str(tmp_path / "x"))
    short, quick = minari.MinariDataset(tmp_path / "x" / "data"), minari.MinariDataset(solved / "data")
    assert short.total_steps < sum(len(quick[i]) for i in range(3))


def test_test_deals_are_for_evaluation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written("FreeCell-v0", "--deals", "31999-32001", "--out", str(tmp_path / "x"))
    err = capsys.readouterr().err
    assert err.startswith("for evaluation only: 2 deals of 1 to 32,000")
    assert err.count("\n") == 1
    assert len(minari.MinariDataset(tmp_path / "x" / "data")) == 3


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["FreeCell-v0"], "--deals A-B"),
        (["FreeCell-v0", "--deals", "5", "--episodes", "2"], "--deals A-B"),
        (["FreeCell-v0", "--deals", "0-4"], "from 1 to 2,147,483,647"),
        (["FreeCell-v0", "--deals", "9-4"], "'9-4'"),
        (["FreeCell-v0", "--deals", "1-2147483648"], "from 1 to 2,147,483,647"),
        (["FreeCell-v0", "--deals", "1-1000001"], "at most 1,000,000"),
        (["FreeCell-v0", "--deals", "some"], "32001-33000"),
        (["FreeCell-v0", "--deals", ""], "32001-33000"),
        (["FreeCell-v0", "--deals", "5", "--seed", "1"], "--seed is for --episodes"),
        (["FreeCell-v0", "--deals", "5", "--agent", "greedy", "--short"], "for the solver"),
        (["FreeCell-v0", "--deals", "5", "--time", "0"], "greater than 0"),
        (["FreeCell-v0", "--deals", "40001", "--time", "nan"], "greater than 0"),
        (["FreeCell-v0", "--deals", str(UNWINNABLE[1])], f"no game was won; 1 deal proved unwinnable: {UNWINNABLE[1]}"),
        (["FreeCell-v0", "--episodes", "0"], "at least 1"),
        (["Puzzle2048-v0", "--deals", "5"], "no numbered deals"),
        (["Puzzle2048-v0", "--episodes", "5"], "expectimax"),
        (["Tetris-v0", "--episodes", "5"], "Puzzle2048-v0 or FreeCell-v0"),
    ],
)
def test_wrong_calls(argv: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", *argv, "--out", str(tmp_path / "x")]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert words in err
    assert list(tmp_path.iterdir()) == []


def test_what_exists_stays(solved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    for out in solved, tmp_path, tmp_path / "file":
        before = sorted(out.rglob("*"))
        assert main(["dataset", "FreeCell-v0", "--deals", "3", "--out", str(out)]) == 2
        err = capsys.readouterr().err
        assert err.endswith(f"{out} already exists: choose a new folder\n")
        assert err.count("\n") == 1
        assert sorted(out.rglob("*")) == before


def test_deals_by_numbers_and_ranges() -> None:
    assert numbers("3-5, 9,4") == [3, 4, 5, 9]


def test_ids_are_what_minari_accepts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    assert dataset_id(Path("/runs/my deals")) == "my-deals-v0"
    assert dataset_id(Path("/runs/deals-v12")) == "deals-v12"
    assert dataset_id(tmp_path / "freecell" / "solved-v1") == "freecell/solved-v1"


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    argv = [*CALL, "FreeCell-v0", "--deals", "100001-1000000", "--out", str(tmp_path / "x")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not any(_episodes(path) for path in tmp_path.rglob("metadata.json")):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert not (tmp_path / "x").exists()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (130, "", "puzzlegym dataset: stopped\n")
    assert list(tmp_path.iterdir()) == []


def _episodes(path: Path) -> int:
    try:
        return json.loads(path.read_text())["total_episodes"]
    except (OSError, ValueError):  # just being written
        return 0


@pytest.mark.parametrize("module", ["minari", "h5py"])
def test_missing_extra(module: str, tmp_path: Path) -> None:
    code = f"import sys; sys.modules['{module}'] = None; from puzzlegym.scripts.cli import main; sys.exit(main())"
    argv = ["dataset", "FreeCell-v0", "--deals", "32001", "--out", str(tmp_path / "x")]
    done = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f'puzzlegym dataset: {module} is not installed: pip install "puzzlegym[data]"\n'
    assert list(tmp_path.iterdir()) == []


def test_minari_is_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MINARI_DATASETS_PATH", raising=False)
    written("FreeCell-v0", "--deals", "32001", "--out", str(tmp_path / "x"))
    assert "MINARI_DATASETS_PATH" not in os.environ


def test_signals_wait_while_the_file_is_written() -> None:
    """What is raised in h5py's callbacks is lost."""
    written_episodes: list[object] = []

    class Dataset:
        def update_dataset_from_buffer(self, buffer: list[object]) -> None:
            signal.raise_signal(signal.SIGINT)
            written_episodes.extend(buffer)

    writer, before = Writer(Dataset()), signal.getsignal(signal.SIGINT)
    writer.add([0, 1])
    with pytest.raises(KeyboardInterrupt):
        writer.flush()
    assert written_episodes == [[0, 1]]
    assert signal.getsignal(signal.SIGINT) is before
