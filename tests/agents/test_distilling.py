"""A FreeCell network that learns the mean of its views, and the views themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from puzzlegym.agents import saved
from puzzlegym.agents.configs import CloneConfig, DistillConfig
from puzzlegym.agents.distilling import DistillRun
from puzzlegym.agents.errors import AgentError
from puzzlegym.agents.network_policy import arrays_of
from puzzlegym.agents.networks import ILLEGAL, CardAfterstateNet
from puzzlegym.agents.networks.suit_views import VIEWS, SuitViews
from puzzlegym.agents.policy import load
from puzzlegym.agents.runs import Budget, Progress
from puzzlegym.envs.freecell import legal_mask
from puzzlegym.envs.freecell.state import check_board
from reference.playing import choose_all
from torch import Tensor, nn

HIDDEN = {"hidden": (24, 16)}
SMALL = DistillConfig(network_arguments=HIDDEN, num_envs=8, batch_size=64, mixed=8, kept=40)


class Silent:
    def update(self, progress: Progress) -> None:
        pass


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def network() -> CardAfterstateNet:
    torch.manual_seed(0)
    net = CardAfterstateNet(**HIDDEN)
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.2)
    return net.eval()


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """A saved agent whose views differ a lot."""
    folder = tmp_path / "agent"
    folder.mkdir()
    config = replace(CloneConfig(), network_arguments=HIDDEN).as_dict()
    card = {"env_id": "FreeCell-v0", "algorithm": "cloning", "config": config}
    saved.save(folder / saved.FILE, card, arrays_of(network()), {})
    return folder


def positions(moves: int = 25) -> tuple[Tensor, Tensor]:
    venv, rng = gymnasium.make_vec("FreeCell-v0", num_envs=12), np.random.default_rng(0)
    obs, infos = venv.reset(seed=0)
    for _ in range(moves):
        obs, _, _, _, infos = venv.step(choose_all(infos["action_mask"].astype(bool), rng))
    return torch.as_tensor(obs), torch.as_tensor(infos["action_mask"].astype(bool))


def test_there_are_8_ways_to_call_the_suits() -> None:
    assert VIEWS[0] == (0, 1, 2, 3)
    assert len(set(VIEWS)) == 8
    for names in VIEWS:
        assert sorted(names) == [0, 1, 2, 3]
        assert {names[0], names[3]} in ({0, 3}, {1, 2}), "suits of one colour stay together"


@pytest.mark.parametrize("view", range(8))
def test_a_view_is_the_same_game(view: int) -> None:
    """Its boards are legal ones, with the same legal moves under other names."""
    obs, masks = positions()
    boards, seen = SuitViews(network()).seen(obs, masks, view)
    for board, mask in zip(boards.numpy(), seen.numpy(), strict=True):
        check_board(board)
        np.testing.assert_array_equal(mask, legal_mask(board))
    assert (view == 0) == torch.equal(boards, obs)


def test_the_mean_does_not_mind_how_the_suits_are_called() -> None:
    obs, masks = positions()
    views = SuitViews(network())
    with torch.no_grad():
        logits, values = views(obs, masks)
        single, _ = views.network(obs, masks)
        for view in range(8):
            told, same = views(*views.seen(obs, masks, view))
            torch.testing.assert_close(views.told(told, view)[masks], logits[masks])
            torch.testing.assert_close(same, values)
    assert (logits[~masks] == ILLEGAL).all()
    assert not torch.allclose(torch.log_softmax(single, 1)[masks], logits[masks], atol=0.1), "one view does"


def test_one_view_is_the_network_itself() -> None:
    obs, masks = positions()
    with torch.no_grad():
        logits, values = SuitViews(network(), 1)(obs, masks)
        plain, worth = network()(obs, masks)
    torch.testing.assert_close(logits[masks], torch.log_softmax(plain, 1)[masks])
    torch.testing.assert_close(values, worth)
    for views in (0, 9):
        with pytest.raises(ValueError, match="1 to 8 views"):
            SuitViews(network(), views)


def test_the_views_are_learned(agent: Path, tmp_path: Path) -> None:
    """The network comes nearer to the mean of the teacher's views."""
    obs, masks = positions(5)
    with torch.no_grad():
        target = torch.softmax(SuitViews(network())(obs, masks)[0], 1)
    run = DistillRun(replace(SMALL, moves=4, batches=4), Budget(steps=6_000), 0, tmp_path / "run", agent)

    def distance() -> float:
        with torch.no_grad():
            return float((target - torch.softmax(run.network(obs, masks)[0], 1)).abs().sum(1).mean())

    before = distance()
    run.train(Silent())
    assert distance() < 0.8 * before
    assert 0.3 < run.figures()["agrees"] <= 1
    for name, value in arrays_of(run._views.network).items():
        np.testing.assert_array_equal(value, arrays_of(network())[name], err_msg="the teacher stays")


def test_a_run_is_saved_and_goes_on_with_its_teacher(agent: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run = DistillRun(SMALL, Budget(steps=500), 0, out, agent)
    run.train(Silent())
    card = saved.load_card(out)
    assert json.loads(json.dumps(card))["algorithm"] == "distillation"
    again = DistillRun.resume(out, Budget(steps=1000))
    for mine, other in ((run.network, again.network), (run._views.network, again._views.network)):
        for name, value in arrays_of(mine).items():
            np.testing.assert_array_equal(value, arrays_of(other)[name], err_msg=name)
    again.train(Silent())
    assert saved.load_card(out)["steps"] >= 1000
    player = load("FreeCell-v0", str(out))
    assert not isinstance(player.network, SuitViews), "one look is enough now"  # type: ignore[attr-defined]
    saved.save(out / saved.FILE, {**card, "config": {}}, arrays_of(run.network), {})
    with pytest.raises(AgentError, match=r"cannot be resumed|does not fit"):
        DistillRun.resume(out)


def test_it_needs_something_to_begin_with(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--from RUN"):
        DistillRun(SMALL, Budget(steps=1), 0, tmp_path / "run", None)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("views", [1, 8])
def test_an_agent_plays_by_as_many_views_as_its_card_says(views: int, agent: Path) -> None:
    card: dict[str, Any] = saved.load_card(agent)
    card["config"]["views"] = views
    saved.save(agent / saved.FILE, card, saved.load_weights(agent), {})
    obs, masks = positions()
    player = load("FreeCell-v0", str(agent), sample=False)
    with torch.no_grad():
        expected = SuitViews(network(), views)(obs, masks)[0].argmax(1)
    np.testing.assert_array_equal(player.act(obs.numpy(), masks.numpy(), None), expected)  # type: ignore[arg-type]
