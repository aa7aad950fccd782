"""Numbered deals and positions solved: every line is played in the environment and written in standard notation."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from ..envs.freecell.actions import CELL, HOME, decode_action
from ..envs.freecell.env import FreeCellEnv
from ..envs.freecell.state import CELLS, COLUMNS
from .solver import MEGABYTES, SOLVED, UNDECIDED, UNWINNABLE, Solver, check_limits
from .workers import Spread, in_order, spread

RESULTS = (SOLVED, UNWINNABLE, UNDECIDED)
_CHUNK = 4  # deals given to a process at a time
_ALONE = 0.5  # seconds after which other processes are worth their start
_LETTERS = "abcd"
_KEYS = ("deal", "result", "moves", "positions")
_MORE_KEYS = ("seconds", "limit")  # where there are any


@dataclass(frozen=True)
class Limits:
    """How long to search for each deal, with how much memory, and whether for a short line. ValueError as ``Solver``.

    Example:
        >>> [answer.result for answer in solve_deals([11981, 11982, 11983], Limits(seconds=60))]
        ['solved', 'unwinnable', 'solved']
    """

    seconds: float | None = None
    megabytes: int = MEGABYTES
    short: bool = False

    def __post_init__(self) -> None:
        """See the class."""
        check_limits(self.seconds, self.megabytes)


@dataclass(frozen=True)
class Answer:
    """What is known of a deal (None: another position).

    ``moves``: a winning line in standard notation; ``positions``: how many were found in all; ``seconds``: None if they
    do not count; ``limit``: what stopped a search that is undecided.
    """

    deal: int | None
    result: str
    moves: tuple[str, ...] = ()
    positions: int = 0
    seconds: float | None = 0.0
    limit: str = ""

    def to_json(self) -> str:
        """One line: deal, result, moves, positions; seconds, if they count; and limit, if it is undecided."""
        values = {**asdict(self), "moves": list(self.moves)}
        if self.seconds is not None:
            values["seconds"] = round(self.seconds, 6)
        more = [key for key in _MORE_KEYS if values[key] not in (None, "")]
        return json.dumps({key: values[key] for key in (*_KEYS, *more)})

    def untimed(self) -> Answer:
        """The same without ``seconds``: equal wherever it was found."""
        return replace(self, seconds=None)

    @classmethod
    def from_json(cls, text: str | bytes) -> Answer:
        """Inverse of ``to_json``. Raises ValueError for another text."""
        try:
            values = json.loads(text)
            answer = cls(**{"seconds": None, **values, "moves": tuple(values["moves"])})
        except (TypeError, KeyError, ValueError):
            raise ValueError("not the line of an answer") from None
        if answer.result not in RESULTS or set(_KEYS) - set(values):
            raise ValueError("not the line of an answer")
        return answer


def solve_board(board: Any, limits: Limits) -> Answer:
    """The answer to what the environment takes as its ``board`` option; ValueError for anything else."""
    return _Desk(limits).answer({"board": board}, None)


def solve_deals(
    deals: Sequence[int], limits: Limits, jobs: int = 1, spread_by: Spread | None = None
) -> Generator[Answer, None, None]:
    """The answers to numbered deals (none twice), in their order. See ``as_solved`` for ``jobs`` and ``spread_by``."""
    with closing(as_solved(deals, limits, jobs, spread_by, len(deals))) as answers:
        yield from in_order(((answer.deal, answer) for answer in answers), deals)


def as_solved(
    deals: Iterable[int], limits: Limits, jobs: int = 1, spread_by: Spread | None = None, total: int = 0
) -> Generator[Answer, None, None]:
    """The answers to numbered deals in the order in which they are found, on up to ``jobs`` processes.

    The answers do not depend on the number of processes, but for a limit of time. Others start only after half a
    second; close the iterator to end them. ``spread_by`` spreads the work in another way instead, and wants to know how
    many deals there are (``total``). Raises ValueError for a number that is no deal.
    """
    if spread_by is not None:
        yield from spread_by(partial(_solved, limits), deals, total)
        return
    began, rest = time.monotonic(), iter(deals)
    for answer in _solved(limits, rest):
        yield answer
        if jobs > 1 and time.monotonic() - began > _ALONE:
            break
    with closing(spread(partial(_solved, limits), _chunks(rest), jobs)) as answers:
        yield from answers


def _solved(limits: Limits, deals: Iterable[int]) -> Iterator[Answer]:
    desk = _Desk(limits)
    for deal in deals:
        yield desk.answer({"deal": deal}, deal)


def _chunks(deals: Iterator[int]) -> Iterator[list[int]]:
    while chunk := list(islice(deals, _CHUNK)):
        yield chunk


class _Desk:
    """A solver, and the environment that checks it."""

    def __init__(self, limits: Limits) -> None:
        self._env = FreeCellEnv()
        self._solver = Solver(limits.seconds, limits.megabytes, limits.short)

    def answer(self, setting: Mapping[str, Any], deal: int | None) -> Answer:
        """Solve the position that a reset with this ``setting`` leads to."""
        board, info = self._env.reset(options=dict(setting))
        solution = self._solver.solve(board)
        moves = []
        for action in solution.actions:
            before = board.tobytes()
            board, _, _, _, info = self._env.step(action)
            if not info["legal"]:
                break
            moves.append(_written(before, action))
        if solution.result == SOLVED and not (info["legal"] and info["is_success"]):
            raise AssertionError(f"the environment refuses the solver's line: {solution.actions}")
        return Answer(deal, solution.result, tuple(moves), solution.positions, solution.seconds, solution.limit)


def _written(board: bytes, action: int) -> str:
    """A legal action as ``format_move`` writes it, without the checks that would take longer than the solver does."""
    card, to = decode_action(action)
    row, column = divmod(board.index(card + 1), COLUMNS)
    source = str(column + 1) if row else _LETTERS[column]
    if to == HOME:
        return source + "h"
    if to == CELL:
        return source + _LETTERS[board[:CELLS].index(0)]
    count = len(board[COLUMNS + column :: COLUMNS].rstrip(b"\0")) - row + 1 if row else 1
    return f"{source}{to + 1}" + (f"v{count:x}" if count > 1 and not board[COLUMNS + to] else "")
