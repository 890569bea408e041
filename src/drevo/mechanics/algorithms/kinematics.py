"""Kinematics of links: pose, Jacobian, velocity, acceleration of any link."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
Poses = Mapping[int | str, Pose]  # of bodies by number, of the ground by -1, of links that stand on it by name


def body_poses(tree: Tree, q: Vector) -> list[Pose]:
    """World from body, for every body."""
    poses: list[Pose] = []
    for b, X in zip(tree.bodies, tree.placements(q)):
        poses.append((poses[b.parent] if b.parent >= 0 else WORLD_POSE).then(X))
    return poses


def placed_bodies(tree: Tree, q: Vector) -> Poses:
    """World from every body, the ground and the links that stand on it."""
    bodies: dict[int | str, Pose] = dict(enumerate(body_poses(tree, q)))
    return bodies | {-1: WORLD_POSE} | {x: Pose(f.R, f.p) for x, f in tree.frames.items() if f.body < 0}


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


def pose(tree: Tree, q: Vector, link: str, relative_to: str = "") -> Matrix:
    """World from link, 4x4 homogeneous; the frame of a link instead of the world's where one is named."""
    if relative_to:
        return _relative_pose(tree, q, link, relative_to)
    frame = tree.frames[link]
    return _homogeneous(path_poses(tree, q, frame.body)[frame.body], frame)


def poses(tree: Tree, q: Vector) -> list[Matrix]:
    """World from every moving link, (moving links, 4, 4)."""
    bodies = _named_poses(tree, q, range(len(tree)))
    return [_homogeneous(bodies[f.body], f) for f in (tree.frames[link] for link in moving_links(tree))]


def _homogeneous(body: Pose, frame: LinkFrame) -> Matrix:
    """World from a link whose frame stands so in a body, (4, 4)."""
    R, p = body.compose(frame.R, frame.p)
    return NamedEntries([*([*row, x] for row, x in zip(R, p)), [0.0, 0.0, 0.0, 1.0]])


def moving_links(tree: Tree) -> list[str]:
    """Links that a joint carries, in the order of q, those of mimic joints last; none that is welded."""
    last = {b.link: (int(b.number.rstrip("abcdeft")), i) for i, b in enumerate(tree.bodies) if b.link}
    return sorted(last, key=lambda link: last[link][0])


def jacobian(tree: Tree, q: Vector, link: str, frame: str, relative_to: str = "") -> Matrix:
    """J with J v = velocity of the link's origin (linear, angular), 6 x nv."""
    if relative_to:
        return _relative_jacobian(tree, q, link, relative_to, frame)
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


def velocity(tree: Tree, q: Vector, v: Vector, link: str, frame: str, relative_to: str = "") -> list[Scalar]:
    """Velocity of a link's frame: linear, angular."""
    at, motion, _ = _state(tree, q, v, None, link, relative_to)
    linear, angular = express(motion, at, frame)
    return [*linear, *angular]


def acceleration(
    tree: Tree, q: Vector, v: Vector, a: Vector, link: str, frame: str, kind: str, relative_to: str = ""
) -> list[Scalar]:
    """Acceleration of a link's frame: linear, angular, without gravity.

    classical: the second derivative of the position of the frame's origin; spatial: less w x v.
    """
    return express_acceleration(*_state(tree, q, v, a, link, relative_to), frame, kind)


def express_acceleration(at: Pose, m: Motion, acc: Motion, frame: str, kind: str) -> list[Scalar]:
    """Linear, angular of a link at a pose; m, acc: velocity and classical acceleration of its origin."""
    spatial = Motion(acc.w, acc.v - m.w.cross(m.v))
    linear, angular = express(spatial, at, frame)
    if kind == "classical":
        vl, va = express(m, at, frame)
        linear = linear + va.cross(vl)
    return [*linear, *angular]


def _state(
    tree: Tree, q: Vector, v: Vector, a: Vector | None, link: str, relative_to: str
) -> tuple[Pose, Motion, Motion]:
    """Pose of a link; velocity and classical acceleration of its origin in world axes."""
    if relative_to:
        return _relative_state(tree, q, v, a, link, relative_to)
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


# -- between two links: Zaremba 1990, (1.4), (1.9); only joints between them matter -------------------------------


class Observed(NamedTuple):
    """A link as one observes it from the body that carries both: pose, velocity and acceleration of its origin."""

    pose: Pose
    motion: Motion = NO_MOTION
    acceleration: Motion = NO_MOTION


