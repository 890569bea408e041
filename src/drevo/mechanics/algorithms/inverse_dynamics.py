"""tau = M(q) a + h(q, v): recursive Newton-Euler in body axes, limb by limb.

Luh, Walker, Paul 1980 with the matrix U = [w']x + [w]x[w]x of Khalil and Kleinfinger 1987, shared by the
children's poles and the body's own first moment.

The wrench inside every joint, what each parent exerts on its link, and the balance of power.

Alyushin: sum of W_e = sum of W_k + W_p; in every link the power that comes in through its joints is W_k + W_p.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..joints import NO_FORCE, NO_MOTION, Force, Motion
from ..scalar import Matrix, Scalar, Vector
from ..spatial import EYE, ZERO, Mat, RigidInertia, Vec
from ..tree import Tree
from .kinematics import body_poses, moving_links, step_acceleration, step_velocity

External = Mapping[str, Vector]  # link -> force, moment at the link's origin, world axes


def rate_matrix(w: Vec, dw: Vec) -> Mat:
    """U = [w']x + [w]x[w]x, so that the second derivative of a fixed vector r is U r."""
    xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
    xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
    return Mat(
        Vec(-(yy + zz), xy - dw.z, xz + dw.y),
        Vec(xy + dw.z, -(xx + zz), yz - dw.x),
        Vec(xz - dw.y, yz + dw.x, -(xx + yy)),
    )


def body_force(body: RigidInertia, w: Vec, dw: Vec, U: Mat, a: Vec) -> Force:
    """Wrench that moves a body, about its frame's origin: F = m a + U h, N = J w' + w x J w + h x a."""
    J = body.J
    return Force(J @ dw + w.cross(J @ w) + body.h.cross(a), a * body.m + U @ body.h)


def inverse_dynamics(
    tree: Tree, q: Vector, v: Vector, a: Vector, external: External | None = None, gravity: bool = True
) -> list[Scalar]:
    """Joint forces, (nv,) N m or N; gravity and the external wrenches are in. O(n)."""
    wrenches, _ = body_wrenches(tree, q, v, a, external, gravity)
    return tree.with_rotors(project(tree, wrenches), a)


def project(tree: Tree, wrenches: Sequence[Force]) -> list[Scalar]:
    """The joint's share of each joint wrench; a mimic joint adds to the one that drives it."""
    tau: list[Scalar] = [0.0] * tree.nv
    for b, f in zip(tree.bodies, wrenches):
        for k, column in enumerate(tree.motion_subspace(b)):
            tau[b.v + k] = tau[b.v + k] + b.factor * column.dot(f)
    return tau


def body_wrenches(
    tree: Tree, q: Vector, v: Vector, a: Vector, external: External | None = None, gravity: bool = True
) -> tuple[list[Force], list[Mat]]:
    """The wrench of each parent on each body, about the body's origin in body axes.

    Also the world-from-body rotations, empty without external wrenches.
    """
    X, rates, rates2 = tree.placements(q), tree.rates(v), tree.rates(a)
    n = len(tree)
    w, dw, pole = [ZERO] * n, [ZERO] * n, [ZERO] * n
    U: list[Mat] = [EYE] * n
    f = [NO_FORCE] * n
    world: list[Mat] = [EYE] * n if external else []
    start = -tree.gravity if gravity else ZERO
    for out, i in tree.tour():
        b, x, rate = tree.bodies[i], X[i], rates[i]
        p = b.parent
        if out:
            tree.section(i)
            carried = x.to_child(w[p]) if p >= 0 else ZERO
            w[i] = tree.named_vec(carried + rate.w, "omega", i)
            dw[i] = (x.to_child(dw[p]) if p >= 0 else ZERO) + rates2[i].w + carried.cross(rate.w)
            tree.named_vec(dw[i], "alpha", i)
            at_pole = pole[p] + U[p] @ x.p if p >= 0 else start
            relative = rates2[i].v + (carried + carried + rate.w).cross(rate.v)
            pole[i] = tree.named_vec(x.to_child(at_pole) + relative, "a", i)
            U[i] = tree.named_mat(rate_matrix(w[i], dw[i]), "U", i)
            f[i] = body_force(b.inertia, w[i], dw[i], U[i], pole[i])
            if external:
                world[i] = (world[p] if p >= 0 else EYE).mul(x.rotation)
                f[i] = f[i] - external_on(tree, i, world[i], external)
        else:
            tree.named_vec(f[i].f, "f", i)
            tree.named_vec(f[i].n, "n", i)
            if p >= 0:
                f[p] = f[p] + x.force_to_parent(f[i])
    return f, world


def external_on(tree: Tree, i: int, R: Mat, external: External) -> Force:
    """The external wrenches on the links of body i, in body axes about its origin."""
    total = NO_FORCE
    for link, wrench in external.items():
        frame = tree.frames[link]
        if frame.body == i:
            force, moment = R.T @ Vec(*wrench[:3]), R.T @ Vec(*wrench[3:])
            total = total + Force(moment + frame.p.cross(force), force)
    return total


def bias(tree: Tree, q: Vector, v: Vector, external: External | None = None) -> list[Scalar]:
    """h = C v + g, (nv,)."""
    return inverse_dynamics(tree, q, v, [0.0] * tree.nv, external)


def gravity(tree: Tree, q: Vector) -> list[Scalar]:
    """g(q), (nv,): the joint forces that hold the robot at rest."""
    return inverse_dynamics(tree, q, [0.0] * tree.nv, [0.0] * tree.nv)


def inertia_product(tree: Tree, q: Vector, x: Vector) -> list[Scalar]:
    """M(q) x, (nv,): what accelerates the robot at rest by x without gravity; O(n), no matrix is formed."""
    return inverse_dynamics(tree, q, [0.0] * tree.nv, x, gravity=False)


LinkPowers = tuple[list[Scalar], list[Scalar], list[Scalar]]


def joint_wrenches(
    tree: Tree,
    q: Vector,
    v: Vector,
    a: Vector,
    frame: str = "local_world_aligned",
    external: External | None = None,
) -> Matrix:
    """Force and moment of the parent on every moving link, (moving links, 6); gravity is in.

    About the origin of the link's own frame, after the joint's motion; frame "local" (its axes) or
    "local_world_aligned" (world axes); "world" is about the world's origin. A joint of several steps passes
    through massless bodies, so the wrench on its last body is that of the parent.
    """
    wrenches, _ = body_wrenches(tree, q, v, a, external)
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
    tau = inverse_dynamics(tree.replace(armature={}), q, v, a)
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
    wrenches, _ = body_wrenches(tree, q, v, a)
    X, rates = tree.placements(q), tree.rates(v)
    moving: list[Motion] = []
    for i, b in enumerate(tree.bodies):
        moving.append(step_velocity(X[i], moving[b.parent] if b.parent >= 0 else NO_MOTION, rates[i]))
    return [moving[i].dot(wrenches[i]) for i in (tree.frames[link].body for link in moving_links(tree))]
