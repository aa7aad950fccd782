"""Agents that go to where their files are not: a name, or what is in the file."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import policy, saved


@dataclass(frozen=True)
class PortableAgent:
    """The agent that ``policy.load`` loads with these ``settings``.

    When it is pickled, the content of its file goes along, if it is one of a file; AgentError if that is gone.
    """

    env_id: str
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    content: NDArray[np.uint8] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """All but the loaded agent."""
        state = {one.name: getattr(self, one.name) for one in fields(self)}
        if self.content is None and self.name not in policy.named_agents(self.env_id):
            state["content"] = np.fromfile(saved.locate(Path(self.name).expanduser()), dtype=np.uint8)
        return state

    @cached_property
    def player(self) -> policy.Policy:
        """The agent, loaded once. Raises as ``policy.load`` does."""
        if self.content is None:
            return policy.load(self.env_id, self.name, **self.settings)
        with tempfile.TemporaryDirectory() as folder:
            self.content.tofile(Path(folder) / saved.FILE)
            player = policy.load(self.env_id, folder, **self.settings)
        player.name = self.name
        return player
