"""The single environment of every puzzle: a thin Gymnasium view of a batch of one."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from ..common.checks import whole_number
from ..common.rng import check_seed, seed_words
from ..common.rows import SUCCESS, TERMINATED, WAS_LEGAL
from .batch import Batch
from .puzzle import Puzzle
from .render_modes import Drawn, check_render_mode, drawer

_THE_ONE = np.ones(1, dtype=np.bool_)


class PuzzleEnv(gymnasium.Env[NDArray[np.uint8], int]):
    """Life cycle, masks, snapshots and pictures of one game. A puzzle's subclass sets ``puzzle`` and its arguments."""

    puzzle: ClassVar[Puzzle]
    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["ansi", "human", "rgb_array"],
        "render_fps": 4,
    }

    def __init__(self, render_mode: str | None = None, **arguments: Any) -> None:
        """``arguments`` are the puzzle's parameters; ValueError for a value that it does not accept.

        ImportError for ``render_mode="rgb_array"`` without Pillow.
        """
        check_render_mode(render_mode, self.metadata["render_modes"])
        self.render_mode = render_mode
        # Spaces hold a generator for sampling: every environment has its own.
        self.observation_space = deepcopy(self.puzzle.observation_space)  # type: ignore[arg-type]
        self.action_space = deepcopy(self.puzzle.action_space)  # type: ignore[arg-type]
        self._batch = Batch(self.puzzle, 1, arguments, num_threads=1)
        self._out = self._batch.outputs()  # written by every step; what is returned are copies
        self._shape = self.puzzle.observation_space.shape
        self._started = False
        self._over = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Start a game. ``seed`` makes it repeatable; without one the generator goes on. ``options``: see the class."""
        setup = self._batch.read_options(options)
        words = {}
        if seed is not None:
            words[0] = int(seed_words([check_seed(seed)])[0])
        elif not self._started:
            words[0] = int(self.np_random.integers(2**63))
        self._batch.start(setup, _THE_ONE, words, self._out)
        super().reset(seed=seed)
        self._started = True
        self._over = self._batch.is_over()
        return self._show()

    def step(self, action: int) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """One move. Raises ResetNeeded before ``reset`` and after the end, ValueError for no action of the space."""
        if not self._started or self._over:
            self._refuse()
        self._batch.step_one(self._whole(action), self._out)
        self._over = self._out.flags.item(TERMINATED)
        obs, info = self._show()
        return obs, self._out.reward.item(), self._over, False, info

    def _refuse(self) -> None:
        raise ResetNeeded("the game is over: call reset() first" if self._started else "call reset() before step()")

    def _whole(self, action: Any) -> int:
        number = whole_number(action)
        if number is None or not 0 <= number < self.puzzle.actions:
            raise ValueError(f"an action is a whole number of {self.action_space}, not {action!r}; nothing changed")
        return number

    def _show(self) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        out = self._out
        info: dict[str, Any] = {"action_mask": out.mask[0].copy(), "legal": out.flags.item(WAS_LEGAL)}
        info.update(zip(self.puzzle.numbers, out.numbers.ravel().tolist(), strict=True))
        info["is_success"] = out.flags.item(SUCCESS)
        if self.render_mode == "human":
            print(self.render_as("ansi"), flush=True)
        return out.obs.reshape(self._shape).copy(), info

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are legal now (bool ``[actions]``; the name that sb3-contrib looks for)."""
        if not self._started:
            self._refuse()
        masks: NDArray[np.bool_] = self._out.mask[0].view(np.bool_).copy()
        return masks

    def get_state(self) -> Any:
        """A full snapshot of the game with its generator."""
        if not self._started:
            raise ResetNeeded("there is no game yet: call reset() first")
        return self.puzzle.to_state(self._batch.rows[0])

    def set_state(self, state: Any) -> None:
        """Put a snapshot back; the game goes on exactly as it did from there. ValueError for an impossible one."""
        row = np.zeros(self.puzzle.words, dtype=np.uint64)
        self.puzzle.from_state(state, row)
        self._batch.rows[0] = row
        self._started = True
        self._batch.look(self._out)
        self._over = self._batch.is_over()

    def render(self) -> Drawn | None:
        """The game in the environment's ``render_mode``, see ``render_as``; ``"human"`` printed it already."""
        if self.render_mode is None:
            gymnasium.logger.warn('render() needs a render_mode, such as gymnasium.make(..., render_mode="ansi")')
        if self.render_mode in (None, "human"):
            return None
        return self.render_as(self.render_mode)

    def render_as(self, mode: str) -> Drawn:
        """The game as text (``"ansi"``) or as a picture (``"rgb_array"``: uint8 ``[height, width, 3]``, a fresh one).

        Whatever the environment's own ``render_mode`` is. ValueError for another mode, ImportError without Pillow.
        """
        draw = drawer(self.puzzle, mode)
        if not self._started:
            raise ResetNeeded("there is nothing to render yet: call reset() first")
        return draw(self._batch.rows[0])
