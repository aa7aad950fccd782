"""What a training on Ray gains by more nodes: measured on nodes of one core each, all on this machine.

``python -m puzzlegym.agents.rllib.scaling [ID] [SECONDS]`` trains for so many seconds on each of a few clusters and
prints a line for each, then what a worker takes for its rollout alone on a core, by the number of its games, with the
runner of this package and with RLlib's own. With fewer cores than nodes the nodes wait for each other: the second table
tells then how long they would take apart.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from ray.cluster_utils import Cluster as FakeCluster
from ray.rllib.algorithms.ppo import PPOConfig as RLlibConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

from ...wrappers import MaskInObservationVector
from ..configs import PPOConfig, ppo_config
from ..curriculum import Lessons, make_batch
from ..networks import build
from ..rollouts import Rollouts
from ..runs import Budget, Progress
from .module import MaskedModule
from .training import Cluster, RLlibRun

CLUSTERS = ((1, 0), (2, 0), (4, 0), (1, 1), (2, 2))  # nodes that play, learners beside them (0: in the head's process)
GAMES = (256, 128, 64, 32, 16, 8)  # of a worker, when the configuration's are spread over 1, 2, 4 ... nodes
_ROLLOUTS = 5


@dataclass(frozen=True)
class Measured:
    """Seconds of an iteration by its parts, in the mean, and moves a second of the whole."""

    nodes: int
    learners: int
    moves: int
    sampling: float
    learning: float
    weights: float
    rate: float

    def __str__(self) -> str:
        """A row of the table."""
        parts = f"{self.sampling:10.3f} {self.learning:10.3f} {self.weights:10.3f}"
        return f"{self.nodes:6d} {self.learners:9d} {self.moves:8,d} {parts} {self.rate:10,.0f}"


class _Quiet:
    def update(self, progress: Progress) -> None:
        """Say nothing."""


def trained(config: PPOConfig, nodes: int, learners: int, seconds: float) -> Measured:
    """Train for a while on so many nodes of one core, the learners on as many more."""
    with nodes_here(nodes + learners) as address, tempfile.TemporaryDirectory() as out:
        cluster = Cluster(address, env_runners=nodes, learners=learners)
        run = RLlibRun(config, Budget(seconds=seconds), 0, Path(out), cluster=cluster)
        run.train(_Quiet())
        parts, progress = run.timers, run.progress
    moves = -(-config.num_envs // nodes) * nodes * config.n_steps
    return Measured(nodes, learners, moves, parts["sampling"], parts["learning"], parts["weights"], progress.rate)


@contextlib.contextmanager
def nodes_here(number: int) -> Iterator[str]:
    """A cluster on this machine: a head without cores for workers, and nodes of one core; yields its address."""
    cluster: Any = FakeCluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        for _ in range(number):
            cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        yield str(cluster.address)
    finally:
        cluster.shutdown()


def alone(config: PPOConfig, games: int) -> float:
    """Seconds that a worker with so many games takes for its rollout, with a core of its own."""
    torch.set_num_threads(1)
    config = replace(config, num_envs=games)
    lessons, network = Lessons(config, 0), build(config.network, config.network_arguments)
    rollouts = Rollouts(config, lessons.batch, lessons, 0)
    return _timed(lambda: rollouts.play(network, config.n_steps))


def by_rllibs_own(config: PPOConfig, games: int) -> float:
    """The same with RLlib's runner on the same native batch, network and rewards."""
    torch.set_num_threads(1)
    config = replace(config, num_envs=games)
    model = {
        "network": config.network,
        "network_arguments": config.network_arguments,
        "board": Lessons(config, 0).batch.single_observation_space.shape,
    }
    made: Any = RLlibConfig().environment(lambda _: MaskInObservationVector(_next_step(config), "rllib"))
    made = made.env_runners(
        num_env_runners=0,
        num_envs_per_env_runner=games,
        rollout_fragment_length=config.n_steps,
        gym_env_vectorize_mode="vector_entry_point",
    ).rl_module(rl_module_spec=RLModuleSpec(module_class=MaskedModule, model_config=model))
    runner = SingleAgentEnvRunner(config=made.debugging(log_level="ERROR"), worker_index=0)
    return _timed(lambda: (runner.sample(), runner.get_metrics()))


def _next_step(config: PPOConfig) -> Any:
    """RLlib's runner wants the batch with autoreset in the next step."""
    return make_batch(config, autoreset_mode="NextStep")


def _timed(play: Any) -> float:
    play()
    times = []
    for _ in range(_ROLLOUTS):
        began = time.perf_counter()
        play()
        times.append(time.perf_counter() - began)
    return sorted(times)[len(times) // 2]


def main(env_id: str = "Puzzle2048-v0", seconds: str = "30") -> None:
    """Print both tables."""
    config = ppo_config(env_id)
    print(f"{env_id}, {seconds} s on each cluster: seconds of an iteration by its parts, moves a second of the whole")
    print(" nodes  learners    moves   sampling   learning    weights    moves/s")
    for nodes, learners in CLUSTERS:
        print(trained(config, nodes, learners, float(seconds)), flush=True)
    print("\nA rollout of one worker, alone on a core, in seconds, and its moves a second")
    print(" games  of nodes  this package's runner       RLlib's own runner")
    for games in GAMES:
        ours, theirs = alone(config, games), by_rllibs_own(config, games)
        rates = [games * config.n_steps / seconds for seconds in (ours, theirs)]
        nodes = config.num_envs // games
        print(f"{games:6d} {nodes:9d} {ours:10.3f} {rates[0]:12,.0f} {theirs:11.3f} {rates[1]:12,.0f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
