"""The last line of an example script: the trained player and random on the same games."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from puzzlegym.scripts import examples

FOLDER = Path(examples.__file__).parent
_LAST = re.compile(r"(mean score|cards home) (?P<trained>[\d,.]+), random (?P<random>[\d,.]+), on the same 100 games")

# Runs a script by its path, but the first illegal move of whatever environment ends it.
_STRICT = """
import runpy, sys
import numpy as np
from puzzlegym.envs.base.batch import Batch
from puzzlegym.envs.common.rows import LEGAL

def strict(method, refuse):
    def step(self, *arguments, **keywords):
        answer = method(self, *arguments, **keywords)
        refuse(self, *arguments, **keywords)
        return answer
    return step

def one(self, action, out):
    assert out.flags[LEGAL].all(), f"illegal move {action}"

def many(self, actions, out, limit=0, pending=None):
    played = slice(None) if pending is None else ~pending
    assert out.flags[LEGAL][played].all(), "illegal move"

Batch.step_one, Batch.step = strict(Batch.step_one, one), strict(Batch.step, many)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run_example(name: str, steps: int, folder: Path) -> tuple[float, float]:
    """Means of the trained player and of random, of an example that made no illegal move, said nothing on stderr and
    left nothing behind in ``folder``, where it ran.
    """
    call = [sys.executable, "-c", _STRICT, str(FOLDER / name), str(steps)]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}  # the same run on every machine of a kind
    done = subprocess.run(call, capture_output=True, text=True, cwd=folder, env=one_thread, timeout=280, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(folder.iterdir()) == [], "an example leaves nothing behind"
    told = _LAST.fullmatch(done.stdout.splitlines()[-1])
    assert told is not None, done.stdout
    trained, random = (float(told[who].replace(",", "")) for who in ("trained", "random"))
    return trained, random
