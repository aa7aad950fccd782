"""Work in several processes: all of it is done once, faults are raised here, and no process stays behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from puzzlegym.agents.workers import in_order, spread


def test_everything_is_done_once() -> None:
    chunks = [[3 * i, 3 * i + 1, 3 * i + 2] for i in range(20)]
    results = list(spread(partial(map, str), chunks, 2))
    assert sorted(results, key=int) == [str(i) for i in range(60)]
    assert multiprocessing.active_children() == []


def test_results_in_the_order_of_their_numbers() -> None:
    results = in_order(iter([(2, "c"), (0, "a"), (1, "b"), (4, "e"), (3, "d")]), range(5))
    assert list(results) == ["a", "b", "c", "d", "e"]
    first = in_order(((number, number) for number in [0, 1]), range(3))
    assert next(first) == 0, "none waits for what comes later"


def test_no_work_starts_no_process() -> None:
    assert list(spread(partial(map, str), [], 4)) == []


def test_what_is_raised_there_is_raised_here() -> None:
    results = spread(partial(map, int), [["1", "x"]], 2)
    assert next(results) == 1
    with pytest.raises(ValueError, match="'x'"):
        next(results)
    assert multiprocessing.active_children() == []


def test_a_process_that_was_killed_is_an_error() -> None:
    with pytest.raises(ChildProcessError, match="killed while it worked"):
        list(spread(partial(map, os._exit), [[1]], 2))


def test_who_stops_listening_ends_the_processes() -> None:
    with closing(spread(partial(map, time.sleep), [[0, 600]], 1)) as results:
        next(results)
        assert len(multiprocessing.active_children()) == 1
    assert multiprocessing.active_children() == []


def gone(pid: int) -> bool:
    try:
        return "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_processes_end_with_the_one_that_started_them(number: signal.Signals) -> None:
    """Ctrl-C goes to all of them, and they say nothing."""
    code = """if True:
        import multiprocessing, time
        from functools import partial
        from puzzlegym.agents.workers import spread
        if __name__ == "__main__":
            for _ in spread(partial(map, time.sleep), [[0.01] * 100_000] * 2, 2):
                print(*(process.pid for process in multiprocessing.active_children()), flush=True)
    """
    call = [sys.executable, "-c", code]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(call, text=True, start_new_session=True, **pipes) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        assert len(pids) == 2
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.kill()
        _, err = process.communicate(timeout=20)
    assert process.returncode == -number
    assert err.count("Traceback") == (1 if number == signal.SIGINT else 0), err
    end = time.monotonic() + 20
    while not all(map(gone, pids)):
        assert time.monotonic() < end
        time.sleep(0.02)
