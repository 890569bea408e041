"""Displacements that higher derivatives are taken along: the configuration q (+) d, and a motion q(t).

q (+) d is a polynomial in d, exact to a given order. Ball joints: the quaternion of exp(d). Free joints: exp of
SE(3), Lynch and Park 2017, section 3.3.3. Coordinates that are plain numbers are left alone: there d is a change
of q itself. q(t) is a Taylor series from the rates v, a, j, s, ..: the derivatives of v component by component.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

from ..rotation import from_quaternion
from ..scalar import Scalar, Vector
from ..series import Series
from ..spatial import Vec
from ..tree import Tree


def series(square: Scalar, first: int, order: int) -> Scalar:
    """sum over k of (-square)^k / (2 k + first)!, the terms of degree <= order in the root of square."""
    total: Scalar = 1.0 / factorial(first)
    power: Scalar = 1.0
    for k in range(1, order // 2 + 1):
        power = power * (-square)
        total = total + power * (1.0 / factorial(2 * k + first))
    return total


def rotated_series(x: Vector, w: Vec, order: int) -> list[Scalar]:
    """The quaternion x times that of the rotation vector w, to the order."""
    half = w * 0.5
    square = half.dot(half)
    u, c = half * series(square, 1, order), series(square, 0, order)
    p, s = Vec(*x[:3]), x[3]
    return [*(u * s + p * c + p.cross(u)), s * c - p.dot(u)]


def displaced(tree: Tree, q: Vector, d: Vector, order: int) -> list[Scalar]:
    """q (+) d where q holds quaternions; other coordinates as they are."""
    out = list(q)
    for b in tree.owners():
        if b.nq == b.nv:
            continue
        w, end = Vec(*d[b.v + b.nv - 3 : b.v + b.nv]), b.q + b.nq
        turn = q[end - 4 : end]
        out[end - 4 : end] = rotated_series(turn, w, order)
        if b.kind == "free":
            u, square = Vec(*d[b.v : b.v + 3]), w.dot(w)
            wu = w.cross(u)
            shift = u + wu * series(square, 2, order) + w.cross(wu) * series(square, 3, order)
            out[b.q : b.q + 3] = Vec(*q[b.q : b.q + 3]) + from_quaternion(*turn) @ shift
    return out


def variables(tree: Tree, q: Vector, d: Vector) -> list[Scalar]:
    """Variables to differentiate by, one for each rate: the coordinate itself, or d where q is a quaternion."""
    out = list(d)
    for b in tree.owners():
        if b.nq == b.nv:
            out[b.v : b.v + b.nv] = q[b.q : b.q + b.nq]
    return out


def motion_series(tree: Tree, q: Vector, rates: Sequence[Vector], order: int) -> list[list[Series]]:
    """q(t), v(t), a(t), .. to t^order, from q and rates = (v, a, j, ..); those that are known that far."""
    known = len(rates)
    flow = [
        [Series([rates[n + k][i] * (1.0 / factorial(k)) for k in range(order + 1)]) for i in range(tree.nv)]
        for n in range(known - order)
    ]
    at: list[Scalar] = [None] * tree.nq
    for b in tree.owners():
        own = [[rates[k][b.v + i] * (1.0 / factorial(k)) for k in range(order)] for i in range(b.nv)]
        at[b.q : b.q + b.nq] = _path(q[b.q : b.q + b.nq], own, order)
    return [at, *flow]


def _path(q: Vector, v: Sequence[Vector], order: int) -> list[Series]:
    """The coordinates of one joint from the Taylor coefficients of its rates.

    Numbers: q' = v. Quaternion: q' = q (w, 0) / 2. Position of a free joint: p' = R v.
    """
    if len(q) == len(v):
        return [Series([x, *(u * (1.0 / (k + 1)) for k, u in enumerate(rate))]) for x, rate in zip(q, v)]
    w = [Vec(*x) for x in zip(*v[-3:])]
    turn = [list(q[-4:])]
    for k in range(order):
        rate: list[Scalar] = [0.0] * 4
        for i in range(k + 1):
            (x, y, z, s), u = turn[i], w[k - i]
            step = (*(u * s + Vec(x, y, z).cross(u)), -Vec(x, y, z).dot(u))
            rate = [a + b for a, b in zip(rate, step)]
        turn.append([r * (0.5 / (k + 1)) for r in rate])
    quaternion = [Series(c) for c in zip(*turn)]
    if len(q) == 4 or not order:
        return [*(Series([x]) for x in q[:-4]), *quaternion]
    R = from_quaternion(*(Series(x.c[:order]) for x in quaternion))
    rate_of = R @ Vec(*(Series(x) for x in v[:3]))
    return [
        *(Series([p, *(x * (1.0 / (k + 1)) for k, x in enumerate(d.c))]) for p, d in zip(q, rate_of)), *quaternion
    ]  # fmt: skip
