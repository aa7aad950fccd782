"""Threads share the rows of a batch: what comes out does not depend on them, and no error or fork outlasts its call."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from puzzlegym.envs.common import threads
from puzzlegym.envs.registry import PUZZLES
from reference.playing import assert_same, choose_all
from reference.trajectory import feed

every_puzzle = pytest.mark.parametrize("puzzle_id", PUZZLES)
every_mode = pytest.mark.parametrize("mode", list(AutoresetMode))
GAMES = 11  # not a multiple of 2, 3 or 5

# Arguments that differ from game to game, so that it shows if a part plays by those of other rows.
VARIED = {
    "Puzzle2048-v0": {"prob_four": [i / 10 for i in range(GAMES)]},
    "FreeCell-v0": {"start_rank": [i % 7 for i in range(GAMES)], "autoplay": [i % 3 > 0 for i in range(GAMES)]},
}


def kind_of(puzzle_id):
    """The class of a puzzle's native batch."""
    return type(gym.make_vec(puzzle_id, num_envs=1).unwrapped)


@pytest.fixture
def small_parts(monkeypatch):
    """No batch is too small for a part of its own to every row."""
    for puzzle_id in PUZZLES:
        kind = kind_of(puzzle_id)
        monkeypatch.setattr(kind, "puzzle", dataclasses.replace(kind.puzzle, rows_per_thread=1))


def make(puzzle_id, num_threads, mode=AutoresetMode.NEXT_STEP, limit=9, **more):
    more = {"num_envs": GAMES, "max_episode_steps": limit, "autoreset_mode": mode, **more}
    return gym.make_vec(puzzle_id, num_threads=num_threads, **more)


def go_on(venv, steps, rng):
    """All that a started batch returns in so many steps, with illegal moves and resets of some games; its states."""
    results = []
    for _ in range(steps):
        results.append(venv.step(choose_all(venv.action_masks(), rng, illegal=0.2)))
        ended = results[-1][2] | results[-1][3]
        if ended.any() and venv.metadata["autoreset_mode"] == AutoresetMode.DISABLED:
            some = ended | (rng.random(len(ended)) < 0.2)
            results.append(venv.reset(options={"reset_mask": some}))
        results.append(venv.get_state())
    return copy.deepcopy(results)


def start(venv, puzzle_id, seed=5):
    results = [venv.reset(seed=seed)]
    for name, values in VARIED.get(puzzle_id, {}).items():
        venv.set_attr(name, values)
    return [*results, venv.get_state(), venv.reset(), venv.get_state()]


def whole_play(venv, puzzle_id, steps, seed=5):
    return start(venv, puzzle_id, seed) + go_on(venv, steps, np.random.default_rng(seed))


def same_bytes(left, right):
    assert_same(left, right)
    digests = [hashlib.sha256(), hashlib.sha256()]
    for digest, results in zip(digests, (left, right), strict=True):
        feed(digest, tuple(results))
    assert digests[0].digest() == digests[1].digest(), "equal in value but not in bytes"


@every_puzzle
@every_mode
@pytest.mark.parametrize(("limit", "steps"), [(9, 40), (110, 230)])
def test_threads_change_nothing(puzzle_id, mode, limit, steps, small_parts):
    alone = whole_play(make(puzzle_id, 1, mode, limit), puzzle_id, steps)
    plays = [result for result in alone if isinstance(result, tuple) and len(result) == 5]
    assert sum((terminated | truncated).sum() for _, _, terminated, truncated, _ in plays) > GAMES
    assert limit == 9 or any(terminated.any() for _, _, terminated, _, _ in plays)
    assert not all(infos["legal"].all() for *_, infos in plays)
    for num_threads in (2, 3, 5):
        same_bytes(whole_play(make(puzzle_id, num_threads, mode, limit), puzzle_id, steps), alone)


@every_puzzle
@every_mode
def test_large_batches_as_they_are(puzzle_id, mode):
    """With nothing lowered; the parts begin and end wherever they do."""
    games, plays = 2 * kind_of(puzzle_id).puzzle.rows_per_thread + 3, []
    for num_threads in (1, 2):
        venv, rng = make(puzzle_id, num_threads, mode, limit=4, num_envs=games), np.random.default_rng(0)
        plays.append([venv.reset(seed=1)])
        for _ in range(4):
            plays[-1] += [venv.step(rng.integers(venv.single_action_space.n, size=games)), venv.get_state()]
    same_bytes(*plays)


@every_puzzle
def test_boards_and_snapshots_on_threads(puzzle_id, small_parts):
    *_, (boards, *_), rows = whole_play(make(puzzle_id, 1, limit=25), puzzle_id, 20)
    plays = []
    for num_threads in (1, 2, 3, 5):
        venv = make(puzzle_id, num_threads, limit=25)
        plays.append([venv.reset(seed=3, options={"board": boards[::-1]}), venv.get_state()])
        assert np.array_equal(plays[-1][0][0], boards[::-1])
        plays[-1] += go_on(venv, 10, np.random.default_rng(2))
        venv.set_state(rows)
        plays[-1] += [venv.action_masks(), venv.get_state(), *go_on(venv, 10, np.random.default_rng(3))]
    for play in plays[1:]:
        same_bytes(play, plays[0])


