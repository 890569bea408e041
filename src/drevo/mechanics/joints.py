"""The five elementary joints: their placements, motion subspaces and coordinates.

The types of the public face are chains of five elementary ones, each with constant columns in its own moved
frame: revolute, prismatic and helical about or along a coordinate axis; spherical; free.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ..model import formula
from ..model.carriers import elementary
from ..model.description import Joint as JointData
from ..model.rotations import quaternion_of
from .rotation import axis_rotation, from_quaternion
from .scalar import Scalar, Vector, atan2, cos, dot, sin, sqrt, where
from .spatial import EYE, UNIT_VECS, ZERO, Mat, Vec, rotate

# a wheel is a hinge whose body's axes need not turn, see `mechanics.wheels`
NQ_NV = dict.fromkeys(("revolute", "wheel", "prismatic", "helical"), (1, 1)) | {
    "spherical": (4, 3),
    "free": (7, 6),
}
# how many of the first coordinates, and rates, are lengths
LENGTH_COORDINATES = dict.fromkeys(NQ_NV, 0) | {"prismatic": 1, "free": 3}


class Motion(NamedTuple):
    """Angular and linear part, about the origin of the frame they are in."""

    w: Vec
    v: Vec

    def __add__(self, o: Motion) -> Motion:  # type: ignore[override]
        return Motion(self.w + o.w, self.v + o.v)

    def __mul__(self, s: Scalar) -> Motion:
        return Motion(self.w * s, self.v * s)

    def cross(self, o: Motion) -> Motion:
        """Motion cross motion: the rate of o carried by self."""
        return Motion(self.w.cross(o.w), self.w.cross(o.v) + self.v.cross(o.w))

    def cross_force(self, f: Force) -> Force:
        """Motion cross force: the rate of a force carried by self."""
        return Force(self.w.cross(f.n) + self.v.cross(f.f), self.w.cross(f.f))

    def dot(self, f: Force) -> Scalar:
        """Power."""
        return self.w.dot(f.n) + self.v.dot(f.f)


class Force(NamedTuple):
    """Moment and force, about the origin of the frame they are in."""

    n: Vec
    f: Vec

    def __add__(self, o: Force) -> Force:  # type: ignore[override]
        return Force(self.n + o.n, self.f + o.f)

    def __sub__(self, o: Force) -> Force:
        return Force(self.n - o.n, self.f - o.f)

    def __mul__(self, s: Scalar) -> Force:
        return Force(self.n * s, self.f * s)


NO_MOTION, NO_FORCE = Motion(ZERO, ZERO), Force(ZERO, ZERO)


class Elementary(NamedTuple):
    """One step of a joint's chain: kind, unit axis in the joint frame, metres per radian."""

    kind: str
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    pitch: Scalar = 0.0


def elementary_chain(joint: JointData, pitch: Scalar | None = None) -> list[Elementary]:
    """The elementary joints of a joint, parent side first, in the order of its coordinates."""
    if joint.kind == "helical":
        return [Elementary("helical", joint.axis, joint.lead / (2.0 * math.pi) if pitch is None else pitch)]
    if joint.kind in ("spherical", "free"):
        return [Elementary(joint.kind)]
    return [Elementary(kind, axis) for kind, axis in elementary(joint)]


# what a formula's text means by its functions
SCALAR_FUNCTIONS: formula.Functions = {
    "sin": sin,
    "cos": cos,
    "sqrt": sqrt,
    "atan2": atan2,
    "where": where,
    "tan": lambda x: sin(x) / cos(x),
    "atan": lambda x: atan2(x, 1.0),
    "asin": lambda x: atan2(x, sqrt(1.0 - x * x)),
    "acos": lambda x: atan2(sqrt(1.0 - x * x), x),
}


def gamma(joint: JointData, x: Vector) -> list[Scalar]:
    """The coordinates of a custom joint's steps at x, its own or those of the joint that drives it."""
    assert joint.formula is not None
    m = joint.mimic
    return formula.step_values(joint.formula, [m.multiplier * x[0] + m.offset] if m else x, SCALAR_FUNCTIONS)


