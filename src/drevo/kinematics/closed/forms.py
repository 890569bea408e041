"""Closed forms of whole chains: a wrist at the end, or three parallel axes, seen from either end.

Every branch comes with the square of what forward kinematics leaves of the pose: m^2, and of directions of unit
length, so that a turn by a small angle counts as its square.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from ...mechanics.scalar import Scalar
from ...mechanics.spatial import UNIT_VECS, Vec
from .arms import ARM_FORMS, ArmForm, Displacements, ScrewJoints, plane_arm
from .chain import MEETING, RigidMotion, ScrewJoint, are_parallel, meeting_point, opposite, size
from .subproblems import (
    STRAIGHT_ANGLE,
    ZERO_ANGLE,
    JointAngle,
    across_axis,
    rotated_about,
    subproblem1,
    subproblem3,
    subproblem4,
)

WRISTS = (3, 2, 1)  # joints


class ArmBranch(NamedTuple):
    """A solution: the displacements of the joints, and the square of what it leaves of the pose."""

    displacements: Displacements
    left: Scalar


BranchSolver = Callable[[ScrewJoints, RigidMotion], Iterator[ArmBranch]]


class ChainForm(NamedTuple):
    """A closed form of a chain: the order in which its joints are taken, whether from the link to the base."""

    order: tuple[int, ...]
    inverse: bool
    solver: BranchSolver

    def branches(self, screws: ScrewJoints, D: RigidMotion) -> Iterator[ArmBranch]:
        """The displacements of all joints, in their own order, with D = exp(S_1 x_1) .. exp(S_n x_n)."""
        ordered = [screws[k] for k in self.order]
        for x, left in self.solver(ordered, D.inverse if self.inverse else D):
            by_joint = dict(zip(self.order, map(opposite, x) if self.inverse else x))
            yield ArmBranch(tuple(by_joint[k] for k in range(len(screws))), left)


def recognised(screws: ScrewJoints) -> ChainForm | None:
    """The closed form of a chain of numbers, if there is one."""
    for order in _orders(screws):
        for inverse in (False, True):
            way = order[::-1] if inverse else order
            ordered = [screws[k] for k in way]
            solver = _wrist_form(ordered, WRISTS[:1]) or _parallel_form(ordered)
            if solver:
                return ChainForm(way, inverse, solver)
    for order in _orders(screws) if len(screws) < 6 else ():
        solver = _wrist_form([screws[k] for k in order], WRISTS[1:])
        if solver:
            return ChainForm(order, False, solver)
    return None


def _orders(screws: ScrewJoints) -> list[tuple[int, ...]]:
    """Orders of the joints with one and the same motion: slides commute with turns about their own direction."""
    orders = [tuple(range(len(screws)))]
    for order in orders:
        for k in range(len(order) - 1):
            a, b = screws[order[k]], screws[order[k + 1]]
            other = (*order[:k], order[k + 1], order[k], *order[k + 2 :])
            if a.slides != b.slides and are_parallel(a.axis, b.axis) and other not in orders:
                orders.append(other)
    return orders


# -- the end of a chain: axes that meet --------------------------------------------------------------------------


class EndJoints(NamedTuple):
    """The last joints of a chain, which turn about axes that meet: how many, two of them that do, and which
    coordinate axis is across the last."""

    joints: int
    pair: tuple[int, int]
    side: int

    def center(self, screws: ScrewJoints) -> Vec:
        last = screws[-self.joints :]
        return last[0].point if self.joints == 1 else meeting_point(last[self.pair[0]], last[self.pair[1]])

    def directions(self, screws: ScrewJoints) -> tuple[Vec, Vec]:
        """The last axis, and one across it."""
        z = screws[-1].axis
        return z, across_axis(z, UNIT_VECS[self.side])


def meeting_joints(screws: ScrewJoints, count: int) -> EndJoints | None:
    """The last `count` joints of a chain of numbers, if their axes meet and neighbours are not parallel."""
    last = screws[-count:]
    if len(last) < count or any(s.slides for s in last):
        return None
    if any(are_parallel(a.axis, b.axis) for a, b in pairwise(last)):
        return None
    tail = EndJoints(count, (0, 1), min(range(3), key=lambda k: abs(last[-1].axis[k])))
    c = tail.center(screws)
    near = all(size(across_axis(s.axis, c - s.point)) < MEETING for s in last)
    return tail if near else None


def orientations(
    axes: Sequence[Vec], x: Vec, a: Vec, b: Vec, free: Sequence[JointAngle] = (ZERO_ANGLE, STRAIGHT_ANGLE)
) -> Iterator[tuple[JointAngle, ...]]:
    """The turns about at most three axes that bring the last axis to a, and the direction x across it to b.

    free: what the first of three is turned back by where the first and the last axis are in line.
    """
    if len(axes) == 1:
        yield (subproblem1(axes[0], x, b),)
    elif len(axes) == 2:
        first = subproblem1(axes[0], axes[1], a)
        yield first, subproblem1(axes[1], x, rotated_about(axes[0], first.back, b))
    else:
        h, k, z = axes
        for back in subproblem4(h, a, k, k.dot(z), free):
            for rest in orientations([k, z], x, rotated_about(h, back, a), rotated_about(h, back, b)):
                yield back.back, *rest


def directions_left(screws: ScrewJoints, x: Displacements, images: Sequence[tuple[Vec, Vec]]) -> Scalar:
    """The sum of squares of what is left of directions when a chain takes their images back."""
    total: Scalar = 0.0
    for v, image in images:
        for screw, displacement in zip(screws, x):
            image = screw.turn(opposite(displacement), image)
        rest = image - v
        total = total + rest.dot(rest)
    return total


def point_left(screws: ScrewJoints, x: Displacements, c: Vec, w: Vec) -> Scalar:
    for screw, displacement in zip(screws, x):
        w = screw.move(opposite(displacement), w)
    return (w - c).dot(w - c)


# -- a wrist -----------------------------------------------------------------------------------------------------


def _wrist_form(screws: ScrewJoints, counts: Sequence[int]) -> BranchSolver | None:
    for count in counts:
        tail = meeting_joints(screws, count)
        for arm in ARM_FORMS if tail else ():
            if arm.fits(screws[:-count]):
                assert tail is not None
                return partial(_wrist, tail, arm)
    return None


def _wrist(tail: EndJoints, form: ArmForm, screws: ScrewJoints, D: RigidMotion) -> Iterator[ArmBranch]:
    """The arm brings the wrist's centre to its place, the wrist does the rest."""
    c, (z, x) = tail.center(screws), tail.directions(screws)
    arm = form.anchored(screws[: -tail.joints], c)
    wrist = [s._replace(point=c) for s in screws[-tail.joints :]]
    w, images = D @ c, [(z, D.R @ z), (x, D.R @ x)]
    for place in form.solve(arm, c, w):
        a, b = (_taken_back(arm, place, image) for _, image in images)
        for turns in orientations([s.axis for s in wrist], x, a, b):
            displacements = (*place, *turns)
            left = directions_left([*arm, *wrist], displacements, images) + point_left(arm, place, c, w)
            yield ArmBranch(displacements, left)