def _relative_pose(tree: Tree, q: Vector, link: str, relative_to: str) -> Matrix:
    """Pose of a link in the frame of another, 4x4 homogeneous."""
    X = tree.placements(q)
    a, b = (_observed(tree, X, name, _meeting(tree, link, relative_to)).pose for name in (link, relative_to))
    at = _seen(a, b)
    return NamedEntries([*([*row, x] for row, x in zip(at.R, at.p)), [0.0, 0.0, 0.0, 1.0]])


def _relative_jacobian(tree: Tree, q: Vector, link: str, relative_to: str, frame: str) -> Matrix:
    """J with J v = velocity of a link as one observes it from another, 6 x nv, linear first."""
    X, meeting = tree.placements(q), _meeting(tree, link, relative_to)
    a, b = (_observed(tree, X, name, meeting).pose for name in (link, relative_to))
    J: Matrix = [[0.0] * tree.nv for _ in range(6)]
    for name, sign in ((link, 1.0), (relative_to, -1.0)):
        pose = WORLD_POSE
        for i in _below(tree, tree.frames[name].body, meeting):
            body, pose = tree.bodies[i], pose.then(X[i])
            for k, column in enumerate(tree.motion_subspace(body)):
                w = pose.R @ column.w
                m = Motion(w, pose.R @ column.v + w.cross(a.p - pose.p)) * (sign * body.factor)
                linear, angular = express(_turned(b, m), _seen(a, b), frame)
                for row, x in enumerate((*linear, *angular)):
                    J[row][body.v + k] = J[row][body.v + k] + x
    return J


def _relative_state(
    tree: Tree, q: Vector, v: Vector, a: Vector | None, link: str, relative_to: str
) -> tuple[Pose, Motion, Motion]:
    """Pose of a link in another; velocity and classical acceleration of its origin in the other's axes.

    Less what a point of the other link has there, and what its turning adds, Coriolis' acceleration.
    """
    X, rates = tree.placements(q), tree.rates(v)
    rates2 = tree.rates(a) if a is not None else None
    meeting = _meeting(tree, link, relative_to)
    (A, m, acc), (B, n, acc_n) = (_observed(tree, X, x, meeting, rates, rates2) for x in (link, relative_to))
    r = A.p - B.p
    w, u = m.w - n.w, m.v - n.v - n.w.cross(r)
    dw = acc.w - acc_n.w - n.w.cross(w)
    du = acc.v - acc_n.v - acc_n.w.cross(r) - n.w.cross(n.w.cross(r)) - n.w.cross(u + u)
    return _seen(A, B), _turned(B, Motion(w, u)), _turned(B, Motion(dw, du))


def _observed(
    tree: Tree,
    X: Sequence[Placement],
    link: str,
    meeting: int,
    rates: Sequence[Motion] | None = None,
    rates2: Sequence[Motion] | None = None,
) -> Observed:
    """A link from the body `meeting`, in its axes; velocities and accelerations where rates are given."""
    at, pose, m, acc = tree.frames[link], WORLD_POSE, NO_MOTION, NO_MOTION
    for i in _below(tree, at.body, meeting):
        tree.section(i)
        if rates2 is not None and rates is not None:
            acc = step_acceleration(X[i], m, acc, rates[i], rates2[i])
        if rates is not None:
            m = step_velocity(X[i], m, rates[i])
        pose = pose.then(X[i])
    arm_v = m.w.cross(at.p)
    arm_a = acc.w.cross(at.p) + m.w.cross(arm_v)
    R = pose.R
    return Observed(
        pose.compose(at.R, at.p), Motion(R @ m.w, R @ (m.v + arm_v)), Motion(R @ acc.w, R @ (acc.v + arm_a))
    )


def _meeting(tree: Tree, link: str, other: str) -> int:
    """The last body that carries both links; -1 is the ground."""
    shared = set(ancestors(tree.parents, tree.frames[link].body))
    return max((i for i in ancestors(tree.parents, tree.frames[other].body) if i in shared), default=-1)


def _below(tree: Tree, body: int, meeting: int) -> list[int]:
    """The bodies from `meeting`, which is left out, to a body that it carries."""
    return sorted(set(ancestors(tree.parents, body)) - set(ancestors(tree.parents, meeting)))


def _seen(a: Pose, b: Pose) -> Pose:
    """The pose a in the frame of b."""
    return Pose(b.R.T.mul(a.R), b.R.T @ (a.p - b.p))


def _turned(b: Pose, m: Motion) -> Motion:
    """A motion in the axes of b."""
    return Motion(b.R.T @ m.w, b.R.T @ m.v)
