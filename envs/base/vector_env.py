"""The native batch of every puzzle: one kernel call steps all games, with Gymnasium's three autoreset modes."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from ..common.rng import check_seed, seed_words
from .batch import Batch, Outcome
from .puzzle import Puzzle

Infos = dict[str, Any]


class PuzzleVectorEnv(VectorEnv[NDArray[np.uint8], NDArray[np.int64], NDArray[Any]]):
    """N games stepped together; equal, step for step, to ``SyncVectorEnv`` over N single environments."""

    puzzle: ClassVar[Puzzle]
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 4}  # type: ignore[misc]

    def __init__(
        self,
        num_envs: int = 1,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        **arguments: Any,
    ) -> None:
        """See the puzzle's class for ``arguments``. ``max_episode_steps``: None or -1 for no limit."""
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, not {num_envs}")
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode must be one of {self.metadata['render_modes']} or None, not {render_mode!r}")
        self.num_envs, self.render_mode = num_envs, render_mode
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}  # type: ignore[misc]
        self.single_observation_space = deepcopy(self.puzzle.observation_space)
        self.single_action_space = deepcopy(self.puzzle.action_space)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._limit = max_episode_steps if max_episode_steps is not None and max_episode_steps > 0 else 0
        self._batch = Batch(self.puzzle, num_envs, arguments)
        self._ended = np.zeros(num_envs, dtype=np.bool_)
        self._dead = np.zeros(num_envs, dtype=np.bool_)
        self._started = False

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], Infos]:
        """Start games.

        ``seed``: an int s (game i gets s + i) or one per game. ``options``: those of the single environment, one value
        for all or one per game; ``"reset_mask"`` (bool ``[N]``) leaves the other games as they are.
        """
        options = dict(options or {})
        which = self._read_mask(options.pop("reset_mask", None))
        setup = self._batch.read_options(options)
        out = self._batch.start(setup, which, self._generator_words(seed, which))
        rest = ~which
        if rest.any():
            self._batch.refresh(rest, out)
            out.info[:, rest], out.mask[rest] = 0, 0  # infos speak of the games that were reset
        self._started = True
        self._ended = self._ended & rest
        self._dead = self._batch.over() & ~self._ended  # boards that were over when they were set
        return out.obs, self._infos(out, which)

    def _read_mask(self, mask: Any) -> NDArray[np.bool_]:
        if mask is None:
            return np.ones(self.num_envs, dtype=np.bool_)
        if not isinstance(mask, np.ndarray) or mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
            raise ValueError(f"option 'reset_mask' must be a bool array of shape ({self.num_envs},)")
        if not self._started and not mask.all():
            raise ResetNeeded("reset all games once before resetting some of them")
        if not mask.any():
            raise ValueError("option 'reset_mask' must hold at least one True value")
        return mask

    def _generator_words(self, seed: int | Sequence[int | None] | None, which: NDArray[np.bool_]) -> dict[int, int]:
        """New generator states by row: from the seeds; from entropy for games that never had one."""
        if seed is None or isinstance(seed, (list, tuple, np.ndarray)):
            seeds = [None] * self.num_envs if seed is None else list(seed)
        else:
            seeds = [check_seed(seed) + i for i in range(self.num_envs)]
        if len(seeds) != self.num_envs:
            raise ValueError(f"expected one seed for each of the {self.num_envs} environments, got {len(seeds)}")
        given = {i: check_seed(s) for i, s in enumerate(seeds) if s is not None and which[i]}
        if seed is not None and not isinstance(seed, (list, tuple, np.ndarray)):
            super().reset(seed=seeds[0])
        words = dict(zip(given, seed_words(list(given.values())).tolist(), strict=True))
        if not self._started:
            for i in set(range(self.num_envs)) - set(words):
                words[i] = int(self.np_random.integers(2**63))
        return words

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Infos]:
        """One move in every game. Raises ValueError, with nothing changed, for actions that are not of the space."""
        if not self._started:
            raise ResetNeeded("call reset() before step()")
        if self.autoreset_mode == AutoresetMode.DISABLED and self._ended.any():
            raise ResetNeeded("some games are over: reset them (options={'reset_mask': ...}) before the next step")
        if self._dead.any():
            raise ResetNeeded("some boards were over when they were set: reset() those games before the next step")
        next_step = self.autoreset_mode == AutoresetMode.NEXT_STEP
        out, ended = self._batch.step(self._whole(actions), self._limit, self._ended if next_step else None)
        self._ended = out.terminated | out.truncated
        infos: Infos = {}
        if ended and self.autoreset_mode == AutoresetMode.SAME_STEP:
            infos = self._final_infos(out, self._ended)
            self._batch.refresh(self._ended, out, deal=True)
        infos.update(self._infos(out, np.ones(self.num_envs, dtype=np.bool_)))
        return out.obs, out.reward, out.terminated, out.truncated, infos

    def _whole(self, actions: Any) -> NDArray[np.int64]:
        try:
            array = np.asarray(actions)
        except ValueError:
            array = np.empty(0)
        if array.shape != (self.num_envs,) or array.dtype.kind not in "iu":
            raise ValueError(f"actions must be {self.num_envs} whole numbers of {self.single_action_space}")
        return np.ascontiguousarray(array, dtype=np.int64)

    def _infos(self, out: Outcome, which: NDArray[np.bool_]) -> Infos:
        infos: Infos = {"action_mask": out.mask, "_action_mask": which.copy()}
        for (name, kind), numbers in zip(self.puzzle.info.items(), out.info, strict=True):
            infos[name] = numbers.astype(kind)
            infos[f"_{name}"] = which.copy()
        return infos

    def _final_infos(self, out: Outcome, ended: NDArray[np.bool_]) -> Infos:
        """The last observation and info of the games that ended, before new ones take their rows."""
        final = Outcome(out.obs, np.where(ended[:, None], out.mask, 0), np.where(ended, out.info, 0), *out[3:])
        obs = np.full(self.num_envs, None, dtype=object)
        for i in np.flatnonzero(ended):
            obs[i] = out.obs[i].copy()
        return {
            "final_obs": obs,
            "_final_obs": ended.copy(),
            "final_info": self._infos(final, ended),
            "_final_info": ended.copy(),
        }

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are legal now (bool ``[N, actions]``)."""
        if not self._started:
            raise ResetNeeded("there are no games yet: call reset() first")
        masks: NDArray[np.bool_] = self._batch.look().mask.view(np.bool_)
        return masks

    def set_attr(self, name: str, values: Any) -> None:
        """Set a constructor argument of the games.

        How games start, such as FreeCell's ``start_rank``, counts from each game's next reset on; how they are played,
        such as ``autoplay``, at once.

        ``values``: one for all, or a list of one per game. ValueError for unknown names and values.
        """
        if name not in self.puzzle.parameters:
            raise ValueError(f"unknown parameter {name!r}; accepted: {', '.join(self.puzzle.parameters)}")
        config = self._batch.config.copy()
        self._batch.write_parameter(config, name, values)
        self._batch.config = config

    def get_state(self) -> NDArray[np.uint64]:
        """Full snapshot of all games and generators: a copy of the state rows, uint64 ``[N, words]``."""
        if not self._started:
            raise ResetNeeded("there are no games yet: call reset() first")
        return self._batch.rows.copy()

    def set_state(self, rows: NDArray[np.uint64]) -> None:
        """Put back what ``get_state`` returned. ValueError for any other shape or an impossible position."""
        array = np.asarray(rows)
        if array.shape != self._batch.rows.shape or array.dtype != np.uint64:
            raise ValueError(f"expected state rows, uint64 of shape {self._batch.rows.shape}")
        fresh = np.zeros_like(self._batch.rows)
        for row, given in zip(fresh, array, strict=True):
            self.puzzle.from_state(self.puzzle.to_state(given), row)
        self._batch.rows[:] = fresh
        self._batch.look()  # notes which games are over
        late = self._batch.steps() >= self._limit if self._limit else np.zeros_like(self._ended)
        self._ended, self._started = self._batch.over() | late, True

    def render(self) -> tuple[str, ...] | None:
        """The games as text, one string each (``render_mode="ansi"``)."""
        if self.render_mode is None:
            return None
        if not self._started:
            raise ResetNeeded("there is nothing to render yet: call reset() first")
        return tuple(self.puzzle.ansi(row) for row in self._batch.rows)
