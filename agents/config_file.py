"""Configurations as short JSON files: what differs from a configuration that has a name."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import gymnasium

from .seeds import TEST_DEALS

PUZZLE, BASE = "env_id", "base"

# Field -> least and largest value; fields of other names may have any.
_ANY, _POSITIVE, _SHARE, _COUNT = (-math.inf, math.inf), (1e-12, math.inf), (0.0, 1.0), (1, math.inf)
LIMITS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("learning_rate", "minutes", "max_grad_norm"), _POSITIVE),
    **dict.fromkeys(("gamma", "gae_lambda", "discount", "last_rate", "teacher_share", "critic_share", "own"), _SHARE),
    **dict.fromkeys(("num_envs", "n_epochs", "views", "lines", "moves", "pool", "first", "window"), _COUNT),
    **dict.fromkeys(("n_steps", "batch_size"), (2, math.inf)),
    **dict.fromkeys(("ent_coef", "last_entropy", "vf_coef"), (0.0, math.inf)),
}

Config = TypeVar("Config")


def named(name: str, env_id: str, known: Mapping[str, Config], default: Config, what: str) -> Config:
    """A configuration of ``what`` by its name in ``known``, or by its file as ``read`` gives it; a name goes before a
    file. Raises ValueError for neither, and where a network, an environment or a wrapper is not to be had like that.
    """
    if name in known:
        return known[name]
    path = Path(name).expanduser()
    if not name or not path.exists():
        raise ValueError(f"unknown configuration {name!r} for {what}: use {', '.join(known)} or a JSON file")
    config = read(path, env_id, known, default)
    try:
        _check_parts(config)
    except (AssertionError, TypeError, ValueError, RuntimeError, gymnasium.error.Error) as error:
        raise ValueError(f"{path}: {error}") from None
    return config


def _check_parts(config: Any) -> None:
    """Raise an error unless environment and network take their arguments, the wrappers exist, and no test deal is
    learned from.
    """
    from .measures import measures_of
    from .networks import build  # imports torch
    from .wrapping import WRAPPERS

    wrappers = (*config.play_wrappers, *getattr(config, "wrappers", ()))
    if unknown := [name for name in wrappers if name not in WRAPPERS]:
        raise ValueError(f"unknown wrapper {unknown[0]!r}: use {', '.join(WRAPPERS)}")
    gymnasium.make(config.env_id, **config.env_arguments).close()
    if measures_of(config.env_id).deals:
        _check_deals(config.env_arguments)
    build(config.network, config.network_arguments)


def _check_deals(arguments: Mapping[str, Any]) -> None:
    deals = [arguments["deal"]] if arguments.get("deal") else arguments.get("deal_range", TEST_DEALS)
    if min(deals) <= TEST_DEALS[1]:
        raise ValueError(f"env_arguments must have a deal_range above {TEST_DEALS[1]:,}: nobody learns from test deals")


def read(path: Path, env_id: str, known: Mapping[str, Config], default: Config) -> Config:
    """The configuration in a file: an object with ``env_id``, perhaps ``base`` (a name in ``known``; without one it is
    ``default``), and the fields that differ from the base. A field takes the place of the base's as a whole.

    Raises OSError, and ValueError with a line for anything else than such a file.
    """
    data = _object(path)
    if data.get(PUZZLE) != env_id:
        there = f"is for {data[PUZZLE]}, not for {env_id}" if PUZZLE in data else f'must say "{PUZZLE}": "{env_id}"'
        raise ValueError(f"{path} {there}")
    name = data.pop(BASE, None)
    if name is not None and name not in list(known):  # a name that is a list would have no hash
        raise ValueError(f"{path}: unknown base {name!r}: use {', '.join(known)}")
    try:
        return _changed(default if name is None else known[name], data)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def differences(config: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    """What a file says of ``config``: its puzzle, the nearest configuration in ``known``, and what differs from it."""
    mine = _plain(config)
    plain = {name: _plain(other) for name, other in known.items()}
    changes = {name: {key: mine[key] for key in mine if mine[key] != other[key]} for name, other in plain.items()}
    nearest = min(changes, key=lambda name: len(changes[name]))
    return {PUZZLE: config.env_id, BASE: nearest, **changes[nearest]}


def _plain(config: Any) -> dict[str, Any]:
    """As JSON gives it back: without tuples."""
    plain: dict[str, Any] = json.loads(json.dumps(config.as_dict()))
    return plain


def _object(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON ({error}): a configuration is an object of fields") from None
    if not isinstance(data, dict):
        raise ValueError(f'{path} holds no configuration: it must be an object such as {{"{PUZZLE}": ..., ...}}')
    return data


def _changed(base: Config, data: Mapping[str, Any]) -> Config:
    """``base`` with the fields of ``data``. Raises ValueError for unknown fields and wrong values."""
    changes = _fields(type(base), data)
    return replace(base, **changes)  # type: ignore[type-var]


def _fields(kind: type, data: Mapping[str, Any], inside: str = "") -> dict[str, Any]:
    """The values of a dataclass's fields, checked."""
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    if unknown := [name for name in data if name not in names]:
        raise ValueError(f"unknown field {inside + unknown[0]!r}: use {', '.join(names)}")
    return {name: _value(hints[name], value, inside + name) for name, value in data.items()}


def _value(hint: Any, value: Any, name: str) -> Any:
    """A value of the type that a field has: numbers within their limits, lists as tuples, objects as dataclasses."""
    options = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    if value is None and NoneType in options:
        return None
    kind = options[0]
    if is_dataclass(kind) and isinstance(kind, type) and isinstance(value, dict):
        return _built(kind, value, name)
    if not _fits(kind, value):
        null = " or null" if NoneType in options else ""
        raise ValueError(
            f"{name} must be {_WORDS.get(get_origin(kind) or kind, 'an object')}{null}, not {_told(value)}"
        )
    if kind in (int, float):
        return kind(_within_limits(value, name))
    return tuple(value) if get_origin(kind) is tuple else value


def _built(kind: type, value: Mapping[str, Any], name: str) -> Any:
    given = _fields(kind, value, f"{name}.")
    try:
        return kind(**given)
    except TypeError:  # a field without a default
        raise ValueError(f"{name} needs more fields than {', '.join(given) or 'none'}") from None


def _fits(kind: Any, value: Any) -> bool:
    if get_origin(kind) is tuple:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if kind in (int, float) and isinstance(value, bool):
        return False
    wanted: Any = (int, float) if kind is float else get_origin(kind) or kind
    return isinstance(value, wanted)


# What a field must be.
_WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    tuple: "a list of names",
    dict: "an object",
}


def _within_limits(value: float, name: str) -> float:
    least, largest = LIMITS.get(name.rpartition(".")[2], _ANY)
    if math.isfinite(value) and least <= value <= largest:
        return value
    if largest < math.inf:
        bound = f"from {least:g} to {largest:g}"
    else:
        bound = "a finite number" if least < 0 else "above 0" if 0 < least < 1 else f"{least:g} or more"
    raise ValueError(f"{name} must be {bound}, not {value}")


def _told(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
