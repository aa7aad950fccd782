"""The evaluation protocol: one whole game per held-out seed, the same games for every agent.

"The first N games to finish" would favour short games; here N seeds are fixed before and each game is played to its
end, however the games are spread over the batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ..envs.common.rng import Streams
from .losses import Trail
from .measures import Infos, measures_of
from .policy import Actions, Masks, Observations, Policy, check_id
from .portable import PortableAgent
from .seeds import stream_deals, stream_seeds
from .statistics import mean_interval, rate_interval
from .workers import Spread
from .wrapping import needed_by, wrap_batch

Progress = Callable[[int, int, int], None]
"""Called with games finished, games in all, moves made so far."""

DEFAULT_BATCH = 256
_OF_NETWORKS = 16  # games that a network plays about as fast as one


@dataclass(frozen=True)
class Games:
    """The games to play: a seed each, and reset options that are arrays with one entry per game."""

    env_id: str
    seeds: NDArray[np.int64]
    options: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    def __len__(self) -> int:
        """Number of games."""
        return len(self.seeds)

    def part(self, which: Sequence[int]) -> Games:
        """Some of the games."""
        places = np.asarray(which, dtype=np.int64)
        return Games(self.env_id, self.seeds[places], {name: values[places] for name, values in self.options.items()})


@dataclass(frozen=True)
class Played:
    """What happened, one entry per game in the order of ``Games``.

    Scores, moves, illegal moves, events ``[G, R]``, and causes of the loss ``[G, C]``, none for a game that was won.
    """

    scores: NDArray[np.float64]
    moves: NDArray[np.int64]
    illegal: NDArray[np.int64]
    reached: NDArray[np.bool_]
    lost: NDArray[np.bool_]
    seconds: float


@dataclass(frozen=True)
class Rate:
    """A share of games with its Wilson interval."""

    value: float
    ci95: tuple[float, float]


@dataclass(frozen=True)
class Evaluation:
    """An agent's result. ``to_json`` has the keys that ``puzzlegym evaluate --json`` prints.

    ``losses``: shares of all games, by cause. ``stuck``: no legal move was left. ``repeated``: the step limit came, and
    more than half of the moves had led to positions already seen in the game, up to the order of columns and of cells.
    ``step_limit``: it came otherwise. ``sampled``: were the agent's moves drawn by the chances that it gives them, or
    were they its most likely ones; None for an agent that does not have both. ``width``: of its beam search, if any.
    """

    env_id: str
    agent: str
    episodes: int
    seed: int
    score_mean: float
    score_ci95: tuple[float, float]
    score_median: float
    score_max: float
    rates: Mapping[str, Rate]
    moves_mean: float
    illegal_moves: int
    moves_per_second: float
    losses: Mapping[str, Rate] = field(default_factory=dict)
    start_rank: int = 0
    training: str = ""
    sampled: bool | None = None
    width: int | None = None
    played: Played | None = field(default=None, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Plain values for ``json.dumps``. ``losses`` are there only for a puzzle that has causes of them,
        ``start_rank`` where the games were not the full ones, ``training`` where there was any, ``width`` for a beam
        search, and ``sampled`` for an agent that has the choice.
        """
        score = {
            "mean": self.score_mean,
            "ci95": list(self.score_ci95),
            "median": self.score_median,
            "max": self.score_max,
        }
        extra = {name: value for name in ("start_rank", "training") if (value := getattr(self, name))}
        if self.sampled is not None:
            extra["sampled"] = self.sampled
        if self.width is not None:
            extra["width"] = self.width
        return {
            "env_id": self.env_id,
            "agent": self.agent,
            "episodes": self.episodes,
            "seed": self.seed,
            "score": score,
            "rates": _rates_to_json(self.rates),
            **({"losses": _rates_to_json(self.losses)} if self.losses else {}),
            "moves": {"mean": self.moves_mean},
            "illegal_moves": self.illegal_moves,
            "moves_per_second": self.moves_per_second,
            **extra,
        }


def _rates_to_json(rates: Mapping[str, Rate]) -> dict[str, Any]:
    return {name: {"value": rate.value, "ci95": list(rate.ci95)} for name, rate in rates.items()}


def games(env_id: str, episodes: int, seed: int = 0, *, stream: str = "test", start_rank: int = 0) -> Games:
    """``episodes`` games of a stream (``test``, or ``selection`` to choose among agents without seeing the test).

    FreeCell plays distinct numbered deals drawn by ``seed``, or with ``start_rank`` > 0 the shuffles of those numbers.
    Raises ValueError for an unknown id, a number of games or a seed that the stream does not have, and a
    ``start_rank`` outside 0..12 or for a puzzle without deals.
    """
    check_id(env_id)
    seeds = stream_seeds(stream, seed, episodes)
    deals = measures_of(env_id).deals
    if start_rank and not deals:
        raise ValueError(f"{env_id} has no start_rank: it is a difficulty of FreeCell-v0")
    if not 0 <= start_rank <= 12:
        raise ValueError(f"start_rank must be from 0 (all cards dealt) to 12 (only the kings), not {start_rank}")
    options = {"deal": stream_deals(stream, seed, episodes)} if deals else {}
    if start_rank:
        options["start_rank"] = np.full(episodes, start_rank)
    return Games(env_id, seeds, options)


