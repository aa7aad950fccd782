"""The log of a run: what is appended is read, whatever a kill or a resumption left in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from puzzlegym.agents import logs
from puzzlegym.agents.errors import AgentError


def write(folder: Path, *steps: int) -> Path:
    for i, step in enumerate(steps):
        logs.append(folder, step, i / 3, {"score": 100.0 * i, "512": 0.5})
    return folder / logs.FILE


def test_round_trip(tmp_path: Path) -> None:
    path = write(tmp_path, 10, 20, 30)
    assert path.read_text(encoding="utf-8").splitlines()[:2] == ["steps,seconds,score,512", "10,0.0,0.0,0.5"]
    log = logs.read(tmp_path)
    assert log.steps.tolist() == [10, 20, 30]
    assert log.seconds.tolist() == [0, 0.3, 0.7]
    assert {name: values.tolist() for name, values in log.figures.items()} == {
        "score": [0, 100, 200],
        "512": [0.5, 0.5, 0.5],
    }


@pytest.mark.parametrize("cut", range(2, len("30,0.7,200.0,0.5\r\n")))
def test_last_row_half_written(cut: int, tmp_path: Path) -> None:
    path = write(tmp_path, 10, 20, 30)
    path.write_bytes(path.read_bytes()[:-cut])
    assert logs.read(tmp_path).steps.tolist() == [10, 20]


@pytest.mark.parametrize("cut", [1, 5, 10, 15])
def test_a_row_after_a_kill(cut: int, tmp_path: Path) -> None:
    path = write(tmp_path, 10, 20, 30)
    path.write_bytes(path.read_bytes()[:-cut])
    logs.append(tmp_path, 25, 0.5, {"score": 1.0, "512": 0.5})
    logs.append(tmp_path, 35, 0.8, {"score": 2.0, "512": 0.5})
    assert logs.read(tmp_path).steps.tolist()[-1] == 35
    assert logs.read(tmp_path).steps.tolist()[:2] == [10, 20]


def test_steps_trained_again_after_a_resumption_count_once(tmp_path: Path) -> None:
    write(tmp_path, 10, 20, 30, 40, 25, 35, 35, 45)
    log = logs.read(tmp_path)
    assert log.steps.tolist() == [10, 20, 25, 35, 45]
    assert log.figures["score"].tolist() == [0, 100, 400, 600, 700]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no figures yet"),
        (b"steps,sec", "no figures yet"),
        (b"steps,seconds,score\r\n", "no figures yet"),
        (b"steps,seconds,score\r\n10,0.1", "no figures yet"),
        (b"steps,seconds\r\n1,2\r\n", "not the log of a run"),
        (b"a,b,c\r\n1,2,3\r\n", "not the log of a run"),
        (b"\x00\xff\n\x80\n", "not the log of a run"),
        (None, "no run at"),
    ],
)
def test_what_is_no_log(content: bytes | None, words: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / logs.FILE).write_bytes(content)
    with pytest.raises(AgentError, match=words) as caught:
        logs.read(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)
