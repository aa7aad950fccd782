"""What the wrappers share: the batch beneath an environment, and base classes that pass its methods on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from numpy.typing import NDArray

from ..envs.base.batch import Batch
from ..envs.base.env import PuzzleEnv
from ..envs.base.vector_env import PuzzleVectorEnv

AnyEnv = gymnasium.Env[Any, Any]
AnyVectorEnv = VectorEnv[Any, Any, Any]
Infos = dict[str, Any]
Step = tuple[Any, Any, bool, bool, Infos]
VectorStep = tuple[Any, NDArray[Any], NDArray[np.bool_], NDArray[np.bool_], Infos]

if TYPE_CHECKING:
    _VectorBase = VectorWrapper[Any, Any, Any, Any, Any]
else:
    _VectorBase = VectorWrapper  # older releases of Gymnasium have no type parameters here


def batch_of(env: AnyEnv | AnyVectorEnv, kind: type[PuzzleEnv] | type[PuzzleVectorEnv]) -> Batch:
    """The state rows beneath ``env``; the one place where wrappers look below the public interface.

    Raises TypeError unless ``env`` wraps a ``kind``.
    """
    inner = env.unwrapped
    if not isinstance(inner, kind):
        raise TypeError(f"expected a {kind.__name__} (possibly wrapped), got {inner}")
    return inner._batch


class SingleWrapper(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A wrapper of one environment through which the puzzle's own methods can be reached.

    A subclass calls ``RecordConstructorArgs.__init__`` with its arguments first, so that ``spec`` can make it again.
    """

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are legal now (bool ``[actions]``)."""
        masks: NDArray[np.bool_] = self.env.get_wrapper_attr("action_masks")()
        return masks

    def get_state(self) -> Any:
        """A full snapshot of the game."""
        return self.env.get_wrapper_attr("get_state")()

    def set_state(self, state: Any) -> None:
        """Put a snapshot back."""
        self.env.get_wrapper_attr("set_state")(state)


def _method(env: AnyVectorEnv, name: str) -> Any:
    """A method of the outermost layer of ``env`` that has it (Gymnasium's own vector wrappers pass nothing on)."""
    while not hasattr(env, name) and isinstance(env, VectorWrapper):
        env = env.env
    return getattr(env, name)


class PuzzleVectorWrapper(_VectorBase):
    """A wrapper of a native batch through which the puzzle's own methods can be reached."""

    @property
    def autoreset_mode(self) -> AutoresetMode:
        """The batch's mode, under the name that ``SyncVectorEnv`` has for it and TorchRL reads."""
        return AutoresetMode(self.metadata["autoreset_mode"])

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are legal now (bool ``[N, actions]``)."""
        masks: NDArray[np.bool_] = _method(self.env, "action_masks")()
        return masks

    def set_attr(self, name: str, values: Any) -> None:
        """Set a parameter of the puzzle: one value for all games, or a list of one per game."""
        _method(self.env, "set_attr")(name, values)

    def get_state(self) -> NDArray[np.uint64]:
        """A copy of all state rows, uint64 ``[N, words]``."""
        rows: NDArray[np.uint64] = _method(self.env, "get_state")()
        return rows

    def set_state(self, rows: NDArray[np.uint64]) -> None:
        """Put back what ``get_state`` returned."""
        _method(self.env, "set_state")(rows)


def end_games(env: AnyVectorEnv, which: NDArray[np.bool_]) -> None:
    """Tell the batch beneath ``env`` that the games in ``which`` are over, so that it resets them as its mode says."""
    inner = env.unwrapped
    if not isinstance(inner, PuzzleVectorEnv):
        raise TypeError(f"expected a {PuzzleVectorEnv.__name__} (possibly wrapped), got {inner}")
    inner._set_ended(inner._ended | which)


def seat(env: AnyVectorEnv, boards: dict[int, Any], infos: Infos) -> None:
    """Put games that have just begun, by row, on other boards; the latest observations and ``infos`` show them, too.

    Raises ValueError, with nothing changed, for what is no board.
    """
    inner = env.unwrapped
    if not isinstance(inner, PuzzleVectorEnv):
        raise TypeError(f"expected a {PuzzleVectorEnv.__name__} (possibly wrapped), got {inner}")
    inner._seat(boards, infos)
