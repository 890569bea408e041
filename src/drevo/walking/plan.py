"""A walk planned: where the feet go, and a pelvis whose motion keeps the zero-moment point under them.

The centre of mass of a robot whose mass is held at one height z obeys c - (z / g) c'' = p, p being the zero-moment
point (the linear inverted pendulum). Given p over the whole walk this is a boundary value problem, solved at once
on a cubic spline. The robot's own zero-moment point, from its inverse dynamics, then differs from p by what the
limbs do besides; the same equation turns that difference into a correction of the pelvis, a few times over:

  Nishiwaki, Kagami, Kuniyoshi, Inaba, Inoue 2002, "Online generation of humanoid walking motion based on a fast
  generation method of motion pattern that follows desired ZMP", IROS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..io.given import Array
from ..robot.face import Robot
from .feet import Corners, Leg, legs, stand
from .gait import DYNAMIC, Gait, footholds, gait_of, quintic, swing
from .phase import GaitPlan, Stretch, resting

CORRECTIONS = 6  # of the pelvis; each leaves about a tenth of the difference


def plan(
    robot: Robot, steps: int = 6, gait: Gait | str = DYNAMIC, feet: Mapping[str, Corners] | None = None
) -> GaitPlan:
    """A walk of so many steps, from standing to standing, forward along x.

    gait: a Gait, or the name of one, "dynamic" or "static". feet: {link: corners of the sole, link axes}; by
    default the model's contact points. Raises InputError, and NumericsError where a leg is too short (which, by
    how much), where a foot would have to pull, where a joint would leave its range or move too fast, or where the
    zero-moment point would leave the soles (which tick, by how much).
    """
    gait = gait_of(gait)
    two = legs(robot, feet)
    pelvis, start = upright(two, gait)
    stretches, p = _stretches(two, gait, start, footholds(start, steps, gait))
    robot = on_slope(robot, gait.slope)
    com = robot.center_of_mass(stand(robot, two, pelvis, start))
    pole = float(com[2]) / -robot.model.gravity[2]
    ways = _pelvis_ways(stretches, gait, pelvis)
    c, shift = np.zeros((3, *p.shape)), np.zeros_like(p)
    c[0] = pelvis[:2] - com[:2]
    for _ in range(CORRECTIONS):
        c = _from_rest(c + pattern(p - shift, gait.dt, pole), gait)
        ways[..., :2] = c
        phases = [s.phase(robot, two, gait.dt, ways) for s in stretches]
        walk = GaitPlan(robot, two, f"the {gait.name} gait", tuple(phases), gait)
        for s, phase in zip(stretches, phases):  # where two phases meet the later one counts
            support, reactions = walk.support(phase), walk.reactions(phase)
            support.refuse_pull(phase.t, reactions, walk.name)
            shift[s.ticks] = support.point(reactions)
    walk.refuse()
    return walk


def on_slope(robot: Robot, slope: float) -> Robot:
    """The robot where x points up a slope and z along its normal; itself on level ground."""
    if not slope:
        return robot
    g = -robot.model.gravity[2]
    return Robot(replace(robot.model, gravity=(-g * np.sin(slope), 0.0, -g * np.cos(slope))))


def pattern(p: Array, tick: float, pole: float) -> Array:
    """(3, n, k): c, c' and c'' of the spline with c - pole c'' = p (n, k) at every tick, c = p at the ends.

    A spline obeys (c_- - 2 c + c_+) / tick^2 = (c''_- + 4 c'' + c''_+) / 6; with c'' = (c - p) / pole that is a
    tridiagonal system, solved by elimination.
    """
    n, w = len(p), 1.0 / pole
    off, on = 1.0 / tick**2 - w / 6, -2.0 / tick**2 - 4 * w / 6
    right = -w / 6 * (p[:-2] + 4 * p[1:-1] + p[2:])
    c = p.copy()  # the ends stay where the zero-moment point is
    right[0] -= off * c[0]
    right[-1] -= off * c[-1]
    ratio = np.empty(n - 2)
    d = on
    for k in range(n - 2):
        if k:
            d = on - off * ratio[k - 1]
            right[k] -= off * right[k - 1]
        ratio[k] = off / d
        right[k] /= d
    for k in range(n - 4, -1, -1):
        right[k] -= ratio[k] * right[k + 1]
    c[1:-1] = right
    a = w * (c - p)
    v = np.empty_like(c)
    v[:-1] = (c[1:] - c[:-1]) / tick - tick / 6 * (2 * a[:-1] + a[1:])
    v[-1] = (c[-1] - c[-2]) / tick + tick / 6 * (a[-2] + 2 * a[-1])
    return np.array([c, v, a])


# -- the parts ----------------------------------------------------------------------------------------------


def upright(two: Sequence[Leg], gait: Gait) -> tuple[Array, Array]:
    """The pelvis (4,) and the middles of the soles (legs, 4) at the start: on z = 0, below the hips; headings
    last."""
    drop, t = gait.height * min(leg.length for leg in two), abs(np.tan(gait.slope))
    # on a slope the pelvis is drop t further up, over longer legs; the hind one is to be as long as on the level
    lean = t * gait.length / 2
    drop = (np.sqrt(lean**2 + (1.0 + t**2) * drop**2) - lean) / (1.0 + t**2)
    below = np.array([leg.hip - leg.ankle for leg in two])  # of the sole, seen from a pelvis with legs of length 0
    height = drop - float(np.min(below[:, 2]))
    return np.array([0.0, 0.0, height, 0.0]), np.pad(below * np.array([1.0, 1.0, 0.0]), ((0, 0), (0, 1)))


def _stretches(
    two: Sequence[Leg], gait: Gait, start: Array, holds: Sequence[tuple[int, Array]]
) -> tuple[list[Stretch], Array]:
    """Standing, then a swing and a shift of the weight for every step; and the zero-moment point at every tick."""
    places, everyone = start.copy(), tuple(range(len(two)))
    out: list[Stretch] = []
    p = [places[:, :2].mean(axis=0)[None]]

    def add(stands: tuple[int, ...], feet: Array, path: Array) -> None:
        out.append(Stretch(stands, sum(s.feet.shape[1] - 1 for s in out), feet))
        p.append(path[1:])

    def shift(end: Array, name: str, wait: tuple[float, float]) -> None:
        """Adds a stretch on all feet in which the zero-moment point travels to a place."""
        n = gait.ticks(name)
        add(everyone, resting(places, n), _travel(p[-1][-1], end, n, wait))

    for k, (foot, place) in enumerate(holds):
        other = 1 - foot
        shift(places[other, :2], "settle" if k == 0 else "double", (0.5, 1.0) if k == 0 else (0.0, 1.0))
        n = gait.ticks("single")
        feet = resting(places, n)
        feet[:, :, foot] = swing(gait, places[foot], place, n)
        add((other,), feet, np.tile(places[other, :2], (n + 1, 1)))
        places[foot] = place
    shift(places[:, :2].mean(axis=0), "settle", (0.0, 0.5))
    return out, np.concatenate(p)


def _pelvis_ways(stretches: Sequence[Stretch], gait: Gait, pelvis: Array) -> Array:
    """(3, ticks, 4) of a pelvis that goes up with the foot that stands and turns with the mean of the feet."""
    out = np.zeros((3, stretches[-1].ticks.stop, 4))
    out[0] = now = pelvis
    for s in stretches:
        n = s.feet.shape[1] - 1
        if len(s.stands) == 1:
            end = np.array([s.feet[0, 0, s.stands[0], 2] + pelvis[2], s.feet[0, -1, :, 3].mean()])
            t = gait.dt * np.arange(n + 1)
            way = [quintic((a, 0.0, 0.0), (b, 0.0, 0.0), gait.dt * n, t) for a, b in zip(now[2:], end)]
            out[:, s.ticks, 2:] = np.stack(way, -1)
            now = np.array([0.0, 0.0, *end])
            out[0, s.ticks.stop :] = now
    return out


def _travel(a: Array, b: Array, n: int, wait: tuple[float, float]) -> Array:
    """From a to b in the part `wait` of n ticks, (n + 1, 2)."""
    s = np.clip((np.arange(n + 1) / n - wait[0]) / (wait[1] - wait[0]), 0.0, 1.0)
    return np.asarray(a + quintic((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), 1.0, s)[0][:, None] * (b - a))


def _from_rest(c: Array, gait: Gait) -> Array:
    """c without its rates at the ends, which fade away while the robot waits."""
    n = gait.ticks("settle") // 2
    T, t = n * gait.dt, np.arange(n + 1) * gait.dt
    out, still = c.copy(), (0.0, 0.0, 0.0)
    for k, (v0, v1) in enumerate(zip(c[1, 0], c[1, -1])):
        out[:, : n + 1, k] -= quintic((0.0, v0, 0.0), still, T, t)
        out[:, -n - 1 :, k] -= quintic(still, (0.0, v1, 0.0), T, t)
    return out
