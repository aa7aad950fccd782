"""Work spread over a Ray cluster, to be imported only when that is asked for: ``ray`` is imported with it.

A task does a portion of the work on one core, and is done again elsewhere when its process or its machine is lost: all
work is such that it comes out the same wherever and however often it is done. What it raises is raised here.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import IO, Any

import ray
from ray.exceptions import RayError, RayTaskError, WorkerCrashedError

from ..envs.common.threads import available
from .workers import Item, Result

# What Ray finds in its environment, if the user did not say otherwise: it shall neither write to the terminal nor tell
# its makers of its use.
_MANNERS = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_USAGE_STATS_ENABLED": "0",
}
_TASKS = 3  # under way for each core of the cluster: enough that none of them waits for this process
_SECONDS = 4.0  # that a task should take
_FIRST, _MOST = 4, 256  # items of the first tasks, and of any
_RETRIES = 5  # of a task whose process is lost; one that always is must come to an end
_LOOK = 1.0  # seconds between looks at the cluster
_ANSWER = 5.0  # seconds that the head of a cluster may take to answer
_PATIENCE = 10.0  # seconds that it may be away
_SYSTEM = (RayError, ConnectionError, RuntimeError, TimeoutError)  # what Ray raises if it cannot go on


class RayGoneError(ConnectionError):
    """There is no cluster at an address, or no more. The message is one line for the user."""


@contextmanager
def connected(address: str = "", cpus: int = 0) -> Iterator[str]:
    """Be connected to the cluster at ``address``; yields what it is called, and its cores.

    ``address``: ``auto``, ``HOST:PORT`` or ``ray://HOST:PORT``; without one that of ``RAY_ADDRESS``, or else a local
    Ray is started, which ends here, for at least ``cpus`` workers. A connection that this process has already is used
    and stays. Raises ValueError for what is no address, and RayGoneError where no cluster answers.
    """
    address = address or os.environ.get("RAY_ADDRESS", "")
    with ExitStack() as stack:
        if not ray.is_initialized():
            stack.enter_context(_joined(address) if address not in ("", "local") else _local(cpus))
        yield f"{address or 'local'}, {_cores()} CPUs"


@contextmanager
def _local(cpus: int) -> Iterator[None]:
    """A Ray of one's own. Its folder is not the usual one: that is where others look for a cluster to join."""
    place = "/tmp" if os.name == "posix" else None  # paths of sockets must be short
    with (
        tempfile.TemporaryDirectory(
            prefix=f"puzzlegym-{os.getpid()}-", dir=place, ignore_cleanup_errors=True
        ) as folder,
        _started("local", num_cpus=max(cpus, available()), include_dashboard=False, _temp_dir=folder),
    ):
        yield


@contextmanager
def _joined(address: str) -> Iterator[None]:
    """A connection to somebody's cluster."""
    if address != "auto":
        _knock(address)
    try:
        stack = ExitStack()
        stack.enter_context(_started(address))
    except (*_SYSTEM, ValueError, SystemExit) as error:
        hint = "" if "RAY_AUTH_MODE" in os.environ else " (one with tokens needs RAY_AUTH_MODE=token here, too)"
        raise RayGoneError(f"no Ray cluster at {address}: {error}{hint}") from None
    with stack:
        yield


def _knock(address: str) -> None:
    """Is there anybody? Ray itself would wait for two minutes, and then end the process."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"the address of a Ray cluster is auto, HOST:PORT or ray://HOST:PORT, not {address!r}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER).close()
    except OSError as error:
        raise RayGoneError(f"no Ray cluster at {address}: {error.strerror or error}") from None


@contextmanager
def _started(address: str, **options: Any) -> Iterator[None]:
    for name, value in _MANNERS.items():
        os.environ.setdefault(name, value)
    try:
        with _own_signals(), open(os.devnull, "wb") as nowhere, hushed(nowhere):
            ray._private.worker.print_to_stdstream = _Teller()
            ray.init(address, log_to_driver=False, logging_level=logging.CRITICAL, **options)
        yield
    finally:
        ray.shutdown()


@contextmanager
def hushed(file: IO[bytes]) -> Iterator[None]:
    """What goes to stderr goes into ``file``, whoever writes it: not all of Ray is written in Python."""
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


class _Teller:
    """Says on stderr what Ray would say of its troubles on stdout: each kind once, and of each the first sentence."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def __call__(self, data: Mapping[str, Any], ignore_prefix: bool) -> None:
        for line in data["lines"]:
            sentence = line.strip().partition(".")[0]
            kind = re.sub(r"\d+", "N", sentence)
            if kind and kind not in self._told and not kind.startswith(f"Task {_serve.__name__} failed"):  # it goes on
                self._told.add(kind)
                print(f"Ray: {sentence}", file=sys.stderr, flush=True)


