"""Native batches whose games begin with positions of the caller's choice: for curricula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..envs.base.vector_env import PuzzleVectorEnv
from ._batch import AnyVectorEnv, Infos, PuzzleVectorWrapper, VectorStep, batch_of, seat

Source = Callable[[NDArray[np.int64]], Sequence[Any]]


class StartPositionsVector(PuzzleVectorWrapper):
    """Games of a native batch begin with positions from a function, in every autoreset mode.

    ``source`` is asked with the rows (int64 ``[K]``) whose games have just begun, and answers with one board each, as
    the puzzle's ``board`` reset option takes it, or None: this game stays as it was dealt. What is no board raises
    ValueError, and the games go on as dealt; on a board without a legal move ``step`` refuses to go on, as after a
    reset. Goes below all other wrappers.

    Example:
        >>> import gymnasium, puzzlegym
        >>> from puzzlegym.wrappers import StartPositionsVector
        >>> last = [[11, 11, 0, 0], [0] * 4, [0] * 4, [0] * 4]
        >>> venv = gymnasium.make_vec("Puzzle2048-v0", num_envs=2)
        >>> venv = StartPositionsVector(venv, lambda rows: [last if row else None for row in rows])
        >>> venv.reset(seed=0)[0].max(axis=(1, 2))
        array([ 1, 11], dtype=uint8)
    """

    def __init__(self, env: AnyVectorEnv, source: Source) -> None:
        """``env``: a native batch of any puzzle; TypeError for any other, and for one that is wrapped already."""
        if env is not env.unwrapped:
            raise TypeError(f"start positions go below all other wrappers: expected the batch itself, got {env}")
        super().__init__(env)
        self._batch, self._source = batch_of(env, PuzzleVectorEnv), source

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Infos]:
        """Start games; those that ``reset_mask`` leaves out go on, and a ``board`` option counts before ``source``."""
        obs, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        if (options or {}).get("board") is None:
            self._begin(infos["_action_mask"], infos)
        return obs, infos

    def step(self, actions: NDArray[np.int64]) -> VectorStep:
        """Make a move in every game."""
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        self._begin(np.asarray(self._batch.steps() == 0), infos)
        return obs, rewards, terminated, truncated, infos

    def _begin(self, which: NDArray[np.bool_], infos: Infos) -> None:
        rows = np.flatnonzero(which)
        if len(rows) == 0:
            return
        boards = {int(row): board for row, board in zip(rows, self._source(rows), strict=True) if board is not None}
        if boards:
            seat(self.env, boards, infos)
