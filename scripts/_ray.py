"""The option ``--ray`` of commands whose work can be spread over a Ray cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import tyro

from ..agents.workers import Spread
from ._console import terminable

_SPEC = tyro.constructors.PrimitiveConstructorSpec[tuple[str, ...] | None](
    nargs="*",
    metavar="[ADDRESS]",
    instance_from_str=tuple,
    is_instance=lambda value: value is None or isinstance(value, tuple),
    str_from_instance=lambda value: list(value or ()),
)
OnRay = Annotated[
    tuple[str, ...] | None,
    _SPEC,
    tyro.conf.arg(
        help_behavior_hint="(default: no Ray)",
        help="Spread the work over a Ray cluster: auto, HOST:PORT, "
        "ray://HOST:PORT, or none for a local Ray, which ends with the command.",
    ),
]
"""Where to work: None for here, else an address, or none for a Ray of one's own."""


@contextmanager
def spreading(given: tuple[str, ...] | None) -> Iterator[Spread | None]:
    """What spreads work as ``--ray`` was given; None without it, and nothing of Ray is imported.

    Raises ValueError for several addresses, and as ``ray_work.connected`` does.
    """
    if given is None:
        yield None
        return
    if len(given) > 1:
        raise ValueError(f"--ray takes one address, not {' '.join(given)!r}: write it after all others")
    from ..agents import ray_work

    with ray_work.connected("".join(given)) as cluster, terminable():
        print(f"Ray: {cluster}", file=sys.stderr)
        yield ray_work.spread_on_ray
