"""Masked PPO on 2048 in one file, with CleanRL's names. Run it: python scripts/examples/cleanrl_ppo.py [STEPS]"""

import sys
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import torch
from puzzlegym.agents import evaluation, policy
from puzzlegym.wrappers import ShapedReward2048Vector
from torch import Tensor, distributions, nn

env_id, num_envs, num_steps, minibatch_size, update_epochs, learning_rate = "Puzzle2048-v0", 32, 128, 512, 4, 1e-3
gamma, gae_lambda, clip_coef, ent_coef, vf_coef, max_grad_norm = 0.995, 0.95, 0.2, 0.005, 0.5, 0.5
torch.manual_seed(1)
agent = nn.Sequential(nn.Linear(16 * 18, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 4 + 1))


def get_action_and_value(x: object, mask: object, action: Tensor | None = None) -> tuple[Tensor, ...]:
    """Boards and masks to actions, their log-probabilities, entropies, and values; illegal moves have no chance."""
    logits, value = agent(torch.eye(18)[torch.as_tensor(x).long()].flatten(1)).split([4, 1], dim=1)
    probs: Any = distributions.Categorical(logits=logits.masked_fill(~torch.as_tensor(mask), -1e8))
    action = probs.sample() if action is None else action
    return action, probs.log_prob(action), probs.entropy(), value.flatten()


if __name__ == "__main__":
    total_timesteps = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    envs = ShapedReward2048Vector(gym.make_vec(env_id, num_envs=num_envs, autoreset_mode="SameStep"))
    optimizer = torch.optim.Adam(agent.parameters(), lr=learning_rate, eps=1e-5)
    next_obs, infos = envs.reset(seed=1)
    for _update in range(total_timesteps // (num_envs * num_steps)):
        storage = []
        for _step in range(num_steps):
            obs, mask = next_obs, envs.action_masks()
            action, logprob, _, value = torch.no_grad()(get_action_and_value)(obs, mask)
            next_obs, reward, terminations, truncations, infos = envs.step(action.numpy())
            row = obs, mask, action, logprob, value, reward.astype("float32"), terminations | truncations
            storage.append([torch.as_tensor(x) for x in row])
        obs, masks, actions, logprobs, values, rewards, dones = map(torch.stack, zip(*storage, strict=True))
        nextvalues = torch.cat([values[1:], get_action_and_value(next_obs, envs.action_masks())[3].detach()[None]])
        advantages = rewards + gamma * nextvalues * ~dones - values
        for t in reversed(range(num_steps - 1)):
            advantages[t] += gamma * gae_lambda * advantages[t + 1] * ~dones[t]
        batch = (x.flatten(0, 1) for x in (obs, masks, actions, logprobs, advantages, advantages + values))
        b_inds = torch.cat([torch.randperm(num_envs * num_steps) for _ in range(update_epochs)])
        for mb in zip(*(torch.split(x[b_inds], minibatch_size) for x in batch), strict=True):
            mb_obs, mb_masks, mb_actions, mb_logprobs, mb_advantages, mb_returns = mb
            _, newlogprob, entropy, newvalue = get_action_and_value(mb_obs, mb_masks, mb_actions)
            ratio, adv = (newlogprob - mb_logprobs).exp(), (mb_advantages - mb_advantages.mean()) / mb_advantages.std()
            pg_loss = -torch.min(adv * ratio, adv * ratio.clamp(1 - clip_coef, 1 + clip_coef)).mean()
            loss = pg_loss - ent_coef * entropy.mean() + vf_coef * nn.functional.mse_loss(newvalue, mb_returns)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), max_grad_norm)
            optimizer.step()
    player = SimpleNamespace(name="ppo", act=lambda obs, masks, rng: get_action_and_value(obs, masks)[0].numpy())
    results = [evaluation.evaluate(env_id, who, episodes=100) for who in (player, policy.load(env_id, "random"))]
    print("mean score {:,.0f}, random {:,.0f}, on the same 100 games".format(*(each.score_mean for each in results)))
