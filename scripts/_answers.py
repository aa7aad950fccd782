"""Answers of the solver in words."""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from ..agents.solver import SOLVED, UNWINNABLE
from ..agents.solving import RESULTS, Answer
from ._console import counted

_WIDTH = 80


def told(answer: Answer, name: str) -> str:
    """One answer in a line; ``name`` says to what."""
    if answer.result == SOLVED:
        how = f"solved in {counted(len(answer.moves), 'move')}"
    elif answer.result == UNWINNABLE:
        how = "unwinnable, proved by a complete search"
    else:
        how = f"undecided, stopped at the limit of {answer.limit}"
    took = "" if answer.seconds is None else f", {_duration(answer.seconds)}"
    return f"{name}: {how} ({counted(answer.positions, 'position')}{took})"


def _duration(seconds: float) -> str:
    return f"{seconds:,.1f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"


class Summary:
    """What many answers come to."""

    def __init__(self) -> None:
        """None so far."""
        self._results: Counter[str] = Counter()
        self._figures: dict[str, list[float]] = {"milliseconds": [], "positions": [], "moves of the line": []}
        self._unsolved: defaultdict[str, list[int | None]] = defaultdict(list)

    def add(self, answer: Answer) -> None:
        """One answer more."""
        self._results[answer.result] += 1
        milliseconds, positions, moves = self._figures.values()
        if answer.seconds is not None:
            milliseconds.append(1000 * answer.seconds)
        positions.append(answer.positions)
        if answer.result == SOLVED:
            moves.append(len(answer.moves))
        else:
            limit = f" at the limit of {answer.limit}" if answer.limit else ""
            self._unsolved[f"{answer.result}{limit}"].append(answer.deal)

    @property
    def undecided(self) -> int:
        """How many are neither solved nor proved."""
        return self._results["undecided"]

    @property
    def counts(self) -> str:
        """How many there are of each kind."""
        return ", ".join(f"{self._results[result]:,} {result}" for result in RESULTS)

    def __str__(self) -> str:
        """Counts, figures, and the numbers of the deals that were not solved."""
        rows = [_row(name, values) for name, values in self._figures.items() if values]
        lists = [_listed(what, deals) for what, deals in self._unsolved.items()]
        return "\n".join([self.counts, f"{'':<20}{'mean':>12}{'median':>12}{'max':>12}", *rows, *lists])


def _row(name: str, values: Sequence[float]) -> str:
    figures = (np.mean(values), np.median(values), np.max(values))
    return f"{name:<20}" + "".join(f"{figure:>12,.1f}" for figure in figures)


def _listed(what: str, deals: Sequence[int | None]) -> str:
    text = f"{what}: {', '.join(map(str, deals))}"
    return textwrap.fill(text[0].upper() + text[1:], _WIDTH, subsequent_indent="  ")
