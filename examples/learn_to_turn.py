"""A hand learns to turn a block: PPO on the Shadow hand, then the same policy in MuJoCo itself.

pip install drevo[torch,rl] mujoco gymnasium-robotics && python examples/learn_to_turn.py

The hand is that of gymnasium-robotics, as MuJoCo has compiled it, and the PPO that of learn_to_run.py. A block of
5 cm lies in the palm, turned by any angle; it shall turn about the vertical without an end, and not be dropped. A
return of 6 is nearly one turn in the 8 s of an episode. Needs some four minutes of one processor.

  Andrychowicz et al. 2020, "Learning dexterous in-hand manipulation".
"""

from __future__ import annotations

import argparse
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch
from learn_to_run import ENVS, Agent, learned

import drevo
from drevo.envs import Env, State

HAND, SKIP, LIMIT = 24, 10, 200  # coordinates of the hand; steps of 4 ms of an action; actions of an episode
# rad: the joints with the servos in the middle of their ranges
CURLED = (-0.17, -0.19, *(0.0, 0.77, 0.79, 0.76) * 2, 0.0, 0.72, 0.74, 0.7, 0.38, 0.0, 0.82, 0.8, 0.77,
          0.0, 0.59, -0.01, 0.0, -0.79)  # fmt: skip
REST = (1.0099, 0.879, 0.166)  # m, where the block then lies
LOW, FAR = 0.036, 0.06  # m: a block so far under that place, or beside it, has been dropped
SECONDS = 0.04  # of an action
FASTEST = 0.2  # rad of an action that are counted
DROP, JERK, SPREAD = 1.0, 5e-4, 0.3  # what a drop costs, and changes of actions; the spread of these at first


def scene() -> mujoco.MjModel:
    """The hand and the block, without what is only looked at; servos take -1 to 1 over their ranges."""
    package = find_spec("gymnasium_robotics")
    assert package and package.submodule_search_locations
    assets = Path(package.submodule_search_locations[0]) / "envs" / "assets"
    spec = mujoco.MjSpec.from_file(str(assets / "hand" / "manipulate_block.xml"))
    spec.delete(spec.body("target"))
    for geom in list(spec.geoms):
        if geom.type == mujoco.mjtGeom.mjGEOM_MESH or geom.name == "object_hidden":
            spec.delete(geom)
    model = spec.compile()
    low, high = model.actuator_ctrlrange.T.copy()
    stiffness = model.actuator_gainprm[:, 0].copy()
    model.actuator_gainprm[:, 0] = stiffness * (high - low) / 2.0
    model.actuator_biasprm[:, 0] = stiffness * (high + low) / 2.0
    model.actuator_ctrlrange[:] = -1.0, 1.0
    model.opt.timestep, model.opt.iterations, model.opt.tolerance = SECONDS / SKIP, 100, 0.0
    return model


# -- the task, over scalars --------------------------------------------------------------------------------


def symmetric(R: Any) -> list[Any]:
    """What a cube's symmetries leave of its rotation: four times the angle about the vertical, how it leans."""
    x, y, z = (R[k][:3] for k in range(3))
    return [
        sum(a**4 - 6.0 * a * a * b * b + b**4 for a, b in zip(x, y)),
        sum(4.0 * a * b * (a * a - b * b) for a, b in zip(x, y)),
        sum(a * c * c * c for a, c in zip(x, z)),
        sum(b * c * c * c for b, c in zip(y, z)),
    ]


def turn(new: Any, old: Any) -> Any:
    """The sine of the angle about the vertical from an old rotation to a new one."""
    return 0.5 * sum(new[1][k] * old[0][k] - new[0][k] * old[1][k] for k in range(3))


def observation(s: State) -> list[Any]:
    place = [10.0 * (a - b) for a, b in zip(s.position("object"), REST)]
    hand = [s.q[:HAND], s.v[:HAND], s.previous_action]
    return [*hand, place, s.velocity("object"), symmetric(s.pose("object"))]


