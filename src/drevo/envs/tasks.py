"""The tasks: files, sizes, rewards, ends and beginnings of gymnasium's MuJoCo environments, version 5.

What is observed and rewarded is written over scalars, and compiled: q and v in MuJoCo's order (quaternions
w x y z, linear rates of free joints along the world's axes). A choice is 1.0 or 0.0.

  Towers et al. 2024, "Gymnasium: a standard interface for reinforcement learning environments".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import inf, pi
from typing import Any, NamedTuple

from ..mechanics.scalar import Scalar, Vector, clip, cos, dot, sin, sqrt, where
from ..mechanics.spatial import Vec
from ..model.contact import Geom
from .randomise import Randomise

MAX_OBSERVED_RATE = 10.0  # what rates are cut to in observations of some tasks
MAX_HEALTHY_STATE = 100.0  # of a hopper's state, while it is healthy


class Look:
    """Results of MuJoCo's last evaluation, which is not of the state after the step; numbers in a row, which are
    asked for when a task looks at them.

    bodies (links, 3): places of links; centre (3,): of mass; inertias (links, 10) and rates (links, 6) about it;
    wrenches (links, 6): torque about it and force of contacts; efforts (nv,): of actuators; constraint (nv,): of
    contacts and limits; positions (nq,): q, the robot's. Of a step: forces (places, 3) of contacts, and touches
    (places, 6), their points and normals; sensordata: what `Task.sensors` read; ranges: how far rays go, after the
    step; earlier (nv,): the rates as it began, elapsed (1,): steps, previous (nu,): the action before, commands:
    what a task has drawn, act (na,): the activations of actuators; velocities, accelerations (nv,) at `positions`,
    along the axes of free joints.
    """

    def __init__(self, ask: Callable[[str], Vector]) -> None:
        self._ask, self.asked = ask, dict[str, Vector]()

    def __getattr__(self, part: str) -> Vector:
        if part not in self.asked:
            self.asked[part] = self._ask(part)
        return self.asked[part]


class Moment(NamedTuple):
    """The data that a task sees after a step. before: q as the step began. seconds: of the step.

    seen, seen_before: what was left of evaluations, of tasks that look at it.
    """

    q: Vector
    v: Vector
    before: Vector
    action: Vector
    seconds: float
    seen: Look
    seen_before: Look


class Outcome(NamedTuple):
    """The reward, whether an episode has ended, and what infos say, by name."""

    reward: Scalar
    terminated: Scalar
    infos: dict[str, Scalar]


TaskNumbers = Mapping[str, Any]
Start = tuple[list[Scalar], list[Scalar]]


class Rangefinders(NamedTuple):
    """Rays that look at solids and a height field. rays: starts and ways of length one, at q. near: how far such a
    ray goes to the solids, NOTHING_NEAR if to none. Its field's axes are the world's."""

    field: Geom
    rays: Callable[[Vector], Sequence[tuple[Vec, Vec]]]
    near: Callable[[Vector, Vec, Vec], Scalar]


class Chance:
    """Random numbers, in the order in which they are asked for, out of those that are given: even ones of [0, 1),
    and -2 ln(1 - u) of such. It counts what it gave. commands: what has been drawn for the episode by then.

      Box and Muller 1958, "A note on the generation of random normal deviates".
    """

    def __init__(
        self, even: Callable[[int], Scalar], logs: Callable[[int], Scalar], commands: Callable[[], Vector] = tuple
    ) -> None:  # fmt: skip
        self.even, self.log, self.commands = even, logs, cache(commands)
        self.evens = self.normals = 0

    def uniform(self, low: Scalar, high: Scalar) -> Scalar:
        """Draws a number from the uniform distribution over [low, high)."""
        self.evens += 1
        return low + (high - low) * self.even(self.evens - 1)

    def normal(self) -> tuple[Scalar, Scalar]:
        """Two of variance 1."""
        self.normals += 1
        radius, angle = sqrt(self.log(self.normals - 1)), self.uniform(0.0, 2.0 * pi)
        return radius * cos(angle), radius * sin(angle)


@dataclass(frozen=True)
class Task:
    """A task. skip: steps under one action. limit: steps of an episode. numbers: its options, with its defaults.

    source: a file of gymnasium's, or what makes the robot. observe: what is seen of a moment. judge: from a
    moment and the numbers.
    """

    source: str | Callable[[], Any]
    skip: int
    limit: int
    observe: Callable[[Moment], Sequence[Scalar]]
    judge: Callable[[Moment, TaskNumbers], Outcome]
    numbers: TaskNumbers
    normal: bool = False  # the rates of a beginning are normal, not uniform
    looks: tuple[str, ...] = ()  # links, in the order of what is seen of them; "*": all bodies of the file
    ground: Callable[[], object] | None = None  # None: the planes of the model
    aim: Callable[[Chance, list[Scalar], list[Scalar]], Scalar] | None = None  # changes beginnings: see `begin`
    mujoco: bool = True  # q and v are in MuJoCo's order, not in that of the robot
    drive: Callable[..., Sequence[Scalar]] | None = None  # efforts of action, q, v and commands, if it has any;
    # else the actuators of the model
    controls: tuple[tuple[float, ...], ...] | None = None  # least and greatest action; else the file's
    random: Randomise = field(default_factory=Randomise)
    sensors: tuple[str, ...] = ()  # of the model, that are read at the last evaluation
    ranges: Rangefinders | None = None
    rise: float | None = None  # m, steps by which a free base is raised where it begins until nothing presses; 0:
    # another beginning is drawn
    settling: int = 0  # steps without action after a beginning
    placed: Callable[[Vector], Sequence[Scalar]] | None = None  # parameters of the model, of commands
    engaged: tuple[float, float] = (0.0, 0.0)  # least and greatest activation that actuators begin with

    def begin(self, chance: Chance, q0: Sequence[float], nv: int, numbers: TaskNumbers) -> tuple[Start, Scalar]:
        """Uniform noise about the file's q; rates uniform too, or normal. And whether it is one that the task
        takes, 1.0 or 0.0: if not, another one is drawn."""
        width = float(numbers.get("reset_noise_scale", 0.0))
        q, v = [*q0], [0.0] * nv
        if width:
            q = [x + chance.uniform(-width, width) for x in q0]
        if self.normal:
            v = [width * x for _ in range(0, nv, 2) for x in chance.normal()][:nv]
        elif width:
            v = [chance.uniform(-width, width) for _ in range(nv)]
        taken = self.aim(chance, q, v) if self.aim else 1.0
        return (q, v), taken


def _cut(x: Vector, low: float, high: float) -> list[Scalar]:
    return [clip(y, low, high) for y in x]


def within(x: Scalar, bounds: tuple[float, float], closed: bool = False) -> Scalar:
    """1.0 if x is between bounds, or on them where they are closed, else 0.0; all is finite, as steps see to."""
    out: Scalar = 1.0
    for bound, sign in zip(bounds, (1.0, -1.0)):
        if abs(bound) < inf:
            beyond = sign * (x - bound)
            out = where(beyond < 0.0, 0.0, out) if closed else where(beyond > 0.0, out, 0.0)
    return out


def _without_place(skipped: int, cut: bool) -> Callable[[Moment], list[Scalar]]:
    """q but for the first coordinates, and v."""
    return lambda m: [*m.q[skipped:], *(_cut(m.v, -MAX_OBSERVED_RATE, MAX_OBSERVED_RATE) if cut else m.v)]


def _running(healthy: Callable[[Moment, TaskNumbers], Scalar] | None) -> Callable[[Moment, TaskNumbers], Outcome]:
    """Reward of speed along x and of health, less that of effort; an episode ends with health."""

    def judge(m: Moment, n: TaskNumbers) -> Outcome:
        speed = (m.q[0] - m.before[0]) * (1.0 / m.seconds)
        forward = n["forward_reward_weight"] * speed
        effort = n["ctrl_cost_weight"] * dot(m.action, m.action)
        infos = {"x_position": m.q[0], "x_velocity": speed, "reward_forward": forward, "reward_ctrl": -effort}
        if healthy is None:
            return Outcome(forward - effort, 0.0, infos)
        well = healthy(m, n)
        alive = infos["reward_survive"] = n["healthy_reward"] * well
        return Outcome(forward + alive - effort, (1.0 - well) * float(n["terminate_when_unhealthy"]), infos)

    return judge


def _upright(m: Moment, n: TaskNumbers) -> Scalar:
    return within(m.q[1], n["healthy_z_range"]) * within(m.q[2], n["healthy_angle_range"])


def _bounded(m: Moment, n: TaskNumbers) -> Scalar:
    found = _upright(m, n)
    for x in (*m.q[2:], *m.v):
        found = found * within(x, n["healthy_state_range"])
    return found


def _balanced(m: Moment, n: TaskNumbers) -> Outcome:
    """A reward of 1 while the pole stands."""
    stands = within(m.q[1], (-0.2, 0.2), closed=True)
    return Outcome(stands, 1.0 - stands, {"reward_survive": stands})


def _crawling(m: Moment) -> list[Scalar]:
    """An ant's q but for its place, v, and the wrenches of contacts on its bodies."""
    return [*m.q[2:], *m.v, *_cut(m.seen.wrenches, -1.0, 1.0)]


