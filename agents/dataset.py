"""Whole games as a Minari dataset, which offline learning reads (https://minari.farama.org)."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import gymnasium
import h5py  # noqa: F401  # Minari's files; if it is missing, this line says so in the same way as for other extras
import minari
import numpy as np
from minari.data_collector import EpisodeBuffer
from numpy.typing import NDArray

from .. import __version__
from ..envs.common.files import beside
from ..envs.common.rng import Streams
from ..envs.freecell import deal_board
from .evaluation import Games
from .portable import PortableAgent
from .solver import SOLVED, UNWINNABLE, Solver
from .wrapping import needed_by, wrap_single

Choose = Callable[[NDArray[np.uint8], NDArray[np.bool_]], int]
"""From an observation and the mask of legal actions (bool) to an action."""

_ENDS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_AT_ONCE = 32  # episodes: opening the file takes longer than writing one
_DATASETS = "MINARI_DATASETS_PATH"
# What Minari warns about; there is nobody to name.
_UNKNOWN = "`(author_email|code_permalink)` is set to None"


def play_episode(
    env: gymnasium.Env[Any, Any], choose: Choose, seed: int, options: Mapping[str, Any] | None = None
) -> EpisodeBuffer:
    """Play one game to its end; the buffer holds all that the environment told.

    ``seed`` and ``options`` are those of the reset, and are kept, too. Observations and infos are one more than the
    actions: row ``t`` of ``infos["action_mask"]`` is the mask that action ``t`` was chosen by.
    """
    observation, info = env.reset(seed=seed, options=dict(options) if options else None)
    observations, infos, steps = [observation], [info], []
    over = False
    while not over:
        action = choose(observation, np.asarray(info["action_mask"], dtype=np.bool_))
        observation, reward, terminated, truncated, info = env.step(action)
        over = terminated or truncated
        observations.append(observation)
        infos.append(info)
        steps.append((action, reward, terminated, truncated))
    actions, rewards, terminations, truncations = map(np.array, zip(*steps, strict=True))
    return EpisodeBuffer(
        seed=seed,
        options=dict(options) if options else None,
        observations=np.stack(observations),
        actions=actions,
        rewards=rewards,
        terminations=terminations,
        truncations=truncations,
        infos={name: np.stack([info[name] for info in infos]) for name in infos[0]},
    )


class Solving:
    """Plays FreeCell as the solver finds: how to play a game, or in a few words why it is left out."""

    wrappers: tuple[str, ...] = ()

    def __init__(self, seconds: float, short: bool) -> None:
        """Limits of the solver."""
        self._solver = Solver(seconds, short=short)
        self._solver.solve(deal_board(1))  # the first use on a machine compiles, and a bar would stand still

    def begin(self, seed: int, deal: int) -> Choose | str:
        """How to play this deal."""
        solution = self._solver.solve(deal_board(deal))
        if solution.result != SOLVED:
            proved = solution.result == UNWINNABLE
            return "proved unwinnable" if proved else f"undecided at the limit of {solution.limit}"
        line = iter(solution.actions)
        return lambda _observation, _mask: next(line)


class Playing:
    """Plays as an agent does, each game with chance of its own."""

    def __init__(self, agent: PortableAgent) -> None:
        """Raises as ``policy.load`` does."""
        self._policy = agent.player
        self.wrappers = needed_by(self._policy)

    def begin(self, seed: int, deal: int) -> Choose | str:
        """How to play this game."""
        streams = Streams.seeded([seed])
        return lambda board, mask: int(self._policy.act(board[None], mask[None], streams)[0])


@dataclass
class Recorder:
    """Plays games, by their numbers, into buffers. ``player``: ``Solving`` or ``Playing`` with their arguments."""

    chosen: Games
    player: Callable[[], Solving | Playing]

    @cached_property
    def seated(self) -> tuple[Solving | Playing, gymnasium.Env[Any, Any]]:
        """The player, and the environment that it plays in; made where they are used first."""
        player = self.player()
        return player, wrap_single(gymnasium.make(self.chosen.env_id, disable_env_checker=True), player.wrappers)

    def __call__(self, numbers: Iterable[int]) -> Generator[tuple[int, EpisodeBuffer | str], None, None]:
        """Each game's number with its buffer, or why it is left out."""
        player, env = self.seated
        for number in numbers:
            seed, setting = int(self.chosen.seeds[number]), self.setting(number)
            choose = player.begin(seed, setting.get("deal", 0))
            yield number, choose if isinstance(choose, str) else play_episode(env, choose, seed, setting)

    def setting(self, number: int) -> dict[str, int]:
        """The reset options of a game."""
        return {name: int(values[number]) for name, values in self.chosen.options.items()}

    def __getstate__(self) -> dict[str, Any]:
        """Without player and environment."""
        return {"chosen": self.chosen, "player": self.player}


