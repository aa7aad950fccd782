"""Plays 2048 as another project implements it, for ``puzzlegym bench --peers``; runs in that project's environment.

``PEER_PYTHON peer_worker.py NAME`` needs NAME's package alone. It prints JSON lines: first what it can measure,
``{"peer": ..., "version": ..., "cases": {case: what one step includes}}``, then for each request on stdin, such as
``{"case": "vector", "size": 1024, "seconds": 0.2}``, ``{"steps_per_second": x}``. Whatever goes wrong is one line
``{"error": ...}``. Games live on between requests. Making and warming them up (which compiles them) and the choice of
uniformly random legal actions are outside the clock.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.metadata import version
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

_GYMNASIUM_ID = "gymnasium_2048/TwentyFortyEight-v0"
_WARM_UP = 3  # calls before the first measurement
_ROLLOUT = 100  # steps of each game in one call of the case "scan"


class Games(ABC):
    """Games in progress; one call of ``step`` makes ``size`` game steps."""

    size = 1

    @abstractmethod
    def choose(self) -> None:
        """Choose the next legal actions, and reset what the peer does not reset: outside the clock."""

    @abstractmethod
    def step(self) -> None:
        """The measured call."""


@dataclass(frozen=True)
class Case:
    """One thing to measure: what its step includes, how to make games of a size, and whether that may be above 1."""

    includes: str
    make: Callable[[int], Games]
    batch: bool = True


def gymnasium_2048() -> dict[str, Case]:
    """A Gymnasium environment in Python and numpy. It has no mask, but its ``apply_action`` tells what is legal."""
    import_module("gymnasium_2048")
    told = "observation, reward, done flags, infos"
    masked = f"gymnasium.make: {told}, mask by four calls of its apply_action; resets not counted"
    return {
        "single": Case(f"gymnasium.make: {told}, no mask; resets not counted", _GymnasiumSingle, batch=False),
        "single_with_mask": Case(masked, lambda _: _GymnasiumSingle(mask=True), batch=False),
        "vector": Case(f"gymnasium's SyncVectorEnv, SameStep autoreset: {told}, no mask", _GymnasiumVector),
    }


class _GymnasiumVector(Games):
    def __init__(self, size: int) -> None:
        self.size, self.rng = size, random.Random(0)
        same_step = {"vectorization_mode": "sync", "vector_kwargs": {"autoreset_mode": "SameStep"}}
        self.envs = import_module("gymnasium").make_vec(_GYMNASIUM_ID, size, **same_step)
        self.envs.reset(seed=0)
        self.games = [env.unwrapped for env in self.envs.envs]

    def choose(self) -> None:
        self.actions = [self.legal_action(game) for game in self.games]

    def legal_action(self, game: Any) -> int:
        """The first legal one of the actions in random order."""
        return next(a for a in self.rng.sample(range(4), 4) if game.apply_action(game.board, a)[2])

    def step(self) -> None:
        self.told = self.envs.step(self.actions)


class _GymnasiumSingle(_GymnasiumVector):
    def __init__(self, _: int = 1, mask: bool = False) -> None:
        self.rng, self.over, self.masked = random.Random(0), True, mask
        self.env = import_module("gymnasium").make(_GYMNASIUM_ID)
        self.game = self.env.unwrapped

    def choose(self) -> None:
        if self.over:
            self.env.reset()
        self.action = self.legal_action(self.game)

    def step(self) -> None:
        *self.told, terminated, truncated, self.info = self.env.step(self.action)
        self.over = terminated or truncated
        if self.masked:
            self.mask = [self.game.apply_action(self.info["board"], action)[2] for action in range(4)]


def open_spiel() -> dict[str, Case]:
    """States in C++ with Python bindings. Their legal actions lack merges with a tile that the last move merged."""
    game = import_module("pyspiel").load_game("2048", {"max_tile": 1 << 17})  # the default ends games at 2048
    told = "observation tensor, rewards, end of game, legal actions"
    single = f"pyspiel state: apply_action, tile sampled from chance_outcomes, {told}; new games not counted"
    return {
        "single": Case(single, lambda _: _OpenSpielSingle(game), batch=False),
        "vector": Case(f"its Python vector_env with reset_if_done: {told}", lambda size: _OpenSpielVector(game, size)),
    }


class _OpenSpielSingle(Games):
    def __init__(self, game: Any) -> None:
        self.game, self.rng, self.over = game, random.Random(0), True

    def choose(self) -> None:
        if self.over:
            self.state = self.game.new_initial_state()
            self.place_tiles()
            self.legal = self.state.legal_actions()
        self.action = self.rng.choice(self.legal)

    def place_tiles(self) -> None:
        while self.state.is_chance_node():
            tiles, chances = zip(*self.state.chance_outcomes())  # noqa: B905 (it would cost time)
            self.state.apply_action(self.rng.choices(tiles, chances)[0])

    def step(self) -> None:
        self.state.apply_action(self.action)
        self.place_tiles()
        self.told = self.state.observation_tensor(0), self.state.rewards()
        self.over, self.legal = self.state.is_terminal(), self.state.legal_actions()


class _OpenSpielVector(Games):
    def __init__(self, game: Any, size: int) -> None:
        self.size, self.rng = size, random.Random(0)
        environment = import_module("open_spiel.python.rl_environment").Environment
        batch = import_module("open_spiel.python.vector_env").SyncVectorEnv
        self.envs = batch([environment(game) for _ in range(size)])
        self.steps = self.envs.reset()

    def choose(self) -> None:
        legal = (step.observations["legal_actions"][0] for step in self.steps)
        self.actions = [SimpleNamespace(action=self.rng.choice(actions)) for actions in legal]

    def step(self) -> None:
        self.steps, *self.told = self.envs.step(self.actions, reset_if_done=True)


@dataclass(frozen=True)
class _JaxRules:
    """Pure functions of one game; its state holds observation and mask."""

    reset: Callable[[Any], Any]  # key -> state
    step: Callable[[Any, Any, Any], Any]  # state, action, key -> what the project returns, after its automatic reset
    mask: Callable[[Any], Any]  # state -> which actions are legal
    told: Callable[[Any], tuple[Any, Any, Any]]  # what the project returns -> state, reward, done flag

    def cases(self, autoreset: str) -> dict[str, Case]:
        told = f"{autoreset}: observation, reward, done flag, mask"
        ready = f"{told}; block_until_ready; random keys not counted"
        scan = f"jit(lax.scan) of {_ROLLOUT} steps, choice of actions included, {told}; keeps the last observation only"
        return {
            "single": Case(f"jit(step), {ready}", lambda _: _JaxSteps(self, None), batch=False),
            "vector": Case(f"jit(vmap(step)), {ready}", lambda size: _JaxSteps(self, size)),
            "scan": Case(scan, lambda size: _JaxRollouts(self, size)),
        }


def jumanji() -> dict[str, Case]:
    """An environment in JAX whose state has a random key of its own."""
    env = import_module("jumanji.wrappers").AutoResetWrapper(import_module("jumanji").make("Game2048-v1"))
    return _JaxRules(
        reset=lambda key: env.reset(key)[0],
        step=lambda state, action, _: env.step(state, action),
        mask=attrgetter("action_mask"),
        told=lambda out: (out[0], out[1].reward, out[1].last()),
    ).cases("AutoResetWrapper")


def pgx() -> dict[str, Case]:
    """An environment in JAX whose state is all there is."""
    env = import_module("pgx").make("2048")
    return _JaxRules(
        reset=env.init,
        step=import_module("pgx.experimental.wrappers").auto_reset(env.step, env.init),
        mask=attrgetter("legal_action_mask"),
        told=lambda state: (state, state.rewards, state.terminated),
    ).cases("auto_reset")


class _JaxSteps(Games):
    """Step by step: a batch of games, or without ``batch`` one game without a batch axis."""

    def __init__(self, rules: _JaxRules, batch: int | None) -> None:
        self.size, self.rules, self.jax = batch or 1, rules, import_module("jax")
        self.shape = (batch,) if batch else ()  # of the keys for the games
        self.one_step: Any = self.jax.vmap(rules.step) if batch else rules.step
        reset = self.jax.vmap(rules.reset) if batch else rules.reset
        self.key = self.jax.random.PRNGKey(0)
        self.state = self.jax.jit(reset)(self.jax.random.split(self.key, self.shape))
        self.draw, self.run = map(self.jax.jit, (self.random_actions, self.one_step))

    def random_actions(self, state: Any, key: Any) -> tuple[Any, Any, Any]:
        """The next key, legal actions, and keys for the step."""
        key, choice, chance = self.jax.random.split(key, 3)
        actions = self.jax.random.categorical(choice, self.jax.numpy.log(self.rules.mask(state)))
        return key, actions, self.jax.random.split(chance, self.shape)

    def choose(self) -> None:
        self.key, self.actions, self.chances = self.jax.block_until_ready(self.draw(self.state, self.key))

    def step(self) -> None:
        out = self.jax.block_until_ready(self.run(self.state, self.actions, self.chances))
        self.state = self.rules.told(out)[0]


class _JaxRollouts(_JaxSteps):
    """Many steps of a batch in one call, the choice of actions included. Keeps all but the earlier observations."""

    def __init__(self, rules: _JaxRules, batch: int) -> None:
        super().__init__(rules, batch)
        self.size *= _ROLLOUT
        self.run = self.jax.jit(lambda *start: self.jax.lax.scan(self.random_step, start, length=_ROLLOUT))

    def random_step(self, carry: tuple[Any, Any], _: None) -> Any:
        key, actions, chances = self.random_actions(*carry)
        state, *told = self.rules.told(self.one_step(carry[0], actions, chances))
        return (state, key), (self.rules.mask(state), *told)

    def choose(self) -> None:
        pass

    def step(self) -> None:
        (self.state, self.key), self.told = self.jax.block_until_ready(self.run(self.state, self.key))


Peer = Callable[[], dict[str, Case]]  # imports a project and says what can be measured
PEERS: dict[str, Peer] = {"gymnasium-2048": gymnasium_2048, "jumanji": jumanji, "open-spiel": open_spiel, "pgx": pgx}


def make(cases: dict[str, Case], name: str, size: int) -> Games:
    """Warm games for a case."""
    if name not in cases or size < 1 or (size > 1 and not cases[name].batch):
        raise ValueError(f"no case {name!r} with {size} games; there are {', '.join(cases)}")
    games = cases[name].make(size)
    for _ in range(_WARM_UP):
        games.choose()
        games.step()
    return games


def measure(games: Games, seconds: float) -> float:
    """Game steps per second, of at least so many seconds of stepping."""
    spent, calls = 0.0, 0
    while spent < seconds or not calls:
        games.choose()
        before = time.perf_counter()
        games.step()
        spent, calls = spent + time.perf_counter() - before, calls + 1
    return calls * games.size / spent


def serve(name: str, requests: Iterable[str], say: Callable[[dict[str, Any]], None]) -> None:
    """Introduce the peer, then answer the requests."""
    if name not in PEERS:
        return say({"error": f"no peer {name!r}; there are {', '.join(PEERS)}"})
    try:
        cases = PEERS[name]()
    except Exception as error:
        return say(_failure(error))
    say({"peer": name, "version": version(name), "cases": {key: case.includes for key, case in cases.items()}})
    warm = cache(partial(make, cases))
    for line in requests:
        try:
            request = json.loads(line)
            games = warm(str(request["case"]), int(request["size"]))
            say({"steps_per_second": measure(games, float(request["seconds"]))})
        except Exception as error:
            say(_failure(error))


def _failure(error: Exception) -> dict[str, Any]:
    return {"error": " ".join(f"{type(error).__name__}: {error}".split())}


def main() -> None:
    """Speak the protocol. Whatever else is printed on stdout, by C code too, goes to stderr."""
    with os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8") as protocol:
        os.dup2(2, 1)
        serve(" ".join(sys.argv[1:]), sys.stdin, lambda answer: print(json.dumps(answer), file=protocol))


if __name__ == "__main__":
    main()
