"""One row of data per puzzle; everything that must know 'all puzzles' reads this table."""

from __future__ import annotations

from dataclasses import dataclass

import gymnasium


@dataclass(frozen=True)
class PuzzleSpec:
    """How one puzzle is found: its id, where its classes live (as strings: nothing is imported yet), its step limit."""

    id: str
    module: str
    env: str
    vector_env: str
    max_episode_steps: int

    @property
    def entry_point(self) -> str:
        """``module:class`` of the single environment."""
        return f"{self.module}.env:{self.env}"

    @property
    def vector_entry_point(self) -> str:
        """``module:class`` of the native batch."""
        return f"{self.module}.env:{self.vector_env}"


_ENVS = __name__.rpartition(".")[0]

# No legal game of 2048 is longer than 131,072 moves: each adds at least 2 to a tile sum of at most 262,140.
_ROWS = (
    PuzzleSpec("Puzzle2048-v0", f"{_ENVS}.puzzle2048", "Puzzle2048Env", "Puzzle2048VectorEnv", 131072),
    PuzzleSpec("FreeCell-v0", f"{_ENVS}.freecell", "FreeCellEnv", "FreeCellVectorEnv", 500),
)

PUZZLES: dict[str, PuzzleSpec] = {row.id: row for row in _ROWS}


def register_all() -> None:
    """Register every puzzle with Gymnasium (idempotent)."""
    for row in PUZZLES.values():
        if row.id not in gymnasium.registry:
            gymnasium.register(
                id=row.id,
                entry_point=row.entry_point,
                vector_entry_point=row.vector_entry_point,
                max_episode_steps=row.max_episode_steps,
            )
