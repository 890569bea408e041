"""Dynamics with forces of the joints in, M a + h = tau + p(q, v): what dampers, friction, springs, tendons
and the compensation of weights exert, where they are asked for; and what the rotors of free joints feel, always.

The armature A of a free joint is as a mass without weight: A dv/dt + w x A v in the axes of the body, in which its
rates are; along the world's it is A d2p/dt2. Of the turning A dw/dt is left, for w x A w = 0.

Tendons: lengths that follow from q, with springs, dampers, dry friction and limits along them.

L = sum of c x over coordinates, or of the straight segments between points of links; the force F along it acts on
the joints as J^T F, J = dL/dq.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...model.description import Model, Tendon, TendonSegment, TendonWrap
from ...model.wrapping import TINY, Scalars, wrapping
from ..acting import FRICTION_WIDTH, passive_forces, slopes
from ..jet import Jet, jet_along
from ..scalar import Matrix, Scalar, Vector, atan2, dot, is_zero, maximum, minimum, sqrt, where
from ..spatial import UNIT_VECS, Vec, skew
from ..tree import Tree, build_tree
from .constraints import ConstraintRows, Kinematics, Track, distance
from .derivatives import inverse_dynamics_derivatives
from .explicit import explicit
from .inverse_dynamics import gravity, inverse_dynamics


def tendon_length(k: Kinematics, tendon: Tendon, turning: bool = False) -> ConstraintRows:
    """The length of a tendon as a row: L, L', J and J' v; of what lies around geoms J' v where `turning` asks."""
    length, rate, bias = tendon.offset, 0.0, 0.0
    jacobian: list[Scalar] = [0.0] * k.tree.nv
    for end in tendon.joints:
        owner = next(x for x in k.tree.owners() if x.joint == end.joint)
        length = length + end.coefficient * k.q[owner.q]
        rate = rate + end.coefficient * k.v[owner.v]
        jacobian[owner.v] = jacobian[owner.v] + end.coefficient
    for x in tendon.segments:
        part = _wrapped(k, x, x.around, turning) if x.around else _straight(k, x)
        (value,), (speed,), (row,), (curved,) = part
        length, rate, bias = length + x.share * value, rate + x.share * speed, bias + x.share * curved
        jacobian = [a if is_zero(b) else a + x.share * b for a, b in zip(jacobian, row)]
    return ConstraintRows([length], [rate], [jacobian], [bias])


def _straight(k: Kinematics, x: TendonSegment) -> ConstraintRows:
    if k.tree.frames[x.link_a].body != k.tree.frames[x.link_b].body:
        return distance(k, x.link_a, x.point_a, x.link_b, x.point_b, 0.0)
    apart = k.point(x.link_a, x.point_a).x - k.point(x.link_b, x.point_b).x
    return ConstraintRows([sqrt(apart.dot(apart))], [0.0], [[0.0] * k.tree.nv], [0.0])


def _wrapped(k: Kinematics, x: TendonSegment, around: TendonWrap, turning: bool) -> ConstraintRows:
    """A segment around a geom: points of it where the tendon meets it take no part in the rate, for the way is the
    shortest."""
    straight, pose = _straight(k, x), k.pose(around.link)
    a, b = k.point(x.link_a, x.point_a), k.point(x.link_b, x.point_b)
    centre = Vec(*around.centre)
    ends = [pose.R.T @ (y.x - pose.p) - centre for y in (a, b)]
    way = wrapping(ends[0], ends[1], around, Scalars(sqrt, atan2, where))
    wraps, total, rate, row = way.wraps > 0.0, way.arc, 0.0, [0.0] * k.tree.nv
    for end, touch in ((a, way.first), (b, way.last)):
        apart = end - k.point(around.link, Vec(*touch) + centre)
        size = sqrt(maximum(apart.x.dot(apart.x), TINY * TINY))
        n = apart.x * (1.0 / size)
        total, rate = total + size, rate + n.dot(apart.d)
        row = [z + n.dot(c) for z, c in zip(row, apart.columns)]
    (length,), (speed,), (moves,), (bias,) = straight
    bias = where(wraps, _bias_of_way(k, a, b, around), bias) if turning else 0.0
    return ConstraintRows(
        [where(wraps, total, length)], [where(wraps, rate, speed)],
        [[where(wraps, y, z) for y, z in zip(row, moves)]], [bias],
    )  # fmt: skip


def _bias_of_way(k: Kinematics, a: Track, b: Track, around: TendonWrap) -> Scalar:
    """J' v of a way around a geom: the second derivative of its length along the motion, both ends as the geom
    sees them."""
    centre, axes = k.point(around.link, around.centre), [k.direction(around.link, e) for e in UNIT_VECS]
    seen = [[(y - centre).dot(axis) for axis in axes] for y in (a, b)]
    ends = [[Jet(row.value[0], row.rate[0], row.bias[0]) for row in end] for end in seen]
    way = wrapping(ends[0], ends[1], around, Scalars(sqrt, atan2, where))
    parts = [[x - y for x, y in zip(end, touch)] for end, touch in zip(ends, (way.first, way.last))]
    return (way.arc + sqrt(dot(parts[0], parts[0])) + sqrt(dot(parts[1], parts[1]))).dd


