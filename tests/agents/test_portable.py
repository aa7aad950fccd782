"""Agents that go where their files are not."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from puzzlegym.agents import shipped
from puzzlegym.agents.errors import AgentError
from puzzlegym.agents.evaluation import games, play
from puzzlegym.agents.portable import PortableAgent

ID = "Puzzle2048-v0"


@pytest.mark.parametrize("folder", [False, True])
def test_a_file_goes_along(folder: bool, tmp_path: Path) -> None:
    """Named itself or by its run folder."""
    path = tmp_path / "agent.zip"
    shutil.copy(shipped.WEIGHTS / "ntuple-2048.zip", path)
    agent = PortableAgent(ID, str(tmp_path if folder else path), {"depth": 2})
    here, sent = agent.player, pickle.dumps(agent)
    path.unlink()
    there = pickle.loads(sent).player
    assert (there.name, there.depth, there.training) == (here.name, 2, here.training)
    chosen = games(ID, 2, 7)
    np.testing.assert_array_equal(play(there, chosen).scores, play(here, chosen).scores)
    with pytest.raises(AgentError, match="no trained agent"):
        pickle.dumps(PortableAgent(ID, str(path)))


def test_a_name_is_enough() -> None:
    agent = PortableAgent(ID, "montecarlo")
    assert agent.player is agent.player
    sent = pickle.dumps(agent)
    assert len(sent) < 1000
    assert pickle.loads(sent).player.games == agent.player.games
