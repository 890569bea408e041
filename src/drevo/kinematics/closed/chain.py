"""The chain of a link as screws: axes and points in the world at q = 0, welded links folded, given joints held.

T = exp(S_1 x_1) .. exp(S_n x_n) M, the product of exponentials (Brockett 1984; Lynch and Park 2017, section 4.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, pi, sqrt
from typing import Any, NamedTuple

from ...errors import TraceError
from ...mechanics.rotation import ZERO_DIFFERENCE
from ...mechanics.scalar import Scalar, cos, sin
from ...mechanics.spatial import EYE, UNIT_VECS, ZERO, Mat, Vec
from ...mechanics.tree import Tree
from .subproblems import JointAngle, across_axis, rotated_about

PARALLEL_BELOW = 2e-5  # rad: axes that differ by less are parallel, as of files with 1.5708 for a quarter turn
MEETING = 2e-5  # m: likewise of axes that pass each other
REMEDY = "robot.inverse_kinematics finds its configurations numerically"

Displacement = Scalar  # of a joint that slides, m; of one that turns, a JointAngle


class RigidMotion(NamedTuple):
    """A rotation and a translation."""

    R: Mat = EYE
    p: Vec = ZERO

    def __matmul__(self, v: Vec) -> Vec:
        return self.R @ v + self.p

    def then(self, o: RigidMotion) -> RigidMotion:
        return RigidMotion(self.R.mul(o.R), self @ o.p)

    @property
    def inverse(self) -> RigidMotion:
        return RigidMotion(self.R.T, -(self.R.T @ self.p))


class ScrewJoint(NamedTuple):
    """A joint: its unit axis, a point of the axis, and which coordinate of q it is: x = factor q + phase."""

    joint: str
    q: int
    factor: float
    phase: float
    slides: bool
    axis: Vec
    point: Vec

    def displacement(self, q: Scalar) -> Displacement:
        """x of a coordinate."""
        x = self.factor * q + self.phase
        return x if self.slides else JointAngle(sin(x), cos(x))

    def coordinate(self, x: Displacement, lower: float = -inf, upper: float = inf) -> Scalar:
        """q of a displacement: of whole turns that which is nearest to the middle of finite limits, or to zero."""
        if self.slides:
            return (x - self.phase) * (1.0 / self.factor)
        if not isfinite(upper - lower):
            return (x.angle - self.phase) * (1.0 / self.factor)
        middle = self.factor * 0.5 * (lower + upper) + self.phase
        turn: JointAngle = x.then(JointAngle(-sin(middle), cos(middle)))
        return (turn.angle + (middle - self.phase)) * (1.0 / self.factor)

    def is_within(self, x: Displacement, lower: float, upper: float) -> Any:
        """True within limits, by whole turns: cos(x - middle) >= cos(half of the range)."""
        if self.slides:
            return (self.coordinate(x) >= lower) & (self.coordinate(x) <= upper)
        middle, half = self.factor * 0.5 * (lower + upper) + self.phase, abs(self.factor) * 0.5 * (upper - lower)
        return not half < pi or x.cos * cos(middle) + x.sin * sin(middle) >= cos(half)

    def turn(self, x: Displacement, v: Vec) -> Vec:
        """A direction, moved."""
        return v if self.slides else rotated_about(self.axis, x, v)

    def move(self, x: Displacement, p: Vec) -> Vec:
        """A point, moved."""
        return p + self.axis * x if self.slides else rotated_about(self.axis, x, p - self.point) + self.point

    def exponential(self, x: Displacement) -> RigidMotion:
        columns = Mat(*(self.turn(x, e) for e in UNIT_VECS))
        return RigidMotion(columns.T, self.move(x, ZERO))

    def carried(self, by: RigidMotion) -> ScrewJoint:
        """A copy with its axis and point moved."""
        return self._replace(axis=by.R @ self.axis, point=by @ self.point)

    @property
    def flipped(self) -> ScrewJoint:
        """A copy about the opposite axis, with opposite displacements."""
        return self._replace(axis=-self.axis, factor=-self.factor, phase=-self.phase)

    def foot(self, p: Vec) -> ScrewJoint:
        """A copy whose point is the foot of p on the axis."""
        return self if self.slides else self._replace(point=p - across_axis(self.axis, p - self.point))


def opposite(x: Displacement) -> Displacement:
    """The displacement that takes one back."""
    return x.back if isinstance(x, JointAngle) else -x


@dataclass(frozen=True)
class Chain:
    """Screws from the base to a link whose pose at q = 0 is `tool`; all of them are carried by `base`."""

    screws: tuple[ScrewJoint, ...]
    tool: RigidMotion
    base: RigidMotion

    def pose(self, displacements: Sequence[Displacement]) -> RigidMotion:
        """Forward kinematics."""
        at = self.base
        for screw, x in zip(self.screws, displacements):
            at = at.then(screw.exponential(x))
        return at.then(self.tool)

    def frame(self, pose: RigidMotion) -> RigidMotion:
        """D = exp(S_1 x_1) .. exp(S_n x_n) at a pose of the link."""
        return self.base.inverse.then(pose).then(self.tool.inverse)

    def held(self, k: int, x: Displacement) -> Chain:
        """The chain without joint k, which stands at x: what is on the shorter side of it is moved."""
        screws, E = self.screws, self.screws[k].exponential(x)
        before, after = screws[:k], screws[k + 1 :]
        if len(before) < len(after):
            back = E.inverse
            return replace(self, screws=(*(s.carried(back) for s in before), *after), base=self.base.then(E))
        return replace(self, screws=(*before, *(s.carried(E) for s in after)), tool=E.then(self.tool))

    def aligned(self) -> Chain:
        """The chain with axes that are nearly parallel, or nearly along a coordinate axis, exactly so."""
        axes: list[Vec] = list(UNIT_VECS)
        out = []
        for screw in self.screws:
            near = next((h for h in axes if are_parallel(h, screw.axis)), screw.axis)
            axes.append(near)
            out.append((screw if near.dot(screw.axis) > 0.0 else screw.flipped)._replace(axis=near))
        return replace(self, screws=tuple(out))


def are_parallel(h: Vec, k: Vec) -> bool:
    """True if two axes, of numbers, have one direction or opposite ones."""
    return size(h.cross(k)) < PARALLEL_BELOW


def size(v: Vec) -> float:
    return sqrt(float(v.dot(v)))


def axis_distance(a: ScrewJoint, b: ScrewJoint) -> float:
    """The distance of two axes, of numbers, m."""
    normal, between = a.axis.cross(b.axis), b.point - a.point
    if are_parallel(a.axis, b.axis):
        return size(across_axis(a.axis, between))
    return float(abs(normal.dot(between)) / size(normal))


def meeting_point(a: ScrewJoint, b: ScrewJoint) -> Vec:
    """The point of the first axis that is nearest to the second, which is not parallel to it."""
    normal = a.axis.cross(b.axis)
    along: float = (b.point - a.point).cross(b.axis).dot(normal) / normal.dot(normal)
    return a.point + a.axis * along


def chain_of(tree: Tree, link: str) -> Chain:
    """The chain of a link; TraceError where a joint of it neither turns nor slides about one axis."""
    frame = tree.frames[link]
    path: list[int] = []
    at = frame.body
    while at >= 0:
        path.insert(0, at)
        at = tree.bodies[at].parent
    formulas = {f.body + k for f in tree.formulas for k in range(f.steps)}
    pose, screws, seen = RigidMotion(), list[ScrewJoint](), dict[int, str]()
    for i in path:
        b = tree.bodies[i]
        pose = pose.then(RigidMotion(b.R, b.p))
        kind = "by a formula" if i in formulas else b.kind
        if kind not in ("revolute", "wheel", "prismatic"):
            raise TraceError(f"closed_form: joint {b.joint!r} is {kind}, which has no closed form; {REMEDY}")
        if b.q in seen:
            raise TraceError(
                f"closed_form: joints {seen[b.q]!r} and {b.joint!r} move by one coordinate, which has no closed "
                f"form; {REMEDY}"
            )
        seen[b.q] = b.joint
        turned_axis = pose.R @ UNIT_VECS[b.axis]
        axis = Vec(*(_whole(x) for x in turned_axis))
        screws.append(ScrewJoint(b.joint, b.q, b.factor, b.phase, kind == "prismatic", axis, pose.p))
    return Chain(tuple(screws), pose.then(RigidMotion(frame.R, frame.p)), RigidMotion())


def _whole(x: float) -> float:
    """Rounding left-overs of an axis become structural zeros."""
    return float(round(x)) if abs(x - round(x)) < ZERO_DIFFERENCE else x


def held_chain(chain: Chain, given: Mapping[str, Scalar]) -> Chain:
    """The chain without the joints of known coordinates."""
    for name, q in given.items():
        k = next(k for k, s in enumerate(chain.screws) if s.joint == name)
        chain = chain.held(k, chain.screws[k].displacement(q))
    return chain
