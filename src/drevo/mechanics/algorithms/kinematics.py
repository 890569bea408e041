"""Kinematics of links: pose, Jacobian, velocity, acceleration of any link."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ..joints import NO_MOTION, Motion, Placement
from ..scalar import Matrix, Scalar, Vector
from ..spatial import EYE, ZERO, Mat, Vec
from ..tree import LinkFrame, Tree
from ..tree_indices import ancestors


class Pose(NamedTuple):
    """x_world = R x + p."""

    R: Mat
    p: Vec

    def then(self, X: Placement) -> Pose:
        R = self.R.mul(X.R)
        return Pose(R if X.k == -2 else R.mul(X.Q), self.p + self.R @ X.p)

    def compose(self, R: Mat, p: Vec) -> Pose:
        return Pose(self.R.mul(R), self.p + self.R @ p)

    def motion(self, m: Motion) -> Motion:
        """A motion about this frame's origin as one about the world's, in world axes."""
        w = self.R @ m.w
        return Motion(w, self.R @ m.v + self.p.cross(w))


WORLD_POSE = Pose(EYE, ZERO)


def body_poses(tree: Tree, q: Vector, at_base: bool = False) -> list[Pose]:
    """World from body, for every body; at_base: from where body 0 is."""
    poses: list[Pose] = []
    for i, (b, X) in enumerate(zip(tree.bodies, tree.placements(q))):
        here = (poses[b.parent] if b.parent >= 0 else WORLD_POSE).then(X)
        poses.append(WORLD_POSE if at_base and i == 0 else here)
    return poses


def path_poses(tree: Tree, q: Vector, body: int) -> dict[int, Pose]:
    """World from body, for a body and its ancestors; -1 is the ground."""
    return _named_poses(tree, q, sorted(ancestors(tree.parents, body)))


def _named_poses(tree: Tree, q: Vector, bodies: Iterable[int]) -> dict[int, Pose]:
    """World from body, each in a section of its own; a body's parent comes before it or is the ground, -1."""
    X = tree.placements(q)
    poses = {-1: WORLD_POSE}
    for i in bodies:
        b = tree.bodies[i]
        tree.section(i)
        poses[i] = poses[b.parent].then(X[i])
        tree.named_mat(poses[i].R, "R", i)
        tree.named_vec(poses[i].p, "p", i)
    return poses


class NamedEntries(list[list[Scalar]]):
    """A matrix whose entries users may name x[i][j], x[i, j] or, several at once, x[:3, 3]."""

    def __getitem__(self, k: Any) -> Any:
        i, *j = k if isinstance(k, tuple) else (k,)
        rows: Any = super().__getitem__(i)
        if not j:
            return rows
        return [row[j[0]] for row in rows] if isinstance(i, slice) else rows[j[0]]


def pose(tree: Tree, q: Vector, link: str) -> Matrix:
    """World from link, 4x4 homogeneous."""
    frame = tree.frames[link]
    return NamedEntries([*_rows(path_poses(tree, q, frame.body)[frame.body], frame), [0.0, 0.0, 0.0, 1.0]])


def poses(tree: Tree, q: Vector) -> list[Matrix]:
    """World from every moving link, (moving links, 3, 4): `pose` without its constant row 0 0 0 1.

    A quarter fewer numbers, as it is the writing of results that takes the time here.
    """
    bodies = _named_poses(tree, q, range(len(tree)))
    return [_rows(bodies[f.body], f) for f in (tree.frames[link] for link in moving_links(tree))]


def _rows(body: Pose, frame: LinkFrame) -> Matrix:
    """R | p of a link that stands so in a body."""
    R, p = body.compose(frame.R, frame.p)
    return [[*row, x] for row, x in zip(R, p)]


def moving_links(tree: Tree) -> list[str]:
    """Links that a joint carries, in the order of q, those of mimic joints last; none that is welded."""
    last = {b.link: (int(b.number.rstrip("abcdef")), i) for i, b in enumerate(tree.bodies) if b.link}
    return sorted(last, key=lambda link: last[link][0])


