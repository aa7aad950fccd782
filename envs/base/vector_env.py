"""The native batch of every puzzle: one kernel call steps all games, with Gymnasium's three autoreset modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from ..common.rng import check_seed, seed_words
from ..common.rows import SUCCESS, TERMINATED, TRUNCATED, WAS_LEGAL
from .batch import Batch, Outcome
from .puzzle import Puzzle
from .render_modes import Drawn, check_render_mode, drawer

Infos = dict[str, Any]


class PuzzleVectorEnv(VectorEnv[NDArray[np.uint8], NDArray[np.int64], NDArray[Any]]):
    """N games stepped together; equal, step for step, to ``SyncVectorEnv`` over N single environments."""

    puzzle: ClassVar[Puzzle]
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # type: ignore[misc]

    def __init__(
        self,
        num_envs: int = 1,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        num_threads: int | None = None,
        **arguments: Any,
    ) -> None:
        """Make ``num_envs`` games.

        Args:
            num_envs: number of games, N.
            render_mode: None, ``"ansi"`` or ``"rgb_array"`` (ImportError without Pillow).
            max_episode_steps: steps after which a game is truncated; None or -1 for no limit.
            autoreset_mode: ``"NextStep"``, ``"SameStep"`` or ``"Disabled"``, as in Gymnasium.
            copy: False to get the same arrays from every step, overwritten by the next one: read them, do not keep them
                and do not write to them. Gymnasium's own vector environments do so with observations.
            num_threads: threads that share the rows of a large batch (default: one for each core, or as many as the
                environment variable NUMBA_NUM_THREADS says); small batches use one. Results do not depend on it.
            arguments: those of the single environment.
        """
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, not {num_envs}")
        if num_threads is not None and num_threads < 1:
            raise ValueError(f"num_threads must be at least 1, or None for one per core, not {num_threads}")
        check_render_mode(render_mode, self.metadata["render_modes"])
        self.num_envs, self.render_mode = num_envs, render_mode
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}  # type: ignore[misc]
        self.single_observation_space = deepcopy(self.puzzle.observation_space)
        self.single_action_space = deepcopy(self.puzzle.action_space)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._limit = max_episode_steps if max_episode_steps is not None and max_episode_steps > 0 else 0
        self._batch = Batch(self.puzzle, num_envs, arguments, num_threads)
        self._out = self._batch.outputs()  # of the latest step or reset
        self._copy = copy
        self._shape = (num_envs, *self.puzzle.observation_space.shape)
        self._none = np.zeros(num_envs, dtype=np.bool_)
        self._set_ended(self._none)
        self._keys = ("action_mask", "legal", *self.puzzle.numbers, "is_success")
        self._present_keys = tuple("_" + key for key in self._keys)
        self._all_present = np.ones((len(self._keys), num_envs), dtype=np.bool_)
        self._same_infos = {} if copy else self._infos(self._out)  # of every step, without copies
        self._has_dead = False  # boards that were over when they were set
        self._started = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy's infos show the copy's arrays."""
        self.__dict__.update(state)
        self._same_infos = {} if self._copy else self._infos(self._out)

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
        words = self._generator_words(seed, which)
        rest = ~which
        out = self._next_outputs(keep=bool(rest.any()))
        self._batch.start(setup, which, words, out)
        self._started = True
        self._set_ended(self._ended & rest)
        self._has_dead = bool((self._batch.over() & ~self._ended).any())
        infos = self._infos(self._only(np.flatnonzero(which), out) if rest.any() else out, which)
        return out.obs.reshape(self._shape), infos

    def _set_ended(self, ended: NDArray[np.bool_]) -> None:
        """Note which games are over (bool ``[N]``, not changed afterwards)."""
        self._ended, self._has_ended = ended, bool(ended.any())

    def _seat(self, boards: Mapping[int, Any], infos: Infos) -> None:
        """Begin games anew on other boards, by row; the latest outcome and its infos show them.

        Raises ValueError, with nothing changed, for what is no board.
        """
        self._batch.seat({row: self.puzzle.check_board(board) for row, board in boards.items()}, self._out)
        rows = list(boards)
        for key, value in self._infos(self._out).items():
            infos[key][rows] = value[rows]
        ended = self._ended.copy()
        ended[rows] = False
        self._set_ended(ended)
        self._has_dead = bool((self._batch.over() & ~self._ended).any())

    def _next_outputs(self, keep: bool = False) -> Outcome:
        """Arrays for the next outcome; with ``keep`` they hold the latest one."""
        if self._copy:
            self._out = self._out.copied() if keep else self._batch.outputs()
        return self._out

    def _only(self, games: NDArray[np.int64], out: Outcome) -> Outcome:
        """``out`` with the masks and infos of some games alone, copied."""
        mask, flags = np.zeros(out.mask.shape, dtype=np.int8), np.zeros(out.flags.shape, dtype=np.bool_)
        numbers = np.zeros(out.numbers.shape, dtype=np.int64)
        mask[games], flags[:, games], numbers[:, games] = out.mask[games], out.flags[:, games], out.numbers[:, games]
        return out._replace(mask=mask, flags=flags, numbers=numbers)

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
        if self._has_ended and self.autoreset_mode is AutoresetMode.DISABLED:
            raise ResetNeeded("some games are over: reset them (options={'reset_mask': ...}) before the next step")
        if self._has_dead:
            raise ResetNeeded("some boards were over when they were set: reset() those games before the next step")
        pending = self._ended if self._has_ended and self.autoreset_mode is AutoresetMode.NEXT_STEP else None
        whole = self._whole(actions)
        self._batch.check(whole, pending)
        out = self._next_outputs()
        ended = self._batch.step(whole, out, self._limit, pending)
        final: Infos | None = None
        self._has_ended = ended > 0
        terminated, truncated = out.flags[TERMINATED], out.flags[TRUNCATED]
        self._ended = terminated | truncated if ended else self._none
        if ended and self.autoreset_mode is AutoresetMode.SAME_STEP:
            final = self._final_infos(out, self._ended)
            self._batch.refresh(self._ended, out, deal=True)
        infos = self._infos(out) if self._copy else dict(self._same_infos)
        if final:
            infos.update(final)
        return out.obs.reshape(self._shape), out.reward, terminated, truncated, infos

    def _whole(self, actions: Any) -> NDArray[np.int64]:
        try:
            array = np.asarray(actions)
        except ValueError:
            array = np.empty(0)
        if array.shape != (self.num_envs,) or array.dtype.kind not in "iu":
            raise ValueError(f"actions must be {self.num_envs} whole numbers of {self.single_action_space}")
        return np.ascontiguousarray(array, dtype=np.int64)

    def _infos(self, out: Outcome, which: NDArray[np.bool_] | None = None) -> Infos:
        """The infos of all games, or of those in ``which``."""
        present = self._all_present.copy()
        if which is not None:
            present[:] = which
        values = (out.mask, out.flags[WAS_LEGAL], *out.numbers, out.flags[SUCCESS])
        infos: Infos = dict(zip(self._keys, values, strict=True))
        infos.update(zip(self._present_keys, present, strict=True))
        return infos

    def _final_infos(self, out: Outcome, ended: NDArray[np.bool_]) -> Infos:
        """The last observation and info of the games that ended, before new ones take their rows."""
        (games,) = ended.nonzero()
        obs = np.empty(self.num_envs, dtype=object)  # filled with None
        for i, last in zip(games.tolist(), out.obs[games].reshape(len(games), *self._shape[1:]), strict=True):
            obs[i] = last
        return {
            "final_obs": obs,
            "_final_obs": ended.copy(),
            "final_info": self._infos(self._only(games, out), ended),
            "_final_info": ended.copy(),
        }

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are legal now (bool ``[N, actions]``): the mask of the latest step or reset, not made again."""
        if not self._started:
            raise ResetNeeded("there are no games yet: call reset() first")
        masks: NDArray[np.bool_] = self._out.mask.view(np.bool_)
        return masks.copy() if self._copy else masks

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
        if self._started:
            self._look()

    def _look(self) -> None:
        """Make the latest outcome that of the games as they are now."""
        self._batch.look(self._next_outputs(keep=True))

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
        self._look()  # notes which games are over
        late = self._batch.steps() >= self._limit if self._limit else self._none
        self._set_ended(self._batch.over() | late)
        self._has_dead, self._started = False, True

    def render(self) -> tuple[Drawn, ...] | None:
        """Each game as text (``"ansi"``) or as a picture (``"rgb_array"``: uint8 ``[height, width, 3]``)."""
        if self.render_mode is None:
            return None
        if not self._started:
            raise ResetNeeded("there is nothing to render yet: call reset() first")
        return tuple(map(drawer(self.puzzle, self.render_mode), self._batch.rows))
