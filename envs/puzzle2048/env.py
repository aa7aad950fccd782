"""The 2048 environments."""

from __future__ import annotations

import numbers
from typing import Any, ClassVar

import numpy as np

from ..base.env import PuzzleEnv
from ..base.puzzle import Parameter, Phase, Puzzle, flag
from ..base.vector_env import PuzzleVectorEnv
from . import rules
from .observation import ACTION_SPACE, NUMBERS, OBSERVATION_SPACE
from .picture import image
from .rendering import ansi
from .state import WORDS, State, check_position, from_state, pack_board, to_state


def _probability(value: Any) -> tuple[int]:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real) or not 0 <= float(value) <= 1:
        raise ValueError(f"prob_four must be a number from 0 to 1, not {value!r}")
    return (round(float(value) * 2**32),)


PUZZLE = Puzzle(
    words=WORDS,
    config_width=rules.CONFIG,
    observation_space=OBSERVATION_SPACE,
    action_space=ACTION_SPACE,
    numbers=NUMBERS,
    parameters={
        "terminate_on_win": flag("terminate_on_win", False, rules.STOP_AT_WIN),
        "prob_four": Parameter(0.1, rules.PROB_FOUR, _probability),
    },
    advance_rows=rules.advance_rows,
    share_rows=rules.share_rows,
    rows_per_thread=2048,
    check_board=check_position,
    pack_board=pack_board,
    to_state=to_state,
    from_state=from_state,
    ansi=ansi,
    image=image,
    phases={
        "move": Phase(rules.move_rows, "actions"),
        "spawn": Phase(rules.spawn_rows, "actions"),
        "mask": Phase(rules.mask_rows, "mask"),
        "observation": Phase(rules.observe_rows, "obs"),
    },
    board_types=(str, State),
)


class Puzzle2048Env(PuzzleEnv):
    """The sliding-tile game 2048 by its original rules.

    ## Description
    A 4x4 board holds tiles that are powers of two. A move slides all tiles to one edge; two equal tiles that meet merge
    into one of twice the value, once per move, pairing from the edge moved to. Then a new tile appears on a uniformly
    random empty square. Making the tile 2048 is a win, but the game goes on until no move is left.

    ## Action Space
    `Discrete(4)`: 0 up, 1 right, 2 down, 3 left. `info["action_mask"]` and `action_masks()` tell which change the
    board. An illegal move changes nothing: no spawn, reward 0, `info["legal"]` False.

    ## Observation Space
    `Box(0, 17, (4, 4), uint8)`: the exponent of each tile, 0 for an empty square (11 is 2048, 17 is 131072).

    ## Starting State
    Two tiles on two different random squares, each 2 with 90 % and 4 with 10 %. `reset(options={"board": b})` sets any
    `(4, 4)` board of exponents instead, with score 0.

    ## Rewards
    The points of the move: the values of all tiles made by merging in it (0 for none).

    ## Episode End
    Terminated when no legal move is left; with `terminate_on_win=True` also at the tile 2048. Truncated after 131072
    steps (`max_episode_steps`), which no legal game reaches.

    ## Information
    | key | type | meaning |
    |---|---|---|
    | `action_mask` | int8 `[4]` | 1 = the direction is legal now |
    | `legal` | bool | was the last action legal (True after a reset) |
    | `score` | int | points since the reset |
    | `max_tile` | int | face value of the largest tile |
    | `is_success` | bool | 2048 or more has been reached |

    ## Arguments
    * `render_mode`: None, `"ansi"` (render() returns text), `"human"` (the text, printed after every step) or
      `"rgb_array"` (render() returns a picture, uint8 `[464, 400, 3]`; needs Pillow).
    * `terminate_on_win=False`: end the episode at the tile 2048.
    * `prob_four=0.1`: probability that a spawned tile is a 4.

    ## Version History
    * v0: first version.
    """

    puzzle: ClassVar[Puzzle] = PUZZLE

    def __init__(self, render_mode: str | None = None, terminate_on_win: bool = False, prob_four: float = 0.1) -> None:
        """See the class page. Raises ValueError for a value that it does not name."""
        super().__init__(render_mode, terminate_on_win=terminate_on_win, prob_four=prob_four)


class Puzzle2048VectorEnv(PuzzleVectorEnv):
    """The native batch of ``Puzzle2048Env``; ``gymnasium.make_vec("Puzzle2048-v0", num_envs=N)`` makes one."""

    puzzle: ClassVar[Puzzle] = PUZZLE
