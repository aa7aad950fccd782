"""What is installed, and that compiled code on disk never outlives its sources."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("envs", "wrappers", "agents", "scripts")


def tree():
    """The packages that the folders hold."""
    folders = [ROOT, *(path.parent for folder in FOLDERS for path in (ROOT / folder).rglob("__init__.py"))]
    return {".".join(("puzzlegym", *folder.relative_to(ROOT).parts)) for folder in folders}


def declared():
    """The list in ``pyproject.toml`` (read as text: the oldest Python here has no TOML reader)."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return ast.literal_eval(re.search(r"^packages = (\[.*?^\])", text, re.MULTILINE | re.DOTALL)[1])


def copy_sources(to):
    """The files that a build reads, elsewhere."""
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, to / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("__init__.py", "py.typed", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, to / name)


def test_declared_packages_are_the_tree():
    assert len(declared()) == len(set(declared()))
    assert set(declared()) == tree()


def test_folders_with_code_are_packages():
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            assert (path.parent / "__init__.py").exists(), path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The built wheel."""
    source, to = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    copy_sources(source)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(to), "."]
    result = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    (path,) = to.glob("*.whl")
    return path


def test_wheel_holds_every_module_and_no_test(wheel):
    names = [name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name]
    sources = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    modules = {f"puzzlegym/{path.relative_to(ROOT).as_posix()}" for path in sources}
    weights = {f"puzzlegym/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "agents" / "weights").iterdir()}
    assert set(names) == modules | weights | {"puzzlegym/__init__.py", "puzzlegym/py.typed"}
    assert sum(path.stat().st_size for path in (ROOT / "agents" / "weights").iterdir()) < 12_000_000


def test_wheel_metadata(wheel):
    files = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
    fields = Parser().parsestr(files.read(metadata).decode())
    core = [re.match(r"[a-z0-9-]+", text)[0] for text in fields.get_all("Requires-Dist") if "extra ==" not in text]
    assert sorted(core) == ["gymnasium", "numba", "numpy"]
    assert fields["License-Expression"] == "MIT"
    assert fields.get_all("Provides-Extra") == ["play", "video", "train", "data", "tune", "ray", "dev"]
    (scripts,) = (name for name in files.namelist() if name.endswith("entry_points.txt"))
    assert "puzzlegym = puzzlegym.scripts.cli:main" in files.read(scripts).decode()


def run(code, path, **environment):
    """Run code with the package found at ``path`` alone; its standard output."""
    command = [sys.executable, "-W", "error", "-c", code]
    env = {"PYTHONPATH": str(path), "PATH": "", "HOME": str(path), "SYSTEMROOT": "", **environment}
    result = subprocess.run(command, cwd=path, env=env, capture_output=True, text=True, timeout=200, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_installed_wheel_is_the_package(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = "import puzzlegym, puzzlegym.scripts.cli; print(puzzlegym.__file__, puzzlegym.__version__)"
    where, version = run(code, tmp_path).split()
    assert Path(where) == tmp_path / "puzzlegym" / "__init__.py"
    assert version == re.search(r"-([\d.]+)-", wheel.name)[1]


# Four spawns on an empty board: ``rules.spawn`` calls ``rng.below``, which stands in another file.
SPAWNS = """
import numpy as np
from puzzlegym.envs.puzzle2048 import rules
low = np.uint64(0)
for word in (1 << 62, 2 << 62, 3 << 62, 0):
    low, _ = rules.spawn(np.uint64(low), np.uint64(0), np.uint64(word), 0)
print(f"{int(low):x}")
"""


def test_edited_callee_in_another_file_is_compiled_anew(tmp_path):
    copy_sources(tmp_path / "puzzlegym")
    rng = tmp_path / "puzzlegym" / "envs" / "common" / "rng.py"
    original = rng.read_text(encoding="utf-8")
    edited = original.replace("return ((word >> _S32) * n) >> _S32", "return n - np.uint64(1)")
    assert edited != original
    cache = tmp_path / "cache"
    first = run(SPAWNS, tmp_path, NUMBA_CACHE_DIR=str(cache))
    compiled = sorted(cache.rglob("*.nbc"))
    assert compiled
    assert run(SPAWNS, tmp_path, NUMBA_CACHE_DIR=str(cache)) == first
    assert sorted(cache.rglob("*.nbc")) == compiled, "the same sources compile once"
    rng.write_text(edited, encoding="utf-8")
    assert int(run(SPAWNS, tmp_path, NUMBA_CACHE_DIR=str(cache)), 16) == 0x1111 << 48, "always the last empty square"
    rng.write_text(original, encoding="utf-8")
    assert run(SPAWNS, tmp_path, NUMBA_CACHE_DIR=str(cache)) == first


def test_old_caches_are_pruned(tmp_path):
    copy_sources(tmp_path / "puzzlegym")
    rng, cache = tmp_path / "puzzlegym" / "envs" / "common" / "rng.py", tmp_path / "cache"
    for i in range(5):
        rng.write_text(rng.read_text(encoding="utf-8") + f"# version {i}\n", encoding="utf-8")
        folder = run("from puzzlegym.envs.common import jit; print(jit.CACHE)", tmp_path, NUMBA_CACHE_DIR=str(cache))
        if i == 3:
            os.utime(folder.strip(), (0, 0))  # of long ago
    kept = list((cache / "puzzlegym").iterdir())
    assert Path(folder.strip()) in kept
    assert len(kept) == 4, "all but the old one: a run may still be using the others"
