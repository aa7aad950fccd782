"""Training configurations: one row of data per puzzle, every number that shapes a run."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from . import config_file
from .runs import Budget
from .seeds import TRAIN_DEALS


@dataclass(frozen=True)
class Curriculum:
    """What FreeCell's curricula share: games at a frontier of difficulty that moves on, easier ones, and full ones."""

    first: int  # the frontier at the beginning
    threshold: float = 0.65  # share of the frontier's last games to win before it moves on
    window: int = 400
    easier: float = 0.15  # share of games that are easier than the frontier
    full: float = 0.25  # share of full games, wherever the frontier is


@dataclass(frozen=True)
class RankCurriculum(Curriculum):
    """Games start with all cards of rank <= ``start_rank`` at home; the rank goes down."""

    first: int = 11


@dataclass(frozen=True)
class BackwardCurriculum(Curriculum):
    """Games start on winning lines of the solver, some moves before the win; the moves grow in number."""

    first: int = 8
    threshold: float = 0.6
    full: float = 0.35
    growth: float = 1.25  # of the number of moves
    last: int = 60  # from here on full games follow
    lines: int = 2000  # kept to start from, some of them always new


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
    views: int = 1  # ways to call the suits under which the trained agent looks at a position of FreeCell
    curriculum: RankCurriculum | None = None
    backward: BackwardCurriculum | None = None
    minutes: float = 10.0  # budget that the numbers are made for, and where the command names none
    teacher: str | None = None  # agent to imitate before PPO begins
    teacher_share: float = 0.0  # of the budget
    critic_share: float = 0.0  # of the budget, at its beginning: only the values' last layer learns
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
        curriculum, backward = data.get("curriculum"), data.get("backward")
        fixed = {
            **data,
            "wrappers": tuple(data["wrappers"]),
            "play_wrappers": tuple(data["play_wrappers"]),
            "curriculum": RankCurriculum(**curriculum) if curriculum else None,
            "backward": BackwardCurriculum(**backward) if backward else None,
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
_MOVES = PPOConfig(
    env_id="FreeCell-v0",
    network="card_afterstate_net",
    network_arguments={"hidden": (128, 64)},
    wrappers=("no_repeat", "shaped_freecell", "potential_freecell"),
    play_wrappers=("no_repeat",),
    env_arguments={"deal_range": TRAIN_DEALS, "max_episode_steps": 120},  # most games that are won take half as many
    backward=BackwardCurriculum(),
    views=8,
    minutes=30.0,
    learning_rate=1e-3,
    gamma=0.99,
    gae_lambda=0.95,
    ent_coef=0.01,
    last_entropy=0.2,
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
    "FreeCell-v0": {
        "backward": _MOVES,
        "ranks": replace(_MOVES, backward=None, curriculum=RankCurriculum()),
        "deals": replace(_MOVES, backward=None),
        "finetune": replace(
            _MOVES, backward=None, critic_share=0.03, learning_rate=3e-4, ent_coef=0.004, last_entropy=0.0
        ),
        "cards": replace(_MOVES, network="card_net", network_arguments={}, learning_rate=5e-4),
        "mlp": replace(
            _MOVES,
            network="one_hot_mlp",
            network_arguments={"squares": 160, "values": 53, "actions": 520, "hidden": (256, 256)},
            learning_rate=5e-4,
        ),
    },
}
_FOR_A_BUDGET = ("2min", "10min", "60min", "120min")


def ppo_config(env_id: str, name: str | None = None, budget: Budget | None = None) -> PPOConfig:
    """The configuration of that name, or in the file of that name (see ``config_file``); without one, that which is
    made for a budget nearest to the minutes of ``budget``. Raises ValueError for an unknown name and for a file of
    anything else, OSError for one that cannot be read.
    """
    known = PPO_CONFIGS[env_id]
    if name is None:
        return _for_budget(known, budget)
    return config_file.named(name, env_id, known, _for_budget(known, budget), env_id)


def _for_budget(known: dict[str, PPOConfig], budget: Budget | None) -> PPOConfig:
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


@dataclass(frozen=True)
class CloneConfig:
    """One run of learning FreeCell from the solver, see ``cloning``."""

    env_id: str = "FreeCell-v0"
    network: str = "card_afterstate_net"
    network_arguments: dict[str, Any] = field(default_factory=lambda: {"hidden": (128, 64)})
    play_wrappers: tuple[str, ...] = ("no_repeat",)
    env_arguments: dict[str, Any] = field(default_factory=lambda: {"deal_range": TRAIN_DEALS})
    sample: bool = False  # does the trained agent sample its moves, or take the most likely one?
    views: int = 8  # ways to call the suits under which it looks at a position
    minutes: float = 30.0  # budget where the command names none
    lines: int = 24  # found between two phases of learning
    own: float = 0.5  # share of them that begin in the network's own games (DAgger)
    own_from: float = 0.3  # share of the budget after which they do
    num_envs: int = 128  # games of its own
    moves: int = 4  # in each of them between two phases of learning
    pool: int = 400_000  # labelled positions kept
    reuse: float = 3.0  # times that each is learned from, on average
    batch_size: int = 1024
    learning_rate: float = 2e-3  # falls linearly over the budget
    last_rate: float = 0.02  # share of it at the end
    discount: float = 0.99  # of a win, for each move to it
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5

    def as_dict(self) -> dict[str, Any]:
        """Plain data for an agent's JSON card."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> CloneConfig:
        """Inverse of ``as_dict``. Raises TypeError for keys of another version."""
        return cls(**{**data, "play_wrappers": tuple(data["play_wrappers"])})


CLONE_CONFIGS: dict[str, CloneConfig] = {
    "dagger": CloneConfig(),
    "lines": CloneConfig(own=0.0),
}


def clone_config(name: str | None = None) -> CloneConfig:
    """The configuration of that name or file (None: the first one). Raises ValueError and OSError as ``ppo_config``."""
    default = next(iter(CLONE_CONFIGS.values()))
    return default if name is None else config_file.named(name, default.env_id, CLONE_CONFIGS, default, "cloning")


@dataclass(frozen=True)
class DistillConfig:
    """One run in which a FreeCell network learns the mean of its own views, see ``distilling``."""

    env_id: str = "FreeCell-v0"
    network: str = "card_afterstate_net"
    network_arguments: dict[str, Any] = field(default_factory=lambda: {"hidden": (128, 64)})
    play_wrappers: tuple[str, ...] = ("no_repeat",)
    env_arguments: dict[str, Any] = field(default_factory=lambda: {"deal_range": TRAIN_DEALS, "max_episode_steps": 120})
    sample: bool = False  # does the trained agent sample its moves, or take the most likely one?
    views: int = 1  # ways to call the suits under which it looks at a position: it has learned what more would say
    minutes: float = 10.0  # budget where the command names none
    num_envs: int = 128  # games of its own
    moves: int = 8  # in each of them between two phases of learning
    batches: int = 2  # in each phase
    batch_size: int = 1024
    mixed: int = 64  # moments of the games that a batch is drawn from
    kept: int = 320  # moments to draw from
    learning_rate: float = 1e-3  # falls linearly over the budget
    last_rate: float = 0.02  # share of it at the end
    vf_coef: float = 0.05
    max_grad_norm: float = 0.5

    def as_dict(self) -> dict[str, Any]:
        """Plain data for an agent's JSON card."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> DistillConfig:
        """Inverse of ``as_dict``. Raises TypeError for keys of another version."""
        return cls(**{**data, "play_wrappers": tuple(data["play_wrappers"])})
