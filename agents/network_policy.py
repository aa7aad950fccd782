"""A network as a player, and networks and optimisers as plain arrays: what every learner of networks shares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..envs.common.rng import Streams
from . import saved
from .beam import BEAM_PUZZLE, Beam
from .configs import CloneConfig, DistillConfig, PPOConfig
from .errors import AgentError
from .lines import legal_masks
from .networks import build
from .networks.suit_views import SuitViews

# Products of few rows are computed in another way, and their last bits differ: it would depend on the other games of a
# batch which of two moves, as good as equal, is made.
_LEAST_ROWS = 16


class NetworkPolicy:
    """A trained network as a player: the most likely legal move, or a sample."""

    def __init__(
        self, name: str, network: nn.Module, sample: bool, wrappers: tuple[str, ...] = (), training: str = ""
    ) -> None:
        """``wrappers``: names of those that the games must be played in; ``training``: how long it learned."""
        self.name, self.network, self.sample = name, network.eval(), sample
        self.wrappers, self.training = wrappers, training

    def act(self, observations: NDArray[np.uint8], masks: NDArray[np.bool_], rng: Streams) -> NDArray[np.int64]:
        """One action per row; see ``policy.Policy``."""
        rows = len(masks)
        if rows < _LEAST_ROWS:
            observations, masks = (np.resize(array, (_LEAST_ROWS, *array.shape[1:])) for array in (observations, masks))
        with torch.no_grad():
            logits = self.network(torch.as_tensor(observations), torch.as_tensor(masks))[0][:rows]
        if not self.sample:
            return np.asarray(logits.argmax(1).numpy())
        chances = torch.softmax(logits.double(), 1).cumsum(1).numpy()
        targets = rng.uniform()[:, None] * chances[:, -1:]
        return np.asarray(np.minimum((chances <= targets).sum(1), chances.shape[1] - 1))


class NetworkJudge:
    """What a network thinks of the moves on FreeCell boards: see ``beam.Judge``."""

    def __init__(self, network: nn.Module) -> None:
        """``network``: one of ``networks`` for FreeCell."""
        self._network = network

    def __call__(self, observations: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Logits, float32 ``[N, 520]``."""
        masks = torch.from_numpy(legal_masks(observations))
        with torch.no_grad():
            logits, _ = self._network(torch.from_numpy(observations), masks)
        return np.asarray(logits.numpy())


# What a saved network was trained by -> its configuration.
_CONFIGS: dict[str, type[PPOConfig] | type[CloneConfig] | type[DistillConfig]] = {
    "masked PPO": PPOConfig,
    "RLlib PPO": PPOConfig,
    "cloning": CloneConfig,
    "distillation": DistillConfig,
}


def load_policy(path: Path, env_id: str, sample: bool | None = None, width: int | None = None) -> NetworkPolicy | Beam:
    """A trained agent to play ``env_id``: a run folder or ``.zip``. Raises AgentError for anything else.

    ``sample``: draw moves, or make the most likely ones (None: as its card says); ``width``: search a beam instead,
    ValueError where that is not for this puzzle.
    """
    card = saved.load_card(path, env_id)
    try:
        config = _CONFIGS[card["algorithm"]].from_dict(card["config"])
        network = build(config.network, config.network_arguments)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AgentError(f"{path}: the agent's card cannot be read by this version ({error})") from None
    load_network(network, saved.load_weights(path), path)
    network = SuitViews(network, config.views) if config.views > 1 else network
    training = saved.training_told(card)
    if width is not None:
        if env_id != BEAM_PUZZLE:
            raise ValueError(f"a beam is for {BEAM_PUZZLE}, where nothing is left to chance, not for {env_id}")
        return Beam(str(path), NetworkJudge(network.eval()), width, training=training)
    drawn = config.sample if sample is None else sample
    return NetworkPolicy(str(path), network, drawn, config.play_wrappers, training)


def arrays_of(network: nn.Module) -> dict[str, NDArray[Any]]:
    """A network's arrays by name."""
    return {name: value.numpy().copy() for name, value in network.state_dict().items()}


def load_network(network: nn.Module, weights: dict[str, NDArray[Any]], source: Path) -> None:
    """Fill a network. Raises AgentError if names or shapes differ."""
    try:
        network.load_state_dict({name: torch.as_tensor(value) for name, value in weights.items()})
    except (RuntimeError, TypeError) as error:
        raise AgentError(f"{source} does not fit its own card: {str(error).splitlines()[-1].strip()}") from None


def optimizer_arrays(optimizer: torch.optim.Optimizer) -> dict[str, NDArray[Any]]:
    """An optimiser's state as plain arrays."""
    states = optimizer.state_dict()["state"].items()
    values = ((f"optimizer.{index}.{name}", value) for index, state in states for name, value in state.items())
    return {name: torch.as_tensor(value).numpy().copy() for name, value in values}


def restore_optimizer(optimizer: torch.optim.Optimizer, arrays: dict[str, NDArray[Any]]) -> None:
    """Inverse of ``optimizer_arrays``; other arrays do not matter. ValueError or KeyError where some are missing."""
    state: dict[int, dict[str, Tensor]] = {}
    for key in arrays:
        if key.startswith("optimizer."):
            _, index, name = key.split(".")
            state.setdefault(int(index), {})[name] = torch.as_tensor(arrays[key])
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
