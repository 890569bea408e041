"""A cheetah learns to run: PPO in plain PyTorch over compiled steps, then the same policy in MuJoCo itself.

pip install drevo[torch,rl] && python examples/learn_to_run.py        (in a clone: make learn)

Needs some two minutes of one processor for each of three seeds.

  Schulman et al. 2017, "Proximal policy optimization algorithms".
  Andrychowicz et al. 2021, "What matters for on-policy deep actor-critic methods? A large-scale study".
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

import drevo

TASK, EPISODE = "HalfCheetah-v5", 1000
ENVS, HORIZON, EPOCHS, MINIBATCH = 64, 128, 6, 1024
RATE, CLIP, DISCOUNT, TRACE = 6e-4, 0.2, 0.99, 0.95  # of learning; of ratios; gamma and lambda
GRADIENT, HIDDEN, SPREAD = 0.5, 64, 0.6  # the largest norm; units of a layer; of actions at first


class Moments:
    """Mean and variance of all that has been seen."""

    def __init__(self, *shape: int) -> None:
        self.count, self.mean, self.variance = 1e-4, np.zeros(shape), np.ones(shape)

    def add(self, x: np.ndarray) -> None:
        share = len(x) / (self.count + len(x))
        way = x.mean(0) - self.mean
        self.variance += share * (x.var(0) - self.variance + (1.0 - share) * way**2)
        self.mean, self.count = self.mean + share * way, self.count + len(x)


def layers(inputs: int, outputs: int, gain: float) -> nn.Sequential:
    """tanh, orthogonal weights; those of the last layer times gain."""
    made = nn.Sequential(
        nn.Linear(inputs, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, outputs)
    )
    for layer, size in zip(made[::2], (2**0.5, 2**0.5, gain)):
        nn.init.orthogonal_(layer.weight, size)
        nn.init.zeros_(layer.bias)
    return made


class Agent(nn.Module):
    """A normal distribution of actions about a mean, and the value of a state, of observations made alike."""

    def __init__(self, size: int, actions: int, spread: float) -> None:
        super().__init__()
        self.mean, self.value = layers(size, actions, 0.01), layers(size, 1, 1.0)
        self.log_spread = nn.Parameter(torch.full((actions,), float(np.log(spread))))
        self.seen = Moments(size)

    def alike(self, observed: np.ndarray) -> Tensor:
        x = (observed - self.seen.mean) / np.sqrt(self.seen.variance + 1e-8)
        return torch.from_numpy(np.clip(x, -10.0, 10.0).astype(np.float32))

    def log_chance(self, mean: Tensor, action: Tensor) -> Tensor:
        """But for a constant."""
        return -(0.5 * ((action - mean) / self.log_spread.exp()) ** 2 + self.log_spread).sum(-1)

    @torch.no_grad()
    def best(self, observed: np.ndarray, noise: np.ndarray | float = 0.0) -> np.ndarray:
        """The mean, or with normal noise of variance 1 an action as it is drawn while learning."""
        spread = self.log_spread.exp().numpy()
        return np.clip(self.mean(self.alike(observed)).numpy() + spread * noise, -1.0, 1.0)


class Batch(NamedTuple):
    """(HORIZON ENVS, ..) of each."""

    x: Tensor
    action: Tensor
    log_chance: Tensor
    advantage: Tensor
    target: Tensor


class Collector:
    """Runs the environments on, from where they were."""

    def __init__(self, agent: Agent, envs: Any, seed: int) -> None:
        self.agent, self.envs = agent, envs
        self.observed, _ = envs.reset(seed=seed)
        self.returns, self.scale = np.zeros(ENVS), Moments()
        self.earned, self.episodes = np.zeros(ENVS), deque([0.0], ENVS)

    @torch.no_grad()
    def batch(self) -> Batch:
        agent, spread = self.agent, self.agent.log_spread.exp()
        parts, rewards, ended = [], np.zeros((HORIZON, ENVS)), np.zeros((HORIZON, ENVS))
        for k in range(HORIZON):
            agent.seen.add(self.observed)
            x = agent.alike(self.observed)
            mean = agent.mean(x)
            action = mean + spread * torch.randn_like(mean)
            parts.append((x, action, agent.log_chance(mean, action), agent.value(x)[:, 0]))
            self.observed, reward, over, cut, infos = self.envs.step(action.clamp(-1.0, 1.0).numpy())
            rewards[k], ended[k] = self._scaled(reward, over | cut), over | cut
            if cut.any():  # what would have followed had time not run out
                left = agent.value(agent.alike(infos["final_obs"][cut]))[:, 0].numpy()
                rewards[k, cut] += DISCOUNT * left
        x, action, log_chance, value = (torch.stack(part) for part in zip(*parts))
        last = agent.value(agent.alike(self.observed))[:, 0]
        advantage = advantages(rewards, ended, torch.cat((value, last[None])).numpy())
        target = torch.from_numpy(advantage) + value
        flat = [y.flatten(0, 1) for y in (x, action, log_chance, torch.from_numpy(advantage), target)]
        return Batch(*flat)

    def _scaled(self, reward: np.ndarray, ended: np.ndarray) -> np.ndarray:
        """By the spread of discounted returns."""
        self.returns = self.returns * DISCOUNT + reward
        self.scale.add(self.returns)
        self.returns[ended] = 0.0
        self.earned += reward
        if ended.any():
            self.episodes.extend(self.earned[ended].tolist())
            self.earned[ended] = 0.0
        return reward / np.sqrt(self.scale.variance + 1e-8)


def advantages(rewards: np.ndarray, ended: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Generalised ones (Schulman et al. 2016); values: one more than rewards."""
    found, follows = np.zeros(rewards.shape, np.float32), np.zeros(rewards.shape[1])
    for k in reversed(range(len(rewards))):
        on = DISCOUNT * (1.0 - ended[k])
        follows = rewards[k] + on * values[k + 1] - values[k] + TRACE * on * follows
        found[k] = follows
    return found