def _taken_back(screws: ScrewJoints, x: Displacements, v: Vec) -> Vec:
    for screw, displacement in zip(screws, x):
        v = screw.turn(opposite(displacement), v)
    return v


# -- three parallel axes -----------------------------------------------------------------------------------------


def _parallel_form(screws: ScrewJoints) -> BranchSolver | None:
    """A joint or none, three of parallel axes, and one or two whose axes meet."""
    for before in (1, 0):
        count = len(screws) - before - 3
        tail = meeting_joints(screws, count) if count in (1, 2) else None
        plane = screws[before : before + 3]
        turning = not any(s.slides for s in screws)
        if tail and turning and all(are_parallel(plane[0].axis, s.axis) for s in plane[1:]):
            others = [screws[before + 3], *screws[:before]]
            if not any(are_parallel(plane[0].axis, s.axis) for s in others):
                return partial(_three_parallel, before, tail)
    return None


def _three_parallel(before: int, tail: EndJoints, screws: ScrewJoints, D: RigidMotion) -> Iterator[ArmBranch]:
    """UR: h . R_1^T (w - o_1) = h . (c - o_1), c where the last axes meet; R_1^T R = R(h, x_2 + x_3 + x_4) R_5 R_6
    by the subproblems of a wrist; then the plane arm of joints 2 and 3."""
    c, (z, x) = tail.center(screws), tail.directions(screws)
    last = [s._replace(point=c) for s in screws[before + 3 :]]
    plane = _feet(screws[before : before + 3], c)
    first = [s.foot(plane[0].point) for s in screws[:before]]
    h, (two, three, four) = plane[0].axis, plane
    w, images = D @ c, [(z, D.R @ z), (x, D.R @ x)]
    for start in _first_turn(first, h, c, w):
        a, b = (_taken_back(first, start, image) for _, image in images)
        u = w
        for screw, displacement in zip(first, start):
            u = screw.move(opposite(displacement), u)
        u, rod = u - two.point, four.point - c
        # where the total is free, that with which the elbow is nearest to a right angle
        arms = [across_axis(h, v) for v in (four.point - three.point, three.point - two.point)]
        middle = arms[0].dot(arms[0]) + arms[1].dot(arms[1])
        free = [t.back for t in subproblem3(h, rod, u, middle)]
        for total, *turns in orientations([h, *(s.axis for s in last)], x, a, b, free):
            r = u + rotated_about(h, total, rod)
            for x2, x3 in plane_arm(h, four.point - three.point, three.point - two.point, r):
                x4 = total.then(x2.back).then(x3.back)
                displacements = (*start, x2, x3, x4, *turns)
                left = directions_left([*first, two, *last], (*start, total, *turns), images)
                left = left + point_left([*first, *plane], displacements[: before + 3], c, w)
                yield ArmBranch(displacements, left)


def _feet(screws: ScrewJoints, c: Vec) -> list[ScrewJoint]:
    out: list[ScrewJoint] = []
    for screw in reversed(screws):
        out.insert(0, screw.foot(c))
        c = out[0].point
    return out


def _first_turn(first: ScrewJoints, h: Vec, c: Vec, w: Vec) -> Iterator[Displacements]:
    if not first:
        yield ()
    for s in first:
        for back in subproblem4(s.axis, w - s.point, h, h.dot(c - s.point)):
            yield (back.back,)
