"""Wrappers by name, as configurations and agents' cards speak of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .. import wrappers

# name -> (for the native batch, for a single environment)
WRAPPERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "no_repeat": (wrappers.NoRepeatVector, wrappers.NoRepeat),
    "potential_freecell": (wrappers.PotentialFreeCellVector, wrappers.PotentialFreeCell),
    "shaped_2048": (wrappers.ShapedReward2048Vector, wrappers.ShapedReward2048),
    "shaped_freecell": (wrappers.ShapedRewardFreeCellVector, wrappers.ShapedRewardFreeCell),
}


def wrap_batch(env: Any, names: Iterable[str]) -> Any:
    """A native batch in the wrappers of these names, the first one innermost."""
    for name in names:
        env = WRAPPERS[name][0](env)
    return env


def wrap_single(env: Any, names: Iterable[str]) -> Any:
    """A single environment in the wrappers of these names, the first one innermost."""
    for name in names:
        env = WRAPPERS[name][1](env)
    return env


def needed_by(policy: object) -> tuple[str, ...]:
    """The wrappers that a policy must play in: its attribute ``wrappers``, none if it has no such thing."""
    return tuple(getattr(policy, "wrappers", ()))