def dropped(s: State) -> list[Any]:
    x, y, z = (a - b for a, b in zip(s.position("object"), REST))
    return [z < -LOW, x * x + y * y > FAR * FAR]


def reward(s: State) -> dict[str, Any]:
    low, far = dropped(s)
    turned = drevo.clip(turn(s.pose("object"), s.before.pose("object")), -FASTEST, FASTEST)
    jerk = sum((a - b) * (a - b) for a, b in zip(s.action, s.previous_action))
    fell = drevo.where(low, 1.0, drevo.where(far, 1.0, 0.0))
    return {"reward_turn": turned, "reward_drop": -DROP * fell, "reward_smooth": -JERK * jerk}


def start(random: Any, q: list[Any]) -> tuple[list[Any], list[float]]:
    """The block a centimetre above its place, turned by any angle."""
    half = random.uniform(-np.pi / 2, np.pi / 2)
    x, y = (a + random.uniform(-0.005, 0.005) for a in REST[:2])
    return [*CURLED, x, y, REST[2] + 0.01, 0.0, 0.0, drevo.sin(half), drevo.cos(half)], [0.0] * (HAND + 6)


def turning(model: mujoco.MjModel, num_envs: int, **options: Any) -> Env:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", drevo.DrevoWarning)  # ranges of tendons are held as MuJoCo holds them
        robot = drevo.load(model)
    given: dict[str, Any] = {"ground": None, "repeat": SKIP, "limit": LIMIT, **options}
    return Env(robot, reward, observation, reset=start, terminated=dropped, num_envs=num_envs, **given)


# -- the same in MuJoCo ------------------------------------------------------------------------------------


class Twin:
    """The task in MuJoCo's C, one hand."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self.model, self.data = model, mujoco.MjData(model)

    def put(self, q: np.ndarray, v: np.ndarray) -> None:
        """q, v: as Drevo has them, with a quaternion x y z w and linear rates along the block's axes."""
        d = self.data
        mujoco.mj_resetData(self.model, d)
        d.qpos[:], d.qvel[:] = q, v
        d.qpos[HAND + 3 :] = np.roll(q[HAND + 3 :], 1)
        R = np.zeros(9)
        mujoco.mju_quat2Mat(R, d.qpos[HAND + 3 :])
        d.qvel[HAND : HAND + 3] = R.reshape(3, 3) @ v[HAND : HAND + 3]
        self.previous = np.zeros(self.model.nu)
        self.R = R.reshape(3, 3).copy()

    def observed(self) -> np.ndarray:
        d, R = self.data, self.R
        place = 10.0 * (d.qpos[HAND : HAND + 3] - REST)
        rates = (d.qvel[HAND : HAND + 3], R @ d.qvel[HAND + 3 :])
        return np.concatenate((d.qpos[:HAND], d.qvel[:HAND], self.previous, place, *rates, symmetric(R)))

    def step(self, action: np.ndarray, count: int = SKIP) -> tuple[float, bool]:
        """The reward of an action, and whether the block has been dropped."""
        d, old = self.data, self.R
        d.ctrl[:] = action
        mujoco.mj_step(self.model, d, count)
        new = np.zeros(9)
        mujoco.mju_quat2Mat(new, d.qpos[HAND + 3 :])
        self.R = new.reshape(3, 3).copy()
        off = d.qpos[HAND : HAND + 3] - REST
        fell = bool(off[2] < -LOW or off[:2] @ off[:2] > FAR * FAR)
        jerk = JERK * ((action - self.previous) ** 2).sum()
        return float(np.clip(turn(self.R, old), -FASTEST, FASTEST) - DROP * fell - jerk), fell

    def state(self) -> np.ndarray:
        """q and v as Drevo has them."""
        q, v = self.data.qpos.copy(), self.data.qvel.copy()
        q[HAND + 3 :] = np.roll(q[HAND + 3 :], -1)
        v[HAND : HAND + 3] = self.R.T @ v[HAND : HAND + 3]
        return np.concatenate((q, v))


