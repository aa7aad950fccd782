"""What counts as a whole number, said once for actions, seeds and deals."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np


def whole_number(value: Any) -> int | None:
    """``value`` as an int if it is one (Python's or numpy's, of any size; not a bool), else None."""
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None