def improve(agent: Agent, optimiser: torch.optim.Optimizer, batch: Batch) -> None:
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(batch.x)).split(MINIBATCH):
            x, action, log_chance, advantage, target = (y[rows] for y in batch)
            ratio = (agent.log_chance(agent.mean(x), action) - log_chance).exp()
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            gain = torch.minimum(ratio * advantage, ratio.clamp(1.0 - CLIP, 1.0 + CLIP) * advantage)
            loss = 0.5 * ((agent.value(x)[:, 0] - target) ** 2).mean() - gain.mean()
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), GRADIENT)
            optimiser.step()


def learned(envs: Any, seed: int, steps: int, spread: float = SPREAD) -> Agent:
    """What is left after so many steps of ENVS environments together, whose actions are from -1 to 1."""
    torch.manual_seed(seed)
    agent = Agent(envs.single_observation_space.shape[0], envs.single_action_space.shape[0], spread)
    optimiser = torch.optim.Adam(agent.parameters(), RATE, eps=1e-5)
    collector, rounds = Collector(agent, envs, seed), max(1, steps // (ENVS * HORIZON))
    for k in range(rounds):
        optimiser.param_groups[0]["lr"] = RATE * (1.0 - k / rounds)
        improve(agent, optimiser, collector.batch())
        if (k + 1) % max(1, rounds // 10) == 0:
            done, mean = (k + 1) * ENVS * HORIZON, float(np.mean(collector.episodes))
            print(f"  {done:9,d} steps: the last episodes returned {mean:.0f}", flush=True)
    return agent


def returns_here(agent: Agent, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Of episodes in Drevo from states (n, nq), (n, nv)."""
    envs = drevo.envs.make(TASK, num_envs=len(q))
    envs.reset(seed=0)
    envs.put(q, v)
    observed, total = np.concatenate((q[:, 1:], v), 1), np.zeros(len(q))
    for _ in range(EPISODE):
        observed, reward, *_ = envs.step(agent.best(observed))
        total += reward
    return total


def returns_in_mujoco(agent: Agent, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Of episodes in gymnasium's environment from the same states."""
    env: Any = gymnasium.make(TASK)
    total = np.zeros(len(q))
    for k in range(len(q)):
        env.reset(seed=0)
        env.unwrapped.set_state(q[k], v[k])
        observed = np.concatenate((q[k, 1:], v[k]))
        for _ in range(EPISODE):
            observed, reward, *_ = env.step(agent.best(observed[None])[0])
            total[k] += reward
    return total


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    words.add_argument("--steps", type=int, default=2_000_000)
    words.add_argument("--episodes", type=int, default=20)
    given = words.parse_args()
    torch.set_num_threads(1)
    begun = time.perf_counter()
    for seed in given.seeds:
        print(f"seed {seed}", flush=True)
        before = time.perf_counter(), time.process_time()
        agent = learned(drevo.envs.make(TASK, num_envs=ENVS, autoreset="SameStep"), seed, given.steps)
        took, busy = time.perf_counter() - before[0], time.process_time() - before[1]
        start = drevo.envs.make(TASK, num_envs=given.episodes)
        start.reset(seed=1000 + seed)
        here, there = (f(agent, start.q, start.v).mean() for f in (returns_here, returns_in_mujoco))
        print(f"  learned in {took:.0f} s, {busy:.0f} s of one processor: return {here:.0f}, "
              f"in MuJoCo {there:.0f} ({there / here - 1.0:+.1%})", flush=True)  # fmt: skip
    print(f"{len(given.seeds)} seeds in {(time.perf_counter() - begun) / 60.0:.1f} minutes")


if __name__ == "__main__":
    main()
