"""A hop planned: a push with both feet, a flight in which nothing holds the robot, a landing that is taken up.

The centre of mass goes up and down over the middle of the feet, along polynomials on the ground and the parabola
of free fall between them; the pelvis is moved until the robot's centre of mass is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..errors import NumericsError
from ..io.given import Array, number
from ..robot.face import Robot
from .feet import Corners, Leg, legs, stand
from .gait import Gait, quintic, swing
from .ground import needed
from .phase import GaitPlan, Phase, Stretch, resting
from .plan import upright

RISE = 0.04  # m, of the centre of mass from standing to take-off
LIFT_OFF_SHARE = (
    0.25  # of its weight: how hard the robot presses on the ground when it leaves it, and when it is back
)
CLOSED_HOP, MAX_HOP_CORRECTIONS = (
    1e-9,
    60,
)  # m: how well the centre of mass follows; each correction leaves less than half
HOP = Gait("hop", length=1.0, lift=0.03, single=0.16, double=0.5, settle=1.0, height=0.86, dt=0.005)


def hop(robot: Robot, flight: float = HOP.single, feet: Mapping[str, Corners] | None = None) -> GaitPlan:
    """A hop on the spot with so many seconds in the air, from standing to standing.

    Raises InputError, and NumericsError where the legs are too short for the push, a foot would pull, or the
    robot would tip.
    """
    number("flight", flight, "0.02 to 0.5 s in the air", lambda x: 0.02 <= x <= 0.5)
    two, n, m = legs(robot, feet), HOP.ticks("double"), round(flight / HOP.dt)
    pelvis, places = upright(two, HOP)
    start = np.array(robot.center_of_mass(stand(robot, two, pelvis, places)))
    start[:2] = places[:, :2].mean(axis=0)
    air = np.stack([swing(HOP, place, place, m) for place in places], axis=2)
    both, ground, first = tuple(range(len(two))), resting(places, n), 0
    phases: list[Phase] = []
    ways = _height_profiles(-robot.model.gravity[2], m, n)
    for stands, feet_way, way in zip((both, (), both, both), (ground, air, ground, ground), ways):
        wanted = np.zeros((3, len(way[0]), 3))
        wanted[0], wanted[:, :, 2] = start, way
        wanted[0, :, 2] += start[2]
        phase = _phase(robot, two, Stretch(stands, first, feet_way), wanted, pelvis[:3] - start)
        phases.append(replace(phase, leans=len(phases) < 3))
        first += len(phase.step)
    out = GaitPlan(robot, two, "the hop", tuple(phases), HOP)
    out.refuse()
    return out


def _height_profiles(g: float, m: int, n: int) -> list[Array]:
    """(3, ticks + 1) of the height of the centre of mass: push, flight, landing, standing."""
    h, still = HOP.dt, (0.0, 0.0, 0.0)
    t, speed, pull = h * np.arange(max(m, n) + 1), g * h * m / 2, (LIFT_OFF_SHARE - 1.0) * g
    fall = np.array([RISE + speed * t - g / 2 * t**2, speed - g * t, np.full_like(t, -g)])
    push = quintic(still, (RISE, speed, pull), n * h, t[: n + 1])
    land = quintic((RISE, -speed, pull), still, n * h, t[: n + 1])
    return [push, fall[:, : m + 1], land, np.zeros_like(land)]


def _phase(robot: Robot, two: Sequence[Leg], s: Stretch, wanted: Array, offset: Array) -> Phase:
    """With the pelvis where it brings the centre of mass to (3, n + 1, 3)."""
    ticks, mass = Stretch(s.stands, 0, s.feet), sum(l.inertial.mass for l in robot.model.links if l.inertial)
    pelvis, gravity = wanted.copy(), np.array(robot.model.gravity)
    pelvis[0] += offset
    for _ in range(MAX_HOP_CORRECTIONS):
        motion = ticks.phase(robot, two, HOP.dt, np.pad(pelvis, ((0, 0), (0, 0), (0, 1))))
        force = needed(robot, motion.q, robot.inverse_dynamics(motion.q, motion.v, motion.a))[:, :3]
        speed = robot.momentum(motion.q, motion.v)[:, :3] / mass
        left = wanted - np.array([robot.center_of_mass(motion.q), speed, force / mass + gravity])
        if np.abs(left).max() <= CLOSED_HOP:
            return replace(motion, start=s.first * HOP.dt)
        pelvis += left
    raise NumericsError(
        f"the hop: after {MAX_HOP_CORRECTIONS} corrections the centre of mass is still "
        f"{np.abs(left).max():.3g} off "
        "its way (SI); the legs are too heavy for this plan, hop less high"
    )
