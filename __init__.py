"""puzzlegym: 2048 and FreeCell for reinforcement learning on the Gymnasium API.

Importing the package registers ``Puzzle2048-v0`` and ``FreeCell-v0`` and does nothing else: no compilation,
no torch, no plotting library. ``gymnasium.make("puzzlegym:Puzzle2048-v0")`` imports it by itself.
"""

from .envs.registry import PUZZLES, register_all

__version__ = "0.1.0"
__all__ = ["PUZZLES", "__version__"]

register_all()
