"""The positions that FreeCell games have been in, for the wrappers that act on repeats."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..envs.base.batch import Batch
from ..envs.common.cards import CARDS
from ..envs.freecell import rules
from ..envs.freecell.state import TABLE_WORDS

_SLOTS = 128  # per game at first; most games see fewer than half as many positions


class History:
    """Per game a set of the positions seen since its first one, equal up to the order of columns and of cells."""

    def __init__(self, batch: Batch) -> None:
        """``batch``: the FreeCell games to watch."""
        self._batch = batch
        self._slots = np.zeros((len(batch), _SLOTS), dtype=np.uint64)
        self._counts = np.zeros(len(batch), dtype=np.int64)
        self._back = np.zeros((len(batch), batch.puzzle.actions), dtype=np.int8)
        self._every = np.arange(len(batch))
        self._scratch = np.empty(TABLE_WORDS, dtype=np.uint64), np.empty(CARDS, dtype=np.int8)

    def look(self) -> None:
        """Note where the games stand now and which moves lead back from there. To look twice is to look once."""
        batch = self._batch
        most = rules.watch_rows(batch.rows, batch.config, self._slots, self._counts, self._back, *self._scratch)
        if 2 * most >= self._slots.shape[1]:
            self._grow()

    def forward(self, mask: NDArray[Any]) -> NDArray[Any]:
        """``mask`` (``[N, 520]``) without the moves that lead back; whole where nothing else would be left."""
        forward = mask & (self._back == 0)
        return np.where(forward.any(axis=1, keepdims=True), forward, mask)

    def _grow(self) -> None:
        larger = np.zeros((len(self._slots), 2 * self._slots.shape[1]), dtype=np.uint64)
        rules.copy_slots(self._slots, larger)
        self._slots = larger

    def repeats(self, actions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these actions lead back from the positions of the last look (bool ``[N]``)."""
        return np.asarray(self._back[self._every, actions] != 0)

    def begun(self) -> NDArray[np.bool_]:
        """Which games have had no step yet (bool ``[N]``)."""
        return np.asarray(self._batch.steps() == 0)

    def restart(self) -> None:
        """Begin anew with all games where they stand."""
        self._slots[:], self._counts[:] = 0, 0
        self.look()
