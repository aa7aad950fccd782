"""Files of agents: written whole or not at all, read without trust."""

from __future__ import annotations

import errno
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from puzzlegym.agents import saved
from puzzlegym.agents.configs import ppo_config
from puzzlegym.agents.errors import AgentError
from puzzlegym.agents.network_policy import load_policy
from puzzlegym.agents.networks import build

WEIGHTS = {"a": np.arange(40, dtype=np.float32).reshape(5, 8), "b": np.ones(3)}
TRAINER = {"optimizer.0.step": np.array(3.0), "torch_rng": np.arange(9, dtype=np.uint8)}
CARD = {"env_id": "Puzzle2048-v0", "steps": 12}


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    path = tmp_path / saved.FILE
    saved.save(path, CARD, WEIGHTS, TRAINER)
    return path


def load(path: Path) -> tuple[Any, ...]:
    return saved.load_card(path), saved.load_weights(path), saved.load_trainer(path)


def assert_equal_arrays(left: saved.Arrays, right: saved.Arrays) -> None:
    assert list(left) == list(right)
    for name in left:
        np.testing.assert_array_equal(left[name], right[name])
        assert left[name].dtype == right[name].dtype


def refused(path: Path, words: str = "agent") -> None:
    with pytest.raises(AgentError, match=words) as caught:
        load(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("whole", [True, False], ids=["folder", "file"])
def test_round_trip(agent: Path, whole: bool) -> None:
    card, weights, trainer = load(agent.parent if whole else agent)
    assert card == {"format": saved.FORMAT, **CARD}
    assert_equal_arrays(weights, WEIGHTS)
    assert_equal_arrays(trainer, TRAINER)
    assert [path.name for path in agent.parent.iterdir()] == [saved.FILE]


@pytest.mark.parametrize("good_writes", [0, 1, 2])
def test_a_full_disk_leaves_the_old_file(agent: Path, good_writes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before, count = agent.read_bytes(), iter(range(10))

    def full(write: Any) -> Any:
        def writing(*arguments: Any, **named: Any) -> None:
            if next(count) == good_writes:
                raise OSError(errno.ENOSPC, "No space left on device")
            write(*arguments, **named)

        return writing

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full(zipfile.ZipFile.writestr))
    monkeypatch.setattr(np, "savez", full(np.savez))
    with pytest.raises(OSError, match="No space left") as caught:
        saved.save(agent, {"env_id": "new"}, WEIGHTS, TRAINER)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(agent)
    assert agent.read_bytes() == before
    assert [path.name for path in agent.parent.iterdir()] == [saved.FILE], "nothing half-written stays"


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interruption_leaves_the_old_file(agent: Path, error: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = agent.read_bytes()

    def interrupted(*_: Any) -> None:
        raise error

    monkeypatch.setattr("os.fsync", interrupted)
    with pytest.raises(error):
        saved.save(agent, {"env_id": "new"}, WEIGHTS, TRAINER)
    assert agent.read_bytes() == before
    assert len(list(agent.parent.iterdir())) == 1


def test_missing(tmp_path: Path) -> None:
    refused(tmp_path, "no trained agent")
    refused(tmp_path / "nothing.zip", "no trained agent")


@pytest.mark.parametrize(
    "content", [b"", b"hello\n", b"PK\x03\x04", b"\x00" * 5000], ids=["empty", "text", "PK", "zeros"]
)
def test_no_zip(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "agent.zip"
    path.write_bytes(content)
    refused(path, "not a puzzlegym agent")


def write(path: Path, **members: Any) -> None:
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name.replace("_", "."), content)


def npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def test_an_ordinary_zip(tmp_path: Path) -> None:
    write(tmp_path / "agent.zip", readme_txt="hello")
    refused(tmp_path / "agent.zip", "not a puzzlegym agent")


@pytest.mark.parametrize("card", ["{", "[1]", "3", '{"format": "puzzlegym-agent-999"}', "\ud7ff", "[" * 100_000])
def test_a_card_of_another_kind(tmp_path: Path, card: str) -> None:
    write(tmp_path / "agent.zip", card_json=card)
    refused(tmp_path / "agent.zip")


def test_another_puzzle(agent: Path) -> None:
    assert saved.load_card(agent, "Puzzle2048-v0")["steps"] == 12
    with pytest.raises(AgentError, match="trained on Puzzle2048-v0, not on FreeCell-v0"):
        saved.load_card(agent, "FreeCell-v0")


def test_truncated_anywhere(agent: Path) -> None:
    content = agent.read_bytes()
    for length in range(0, len(content), 29):
        agent.write_bytes(content[:length])
        refused(agent)


def test_a_damaged_byte_anywhere_is_refused_or_harmless(agent: Path) -> None:
    content, messages = agent.read_bytes(), []
    for position in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[position] ^= 0x55
        agent.write_bytes(damaged)
        try:
            card, weights, trainer = load(agent)
        except AgentError as error:
            messages.append(str(error))
        else:  # a time stamp, say
            assert card["env_id"] == CARD["env_id"]
            assert_equal_arrays(weights, WEIGHTS)
            assert_equal_arrays(trainer, TRAINER)
    assert len(messages) > len(content) / 3 / 2
    assert not any("\n" in message for message in messages)


class Evil:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def __reduce__(self) -> Any:
        return os.mkdir, (self.folder,)


@pytest.mark.parametrize("member", ["weights", "trainer"])
def test_nothing_is_unpickled(tmp_path: Path, member: str) -> None:
    content = {"weights": npz(**WEIGHTS), "trainer": npz(**TRAINER)}
    content[member] = npz(a=np.array([Evil(tmp_path / "evil")], dtype=object))
    path = tmp_path / "agent.zip"
    card = json.dumps({"format": saved.FORMAT, **CARD})
    write(path, card_json=card, weights_npz=content["weights"], trainer_npz=content["trainer"])
    refused(path, f"{member}.npz cannot be read")
    assert not (tmp_path / "evil").exists()
    np.load(io.BytesIO(content[member]), allow_pickle=True)["a"]
    assert (tmp_path / "evil").exists(), "the trap works"


def test_a_bare_array_in_place_of_an_archive(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    path = tmp_path / "agent.zip"
    card = json.dumps({"format": saved.FORMAT, **CARD})
    write(path, card_json=card, weights_npz=buffer.getvalue(), trainer_npz=b"no archive")
    for read in (saved.load_weights, saved.load_trainer):
        with pytest.raises(AgentError, match="cannot be read"):
            read(path)


LEARNED = {"env_id": "Puzzle2048-v0", "algorithm": "masked PPO"}
CONFIG = ppo_config("Puzzle2048-v0").as_dict()
FITTING = {
    name: value.numpy() for name, value in build(CONFIG["network"], CONFIG["network_arguments"]).state_dict().items()
}


def test_a_fitting_file_is_a_player(tmp_path: Path) -> None:
    saved.save(tmp_path / "agent.zip", {**LEARNED, "config": CONFIG}, FITTING, {})
    assert load_policy(tmp_path, "Puzzle2048-v0").name == str(tmp_path)


@pytest.mark.parametrize(
    ("config", "weights"),
    [
        (None, FITTING),
        ([1, 2], FITTING),
        ({"env_id": "Puzzle2048-v0"}, FITTING),
        ({**CONFIG, "batchsize": 3}, FITTING),
        ({**CONFIG, "network": "transformer"}, FITTING),
        ({**CONFIG, "network_arguments": {"width": 3}}, FITTING),
        ({**CONFIG, "network_arguments": {**CONFIG["network_arguments"], "hidden": [8, 8]}}, FITTING),
        (CONFIG, {}),
        (CONFIG, {**FITTING, "more": np.zeros(2)}),
        (CONFIG, {**FITTING, "bias": np.array(["a", "b"])}),
        (CONFIG, {**FITTING, "bias": np.zeros(5, dtype=np.float32)}),
    ],
)
def test_a_card_that_does_not_fit_is_one_line(tmp_path: Path, config: Any, weights: Any) -> None:
    saved.save(tmp_path / "agent.zip", {**LEARNED, "config": config}, weights, {})
    with pytest.raises(AgentError) as caught:
        load_policy(tmp_path, "Puzzle2048-v0")
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)