def watch(monkeypatch, puzzle_id, rows_per_thread):
    """A list that each call of the kernel adds its (first, last) to."""
    kind, calls = kind_of(puzzle_id), []
    kernel = kind.puzzle.advance_rows

    def watched(rows, config, todo, actions, limit, first, last, *out):
        calls.append((first, last))
        return kernel(rows, config, todo, actions, limit, first, last, *out)

    rows_per_thread = rows_per_thread or kind.puzzle.rows_per_thread
    changed = dataclasses.replace(kind.puzzle, rows_per_thread=rows_per_thread, advance_rows=watched)
    monkeypatch.setattr(kind, "puzzle", changed)
    return calls


PARTS = [  # (games, threads, rows per thread, parts)
    (11, 5, 1, 5),
    (11, 3, 1, 3),
    (11, 2, 1, 2),
    (11, 1, 1, 1),
    (5, 5, 1, 5),
    (3, 5, 1, 3),
    (1, 5, 1, 1),
    (7, 5, 8, 1),
    (15, 2, 8, 1),
    (16, 2, 8, 2),
    (16, 3, 8, 2),
    (23, 3, 8, 2),
    (24, 3, 8, 3),
    (100, 3, 8, 3),
    (100, 5, None, 1),
]


@every_puzzle
@pytest.mark.parametrize(("games", "num_threads", "rows_per_thread", "parts"), PARTS)
def test_parts(puzzle_id, games, num_threads, rows_per_thread, parts, monkeypatch):
    """All rows once, in parts of nearly the same length; no more parts than threads or than the batch is worth."""
    calls = watch(monkeypatch, puzzle_id, rows_per_thread)
    venv = make(puzzle_id, num_threads, num_envs=games)
    for call in (lambda: venv.reset(seed=0), lambda: venv.step(np.zeros(games, dtype=int))):
        calls.clear()
        call()
        assert len(calls) == parts
        assert [row for first, last in sorted(calls) for row in range(first, last)] == list(range(games))
        lengths = [last - first for first, last in calls]
        assert max(lengths) - min(lengths) <= 1


@every_puzzle
def test_one_thread_for_each_that_is_available(puzzle_id, monkeypatch):
    calls = watch(monkeypatch, puzzle_id, 1)
    monkeypatch.setattr(threads, "available", lambda: 4)
    make(puzzle_id, None).reset(seed=0)
    assert len(calls) == 4


@every_puzzle
@pytest.mark.parametrize("num_threads", [0, -1])
def test_no_threads_are_refused(puzzle_id, num_threads):
    with pytest.raises(ValueError, match=f"num_threads .*{num_threads}") as error:
        gym.make_vec(puzzle_id, num_envs=2, num_threads=num_threads)
    assert "\n" not in str(error.value)


def test_batches_of_different_python_threads(small_parts):
    """All at once they share one pool; each plays as it does alone."""
    games = [(puzzle_id, num_threads) for puzzle_id in PUZZLES for num_threads in (2, 3)]
    together = threading.Barrier(len(games))

    def play(puzzle_id, num_threads):
        venv = make(puzzle_id, num_threads)
        together.wait(60)
        return whole_play(venv, puzzle_id, 60, seed=num_threads)

    with ThreadPoolExecutor(len(games)) as pool:
        tasks = [pool.submit(play, *game) for game in games]
    for (puzzle_id, num_threads), task in zip(games, tasks, strict=True):
        same_bytes(task.result(), whole_play(make(puzzle_id, 1), puzzle_id, 60, seed=num_threads))


TWINS = {"deep copy": copy.deepcopy, "pickled": lambda venv: pickle.loads(pickle.dumps(venv))}


@every_puzzle
@every_mode
@pytest.mark.parametrize("twin", TWINS.values(), ids=TWINS.keys())
@pytest.mark.parametrize("fresh", [True, False])
def test_copies_of_a_threaded_batch(puzzle_id, mode, twin, fresh, small_parts):
    venv = make(puzzle_id, 3, mode)
    if not fresh:
        whole_play(venv, puzzle_id, 15)
    other = twin(venv)
    if fresh:
        same_bytes(start(other, puzzle_id), start(venv, puzzle_id))
    rows = venv.get_state()
    results = go_on(other, 25, np.random.default_rng(1))
    assert np.array_equal(venv.get_state(), rows), "playing the copy leaves the original alone"
    same_bytes(results, go_on(venv, 25, np.random.default_rng(1)))


# The pool itself, with tasks in Python.


def workers():
    return sum(thread.name.startswith("puzzlegym-") for thread in threading.enumerate())


