"""``puzzlegym solve``: a winning line of FreeCell, or the proof that there is none."""

from __future__ import annotations

import re
import sys
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from ..agents.answer_file import AnswerFile
from ..agents.solver import MEGABYTES, SOLVED, UNDECIDED, UNWINNABLE
from ..agents.solving import Answer, Limits, as_solved, solve_board, solve_deals
from ..agents.workers import Spread
from ..envs.common.threads import available
from ..envs.freecell import Game, State, deal_board
from ..envs.freecell.deals import check_deal
from ._answers import Summary, told
from ._console import counted, is_terminal, steps_done, terminable
from ._ray import OnRay, spreading

_CODES = {SOLVED: 0, UNWINNABLE: 3, UNDECIDED: 4}
_INTERRUPTED = 130

Answers = Generator[Answer, None, None]


@dataclass(frozen=True)
class Solve:
    """Solve FreeCell: a winning line, the proof that there is none, or 'undecided' at a limit of time or memory.

    Exit code of a deal or position: 0 solved, 3 unwinnable, 4 undecided; of a range: 0, or 4 if any is undecided.
    """

    deal: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="")] = None
    """A numbered deal. What is printed for one that is solved is a file for 'puzzlegym replay'."""
    deals: Annotated[str | None, tyro.conf.arg(metavar="A-B", help_behavior_hint="")] = None
    """A range of numbered deals, such as 1-32000."""
    board: Annotated[str | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")] = None
    """Any other position, as text (- for standard input)."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print a line of JSON for each deal: deal, result, moves, positions, seconds."""
    time: Annotated[float | None, tyro.conf.arg(metavar="SECONDS", help_behavior_hint="(default: no limit)")] = None
    """Time for a deal."""
    memory: Annotated[int, tyro.conf.arg(metavar="MB")] = MEGABYTES
    """Memory for a search; each process has one."""
    short: tyro.conf.FlagCreatePairsOff[bool] = False
    """Look longer, for a shorter line."""
    untimed: tyro.conf.FlagCreatePairsOff[bool] = False
    """Leave the seconds out: what is printed and written is then the same, byte for byte, on every run."""
    jobs: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: one for each core)")] = None
    """Ranges: processes."""
    ray: OnRay = None
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: none)")] = None
    """Ranges: write the lines of JSON here, each at once; if it was stopped, the same command goes on."""


def run(options: Solve) -> int:
    """Solve what is asked for, return the exit code. Raises ValueError for options and positions that are wrong."""
    given = [name for name in ("deal", "deals", "board") if getattr(options, name) is not None]
    if len(given) != 1:
        raise ValueError("give one of --deal N, --deals A-B and --board FILE" + (", not several" if given else ""))
    limits = Limits(options.time, options.memory, options.short)
    if options.deals is not None:
        return _solve_range(options, limits)
    if options.out is not None or options.jobs is not None or options.ray is not None:
        raise ValueError("--out, --jobs and --ray are for ranges: --deals A-B")
    return _solve_one(options, limits)


def _solve_one(options: Solve, limits: Limits) -> int:
    if options.deal is not None:
        start, name = State(deal_board(options.deal).tobytes(), options.deal), f"Deal {options.deal}"
        (answer,) = solve_deals([options.deal], limits)
    else:
        start, name = _position(options.board or "")
        answer = solve_board(start, limits)
    answer = answer.untimed() if options.untimed else answer
    if options.json:
        print(answer.to_json())
    elif answer.result == SOLVED:
        print(f"# {told(answer, name)}", Game(start, answer.moves), sep="\n", end="")
    else:
        print(told(answer, name))
    return _CODES[answer.result]


def _position(path: str) -> tuple[State, str]:
    """The position of a file, and what to call it."""
    name = "standard input" if path == "-" else path
    try:
        return State.parse(_text(path)), f"Position of {name}"
    except UnicodeDecodeError:
        raise ValueError(f"{name}: no text in UTF-8, but a position is text as FreeCell-v0's states print it") from None
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _text(path: str) -> str:
    if path != "-":
        return Path(path).read_text(encoding="utf-8")
    if sys.stdin is None:
        raise ValueError("there is none")
    return sys.stdin.read()


def _solve_range(options: Solve, limits: Limits) -> int:
    deals = _range(options.deals or "")
    if options.jobs is not None and options.jobs < 1:
        raise ValueError(f"--jobs must be at least 1, not {options.jobs}")
    if options.jobs is not None and options.ray is not None:
        raise ValueError(
            "--jobs is for processes of this machine: a Ray cluster knows its own, leave it out with --ray"
        )
    with terminable(), spreading(options.ray) as spread:  # so that the processes end with this one
        if options.out is not None:
            return _solve_into(options.out, options, deals, limits, spread)
        answers = _stripped(solve_deals(deals, limits, options.jobs or available(), spread), options)
        # Lines on a terminal show by themselves how it goes on, and a bar would be in their way.
        bar = not (options.json and is_terminal(sys.stdout))
        return _report(_with_bar(answers, len(deals)) if bar else answers, options)


def _range(text: str) -> range:
    """The deals of ``A-B``."""
    match = re.fullmatch(r"\s*(\d{1,20})\s*-\s*(\d{1,20})\s*", text)
    if not match:
        raise ValueError(f"--deals must be a range such as 1-32000, not {text!r}; for one deal there is --deal")
    first, last = (check_deal(int(number)) for number in match.groups())
    if first > last:
        raise ValueError(f"--deals goes from the lower number to the higher one, {last}-{first}, not {first}-{last}")
    return range(first, last + 1)


def _stripped(answers: Answers, options: Solve) -> Answers:
    """The answers as they were asked for."""
    with closing(answers):
        for answer in answers:
            yield answer.untimed() if options.untimed else answer


def _solve_into(path: Path, options: Solve, deals: range, limits: Limits, spread: Spread | None) -> int:
    """Solve what the file does not have yet, and report on all that it has."""
    with AnswerFile(path, deals, limits, options.untimed) as file:
        missing = len(deals) - len(file)
        found = as_solved(file.missing(), limits, options.jobs or available(), spread, missing)
        try:
            with closing(_with_bar(_stripped(found, options), missing)) as answers:
                for answer in answers:
                    file.add(answer)
            file.sort()
        except KeyboardInterrupt:
            done = f"{len(file):,} of {counted(len(deals), 'deal')}"
            print(f"puzzlegym solve: stopped, {done} in {path}: the same command goes on", file=sys.stderr)
            return _INTERRUPTED
        return _report(file.answers(), options)


def _with_bar(answers: Answers, total: int) -> Answers:
    """The answers, and on a terminal a bar that shows how many there are."""
    summary = Summary()
    with closing(answers), steps_done("solving") as tick:
        tick(summary.counts, total)
        for answer in answers:
            summary.add(answer)
            tick(summary.counts, total)
            yield answer


def _report(answers: Answers, options: Solve) -> int:
    """Print all answers as JSON, each as soon as it is there, or a summary; returns the exit code."""
    summary, stdout = Summary(), sys.stdout  # while there is a bar, sys.stdout is its
    with closing(answers):
        for answer in answers:
            summary.add(answer)
            if options.json:
                print(answer.to_json(), file=stdout, flush=True)
    if not options.json:
        print(f"Deals {options.deals}: {summary}")
    return _CODES[UNDECIDED if summary.undecided else SOLVED]