def _crawled(m: Moment, n: TaskNumbers) -> Outcome:
    """Reward of the trunk's speed along x and of health, less that of effort and contact."""
    speed = (m.seen.bodies[0] - m.seen_before.bodies[0]) * (1.0 / m.seconds)
    wrenches = _cut(m.seen.wrenches, *n["contact_force_range"])
    contact = n["contact_cost_weight"] * dot(wrenches, wrenches)
    return _rewarded(m, n, speed, within(m.q[2], n["healthy_z_range"], closed=True), contact)


def _walked(m: Moment, n: TaskNumbers) -> Outcome:
    """Reward of the mass centre's speed along x and of health, less that of effort and contact."""
    speed = (m.seen.centre[0] - m.seen_before.centre[0]) * (1.0 / m.seconds)
    low, high = n["contact_cost_range"]
    contact = n["contact_cost_weight"] * dot(m.seen.wrenches, m.seen.wrenches)
    contact = where(contact > high, high, contact)  # and is not negative
    contact = where(contact < low, low, contact) if low > 0.0 else contact
    return _rewarded(m, n, speed, within(m.q[2], n["healthy_z_range"]), contact)


def _rewarded(m: Moment, n: TaskNumbers, speed: Scalar, well: Scalar, contact: Scalar) -> Outcome:
    forward = n["forward_reward_weight"] * speed
    effort, alive = n["ctrl_cost_weight"] * dot(m.action, m.action), n["healthy_reward"] * well
    infos = {"x_position": m.q[0], "y_position": m.q[1], "x_velocity": speed, "reward_forward": forward}
    infos |= {"reward_ctrl": -effort, "reward_contact": -contact, "reward_survive": alive}
    ended = (1.0 - well) * float(n["terminate_when_unhealthy"])
    return Outcome(forward + alive - (effort + contact), ended, infos)


