"""FreeCell without going round in circles: moves back to a position of the same game are masked out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from ..envs.freecell import FreeCellEnv, FreeCellVectorEnv
from ._batch import AnyEnv, AnyVectorEnv, Infos, PuzzleVectorWrapper, SingleWrapper, Step, VectorStep, batch_of
from ._history import History


class NoRepeat(SingleWrapper):
    """Masks out every FreeCell move that leads to a position already seen in this game.

    Positions are compared after the safe cards went home, and up to the order of columns and of cells: moving a whole
    column to an empty column is a repeat, too. Where nothing else would be left the mask stays as it was, so it is
    never all false before the end. The filtered mask is ``info["action_mask"]`` and ``action_masks()``;
    ``info["repeated"]`` (bool) tells whether the last move led to a seen position. A masked move can still be played.

    Example:
        >>> import gymnasium, puzzlegym
        >>> from puzzlegym.wrappers import NoRepeat
        >>> env = NoRepeat(gymnasium.make("FreeCell-v0", deal=9))
        >>> obs, info = env.reset(seed=0)
        >>> obs, reward, terminated, truncated, info = env.step(298)  # 8D to a cell
        >>> info["repeated"], bool(env.unwrapped.action_masks()[297]), bool(env.action_masks()[297])
        (False, True, False)
    """

    def __init__(self, env: AnyEnv) -> None:
        """``env``: a FreeCell environment, possibly wrapped; TypeError for any other."""
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        self._history = History(batch_of(env, FreeCellEnv))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Infos]:
        """Start a game and its history."""
        obs, info = self.env.reset(seed=seed, options=options)
        self._history.look()
        return obs, self._told(info, False)

    def step(self, action: int) -> Step:
        """Make a move, also a masked one."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        repeated = self._history.repeats(np.array([action]))
        self._history.look()
        return obs, reward, terminated, truncated, self._told(info, bool(repeated[0]))

    def _told(self, info: Infos, repeated: bool) -> Infos:
        return {**info, "action_mask": self._history.forward(info["action_mask"][None])[0], "repeated": repeated}

    def action_masks(self) -> NDArray[np.bool_]:
        """Which moves are legal and lead to a new position (bool ``[520]``; all legal ones where there are none)."""
        legal = super().action_masks()
        self._history.look()
        masks: NDArray[np.bool_] = self._history.forward(legal[None])[0]
        return masks

    def set_state(self, state: Any) -> None:
        """Put a snapshot back; the history begins there."""
        super().set_state(state)
        self._history.restart()


class NoRepeatVector(PuzzleVectorWrapper):
    """``NoRepeat`` for the native batch: one call into compiled code per step, in every autoreset mode.

    ``infos["repeated"]`` (bool ``[N]``) is False where a game has just begun; with autoreset in the same step
    ``infos["final_info"]`` holds it for the games that ended (whose masks there stay unfiltered).

    Example:
        >>> import gymnasium, puzzlegym
        >>> from puzzlegym.wrappers import NoRepeatVector
        >>> venv = NoRepeatVector(gymnasium.make_vec("FreeCell-v0", num_envs=2, deal=9))
        >>> obs, infos = venv.reset(seed=0)
        >>> obs, rewards, terminated, truncated, infos = venv.step([298, 298])  # 8D to a cell
        >>> infos["repeated"], venv.action_masks()[:, 297]
        (array([False, False]), array([False, False]))
    """

    def __init__(self, env: AnyVectorEnv) -> None:
        """``env``: a ``FreeCellVectorEnv``, possibly wrapped; TypeError for any other."""
        super().__init__(env)
        self._history = History(batch_of(env, FreeCellVectorEnv))

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Infos]:
        """Start games and their histories; those that ``reset_mask`` leaves out keep theirs."""
        obs, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        self._history.look()
        return obs, self._tell(infos, np.zeros(self.num_envs, dtype=np.bool_), infos["_action_mask"])

    def step(self, actions: NDArray[np.int64]) -> VectorStep:
        """Make a move, also a masked one, in every game."""
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        repeated = self._history.repeats(actions)
        self._history.look()
        if "final_info" in infos:
            ended = infos["_final_info"]
            infos["final_info"].update(repeated=repeated & ended, _repeated=ended.copy())
        infos = self._tell(infos, repeated & ~self._history.begun(), infos["_action_mask"])
        return obs, rewards, terminated, truncated, infos

    def _tell(self, infos: Infos, repeated: NDArray[np.bool_], which: NDArray[np.bool_]) -> Infos:
        masks = self._history.forward(infos["action_mask"])
        return {**infos, "action_mask": masks, "repeated": repeated, "_repeated": which.copy()}

    def action_masks(self) -> NDArray[np.bool_]:
        """Which moves are legal and lead to a new position (bool ``[N, 520]``)."""
        legal = super().action_masks()
        self._history.look()
        masks: NDArray[np.bool_] = self._history.forward(legal)
        return masks

    def set_state(self, rows: NDArray[np.uint64]) -> None:
        """Put back what ``get_state`` returned; the histories begin there."""
        super().set_state(rows)
        self._history.restart()