def evaluate(
    env_id: str,
    policy: Policy,
    episodes: int,
    seed: int = 0,
    *,
    stream: str = "test",
    start_rank: int = 0,
    agent: str | None = None,
    num_envs: int = DEFAULT_BATCH,
    progress: Progress | None = None,
    elsewhere: Callable[[Games, Progress | None], Played] | None = None,
) -> Evaluation:
    """Play ``episodes`` whole games and summarise them; the result, its speed apart, does not depend on ``num_envs``.

    ``agent`` is the name to report (default: the policy's); ``elsewhere`` plays the games in place of this process, see
    ``play_spread``. Raises ValueError as ``games`` does.
    """
    chosen = games(env_id, episodes, seed, stream=stream, start_rank=start_rank)
    if elsewhere is not None:
        played = elsewhere(chosen, progress)
    else:
        played = play(policy, chosen, num_envs=num_envs, progress=progress)
    return replace(
        _summary(chosen, played, agent or policy.name, seed),
        start_rank=start_rank,
        training=getattr(policy, "training", ""),
        sampled=getattr(policy, "sample", None),
        width=getattr(policy, "width", None),
    )


def _rates(names: Iterable[str], events: NDArray[np.bool_]) -> dict[str, Rate]:
    """The share of games with each event (``[G, names]``)."""
    counts = events.sum(axis=0)
    return {name: Rate(*rate_interval(int(n), len(events))) for name, n in zip(names, counts, strict=True)}


def _summary(chosen: Games, played: Played, agent: str, seed: int) -> Evaluation:
    measures = measures_of(chosen.env_id)
    mean, interval = mean_interval(played.scores)
    return Evaluation(
        env_id=chosen.env_id,
        agent=agent,
        episodes=len(chosen),
        seed=seed,
        score_mean=mean,
        score_ci95=interval,
        score_median=float(np.median(played.scores)),
        score_max=float(played.scores.max()),
        rates=_rates(measures.rates, played.reached),
        moves_mean=float(played.moves.mean()),
        illegal_moves=int(played.illegal.sum()),
        moves_per_second=float(played.moves.sum() / played.seconds),
        losses=_rates(measures.causes, played.lost),
        played=played,
    )


def play(policy: Policy, chosen: Games, *, num_envs: int = DEFAULT_BATCH, progress: Progress | None = None) -> Played:
    """Play every game of ``chosen`` to its end, up to ``num_envs`` at a time, and return what happened.

    Raises ValueError for less than one environment, and where the policy answers with a wrong number of actions.
    """
    if num_envs < 1:
        raise ValueError(f"num_envs must be at least 1, not {num_envs}")
    table = _Table(chosen, min(num_envs, len(chosen)), needed_by(policy))
    try:
        table.warm_up(policy)
        return table.play(policy, progress)
    finally:
        table.close()


def play_spread(spread: Spread, agent: PortableAgent, chosen: Games, progress: Progress | None = None) -> Played:
    """Like ``play``, but the games are spread, and the seconds those of all players together: speed is that of one."""
    parts: list[tuple[list[int], Played]] = []
    done, moves, total = 0, 0, len(chosen)
    least = _OF_NETWORKS if hasattr(agent.player, "sample") else 1
    with closing(spread(_Playing(agent, chosen), range(total), total, least)) as found:
        for part in found:
            parts.append(part)
            done, moves = done + len(part[0]), moves + int(part[1].moves.sum())
            if progress is not None:
                progress(done, total, moves)
    return _together(parts)


@dataclass(frozen=True)
class _Playing:
    """Plays some of the games, by their numbers."""

    agent: PortableAgent
    chosen: Games

    def __call__(self, numbers: list[int]) -> Iterator[tuple[list[int], Played]]:
        yield numbers, play(self.agent.player, self.chosen.part(numbers))


def _together(parts: Sequence[tuple[list[int], Played]]) -> Played:
    """Parts of games as one, in the order of their numbers."""
    order = np.argsort(np.concatenate([numbers for numbers, _ in parts]))

    def joined(name: str) -> Any:
        values = [getattr(played, name) for _, played in parts]
        return sum(values) if name == "seconds" else np.concatenate(values)[order]

    return Played(**{one.name: joined(one.name) for one in fields(Played)})


