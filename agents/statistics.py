"""Estimates with their 95 % intervals."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

_LEVEL = 0.95
_RESAMPLES = 4999
_DRAWS_AT_ONCE = 2_000_000  # bounds the memory of the bootstrap, not its result


def mean_interval(values: ArrayLike) -> tuple[float, tuple[float, float]]:
    """Mean of a sample and its bootstrap interval (percentiles; the same sample always gives the same interval).

    A sample without spread, a single value among them, says nothing about its error: the interval is the point.
    Raises ValueError for an empty sample.
    """
    from scipy.stats import bootstrap

    sample = np.asarray(values, dtype=np.float64).ravel()
    if sample.size == 0:
        raise ValueError("the mean of no values is not defined")
    mean = float(sample.mean())
    if np.ptp(sample) == 0:
        return mean, (mean, mean)
    result = bootstrap(
        (sample,),
        np.mean,
        n_resamples=_RESAMPLES,
        batch=max(1, _DRAWS_AT_ONCE // sample.size),
        confidence_level=_LEVEL,
        method="percentile",
        random_state=np.random.default_rng(0),
    )
    return mean, (float(result.confidence_interval.low), float(result.confidence_interval.high))


def rate_interval(successes: int, trials: int) -> tuple[float, tuple[float, float]]:
    """Share of successes and its Wilson interval. Raises ValueError unless ``0 <= successes <= trials >= 1``."""
    from scipy.stats import binomtest

    if not 0 <= successes <= trials or trials < 1:
        raise ValueError(f"{successes} successes in {trials} trials are not possible")
    interval = binomtest(successes, trials).proportion_ci(confidence_level=_LEVEL, method="wilson")
    return successes / trials, (float(interval.low), float(interval.high))