class Writer:
    """Appends episodes to a new dataset."""

    def __init__(self, dataset: minari.MinariDataset) -> None:
        """``dataset``: an empty one."""
        self._dataset = dataset
        self._waiting: list[EpisodeBuffer] = []
        self.episodes = self.steps = 0

    def add(self, episode: EpisodeBuffer) -> None:
        """Append an episode, on the disk some time before the end."""
        self.episodes += 1
        self.steps += len(episode)
        self._waiting.append(episode)
        if len(self._waiting) >= _AT_ONCE:
            self.flush()

    def note(self, **facts: Any) -> None:
        """Put facts of your own into the dataset's metadata."""
        self._dataset.storage.update_metadata(facts)

    def flush(self) -> None:
        """Write what waits."""
        with _undisturbed():
            self._dataset.update_dataset_from_buffer(self._waiting)
        self._waiting = []


@contextlib.contextmanager
def new_dataset(out: Path, env: gymnasium.Env[Any, Any], algorithm: str, description: str) -> Iterator[Writer]:
    """A new dataset that becomes the folder ``out`` at the end; on any error nothing is left of it.

    ``minari.MinariDataset(out / "data")`` reads it. Raises ValueError if ``out`` exists, and at the end if there is no
    episode.
    """
    out = out.absolute()
    if os.path.lexists(out):
        raise ValueError(f"{out} already exists: choose a new folder")
    out.parent.mkdir(parents=True, exist_ok=True)
    root, name = beside(out), dataset_id(out)
    try:
        writer = Writer(_create(root, name, env, algorithm, description))
        yield writer
        writer.flush()
        if not writer.episodes:
            raise ValueError("there is no episode, so no dataset was written")
        _move(root / name, out)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _create(root: Path, name: str, env: gymnasium.Env[Any, Any], algorithm: str, description: str) -> Any:
    """An empty dataset at ``root / name``."""
    with _undisturbed(), _datasets_at(root), warnings.catch_warnings():
        warnings.filterwarnings("ignore", _UNKNOWN, UserWarning)
        return minari.create_dataset_from_buffers(
            name,
            [],
            env=env,
            eval_env=env,
            algorithm_name=algorithm,
            author="puzzlegym",
            description=description,
            requirements=[f"puzzlegym>={__version__}"],
        )


def dataset_id(out: Path) -> str:
    """The id of a dataset in this folder: its path in Minari's own folder if it is there, else its name.

    Minari wants letters, digits, ``-`` and ``_``, and a version at the end.
    """
    root = _minari_folder()
    parts = out.relative_to(root).parts if root in out.parents else (out.name,)
    name = "/".join(re.sub(r"[^-\w]", "-", part) for part in parts)
    return name if re.search(r"-v\d+$", name) else f"{name}-v0"


def loading(out: Path) -> list[str]:
    """Two lines of Python that load the dataset in this folder, from wherever they are run."""
    out = out.absolute()
    return ["import minari", f"dataset = minari.MinariDataset({str(out / 'data')!r})"]


def _minari_folder() -> Path:
    """Where Minari looks for datasets."""
    return Path(os.environ.get(_DATASETS) or Path.home() / ".minari" / "datasets").absolute()


@contextlib.contextmanager
def _datasets_at(root: Path) -> Iterator[None]:
    """Let Minari make datasets there: it takes no other word for it."""
    before = os.environ.get(_DATASETS)
    os.environ[_DATASETS] = str(root)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_DATASETS]
        else:
            os.environ[_DATASETS] = before


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold signals back that end the program: what they raise is lost where h5py clears up weak references."""
    if threading.current_thread() is not threading.main_thread():  # it gets no signals
        yield
        return
    came: list[int] = []
    before = {number: signal.signal(number, lambda number, _frame: came.append(number)) for number in _ENDS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for number in came:
            signal.raise_signal(number)


def _move(folder: Path, out: Path) -> None:
    """Move a finished folder to ``out`` in one step, its content on the disk first."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb+") as file:
                os.fsync(file.fileno())
    folder.rename(out)