def returns_here(agent: Agent, model: mujoco.MjModel, noise: np.ndarray) -> tuple[np.ndarray, Any, Any]:
    """Returns of episodes in Drevo, the states where they began, and all states with their actions.

    noise: (LIMIT, episodes, actions), of the actions that are drawn.
    """
    count = noise.shape[1]
    envs = turning(model, count, autoreset="Disabled")
    seen, _ = envs.reset(seed=1000)
    first, total, going, steps = (envs.q, envs.v), np.zeros(count), np.ones(count, bool), []
    for drawn in noise:
        before, action = (envs.q, envs.v), agent.best(seen, drawn)
        seen, got, over, *_ = envs.step(action)
        steps += [(q, v, a) for q, v, a, on in zip(*before, action, going) if on]
        total += got * going
        going &= ~over
    return total, first, steps


def returns_in_mujoco(
    agent: Agent, model: mujoco.MjModel, noise: np.ndarray, q: np.ndarray, v: np.ndarray
) -> np.ndarray:
    """Of episodes from the same states, with the same noise."""
    twin, total = Twin(model), np.zeros(len(q))
    for k in range(len(q)):
        twin.put(q[k], v[k])
        last = np.zeros(model.nu)
        for drawn in noise[:, k]:
            action = agent.best(twin.observed()[None], drawn)[0]
            twin.previous, last = last, action
            got, fell = twin.step(action)
            total[k] += got
            if fell:
                break
    return total


def apart(model: mujoco.MjModel, steps: Any, count: int) -> np.ndarray:
    """How far states are from MuJoCo's after so many steps of 4 ms, from the same ones under the same actions."""
    q, v, actions = (np.array(x) for x in zip(*steps))
    envs, twin, out = turning(model, len(q), repeat=count, autoreset="Disabled"), Twin(model), np.zeros(len(q))
    envs.reset(seed=0)
    envs.put(q, v)
    envs.step(actions)
    for k, mine in enumerate(np.concatenate((envs.q, envs.v), 1)):
        twin.put(q[k], v[k])
        twin.step(actions[k], count)
        out[k] = np.abs(mine - twin.state()).max()
    return out


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("--steps", type=int, default=1_200_000)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--episodes", type=int, default=32)
    given = words.parse_args()
    torch.set_num_threads(1)
    model = scene()
    before = time.perf_counter(), time.process_time()
    agent = learned(turning(model, ENVS, autoreset="SameStep"), given.seed, given.steps, SPREAD)
    took, busy = time.perf_counter() - before[0], time.process_time() - before[1]
    print(f"learned in {took / 60.0:.1f} minutes, {busy / 60.0:.1f} of one processor")
    compared(agent, model, given.episodes)


def compared(agent: Agent, model: mujoco.MjModel, episodes: int) -> None:
    """Prints returns in both, and how far steps are apart."""
    drawn = np.random.default_rng(0).normal(size=(LIMIT, episodes, model.nu))
    for name, noise in (("means of actions", 0.0 * drawn), ("actions as drawn", drawn)):
        here, (q, v), steps = returns_here(agent, model, noise)
        there = returns_in_mujoco(agent, model, noise, q, v)
        told = " and in MuJoCo ".join(f"{x.mean():.2f} +- {x.std() / episodes**0.5:.2f}" for x in (here, there))
        print(f"{name}, {episodes} episodes: {len(steps) / episodes * SECONDS:.1f} s each, return {told}")
    for count in (1, SKIP):
        off = apart(model, steps, count)
        middle, most = np.median(off), np.quantile(off, 0.9)
        print(f"{count:2d} steps of 4 ms from each of {len(off)} states: within 1e-9 of MuJoCo's "
              f"{np.mean(off < 1e-9):.1%}, median {middle:.0e}, nine of ten {most:.0e}")  # fmt: skip


if __name__ == "__main__":
    main()