class _Table:
    """The rows of a native batch and the games they are playing."""

    def __init__(self, chosen: Games, rows: int, wrappers: tuple[str, ...]) -> None:
        self.chosen = chosen
        self.measures = measures_of(chosen.env_id)
        batch = gymnasium.make_vec(chosen.env_id, num_envs=rows, autoreset_mode="Disabled")
        self.envs = wrap_batch(batch, wrappers)
        total = len(chosen)
        self.scores = np.zeros(total)
        self.moves = np.zeros(total, dtype=np.int64)
        self.illegal = np.zeros(total, dtype=np.int64)
        self.returns = np.zeros(total)
        self.reached = np.zeros((total, len(self.measures.rates)), dtype=np.bool_)
        self.lost = np.zeros((total, len(self.measures.causes)), dtype=np.bool_)
        self.trail = Trail(self.envs, self.measures.keys) if self.measures.keys else None
        # Every game has its own stream, drawn from by whatever row plays it.
        self.streams = Streams.seeded(chosen.seeds)

    def close(self) -> None:
        """Release the environments."""
        self.envs.close()

    def warm_up(self, policy: Policy) -> None:
        """One move that nobody counts, so that compiling is not taken for playing."""
        rows = self.envs.num_envs
        observations = self._seat(np.arange(rows), np.ones(rows, dtype=np.bool_))
        masks = np.asarray(self.envs.action_masks())
        policy.act(observations[:1], masks[:1], Streams.seeded([0]))
        self.envs.step(masks.argmax(axis=1))

    def play(self, policy: Policy, progress: Progress | None) -> Played:
        """Play on until no game is left."""
        total, rows = len(self.chosen), self.envs.num_envs
        game = np.arange(rows)  # which game a row plays
        live = np.ones(rows, dtype=np.bool_)  # a row without a further game plays its last one again, unobserved
        following, done = rows, 0
        started = time.perf_counter()
        observations = self._seat(game, live)
        while live.any():
            actions = self._choose(policy, observations, live, game)
            observations, rewards, terminated, truncated, infos = self.envs.step(actions)
            self._record(live, game[live], rewards, infos)
            ended = np.asarray(terminated | truncated)
            finished = np.flatnonzero(ended & live)
            self._finish(finished, game[finished], terminated, infos)
            done += len(finished)
            fresh = min(len(finished), total - following)
            game[finished[:fresh]] = np.arange(following, following + fresh)
            live[finished[fresh:]] = False
            following += fresh
            if ended.any() and live.any():
                observations = self._seat(game, ended)
            if progress is not None:
                progress(done, total, int(self.moves.sum()))
        seconds = max(time.perf_counter() - started, 1e-9)
        return Played(self.scores, self.moves, self.illegal, self.reached, self.lost, seconds)

    def _seat(self, game: NDArray[np.int64], mask: NDArray[np.bool_]) -> Observations:
        """Start the rows under ``mask`` on their games; the others go on. Returns all observations."""
        options = {name: values[game] for name, values in self.chosen.options.items()}
        seeds = [int(seed) for seed in self.chosen.seeds[game]]
        observations, _ = self.envs.reset(seed=seeds, options={**options, "reset_mask": mask})
        if self.trail:
            self.trail.note(mask)
        return cast(Observations, observations)

    def _choose(
        self, policy: Policy, observations: Observations, live: NDArray[np.bool_], game: NDArray[np.int64]
    ) -> Actions:
        """The policy's actions for live rows, any legal one for the rest (int64 ``[N]``)."""
        masks: Masks = np.asarray(self.envs.action_masks())
        actions: Actions = masks.argmax(axis=1).astype(np.int64)
        chosen = np.asarray(policy.act(observations[live], masks[live], self.streams.take(game[live])))
        if chosen.shape != (int(live.sum()),):
            raise ValueError(f"{policy.name} returned actions of shape {chosen.shape} for {int(live.sum())} games")
        actions[live] = chosen
        return actions

    def _record(
        self, live: NDArray[np.bool_], game: NDArray[np.int64], rewards: NDArray[np.float64], infos: Infos
    ) -> None:
        self.moves[game] += 1
        self.returns[game] += rewards[live]
        self.illegal[game] += ~np.asarray(infos["legal"])[live]
        if self.trail:
            self.trail.note(live)

    def _finish(
        self, rows: NDArray[np.int64], game: NDArray[np.int64], terminated: NDArray[np.bool_], infos: Infos
    ) -> None:
        key = self.measures.score
        self.scores[game] = self.returns[game] if key is None else np.asarray(infos[key])[rows]
        self.reached[game] = self.measures.reached(infos)[rows]
        if self.trail:
            self.lost[game] = self.trail.causes(rows, np.asarray(infos["is_success"])[rows], terminated[rows])
