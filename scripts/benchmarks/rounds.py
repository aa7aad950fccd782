"""Interleaved rounds: every case once, then every case once more, so that all see the same moods of the machine."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """One thing to measure; ``measure`` gives one sample in ``unit``."""

    section: str
    env_id: str
    name: str
    unit: str
    measure: Callable[[], float]
    rounds: int | None = None  # at most so many samples (None: one each round)


@dataclass
class Result:
    """The samples of one case, one a round."""

    case: Case
    samples: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The figure to report."""
        return statistics.median(self.samples)

    def to_json(self) -> dict[str, Any]:
        """Plain data: what was measured, median, spread and all samples."""
        return {
            "section": self.case.section,
            "env_id": self.case.env_id,
            "case": self.case.name,
            "unit": self.case.unit,
            "median": self.median,
            "min": min(self.samples),
            "max": max(self.samples),
            "samples": self.samples,
        }


def interleave(cases: Sequence[Case], rounds: int, tick: Callable[[Case], None]) -> tuple[list[Result], bool]:
    """Measure all cases ``rounds`` times: (results, whole). ``tick`` is called before each sample.

    Ctrl-C ends it early; the samples taken so far are the answer then, and ``whole`` is False.
    """
    results = [Result(case) for case in cases]
    try:
        for number in range(rounds):
            for result in results:
                if result.case.rounds is None or number < result.case.rounds:
                    tick(result.case)
                    result.samples.append(result.case.measure())
    except KeyboardInterrupt:
        return [result for result in results if result.samples], False
    return results, True
