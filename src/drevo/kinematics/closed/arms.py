"""Arms of at most three joints that bring a point to a place: what stands before a wrist.

Each form solves exp(S_1 x_1) .. exp(S_k x_k) c = w for its displacements; S_i has the axis h_i through o_i, and
R_i is its rotation. Points of axes are feet of the next one's, so that their differences are short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ...mechanics.scalar import Scalar, dot, eliminated, maximum, sqrt
from ...mechanics.spatial import Vec
from .chain import MEETING, PARALLEL_BELOW, Displacement, ScrewJoint, are_parallel, axis_distance, meeting_point
from .subproblems import JointAngle, across_axis, rotated_about, subproblem1, subproblem2, subproblem3, subproblem4

Displacements = tuple[Displacement, ...]
ScrewJoints = Sequence[ScrewJoint]


class ArmForm(NamedTuple):
    """A kind of arm: R of joints that turn, P of those that slide, what must hold of its axes, and its solutions.

    meets: the axes, by the first of two neighbours, that have a point in common.
    """

    kinds: str
    holds: Callable[[ScrewJoints], bool]
    solve: Callable[[ScrewJoints, Vec, Vec], Iterator[Displacements]]
    meets: int | None = None

    def fits(self, arm: ScrewJoints) -> bool:
        if "".join("P" if s.slides else "R" for s in arm) != self.kinds:
            return False
        if self.meets is None:
            return self.holds(arm)
        a, b = arm[self.meets : self.meets + 2]
        return not are_parallel(a.axis, b.axis) and axis_distance(a, b) < MEETING and self.holds(arm)

    def anchored(self, arm: ScrewJoints, c: Vec) -> list[ScrewJoint]:
        """The arm with points of axes that make short differences."""
        out, pair = list[ScrewJoint](), arm[self.meets : self.meets + 2] if self.meets is not None else ()
        for screw in reversed(arm):
            met = screw in pair
            out.insert(0, screw._replace(point=meeting_point(*pair)) if met else screw.foot(c))
            c = c if screw.slides else out[0].point
        return out


def _one_turn(arm: ScrewJoints, c: Vec, w: Vec) -> Iterator[Displacements]:
    """Angles of one turn that carries a point to a place, by subproblem 1 of Paden and Kahan."""
    (s,) = arm
    yield (subproblem1(s.axis, c - s.point, w - s.point),)


def slid(axes: Sequence[Vec], v: Vec) -> list[Scalar]:
    """The displacements along axes whose sum is nearest to v."""
    A = [[h.dot(k) for k in axes] for h in axes]
    return eliminated(A, [h.dot(v) for h in axes])


def _slides(arm: ScrewJoints, c: Vec, w: Vec) -> Iterator[Displacements]:
    yield tuple(slid([s.axis for s in arm], w - c))


def plane_arm(h: Vec, p: Vec, q: Vec, r: Vec) -> Iterator[tuple[JointAngle, JointAngle]]:
    """The turns about h that bring two rods to a place: R_1 (q + R_2 p) = r, across h."""
    r = across_axis(h, r)
    for x2 in subproblem3(h, p, q, r.dot(r)):
        yield subproblem1(h, rotated_about(h, x2, p) + q, r), x2


def _two_parallel(arm: ScrewJoints, c: Vec, w: Vec) -> Iterator[Displacements]:
    one, two = arm
    yield from plane_arm(one.axis, c - two.point, two.point - one.point, w - one.point)


def _two_skew(arm: ScrewJoints, c: Vec, w: Vec) -> Iterator[Displacements]:
    """h_2 . R_1^T (w - o_1) = h_2 . (c - o_1)."""
    one, two = arm
    for back in subproblem4(one.axis, w - one.point, two.axis, two.axis.dot(c - one.point)):
        u = rotated_about(one.axis, back, w - one.point) + (one.point - two.point)
        yield back.back, subproblem1(two.axis, c - two.point, u)


def _last_two_parallel(arm: ScrewJoints, c: Vec, w: Vec) -> Iterator[Displacements]:
    """Puma, ABB, KUKA, Fanuc: h_2 . R_1^T (w - o_1) = h_2 . (c - o_1), then the plane arm of joints 2 and 3."""
    one, two, three = arm
    for back in subproblem4(one.axis, w - one.point, two.axis, two.axis.dot(c - one.point)):
        u = rotated_about(one.axis, back, w - one.point) + one.point
        for x2, x3 in _two_parallel((two, three), c, u):
            yield back.back, x2, x3


def _first_two_parallel(arm: ScrewJoints, c: Vec, w: Vec) -> Iterator[Displacements]:
    """h_1 . (w - o_3) = h_1 . R_3 (c - o_3), then the plane arm of joints 1 and 2."""
    one, two, three = arm
    for x3 in subproblem4(three.axis, c - three.point, one.axis, one.axis.dot(w - three.point)):
        for x1, x2 in _two_parallel((one, two), three.move(x3, c), w):
            yield x1, x2, x3


def _first_two_meet(arm: ScrewJoints, c: Vec, w: Vec) -> Iterator[Displacements]:
    """|w - o| = |o_3 - o + R_3 (c - o_3)|, o that of both axes; then R_1^T (w - o) = R_2 v."""
    one, two, three = arm
    u, along = w - one.point, three.axis.dot(c - one.point)
    for x3 in subproblem3(three.axis, c - three.point, three.point - one.point, u.dot(u) - along * along):
        v = rotated_about(three.axis, x3, c - three.point) + (three.point - one.point)
        for back, x2 in subproblem2(one.axis, u, two.axis, v):
            yield back.back, x2, x3


def _last_two_meet(arm: ScrewJoints, c: Vec, w: Vec) -> Iterator[Displacements]:
    """|R_1^T (w - o_1) + o_1 - o| = |c - o|, o that of axes 2 and 3; then R_2^T u = R_3 (c - o)."""
    one, two, three = arm
    to, arm_to = c - two.point, one.point - two.point
    along = one.axis.dot(w - one.point) + one.axis.dot(arm_to)
    for back in subproblem3(one.axis, w - one.point, arm_to, to.dot(to) - along * along):
        u = rotated_about(one.axis, back, w - one.point) + arm_to
        for x2, x3 in subproblem2(two.axis, u, three.axis, to):
            yield back.back, x2.back, x3


def _lengths(v: Vec, h: Vec, square: Scalar) -> list[Scalar]:
    """The displacements d with |v + d h|^2 = square."""
    along, rest = h.dot(v), across_axis(h, v)
    root = sqrt(maximum(square - rest.dot(rest), 0.0))
    return [root - along, -root - along]


def _stanford(arm: ScrewJoints, c: Vec, w: Vec) -> Iterator[Displacements]:
    """The third slides across axis 2: |R_1^T (w - o_1) + o_1 - o_2| = |c - o_2 + d h_3|, across axis 2."""
    one, two, three = arm
    for back in subproblem4(one.axis, w - one.point, two.axis, two.axis.dot(c - one.point)):
        u = across_axis(two.axis, rotated_about(one.axis, back, w - one.point) + (one.point - two.point))
        v = across_axis(two.axis, c - two.point)
        for d in _lengths(v, three.axis, u.dot(u)):
            yield back.back, subproblem1(two.axis, v + three.axis * d, u), d


def _polar(arm: ScrewJoints, c: Vec, w: Vec) -> Iterator[Displacements]:
    """The third slides, axes 1 and 2 meet: |w - o| = |c - o + d h_3|."""
    one, two, three = arm
    u, v = w - one.point, c - two.point
    for d in _lengths(v, three.axis, u.dot(u)):
        for back, x2 in subproblem2(one.axis, u, two.axis, v + three.axis * d):
            yield back.back, x2, d


def _scara(arm: ScrewJoints, c: Vec, w: Vec) -> Iterator[Displacements]:
    """Two parallel axes, and a third along which it slides: the height first."""
    one, two, three = arm
    d = one.axis.dot(w - c) * (1.0 / one.axis.dot(three.axis))
    for x1, x2 in _two_parallel((one, two), c + three.axis * d, w):
        yield x1, x2, d


def _lifted(arm: ScrewJoints, c: Vec, w: Vec) -> Iterator[Displacements]:
    """The first slides, two parallel axes after it: the height first."""
    one, two, three = arm
    d = two.axis.dot(w - c) * (1.0 / two.axis.dot(one.axis))
    for x2, x3 in _two_parallel((two, three), c, w - one.axis * d):
        yield d, x2, x3


def _cylindrical(arm: ScrewJoints, c: Vec, w: Vec) -> Iterator[Displacements]:
    """The last two slide, in a plane of the normal n: n . R_1^T (w - o_1) = n . (c - o_1)."""
    one, two, three = arm
    n = two.axis.cross(three.axis)
    for back in subproblem4(one.axis, w - one.point, n, n.dot(c - one.point)):
        u = rotated_about(one.axis, back, w - one.point) + (one.point - c)
        yield back.back, *slid([two.axis, three.axis], u)


def _along(h: Vec, k: Vec) -> bool:
    """True if two axes are not perpendicular."""
    return bool(abs(h.dot(k)) > PARALLEL_BELOW)


def _any(arm: ScrewJoints) -> bool:
    return True


def _apart(arm: ScrewJoints) -> bool:
    """True if the axes of a slide's arm have different directions."""
    h = [s.axis for s in arm]
    volume = abs(h[0].cross(h[1]).dot(h[2])) if len(h) == 3 else dot(*[h[0].cross(h[-1])] * 2)
    return len(h) == 1 or bool(volume > 1e-3)


