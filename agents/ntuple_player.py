"""An n-tuple network that plays 2048."""

from __future__ import annotations

import numpy as np

from .ntuple import NETWORKS, Floats, entries, lookups
from .search import Searcher, network_leaf

_CUTOFF = 1e-3


class NTuplePlayer(Searcher):
    """The move that gains most, now and by the network later; with ``depth`` above 1 after looking so far ahead."""

    training = ""  # how long it learned

    def __init__(self, name: str, network: str, values: Floats, depth: int = 1, seconds: float | None = None) -> None:
        """``values``: float32 or float16 ``[entries]`` of the ``network`` of that name; see ``Searcher``.

        Raises ValueError for an unknown network and for a table that does not fit it, and as ``Searcher`` does.
        """
        if network not in NETWORKS:
            raise ValueError(f"unknown n-tuple network {network!r}: use {', '.join(NETWORKS)}")
        if values.shape != (entries(NETWORKS[network]),):
            raise ValueError(f"a {network} network has {entries(NETWORKS[network]):,} values, not {values.shape}")
        table = np.ascontiguousarray(values, dtype=np.float32)[:, None]
        super().__init__(name, network_leaf(table, lookups(NETWORKS[network])), depth, _CUTOFF, seconds)
