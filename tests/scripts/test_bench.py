"""`puzzlegym bench` measures what it says it does."""

from __future__ import annotations

import json
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from puzzlegym import PUZZLES
from puzzlegym.agents.configs import ppo_config
from puzzlegym.agents.curriculum import make_batch
from puzzlegym.agents.vec_env import SB3VecEnv
from puzzlegym.scripts import _console, bench
from puzzlegym.scripts.benchmarks import growth, peers, phases, starting, stepping, training
from puzzlegym.scripts.benchmarks.rounds import Case, Result, interleave
from puzzlegym.scripts.cli import main


def bench_json(tmp_path, capsys, *arguments):
    assert main(["bench", "--seconds", "0.01", "--out", str(tmp_path), "--json", *arguments]) == 0
    report = json.loads(capsys.readouterr().out)
    assert json.loads((tmp_path / "bench.json").read_text()) == report, "the file holds the same"
    return report


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(stepping, "SIZES", (1, 8))
    monkeypatch.setattr(phases, "_SIZE", 64)
    monkeypatch.setattr(stepping, "_MEMORY_BATCH", 64)
    monkeypatch.setattr(growth, "SIZES", (1, 4))
    monkeypatch.setattr(growth, "AGES", (25, 30))
    monkeypatch.setattr(growth, "_AGED", 32)
    monkeypatch.setattr(growth, "TILES", (512, 131072))


def test_every_section_for_every_puzzle(small, tmp_path, capsys):
    sections = ["single", "vector", "phases", "memory", "growth"]
    report = bench_json(tmp_path, capsys, "--rounds", "2", "--sections", *sections)
    assert {"date", "machine", "versions", "rounds", "seconds", "results"} <= set(report)
    assert {row["env_id"] for row in report["results"]} == set(PUZZLES)
    for env_id in PUZZLES:
        mine = [row for row in report["results"] if row["env_id"] == env_id]
        sections = {"single", "vector", "phases", "memory", "games", "age"}
        assert {row["section"] for row in mine} == sections | ({"tile"} if "2048" in env_id else set())
        for row in mine:
            assert len(row["samples"]) == (1 if row["section"] == "memory" else 2)
            assert 0 < row["min"] <= row["median"] <= row["max"]
        names = {row["case"] for row in mine if row["section"] == "phases"}
        assert {"move", "mask", "observation", "all of advance_rows"} < names
    with Image.open(tmp_path / "growth.png") as picture:
        assert picture.format == "PNG"
        assert picture.width > 800


def test_tables_name_what_was_measured(small, tmp_path, capsys):
    arguments = ["--seconds", "0.01", "--rounds", "1", "--sections", "single", "vector", "--out", str(tmp_path)]
    assert main(["bench", "Puzzle2048-v0", *arguments]) == 0
    out = capsys.readouterr().out
    assert "gymnasium.make" in out
    assert "N = 8; 1 core" in out
    assert "FreeCell" not in out
    assert not (tmp_path / "growth.png").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["Chess-v0"],
        ["--rounds", "0"],
        ["--seconds", "0"],
        ["--sections", "speed"],
        ["--peers", "--peer-python", "/nowhere/python"],
    ],
)
def test_bad_options_are_one_line(arguments, tmp_path, capsys):
    assert main(["bench", "--out", str(tmp_path), *arguments]) == 2
    assert capsys.readouterr().err.strip()


def test_rounds_are_interleaved():
    order = []
    cases = [Case("s", "id", name, "u", lambda n=name: order.append(n) or 1.0) for name in "ab"]
    cases.append(Case("s", "id", "once", "u", lambda: order.append("c") or 1.0, rounds=1))
    results, whole = interleave(cases, 3, lambda case: None)
    assert whole
    assert "".join(order) == "abcabab"
    assert [len(result.samples) for result in results] == [3, 3, 1]


def test_a_pipe_hears_of_long_work(monkeypatch, capsys):
    monkeypatch.setattr(_console, "_QUIET_SECONDS", -1)
    with _console.steps_done("preparing") as tick:
        tick("preparing this", 0)
        tick("first", 2)
        tick("second", 2)
    assert capsys.readouterr().err.splitlines() == ["preparing this", "0 of 2: first", "1 of 2: second"]


def test_an_interrupt_keeps_what_was_measured(monkeypatch, tmp_path, capsys):
    samples = iter([1.0, 2.0, 3.0])

    def measure():
        value = next(samples, None)
        if value is None:
            raise KeyboardInterrupt
        return value

    monkeypatch.setattr(bench, "_cases", lambda *_: [Case("single", "Puzzle2048-v0", "x", "steps/s", measure)])
    assert main(["bench", "--json", "--out", str(tmp_path)]) == 130
    told = capsys.readouterr()
    assert json.loads(told.out)["results"][0]["samples"] == [1.0, 2.0, 3.0]
    assert "stopped early" in told.err


