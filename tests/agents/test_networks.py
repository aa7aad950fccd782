"""The networks compute what their docstrings say."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from puzzlegym.agents.card_features import NOTHING, Afterstates, Scratch, look
from puzzlegym.agents.networks import ILLEGAL, AfterstateNet, CardAfterstateNet, CardNet, OneHotMLP, build
from puzzlegym.agents.networks.afterstate_net import TUPLES
from puzzlegym.agents.networks.layers import sum_rows
from puzzlegym.envs.freecell import action_name, apply, legal_mask
from puzzlegym.envs.puzzle2048 import move
from reference.playing import choose_all
from torch import Tensor, nn


@cache
def positions(env_id: str, moves: int = 40) -> tuple[Tensor, Tensor]:
    """Boards and masks of games after different numbers of random moves."""
    venv = gym.make_vec(env_id, num_envs=6, autoreset_mode="SameStep")
    obs, infos = venv.reset(seed=3)
    rng = np.random.default_rng(3)
    boards, masks = [], []
    for _ in range(moves):
        boards.append(obs)
        masks.append(infos["action_mask"].astype(bool))
        obs, _, _, _, infos = venv.step(choose_all(masks[-1], rng))
    return torch.as_tensor(np.concatenate(boards)), torch.as_tensor(np.concatenate(masks))


def one_hot_mlp() -> OneHotMLP:
    torch.manual_seed(0)
    return OneHotMLP(squares=16, values=18, actions=4, hidden=(32, 24, 20))


def afterstate_net(tuples: str = "pairs", orient: bool = True) -> AfterstateNet:
    torch.manual_seed(0)
    net = AfterstateNet(tuples, hidden=(24, 16), orient=orient)
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.3)
    return net


def card_net() -> CardNet:
    """A net with large weights everywhere: a wrong index anywhere is to be seen in its output."""
    torch.manual_seed(0)
    net = CardNet(width=16, hidden=24, heads=16)
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.3)
    for bag in (net.cards, net.needs, net.cells):
        bag.weight.data[0] = 0  # the padding: no card
    return net.eval()


def card_afterstate_net() -> CardAfterstateNet:
    torch.manual_seed(0)
    net = CardAfterstateNet(hidden=(24, 16))
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.3)
    return net.eval()


def outputs(net: nn.Module, obs: Tensor, masks: Tensor) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        logits, values = net(obs, masks)
    assert logits.shape == masks.shape
    assert values.shape == (len(obs),)
    return logits, values


def assert_close(left: Tensor, right: Tensor) -> None:
    torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-4)


def test_one_hot_mlp_is_a_dense_layer_on_the_one_hot_vector() -> None:
    net = one_hot_mlp()
    nn.init.normal_(net.bias)
    obs, masks = positions("Puzzle2048-v0")
    dense = nn.functional.one_hot(obs.flatten(1).long(), 18).flatten(1).float()
    hidden = torch.relu(dense @ net.first.weight + net.bias)
    for layer in (net.body[0], net.body[2]):
        hidden = torch.relu(hidden @ layer.weight.T + layer.bias)
    expected = hidden @ net.logits.weight.T + net.logits.bias
    logits, values = outputs(net, obs, masks)
    assert_close(logits[masks], expected[masks])
    assert (logits[~masks] == ILLEGAL).all()
    assert_close(values, (hidden @ net.value.weight.T + net.value.bias)[:, 0])


def test_one_hot_mlp_knows_every_tile_up_to_131072() -> None:
    board = torch.arange(16).view(1, 4, 4).to(torch.uint8) + 2
    outputs(one_hot_mlp(), board, torch.ones(1, 4, dtype=torch.bool))


NETS: list[Any] = [
    pytest.param("Puzzle2048-v0", one_hot_mlp, id="2048"),
    pytest.param("Puzzle2048-v0", afterstate_net, id="2048 afterstates"),
    pytest.param("FreeCell-v0", card_net, id="freecell"),
    pytest.param("FreeCell-v0", card_afterstate_net, id="freecell afterstates"),
]
CARD_NETS = pytest.mark.parametrize("make", [card_net, card_afterstate_net])


@pytest.mark.parametrize(("env_id", "make"), NETS)
def test_legal_moves_and_only_they_have_a_logit(env_id: str, make: Any) -> None:
    obs, masks = positions(env_id)
    logits, _ = outputs(make(), obs, masks)
    assert torch.isfinite(logits).all()
    assert torch.equal(logits > ILLEGAL / 2, masks)
    chances = torch.softmax(logits, 1)
    assert (chances[~masks] == 0).all()


@pytest.mark.parametrize(("env_id", "make"), NETS)
def test_rows_do_not_know_each_other(env_id: str, make: Any) -> None:
    net = make()
    obs, masks = positions(env_id)
    logits, values = outputs(net, obs, masks)
    order = torch.randperm(len(obs), generator=torch.Generator().manual_seed(0))
    shuffled = outputs(net, obs[order], masks[order])
    assert_close(shuffled[0], logits[order])
    assert_close(shuffled[1], values[order])
    for i in (0, 100, len(obs) - 1):
        alone = outputs(net, obs[i : i + 1], masks[i : i + 1])
        assert_close(alone[0][0], logits[i])
        assert_close(alone[1][0], values[i])


@pytest.mark.parametrize(("env_id", "make"), NETS)
def test_the_value_does_not_depend_on_the_mask(env_id: str, make: Any) -> None:
    net = make()
    obs, masks = positions(env_id)
    assert_close(outputs(net, obs, masks)[1], outputs(net, obs, torch.zeros_like(masks))[1])


def moved(values: Tensor, order: list[int]) -> Tensor:
    """Logits or masks of a board whose column i was column ``order[i]``."""
    return values.view(-1, 52, 10)[:, :, [*order, 8, 9]].reshape(len(values), 520)


def plain_judgement(net: AfterstateNet, tuples: str, after: Any, gain: int) -> Tensor:
    """Logit and value of an afterstate, by NumPy and one row of the table after the other."""
    boards = [np.rot90(one, turns) for one in (after, after.T) for turns in range(4)] if net.orient else [after]
    board = max((np.minimum(one, 15).ravel().tolist() for one in boards), key=lambda squares: squares[::-1])
    hidden, start = net.bias + net.gain * float(np.log2(1 + gain)) / 10, 0
    for squares in TUPLES[tuples]:
        hidden = hidden + net.table[start + sum(board[square] * 16**i for i, square in enumerate(squares))]
        start += 16 ** len(squares)
    hidden = torch.relu(torch.relu(hidden) @ net.body[0].weight.T + net.body[0].bias)
    return torch.cat([net.logits(hidden), net.value(hidden)])


@pytest.mark.parametrize("orient", [True, False])
@pytest.mark.parametrize("tuples", TUPLES)
def test_afterstate_net_judges_what_the_moves_lead_to(tuples: str, orient: bool) -> None:
    net = afterstate_net(tuples, orient)
    obs, masks = positions("Puzzle2048-v0")
    obs, masks = obs[::9], masks[::9]
    obs[0] = torch.arange(16).view(4, 4) + 2  # up to 131072: what is above 32768 counts as that
    masks[0] = torch.tensor([move(obs[0].numpy(), way)[2] for way in range(4)])
    logits, values = outputs(net, obs, masks)
    with torch.no_grad():
        for board, row, value in zip(obs.numpy(), logits, values, strict=True):
            told = [(way, *move(board, way)) for way in range(4)]
            judged = {way: plain_judgement(net, tuples, after, gain) for way, after, gain, legal in told if legal}
            assert_close(row[list(judged)], torch.tensor([float(one[0]) for one in judged.values()]))
            chances = torch.softmax(torch.tensor([float(one[0]) for one in judged.values()]), 0)
            expected = sum(float(c) * float(one[1]) for c, one in zip(chances, judged.values(), strict=True))
            assert float(value) == pytest.approx(expected, rel=1e-3, abs=1e-3)


def test_afterstate_net_plays_alike_in_every_corner() -> None:
    """Turning the board by a quarter to the left turns directions likewise: right becomes up."""
    net = afterstate_net()
    obs, masks = positions("Puzzle2048-v0")
    logits, values = outputs(net, obs, masks)
    turned = outputs(net, torch.rot90(obs, 1, (1, 2)).contiguous(), masks.roll(-1, 1))
    mirrored = outputs(net, obs.flip(2).contiguous(), masks[:, [0, 3, 2, 1]])
    assert_close(turned[0], logits.roll(-1, 1))
    assert_close(mirrored[0], logits[:, [0, 3, 2, 1]])
    for _, other in (turned, mirrored):
        assert_close(other, values)


def test_afterstate_net_before_the_end_of_its_rope() -> None:
    over = torch.tensor([[1, 2] * 2, [2, 1] * 2] * 2, dtype=torch.uint8)[None]
    logits, values = outputs(afterstate_net(), over, torch.zeros(1, 4, dtype=torch.bool))
    assert (logits == ILLEGAL).all()
    assert float(values[0]) == 0


def test_afterstate_net_refuses_unknown_tuples() -> None:
    with pytest.raises(ValueError, match="unknown tuples 'cubes': use squares, pairs, lines"):
        AfterstateNet("cubes")


def test_sums_of_rows_and_their_gradient() -> None:
    torch.manual_seed(1)
    table, index = torch.randn(30, 5), torch.randint(30, (40, 7))  # rows that name a row twice as well
    ours, plain = (table.clone().requires_grad_() for _ in range(2))
    weights = torch.randn(40, 5)
    for total in (sum_rows(index, ours), plain[index].sum(1)):
        (total * weights).sum().backward()
    assert_close(sum_rows(index, ours), plain[index].sum(1))
    assert_close(ours.grad, plain.grad)


@pytest.mark.parametrize("order", [[7, 6, 5, 4, 3, 2, 1, 0], [1, 2, 3, 4, 5, 6, 7, 0], [0, 1, 6, 3, 4, 5, 2, 7]])
@CARD_NETS
def test_card_nets_do_not_mind_the_order_of_columns(make: Any, order: list[int]) -> None:
    net = make()
    obs, masks = positions("FreeCell-v0")
    other = obs.clone()
    other[:, 1:] = obs[:, 1:][:, :, order]
    other_masks = moved(masks, order)
    assert np.array_equal(other_masks[17].numpy(), legal_mask(other[17].numpy())), "the game does not mind either"
    logits, values = outputs(net, obs, masks)
    other_logits, other_values = outputs(net, other, other_masks)
    assert_close(other_logits, moved(logits, order))
    assert_close(other_values, values)


@CARD_NETS
def test_card_nets_do_not_mind_the_order_of_cells(make: Any) -> None:
    net = make()
    obs, masks = positions("FreeCell-v0")
    other = obs.clone()
    other[:, 0, :4] = obs[:, 0, [2, 3, 1, 0]]
    assert (obs != other).any()
    logits, values = outputs(net, obs, masks)
    other_logits, other_values = outputs(net, other, masks)
    assert_close(other_logits, logits)
    assert_close(other_values, values)


@CARD_NETS
def test_card_nets_see_every_card(make: Any) -> None:
    """Two cards that change places, anywhere on the board, change the value."""
    net = make()
    obs, masks = positions("FreeCell-v0")
    board = obs[:1]
    squares = board.flatten(1)[0].nonzero()[:, 0].tolist()
    value = outputs(net, board, masks[:1])[1]
    for first, second in pairwise(squares):
        swapped = board.clone()
        flat = swapped.view(1, -1)
        flat[0, first], flat[0, second] = board.view(1, -1)[0, second], board.view(1, -1)[0, first]
        assert abs(float(outputs(net, swapped, masks[:1])[1] - value)) > 1e-4


@CARD_NETS
def test_card_nets_tell_moves_apart(make: Any) -> None:
    obs, masks = positions("FreeCell-v0")
    logits, _ = outputs(make(), obs, masks)
    game = int(masks.sum(1).argmax())
    legal = logits[game][masks[game]]
    assert len(legal) > 5
    assert len(legal.unique()) == len(legal)


def test_unknown_network() -> None:
    with pytest.raises(ValueError, match="one_hot_mlp, afterstate_net, card_afterstate_net, card_net"):
        build("transformer", {})


def rows_of(board: Any) -> Counter[int]:
    """The table rows that a position is the sum of, from the public features of one board."""
    seen = Afterstates.room(1, 200)
    look(np.ascontiguousarray(board).reshape(1, 160).view(np.uint64), Scratch.new(), seen)
    return Counter(row for row in seen.whole[0].tolist() if row != NOTHING)


def test_afterstates_are_described_as_positions_are() -> None:
    """The changes that a move makes are the difference between two whole descriptions."""
    obs, _ = positions("FreeCell-v0")
    checked = 0
    for i in range(0, len(obs), 25):
        board = obs[i].numpy()
        seen = Afterstates.room(1, 200)
        seen = seen.cut(*look(np.ascontiguousarray(board).reshape(1, 160).view(np.uint64), Scratch.new(), seen))
        assert seen.actions.tolist() == np.flatnonzero(legal_mask(board)).tolist()
        for action, child in zip(seen.actions.tolist(), seen.children.tolist(), strict=True):
            after, home, _ = apply(board, action)
            rows = rows_of(board)
            changes = seen.rows[seen.starts[child] : seen.starts[child + 1]].tolist()
            rows.update(row for row in changes if row >= 0)
            rows.subtract(~row for row in changes if row < 0)
            assert +rows == rows_of(after), action_name(action)
            assert min(rows.values()) >= 0
            assert seen.gains[child] == len(home)
            checked += 1
    assert checked > 50


def test_the_room_for_afterstates_grows() -> None:
    obs, masks = positions("FreeCell-v0")
    net, small = card_afterstate_net(), card_afterstate_net()
    small._looker.moves = 1
    assert_close(outputs(small, obs, masks)[0], outputs(net, obs, masks)[0])
    assert small._looker.moves > 1


def test_the_gradient_of_the_afterstates_table() -> None:
    """Against the difference quotient, along a random direction."""
    obs, masks = positions("FreeCell-v0")
    net = card_afterstate_net()

    def total(shift: float) -> Tensor:
        net.table.data += shift * direction
        logits, _ = net(obs[::20], masks[::20])
        net.table.data -= shift * direction
        return (torch.tanh(logits[masks[::20]] / 10)).double().sum()

    direction = torch.randn(net.table.shape, generator=torch.Generator().manual_seed(1))
    total(0.0).backward()
    slope = float((net.table.grad * direction).sum())
    with torch.no_grad():
        quotient = float(total(1e-3) - total(-1e-3)) / 2e-3
    assert slope == pytest.approx(quotient, rel=0.02)
