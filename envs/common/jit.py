"""The one compile decorator of the package.

Numba's disk cache is keyed by the file of the compiled function alone, so it goes stale when a *called* kernel or an
imported constant changes in another file. Here the cache folder carries a hash of every source file that holds
compiled code: change any of them and the whole cache is new. Old folders are pruned.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np

F = TypeVar("F", bound=Callable[..., Any])
Int = int | np.integer[Any]  # what kernels calculate with: plain in Python, of a fixed width when compiled

config: Any = numba.config

_PACKAGE = Path(__file__).resolve().parents[2]
_KEPT = 3  # cache folders of this many source versions stay, so that two checkouts do not evict each other
_YOUNG = 24 * 3600  # seconds; younger ones stay, too: a long run may still be compiling into its own
_announced = False


def _user_cache() -> Path:
    """The user's cache directory, by the convention of the platform."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        return Path(os.environ["NUMBA_CACHE_DIR"]) / "puzzlegym"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "puzzlegym" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "puzzlegym"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "puzzlegym"


def _source_hash() -> str:
    """Hash of all package sources that hold compiled code or are imported by it."""
    digest = hashlib.sha256(__name__.encode())  # compiled code refers to modules by name
    agents = (path for path in (_PACKAGE / "agents").rglob("*.py") if b"jit" in path.read_bytes())
    for path in sorted([*(_PACKAGE / "envs").rglob("*.py"), *agents]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _prune(root: Path, keep: Path) -> None:
    """Remove all but the newest cache folders, and those that are young; another process may be doing the same."""
    others = sorted((p for p in root.glob("*") if p != keep), key=lambda p: p.stat().st_mtime, reverse=True)
    for old in others[_KEPT - 1 :]:
        if time.time() - old.stat().st_mtime > _YOUNG:
            shutil.rmtree(old, ignore_errors=True)


def _open_cache() -> Path:
    """This version's cache folder; a temporary one where the user's cache cannot be written."""
    folder = _user_cache() / _source_hash()
    try:
        fresh = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(folder)
        if fresh:
            _prune(folder.parent, folder)
    except OSError:
        folder = Path(tempfile.gettempdir()) / f"puzzlegym-{os.getuid() if hasattr(os, 'getuid') else 0}" / folder.name
        folder.mkdir(parents=True, exist_ok=True)
    return folder


CACHE = _open_cache()


def announce() -> None:
    """Say once, in one line on stderr, that the first use on this machine compiles."""
    global _announced
    if not _announced and not config.DISABLE_JIT and next(CACHE.rglob("*.nbi"), None) is None:
        print("puzzlegym: compiling the rules, once on this machine (a few seconds) ...", file=sys.stderr, flush=True)
    _announced = True


def _interpreted(function: F) -> F:
    """The function as plain Python (NUMBA_DISABLE_JIT=1): unsigned arithmetic wraps around there, too, in silence."""

    @functools.wraps(function)
    def wrapped(*args: Any) -> Any:
        with np.errstate(over="ignore"):
            return function(*args)

    return cast(F, wrapped)


# Kernels are given every array they write to. So they need no reference counts, whose atomic instructions cost more
# than a move: without them 2048 is 2.4 times as fast. The option is not a documented one, hence the second choice.
_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True}
_NO_COUNTS: dict[str, Any] = {**_OPTIONS, "_nrt": False}


def _compiled(function: F) -> F:
    try:
        return cast(F, numba.njit(**_NO_COUNTS)(function))
    except KeyError:
        return cast(F, numba.njit(**_OPTIONS)(function))


def njit(function: F) -> F:
    """Compile ``function`` without the GIL and cache it on disk under a folder that cannot go stale.

    The function cannot make arrays; it is given those that it writes to.
    """
    if config.DISABLE_JIT:
        return _interpreted(function)
    before, config.CACHE_DIR = config.CACHE_DIR, str(CACHE)
    try:
        return _compiled(function)
    finally:
        config.CACHE_DIR = before
