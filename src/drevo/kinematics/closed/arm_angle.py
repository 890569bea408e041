"""Seven joints with a ball for a shoulder and one for a wrist, closed by the angle of the arm's plane.

Shimizu et al. 2008, "Analytical inverse kinematic computation for 7-DOF redundant manipulators with joint limits
and its application to redundancy resolution". S, E, W are shoulder, elbow and wrist.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...mechanics.scalar import Scalar, sqrt, where
from ...mechanics.spatial import UNIT_VECS, Vec
from .arms import ScrewJoints
from .chain import MEETING, RigidMotion, meeting_point, opposite
from .forms import ArmBranch, ChainForm, EndJoints, directions_left, meeting_joints, orientations, point_left
from .subproblems import FREE_RADIUS, JointAngle, across_axis, rotated_about, subproblem3

ARM_ANGLE = "arm_angle"


def arm_angle_form(screws: ScrewJoints, angle: JointAngle) -> ChainForm | None:
    """The form of a chain of numbers that its arm angle closes, if there is one."""
    if len(screws) != 7 or any(s.slides for s in screws):
        return None
    wrist, shoulder = meeting_joints(screws, 3), meeting_joints(screws[2::-1], 3)
    if not (wrist and shoulder):
        return None
    S, W, h = meeting_point(*screws[:2]), wrist.center(screws), screws[3].axis
    if abs(h.dot(W - S)) > MEETING or abs(h.dot(screws[3].foot(W).point - S)) > MEETING:
        return None
    return ChainForm(tuple(range(7)), False, partial(_by_arm_angle, wrist, angle))


def _by_arm_angle(wrist: EndJoints, angle: JointAngle, screws: ScrewJoints, D: RigidMotion) -> Iterator[ArmBranch]:
    """|W - S| gives joint 4; the arm's plane the rotation of joint 3; the two balls the rest."""
    S, W = meeting_point(*screws[:2]), wrist.center(screws)
    elbow, h = screws[3].foot(W), screws[3].axis
    joints = [s._replace(point=S) for s in screws[:3]] + [elbow] + [s._replace(point=W) for s in screws[4:]]
    (z, x), w = wrist.directions(screws), D @ W
    images = [(z, D.R @ z), (x, D.R @ x)]
    u = w - S
    n = _normal(_unit(u), screws[0].axis, angle)
    shoulder_side = across_axis(screws[2].axis, screws[1].axis)
    for sign, x4 in zip((1.0, -1.0), subproblem3(h, W - elbow.point, elbow.point - S, u.dot(u))):
        v = rotated_about(h, x4, W - elbow.point) + (elbow.point - S)
        world, arm = _axes(_unit(u), n), _axes(_unit(v), h * sign)  # R_1 R_2 R_3 takes the one to the other
        third = [_combined(world, [e.dot(y) for e in arm]) for y in (screws[2].axis, shoulder_side)]
        a, b = (
            rotated_about(h, opposite(x4), _combined(arm, [e.dot(image) for e in world])) for _, image in images
        )
        for first in orientations([s.axis for s in screws[:3]], shoulder_side, *third):
            for last in orientations([s.axis for s in screws[4:]], x, a, b):
                displacements = (*first, x4, *last)
                left = directions_left(joints, displacements, images)
                yield ArmBranch(displacements, left + point_left(joints[:4], displacements, W, w))


def _normal(u: Vec, h: Vec, angle: JointAngle) -> Vec:
    """The normal of the arm's plane: at no angle the elbow is on the side to which the first axis points."""
    side, other = across_axis(u, h), across_axis(u, UNIT_VECS[min(range(3), key=lambda k: abs(h[k]))])
    upright = side.dot(side) > FREE_RADIUS * FREE_RADIUS
    e = Vec(*(where(upright, p, q) for p, q in zip(side, other)))
    return rotated_about(u, angle, _unit(e)).cross(u)


def _unit(v: Vec) -> Vec:
    unit: Vec = v * (1.0 / sqrt(v.dot(v)))
    return unit


def _axes(e: Vec, n: Vec) -> tuple[Vec, Vec, Vec]:
    return e, n, e.cross(n)


def _combined(axes: tuple[Vec, Vec, Vec], parts: list[Scalar]) -> Vec:
    total: Vec = axes[0] * parts[0] + axes[1] * parts[1] + axes[2] * parts[2]
    return total
