"""2048: environments, snapshots, and pure functions on boards for planning."""

from .actions import Action, action_name, parse_action
from .env import Puzzle2048Env, Puzzle2048VectorEnv
from .planning import is_over, legal_moves, move
from .state import State, exponents

__all__ = [
    "Action",
    "Puzzle2048Env",
    "Puzzle2048VectorEnv",
    "State",
    "action_name",
    "exponents",
    "is_over",
    "legal_moves",
    "move",
    "parse_action",
]
