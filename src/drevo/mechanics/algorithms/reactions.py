"""The wrench inside every joint, what each parent exerts on its link, and the balance of power.

Alyushin: sum of W_e = sum of W_k + W_p; in every link the power that comes in through its joints is W_k + W_p.
"""

from __future__ import annotations

from ..joints import NO_MOTION, Motion
from ..scalar import Matrix, Scalar, Vector
from ..tree import Tree
from . import inverse_dynamics as idyn
from .kinematics import body_poses, moving_links, step_acceleration, step_velocity

LinkPowers = tuple[list[Scalar], list[Scalar], list[Scalar]]


def joint_wrenches(
    tree: Tree,
    q: Vector,
    v: Vector,
    a: Vector,
    frame: str = "local_world_aligned",
    external: idyn.External | None = None,
) -> Matrix:
    """Force and moment of the parent on every moving link, (moving links, 6); gravity is in.

    About the origin of the link's own frame, after the joint's motion; frame "local" (its axes) or
    "local_world_aligned" (world axes); "world" is about the world's origin. A joint of several steps passes
    through massless bodies, so the wrench on its last body is that of the parent.
    """
    wrenches, _ = idyn.body_wrenches(tree, q, v, a, external)
    poses = body_poses(tree, q) if frame != "local" else []
    rows: Matrix = []
    for link in moving_links(tree):
        at = tree.frames[link]
        f = wrenches[at.body]
        R = poses[at.body].R if poses else at.R.T
        force, moment = R @ f.f, R @ (f.n - at.p.cross(f.f))
        if frame == "world":
            moment = moment + poses[at.body].compose(at.R, at.p).p.cross(force)
        rows.append([*force, *moment])
    return rows


def power_balance(tree: Tree, q: Vector, v: Vector, a: Vector) -> LinkPowers:
    """tau_i v_i of every drive, and W_k, W_p of every moving link, W.

    W_k is the rate of its kinetic energy, W_p = -m g . v_C: sum(drives) = sum(W_k) + sum(W_p). A drive gives
    what reaches the links, without what its rotor takes.
    """
    tau = idyn.inverse_dynamics(tree.replace(armature={}), q, v, a)
    poses, X = body_poses(tree, q), tree.placements(q)
    rates, rates2 = tree.rates(v), tree.rates(a)
    moving: list[tuple[Motion, Motion]] = []
    kinetic: list[Scalar] = []
    potential: list[Scalar] = []
    for i, b in enumerate(tree.bodies):
        m, acc = moving[b.parent] if b.parent >= 0 else (NO_MOTION, NO_MOTION)
        moving.append((step_velocity(X[i], m, rates[i]), step_acceleration(X[i], m, acc, rates[i], rates2[i])))
        (w, u), (dw, du), P = *moving[-1], b.inertia
        force = du * P.m + dw.cross(P.h) + w.cross(w.cross(P.h))
        moment = P.J @ dw + w.cross(P.J @ w) + P.h.cross(du)
        kinetic.append(u.dot(force) + w.dot(moment))
        potential.append(-(tree.gravity.dot(poses[i].R @ (u * P.m + w.cross(P.h)))))
    rows = [tree.frames[link].body for link in moving_links(tree)]
    return [x * y for x, y in zip(tau, v)], [kinetic[i] for i in rows], [potential[i] for i in rows]


def joint_power(tree: Tree, q: Vector, v: Vector, a: Vector) -> list[Scalar]:
    """(W_e) of the joint of every moving link, W: what the parent's wrench on the link does on the link."""
    wrenches, _ = idyn.body_wrenches(tree, q, v, a)
    X, rates = tree.placements(q), tree.rates(v)
    moving: list[Motion] = []
    for i, b in enumerate(tree.bodies):
        moving.append(step_velocity(X[i], moving[b.parent] if b.parent >= 0 else NO_MOTION, rates[i]))
    return [moving[i].dot(wrenches[i]) for i in (tree.frames[link].body for link in moving_links(tree))]
