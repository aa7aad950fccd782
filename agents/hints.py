"""One move worth trying, for a person at play: from the board alone, by the quickest good player of each puzzle."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np

from ..envs.common.rng import Streams
from ..envs.freecell import HOME, apply, decode_action, legal_mask, position_key
from ..envs.freecell.state import check_board
from ..envs.puzzle2048 import legal_moves
from ..envs.puzzle2048.state import check_position
from .light_network import LightNetwork
from .ntuple_player import NTuplePlayer
from .policy import check_id
from .shipped import WEIGHTS, ntuple_2048


def hint(env_id: str, board: Any, history: Iterable[Any] = ()) -> int | None:
    """A legal action to try next, or None where none is worth it (or the puzzle has no hints); no chance is used.

    Args:
        env_id: the puzzle.
        board: an observation, or anything else that the puzzle's ``board`` reset option takes.
        history: the boards of the game so far, in any order, with or without ``board``. In FreeCell no hint leads back
            to one of them, up to the order of cells and of columns, after the safe cards went home. 2048 needs none.

    Raises:
        ValueError: in one line, for an unknown puzzle or a board that is none.

    Example:
        >>> from puzzlegym.envs.freecell import apply, deal_board, position_key
        >>> board = deal_board(1)
        >>> after, _, legal = apply(board, hint("FreeCell-v0", board))
        >>> following, _, _ = apply(after, hint("FreeCell-v0", after, history=[board]))
        >>> legal, position_key(following) == position_key(board)
        (True, False)
    """
    check_id(env_id)
    find = HINTS.get(env_id)
    return find(board, history) if find else None


_MOVES_AHEAD = 3


@cache
def _player() -> NTuplePlayer:
    return ntuple_2048(_MOVES_AHEAD)


def _hint_2048(board: Any, history: Iterable[Any]) -> int | None:
    """The move of the n-tuple network that comes with the package; None when the game is over."""
    board = check_position(board)
    mask = legal_moves(board)
    if not mask.any():
        return None
    return int(_player().act(board[None], mask[None], Streams.seeded([0]))[0])


@cache
def _network() -> LightNetwork:
    return LightNetwork(WEIGHTS / "learned-freecell.zip")


def _hint_freecell(board: Any, history: Iterable[Any]) -> int | None:
    """The move that the network which comes with the package likes best of those that lead to a new position.

    A whole column moved to an empty one is the same position again. A card sent home is always something new.
    """
    board = check_board(board)
    mask = legal_mask(board)
    scores = _network().scores(board[None], mask[None])[0]
    seen = {position_key(one) for one in (*history, board)}
    for action in np.argsort(-scores, kind="stable")[: mask.sum()].tolist():
        if decode_action(action)[1] == HOME or position_key(apply(board, action)[0]) not in seen:
            return int(action)
    return None


HINTS: dict[str, Callable[[Any, Iterable[Any]], int | None]] = {
    "Puzzle2048-v0": _hint_2048,
    "FreeCell-v0": _hint_freecell,
}
