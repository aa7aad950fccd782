"""Saved networks that have learned nothing: what matters of them is that they load and play."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from puzzlegym.agents import saved
from puzzlegym.agents.configs import ppo_config
from puzzlegym.agents.network_policy import arrays_of
from puzzlegym.agents.networks import build


def save_untrained(folder: Path, sample: bool) -> Path:
    """A run folder with a small network for 2048 that draws its moves, or not, as its card says."""
    squares = {"squares": 16, "values": 18, "actions": 4, "hidden": (8, 8)}
    config = replace(ppo_config("Puzzle2048-v0", "mlp"), network_arguments=squares, sample=sample)
    torch.manual_seed(0)
    card = {"env_id": config.env_id, "algorithm": "masked PPO", "config": config.as_dict()}
    folder.mkdir(parents=True, exist_ok=True)
    saved.save(folder / saved.FILE, card, arrays_of(build(config.network, config.network_arguments)), {})
    return folder