class Placement(NamedTuple):
    """The pose of a body in its parent at one configuration: x_parent = R Q x_child + p."""

    R: Mat  # constant part
    k: int  # axis of Q, or -1 when Q is a full matrix, -2 when Q = 1
    s: Scalar
    c: Scalar
    Q: Mat
    p: Vec  # origin of the child in parent axes, the joint's own displacement included

    def to_parent(self, v: Vec) -> Vec:
        """From child axes to parent axes; never multiplies R and Q together."""
        if self.k >= 0:
            v = rotate(self.k, self.s, self.c, v)
        elif self.k == -1:
            v = self.Q @ v
        return self.R @ v

    def to_child(self, v: Vec) -> Vec:
        """From parent axes to child axes."""
        v = self.R.T @ v
        if self.k >= 0:
            return rotate(self.k, -self.s, self.c, v)
        return self.Q.T @ v if self.k == -1 else v

    @property
    def rotation(self) -> Mat:
        """R Q as a matrix."""
        return self.R if self.k == -2 else self.R.mul(self.Q)

    def force_to_parent(self, f: Force) -> Force:
        """A wrench about the child's origin as one about the parent's."""
        force = self.to_parent(f.f)
        return Force(self.to_parent(f.n) + self.p.cross(force), force)

    def motion_to_child(self, m: Motion) -> Motion:
        """A motion of the parent as felt at the child's origin."""
        return Motion(self.to_child(m.w), self.to_child(m.v + m.w.cross(self.p)))


def place(
    kind: str, k: int, R: Mat, p: Vec, pitch: Scalar, q: list[Scalar], trig: tuple[Scalar, Scalar] | None
) -> Placement:
    """The placement of an elementary joint; trig = (sin, cos) of its angle where it has one."""
    if kind == "revolute" or kind == "helical":
        assert trig is not None
        s, c = trig
        if kind == "helical":
            p = p + (R @ UNIT_VECS[k]) * (pitch * q[0])
        return Placement(R, k, s, c, axis_rotation(k, s, c), p)
    if kind == "wheel":
        return Placement(R, -2, 0.0, 1.0, EYE, p)
    if kind == "prismatic":
        return Placement(R, -2, 0.0, 1.0, EYE, p + (R @ UNIT_VECS[k]) * q[0])
    if kind == "spherical":
        return Placement(R, -1, 0.0, 1.0, from_quaternion(q[0], q[1], q[2], q[3]), p)
    return Placement(R, -1, 0.0, 1.0, from_quaternion(q[3], q[4], q[5], q[6]), p + R @ Vec(q[0], q[1], q[2]))


def motion_subspace(kind: str, k: int, pitch: Scalar) -> list[Motion]:
    """The joint's columns in its own moved frame, in the order of its rates."""
    if kind in ("revolute", "wheel"):
        return [Motion(UNIT_VECS[k], ZERO)]
    if kind == "prismatic":
        return [Motion(ZERO, UNIT_VECS[k])]
    if kind == "helical":
        return [Motion(UNIT_VECS[k], UNIT_VECS[k] * pitch)]
    angular = [Motion(e, ZERO) for e in UNIT_VECS]
    return angular if kind == "spherical" else [Motion(ZERO, e) for e in UNIT_VECS] + angular


POSE_NUMBERS = ("x", "y", "z", "qw", "qx", "qy", "qz")  # of a link of motion capture


def posed(joint: JointData, turn: Mat, value: Callable[[str, float], Scalar]) -> tuple[Vec, Mat]:
    """Place and rotation of a link of motion capture, whose quaternion w x y z may have any length but zero."""
    x, y, z, w = quaternion_of(joint.rotation)
    numbers = zip(POSE_NUMBERS, (*joint.origin, w, x, y, z))
    values = [value(f"{joint.child}.pose.{name}", number) for name, number in numbers]
    if not all(isinstance(n, float) for n in values[3:]):
        over = 1.0 / sqrt(dot(values[3:], values[3:]))
        w, x, y, z = (n * over for n in values[3:])
        turn = from_quaternion(x, y, z, w)
    return Vec(*values[:3]), turn
