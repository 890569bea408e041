"""The tasks: files, sizes, rewards, ends and beginnings of gymnasium's MuJoCo environments, version 5.

Everything is over batches: states q (n, nq) and v (n, nv) in MuJoCo's order (quaternions w x y z, linear rates of
free joints along the world's axes).

  Towers et al. 2024, "Gymnasium: a standard interface for reinforcement learning environments".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
SPEED = 10.0  # what rates are cut to in observations of some tasks
MOST = 100.0  # of a hopper's state, while it is healthy


class Seen(NamedTuple):
    """What MuJoCo leaves of its last evaluation, which is not of the state after the step.

    bodies (n, links, 3): places of links; centre (n, 3): of mass; inertias (n, links, 10) and rates (n, links, 6)
    about it; wrenches (n, links, 6): torque about it and force of contacts; efforts (n, nv): of actuators;
    constraint (n, nv): of contacts and limits.
    """

    bodies: Array
    centre: Array
    inertias: Array
    rates: Array
    wrenches: Array
    efforts: Array
    constraint: Array


class Moment(NamedTuple):
    """What a task sees after a step. before: q as the step began. seconds: of the step.

    seen, seen_before: what was left of evaluations, of tasks that look at it.
    """

    q: Array
    v: Array
    before: Array
    action: Array
    seconds: float
    seen: Seen | None = None
    seen_before: Seen | None = None


class Outcome(NamedTuple):
    """rewards (n,), whether an episode has ended (n,), and what infos say, by name."""

    reward: Array
    terminated: Array
    infos: dict[str, Array]


TaskNumbers = Mapping[str, Any]
Start = tuple[Array, Array]


@dataclass(frozen=True)
class Task:
    """A task. skip: steps under one action. limit: steps of an episode. numbers: its options, with its defaults.

    source: a file of gymnasium's, or what makes the robot. observe: from a moment to (n, size). judge: from a
    moment and the numbers.
    """

    source: str | Callable[[], Any]
    skip: int
    limit: int
    observe: Callable[[Moment], Array]
    judge: Callable[[Moment, TaskNumbers], Outcome]
    numbers: TaskNumbers
    normal: bool = False  # the rates of a beginning are normal, not uniform
    looks: tuple[str, ...] = ()  # links, in the order of what is seen of them; "*": all bodies of the file
    ground: Callable[[], object] | None = None  # None: the planes of the model
    aim: Callable[[np.random.Generator, Array, Array], None] | None = None  # changes beginnings

    def begin(self, rng: np.random.Generator, q0: Array, nv: int, count: int, numbers: TaskNumbers) -> Start:
        """Uniform noise about the file's q; rates uniform too, or normal."""
        width = float(numbers["reset_noise_scale"])
        q = q0 + rng.uniform(-width, width, (count, len(q0)))
        shape = (count, nv)
        v = width * rng.standard_normal(shape) if self.normal else rng.uniform(-width, width, shape)
        if self.aim:
            self.aim(rng, q, v)
        return q, v


def _squares(x: Array) -> Array:
    found: Array = (x * x).sum(1)
    return found


def _without_place(skipped: int, cut: bool) -> Callable[[Moment], Array]:
    """q but for the first coordinates, and v."""

    def observe(m: Moment) -> Array:
        v = np.clip(m.v, -SPEED, SPEED) if cut else m.v
        return np.concatenate((m.q[:, skipped:], v), 1)

    return observe


def _running(healthy: Callable[[Moment, TaskNumbers], Array] | None) -> Callable[[Moment, TaskNumbers], Outcome]:
    """Reward of speed along x and of health, less that of effort; an episode ends with health."""

    def judge(m: Moment, n: TaskNumbers) -> Outcome:
        speed = (m.q[:, 0] - m.before[:, 0]) / m.seconds
        forward = n["forward_reward_weight"] * speed
        effort = n["ctrl_cost_weight"] * _squares(m.action)
        infos = {"x_position": m.q[:, 0].copy(), "x_velocity": speed}
        infos |= {"reward_forward": forward, "reward_ctrl": -effort}
        if healthy is None:
            return Outcome(forward - effort, np.zeros(len(m.q), bool), infos)
        well = healthy(m, n)
        infos["reward_survive"] = n["healthy_reward"] * well
        return Outcome(forward + infos["reward_survive"] - effort, ~well & n["terminate_when_unhealthy"], infos)

    return judge


def _within(x: Array, bounds: tuple[float, float]) -> Array:
    low, high = bounds
    found: Array = (low < x) & (x < high)
    return found


