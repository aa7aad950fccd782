"""How a training run is shown: its figures, its speed, the time left."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from ._console import is_terminal

if TYPE_CHECKING:  # rich is imported when a run begins
    from rich.progress import Progress as RichProgress

    from ..agents.runs import Progress

_LINE_SECONDS = 15.0  # between lines of progress where there is no terminal
_MOST_SHARES = 3
_LINE = 70  # columns, beside percentage and bar

# How to say a figure; the others are shares of games.
_WORDS: dict[str, str] = {
    "score": "score {:,.0f}",
    "home": "cards home {:.1f}",
    "rank": "start rank {:.0f}",
    "before": "{:.0f} moves to go",
}


def told(figures: dict[str, float], between: str = ", ", shares: int = _MOST_SHARES) -> str:
    """The figures; of shares the last that are above zero, and the next one."""
    names = [name for name in figures if name not in _WORDS]
    above = [i for i, name in enumerate(names) if figures[name] > 0]
    end = (above[-1] if above else -1) + 2
    told = [name for name in figures if name in _WORDS or name in names[:end][-shares:]]
    words = [_WORDS.get(name, name + " {:.0%}").format(figures[name]) for name in told]
    return between.join(words) or "no game ended yet"


def line(progress: Progress) -> str:
    """Figures, speed and time left; short enough to share 80 columns with the percentage and a bar."""
    thousands = progress.rate / 1000
    rest = [f"{thousands:.{0 if thousands >= 10 else 1}f}k steps/s"]
    if 0 < progress.fraction < 1:
        rest.append(f"{_clock(progress.seconds * (1 - progress.fraction) / progress.fraction)} left")
    lines = ("  ".join([told(progress.figures, "  ", shares), *rest]) for shares in (3, 2, 1))
    return next((line for line in lines if len(line) <= _LINE), "  ".join(rest))


def _clock(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


class Display:
    """A bar on a terminal, a line now and then elsewhere."""

    def __init__(self, env_id: str, out: str) -> None:
        self.title = f"Training {env_id} in {out} (Ctrl-C saves and stops)"
        self._last, self._lost = time.perf_counter(), 0
        self._bar: RichProgress | None = None

    def __enter__(self) -> Display:
        print(self.title, flush=True)
        if is_terminal(sys.stdout):
            from rich.progress import BarColumn, Progress, TextColumn

            columns = (
                BarColumn(bar_width=None),  # as wide as the text leaves it
                TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("{task.description}"),
            )
            self._bar = Progress(*columns, refresh_per_second=4, expand=True)
            self._bar.add_task("first games ...", total=1.0)
            self._bar.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._bar:
            self._bar.stop()

    def update(self, progress: Progress) -> None:
        """Show the run's figures, steps per second and the time left."""
        now = time.perf_counter()
        if progress.fraction < 1 and now - self._last < (0.25 if self._bar else _LINE_SECONDS):
            return
        self._last = now
        if progress.lost > self._lost:
            self._lost = progress.lost
            print("A worker was lost: training goes on, and another one starts in its place", flush=True)
        if self._bar:
            self._bar.update(self._bar.task_ids[0], completed=progress.fraction, description=line(progress))
        else:
            print(f"{progress.fraction:4.0%}  {progress.steps:>10,} steps  {line(progress)}", flush=True)
