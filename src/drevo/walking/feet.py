"""Feet and legs of a walking robot: soles, leg joints, inverse kinematics, the polygon that the soles span.

Limits of the joints in the file: a motion that leaves them is none for this robot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..constraint.solve import matvec
from ..errors import InputError, NumericsError, UnknownNameError, shown, warn_caller
from ..io.given import Array, finite
from ..io.reprs import result
from ..model.description import Joint, Model
from ..model.draft import did_you_mean, expect_robot
from ..robot.face import Robot
from .gait import yawed

SLACK = 1e-9  # of a limit: what rounding of a motion to its edge leaves
LIMIT_ROOM = 1e-3  # rad, m: from a limit, of joints that are held; landings throw them some 1e-5
HEED = "move slower, take shorter steps, or correct the limit"


def refuse_limits(robot: Robot, t: Array, title: str, q: Array, v: Array, tau: Array | None = None) -> None:
    """NumericsError where a joint leaves its range, or its speed or effort exceeds what the file allows.

    t (n,), q (n, nq), v and tau (n, nv). A speed or an effort of 0 in a file says nothing, and is no limit.
    """
    for joint, sq, sv in robot.model.slices():
        limit = joint.limit
        if limit is None or joint.nq != 1:
            continue
        unit, force = ("m", "N") if joint.kind == "prismatic" else ("rad", "N m")
        rows = [
            ("stand at", unit, SLACK, q[:, sq.start], limit.lower, limit.upper),
            ("move at", f"{unit}/s", SLACK, v[:, sv.start], *_both(limit.velocity)),
        ]
        if tau is not None:
            rows.append(("need", force, SLACK, tau[:, sv.start], *_both(limit.effort)))
        for verb, of, slack, x, low, high in rows:
            _refuse(f"{title}: joint {joint.name!r} would {verb}", of, slack, t, x, low, high)


def off_stops(robot: Robot) -> Array:
    """The neutral configuration (nq,), joints inside their ranges by ROOM, or by a tenth of narrow ones."""
    q = np.array(robot.neutral())
    for joint, sq, _ in robot.model.slices():
        limit = joint.limit
        if limit is None or joint.nq != 1 or limit.lower is None or limit.upper is None:
            continue
        room = min(LIMIT_ROOM, 0.1 * max(0.0, limit.upper - limit.lower))
        q[sq.start] = min(max(q[sq.start], limit.lower + room), limit.upper - room)
    return q


def _both(bound: float | None) -> tuple[float | None, float | None]:
    return (-bound, bound) if bound else (None, None)


def _refuse(
    joint: str, unit: str, slack: float, t: Array, x: Array, low: float | None, high: float | None
) -> None:
    for bound, sign in ((low, -1.0), (high, 1.0)):
        if bound is None:
            continue
        beyond = sign * (x - bound)
        k = int(np.argmax(beyond))
        if beyond[k] > slack * max(abs(bound), 1.0):
            raise NumericsError(
                f"{joint} {x[k]:.4g} {unit} at t = {t[k]:.4g} s (sample {k} of {len(t)}), and its limit is "
                f"{bound:.4g} {unit}; {HEED}"
            )


Corners = Sequence[Sequence[float]]

BASE = slice(0, 6)  # the rates of a free base
CLOSED = 1e-12  # m or rad: how well the feet stand where they shall
NEWTON = 40
STEEP = 0.9  # |y| of a unit axis: above it a joint of the upright robot is a pitch joint


@result
class Leg:
    """A leg of six joints and its sole.

    corners (k, 3), middle (3,): of the sole, link axes. upright (3, 3): world from link where the sole is level.
    joints (6,): in v, from the hip. pitch, signs (3,): those of hip, knee and ankle, +1 about y.
    hip, ankle (3,): where the leg's length is measured from, pelvis axes, and to, from the middle of the sole.
    """

    link: str
    corners: Array
    middle: Array
    upright: Array
    joints: Array
    pitch: Array
    signs: Array
    hip: Array
    ankle: Array
    thigh: float
    shin: float

    @cached_property
    def edge(self) -> list[int]:
        """The corners about the sole, against the clock seen from above."""
        level = (self.upright @ (self.corners - self.middle).T)[:2].T
        around = [tuple(x) for x in level]
        return [around.index((x, y)) for x, y in hull(level)]

    @property
    def length(self) -> float:
        """Length of the straight leg from hip to ankle, m."""
        return self.thigh + self.shin

    def sole(self, pose: Array) -> Array:
        """Corners in the world, (..., k, 3), of poses (..., 4, 4) of the link."""
        return np.asarray(pose[..., None, :3, :3] @ self.corners[..., None])[..., 0] + pose[..., None, :3, 3]


def legs(robot: Robot, feet: Mapping[str, Corners] | None = None) -> tuple[Leg, ...]:
    """The legs that end in feet: {link: corners of its sole, link axes}; by default its contact points.

    The robot has a free base and stands upright, x forward and z up, at its neutral configuration. Raises
    InputError for a base that is not free, an unknown link and a leg that is not of six joints with three
    pitch joints.
    """
    expect_robot(robot, "walking")
    model = robot.model
    if not model.joints or model.joints[0].kind != "free":
        raise InputError(f"robot {robot.name!r} has no free base to walk with; load it with base='floating'")
    if any(model.gravity[:2]) or not model.gravity[2] < 0.0:
        raise InputError(f"gravity is {model.gravity}; a walk on the ground z = 0 needs it along -z")
    if outside := _pushing(model):
        warn_caller(f"walking: robot {robot.name!r} walks without {outside}")
    given = soles(robot, feet)
    for link in given:
        if link not in robot.link_names:
            raise UnknownNameError(
                f"foot {link!r} is not a link of robot {robot.name!r}{did_you_mean(link, robot.link_names)}"
            )
    return tuple(_leg(robot, link, _corners(link, corners)) for link, corners in given.items())


def _pushing(model: Model) -> str:
    """Passive forces from outside, which the ground would have to take up."""
    base, world = model.joints[0], model.joints[0].parent
    held = [t.name for t in model.tendons if t.pulls and any(world in s.links for s in t.segments)]
    forces = ["what acts in its free joint"] if base.dynamics and base.dynamics.passive else []
    forces += ["the compensation of its weight"] if any(link.gravcomp for link in model.links) else []
    return " and ".join(forces + [f"the pull of the tendon {name!r}" for name in held[:3]])


def soles(robot: Robot, feet: Mapping[str, Corners] | None = None) -> Mapping[str, Corners]:
    """Two feet and their corners: those given, or the links with three or more contact points."""
    if feet is not None and not (isinstance(feet, Mapping) and all(isinstance(link, str) for link in feet)):
        raise InputError(f"feet is {shown(feet)}; give {{link: corners of the sole}}")
    expect_robot(robot, "walking")
    points_of: dict[str, list[Any]] = {}
    for c in robot.model.contacts:
        points_of.setdefault(c.link, []).append(c.point)
    given = feet if feet is not None else {link: points for link, points in points_of.items() if len(points) >= 3}
    if len(given) != 2:
        raise InputError(
            f"robot {robot.name!r} has {len(given)} feet with three or more contact points and walks on two; "
            "give feet={link: corners of the sole}, or --feet on the command line"
        )
    return given


def _corners(link: str, given: object) -> Array:
    sole = f"foot {link!r}: a sole is three or more corners of three finite numbers, link axes; this one"
    corners = np.array(finite(sole, given, (None, 3)))
    if len(corners) < 3:
        raise InputError(f"{sole} has {len(corners)}")
    return corners


def _leg(robot: Robot, link: str, corners: Array) -> Leg:
    q = robot.neutral()
    rates = {j.name: sv.start for j, _, sv in robot.model.slices()}
    chain = [j for j in _path(robot.model, link) if j.name in rates][1:]  # without the free base
    joints = np.array([rates[j.name] for j in chain], int)
    turns = robot.jacobian(q, link)[4, joints]
    pitch = np.flatnonzero(np.abs(turns) > STEEP)
    if len(joints) != 6 or len(pitch) != 3:
        raise InputError(
            f"the leg of {link!r} has {len(joints)} joints, {len(pitch)} of them pitch joints; a leg that "
            "walks has six, with a pitch joint at hip, knee and ankle"
        )
    hip, knee, ankle = (_at(robot, q, chain[k]) for k in pitch)
    pose, middle = robot.pose(q, link), corners.mean(axis=0)
    sole = pose[:3, :3] @ middle + pose[:3, 3]
    sizes = (float(np.linalg.norm(hip - knee)), float(np.linalg.norm(knee - ankle)))
    signs = np.sign(turns[pitch])
    return Leg(link, corners, middle, pose[:3, :3], joints, joints[pitch], signs, hip, ankle - sole, *sizes)


def _at(robot: Robot, q: Array, joint: Joint) -> Array:
    """The position of a joint in the world, (3,), m."""
    T = robot.pose(q, joint.parent)
    return np.asarray(T[:3, :3] @ joint.origin + T[:3, 3])


def _path(model: Model, link: str) -> list[Any]:
    """Joints from the base to a link."""
    above = {j.child: j for j in model.joints}
    out: list[Any] = []
    while link in above:
        out.append(above[link])
        link = above[link].parent
    return out[::-1]


# -- inverse kinematics -------------------------------------------------------------------------------------


class Soles(NamedTuple):
    """Middles of soles in the world: places (..., legs, 3), world from links R (..., legs, 3, 3).

    J (..., legs, 6, nv), its product with v, and what accelerations have beside J a: linear first, world axes.
    """

    places: Array
    R: Array
    J: Array
    rate: Array
    gamma: Array


def soles_at(robot: Robot, two: Sequence[Leg], q: Array, v: Array | None = None) -> Soles:
    """The soles of legs at q (..., nq), and their motion at v (..., nv); at rest without."""
    placed = []
    for leg in two:
        pose, J = robot.pose(q, leg.link), np.array(robot.jacobian(q, leg.link))
        R = pose[..., :3, :3]
        arm = R @ leg.middle
        J[..., :3, :] -= skew_matrix(arm) @ J[..., 3:, :]
        rate = a = np.zeros((*q.shape[:-1], 6))
        if v is not None:
            rate, a = matvec(J, v), np.array(robot.acceleration(q, v, np.zeros_like(v), leg.link))
            spin = rate[..., 3:]
            a[..., :3] += cross(a[..., 3:], arm) + cross(spin, cross(spin, arm))
        placed.append(Soles(pose[..., :3, 3] + arm, R, J, rate, a))
    return Soles(*(np.stack(x, axis=q.ndim - 1) for x in zip(*placed)))


def stand(robot: Robot, two: Sequence[Leg], pelvis: Array, places: Array) -> Array:
    """q (..., nq) with an upright pelvis and level soles: x, y, z and heading of the pelvis, (..., 4), and of the
    middles of the soles, (..., legs, 4).

    Newton's method on the poses of the feet, from bent knees. Raises NumericsError where a leg is too short.
    """
    q = np.broadcast_to(off_stops(robot), (*pelvis.shape[:-1], robot.nq)).copy()
    q[..., :3] = pelvis[..., :3]
    q[..., 5], q[..., 6] = np.sin(pelvis[..., 3] / 2), np.cos(pelvis[..., 3] / 2)
    place = {sv.start: sq.start for _, sq, sv in robot.model.slices()}
    for leg, far in zip(two, _reaches(two, pelvis, places)):
        bent = np.arccos(np.clip(far / leg.length, -1.0, 0.995))
        for column, sign, turns in zip(leg.pitch, leg.signs, (-1.0, 2.0, -1.0)):
            q[..., place[int(column)]] = sign * turns * bent
    columns = np.concatenate([leg.joints for leg in two])
    at = [place[int(c)] for c in columns]
    goal = yawed(places[..., 3]) @ np.array([leg.upright for leg in two])
    for _ in range(NEWTON):
        feet = soles_at(robot, two, q)
        left = gaps(places[..., :3], goal, feet)
        if np.max(np.abs(left)) <= CLOSED:
            return q
        J = feet.J.reshape(*left.shape[:-2], -1, robot.nv)[..., columns]
        q[..., at] += np.linalg.solve(J, left.reshape(*left.shape[:-2], -1, 1))[..., 0]
    worst = two[int(np.unravel_index(int(np.argmax(np.abs(left))), left.shape)[-2])].link
    raise NumericsError(
        f"the leg of {worst!r} does not reach its place: {np.max(np.abs(left)):.3g} m or rad are left; "
        "take shorter steps or lower the pelvis"
    )


def gaps(places: Array, R: Array, feet: Soles) -> Array:
    """From where soles are to where they shall be, (..., legs, 6): the middles, the turns to first order."""
    return np.concatenate([places - feet.places, turn_between(feet.R, R)], -1)


def turn_between(a: Array, b: Array) -> Array:
    """From rotations a to b, (..., 3), world axes, to first order."""
    E = b @ np.swapaxes(a, -1, -2)
    return np.asarray(0.5 * (E[..., (2, 0, 1), (1, 2, 0)] - E[..., (1, 2, 0), (2, 0, 1)]))


def skew_matrix(x: Array) -> Array:
    """x cross, (..., 3, 3)."""
    out = np.zeros((*x.shape, 3))
    out[..., 2, 1] = x[..., 0]
    out[..., 0, 2] = x[..., 1]
    out[..., 1, 0] = x[..., 2]
    return np.asarray(out - np.swapaxes(out, -1, -2))


def rotation_by_vector(x: Array) -> Array:
    """Rotation by a vector (3,), rad: Rodrigues' formula."""
    angle = float(np.linalg.norm(x))
    K = skew_matrix(x / max(angle, 1e-300))
    return np.asarray(np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K)