def _upright(m: Moment, n: TaskNumbers) -> Array:
    return _within(m.q[:, 1], n["healthy_z_range"]) & _within(m.q[:, 2], n["healthy_angle_range"])


def _bounded(m: Moment, n: TaskNumbers) -> Array:
    state = np.concatenate((m.q[:, 2:], m.v), 1)
    found: Array = _upright(m, n) & _within(state, n["healthy_state_range"]).all(1)
    return found


def _balanced(m: Moment, n: TaskNumbers) -> Outcome:
    """A reward of 1 while the pole stands."""
    stands = np.isfinite(m.q.sum(1) + m.v.sum(1)) & (np.abs(m.q[:, 1]) <= 0.2)
    return Outcome(stands.astype(float), ~stands, {"reward_survive": stands.astype(int)})


def _crawling(m: Moment) -> Array:
    """An ant's q but for its place, v, and the wrenches of contacts on its bodies."""
    assert m.seen
    wrenches = np.clip(m.seen.wrenches, -1.0, 1.0).reshape(len(m.q), -1)
    return np.concatenate((m.q[:, 2:], m.v, wrenches), 1)


def _crawled(m: Moment, n: TaskNumbers) -> Outcome:
    """Reward of the trunk's speed along x and of health, less that of effort and contact."""
    assert m.seen and m.seen_before
    speed = (m.seen.bodies[:, 0, 0] - m.seen_before.bodies[:, 0, 0]) / m.seconds
    low, high = n["contact_force_range"]
    contact = n["contact_cost_weight"] * _squares(np.clip(m.seen.wrenches, low, high).reshape(len(m.q), -1))
    return _rewarded(m, n, speed, _in_height(m, n, closed=True), contact)


def _walked(m: Moment, n: TaskNumbers) -> Outcome:
    """Reward of the mass centre's speed along x and of health, less that of effort and contact."""
    assert m.seen and m.seen_before
    speed = (m.seen.centre[:, 0] - m.seen_before.centre[:, 0]) / m.seconds
    contact = n["contact_cost_weight"] * _squares(m.seen.wrenches.reshape(len(m.q), -1))
    return _rewarded(m, n, speed, _in_height(m, n, closed=False), np.clip(contact, *n["contact_cost_range"]))


def _in_height(m: Moment, n: TaskNumbers, closed: bool) -> Array:
    """The trunk is as high as it should be; of an ant all is finite, and the bounds count too."""
    z, (low, high) = m.q[:, 2], n["healthy_z_range"]
    if not closed:
        return _within(z, (low, high))
    found: Array = np.isfinite(np.concatenate((m.q, m.v), 1)).all(1) & (low <= z) & (z <= high)
    return found


def _rewarded(m: Moment, n: TaskNumbers, speed: Array, well: Array, contact: Array) -> Outcome:
    forward = n["forward_reward_weight"] * speed
    effort, alive = n["ctrl_cost_weight"] * _squares(m.action), n["healthy_reward"] * well
    infos = {"x_position": m.q[:, 0].copy(), "y_position": m.q[:, 1].copy(), "x_velocity": speed}
    infos |= {"reward_forward": forward, "reward_ctrl": -effort, "reward_contact": -contact}
    infos["reward_survive"] = alive
    return Outcome(forward + alive - (effort + contact), ~well & n["terminate_when_unhealthy"], infos)


def _standing(m: Moment) -> Array:
    """A humanoid's q but for its place, v, inertias and rates of its bodies, efforts, wrenches of contacts."""
    assert m.seen
    parts = (m.q[:, 2:], m.v, m.seen.inertias, m.seen.rates, m.seen.efforts[:, 6:], m.seen.wrenches)
    return np.concatenate([part.reshape(len(m.q), -1) for part in parts], 1)


def _on_cart(m: Moment) -> Array:
    """Two poles on a cart: its place, sines and cosines of angles, rates, and what constrains the cart."""
    assert m.seen
    force = np.clip(m.seen.constraint[:, :1], -SPEED, SPEED)
    angles = m.q[:, 1:]
    parts = (m.q[:, :1], np.sin(angles), np.cos(angles), np.clip(m.v, -SPEED, SPEED), force)
    return np.concatenate(parts, 1)


def _on_top(m: Moment, n: TaskNumbers) -> Outcome:
    """A reward while the tip is above 1 m, less that of its distance from 2 m and of rates."""
    assert m.seen
    x, y = m.seen.bodies[:, 0, 0], m.seen.bodies[:, 0, 2]
    fallen = y <= 1.0
    alive = n["healthy_reward"] * ~fallen
    distance, rates = 0.01 * x**2 + (y - 2.0) ** 2, 1e-3 * m.v[:, 1] ** 2 + 5e-3 * m.v[:, 2] ** 2
    infos = {"reward_survive": alive, "distance_penalty": -distance, "velocity_penalty": -rates}
    return Outcome(alive - distance - rates, fallen, infos)


