"""An MJCF file's robot in one configuration: what the file leaves to its lengths and its inertia there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ...description import JOINT_SIZES, ORIGIN, Inertial, Joint, JointDynamics, Model, Tendon, TendonSegment
from ...draft import Draft
from ...rotations import IDENTITY_POSE, FramePose, compose, from_axis_angle, unit
from ...wrapping import Scalars, wrapping

Array = np.ndarray[Any, Any]
MAX_INVERTED_RATES = 2000  # rates for which M is inverted


class Posture:
    """Hinges and slides by q, `at` by joint and 0 by default; balls and free bodies stand as in the file."""

    def __init__(self, draft: Draft | Model, at: Mapping[str, float], free: Mapping[str, FramePose]) -> None:
        """free: where free bodies stand, by name."""
        self.draft, self.at, self.free = draft, at, free

    def length(self, tendon: Tendon) -> float:
        """Length of a tendon in this posture."""
        total = sum(end.coefficient * self.at.get(end.joint, 0.0) for end in tendon.joints)
        for x in tendon.segments:
            parts, arc = self._parts(x)
            total += x.share * (arc + sum(float(np.linalg.norm(b - a)) for _, a, _, b in parts))
        return total

    def _parts(self, x: TendonSegment) -> tuple[list[tuple[str, Array, str, Array]], float]:
        """The straight parts of a segment, from a point of one link to one of another, and the length that lies on
        what it is around."""
        a, b, around = self._place(x.link_a, x.point_a), self._place(x.link_b, x.point_b), x.around
        if around:
            place, turn = (np.array(y) for y in self._walked[0][around.link])
            ends = [(turn.T @ (y - place) - around.centre).tolist() for y in (a, b)]
            way = wrapping(ends[0], ends[1], around, Scalars())
            if way.wraps:
                first, last = (self._place(around.link, np.array(y) + around.centre) for y in way[1:3])
                return [(x.link_a, a, around.link, first), (around.link, last, x.link_b, b)], float(way.arc)
        return [(x.link_a, a, x.link_b, b)], 0.0

    def of_joint(self, name: str) -> float:
        """The mean of M^-1 over the rates of a joint; nan where there is none."""
        rates = self._rates[name]
        return float(np.diag(self._inverse)[rates].mean()) if self._inverse.size else float("nan")

    def of_tendon(self, tendon: Tendon) -> float:
        """J M^-1 J^T of a length; nan where there is none."""
        if not self._inverse.size:
            return float("nan")
        J = np.zeros(len(self._inverse))
        for end in tendon.joints:
            J[self._rates[end.joint]] += end.coefficient
        for x in tendon.segments:
            for link_a, a, link_b, b in self._parts(x)[0]:
                along = x.share * (b - a) / (np.linalg.norm(b - a) or 1.0)
                for link, point, sign in ((link_b, b, 1.0), (link_a, a, -1.0)):
                    w, v = self._twists[self._above[link]].reshape(-1, 2, 3).transpose(1, 0, 2)
                    J[self._above[link]] += sign * (v + np.cross(w, point)) @ along
        return float(J @ self._inverse @ J)

    @cached_property
    def _walked(self) -> tuple[dict[str, FramePose], dict[str, list[int]], dict[str, slice], Array]:
        """Poses of the links, the rates that move them, those of every joint, and their twists (w, v) at the
        world's origin."""
        poses: dict[str, FramePose] = {"world": IDENTITY_POSE}
        above: dict[str, list[int]] = {"world": []}
        rates: dict[str, slice] = {}
        twists: list[Array] = []
        for joint in self.draft.joints:
            frame = compose(poses[joint.parent], (joint.origin, joint.rotation))
            frame = self.free[joint.child] if joint.kind == "free" else frame
            first, axis = len(twists), unit(joint.axis) if any(joint.axis) else joint.axis
            twists += _twists(joint, np.array(axis), *map(np.array, frame))
            rates[joint.name] = slice(first, len(twists))
            above[joint.child] = [*above[joint.parent], *range(first, len(twists))]
            q = self.at.get(joint.name, 0.0)
            if q and joint.kind == "revolute":
                frame = compose(frame, (ORIGIN, from_axis_angle(axis, q)))
            elif q:
                frame = compose(frame, ((q * axis[0], q * axis[1], q * axis[2]), IDENTITY_POSE[1]))
            poses[joint.child] = compose(frame, (joint.child_origin, joint.child_rotation))
        return poses, above, rates, np.array(twists).reshape(-1, 6)

    _above = property(lambda self: self._walked[1])
    _rates = property(lambda self: self._walked[2])
    _twists = property(lambda self: self._walked[3])

    def _place(self, link: str, point: Any) -> Array:
        place, turn = self._walked[0][link]
        placed: Array = np.array(place) + np.array(turn) @ point
        return placed

    @cached_property
    def _inverse(self) -> Array:
        poses, above, rates, twists = self._walked
        if len(twists) > MAX_INVERTED_RATES:
            return np.zeros((0, 0))
        M = np.zeros((len(twists), len(twists)))
        for link in self.draft.links:
            if link.inertial and link.name in above:
                rows, S = above[link.name], twists[above[link.name]]
                M[np.ix_(rows, rows)] += S @ _spatial(link.inertial, poses[link.name]) @ S.T
        for joint in self.draft.joints:
            k = np.arange(rates[joint.name].start, rates[joint.name].stop)
            M[k, k] += (joint.dynamics or JointDynamics()).armature
        try:
            inverse: Array = np.linalg.inv(M)
        except np.linalg.LinAlgError:
            return np.zeros((0, 0))
        return inverse if bool(np.isfinite(inverse).all()) else np.zeros((0, 0))


def _twists(joint: Joint, axis: Array, place: Array, turn: Array) -> list[Array]:
    """The motions of a joint's rates: of a ball about the body's axes, of a free body along the world's before."""
    nothing = np.zeros(3)
    if joint.kind == "prismatic":
        return [np.concatenate([nothing, turn @ axis])]
    axes = [turn @ axis] if joint.kind == "revolute" else list(turn.T) if JOINT_SIZES[joint.kind][1] else []
    turns = [np.concatenate([w, np.cross(place, w)]) for w in axes]
    return [np.concatenate([nothing, e]) for e in np.eye(3)] + turns if joint.kind == "free" else turns


def _spatial(body: Inertial, pose: FramePose) -> Array:
    """The inertia (6, 6) of a body about the world's origin, angular first."""
    turn = np.array(pose[1])
    x, y, z = np.array(pose[0]) + turn @ body.com
    hat = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    about = turn @ np.array(body.tensor) @ turn.T - body.mass * hat @ hat
    return np.block([[about, body.mass * hat], [-body.mass * hat, body.mass * np.eye(3)]])
