"""Cold start: from the start of a Python process to the end of an environment's first step."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping

from .rounds import Case

UNIT = "s"
_DONE = "import sys; sys.stdout.write('x'); sys.stdout.flush()"
_BASE = "import gymnasium, numpy\n" + _DONE
_FIRST_STEP = """
import gymnasium, puzzlegym
env = gymnasium.make({env_id!r})
_, info = env.reset(seed=0)
env.step(int(info["action_mask"].argmax()))
"""


def seconds_until_done(code: str, environment: Mapping[str, str] | None = None) -> float:
    """From the start of ``python -c code`` to its first output; RuntimeError with its last words if there is none."""
    before = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **(environment or {})},
    )
    with process:
        assert process.stdout is not None
        said = process.stdout.read(1)
        seconds = time.perf_counter() - before
        _, errors = process.communicate()
    if not said:
        *_, last = errors.decode(errors="replace").strip().splitlines() or ["it printed nothing"]
        raise RuntimeError(f"a measured process failed: {last}")
    return seconds


def start_cases(env_id: str, _seconds: float) -> Iterator[Case]:
    """The imports that everybody needs, the first step with compiled rules on disk, and the very first on a machine."""
    first_step = _FIRST_STEP.format(env_id=env_id) + _DONE

    def compiling() -> float:
        with tempfile.TemporaryDirectory() as empty:
            return seconds_until_done(first_step, {"NUMBA_CACHE_DIR": empty})

    yield Case("start", env_id, "import gymnasium, numpy", UNIT, lambda: seconds_until_done(_BASE))
    yield Case("start", env_id, "first step", UNIT, lambda: seconds_until_done(first_step))
    yield Case("start", env_id, "first step ever: compiles", UNIT, compiling, rounds=1)
