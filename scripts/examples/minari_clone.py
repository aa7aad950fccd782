"""Behaviour cloning: an agent plays into Minari's DataCollector, and a network learns its moves from the dataset.

Run it: python scripts/examples/minari_clone.py [PUZZLE] [GAMES], with minari[create,hdf5] (DataCollector uses jax).
"""

import os
import sys
import tempfile

import gymnasium
import minari
import torch
from puzzlegym.agents import configs, evaluation, network_policy, networks, policy
from puzzlegym.envs.common.rng import Streams


def collect(env_id: str, agent: str, number: int) -> None:
    """Play training games into the dataset clone-v0; the infos hold the masks of legal actions."""
    player, chosen = policy.load(env_id, agent), evaluation.games(env_id, number, stream="train")
    with minari.DataCollector(gymnasium.make(env_id), record_infos=True) as env:
        for i, seed in enumerate(chosen.seeds.tolist()):
            obs, info = env.reset(seed=seed, options={name: int(of[i]) for name, of in chosen.options.items()})
            rng, terminated, truncated = Streams.seeded([seed]), False, False
            while not (terminated or truncated):
                action = player.act(obs[None], info["action_mask"][None] == 1, rng)[0]
                obs, _, terminated, truncated, info = env.step(action)
        env.create_dataset("clone-v0", env_id, agent, "you", "you@example.org", "no link", description="a few games")


def teach(env_id: str, episodes: list[minari.EpisodeData], epochs: int = 6) -> network_policy.NetworkPolicy:
    """A network that has learned the moves; the last board and mask of an episode are those after its last move."""
    config = configs.ppo_config(env_id)
    network = networks.build(config.network, config.network_arguments)
    boards = torch.cat([torch.from_numpy(episode.observations[:-1]) for episode in episodes])
    masks = torch.cat([torch.from_numpy(episode.infos["action_mask"][:-1] == 1) for episode in episodes])
    moves = torch.cat([torch.from_numpy(episode.actions) for episode in episodes])
    print(f"{len(episodes)} games, {len(moves):,} moves, each looked at {epochs} times", flush=True)
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    for rows in torch.split(torch.cat([torch.randperm(len(moves)) for _ in range(epochs)]), 512):
        loss = torch.nn.functional.cross_entropy(network(boards[rows], masks[rows])[0], moves[rows])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return network_policy.NetworkPolicy("clone", network, sample=False, wrappers=config.play_wrappers)


def main(env_id: str = "Puzzle2048-v0", number: str = "") -> None:
    """Collect, clone, compare with random play."""
    agent, default = {"Puzzle2048-v0": ("ntuple", 20), "FreeCell-v0": ("solver", 500)}[env_id]
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as os.environ["MINARI_DATASETS_PATH"]:
        collect(env_id, agent, int(number or default))
        pupil = teach(env_id, list(minari.load_dataset("clone-v0").iterate_episodes()))
    clone, random = (evaluation.evaluate(env_id, who, 100).score_mean for who in (pupil, policy.load(env_id, "random")))
    print(f"mean score {clone:,.0f}, random {random:,.0f}, on the same 100 games")


if __name__ == "__main__":
    main(*sys.argv[1:])