@contextmanager
def _own_signals() -> Iterator[None]:
    """Ray answers SIGTERM in a way of its own."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def _cores() -> int:
    """Cores of the cluster just now."""
    return max(1, int(ray.cluster_resources().get("CPU", 0)))


def spread_on_ray(
    work: Callable[[list[Item]], Iterable[Result]], items: Iterable[Item], total: int, least: int = 1
) -> Generator[Result, None, None]:
    """All that ``work`` makes of ``total`` items, in the order in which it gets done, by the tasks of a cluster.

    ``work`` is sent to a process once and serves it for all of its portions of the items, of which a few are under way
    for each core, cores that join later included. What it raises is raised here; ChildProcessError if a process was
    killed again and again, RayGoneError if the cluster went away. Close the iterator to end the tasks.
    ``least``: so many items at once take hardly longer than one.
    """
    kept, rest, pace, cluster = ray.put(work), iter(items), _Pace(total, least), _Cluster()
    busy: dict[Any, int] = {}  # how many items each task has
    try:
        while True:
            cores = cluster.cores()
            while len(busy) < _TASKS * cores and (portion := list(islice(rest, pace.size(cores)))):
                busy[_task.remote([kept], portion)] = len(portion)
                pace.left -= len(portion)
            if not busy:
                return
            for done in ray.wait(list(busy), timeout=_LOOK)[0]:
                seconds, results = ray.get(done)
                pace.note(busy.pop(done), seconds)
                yield from results
    except RayGoneError:
        busy.clear()
        raise
    except RayTaskError as error:
        raise error.cause from None
    except WorkerCrashedError:
        raise ChildProcessError("a process was killed again and again: was there not enough memory?") from None
    except _SYSTEM as error:
        raise RayGoneError(f"the Ray cluster is gone: {error}") from None
    finally:
        with contextlib.suppress(*_SYSTEM):
            for task in busy:
                ray.cancel(task, force=True)


class _Cluster:
    """Looks at the cluster now and then: Ray itself waits for a minute where none is, and then ends the process."""

    def __init__(self) -> None:
        self._address = "" if ray.util.client.ray.is_connected() else ray.get_runtime_context().gcs_address
        self._cores = _cores()
        self._looked = self._heard = time.monotonic()

    def cores(self) -> int:
        """Cores of the cluster. Raises RayGoneError if its head has not been there for a while."""
        now = time.monotonic()
        if now - self._looked > _LOOK:
            self._looked = now
            if self._answers():
                self._heard, self._cores = now, _cores()
            elif now - self._heard > _PATIENCE:
                raise RayGoneError(f"the Ray cluster is gone: nothing answers at {self._address}")
        return self._cores

    def _answers(self) -> bool:
        host, _, port = self._address.rpartition(":")
        try:
            if host:  # else a client, which notices by itself
                socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER).close()
        except OSError:
            return False
        return True


class _Pace:
    """How many items to put into a task: few at first, then by what they took, and few again for the last ones.

    Items that are done faster together begin with many.
    """

    def __init__(self, total: int, least: int) -> None:
        self.left, self._least, self._most = total, least, _FIRST if least == 1 else _MOST

    def size(self, cores: int) -> int:
        """For the next task of a cluster with so many cores."""
        return max(self._least, min(self._most, -(-self.left // (2 * cores))))

    def note(self, items: int, seconds: float) -> None:
        """So many items took one task so long."""
        fitting = int(items * _SECONDS / max(seconds, 1e-9))
        self._most = max(self._least, min(fitting, 4 * self._most, _MOST))


_serving: dict[str, Callable[..., Iterable[Any]]] = {}  # in a process of the cluster: the work that it does


def _serve(kept: list[Any], portion: list[Any]) -> tuple[float, list[Any]]:
    """Do a portion of the work that ``kept`` tells the place of; the seconds that it took, and its results."""
    name = kept[0].hex()
    if name not in _serving:
        _serving.clear()
        _serving[name] = ray.get(kept[0])
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    began = time.perf_counter()
    results = list(_serving[name](portion))
    return time.perf_counter() - began, results


_task = ray.remote(num_cpus=1, max_retries=_RETRIES)(_serve)