def _pair(arm: ScrewJoints, k: int) -> bool:
    """True if joint k and the next one have parallel axes."""
    return are_parallel(arm[k].axis, arm[k + 1].axis)


def _square(arm: ScrewJoints) -> bool:
    """True if the third slides across the second axis."""
    return not _along(arm[1].axis, arm[2].axis) and not _pair(arm, 0)


def _level_slides(arm: ScrewJoints) -> bool:
    """True if the plane of the last two, which slide, is not across the first axis."""
    return not _pair(arm, 1) and not are_parallel(arm[0].axis, arm[1].axis.cross(arm[2].axis))


ARM_FORMS = (
    ArmForm("", _any, lambda arm, c, w: iter([()])),
    ArmForm("R", _any, _one_turn),
    ArmForm("P", _any, _slides),
    ArmForm("PP", _apart, _slides),
    ArmForm("PPP", _apart, _slides),
    ArmForm("RR", lambda arm: _pair(arm, 0), _two_parallel),
    ArmForm("RR", _any, _two_skew),
    ArmForm("RRR", lambda arm: _pair(arm, 1) and not _pair(arm, 0), _last_two_parallel),
    ArmForm("RRR", lambda arm: _pair(arm, 0) and not _pair(arm, 1), _first_two_parallel),
    ArmForm("RRR", _any, _first_two_meet, 0),
    ArmForm("RRR", _any, _last_two_meet, 1),
    ArmForm("RRP", _square, _stanford),
    ArmForm("RRP", _any, _polar, 0),
    ArmForm("RRP", lambda arm: _pair(arm, 0) and _along(arm[0].axis, arm[2].axis), _scara),
    ArmForm("PRR", lambda arm: _pair(arm, 1) and _along(arm[0].axis, arm[1].axis), _lifted),
    ArmForm("RPP", _level_slides, _cylindrical),
)
