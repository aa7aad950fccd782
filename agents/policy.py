"""What a player is, and how one is found by its name or by the path it was saved at."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from ..envs.common.rng import Streams
from ..envs.registry import PUZZLES
from .errors import AgentError
from .saved import load_card

Observations = NDArray[np.uint8]
Masks = NDArray[np.bool_]
Actions = NDArray[np.int64]


class Policy(Protocol):
    """A player of many games at once: random, heuristic, search and network players all look like this."""

    name: str

    def act(self, observations: Observations, masks: Masks, rng: Streams) -> Actions:
        """Choose one action per row.

        Args:
            observations: uint8 ``[N, ...]``, one observation of the environment per row.
            masks: bool ``[N, A]``, the legal actions; at least one in every row.
            rng: ``N`` uniform streams, one per game. All chance of a policy comes from them and a row may only use its
                own, so that a game does not depend on the others in the batch.

        Returns:
            int64 ``[N]``.
        """
        ...


# Agent name -> factory without arguments. Strings: an agent is only imported when it plays.
ANY_PUZZLE = {"random": "baselines:Random"}
AGENTS: dict[str, dict[str, str]] = {
    "Puzzle2048-v0": {
        "greedy": "baselines:Greedy2048",
        "corner": "baselines:Corner2048",
        "montecarlo": "montecarlo:MonteCarlo",
        "expectimax": "expectimax:Expectimax",
        "ppo": "shipped:ppo_2048",
        "ntuple": "shipped:ntuple_2048",
    },
    "FreeCell-v0": {
        "greedy": "baselines:GreedyFreeCell",
        "ppo": "shipped:ppo_freecell",
        "learned": "shipped:learned_freecell",
        "beam": "beam:estimate_beam",
        "solver": "solver_player:SolverPlayer",
    },
}

# What a saved agent was trained by -> function that loads it to play (torch is imported with the first one).
LOADERS = {
    "masked PPO": "network_policy:load_policy",
    "RLlib PPO": "network_policy:load_policy",
    "cloning": "network_policy:load_policy",
    "distillation": "network_policy:load_policy",
    "n-tuple TD": "ntuple_training:load_player",
}


def named_agents(env_id: str) -> dict[str, str]:
    """The agents that have a name for this puzzle, each with its factory (``module:attribute``)."""
    return ANY_PUZZLE | AGENTS.get(env_id, {})


def load(
    env_id: str,
    name_or_path: str,
    depth: int | None = None,
    seconds: float | None = None,
    sample: bool | None = None,
    width: int | None = None,
) -> Policy:
    """The agent of that name for this puzzle, or the trained agent saved at that path (a run folder or a ``.zip``).

    A name goes before a path: write ``./random`` for a folder called ``random``. An agent that searches looks
    ``depth`` moves ahead (default: its own), or for ``seconds`` a move. A network draws its moves by the chances that
    it gives them (``sample`` True), or makes the most likely ones (False; default: as its card says), or in FreeCell
    follows the best line of a beam search that keeps ``width`` positions. Raises ValueError for an unknown puzzle or
    agent and for what the agent has no use for, and its subclass ``AgentError`` for a file that is no agent of this
    puzzle.
    """
    make, known = _maker(env_id, name_or_path)
    if depth is not None and seconds is not None:
        raise ValueError("give a depth or a time for a move, not both")
    given = {name: value for name, value in (("depth", depth), ("seconds", seconds)) if value is not None}
    if given and not _takes(make, "depth"):
        raise ValueError(f"{name_or_path} does not search, so it has no depth and no time for a move")
    if sample is not None:
        if not _takes(make, "sample"):
            raise ValueError(f"{name_or_path} has no choice between sampled and most likely moves: only networks do")
        given["sample"] = sample
    if width is not None:
        if not _takes(make, "width"):
            raise ValueError(f"{name_or_path} makes no beam search, so it has no width")
        if sample is not None:
            raise ValueError("a beam search follows the likeliest line: give a width, or how to choose moves, not both")
        given["width"] = width
    return make(*known, **given)


def beams(env_id: str, name_or_path: str) -> bool:
    """Can this agent make a beam search, so that it has a width? Raises ValueError as ``load`` does."""
    return _takes(_maker(env_id, name_or_path)[0], "width")


def searches(env_id: str, name_or_path: str) -> bool:
    """Does this agent look ahead, so that it has a depth? Raises ValueError as ``load`` does."""
    return _takes(_maker(env_id, name_or_path)[0], "depth")


def samples(env_id: str, name_or_path: str) -> bool:
    """Can this agent draw its moves as well as make the most likely ones? Raises ValueError as ``load`` does."""
    return _takes(_maker(env_id, name_or_path)[0], "sample")


def _takes(make: Callable[..., Policy], argument: str) -> bool:
    return argument in signature(make).parameters


def _maker(env_id: str, name_or_path: str) -> tuple[Callable[..., Policy], tuple[Any, ...]]:
    """What makes an agent, and the arguments that it needs."""
    check_id(env_id)
    path = Path(name_or_path).expanduser()
    if factory := named_agents(env_id).get(name_or_path):
        return _attribute(factory), ()
    if name_or_path and path.exists():
        return _loader(path, env_id), (path, env_id)
    raise _unknown(env_id, name_or_path)


def _unknown(env_id: str, name_or_path: str) -> ValueError:
    names = ", ".join(named_agents(env_id))
    return ValueError(f"unknown agent {name_or_path!r} for {env_id}: use {names} or a path to a trained agent")


def check_id(env_id: str) -> None:
    """Raise ValueError with a line that lists the puzzles unless ``env_id`` is one."""
    if env_id not in PUZZLES:
        raise ValueError(f"unknown environment {env_id!r}: use {' or '.join(PUZZLES)}")


def _attribute(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(import_module(f".{module}", __package__), attribute)


def _loader(path: Path, env_id: str) -> Callable[..., Policy]:
    """What loads the trained agent at ``path``."""
    if path.is_dir() and not (path / "agent.zip").is_file():
        raise AgentError(f"{path} is a folder without a trained agent: agent.zip is missing")
    algorithm = load_card(path, env_id).get("algorithm")
    if algorithm not in LOADERS:
        raise AgentError(f"{path} was trained by {algorithm!r}, which this version does not know")
    return cast("Callable[..., Policy]", _attribute(LOADERS[algorithm]))