def jacobian(tree: Tree, q: Vector, link: str, frame: str) -> Matrix:
    """J with J v = velocity of the link's origin (linear, angular), 6 x nv."""
    at = tree.frames[link]
    poses = path_poses(tree, q, at.body)
    target = poses[at.body].compose(at.R, at.p)
    J: Matrix = [[0.0] * tree.nv for _ in range(6)]
    for i in sorted(ancestors(tree.parents, at.body)):
        b, here = tree.bodies[i], poses[i]
        for k, column in enumerate(tree.motion_subspace(b)):
            w = here.R @ column.w
            v = here.R @ column.v + w.cross(target.p - here.p)
            linear, angular = express(Motion(w, v), target, frame)
            for row, x in enumerate((*linear, *angular)):
                J[row][b.v + k] = J[row][b.v + k] + b.factor * x
    return J


def express(m: Motion, at: Pose, frame: str) -> tuple[Vec, Vec]:
    """(linear, angular) of a motion about the origin of `at` in world axes, in one of the three frames."""
    if frame == "local":
        return at.R.T @ m.v, at.R.T @ m.w
    if frame == "world":
        return m.v + at.p.cross(m.w), m.w
    return m.v, m.w


def velocity(tree: Tree, q: Vector, v: Vector, link: str, frame: str) -> list[Scalar]:
    """Velocity of a link's frame: linear, angular."""
    at, motion, _ = _state(tree, q, v, None, link)
    linear, angular = express(motion, at, frame)
    return [*linear, *angular]


def acceleration(tree: Tree, q: Vector, v: Vector, a: Vector, link: str, frame: str, kind: str) -> list[Scalar]:
    """Acceleration of a link's frame: linear, angular, without gravity.

    classical: the second derivative of the position of the frame's origin; spatial: less w x v.
    """
    return express_acceleration(*_state(tree, q, v, a, link), frame, kind)


def express_acceleration(at: Pose, m: Motion, acc: Motion, frame: str, kind: str) -> list[Scalar]:
    """Linear, angular of a link at a pose; m, acc: velocity and classical acceleration of its origin."""
    spatial = Motion(acc.w, acc.v - m.w.cross(m.v))
    linear, angular = express(spatial, at, frame)
    if kind == "classical":
        vl, va = express(m, at, frame)
        linear = linear + va.cross(vl)
    return [*linear, *angular]


def _state(tree: Tree, q: Vector, v: Vector, a: Vector | None, link: str) -> tuple[Pose, Motion, Motion]:
    """Pose of a link; velocity and classical acceleration of its origin in world axes."""
    frame = tree.frames[link]
    X, rates = tree.placements(q), tree.rates(v)
    accelerations = tree.rates(a) if a is not None else None
    here, m, acc = WORLD_POSE, NO_MOTION, NO_MOTION
    for i in sorted(ancestors(tree.parents, frame.body)):
        tree.section(i)
        if accelerations is not None:
            acc = step_acceleration(X[i], m, acc, rates[i], accelerations[i])
        m = step_velocity(X[i], m, rates[i])
        tree.named_vec(m.w, "omega", i)
        tree.named_vec(m.v, "v", i)
        here = here.then(X[i])
    arm_v = m.w.cross(frame.p)
    arm_a = acc.w.cross(frame.p) + m.w.cross(arm_v)
    at = here.compose(frame.R, frame.p)
    R = here.R
    return at, Motion(R @ m.w, R @ (m.v + arm_v)), Motion(R @ acc.w, R @ (acc.v + arm_a))


def step_velocity(X: Placement, parent: Motion, rate: Motion) -> Motion:
    """Velocity of a body in its own axes, from its parent's."""
    return X.motion_to_child(parent) + rate


def step_acceleration(X: Placement, m: Motion, acc: Motion, rate: Motion, rate2: Motion) -> Motion:
    """Angular and classical linear acceleration of a body in its own axes; m, acc: its parent's.

    w' = E^T w'_p + w'_J + (E^T w_p) x w_J
    a  = E^T (a_p + w'_p x p + w_p x (w_p x p)) + v'_J + (2 E^T w_p + w_J) x v_J
    """
    carried = X.to_child(m.w)
    w = X.to_child(acc.w) + rate2.w + carried.cross(rate.w)
    pole = acc.v + acc.w.cross(X.p) + m.w.cross(m.w.cross(X.p))
    return Motion(w, X.to_child(pole) + rate2.v + (carried + carried + rate.w).cross(rate.v))
