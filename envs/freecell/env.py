"""The FreeCell environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..base.env import PuzzleEnv
from ..base.puzzle import Parameter, Phase, Puzzle, flag
from ..base.vector_env import PuzzleVectorEnv
from . import rules
from .deals import MAX_DEAL, MAX_START_RANK, RANDOM_DEALS, check_deal, check_whole
from .observation import ACTION_SPACE, NUMBERS, OBSERVATION_SPACE
from .picture import image
from .rendering import ansi
from .state import WORDS, State, check_board, from_state, pack_board, to_state


def _deal(value: Any) -> tuple[int]:
    return (0 if value is None else check_deal(value),)


def _deal_range(value: Any) -> tuple[int, int]:
    try:
        low, high = value
    except (TypeError, ValueError):
        raise ValueError(f"deal_range must be two numbers (first, last), not {value!r}") from None
    first = check_whole(low, 1, MAX_DEAL, "the first deal of deal_range")
    return first, check_whole(high, first, MAX_DEAL, "the last deal of deal_range")


def _start_rank(value: Any) -> tuple[int]:
    return (check_whole(value, 0, MAX_START_RANK, "start_rank"),)


PUZZLE = Puzzle(
    words=WORDS,
    config_width=rules.CONFIG,
    observation_space=OBSERVATION_SPACE,
    action_space=ACTION_SPACE,
    numbers=NUMBERS,
    parameters={
        "deal": Parameter(None, rules.FIXED_DEAL, _deal, is_option=True),
        "deal_range": Parameter(RANDOM_DEALS, rules.DEAL_LOW, _deal_range),
        "autoplay": flag("autoplay", True, rules.AUTOPLAY),
        "start_rank": Parameter(0, rules.START_RANK, _start_rank, is_option=True),
    },
    advance_rows=rules.advance_rows,
    share_rows=rules.share_rows,
    rows_per_thread=256,
    check_board=check_board,
    pack_board=pack_board,
    to_state=to_state,
    from_state=from_state,
    ansi=ansi,
    image=image,
    phases={
        "move": Phase(rules.move_rows, "actions"),
        "safe cards": Phase(rules.autoplay_rows, "mask"),
        "mask": Phase(rules.mask_rows, "mask"),
        "observation": Phase(rules.observe_rows, "obs"),
    },
    board_types=(str, Mapping, State),
)


class FreeCellEnv(PuzzleEnv):
    """FreeCell with the classic numbered deals, supermoves, and safe cards that go home by themselves.

    ## Description
    52 cards lie face up in 8 columns beside 4 free cells and 4 foundations. Columns are built downwards in alternating
    colours; a run of cards moves as one where (empty cells + 1) x 2^(empty columns) allow it, an empty destination not
    counted. After every move safe cards go home: aces and twos always, others when both foundations of the other
    colour are at most one rank behind. All 52 cards home is a win.

    ## Action Space
    `Discrete(520)`: `card_id * 10 + destination`, with `card_id = 4 * rank + suit` (ace = 0; C D H S); destination 0-7
    a column, 8 a free cell (the first empty one), 9 the card's foundation. The card takes the run on top of it along.
    `info["action_mask"]` and `action_masks()` tell which are legal. An illegal move changes nothing: reward 0,
    `info["legal"]` False.

    ## Observation Space
    `Box(0, 52, (20, 8), uint8)`: row 0 holds the 4 cells, then the top card of the 4 foundations (C D H S); rows 1-19
    are the columns, first dealt card in row 1. A card is its id + 1, 0 is nothing.

    ## Starting State
    A numbered deal: `deal`, or a random one of `deal_range`. `reset(options=...)` takes `{"deal": n}`,
    `{"start_rank": r}` and `{"board": position}` (the observation array, text, or a mapping of `cols`, `cells` and
    `home`).

    ## Rewards
    The number of cards that went home because of the move: 52 in a won game.

    ## Episode End
    Terminated when all cards are home or no legal move is left. Truncated after 500 steps (`max_episode_steps`).

    ## Information
    | key | type | meaning |
    |---|---|---|
    | `action_mask` | int8 `[520]` | 1 = the action is legal now |
    | `legal` | bool | was the last action legal (True after a reset) |
    | `deal` | int | number of the deal (0 for a board that was set) |
    | `cards_home` | int | cards on the foundations |
    | `moves` | int | legal moves since the reset |
    | `is_success` | bool | won |

    ## Arguments
    * `render_mode`: None, `"ansi"` (render() returns text), `"human"` (the text, printed after every step) or
      `"rgb_array"` (render() returns a picture, uint8 `[512, 400, 3]`; needs Pillow).
    * `deal=None`: a number from 1 to 2^31 - 1: always that deal.
    * `deal_range=(1, 32000)`: random deals are drawn from these numbers.
    * `autoplay=True`: send safe cards home after every move.
    * `start_rank=0`: difficulty: cards of rank up to it (0..12) start on the foundations, the others are shuffled.

    ## Version History
    * v0: first version.
    """

    puzzle: ClassVar[Puzzle] = PUZZLE

    def __init__(
        self,
        render_mode: str | None = None,
        deal: int | None = None,
        deal_range: tuple[int, int] = RANDOM_DEALS,
        autoplay: bool = True,
        start_rank: int = 0,
    ) -> None:
        """See the class page. Raises ValueError for a value that it does not name."""
        super().__init__(render_mode, deal=deal, deal_range=deal_range, autoplay=autoplay, start_rank=start_rank)


class FreeCellVectorEnv(PuzzleVectorEnv):
    """The native batch of ``FreeCellEnv``; ``gymnasium.make_vec("FreeCell-v0", num_envs=N)`` makes one."""

    puzzle: ClassVar[Puzzle] = PUZZLE