def cross(a: Array, b: Array) -> Array:
    """a x b; NumPy's own takes longer for one state than the dynamics."""
    return matvec(skew_matrix(a), b)


def _reaches(two: Sequence[Leg], pelvis: Array, places: Array) -> list[Array]:
    """From hip to ankle, m. Raises NumericsError where it is more than a leg's length."""
    out = []
    for i, leg in enumerate(two):
        ankle = places[..., i, :3] + yawed(places[..., i, 3]) @ leg.ankle
        out.append(np.linalg.norm(ankle - pelvis[..., :3] - yawed(pelvis[..., 3]) @ leg.hip, axis=-1))
        if np.max(out[-1]) >= leg.length:
            raise NumericsError(
                f"the steps are too long: the leg of {leg.link!r} would have to be {np.max(out[-1]):.4g} m from "
                f"hip to ankle, {np.max(out[-1]) - leg.length:.3g} m more than its {leg.length:.4g} m; "
                "take shorter or slower steps, or lower the pelvis"
            )
    return out


# -- the polygon of support ---------------------------------------------------------------------------------


def hull(points: Array) -> Array:
    """Corners (k, 2) of the convex hull of points (n, 2), against the clock (Andrew's chains)."""
    order = sorted({(float(x), float(y)) for x, y in points})
    chains: list[tuple[float, float]] = []
    for row in (order, order[::-1]):
        chain: list[tuple[float, float]] = []
        for p in row:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], p) <= 0.0:
                chain.pop()
            chain.append(p)
        chains += chain[:-1]
    return np.array(chains)


def margin(corners: Array, point: Array) -> Array:
    """Distance of points (..., 2) from the edges of a hull (k, 2), m: positive inside."""
    edge = np.roll(corners, -1, axis=0) - corners
    inward = np.stack([-edge[:, 1], edge[:, 0]], -1) / np.linalg.norm(edge, axis=-1, keepdims=True)
    return np.asarray(np.min(np.sum((point[..., None, :] - corners) * inward, axis=-1), axis=-1))


def inside(corners: Array, point: Array, room: float) -> Array:
    """Points (..., 2) moved into convex polygons (..., k, 2), `room` from their edges, by turns to each edge."""
    edge = np.roll(corners, -1, axis=-2) - corners
    inward = np.stack([-edge[..., 1], edge[..., 0]], -1) / np.sqrt(np.sum(edge**2, axis=-1))[..., None]
    for _ in range(2):
        out = room - np.sum((point[..., None, :] - corners) * inward, axis=-1)
        if np.all(out <= 0.0):
            break
        for k in range(corners.shape[-2]):
            out = room - np.sum((point - corners[..., k, :]) * inward[..., k, :], axis=-1)
            point = point + np.maximum(out, 0.0)[..., None] * inward[..., k, :]
    return point


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
