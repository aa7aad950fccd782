"""FreeCell: environments, snapshots, numbered deals, notation, and pure functions on boards for planning."""

from ..common.cards import card_id, card_name
from .actions import CELL, HOME, action_name, decode_action, encode_action
from .deals import UNWINNABLE, deal_board
from .env import FreeCellEnv, FreeCellVectorEnv
from .games import Game, GameError
from .notation import CellNames, format_move, parse_move
from .planning import apply, autoplay, has_moves, is_won, legal_mask, legal_moves, position_key, tap
from .refusal import refusal
from .state import State, board_from

__all__ = [
    "CELL",
    "HOME",
    "UNWINNABLE",
    "CellNames",
    "FreeCellEnv",
    "FreeCellVectorEnv",
    "Game",
    "GameError",
    "State",
    "action_name",
    "apply",
    "autoplay",
    "board_from",
    "card_id",
    "card_name",
    "deal_board",
    "decode_action",
    "encode_action",
    "format_move",
    "has_moves",
    "is_won",
    "legal_mask",
    "legal_moves",
    "parse_move",
    "position_key",
    "refusal",
    "tap",
]