def _standing(m: Moment) -> list[Scalar]:
    """A humanoid's q but for its place, v, inertias and rates of its bodies, efforts, wrenches of contacts."""
    s = m.seen
    return [*m.q[2:], *m.v, *s.inertias, *s.rates, *s.efforts[6:], *s.wrenches]


def _on_cart(m: Moment) -> list[Scalar]:
    """Two poles on a cart: its place, sines and cosines of angles, rates, and what constrains the cart."""
    angles = m.q[1:]
    return [
        m.q[0],
        *map(sin, angles),
        *map(cos, angles),
        *_cut([*m.v, m.seen.constraint[0]], -MAX_OBSERVED_RATE, MAX_OBSERVED_RATE),
    ]


def _on_top(m: Moment, n: TaskNumbers) -> Outcome:
    """A reward while the tip is above 1 m, less that of its distance from 2 m and of rates."""
    x, y = m.seen.bodies[0], m.seen.bodies[2]
    stands = where(y > 1.0, 1.0, 0.0)
    alive, above = n["healthy_reward"] * stands, y - 2.0
    distance = 0.01 * (x * x) + above * above
    rates = 1e-3 * (m.v[1] * m.v[1]) + 5e-3 * (m.v[2] * m.v[2])
    infos = {"reward_survive": alive, "distance_penalty": -distance, "velocity_penalty": -rates}
    return Outcome(alive - distance - rates, 1.0 - stands, infos)


def _way(m: Moment) -> list[Scalar]:
    """From a reacher's target to its finger tip."""
    return [x - y for x, y in zip(m.seen.bodies[:3], m.seen.bodies[3:6])]


def _reaching(m: Moment) -> list[Scalar]:
    angles = m.q[:2]
    return [*map(cos, angles), *map(sin, angles), *m.q[2:], *m.v[:2], *_way(m)[:2]]


