"""The same work on other projects' 2048, each in its own interpreter, and the ratio to ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .rounds import Case, Result
from .stepping import RATE, Batch, Single

PEERS = {"gymnasium-2048": "gymnasium_2048", "jumanji": "jumanji", "open-spiel": "pyspiel", "pgx": "pgx"}  # imports
ENV_ID, OURS = "Puzzle2048-v0", "puzzlegym"
_WORKER = Path(__file__).with_name("peer_worker.py")
_SMALL, _LARGE = 1024, 8192
_PROBE = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"


class Peer:
    """A process that measures one peer on demand, on one core."""

    def __init__(self, name: str, python: str) -> None:
        """Start it. RuntimeError, in one line, if the peer cannot be used."""
        self.name = name
        # -I: the folder of the worker must not be searched for modules.
        self.process = subprocess.Popen(
            [python, "-I", str(_WORKER), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            preexec_fn=_one_core if hasattr(os, "sched_setaffinity") else None,
            text=True,
        )
        hello = self._read()
        self.version, self.cases = str(hello["version"]), dict(hello["cases"])

    def ask(self, case: str, size: int, seconds: float) -> float:
        """Steps per second."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"case": case, "size": size, "seconds": seconds}) + "\n")
        self.process.stdin.flush()
        return float(self._read()["steps_per_second"])

    def close(self) -> None:
        """End the process."""
        with self.process:
            assert self.process.stdin is not None
            self.process.stdin.close()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": "it ended"}
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return dict(answer)


def _one_core() -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def find(interpreters: Sequence[Path]) -> dict[str, str]:
    """Which peers are installed: name -> interpreter, this one's first. ValueError if there is none."""
    pythons = [sys.executable, *map(str, interpreters)]
    for python in pythons:
        if not os.access(python, os.X_OK):
            raise ValueError(f"--peer-python: {python} is no Python interpreter")
    found = {
        name: python
        for name, module in PEERS.items()
        for python in reversed(pythons)
        if subprocess.run([python, "-I", "-c", _PROBE, module], capture_output=True).returncode == 0
    }
    if not found:
        raise ValueError(
            f"no peer is installed: pip install {' or '.join(PEERS)}, here or where --peer-python says (make peers)"
        )
    return found


def peer_cases(found: Mapping[str, str], seconds: float, stack: ExitStack) -> Iterator[Case]:
    """Our own figures and theirs, for one game, batches, and a compiled rollout where there is one.

    ``found``: as ``find`` gives it; the processes end with ``stack``.
    """
    single, small, large = Single(ENV_ID), Batch(ENV_ID, _SMALL, 1), Batch(ENV_ID, _LARGE, 1)
    yield Case("peers", ENV_ID, f"{OURS}: single", RATE, lambda: single.measure(seconds))
    for batch in (small, large):
        yield Case("peers", ENV_ID, f"{OURS}: vector {batch.size:,}", RATE, lambda b=batch: b.measure(seconds))  # type: ignore[misc]
    for name, python in found.items():
        peer = Peer(name, python)
        stack.callback(peer.close)
        for kind, size in _kinds(peer):
            label = f"{name} {peer.version}: {kind}" + (f" {size:,}" if size > 1 else "")
            yield Case("peers", ENV_ID, label, RATE, lambda p=peer, k=kind, n=size: p.ask(k, n, seconds))  # type: ignore[misc]


def _kinds(peer: Peer) -> Iterator[tuple[str, int]]:
    compiled = "scan" in peer.cases
    for kind in peer.cases:
        if kind.startswith("single"):
            yield kind, 1
        elif kind == "vector":
            yield from [(kind, _SMALL), (kind, _LARGE)][: 2 if compiled else 1]  # 8,192 Python objects tell no more
        else:
            yield kind, _LARGE


@dataclass(frozen=True)
class Ratio:
    """How many times as fast ours is."""

    name: str
    rate: float
    ours: float

    @property
    def times(self) -> float:
        """Ours / theirs."""
        return self.ours / self.rate


def ratios(results: Sequence[Result]) -> list[Ratio]:
    """Each peer's figure beside ours of the same size (a compiled rollout beside our stepping)."""
    rates = {result.case.name: result.median for result in results if result.case.section == "peers"}
    ours = {name.partition(": ")[2]: rate for name, rate in rates.items() if name.startswith(f"{OURS}:")}
    return [
        Ratio(name, rate, ours[_our_form(name.partition(": ")[2])])
        for name, rate in rates.items()
        if not name.startswith(f"{OURS}:")
    ]


def _our_form(form: str) -> str:
    kind, _, size = form.partition(" ")
    return f"vector {size}" if size else "single" if kind.startswith("single") else "vector"
