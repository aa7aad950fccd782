"""Training configurations: one row of data per puzzle, every number that shapes a run."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from .runs import Budget


@dataclass(frozen=True)
class Curriculum:
    """FreeCell's difficulty: games start with all cards of rank <= ``start_rank`` at home; the rank goes down."""

    first_rank: int = 11
    threshold: float = 0.65  # share of the frontier's last games to win before the next rank opens
    window: int = 400
    easier: float = 0.15  # share of games at ranks already passed
    full: float = 0.25  # share of games at rank 0, whatever the frontier


@dataclass(frozen=True)
class PPOConfig:
    """One masked-PPO run: environment, network and the algorithm's numbers (names as in stable-baselines3)."""

    env_id: str
    network: str
    network_arguments: dict[str, Any]
    wrappers: tuple[str, ...]  # names in ``wrapping.WRAPPERS``, innermost first
    play_wrappers: tuple[str, ...] = ()  # of these, the ones that the trained agent needs when it plays
    env_arguments: dict[str, Any] = field(default_factory=dict)
    sample: bool = False  # does the trained agent sample its moves, or take the most likely one?
    curriculum: Curriculum | None = None
    minutes: float = 10.0  # budget that the numbers are made for, and where the command names none
    teacher: str | None = None  # agent to imitate before PPO begins
    teacher_share: float = 0.0  # of the budget
    num_envs: int = 256
    n_steps: int = 128
    batch_size: int = 2048
    n_epochs: int = 3
    learning_rate: float = 5e-4  # falls linearly over the budget
    last_rate: float = 0.05  # share of it at the end
    gamma: float = 0.995
    gae_lambda: float = 0.9
    ent_coef: float = 0.005  # falls linearly over the budget, too
    last_entropy: float = 1.0  # share of it at the end
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5

    def as_dict(self) -> dict[str, Any]:
        """Plain data for an agent's JSON card."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> PPOConfig:
        """Inverse of ``as_dict``. Raises TypeError for keys of another version."""
        curriculum = data.get("curriculum")
        fixed = {
            **data,
            "wrappers": tuple(data["wrappers"]),
            "play_wrappers": tuple(data["play_wrappers"]),
            "curriculum": Curriculum(**curriculum) if curriculum else None,
        }
        return cls(**fixed)


_AFTERSTATES = PPOConfig(
    env_id="Puzzle2048-v0",
    network="afterstate_net",
    network_arguments={"tuples": "pairs", "hidden": (128, 64)},
    wrappers=("shaped_2048",),
    n_steps=64,
    learning_rate=1e-3,
    ent_coef=0.01,
)
_CARDS = PPOConfig(
    env_id="FreeCell-v0",
    network="card_net",
    network_arguments={},
    wrappers=("no_repeat", "shaped_freecell"),
    play_wrappers=("no_repeat",),
    env_arguments={"deal_range": (32_001, 1_000_000)},
    sample=True,
    curriculum=Curriculum(),
    minutes=30.0,
    gamma=0.99,
    gae_lambda=0.95,
    ent_coef=0.01,
)

# Puzzle -> name -> configuration. The first one stands where nothing says which; see ``ppo_config``.
PPO_CONFIGS: dict[str, dict[str, PPOConfig]] = {
    "Puzzle2048-v0": {
        "10min": _AFTERSTATES,
        "2min": replace(_AFTERSTATES, minutes=2.0),
        "60min": replace(_AFTERSTATES, minutes=60.0),
        "120min": replace(_AFTERSTATES, minutes=120.0),
        "distill": replace(_AFTERSTATES, teacher="ntuple", teacher_share=0.3),
        "mlp": replace(
            _AFTERSTATES,
            network="one_hot_mlp",
            network_arguments={"squares": 16, "values": 18, "actions": 4, "hidden": (256, 256)},
            learning_rate=2e-3,
            ent_coef=0.0,
        ),
    },
    "FreeCell-v0": {"curriculum": _CARDS},
}
_FOR_A_BUDGET = ("2min", "10min", "60min", "120min")


def ppo_config(env_id: str, name: str | None = None, budget: Budget | None = None) -> PPOConfig:
    """The configuration of that name; without one, that which is made for a budget nearest to the minutes of
    ``budget``. Raises ValueError for an unknown name.
    """
    known = PPO_CONFIGS[env_id]
    if name is not None:
        if name not in known:
            raise ValueError(f"unknown configuration {name!r} for {env_id}: use {', '.join(known)}")
        return known[name]
    made = [known[key] for key in _FOR_A_BUDGET if key in known]
    if not made or budget is None or budget.seconds is None:
        return next(iter(known.values()))
    minutes = budget.seconds / 60
    return min(made, key=lambda config: abs(math.log(config.minutes / minutes)))


@dataclass(frozen=True)
class NTupleConfig:
    """One run of n-tuple temporal-difference learning for 2048, see ``ntuple``."""

    network: str = "4x6"  # a name in ``ntuple.NETWORKS``
    coherent: bool = True  # temporal coherence (a step for each entry), or plain TD
    rate: float = 1.0  # of the error that a board's value takes over; plain TD needs about 0.1
    decay: float = 0.5  # lambda
    restart: bool = False  # play games again from their middle
    threads: int = 1
    env_id: str = "Puzzle2048-v0"
    minutes: float = 10.0  # budget where the command names none

    def as_dict(self) -> dict[str, Any]:
        """Plain data for an agent's JSON card."""
        return asdict(self)