def _reached(m: Moment, n: TaskNumbers) -> Outcome:
    """Less the distance from the target, and effort."""
    distance = n["reward_dist_weight"] * sqrt(dot(_way(m), _way(m)))
    effort = n["reward_control_weight"] * dot(m.action, m.action)
    return Outcome(-distance - effort, 0.0, {"reward_dist": -distance, "reward_ctrl": -effort})


def _at_a_target(chance: Chance, q: list[Scalar], v: list[Scalar]) -> Scalar:
    """A target at rest anywhere within 0.2 m, and an arm nearly at rest."""
    angle, radius = chance.uniform(-pi, pi), 0.2 * sqrt(chance.uniform(0.0, 1.0))
    q[-2:] = radius * cos(angle), radius * sin(angle)
    v[:] = [*(chance.uniform(-0.005, 0.005) for _ in v[:-2]), 0.0, 0.0]
    return 1.0


def _pushing(m: Moment) -> list[Scalar]:
    """An arm's q and v, and where its tip, the object and the goal are."""
    return [*m.q[:7], *m.v[:7], *m.seen.bodies]


def _pushed(m: Moment, n: TaskNumbers) -> Outcome:
    """Less the distances of the object from the tip and from the goal, and effort."""
    tip, thing, goal = (Vec(*m.seen.bodies[k : k + 3]) for k in (0, 3, 6))
    near, far = thing - tip, thing - goal
    infos = {
        "reward_dist": -(n["reward_dist_weight"] * sqrt(far.dot(far))),
        "reward_ctrl": -(n["reward_control_weight"] * dot(m.action, m.action)),
        "reward_near": -(n["reward_near_weight"] * sqrt(near.dot(near))),
    }
    return Outcome(sum(infos.values(), 0.0), 0.0, infos)


def _at_an_object(chance: Chance, q: list[Scalar], v: list[Scalar]) -> Scalar:
    """An arm nearly at rest where the file has it, an object at rest more than 0.17 m from its goal."""
    x, y = chance.uniform(-0.3, 0.0), chance.uniform(-0.2, 0.2)
    q[-4:] = x, y, 0.0, 0.0
    v[:] = [*(chance.uniform(-0.005, 0.005) for _ in v[:-4]), *(0.0,) * 4]
    return where(x * x + y * y > 0.17**2, 1.0, 0.0)


RUNNING = {"forward_reward_weight": 1.0, "ctrl_cost_weight": 1e-3}
HEALTHY = {**RUNNING, "healthy_reward": 1.0, "terminate_when_unhealthy": True, "reset_noise_scale": 5e-3}
HOPPER = {
    "healthy_state_range": (-MAX_HEALTHY_STATE, MAX_HEALTHY_STATE),
    "healthy_z_range": (0.7, inf),
    "healthy_angle_range": (-0.2, 0.2),
}
WALKER = {"healthy_z_range": (0.8, 2.0), "healthy_angle_range": (-1.0, 1.0)}

ANT: dict[str, Any] = {"ctrl_cost_weight": 0.5, "contact_cost_weight": 5e-4, "contact_force_range": (-1.0, 1.0)}
ANT |= {"healthy_z_range": (0.2, 1.0), "reset_noise_scale": 0.1}
HUMANOID: dict[str, Any] = {"forward_reward_weight": 1.25, "ctrl_cost_weight": 0.1, "healthy_reward": 5.0}
HUMANOID |= {"contact_cost_weight": 5e-7, "contact_cost_range": (-inf, 10.0)}
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
    "Swimmer-v5": Task(
        "swimmer.xml", 4, 1000, _without_place(2, False), _running(None),
        {**RUNNING, "ctrl_cost_weight": 1e-4, "reset_noise_scale": 0.1},
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
    "Pusher-v5": Task(
        "pusher_v5.xml", 5, 100, _pushing, _pushed,
        {"reward_near_weight": 0.5, "reward_dist_weight": 1.0, "reward_control_weight": 0.1},
        looks=("tips_arm", "object", "goal"), aim=_at_an_object,
    ),
    "Ant-v5": Task(
        "ant.xml", 5, 1000, _crawling, _crawled, {**HEALTHY, **ANT}, normal=True, looks=("*",)
    ),
    "Humanoid-v5": Task("humanoid.xml", 5, 1000, _standing, _walked, {**HEALTHY, **HUMANOID}, looks=("*",)),
}  # fmt: skip
