"""A FreeCell network learns from itself: the mean of its views of a position is better than each (distillation).

The teacher is the network that the run begins with, asked about every position under all ways to call the suits
(``networks.suit_views``); the pupil learns the mean of the answers in every view, on positions of its own games. So one
look comes to know what eight knew (distillation: Hinton, Vinyals, Dean 2015).
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from . import saved
from .configs import DistillConfig
from .network_policy import arrays_of, load_network
from .networks import build
from .networks.suit_views import SuitViews
from .runs import Budget
from .supervised import UNFIT, SupervisedRun, unfit

_TEACHER = "teacher."


class DistillRun(SupervisedRun[DistillConfig]):
    """A run that learns the mean of its own views; see ``SupervisedRun``."""

    algorithm = "distillation"

    def __init__(self, config: DistillConfig, budget: Budget, seed: int, out: Path, start: Path | None) -> None:
        """A fresh run. ``start``: the saved agent that is the teacher at the same time; ValueError without one."""
        if start is None:
            raise ValueError("distilling needs a trained FreeCell agent to begin with: --from RUN")
        super().__init__(config, budget, seed, out, start)
        teacher = build(config.network, config.network_arguments)
        teacher.load_state_dict(self.network.state_dict())
        self._views = SuitViews(teacher.eval())
        self._pool: deque[tuple[Tensor, Tensor, Tensor, Tensor]] = deque(maxlen=config.kept)

    @classmethod
    def resume(cls, path: Path, budget: Budget | None = None, env_id: str | None = None) -> DistillRun:
        """Go on with a saved run: weights, teacher and optimiser are restored, games are new ones.

        Raises AgentError for what is no such run.
        """
        folder, card, arrays = saved.run_folder(path), saved.load_card(path, env_id), saved.load_trainer(path)
        try:
            config = DistillConfig.from_dict(card["config"])
            run = cls(config, budget or Budget(**card["budget"]), int(card["seed"]), folder, path)
            run.restore(card, path)
            teacher = {name[len(_TEACHER) :]: array for name, array in arrays.items() if name.startswith(_TEACHER)}
            load_network(run._views.network, teacher, path)
        except UNFIT as error:
            raise unfit(path, error) from None
        return run

    def trainer_arrays(self) -> dict[str, NDArray[Any]]:
        """Optimiser and teacher."""
        teacher = arrays_of(self._views.network)
        return super().trainer_arrays() | {_TEACHER + name: array for name, array in teacher.items()}

    def collect(self) -> None:
        """Ask the teacher about positions of the pupil's games."""
        for _ in range(self.config.moves):
            obs, masks = torch.from_numpy(self.pupil.obs.copy()), torch.from_numpy(self.pupil.masks().copy())
            with torch.no_grad():
                self._pool.append((obs, masks, *self._views(obs, masks)))
            self.play()
            self.progress.steps += len(obs)

    def learn(self) -> None:
        """Some steps, each on a mixture of what was asked lately."""
        for _ in range(self.config.batches):
            chosen = [self._pool[i] for i in self.rng.integers(len(self._pool), size=self.config.mixed)]
            self._follow(*(torch.cat(parts) for parts in zip(*map(self._part, chosen), strict=True)))

    def _part(self, asked: tuple[Tensor, Tensor, Tensor, Tensor]) -> tuple[Tensor, ...]:
        rows = torch.from_numpy(self.rng.integers(len(asked[0]), size=self.config.batch_size // self.config.mixed))
        return tuple(part[rows] for part in asked)

    def _follow(self, obs: Tensor, masks: Tensor, log_chances: Tensor, values: Tensor) -> None:
        """One step, in a random view: cross-entropy with the teacher's chances, squared error of its values."""
        view = int(self.rng.integers(len(self._views.cards)))
        logits, guessed = self.network(*self._views.seen(obs, masks, view))
        logits = self._views.told(logits, view)
        chances = torch.softmax(log_chances, 1)
        cross_entropy = -(chances * torch.log_softmax(logits, 1)).sum(1).mean()
        loss = cross_entropy + self.config.vf_coef * F.mse_loss(guessed, values)
        self.descend(loss, logits.detach().argmax(1) == log_chances.argmax(1))