@pytest.mark.parametrize(("n", "parts"), [(10, 1), (10, 2), (10, 3), (10, 10), (3, 5), (0, 2), (4097, 64)])
def test_split(n, parts):
    ranges = threads.split(n, parts)
    assert len(ranges) == parts
    assert [i for first, last in ranges for i in range(first, last)] == list(range(n))
    lengths = [last - first for first, last in ranges]
    assert max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize("parts", [1, 2, 3, 6])
def test_parts_run_at_once_and_are_added_up(parts):
    together, idents = threading.Barrier(parts), set()

    def task(first, last):
        together.wait(10)  # for all the others
        idents.add(threading.get_ident())
        return sum(range(first, last))

    for _ in range(3):
        idents.clear()
        assert threads.spread(task, threads.split(100, parts)) == sum(range(100))
        assert len(idents) == parts
        assert threading.get_ident() in idents
    assert workers() >= parts - 1


def test_workers_are_kept():
    threads.spread(lambda first, last: last - first, threads.split(8, 4))
    before = workers()
    for _ in range(50):
        assert threads.spread(lambda first, last: last - first, threads.split(8, 4)) == 8
    assert workers() == before


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("failing", [{0}, {1}, {2}, {3}, {0, 2}, {1, 2, 3}, {0, 1, 2, 3}], ids=str)
def test_an_error_comes_after_all_parts(failing, error):
    parts, ended = threads.split(8, 4), []

    def task(first, last):
        if first // 2 in failing:
            raise error(f"part {first // 2}")
        time.sleep(0.02 * (1 + first))
        ended.append(first // 2)
        return 1

    with pytest.raises(error, match=r"part \d"):
        threads.spread(task, parts)
    assert set(ended) == {0, 1, 2, 3} - failing
    before = workers()
    for _ in range(5):
        assert threads.spread(lambda first, last: last - first, parts) == 8
    assert workers() == before, "no worker was lost"


def test_the_pool_keeps_nothing():
    class Task:
        def __call__(self, first, last):
            return last - first

    task = Task()
    gone = weakref.ref(task)
    threads.spread(task, threads.split(8, 4))
    del task
    for _ in range(100):  # a worker lets go of its task a moment after it is done
        if gone() is None:
            break
        time.sleep(0.01)
    assert gone() is None


def run(script, **environment):
    """What a fresh process prints."""
    environment = {**os.environ, **environment}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


INTERRUPT = """
import signal, threading, time
from puzzlegym.envs.common import threads

ended = []

def task(first, last):
    if first == 0:
        return 1  # here; the main thread waits for the other part
    time.sleep(0.2)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    time.sleep(0.5)
    ended.append(first)
    return 1

try:
    threads.spread(task, threads.split(4, 2))
except KeyboardInterrupt:
    print("interrupted", ended)
print(threads.spread(lambda first, last: last - first, threads.split(9, 3)))
"""


def test_an_interrupt_from_the_keyboard_waits_for_all_parts():
    assert run(INTERRUPT).splitlines() == ["interrupted [2]", "9"]


FORK = """
import dataclasses, multiprocessing, threading
import gymnasium, puzzlegym

def play(venv):
    for _ in range(20):
        venv.step(venv.action_masks().argmax(axis=1))
    return venv.get_state().tobytes(), threading.active_count()

def grandchild(venv, pipe):
    pipe.send(play(venv))

def child(venv, pipe):
    pipe.send(play(venv))
    pipe.send(forked(grandchild, venv)[0])

def forked(target, venv):
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=target, args=(venv, there))
    process.start()
    there.close()
    answers = []
    try:
        for _ in range(1 if target is grandchild else 2):
            assert here.poll(20), "it hangs"
            answers.append(here.recv())
        process.join(20)
        assert process.exitcode == 0
    finally:
        process.kill()
    return answers

for puzzle_id in puzzlegym.PUZZLES:
    kind = type(gymnasium.make_vec(puzzle_id, num_envs=1))
    kind.puzzle = dataclasses.replace(kind.puzzle, rows_per_thread=1)
    venv = gymnasium.make_vec(puzzle_id, num_envs=11, num_threads=3)
    venv.reset(seed=1)
    play(venv)
    answers = forked(child, venv)
    assert answers == [play(venv), play(venv)]
    print(answers[0][1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_has_threads_of_its_own():
    """And so has one that is forked from it, while the parent's go on: the caller's thread and two workers each."""
    assert run(FORK).split() == ["3"] * len(PUZZLES)


@pytest.mark.parametrize("number", ["1", "1000"])
def test_numba_num_threads_limits_what_is_available(number):
    script = "import os; from puzzlegym.envs.common import threads; print(threads.available(), os.cpu_count())"
    available, cores = map(int, run(script, NUMBA_NUM_THREADS=number).split())
    assert available == 1 if number == "1" else 1 <= available <= cores
