"""The commands with ``--ray``: results of the local run, whatever happens to the workers, and nothing stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import minari
import numpy as np
import pytest
import ray
from puzzlegym.agents import policy, ray_work, shipped
from puzzlegym.agents.evaluation import games, play, play_spread
from puzzlegym.agents.policy import load
from puzzlegym.agents.portable import PortableAgent
from puzzlegym.agents.ray_work import RayGoneError, connected, spread_on_ray
from puzzlegym.scripts.cli import main

CALL = [sys.executable, "-m", "puzzlegym.scripts.cli"]


@pytest.fixture(autouse=True)
def _no_lines_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes more than a few seconds tells on stderr how far it is: on a busy machine that is anything."""
    monkeypatch.setattr("puzzlegym.scripts._console._QUIET_SECONDS", float("inf"))


def called(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """What a command prints; what it says of Ray is on stderr."""
    assert main(list(argv)) == 0
    out, err = capsys.readouterr()
    assert all(line.startswith("Ray: ") for line in err.splitlines())
    assert ("--ray" in argv) == err.startswith("Ray: local, 3 CPUs\n")
    return out


def descendants(pid: int) -> dict[int, str]:
    """Processes started by this one, and by those: what they are called."""
    parents: dict[int, tuple[int, str]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (path / "stat").read_text().rpartition(")")[2].split()[:2]
            name = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, ValueError):  # it has just ended
            continue
        if state != "Z":
            parents[int(path.name)] = int(parent), name
    found, new = dict[int, str](), {pid}
    while new := {one for one, (parent, _) in parents.items() if parent in new}:
        found |= {one: parents[one][1] for one in new}
    return found


def workers(pid: int) -> list[int]:
    """Processes that do a task just now."""
    return [one for one, name in descendants(pid).items() if name.startswith("ray::_serve")]


@pytest.mark.usefixtures("local_ray")
class TestSpread:
    def test_everything_is_done_once(self) -> None:
        assert sorted(spread_on_ray(partial(map, str), iter(range(100)), 100), key=int) == [str(i) for i in range(100)]
        assert list(spread_on_ray(partial(map, str), [], 0)) == []

    def test_what_is_raised_there_is_raised_here(self) -> None:
        with pytest.raises(ValueError, match="'x'") as caught:
            list(spread_on_ray(partial(map, int), ["1", "x"], 2))
        assert type(caught.value) is ValueError, "and nothing of Ray's"

    def test_a_lost_worker_is_replaced(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        once = tmp_path / "once"
        dies = (
            f"(os := __import__('os')).path.exists({str(once)!r}) or (os.mkdir({str(once)!r}), os.kill(os.getpid(), 9))"
        )
        results = list(spread_on_ray(partial(map, eval), [*map(str, range(20)), dies], 21))
        assert sorted(results) == [0, True, *range(1, 20)]
        assert once.exists()
        assert capsys.readouterr().out == "", "standard output is for results"

    def test_one_that_is_always_lost_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ray_work, "_task", ray_work._task.options(max_retries=1))
        with pytest.raises(ChildProcessError, match="killed again and again"):
            list(spread_on_ray(partial(map, os._exit), [1], 1))

    def test_no_more_is_under_way_than_is_of_use(self) -> None:
        asked: list[int] = []

        def endless() -> Iterator[int]:
            while True:
                asked.append(len(asked))
                yield asked[-1]

        with closing(spread_on_ray(partial(map, str), endless(), 10**9)) as results:
            next(results)
            assert len(asked) <= 3 * ray_work._TASKS * ray_work._FIRST

    def test_who_stops_listening_ends_the_tasks(self) -> None:
        with closing(spread_on_ray(partial(map, time.sleep), [0.0] * 4 + [600.0] * 100, 104)) as results:
            next(results)
        end = time.monotonic() + 30
        while ray.available_resources().get("CPU") != 3:
            assert time.monotonic() < end
            time.sleep(0.1)


def test_portions() -> None:
    pace = ray_work._Pace(10_000, 1)
    assert pace.size(2) == ray_work._FIRST
    for _ in range(4):
        pace.note(pace.size(2), 0.001)
    assert pace.size(2) == ray_work._MOST
    pace.note(ray_work._MOST, 16 * ray_work._SECONDS)
    assert pace.size(2) == ray_work._MOST // 16
    pace.note(1, 1000.0)
    assert pace.size(2) == 1
    together = ray_work._Pace(200, 16)
    assert together.size(2) == 50, "about the same for everybody"
    assert together.size(64) == 16


@pytest.mark.usefixtures("local_ray")
class TestCommands:
    def test_solve_is_equal_byte_for_byte(self, capsys: pytest.CaptureFixture[str]) -> None:
        argv = ["solve", "--deals", "11901-12100", "--json", "--untimed"]
        assert called(capsys, *argv, "--ray") == called(capsys, *argv, "--jobs", "1")

    def test_solve_with_a_worker_killed_in_the_middle(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        argv = ["solve", "--deals", "1-60", "--short", "--untimed", "--out"]
        mine, its = tmp_path / "local.jsonl", tmp_path / "ray.jsonl"
        killed: list[int] = []

        def kill() -> None:
            while not killed:
                if its.exists() and its.read_bytes().count(b"\n") > 4 and (busy := workers(os.getpid())):
                    os.kill(busy[0], signal.SIGKILL)
                    killed.append(busy[0])

        killer = threading.Thread(target=kill)
        killer.start()
        summary = called(capsys, *argv, str(its), "--ray")
        killer.join()
        assert called(capsys, *argv, str(mine)) == summary
        assert mine.read_bytes() == its.read_bytes()

    @pytest.mark.parametrize(
        ("env_id", "agents"), [("Puzzle2048-v0", ["random", "ntuple"]), ("FreeCell-v0", ["random", "ppo", "learned"])]
    )
    def test_evaluate(self, env_id: str, agents: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        argv = ["evaluate", env_id, "--episodes", "20", "--seed", "5", "--json", "--agent", *agents]
        there, here = (json.loads(called(capsys, *argv, *more)) for more in (["--ray"], []))
        for one in *there, *here:
            assert one.pop("moves_per_second") > 0
        assert there == here

    def test_leaderboard(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        names = {"greedy": "baselines:Greedy2048", "corner": "baselines:Corner2048"}
        monkeypatch.setitem(policy.AGENTS, "Puzzle2048-v0", names)
        argv = ["leaderboard", "Puzzle2048-v0", "--episodes", "30", "--json"]
        there, here = (json.loads(called(capsys, *argv, *more)) for more in (["--ray"], []))
        assert [(one["agent"], one["score"]) for one in there] == [(one["agent"], one["score"]) for one in here]

    @pytest.mark.parametrize(
        "which",
        [
            ["FreeCell-v0", "--deals", "781940-781960"],
            ["Puzzle2048-v0", "--episodes", "10", "--agent", "random"],
        ],
    )
    def test_dataset(self, which: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        outs = tmp_path / "here", tmp_path / "there"
        for out, more in zip(outs, ([], ["--ray"]), strict=True):
            called(capsys, "dataset", *which, "--out", str(out), *more)
        here, there = (minari.MinariDataset(out / "data") for out in outs)
        assert here.storage.metadata["left_out"] == there.storage.metadata["left_out"]
        for one, other in zip(here, there, strict=True):
            for name in ("observations", "actions", "rewards", "terminations", "truncations"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
            assert all(np.array_equal(one.infos[name], other.infos[name]) for name in {**one.infos, **other.infos})
        facts = [list(made.storage.get_episode_metadata(range(len(made)))) for made in (here, there)]
        assert repr(facts[0]) == repr(facts[1]), "seeds and options"


@pytest.mark.usefixtures("local_ray")
@pytest.mark.parametrize("sizes", [[1] * 12, [5, 7], [12]])
def test_games_do_not_depend_on_how_they_are_spread(sizes: list[int]) -> None:
    """The file of the agent is needed here alone."""
    path = str(shipped.WEIGHTS / "learned-freecell.zip")
    chosen = games("FreeCell-v0", 12, 3)

    def spread(work: Any, items: Any, total: int, least: int = 1) -> Any:
        there = iter(items)
        task = ray.remote(lambda work, numbers: list(work(numbers)))
        refs = [task.remote(work, [next(there) for _ in range(size)]) for size in sizes]
        yield from (result for ref in reversed(refs) for result in ray.get(ref))

    local = play(load("FreeCell-v0", path), chosen)
    told: list[tuple[int, int, int]] = []
    spreaded = play_spread(spread, PortableAgent("FreeCell-v0", path), chosen, lambda *now: told.append(now))
    for name in ("scores", "moves", "illegal", "reached", "lost"):
        np.testing.assert_array_equal(getattr(spreaded, name), getattr(local, name))
    assert told[-1] == (12, 12, int(local.moves.sum()))


@pytest.mark.parametrize("address", ["nonsense", "host:12x", ":1", "ray://host", "host:99999"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(ValueError, match="auto, HOST:PORT or ray://HOST:PORT"):
        ray_work._knock(address)


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9", "nowhere.invalid:6379"])
def test_where_nobody_answers(address: str) -> None:
    done = subprocess.run(
        [*CALL, "solve", "--deals", "1-5", "--ray", address], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"puzzlegym solve: no Ray cluster at {address}: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.usefixtures("local_ray")
def test_a_cluster_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_work, "_LOOK", 0.0)
    monkeypatch.setattr(ray_work, "_PATIENCE", 0.0)
    monkeypatch.setattr(ray_work._Cluster, "_answers", lambda _self: False)
    with pytest.raises(RayGoneError, match="the Ray cluster is gone: nothing answers at "):
        list(spread_on_ray(partial(map, str), range(10), 10))


@pytest.mark.usefixtures("local_ray")
def test_a_connection_is_kept() -> None:
    with connected() as told:
        assert told == "local, 3 CPUs"
    assert ray.is_initialized()


def test_ctrl_c_ends_all_and_the_same_command_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    argv = [*CALL, "solve", "--deals", "1-40", "--short", "--untimed", "--out", str(path), "--ray"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(argv, text=True, start_new_session=True, **pipes) as process:
        end = time.monotonic() + 60
        while not path.exists() or path.read_bytes().count(b"\n") < 5:
            assert time.monotonic() < end
            time.sleep(0.02)
        started = descendants(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[1].startswith("puzzlegym solve: stopped, ")
    assert err.count("\n") == 2
    assert len(started) > 5
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]
    assert not list(Path("/tmp").glob(f"puzzlegym-{process.pid}-*"))
    kept = path.read_text().splitlines()
    assert main(["solve", "--deals", "1-40", "--short", "--untimed", "--out", str(path)]) == 0
    assert set(kept) <= set(path.read_text().splitlines())
