"""The picture of ``puzzlegym evaluate --plot``: scores and rates of agents that played the same games."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, PercentFormatter
from numpy.typing import ArrayLike, NDArray

from ..agents.evaluation import Evaluation
from ..agents.measures import measures_of
from . import _plotting

_LOGARITHMIC = frozenset({"Puzzle2048-v0"})  # a score twice as high is one tile further
_HEIGHT, _PROFILE, _RATE, _LEAST_RATES = 4.2, 6.0, 0.75, 2.2  # inches: both panels, the left one, a rate, the right one
_SPREAD = 0.7  # of the room of a rate, for its agents side by side

Floats = NDArray[np.float64]


def profile(scores: ArrayLike) -> tuple[Floats, Floats]:
    """The different scores (rising) and the share of games that scored at least so much (from 1 on falling)."""
    values, first = np.unique(np.sort(np.asarray(scores, dtype=np.float64)), return_index=True)
    return values, 1 - first / np.size(scores)


def draw(results: Sequence[Evaluation], names: Sequence[str], rates: Sequence[str]) -> Figure:
    """Left the share of games with at least a score, a curve for each agent; right the rates with their intervals.

    The results must hold what was played. ``names`` stand in the legend.
    """
    right = max(_LEAST_RATES, _RATE * len(rates))
    figure = _plotting.new_figure((_PROFILE + right, _HEIGHT))
    left_axes, right_axes = figure.subplots(1, 2, width_ratios=(_PROFILE, right))
    _draw_profiles(left_axes, results)
    _draw_rates(right_axes, results, rates)
    _plotting.legend(figure, names)
    first = results[0]
    rank = f", start_rank {first.start_rank}" if first.start_rank else ""
    games = "game" if first.episodes == 1 else "games"
    figure.suptitle(f"{first.env_id}{rank}: {first.episodes:,} {games}, seed {first.seed}")
    return figure


def _draw_profiles(axes: Axes, results: Sequence[Evaluation]) -> None:
    env_id, played = results[0].env_id, [result.played.scores for result in results if result.played]
    least = min(map(np.min, played))
    for i, (result, scores) in enumerate(zip(results, played, strict=True)):
        style, mean = _plotting.style(i), result.score_mean
        colour, height = style["color"], float(np.mean(scores >= mean))
        values, shares = profile(scores)
        axes.plot([least, *values], [1, *shares], style["linestyle"], color=colour, drawstyle="steps-pre")
        axes.errorbar(mean, height, xerr=_arms(mean, result.score_ci95), color=colour, capsize=4, zorder=3)
        axes.plot(mean, height, style["marker"], color=colour, mec="white", mew=0.5, markersize=8, zorder=4)
    if env_id in _LOGARITHMIC:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(_plotting.compact)
    score = (measures_of(env_id).score or "return").replace("_", " ")
    _finish(axes, f"x = {score} (marker: mean, 95% bootstrap interval)", "games with at least x")


def _draw_rates(axes: Axes, results: Sequence[Evaluation], rates: Sequence[str]) -> None:
    places = np.arange(len(rates))
    for i, result in enumerate(results):
        style, aside = _plotting.style(i), ((i + 0.5) / len(results) - 0.5) * _SPREAD
        shares = [result.rates[name] for name in rates]
        reach = np.hstack([_arms(share.value, share.ci95) for share in shares])
        values = [share.value for share in shares]
        axes.errorbar(places + aside, values, reach, fmt=style["marker"], color=style["color"], capsize=2, markersize=5)
    axes.set_xticks(places, rates)
    axes.set_xlim(-0.5, len(rates) - 0.5)
    event = measures_of(results[0].env_id).rates[rates[0]][0].replace("_", " ")
    _finish(axes, f"{event} at least" if len(rates) > 1 else "", "games (95% Wilson interval)")
    axes.grid(visible=False, axis="x")
    for edge in places[1:] - 0.5:
        axes.axvline(edge, color="0.9", zorder=0)


def _arms(value: float, interval: tuple[float, float]) -> Floats:
    """How far the interval goes below and above the value, ``[2, 1]`` as error bars want it."""
    return np.array([[value - interval[0]], [interval[1] - value]]).clip(min=0)


def _finish(axes: Axes, x: str, y: str) -> None:
    _plotting.clean(axes)
    axes.set(xlabel=x, ylabel=y, ylim=(-0.03, 1.03))
    axes.yaxis.set_major_formatter(PercentFormatter(1))
