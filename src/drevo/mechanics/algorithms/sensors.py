"""Readings of sensors over any scalar, as MuJoCo takes them: of a state, its accelerations and what touches.

An accelerometer reads the acceleration of its place less gravity; force and torque are what a link's parent exerts
on it and on what hangs on it, about the sensor: what moves their masses, less what touches them. Both, gyroscopes
and velocimeters are in the sensor's axes, frames in the world's. Rays go to solids in their own axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce

from ...model.contact import GEOM_SIZES, JOINT_SENSORS, Geom, Sensor
from ...model.description import Model
from ..joints import NO_MOTION, Motion
from ..rotation import unit_quaternion
from ..scalar import Scalar, Vector, clip, maximum, minimum, sqrt, where
from ..spatial import ZERO, Mat, Vec
from .constraints import Kinematics
from .kinematics import WORLD_POSE, Pose

NOTHING_NEAR = 1e10  # m, of a ray that meets nothing
LEAST_RAY = 1e-15  # of a ray along an axis
SCALAR_SENSORS = (*JOINT_SENSORS, "touch", "rangefinder")
HELD_SENSORS = ("force", "torque")  # of what a link is held by


def reading_size(sensor: Sensor) -> int:
    """The number of scalars that a sensor reads."""
    return 1 if sensor.kind in SCALAR_SENSORS else 4 if sensor.kind == "framequat" else 3


def links_from(model: Model, link: str) -> list[str]:
    """A link and all that hangs on it."""
    links = [link]
    for joint in model.joints:  # parents stand first
        links += [joint.child] if joint.parent in links else []
    return links


def felt_zones(model: Model, sensors: tuple[Sensor, ...]) -> dict[str, list[Sensor]]:
    """By link of which contacts are felt, the sensors of touch on it, in their order."""
    zones = dict[str, list[Sensor]]()
    for x in sensors:
        if x.kind in ("touch", *HELD_SENSORS):
            for link in links_from(model, x.link) if x.kind in HELD_SENSORS else [x.link]:
                if link != model.root or x.kind == "touch":
                    zones.setdefault(link, [])
        if x.kind == "touch":
            zones[x.link].append(x)
    return zones


def felt_of_place(moving: Kinematics, zone: list[Sensor], at: Vec, out: Vec, force: Vec) -> list[Scalar]:
    """The share of a place of contact in what a link feels: of each sensor of touch the normal force where the way
    out of the link meets its zone, then force, and moment about the world's origin. All in the world's axes."""
    shares = list[Scalar]()
    for x in zone:
        R, p = moving.pose(x.link).compose(Mat.of(x.rotation), Vec(*x.origin))
        size = [y or x.size[0] for y in x.size][: GEOM_SIZES[x.shape]]
        met = ray_length(x.shape, size, R.T @ (at - p), R.T @ out) < NOTHING_NEAR
        shares.append(where(met, -force.dot(out), 0.0))
    return [*shares, *force, *at.cross(force)]


class Readings:
    """Sensors at one evaluation.

    moving: with its accelerations. felt: by link what `felt_of_place` has summed up. efforts (nv,): of actuators.
    lengths: by rangefinder how far it is to what its ray meets.
    """

    def __init__(
        self, model: Model, sensors: tuple[Sensor, ...], moving: Kinematics, felt: Mapping[str, Vector],
        efforts: Vector, lengths: Mapping[str, Scalar],
    ) -> None:  # fmt: skip
        self.model, self.moving, self.felt, self.efforts, self.lengths = model, moving, felt, efforts, lengths
        self.zones, self.gravity = felt_zones(model, sensors), moving.tree.gravity
        self.at = {joint.name: (sq.start, sv.start) for joint, sq, sv in model.slices()}
        self.weighs = {x.name: x.inertial for x in model.links if x.inertial and x.inertial.mass}

    def read(self, x: Sensor) -> list[Scalar]:
        """The reading of a sensor, cut to its cutoff."""
        reading = self._joint(x) if x.kind in JOINT_SENSORS else self._link(x)
        if not x.cutoff or x.kind == "framequat":
            return reading
        positive = x.kind in ("touch", "rangefinder")
        return [minimum(y, x.cutoff) if positive else clip(y, -x.cutoff, x.cutoff) for y in reading]

    def _joint(self, x: Sensor) -> list[Scalar]:
        i, k = self.at[x.joint]
        if x.kind == "jointpos":
            return [self.moving.q[i]]
        return [(self.moving.v if x.kind == "jointvel" else self.efforts)[k]]

    def _link(self, x: Sensor) -> list[Scalar]:
        if x.kind == "touch":
            return [self.felt[x.link][self.zones[x.link].index(x)]]
        if x.kind == "rangefinder":
            return [self.lengths[x.name]]
        if x.kind in HELD_SENSORS:
            return list(self._held(x))
        frame = self.moving.tree.frames[x.link]
        turn, arm = frame.R.mul(Mat.of(x.rotation)), frame.p + frame.R @ Vec(*x.origin)
        pose, m, acc = self._point(x.link, arm)
        by_kind: dict[str, Callable[[], Iterable[Scalar]]] = {
            "accelerometer": lambda: turn.T @ (acc.v - pose.R.T @ self.gravity), "gyro": lambda: turn.T @ m.w,
            "velocimeter": lambda: turn.T @ m.v, "framepos": lambda: pose.p + pose.R @ arm,
            "framelinvel": lambda: pose.R @ m.v, "frameangvel": lambda: pose.R @ m.w,
            "framequat": lambda: self._quaternion(pose.R.mul(turn)),
        }  # fmt: skip
        return list(by_kind[x.kind]())

    def _point(self, link: str, arm: Vec) -> tuple[Pose, Motion, Motion]:
        """The pose of the body of a link; in its axes the velocity of a point of it, and its acceleration."""
        k, i = self.moving, self.moving.tree.frames[link].body
        if i < 0:
            return WORLD_POSE, NO_MOTION, NO_MOTION
        m, a = k.velocity[i], k.acceleration[i]
        spin = a.w.cross(arm) + m.w.cross(m.w.cross(arm))
        return k.poses[i], Motion(m.w, m.v + m.w.cross(arm)), Motion(a.w, a.v + spin)

    @staticmethod
    def _quaternion(R: Mat) -> list[Scalar]:
        """w x y z, w not negative."""
        x, y, z, w = unit_quaternion(R)
        sign = where(w < 0.0, -1.0, 1.0)
        return [sign * u for u in (w, x, y, z)]

    def _held(self, sensor: Sensor) -> Vec:
        """Force, or torque about the sensor, in its axes."""
        R, p = self.moving.pose(sensor.link).compose(Mat.of(sensor.rotation), Vec(*sensor.origin))
        force = torque = ZERO
        for link in links_from(self.model, sensor.link):
            if link != self.model.root:  # what touches the world is not held by anything
                felt = self.felt[link][-6:]
                push, moment = Vec(*felt[:3]), Vec(*felt[3:])
                force, torque = force - push, torque - (moment - p.cross(push))
            if body := self.weighs.get(link):
                frame = self.moving.tree.frames[link]
                arm = frame.p + frame.R @ Vec(*body.com)
                pose, m, acc = self._point(link, arm)
                turn, pull = pose.R.mul(frame.R), (pose.R @ acc.v - self.gravity) * body.mass
                J, w, alpha = Mat.of(body.tensor), frame.R.T @ m.w, frame.R.T @ acc.w
                force = force + pull
                torque = torque + (pose.p + pose.R @ arm - p).cross(pull) + turn @ (J @ alpha + w.cross(J @ w))
        return R.T @ (force if sensor.kind == "force" else torque)


# -- rays ------------------------------------------------------------------------------------------------------


def ray_of(moving: Kinematics, sensor: Sensor) -> tuple[Vec, Vec]:
    """The start of the ray of a rangefinder, and its way, of length one."""
    R, p = moving.pose(sensor.link).compose(Mat.of(sensor.rotation), Vec(*sensor.origin))
    return p, R @ Vec(0.0, 0.0, 1.0)


def ray_to_solids(moving: Kinematics, solids: Iterable[Geom], start: Vec, way: Vec) -> Scalar:
    """The length of a ray to the nearest of solids, NOTHING_NEAR if it meets none, in lengths of `way`."""
    least: Scalar = NOTHING_NEAR
    for x in solids:
        R, p = moving.pose(x.link).compose(Mat.of(x.rotation), Vec(*x.origin))
        least = minimum(least, ray_length(x.kind, x.size, R.T @ (start - p), R.T @ way))
    return least


def ray_length(kind: str, size: Vector, start: Vec, way: Vec) -> Scalar:
    """The length of a ray to a solid, of one that begins inside to where it leaves it, in lengths of `way`.

    kind, size: of "sphere", "ellipsoid", "capsule", "cylinder", "box" as of a Geom; of a "plane" the upper side.
    """
    if kind == "plane":
        t = -start.z / where(way.z < -LEAST_RAY, way.z, -LEAST_RAY)
        return where(way.z < -LEAST_RAY, _ahead(t), NOTHING_NEAR)
    if kind in ("sphere", "ellipsoid"):
        start, way = (Vec(*(x / r for x, r in zip(y, (*size, *size, *size)))) for y in (start, way))
        return _first(_roots(start, way, 1.0))
    if kind == "box":
        return _least(_within_box(size, start, way, k, side) for k in range(3) for side in (1.0, -1.0))
    r, half = size
    round_ = _first(_roots(Vec(start.x, start.y, 0.0), Vec(way.x, way.y, 0.0), r))
    z = start.z + round_ * way.z
    ends = [where(z > half, NOTHING_NEAR, where(z < -half, NOTHING_NEAR, round_))]
    for side in (1.0, -1.0):
        if kind == "capsule":
            for t in _roots(start - Vec(0.0, 0.0, side * half), way, r):
                ends.append(where(side * (start.z + t * way.z) < half, NOTHING_NEAR, _ahead(t)))
        else:
            t = _to(side * half, start.z, way.z)
            x, y = start.x + t * way.x, start.y + t * way.y
            ends.append(where(x * x + y * y > r * r, NOTHING_NEAR, _ahead(t)))
    return _least(ends)


def _least(ends: Iterable[Scalar]) -> Scalar:
    return reduce(minimum, ends)


def _ahead(t: Scalar) -> Scalar:
    return where(t < 0.0, NOTHING_NEAR, t)


def _to(at: Scalar, x: Scalar, u: Scalar) -> Scalar:
    """The length along u from x to a plane."""
    steep = maximum(u, -u) > LEAST_RAY
    return where(steep, (at - x) / where(steep, u, 1.0), NOTHING_NEAR)


def _roots(start: Vec, way: Vec, r: Scalar) -> tuple[Scalar, Scalar]:
    """Both lengths at which a line meets a ball, or, of parts across it, a cylinder."""
    across, along = maximum(way.dot(way), LEAST_RAY), start.dot(way)
    square = along * along - across * (start.dot(start) - r * r)
    root = sqrt(maximum(square, 0.0))
    near, far = (where(square < 0.0, NOTHING_NEAR, (-along + s * root) / across) for s in (-1.0, 1.0))
    return near, far


def _first(roots: tuple[Scalar, Scalar]) -> Scalar:
    return where(roots[0] < 0.0, _ahead(roots[1]), roots[0])


def _within_box(size: Vector, start: Vec, way: Vec, k: int, side: float) -> Scalar:
    """The length to one of the sides of a box."""
    t = _to(side * size[k], list(start)[k], list(way)[k])
    out: Scalar = _ahead(t)
    for j in range(3):
        if j != k:
            x = list(start)[j] + t * list(way)[j]
            out = where(maximum(x, -x) > size[j], NOTHING_NEAR, out)
    return out
