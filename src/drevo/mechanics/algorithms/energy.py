"""Kinetic and potential energy, centre of mass, momentum."""

from __future__ import annotations

from ...errors import TraceError
from ..joints import NO_FORCE, NO_MOTION, Force, Motion
from ..scalar import Scalar, Vector, is_zero
from ..spatial import ZERO, Vec
from ..tree import Tree
from .inertia_matrix import apply_inertia
from .kinematics import step_velocity


def kinetic_energy(tree: Tree, q: Vector, v: Vector) -> Scalar:
    """T = sum of (w.Jw + m v.v + 2 v.(w x h)) / 2 over the bodies, J."""
    X, rates = tree.placements(q), tree.rates(v)
    moving: list[Motion] = []
    twice: Scalar = 0.0
    for i, b in enumerate(tree.bodies):
        tree.section(i)
        m = step_velocity(X[i], moving[b.parent], rates[i]) if b.parent >= 0 else rates[i]
        moving.append(m)
        tree.named_vec(m.w, "omega", i)
        tree.named_vec(m.v, "v", i)
        own = m.dot(apply_inertia(b.inertia, m))
        twice = twice + tree.named(own, f"e_{b.number}")
    return 0.5 * twice + tree.rotor_energy(v)


def first_moment(tree: Tree, q: Vector) -> tuple[Scalar, Vec]:
    """Mass of the moving bodies and their first moment about the world origin, from the leaves."""
    X = tree.placements(q)
    m: list[Scalar] = [b.inertia.m for b in tree.bodies]
    h = [b.inertia.h for b in tree.bodies]
    mass: Scalar = 0.0
    moment = ZERO
    for i in range(len(tree) - 1, -1, -1):
        p = tree.bodies[i].parent
        tree.section(i)
        moved = X[i].to_parent(tree.named_vec(h[i], "h", i)) + X[i].p * m[i]
        if p >= 0:
            h[p], m[p] = h[p] + moved, m[p] + m[i]
        else:
            moment, mass = moment + moved, mass + m[i]
    return mass, moment


def potential_energy(tree: Tree, q: Vector) -> Scalar:
    """V = -g . (first moment of the moving bodies), J; zero at the world origin."""
    return -tree.gravity.dot(first_moment(tree, q)[1])


def center_of_mass(tree: Tree, q: Vector) -> list[Scalar]:
    """Centre of mass of the moving bodies, (3,) m, world axes."""
    mass, moment = first_moment(tree, q)
    if is_zero(mass):
        raise TraceError("the moving bodies have no mass, so they have no centre of mass; give one of them a mass")
    return list(moment * (1.0 / mass))


def momentum(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Linear momentum, then angular momentum about the centre of mass; (6,), world axes."""
    X, rates = tree.placements(q), tree.rates(v)
    n = len(tree)
    moving = [NO_MOTION] * n
    l = [NO_FORCE] * n
    total = NO_FORCE
    for out, i in tree.tour():
        b = tree.bodies[i]
        if out:
            tree.section(i)
            moving[i] = step_velocity(X[i], moving[b.parent], rates[i]) if b.parent >= 0 else rates[i]
            l[i] = apply_inertia(b.inertia, moving[i])
        else:
            up = X[i].force_to_parent(l[i])
            if b.parent >= 0:
                l[b.parent] = l[b.parent] + up
            else:
                total = total + up
    mass, moment = first_moment(tree, q)
    if is_zero(mass):  # nothing moves but pure inertia, whose angular momentum is the same about every point
        return [*total.f, *total.n]
    return [*total.f, *about_center(total, moment * (1.0 / mass))]


def about_center(total: Force, c: Vec) -> Vec:
    """Angular momentum about c."""
    return total.n - c.cross(total.f)
