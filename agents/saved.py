"""The file of a saved agent: a zip of arrays and JSON, written atomically, read without unpickling anything."""

from __future__ import annotations

import io
import json
import math
import time
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..envs.common.files import atomic
from .errors import AgentError

FORMAT = "puzzlegym-agent-1"
FILE = "agent.zip"
_CARD, _WEIGHTS, _TRAINER = "card.json", "weights.npz", "trainer.npz"

_LARGE = 32 << 20  # bytes

Arrays = Mapping[str, NDArray[Any]]

# What reading a file that is no agent, or a damaged one, may raise (RuntimeError: an encrypted zip, say).
_UNREADABLE = (zipfile.BadZipFile, zlib.error, KeyError, TypeError, ValueError, EOFError, OSError, RuntimeError)


def _write_arrays(file: zipfile.ZipFile, name: str, arrays: Arrays) -> None:
    """A member of arrays, without a copy in memory; large ones are not compressed, which would take too long."""
    member = zipfile.ZipInfo(name, time.localtime()[:6])
    large = sum(array.nbytes for array in arrays.values()) > _LARGE
    member.compress_type = zipfile.ZIP_STORED if large else zipfile.ZIP_DEFLATED
    with file.open(member, "w", force_zip64=large) as stream:
        np.savez(stream, **arrays)  # type: ignore[arg-type]


def save(path: Path, card: Mapping[str, Any], weights: Arrays, trainer: Arrays) -> None:
    """Write an agent. Raises OSError (disk full, not writable) with the old file untouched."""
    try:
        with atomic(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
            file.writestr(_CARD, json.dumps({"format": FORMAT, **card}, indent=1))
            _write_arrays(file, _WEIGHTS, weights)
            _write_arrays(file, _TRAINER, trainer)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error  # a full disk does not say which file


def locate(path: Path) -> Path:
    """The agent's file: ``path`` itself, or ``agent.zip`` in a run folder. Raises AgentError if there is none."""
    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        raise AgentError(f"no trained agent at {path}: expected a run folder with {FILE}, or a .zip that train wrote")
    return file


def run_folder(path: Path) -> Path:
    """The folder of a saved run, named itself or by its file. Raises AgentError for a copy under another name."""
    if path.is_file() and path.name != FILE:
        raise AgentError(f"{path} is not a run folder: it would go on in {path.parent / FILE}")
    return locate(path).parent


def load_card(path: Path, env_id: str | None = None) -> dict[str, Any]:
    """The JSON card. Raises AgentError if this is no agent of ``env_id`` (None: of any puzzle)."""
    file = locate(path)
    try:
        with zipfile.ZipFile(file) as archive:
            card = json.loads(archive.read(_CARD))
    except _UNREADABLE as error:
        raise AgentError(f"{file} is not a puzzlegym agent, or is damaged ({error})") from None
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise AgentError(f"{file} is not of the format {FORMAT}: it may come from another version of puzzlegym")
    if env_id is not None and card.get("env_id") != env_id:
        raise AgentError(f"{file} was trained on {card.get('env_id')}, not on {env_id}")
    return card


def training_told(card: Mapping[str, Any]) -> str:
    """How long an agent was trained, in short: ``25 min, 1.57 G steps``; empty if its card does not say."""
    if not card.get("seconds") or not card.get("steps"):
        return ""
    seconds, steps = (card[name] + card.get(f"{name}_before", 0) for name in ("seconds", "steps"))
    power = min(3, int(math.log10(steps)) // 3)
    return f"{seconds / 60:.3g} min, {steps / 1000**power:.3g}{('', ' k', ' M', ' G')[power]} steps"


def origin(start: Path | None) -> dict[str, Any]:
    """What a card says of the agent that a run began with: ``start``, and all its training in steps and seconds."""
    if start is None:
        return {"start": None}
    card = load_card(start)
    before = {f"{name}_before": card.get(name, 0) + card.get(f"{name}_before", 0) for name in ("steps", "seconds")}
    return {"start": str(start), **before}


def same_origin(card: Mapping[str, Any]) -> dict[str, Any]:
    """The same out of the card of a run that goes on."""
    return {name: card[name] for name in ("start", "steps_before", "seconds_before") if name in card}


def _arrays(path: Path, member: str) -> dict[str, NDArray[Any]]:
    file = locate(path)
    try:
        with zipfile.ZipFile(file) as archive, np.load(io.BytesIO(archive.read(member)), allow_pickle=False) as arrays:
            return dict(arrays)
    except _UNREADABLE as error:
        raise AgentError(f"{file} is damaged: {member} cannot be read ({error})") from None


def load_weights(path: Path) -> dict[str, NDArray[Any]]:
    """The network's arrays by name."""
    return _arrays(path, _WEIGHTS)


def load_trainer(path: Path) -> dict[str, NDArray[Any]]:
    """What training needs to go on: optimiser, normaliser, random states."""
    return _arrays(path, _TRAINER)
