"""What every training run has in common, whatever it learns by: budget, progress, and how it is reported."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import ModuleType
from typing import Any, Protocol

from .. import __version__


@dataclass(frozen=True)
class Budget:
    """How long a run goes on in all, resumptions included: steps, games, or seconds of training."""

    steps: int | None = None
    seconds: float | None = None
    games: int | None = None

    def fraction(self, steps: int, seconds: float, games: int = 0) -> float:
        """Share of the budget that is used up, 0..1."""
        if self.steps:
            return min(1.0, steps / self.steps)
        if self.games:
            return min(1.0, games / self.games)
        return min(1.0, seconds / (self.seconds or 1.0))


@dataclass
class Progress:
    """What a run looks like from outside."""

    steps: int = 0
    seconds: float = 0.0
    fraction: float = 0.0
    rate: float = 0.0  # steps per second, of this session
    figures: dict[str, float] = field(default_factory=dict)
    lost: int = 0  # workers of a cluster that were lost so far


class Reporter(Protocol):
    """Shows how a run goes on."""

    def update(self, progress: Progress) -> None:
        """Called about every step of the batch; must be quick."""


class Described(Protocol):
    """What every run's card tells."""

    config: Any
    budget: Budget
    seed: int
    progress: Progress


def card_of(run: Described, algorithm: str, figures: Mapping[str, float], **more: Any) -> dict[str, Any]:
    """The JSON card of a run's agent; ``figures``: those of its last games, ``more``: what its kind tells besides."""
    return {
        "env_id": run.config.env_id,
        "algorithm": algorithm,
        "config": run.config.as_dict(),
        "budget": asdict(run.budget),
        "seed": run.seed,
        "steps": run.progress.steps,
        "seconds": round(run.progress.seconds, 1),
        "training_figures": {name: round(value, 4) for name, value in figures.items()},
        **more,
    }


def versions(*modules: ModuleType) -> dict[str, str]:
    """What a result may depend on: the versions of this package, of Python and of ``modules``."""
    named = {module.__name__: str(module.__version__) for module in modules}
    return {"puzzlegym": __version__, "python": platform.python_version(), **named}
