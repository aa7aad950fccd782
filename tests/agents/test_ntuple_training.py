"""Runs of n-tuple learning: they learn, stop, resume, and refuse what does not fit."""

from __future__ import annotations

import numpy as np
import pytest
from puzzlegym.agents import logs, ntuple_training, saved
from puzzlegym.agents.configs import NTupleConfig
from puzzlegym.agents.errors import AgentError
from puzzlegym.agents.evaluation import evaluate
from puzzlegym.agents.ntuple_training import NTupleRun
from puzzlegym.agents.policy import load
from puzzlegym.agents.runs import Budget, Progress
from puzzlegym.agents.seeds import STREAMS, stream_seeds
from puzzlegym.envs.common.rng import seed_words

P2048 = "Puzzle2048-v0"


class Silent:
    """Takes reports, and may do something at one."""

    def __init__(self, act=lambda progress: None):
        self.act, self.last = act, Progress()

    def update(self, progress):
        self.last = progress
        self.act(progress)


def trained(out, steps, seed=0, **settings):
    run = NTupleRun(NTupleConfig(network="5x4", **settings), Budget(steps=steps), seed, out)
    run.train(Silent())
    return run


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    trained(out, 3_000_000)
    return out


def test_it_learns_to_reach_2048_in_seconds(learned):
    result = evaluate(P2048, load(P2048, str(learned)), 100)
    assert result.score_mean > 15_000
    assert result.rates["1024"].value > 0.5
    assert result.illegal_moves == 0
    figures = logs.read(learned).figures
    assert list(figures)[:2] == ["score", "2048"]
    assert figures["score"][-1] > 10_000


def test_the_card_says_what_was_done(learned):
    card = saved.load_card(learned, P2048)
    assert (card["algorithm"], card["config"]["network"], card["seed"]) == ("n-tuple TD", "5x4", 0)
    assert 3_000_000 <= card["steps"] < 3_100_000
    assert card["games"] > 500
    assert {"puzzlegym", "python", "numpy", "numba", "gymnasium"} <= set(card["versions"])


def test_one_thread_is_repeatable(tmp_path):
    tables = [trained(tmp_path / name, 300_000, seed).table for name, seed in (("a", 1), ("b", 1), ("c", 2))]
    assert (tables[0] == tables[1]).all()
    assert (tables[0] != tables[2]).any()


def test_stop_and_resume(tmp_path):
    run = NTupleRun(NTupleConfig(network="5x4"), Budget(steps=10**9), 3, tmp_path)

    def stop(progress):
        run.stop = progress.steps > 250_000

    run.train(Silent(stop))
    again = NTupleRun.resume(tmp_path, Budget(steps=run.progress.steps + 200_000))
    assert (again.table == run.table).all()
    assert [w.state[0] for w in again.workers] == [w.state[0] for w in run.workers]
    assert not again.finished
    again.train(Silent())
    assert again.progress.steps >= run.progress.steps + 200_000
    assert again.progress.seconds > run.progress.seconds
    assert again.games > run.games
    assert NTupleRun.resume(tmp_path).finished
    assert NTupleRun.resume(tmp_path / saved.FILE).out == tmp_path  # named by its file
    copy = (tmp_path / saved.FILE).rename(tmp_path / "copy.zip")
    with pytest.raises(AgentError, match="is not a run folder: it would go on in"):
        NTupleRun.resume(copy)


def test_two_threads_learn_together(tmp_path, monkeypatch):
    monkeypatch.setattr(ntuple_training, "WARM_UP", 200_000)
    run = trained(tmp_path, 2_000_000, threads=2)
    assert run.figures()["score"] > 8_000
    assert len({int(worker.state[0]) for worker in run.workers}) == 2


def test_plain_td(tmp_path):
    run = trained(tmp_path, 1_000_000, coherent=False, rate=0.1)
    assert run.table.shape[1] == 1
    assert run.figures()["score"] > 5_000


def test_what_cannot_be_is_refused(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="unknown n-tuple network '1x1': use 5x4, 4x5, 4x6, 8x6"):
        NTupleRun(NTupleConfig(network="1x1"), Budget(steps=1), 0, tmp_path)
    with pytest.raises(ValueError, match="threads must be 1 or more"):
        NTupleRun(NTupleConfig(threads=0), Budget(steps=1), 0, tmp_path)
    monkeypatch.setattr(ntuple_training, "free_memory", lambda: 10**8)
    with pytest.raises(ValueError, match=r"4x6 needs 0\.8 GB, and 0\.1 GB are free"):
        NTupleRun(NTupleConfig(), Budget(steps=1), 0, tmp_path)
    assert not list(tmp_path.iterdir())


def test_files_of_others_are_refused(tmp_path, learned):
    saved.save(tmp_path / "agent.zip", {"env_id": P2048, "algorithm": "magic"}, {}, {})
    with pytest.raises(AgentError, match="was trained by 'magic'"):
        load(P2048, str(tmp_path))
    card = saved.load_card(learned)
    saved.save(tmp_path / "agent.zip", card, {"values": np.zeros(3, dtype=np.float32)}, {})
    with pytest.raises(AgentError, match="a 5x4 network has 327,680 values"):
        load(P2048, str(tmp_path))
    with pytest.raises(AgentError, match="cannot be resumed"):
        NTupleRun.resume(tmp_path)


def test_it_learns_from_training_seeds_alone(tmp_path):
    run = NTupleRun(NTupleConfig(network="5x4", threads=3), Budget(steps=1), 7, tmp_path)
    seeds = stream_seeds("train", 7, 3)
    assert [int(worker.state[0]) for worker in run.workers] == seed_words(seeds.tolist()).tolist()
    assert STREAMS["train"] <= seeds.min() <= seeds.max() < min(STREAMS["selection"], STREAMS["test"])