def stopwatch(env_id):
    """The rate that a batch measures over the one counted from outside: moves made over the time inside ``step``."""
    batch = stepping.Batch(env_id, 256, num_threads=1)
    made, spent, inner = 0, 0.0, batch.envs.step

    def step(actions):
        nonlocal made, spent
        waiting = int(batch.resets.sum())
        before = time.perf_counter()
        answer = inner(actions)
        spent += time.perf_counter() - before
        made += 256 - waiting
        return answer

    batch.envs.step = step
    rate = batch.measure(0.1)
    assert made > 10_000
    return rate / (made / spent)


@pytest.mark.parametrize("env_id", PUZZLES)
def test_rates_are_those_of_a_stopwatch(env_id):
    """Other work on the machine can fall between the two clocks once, but not every time."""
    assert any(stopwatch(env_id) == pytest.approx(1, rel=0.2) for _ in range(5))


def test_memory_is_what_the_arrays_hold():
    kept = stepping._allocated(lambda: np.zeros(1_000_000, dtype=np.uint8))
    assert 1_000_000 <= kept < 1_100_000


def test_cold_start_counts_until_the_first_output():
    assert (
        0.3
        < starting.seconds_until_done("import time, sys; time.sleep(0.3); print('x', flush=True); time.sleep(3)")
        < 3
    )
    with pytest.raises(RuntimeError, match="ValueError: no"):
        starting.seconds_until_done("raise ValueError('no')")


def test_training_rate():
    config = replace(ppo_config("Puzzle2048-v0"), num_envs=8, n_steps=16, batch_size=64)
    learner = training.Training(config, SB3VecEnv(make_batch(config)))
    before, start = learner.learner.num_timesteps, time.perf_counter()
    rate = learner.measure(0.2)
    assert rate == pytest.approx((learner.learner.num_timesteps - before) / (time.perf_counter() - start), rel=0.3)


WORKER = """
import json, sys
print(json.dumps({"peer": sys.argv[1], "version": "9", "cases": {"single": "a step", "vector": "a batch"}}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if request["case"] == "vector":
        print(json.dumps({"error": "no batch today"}), flush=True)
    else:
        print(json.dumps({"steps_per_second": request["size"] * 1000.0}), flush=True)
"""


@pytest.fixture
def fake_worker(monkeypatch, tmp_path):
    path = tmp_path / "worker.py"
    path.write_text(textwrap.dedent(WORKER))
    monkeypatch.setattr(peers, "_WORKER", path)
    monkeypatch.setattr(peers, "find", lambda _: {"jumanji": sys.executable})
    return monkeypatch


def test_peers_stand_beside_ours(fake_worker, tmp_path, capsys):
    """And their processes end with the command."""
    workers = []
    inner = peers.Peer.__init__

    def noted(self, *arguments):
        inner(self, *arguments)
        workers.append(self.process)

    fake_worker.setattr(peers.Peer, "__init__", noted)
    fake_worker.setattr(peers, "_kinds", lambda peer: iter([("single", 1)]))
    report = bench_json(tmp_path, capsys, "--peers", "--rounds", "1", "--sections", "single")
    assert list(report["ratios"]) == ["jumanji 9: single"]
    assert report["ratios"]["jumanji 9: single"] > 1
    assert [process.poll() for process in workers] == [0]


def test_peers_answer_on_demand(fake_worker):
    peer = peers.Peer("jumanji", sys.executable)
    assert (peer.version, set(peer.cases)) == ("9", {"single", "vector"})
    assert peer.ask("single", 7, 0.1) == 7000
    with pytest.raises(RuntimeError, match="jumanji: no batch today"):
        peer.ask("vector", 7, 0.1)
    peer.close()


def test_ratios_compare_equal_work():
    rates = {
        "puzzlegym: single": 300.0,
        "puzzlegym: vector 1,024": 40.0,
        "puzzlegym: vector 8,192": 50.0,
        "a 1: single": 100.0,
        "a 1: single_with_mask": 30.0,
        "a 1: vector 1,024": 20.0,
        "b 2: scan 8,192": 5.0,
    }
    results = [
        Result(Case("peers", "Puzzle2048-v0", name, "steps/s", lambda: 0), [rate]) for name, rate in rates.items()
    ]
    times = {ratio.name: ratio.times for ratio in peers.ratios(results)}
    assert times == {"a 1: single": 3, "a 1: single_with_mask": 10, "a 1: vector 1,024": 2, "b 2: scan 8,192": 10}


def test_no_peer_is_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(peers, "PEERS", {"nobody": "no_such_module_anywhere"})
    assert main(["bench", "--peers", "--out", str(tmp_path)]) == 2
    assert "no peer is installed" in capsys.readouterr().err


def test_the_worker_needs_no_package_of_ours():
    source = Path(peers._WORKER).read_text()
    assert "puzzlegym." not in source.replace("puzzlegym bench", "")


@pytest.mark.parametrize(
    ("x", "text"), [(0.4312, "0.431"), (21.37, "21.4"), (317_000, "317 k"), (40_123_000, "40.1 M"), (1234, "1.23 k")]
)
def test_numbers_are_short(x, text):
    assert bench.number(x) == text