def tendon_coupling(k: Kinematics, tendon: Tendon, driver: Tendon | None, coefficients: Vector) -> ConstraintRows:
    """f = L - (c0 + c1 x + c2 x^2 + ..), x the driver's length; L - c0 without one."""
    (value,), (rate,), (row,), (bias,) = tendon_length(k, tendon, True)
    if driver is None:
        return ConstraintRows([value - coefficients[0]], [rate], [row], [bias])
    (x,), (dx,), (column,), (ddx,) = tendon_length(k, driver, True)
    wanted: Scalar = Jet(0.0)
    for c in reversed(coefficients):
        wanted = wanted * Jet(x, 1.0) + c
    row = [a - wanted.d * b for a, b in zip(row, column)]
    bias = bias - wanted.d * ddx - wanted.dd * (dx * dx)
    return ConstraintRows([value - wanted.x], [rate - wanted.d * dx], [row], [bias])


def pull(tendon: Tendon, length: Scalar, rate: Scalar) -> Scalar:
    """The force along a tendon that lengthens it, N (N m)."""
    force: Scalar = -(tendon.damping * rate)
    if tendon.quadratic:
        force = force - tendon.quadratic * where(rate > 0.0, rate, -rate) * rate
    if tendon.friction:
        force = force - tendon.friction * rate * (1.0 / sqrt(rate * rate + FRICTION_WIDTH * FRICTION_WIDTH))
    if tendon.stiffness:
        low, high = tendon.rest
        apart = length - low if low == high else maximum(length - high, 0.0) + minimum(length - low, 0.0)
        force = force - tendon.stiffness * apart
    for bound, sign in ((tendon.upper, 1.0), (tendon.lower, -1.0)):
        if bound is not None:
            beyond = sign * (length - bound)
            held = maximum(tendon.limit_stiffness * beyond + tendon.limit_damping * sign * rate, 0.0)
            force = force - sign * where(beyond > 0.0, held, 0.0)
    return force


