"""The configuration q (+) d as a polynomial in d, exact to a given order: what higher derivatives are taken along.

Ball joints: the quaternion of exp(d). Free joints: exp of SE(3), Lynch and Park 2017, section 3.3.3. Coordinates
that are plain numbers are left alone: there d is a change of q itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

from ..mechanics.rotation import from_quaternion
from ..mechanics.scalar import Scalar
from ..mechanics.spatial import Vec
from ..mechanics.tree import Tree


def series(square: Scalar, first: int, order: int) -> Scalar:
    """sum over k of (-square)^k / (2 k + first)!, the terms of degree <= order in the root of square."""
    total: Scalar = 1.0 / factorial(first)
    power: Scalar = 1.0
    for k in range(1, order // 2 + 1):
        power = power * (-square)
        total = total + power * (1.0 / factorial(2 * k + first))
    return total


def turned(x: Sequence[Scalar], w: Vec, order: int) -> list[Scalar]:
    """The quaternion x times that of the rotation vector w, to the order."""
    half = w * 0.5
    square = half.dot(half)
    u, c = half * series(square, 1, order), series(square, 0, order)
    p, s = Vec(*x[:3]), x[3]
    return [*(u * s + p * c + p.cross(u)), s * c - p.dot(u)]


def moved(tree: Tree, q: Sequence[Scalar], d: Sequence[Scalar], order: int) -> list[Scalar]:
    """q (+) d where q holds quaternions; other coordinates as they are."""
    out = list(q)
    for b in tree.bodies:
        if b.nq < 4:
            continue
        w, end = Vec(*d[b.v + b.nv - 3 : b.v + b.nv]), b.q + b.nq
        turn = q[end - 4 : end]
        out[end - 4 : end] = turned(turn, w, order)
        if b.kind == "free":
            u, square = Vec(*d[b.v : b.v + 3]), w.dot(w)
            wu = w.cross(u)
            shift = u + wu * series(square, 2, order) + w.cross(wu) * series(square, 3, order)
            out[b.q : b.q + 3] = Vec(*q[b.q : b.q + 3]) + from_quaternion(*turn) @ shift
    return out


def variables(tree: Tree, q: Sequence[Scalar], d: Sequence[Scalar]) -> list[Scalar]:
    """What to differentiate by, one for each rate: the coordinate itself, or d where q is a quaternion."""
    out = list(d)
    for b in tree.bodies:
        if b.nq == 1:
            out[b.v] = q[b.q]
    return out


__all__ = ["moved", "series", "turned", "variables"]
