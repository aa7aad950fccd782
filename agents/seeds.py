"""Which games are for learning, which for choosing among agents, which for the test: disjoint by construction.

Seeds live in three streams of 10^12 numbers each. FreeCell's numbered deals are split as well: the test plays deals
1..32,000, where random deals come from; training uses 32,001..1,000,000, selection the numbers above.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

STREAM_SIZE = 10**12
STREAMS = {"train": 0, "selection": STREAM_SIZE, "test": 2 * STREAM_SIZE}

# First and last number, both included, as in the environment's `deal_range`.
TEST_DEALS = (1, 32_000)
TRAIN_DEALS = (32_001, 1_000_000)
SELECTION_DEALS = (1_000_001, 1_032_000)
DEALS = {"train": TRAIN_DEALS, "selection": SELECTION_DEALS, "test": TEST_DEALS}


def stream_seeds(stream: str, seed: int, n: int) -> NDArray[np.int64]:
    """The seeds of ``n`` games of a stream (``train``, ``selection``, ``test``), starting at its number ``seed``.

    Returns int64 ``[n]``, consecutive. Raises ValueError for a negative seed, for less than one game, and where the
    games would reach into the next stream.
    """
    if n < 1:
        raise ValueError(f"the number of games must be at least 1, not {n}")
    if seed < 0 or seed + n >= STREAM_SIZE:
        raise ValueError(f"the seed must be from 0 to {STREAM_SIZE - n - 1:,} for {n:,} games, not {seed:,}")
    return STREAMS[stream] + seed + np.arange(n, dtype=np.int64)


def stream_deals(stream: str, seed: int, n: int) -> NDArray[np.int64]:
    """``n`` distinct FreeCell deal numbers of a stream, drawn by ``seed``; a larger ``n`` begins like a smaller one.

    Returns int64 ``[n]``. Raises ValueError for a negative seed and where the stream has fewer than ``n`` deals.
    """
    first, last = DEALS[stream]
    size = last - first + 1
    if seed < 0:
        raise ValueError(f"the seed must not be negative, but is {seed}")
    if not 1 <= n <= size:
        raise ValueError(f"the number of games must be from 1 to {size:,} (deals {first:,} to {last:,}), not {n:,}")
    return np.random.default_rng(seed).permutation(size)[:n] + first
