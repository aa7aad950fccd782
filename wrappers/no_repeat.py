"""FreeCell without going round in circles: moves back to a position of the same game are masked out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from ..envs.freecell import FreeCellEnv, FreeCellVectorEnv
from ._batch import AnyEnv, AnyVectorEnv, Infos, PuzzleVectorWrapper, VectorStep, batch_of
from ._history import History


class NoRepeat(gymnasium.Wrapper[NDArray[np.uint8], int, NDArray[np.uint8], int], RecordConstructorArgs):
    """Masks out every FreeCell move that leads to a position already seen in this game.

    Positions are compared after the safe cards went home, and up to the order of columns and of cells: moving a whole
    column to an empty column is a repeat, too. Where nothing else would be left the mask stays as it was, so it is
    never all false before the end. The filtered mask is ``info["action_mask"]`` and ``action_masks()``;
    ``info["repeated"]`` (bool) tells whether the last move led to a seen position. A masked move can still be played.

    Example:
        >>> import gymnasium, puzzlegym
        >>> from puzzlegym.wrappers import NoRepeat
        >>> env = NoRepeat(gymnasium.make("FreeCell-v0", deal=1))
        >>> obs, info = env.reset(seed=0)
        >>> obs, reward, terminated, truncated, info = env.step(208)  # 6C to a cell
        >>> info["repeated"], bool(env.unwrapped.action_masks()[206]), bool(env.action_masks()[206])
        (False, True, False)
    """

    def __init__(self, env: AnyEnv) -> None:
        """``env``: a FreeCell environment, possibly wrapped; TypeError for any other."""
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        self._history = History(batch_of(env, FreeCellEnv))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Start a game and its history."""
        obs, info = self.env.reset(seed=seed, options=options)
        return obs, self._told(info, False)

    def step(self, action: int) -> tuple[NDArray[np.uint8], Any, bool, bool, dict[str, Any]]:
        """Make a move, also a masked one."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        repeated = self._history.repeats(np.array([action]))
        return obs, reward, terminated, truncated, self._told(info, bool(repeated[0]))

    def _told(self, info: dict[str, Any], repeated: bool) -> dict[str, Any]:
        return {**info, "action_mask": self._history.look(info["action_mask"][None])[0], "repeated": repeated}

    def action_masks(self) -> NDArray[np.bool_]:
        """Which moves are legal and lead to a new position (bool ``[520]``; all legal ones where there are none)."""
        legal: NDArray[np.bool_] = self.env.get_wrapper_attr("action_masks")()
        return self._history.look(legal.view(np.int8)[None])[0].astype(np.bool_)

    def set_state(self, state: Any) -> None:
        """Put a snapshot back; the history begins there."""
        self.env.get_wrapper_attr("set_state")(state)
        self._history.forget()
        self.action_masks()


class NoRepeatVector(PuzzleVectorWrapper[NDArray[np.uint8]]):
    """``NoRepeat`` for the native batch: one call into compiled code per step, in every autoreset mode.

    ``infos["repeated"]`` (bool ``[N]``) is False where a game has just begun; with autoreset in the same step
    ``infos["final_info"]`` holds it for the games that ended (whose masks there stay unfiltered).

    Example:
        >>> import gymnasium, puzzlegym
        >>> from puzzlegym.wrappers import NoRepeatVector
        >>> venv = NoRepeatVector(gymnasium.make_vec("FreeCell-v0", num_envs=2, deal=1))
        >>> obs, infos = venv.reset(seed=0)
        >>> obs, rewards, terminated, truncated, infos = venv.step([208, 208])  # 6C to a cell
        >>> infos["repeated"], venv.action_masks()[:, 206]
        (array([False, False]), array([False, False]))
    """

    def __init__(self, env: AnyVectorEnv) -> None:
        """``env``: a ``FreeCellVectorEnv``, possibly wrapped; TypeError for any other."""
        super().__init__(env)
        self._history = History(batch_of(env, FreeCellVectorEnv))

    def reset(  # type: ignore[override]
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], Infos]:
        """Start games and their histories; those that ``reset_mask`` leaves out keep theirs."""
        obs, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        which = infos["_action_mask"]
        mask = self.action_masks().view(np.int8)  # the infos speak only of the games that were reset
        infos["action_mask"] = np.where(which[:, None], mask, 0).astype(np.int8)
        return obs, _with_repeated(infos, np.zeros(self.num_envs, dtype=np.bool_), which)

    def step(self, actions: NDArray[np.int64]) -> VectorStep:
        """Make a move, also a masked one, in every game."""
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        repeated = self._history.repeats(actions)
        infos["action_mask"] = self._history.look(infos["action_mask"])
        if "final_info" in infos:
            ended = infos["_final_info"]
            _with_repeated(infos["final_info"], repeated & ended, ended)
        _with_repeated(infos, repeated & ~self._history.begun(), infos["_action_mask"])
        return obs, rewards, terminated, truncated, infos

    def action_masks(self) -> NDArray[np.bool_]:
        """Which moves are legal and lead to a new position (bool ``[N, 520]``)."""
        return self._history.look(super().action_masks().view(np.int8)).view(np.bool_)

    def set_state(self, rows: NDArray[np.uint64]) -> None:
        """Put back what ``get_state`` returned; the histories begin there."""
        super().set_state(rows)
        self._history.forget()
        self.action_masks()


def _with_repeated(infos: Infos, repeated: NDArray[np.bool_], which: NDArray[np.bool_]) -> Infos:
    infos["repeated"], infos["_repeated"] = repeated, which.copy()
    return infos
