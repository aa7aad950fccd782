"""The facts in tests/data: the original 2048's own moves, independent FreeCell deals, winning lines and positions."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

DATA = Path(__file__).parent.parent / "data"


def read_json(name):
    """A JSON file of tests/data."""
    return json.loads((DATA / name).read_text(encoding="utf-8"))


def read_lines(name):
    """A gzipped file of tests/data with one JSON value a line."""
    with gzip.open(DATA / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
