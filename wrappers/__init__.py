"""Wrappers for single environments and, under names that end in ``Vector``, for native batches.

From the environment outwards: rewards and masks first, observations last. ``RecordEpisodes`` goes anywhere.
"""

if __name__ == "wrappers":
    raise ImportError("import puzzlegym.wrappers instead: the repository root is the package 'puzzlegym'")

from .illegal_move import IllegalMove, IllegalMoveVector
from .mask import MaskInObservation, MaskInObservationVector
from .no_repeat import NoRepeat, NoRepeatVector
from .one_hot import OneHotObservation, OneHotObservationVector
from .potential import PotentialFreeCell, PotentialFreeCellVector
from .record_episodes import RecordEpisodes
from .shaping import ShapedReward2048, ShapedReward2048Vector, ShapedRewardFreeCell, ShapedRewardFreeCellVector
from .start_positions import StartPositionsVector

__all__ = [
    "IllegalMove",
    "IllegalMoveVector",
    "MaskInObservation",
    "MaskInObservationVector",
    "NoRepeat",
    "NoRepeatVector",
    "OneHotObservation",
    "OneHotObservationVector",
    "PotentialFreeCell",
    "PotentialFreeCellVector",
    "RecordEpisodes",
    "ShapedReward2048",
    "ShapedReward2048Vector",
    "ShapedRewardFreeCell",
    "ShapedRewardFreeCellVector",
    "StartPositionsVector",
]
