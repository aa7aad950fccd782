"""What the compiler makes of the rules: no reference is counted and nothing is allocated.

Either takes longer than a move, most of all if several threads do it at once. Atomic instructions are for
``share_rows`` alone, which shares out the rows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from puzzlegym.envs.registry import PUZZLES

# Compiles every kernel of the rules anew (LLVM code of those from the disk cache cannot be read) and writes the code of
# each signature into one file, as JSON: {puzzle: {kernel: [code]}}.
SCRIPT = """
import dataclasses, importlib, json, sys
import gymnasium, numpy, puzzlegym
from puzzlegym import wrappers

def compile_all(puzzle_id):
    "Call what is called from Python; the other kernels are called by it."
    kind = type(gymnasium.make_vec(puzzle_id, num_envs=1))
    kind.puzzle = dataclasses.replace(kind.puzzle, rows_per_thread=1)
    for num_threads in (1, 2):
        venv = gymnasium.make_vec(puzzle_id, num_envs=2, num_threads=num_threads)
        venv.reset(seed=0)
        venv.step(numpy.zeros(2, dtype=int))
    batch, out = venv._batch, venv._out
    given = {"actions": numpy.zeros(2, dtype=int), "mask": out.mask, "obs": out.obs}
    for phase in venv.puzzle.phases.values():
        phase.kernel(batch.rows, batch.config, given[phase.about])

def compile_others():
    "Kernels of single puzzles."
    env = wrappers.ShapedReward2048(gymnasium.make("Puzzle2048-v0"))
    env.reset(seed=0)
    env.step(0)
    env = wrappers.NoRepeat(gymnasium.make("FreeCell-v0"))
    env.reset(seed=0)
    env._history._grow()

for spec in puzzlegym.PUZZLES.values():
    compile_all(spec.id)
compile_others()

codes = {}
for spec in puzzlegym.PUZZLES.values():
    kernels = vars(importlib.import_module(spec.module + ".rules")).items()
    codes[spec.id] = {name: list(k.inspect_llvm().values()) for name, k in kernels if hasattr(k, "inspect_llvm")}
with open(sys.argv[1], "w") as file:
    json.dump(codes, file)
"""


def functions(code):
    """(mangled name, lines) of each function that is defined in LLVM code."""
    name, lines = "", []
    for line in code.splitlines():
        if line.startswith("define "):
            name, lines = line.partition("@")[2].partition("(")[0].strip('"'), []
        elif line == "}":
            yield name, lines
            name = ""
        elif name:
            lines.append(line)


def is_rule(name):
    """Is this a kernel, and not what unpacks the arguments of a call from Python?"""
    return "rules" in name and "cpython" not in name and "cfunc" not in name


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """{puzzle: {kernel: [LLVM code, one for each signature]}}."""
    folder = tmp_path_factory.mktemp("kernels")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "NUMBA_DISABLE_JIT": "0"}
    command = [sys.executable, "-c", SCRIPT, str(folder / "code.json")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "code.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("puzzle_id", PUZZLES)
@pytest.mark.parametrize("loop", ["advance_rows", "share_rows"])
def test_the_row_loops_count_no_references(puzzle_id, loop, compiled):
    (code,) = compiled[puzzle_id][loop]  # one signature: all batches call the same code
    loops = [lines for name, lines in functions(code) if is_rule(name) and f"{len(loop)}{loop}B" in name]
    assert [len(lines) > 10 for lines in loops] == [True]
    assert not [line for line in loops[0] if "NRT_" in line]


@pytest.mark.parametrize("puzzle_id", PUZZLES)
def test_no_kernel_counts_references_or_allocates(puzzle_id, compiled):
    kernels = compiled[puzzle_id]
    missing = [name for name, codes in kernels.items() if not codes]
    assert not missing, f"the script of this test does not compile {missing}: let it call them"
    codes = [code for of_kernel in kernels.values() for code in of_kernel]
    rules = [(name, lines) for code in codes for name, lines in functions(code) if is_rule(name)]
    names = {name for name, _ in rules}
    assert not [kernel for kernel in kernels if not any(f"{len(kernel)}{kernel}B" in name for name in names)]
    lines = {(name, line) for name, lines in rules for line in lines}
    words = ("NRT_", "@malloc", "@calloc", "@PyMem", "@PyObject")
    assert not [found for found in lines if any(word in found[1] for word in words)]
    atomic = {name for name, line in lines if "atomicrmw" in line or "cmpxchg" in line}
    assert all("10share_rowsB" in name for name in atomic)
