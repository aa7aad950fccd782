"""Policy-value networks by name.

Each maps observations (uint8 ``[B, ...]``) and masks (bool ``[B, actions]``) to logits ``[B, actions]``, ``ILLEGAL``
where the mask is False, and values ``[B]``, which do not depend on the mask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from .afterstate_net import AfterstateNet
from .card_afterstate_net import CardAfterstateNet
from .card_net import CardNet
from .layers import ILLEGAL, sample
from .one_hot import OneHotMLP

__all__ = ["ILLEGAL", "NETWORKS", "AfterstateNet", "CardAfterstateNet", "CardNet", "OneHotMLP", "build", "sample"]

NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "one_hot_mlp": OneHotMLP,
    "afterstate_net": AfterstateNet,
    "card_afterstate_net": CardAfterstateNet,
    "card_net": CardNet,
}


def build(name: str, arguments: dict[str, Any]) -> nn.Module:
    """The network of that name (a key of ``NETWORKS``). Raises ValueError for another one."""
    if name not in NETWORKS:
        raise ValueError(f"unknown network {name!r}: use {', '.join(NETWORKS)}")
    return NETWORKS[name](**arguments)
