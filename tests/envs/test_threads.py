"""Threads share the rows of a batch: what comes out does not depend on them, and no error or fork outlasts its call."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import os
import pickle
import signal
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
    """No batch is too small for a thread to every row."""
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
    """A list that each step or reset adds (first row, behind the last, threads) to."""
    kind, calls, spread = kind_of(puzzle_id), [], threads.spread
    kernel = kind.puzzle.advance_rows

    def watched(rows, config, todo, actions, limit, first, last, *out):
        calls.append((first, last, 1))
        return kernel(rows, config, todo, actions, limit, first, last, *out)

    def watched_spread(kernel, rows, num_threads, *arguments):
        calls.append((0, rows, num_threads))
        return spread(kernel, rows, num_threads, *arguments)

    rows_per_thread = rows_per_thread or kind.puzzle.rows_per_thread
    changed = dataclasses.replace(kind.puzzle, rows_per_thread=rows_per_thread, advance_rows=watched)
    monkeypatch.setattr(kind, "puzzle", changed)
    monkeypatch.setattr(threads, "spread", watched_spread)
    return calls


CASES = [  # (games, threads, rows per thread, threads that are used)
    (11, 5, 1, 5),
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
@pytest.mark.parametrize(("games", "num_threads", "rows_per_thread", "used"), CASES)
def test_no_more_threads_than_the_batch_is_worth(puzzle_id, games, num_threads, rows_per_thread, used, monkeypatch):
    calls = watch(monkeypatch, puzzle_id, rows_per_thread)
    venv = make(puzzle_id, num_threads, num_envs=games)
    venv.reset(seed=0)
    venv.step(np.zeros(games, dtype=int))
    assert calls == [(0, games, used)] * 2


@every_puzzle
def test_one_thread_for_each_that_is_available(puzzle_id, monkeypatch):
    calls = watch(monkeypatch, puzzle_id, 1)
    monkeypatch.setattr(threads, "available", lambda: 4)
    make(puzzle_id, None).reset(seed=0)
    assert calls == [(0, GAMES, 4)]


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


# The threads themselves, with kernels in Python.


def kernel_of(play, before=lambda ticket: None):
    """A kernel that shares out its rows as ``share_rows`` does; ``play(ticket, first, last)`` returns how many ended.

    The calling thread has the ticket 0. ``before(ticket)`` is called before rows are claimed.
    """

    def kernel(share, pulse, ticket):
        threads.enter(pulse, ticket)
        before(ticket)
        first, last = threads.claim(share)
        while first < last:
            threads.finish(share, last - first, play(ticket, first, last))
            before(ticket)
            first, last = threads.claim(share)
        threads.leave(share, pulse, ticket)

    return kernel


def workers():
    return sum(thread.name.startswith("puzzlegym") for thread in threading.enumerate())


def all_help(num_threads):
    """Do so many threads work on one call? A worker that is just falling asleep may miss one."""
    for _ in range(50):
        idents = set()

        def play(ticket, first, last, idents=idents):
            if threading.get_ident() not in idents:
                idents.add(threading.get_ident())
                time.sleep(0.02)  # for the others to come
            return last - first

        assert threads.spread(kernel_of(play), 100, num_threads) == 100
        if len(idents) == num_threads:
            return True
    return False


@pytest.mark.parametrize("num_threads", [1, 2, 3, 6])
@pytest.mark.parametrize("rows", [1, 2, 7, 23, 100, 4097])
def test_every_row_is_given_out_once(rows, num_threads):
    for _ in range(5):
        given = []

        def play(ticket, first, last, given=given):
            given.extend(range(first, last))
            return sum(range(first, last))

        assert threads.spread(kernel_of(play), rows, num_threads) == sum(range(rows))
        assert sorted(given) == list(range(rows))


@pytest.mark.parametrize("num_threads", [2, 3, 6])
def test_all_threads_help(num_threads):
    assert all_help(num_threads)


def test_no_thread_has_most_of_the_rows_from_the_start():
    """A slow thread, here the calling one, keeps nobody waiting for more than a part of its share."""
    lengths = []
    threads.spread(kernel_of(lambda ticket, first, last: lengths.append(last - first) or 0), 10_000, 4)
    assert max(lengths) <= 10_000 // 4 // 2


def test_workers_are_kept():
    threads.spread(kernel_of(lambda ticket, first, last: 0), 100, 4)
    before = workers()
    for _ in range(50):
        assert threads.spread(kernel_of(lambda ticket, first, last: last - first), 8, 4) == 8
        threads.spread(kernel_of(lambda ticket, first, last: 0), 8, 2)
    assert workers() == before >= 3


def test_a_call_within_a_call_is_made_alone():
    """Another thread that calls meanwhile does not wait, and nobody else works on its rows."""
    inner = []

    def play(ticket, first, last):
        idents = set()
        ended = threads.spread(kernel_of(lambda ticket, a, b: idents.add(threading.get_ident()) or b - a), 20, 3)
        inner.append((ended, idents == {threading.get_ident()}))
        return last - first

    assert threads.spread(kernel_of(play), 8, 3) == 8
    assert set(inner) == {(20, True)}


@pytest.mark.parametrize(("rows_before", "error"), [(0, KeyboardInterrupt), (1, ValueError), (3, SystemExit)])
def test_after_an_error_nobody_works_on_the_rows(rows_before, error):
    """The calling thread fails while workers are about to claim rows, or after they have done some."""
    begun, ended, enough = [], [], threading.Event()

    def before(ticket):
        if ticket == 0 and enough.wait(1):  # if not: a worker that was just falling asleep missed this call
            raise error("the calling thread")
        if len(ended) >= rows_before:
            enough.set()
        time.sleep(0.03)

    def play(ticket, first, last):
        begun.append(first)
        time.sleep(0.03)
        ended.append(first)
        return 1

    def call():
        for _ in range(20):
            begun.clear(), ended.clear()
            threads.spread(kernel_of(play, before), 16, 3)

    with pytest.raises(error, match="the calling thread"):
        call()
    then = sorted(begun), sorted(ended)
    time.sleep(0.2)
    now = sorted(begun), sorted(ended)
    assert now[0] == now[1]
    assert now == then, "somebody went on"
    assert all_help(3)


def test_nothing_is_kept():
    class Kernel:
        def __call__(self, *arguments):
            kernel_of(lambda ticket, first, last: 1)(*arguments)

    kernel = Kernel()
    gone = weakref.ref(kernel)
    threads.spread(kernel, 8, 4)
    del kernel
    for _ in range(100):  # a worker lets go of a call a moment after it
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

begun, ended, at_it = [], [], threading.Event()

def kernel(share, pulse, ticket):
    threads.enter(pulse, ticket)
    if ticket == 0 and not at_it.wait(1):
        return  # a worker that was just falling asleep missed this call
    first, last = threads.claim(share)
    while first < last:
        begun.append(first)
        if ticket:
            at_it.set()
            time.sleep(0.2)  # by now the main thread waits for these rows
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            time.sleep(0.3)
        ended.append(first)
        threads.finish(share, last - first, 0)
        first, last = threads.claim(share)
    threads.leave(share, pulse, ticket)

try:
    for _ in range(20):
        threads.spread(kernel, 16, 2)
except KeyboardInterrupt:
    print(len(begun) > 0, len(begun) - len(ended))

def count(share, pulse, ticket):
    first, last = threads.claim(share)
    while first < last:
        threads.finish(share, last - first, last - first)
        first, last = threads.claim(share)

print(threads.spread(count, 9, 2))  # a worker that is still awake helps, too
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="there is no pthread_kill")
def test_an_interrupt_from_the_keyboard_waits_for_the_workers():
    assert run(INTERRUPT).split() == ["True", "0", "9"]


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