def tendon_forces(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Efforts of the tendons of a tree on the joints, (nv,) N m or N."""
    out: list[Scalar] = [0.0] * tree.nv
    if tree.tendons is None:
        return out
    plain, pulling = tree.tendons
    k = Kinematics(plain, q, v)
    for tendon in pulling:
        (length,), (rate,), (row,), _ = tendon_length(k, tendon)
        force = pull(tendon, length, rate)
        out = [x if is_zero(j) else x + j * force for x, j in zip(out, row)]
    return out


def tendon_slopes(tree: Tree, q: Vector, v: Vector) -> Iterator[tuple[int, int, Scalar, Scalar]]:
    """Row, column and the derivatives of the force of the row by the coordinate and the rate of the column."""
    if tree.tendons is None:
        return
    for k in range(tree.nv):
        unit = [1.0 if i == k else 0.0 for i in range(tree.nv)]
        moved: list[Scalar] = list(q)
        for b in tree.owners():
            moved[b.q : b.q + b.nq] = jet_along(q[b.q : b.q + b.nq], b.kind, unit[b.v : b.v + b.nv])
        by_q = tendon_forces(tree, moved, v)
        by_v = tendon_forces(tree, q, [Jet(x, u) for x, u in zip(v, unit)])
        for row, (a, b) in enumerate(zip(by_q, by_v)):
            slope_q, slope_v = (x.d if isinstance(x, Jet) else 0.0 for x in (a, b))
            if not (is_zero(slope_q) and is_zero(slope_v)):
                yield row, k, slope_q, slope_v


def with_tendons(tree: Tree, model: Model) -> Tree:
    """The tree with the tendons of its model that pull, which see the tree as it is now."""
    pulling = tuple(tendon for tendon in model.tendons if tendon.pulls)
    return tree.replace(tendons=(tree, pulling)) if pulling else tree


Array = np.ndarray[Any, Any]
Compute = Callable[..., Any]
Slopes = Iterator[tuple[int, int, Scalar, Scalar]]  # force, rate, and the derivatives by coordinate and by rate


class JointForces(NamedTuple):
    """JointForces of the joints, (nv,) N m or N, and their derivatives."""

    value: Callable[[Tree, Vector, Vector], list[Scalar]]
    slopes: Callable[[Tree, Vector, Vector], Slopes]


def passive(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """p(q, v), (nv,) N m or N."""
    out = passive_forces(tree.acting, tree.nv, q, v)
    if tree.tendons is not None:
        out = [x + y for x, y in zip(out, tendon_forces(tree, q, v))]
    if tree.lift is not None:
        out = [x + y for x, y in zip(out, _on("gravity", gravity)(tree.lift, q))]
    return out


def passive_slopes(tree: Tree, q: Vector, v: Vector) -> Slopes:
    """dp/dq and dp/dv, entry by entry."""
    yield from slopes(tree.acting, q, v)
    yield from tendon_slopes(tree, q, v)
    if tree.lift is not None:
        still = [0.0] * tree.nv
        by_q = _on("inverse_dynamics_derivatives", inverse_dynamics_derivatives)(tree.lift, q, still, still)[0]
        yield from ((r, c, x, 0.0) for r, row in enumerate(by_q) for c, x in enumerate(row))


def _on(name: str, plain: Compute) -> Compute:
    """The plain algorithm, on trees with joints by formula too."""
    parts = {name: plain, "inverse_dynamics": inverse_dynamics}
    return lambda tree, *state: (explicit(name, parts) if tree.formulas else plain)(tree, *state)


def passive_tree(model: Model) -> Tree:
    """The tree of a model with all that acts on it."""
    return with_tendons(build_tree(model, forces=True), model)


def passive_on_arrays(model: Model) -> Callable[[Array, Array], Array]:
    """p of states (..., nq) and (..., nv) as (..., nv)."""
    tree = passive_tree(model)

    def of(q: Array, v: Array) -> Array:
        parts = passive(tree, list(np.moveaxis(q, -1, 0)), list(np.moveaxis(v, -1, 0)))
        return np.stack([np.broadcast_to(x, v.shape[:-1]) for x in parts], -1)

    return of


def _coasting_rotors(tree: Tree) -> Iterator[tuple[int, Scalar]]:
    """First rate and armature of every free joint that has one."""
    for owner in tree.owners():
        if owner.kind == "free" and owner.v in tree.armature:
            yield owner.v, tree.armature[owner.v]


def coasts(tree: Tree) -> bool:
    """Some free joint has an armature."""
    return bool(tree.armature) and any(True for _ in _coasting_rotors(tree))


def coasting(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """-w x A v of the free joints."""
    out: list[Scalar] = [0.0] * tree.nv
    for at, size in _coasting_rotors(tree):
        out[at : at + 3] = Vec(*v[at : at + 3]).cross(Vec(*v[at + 3 : at + 6])) * size
    return out


def coasting_slopes(tree: Tree, q: Vector, v: Vector) -> Slopes:
    for at, size in _coasting_rotors(tree):
        u, w = Vec(*v[at : at + 3]), Vec(*v[at + 3 : at + 6])
        for r in range(3):
            for c in range(3):
                yield at + r, at + c, 0.0, -(skew(w)[r][c] * size)
                yield at + r, at + 3 + c, 0.0, skew(u)[r][c] * size


PASSIVE, COASTING = JointForces(passive, passive_slopes), JointForces(coasting, coasting_slopes)


def with_forces(name: str, compute: Compute, forces: JointForces = PASSIVE) -> Compute:
    """The algorithm of a quantity with the forces in; itself where they do not matter."""
    change = _WITH.get(name)
    return partial(change, compute, forces) if change else compute


def _efforts(compute: Compute, p: JointForces, tree: Tree, q: Vector, v: Vector, *a: Vector, **extra: Any) -> Any:
    return [x - y for x, y in zip(compute(tree, q, v, *a, **extra), p.value(tree, q, v))]


def _accelerations(
    compute: Compute, p: JointForces, tree: Tree, q: Vector, v: Vector, tau: Vector, **extra: Any
) -> Any:
    """Forward dynamics with the forces that act in the joints added to tau."""
    return compute(tree, q, v, [x + y for x, y in zip(tau, p.value(tree, q, v))], **extra)


def _effort_derivatives(compute: Compute, p: JointForces, tree: Tree, q: Vector, v: Vector, a: Vector) -> Any:
    """Less dp/dq and dp/dv."""
    found = compute(tree, q, v, a)
    for r, c, *by in p.slopes(tree, q, v):
        for rows, x in zip(found, by):
            rows[r][c] = rows[r][c] - x
    return found


def _acceleration_derivatives(
    compute: Compute, p: JointForces, tree: Tree, q: Vector, v: Vector, tau: Vector
) -> Any:
    """da/dq + M^-1 dp/dq, da/dv + M^-1 dp/dv."""
    found = _accelerations(compute, p, tree, q, v, tau)
    for r, c, *by in p.slopes(tree, q, v):
        for rows, x in zip(found, by):
            for row, inverse in zip(rows, found[-1]):
                row[c] = row[c] + inverse[r] * x
    return found


def _coriolis_matrix(compute: Compute, p: JointForces, tree: Tree, q: Vector, v: Vector) -> Matrix:
    """With what of it goes with the linear rates, which is skew."""
    C: Matrix = compute(tree, q, v)
    for at, size in _coasting_rotors(tree):
        for r, row in enumerate(skew(Vec(*v[at + 3 : at + 6]))):
            for c, x in enumerate(row):
                C[at + r][at + c] = C[at + r][at + c] + x * size
    return C


_WITH: dict[str, Compute] = {
    "inverse_dynamics": _efforts,
    "bias": _efforts,
    "forward_dynamics": _accelerations,
    "inverse_dynamics_derivatives": _effort_derivatives,
    "forward_dynamics_derivatives": _acceleration_derivatives,
    "coriolis_matrix": _coriolis_matrix,
}