def _way(m: Moment) -> Array:
    """From a reacher's target to its finger tip."""
    assert m.seen
    found: Array = m.seen.bodies[:, 0] - m.seen.bodies[:, 1]
    return found


def _reaching(m: Moment) -> Array:
    angles = m.q[:, :2]
    return np.concatenate((np.cos(angles), np.sin(angles), m.q[:, 2:], m.v[:, :2], _way(m)[:, :2]), 1)


def _reached(m: Moment, n: TaskNumbers) -> Outcome:
    """Less the distance from the target, and effort."""
    distance = n["reward_dist_weight"] * np.sqrt(_squares(_way(m)))
    effort = n["reward_control_weight"] * _squares(m.action)
    infos = {"reward_dist": -distance, "reward_ctrl": -effort}
    return Outcome(-distance - effort, np.zeros(len(m.q), bool), infos)


def _at_a_target(rng: np.random.Generator, q: Array, v: Array) -> None:
    """A target at rest anywhere within 0.2 m, and an arm nearly at rest."""
    angle, radius = rng.uniform(-np.pi, np.pi, len(q)), 0.2 * np.sqrt(rng.uniform(0.0, 1.0, len(q)))
    q[:, -2:] = np.stack((radius * np.cos(angle), radius * np.sin(angle)), 1)
    v[:] = rng.uniform(-0.005, 0.005, v.shape)
    v[:, -2:] = 0.0


RUNNING = {"forward_reward_weight": 1.0, "ctrl_cost_weight": 1e-3}
HEALTHY = {**RUNNING, "healthy_reward": 1.0, "terminate_when_unhealthy": True, "reset_noise_scale": 5e-3}
HOPPER = {
    "healthy_state_range": (-MOST, MOST),
    "healthy_z_range": (0.7, np.inf),
    "healthy_angle_range": (-0.2, 0.2),
}
WALKER = {"healthy_z_range": (0.8, 2.0), "healthy_angle_range": (-1.0, 1.0)}

ANT: dict[str, Any] = {"ctrl_cost_weight": 0.5, "contact_cost_weight": 5e-4, "contact_force_range": (-1.0, 1.0)}
ANT |= {"healthy_z_range": (0.2, 1.0), "reset_noise_scale": 0.1}
HUMANOID: dict[str, Any] = {"forward_reward_weight": 1.25, "ctrl_cost_weight": 0.1, "healthy_reward": 5.0}
HUMANOID |= {"contact_cost_weight": 5e-7, "contact_cost_range": (-np.inf, 10.0)}
HUMANOID |= {"healthy_z_range": (1.0, 2.0), "reset_noise_scale": 1e-2}

GYMNASIUM: dict[str, Task] = {
    "HalfCheetah-v5": Task(
        "half_cheetah.xml", 5, 1000, _without_place(1, False), _running(None),
        {**RUNNING, "ctrl_cost_weight": 0.1, "reset_noise_scale": 0.1}, normal=True,
    ),
    "Hopper-v5": Task(
        "hopper.xml", 4, 1000, _without_place(1, True), _running(_bounded), {**HEALTHY, **HOPPER}
    ),
    "Walker2d-v5": Task(
        "walker2d_v5.xml", 4, 1000, _without_place(1, True), _running(_upright), {**HEALTHY, **WALKER}
    ),
    "InvertedPendulum-v5": Task(
        "inverted_pendulum.xml", 2, 1000, _without_place(0, False), _balanced, {"reset_noise_scale": 0.01}
    ),
    "InvertedDoublePendulum-v5": Task(
        "inverted_double_pendulum.xml", 5, 1000, _on_cart, _on_top,
        {"healthy_reward": 10.0, "reset_noise_scale": 0.1}, normal=True, looks=("pole2 0 0 0.6",),
    ),
    "Reacher-v5": Task(
        "reacher.xml", 2, 50, _reaching, _reached,
        {"reward_dist_weight": 1.0, "reward_control_weight": 1.0, "reset_noise_scale": 0.1},
        looks=("fingertip", "target"), aim=_at_a_target,
    ),
    "Ant-v5": Task(
        "ant.xml", 5, 1000, _crawling, _crawled, {**HEALTHY, **ANT}, normal=True, looks=("*",)
    ),
    "Humanoid-v5": Task("humanoid.xml", 5, 1000, _standing, _walked, {**HEALTHY, **HUMANOID}, looks=("*",)),
}  # fmt: skip
