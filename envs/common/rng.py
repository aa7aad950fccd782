"""Counter-based random numbers (splitmix64; Steele, Lea, Flood 2014): one 64-bit word of state per game.

A state row carries its own generator, so a snapshot is complete and a batch is exactly its single games.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checks import whole_number
from .jit import njit

GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)
_S11 = np.uint64(11)
_LOW32 = np.uint64(0xFFFFFFFF)


@njit
def mix(word: np.uint64) -> np.uint64:
    """The splitmix64 output function: uint64 -> uint64, a bijection."""
    word = (word ^ (word >> _S30)) * _MIX1
    word = (word ^ (word >> _S27)) * _MIX2
    return word ^ (word >> _S31)


@njit
def below(word: np.uint64, n: np.uint64) -> np.uint64:
    """A uniform number in [0, n) from the upper 32 bits of ``word`` (bias below n / 2^32)."""
    return ((word >> _S32) * n) >> _S32


@njit
def low32(word: np.uint64) -> np.uint64:
    """The lower 32 bits, independent of what ``below`` reads."""
    return word & _LOW32


def _mix_array(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = (words ^ (words >> _S30)) * _MIX1
    words = (words ^ (words >> _S27)) * _MIX2
    return words ^ (words >> _S31)


def check_seed(seed: Any) -> int:
    """A seed as an int. Raises ValueError unless it is a whole number >= 0 (of any size)."""
    number = whole_number(seed)
    if number is None or number < 0:
        raise ValueError(f"a seed is a whole number of 0 or more, not {seed!r}")
    return number


def seed_words(seeds: Sequence[int] | NDArray[np.int64]) -> NDArray[np.uint64]:
    """Generator states for integer seeds of any size (uint64 ``[N]``): neighbouring seeds give unrelated streams."""
    low = np.array([int(seed) & 0xFFFFFFFFFFFFFFFF for seed in seeds], dtype=np.uint64)
    high = np.array([int(seed) >> 64 & 0xFFFFFFFFFFFFFFFF for seed in seeds], dtype=np.uint64)
    return _mix_array(_mix_array(low + GAMMA) ^ high)


class Streams:
    """One uniform stream per row, so that what a policy samples does not depend on how games are batched.

    Example:
        >>> streams = Streams.seeded([1, 2, 3])
        >>> streams.uniform().shape
        (3,)
    """

    def __init__(self, words: NDArray[np.uint64], rows: NDArray[np.int64] | None = None) -> None:
        """``words``: uint64 ``[N]``, advanced in place; ``rows``: the rows this view draws for (default all)."""
        self._words = words
        self._rows = np.arange(len(words)) if rows is None else rows

    @classmethod
    def seeded(cls, seeds: Sequence[int] | NDArray[np.int64]) -> Streams:
        """Streams for integer seeds, unrelated to the generators of games with the same seeds."""
        return cls(_mix_array(seed_words(seeds) ^ _MIX2))

    def __len__(self) -> int:
        """Number of rows this view draws for."""
        return len(self._rows)

    def take(self, rows: NDArray[np.int64]) -> Streams:
        """A view of some rows that advances the same streams."""
        return Streams(self._words, self._rows[rows])

    def replace(self, rows: NDArray[np.int64], seeds: Sequence[int] | NDArray[np.int64]) -> None:
        """Start the streams of ``rows`` anew from ``seeds``."""
        self._words[self._rows[rows]] = Streams.seeded(seeds)._words

    def uniform(self) -> NDArray[np.float64]:
        """One number in [0, 1) per row (float64 ``[N]``)."""
        words = self._words[self._rows] + GAMMA
        self._words[self._rows] = words
        return np.asarray((_mix_array(words) >> _S11) * 2.0**-53)
