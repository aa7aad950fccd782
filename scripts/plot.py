"""``puzzlegym plot``: learning curves of training runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ..agents.logs import RECENT
from . import _curves, _plotting

X = Literal["steps", "minutes"]
_WIDTH, _HEIGHT, _MARGIN = 7.0, 1.9, 0.9  # inches: the picture, a panel, what stands above and below
_SPREAD = "line: mean of the runs, band: lowest to highest, thin: runs beyond what all cover"
_MARKS = 0.15  # of a line's length, between its markers


@dataclass(frozen=True)
class Plot:
    """Draw the learning curves of runs: those of equal settings as the mean over their seeds with its range."""

    runs: Annotated[
        tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN [...]", help_behavior_hint="(at least one)")
    ]
    """Folders that 'puzzlegym train' wrote, finished or not."""
    out: Annotated[Path, tyro.conf.arg(metavar="FILE")] = Path("curves.png")
    """The picture: .png, .svg, .pdf or what else matplotlib writes."""
    x: X = "steps"
    """What to count along the axis: environment steps, or minutes of training."""
    y: Annotated[
        tuple[str, ...], tyro.conf.arg(metavar="FIGURE [...]", help_behavior_hint="(default: those that tell)")
    ] = ()
    """Figures to draw, by their names in log.csv; of the tiles by default the three largest reached."""


@dataclass(frozen=True)
class Panel:
    """How a figure is shown: label of its axis, in the table; is it a share of games; is less of it better?"""

    label: str
    cell: str = "{:.1%}"
    share: bool = True
    best_is_low: bool = False


# The others are shares of games that reached the tile they are named after.
PANELS: dict[str, Panel] = {
    "score": Panel("score", "{:,.0f}", share=False),
    "home": Panel("cards home", "{:.1f}", share=False),
    "win": Panel("games won"),
    "rank": Panel("start rank (0: full deal)", "{:.0f}", share=False, best_is_low=True),
    "before": Panel("moves before the win at the start", "{:.0f}", share=False),
    "full": Panel("full deals won"),
    "agrees": Panel("favourite moves that are the solver's"),
}

_MOST_TILES = 3  # shares of games that reached a tile, unless named by --y


def panel(figure: str) -> Panel:
    """How the figure of this name is shown."""
    return PANELS.get(figure) or Panel(f"games that reached {figure}")


def run(options: Plot) -> int:
    """Draw the picture, print the last figures of every run, return the exit code. Raises ValueError for bad calls."""
    if not options.runs:
        raise ValueError("name at least one run folder")
    _plotting.check(options.out)
    runs = _curves.load_all(options.runs)
    figures = _chosen(options.y, runs)
    names = dict(zip([r.path for r in runs], _plotting.apart([str(r.path.absolute()) for r in runs]), strict=True))
    groups = _curves.grouped(runs)
    labels = _curves.labels(groups, names)
    _plotting.save(draw(groups, labels, figures, options.x), options.out)
    show(groups, labels, names, figures)
    print(f"Plot in {options.out}")
    return 0


def _chosen(wanted: Sequence[str], runs: Sequence[_curves.Run]) -> list[str]:
    there = [name for name in runs[0].log.figures if all(name in run.log.figures for run in runs)]
    unknown = [name for name in wanted if name not in there]
    if unknown or not there:
        raise ValueError(f"no figure {', '.join(unknown)} in all of the runs: they have {', '.join(there) or 'none'}")
    return list(dict.fromkeys(wanted)) or _telling(there, runs)


def _telling(names: Sequence[str], runs: Sequence[_curves.Run]) -> list[str]:
    """All figures, but of the shares of games only the last that any run came above zero with, or the first one."""
    tiles = [name for name in names if name.isdigit()]
    above = [name for name in tiles if any(run.log.figures[name][-1] > 0 for run in runs)]
    return [name for name in names if name not in tiles or name in (above or tiles[:1])[-_MOST_TILES:]]


def draw(groups: Sequence[Sequence[_curves.Run]], labels: Sequence[str], figures: Sequence[str], x: X) -> Figure:
    """A panel for each figure, a line for each group in all of them."""
    picture = _plotting.new_figure((_WIDTH, max(2, len(figures)) * _HEIGHT + _MARGIN))
    panels = picture.subplots(len(figures), 1, sharex=True, squeeze=False)[:, 0]
    for axes, figure in zip(panels, figures, strict=True):
        for i, group in enumerate(groups):
            _draw_group(axes, [run.curve(x, figure) for run in group], i)
        _finish(axes, panel(figure))
    panels[-1].set_xlabel("environment steps" if x == "steps" else "minutes of training")
    panels[-1].xaxis.set_major_formatter(_plotting.compact)
    picture.align_ylabels(panels)
    first = groups[0][0]
    frontier = " at the starts reached" if {"rank", "before"} & set(first.log.figures) else ""
    picture.suptitle(f"{first.env_id}, training: means of the last {RECENT} games{frontier}", fontsize="medium")
    if max(map(len, groups)) > 1:
        sized = [f"{label} ({_curves.size(group)})" for label, group in zip(labels, groups, strict=True)]
        _plotting.legend(picture, sized, _SPREAD)
    else:
        _plotting.legend(picture, labels)
    return picture


def _draw_group(axes: Axes, curves: Sequence[_curves.Curve], index: int) -> None:
    style, band = _plotting.style(index), _curves.band(curves)
    axes.plot(band.x, band.mean, **style, markevery=(_MARKS * index / 8, _MARKS), markersize=5)
    if len(curves) > 1:
        axes.fill_between(band.x, band.low, band.high, color=style["color"], alpha=_plotting.FAINT, linewidth=0)
        for x, y in (part for curve in curves for part in _curves.beyond(curve, band.x)):
            axes.plot(x, y, color=style["color"], linewidth=0.7)


def _finish(axes: Axes, shown: Panel) -> None:
    _plotting.clean(axes)
    axes.set_ylabel(shown.label)
    axes.yaxis.set_major_formatter(PercentFormatter(1) if shown.share else "{x:,.10g}")
    if shown.best_is_low:
        axes.invert_yaxis()
    else:
        axes.set_ylim(bottom=0)


def show(
    groups: Sequence[Sequence[_curves.Run]],
    labels: Sequence[str],
    names: Mapping[Path, str],
    figures: Sequence[str],
) -> None:
    """Print how far every run has come: its last row, group by group."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("run", overflow="fold")
    for title in ("seed", "steps", "minutes", *figures):
        table.add_column(title, justify="right", no_wrap=True)
    for label, group in zip(labels, groups, strict=True):
        if len(groups) > 1 and label != names[group[0].path]:
            table.add_row(label)
        for run in group:
            log = run.log
            cells = [panel(name).cell.format(log.figures[name][-1]) for name in figures]
            seed = "" if run.seed is None else str(run.seed)
            table.add_row(names[run.path], seed, f"{log.steps[-1]:,.0f}", f"{log.seconds[-1] / 60:.1f}", *cells)
        table.add_section()
    Console().print(table)
