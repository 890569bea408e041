"""tau = M(q) a + h(q, v): recursive Newton-Euler in body axes, limb by limb.

Luh, Walker, Paul 1980 with the matrix U = [w']x + [w]x[w]x of Khalil and Kleinfinger 1987, shared by the
children's poles and the body's own first moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..joints import NO_FORCE, Force
from ..scalar import Scalar, Vector
from ..spatial import EYE, ZERO, Mat, RigidInertia, Vec
from ..tree import Tree

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
