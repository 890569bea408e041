"""Tendons: lengths that follow from q, with springs, dampers, dry friction and limits along them.

L = sum of c x over coordinates, or of the straight segments between points of links; the force F along it acts on
the joints as J^T F, J = dL/dq.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model.description import Model, Tendon
from ..acting import FRICTION_WIDTH
from ..jet import Jet, jet_along
from ..scalar import Scalar, Vector, is_zero, maximum, minimum, sqrt, where
from ..tree import Tree
from .constraints import ConstraintRows, Kinematics, distance


def tendon_length(k: Kinematics, tendon: Tendon) -> ConstraintRows:
    """The length of a tendon as a row: L, L', J and J' v."""
    length, rate, bias = tendon.offset, 0.0, 0.0
    jacobian: list[Scalar] = [0.0] * k.tree.nv
    for end in tendon.joints:
        owner = next(x for x in k.tree.owners() if x.joint == end.joint)
        length = length + end.coefficient * k.q[owner.q]
        rate = rate + end.coefficient * k.v[owner.v]
        jacobian[owner.v] = jacobian[owner.v] + end.coefficient
    for x in tendon.segments:
        if k.tree.frames[x.link_a].body == k.tree.frames[x.link_b].body:
            apart = k.point(x.link_a, x.point_a).x - k.point(x.link_b, x.point_b).x
            length = length + x.share * sqrt(apart.dot(apart))
            continue
        (value,), (speed,), (row,), (curved,) = distance(k, x.link_a, x.point_a, x.link_b, x.point_b, 0.0)
        length, rate, bias = length + x.share * value, rate + x.share * speed, bias + x.share * curved
        jacobian = [a if is_zero(b) else a + x.share * b for a, b in zip(jacobian, row)]
    return ConstraintRows([length], [rate], [jacobian], [bias])


def tendon_coupling(k: Kinematics, tendon: Tendon, driver: Tendon | None, coefficients: Vector) -> ConstraintRows:
    """f = L - (c0 + c1 x + c2 x^2 + ..), x the driver's length; L - c0 without one."""
    (value,), (rate,), (row,), (bias,) = tendon_length(k, tendon)
    if driver is None:
        return ConstraintRows([value - coefficients[0]], [rate], [row], [bias])
    (x,), (dx,), (column,), (ddx,) = tendon_length(k, driver)
    wanted: Scalar = Jet(0.0)
    for c in reversed(coefficients):
        wanted = wanted * Jet(x, 1.0) + c
    row = [a - wanted.d * b for a, b in zip(row, column)]
    bias = bias - wanted.d * ddx - wanted.dd * (dx * dx)
    return ConstraintRows([value - wanted.x], [rate - wanted.d * dx], [row], [bias])


def pull(tendon: Tendon, length: Scalar, rate: Scalar, width: float = FRICTION_WIDTH) -> Scalar:
    """The force along a tendon that lengthens it, N (N m)."""
    force: Scalar = -(tendon.damping * rate)
    if tendon.quadratic:
        force = force - tendon.quadratic * where(rate > 0.0, rate, -rate) * rate
    if tendon.friction:
        force = force - tendon.friction * rate * (1.0 / sqrt(rate * rate + width * width))
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
