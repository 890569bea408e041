"""First derivatives of inverse and forward dynamics on the tangent space, and the Coriolis matrix.

Singh, Russell, Wensing 2022 (IDSVA) in world axes: every entry pairs the column of a body with that of an
ancestor. The operator 2 B of a body, 2 B x = v x* I x - I (v x x) + x x* I v, needs twelve numbers:
with Q = integral of V r^T dm, P = linear momentum and T = tr(Q) 1 - Q it is (2 T x.w, 2 x.w x P).

Displacements that higher derivatives are taken along: the configuration q (+) d, and a motion q(t).

q (+) d is a polynomial in d, exact to a given order. Ball joints: the quaternion of exp(d). Free joints: exp of
SE(3), Lynch and Park 2017, section 3.3.3. Coordinates that are plain numbers are left alone: there d is a change
of q itself. q(t) is a Taylor series from the rates v, a, j, s, ..: the derivatives of v component by component.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial
from typing import NamedTuple

from ..jet import Series
from ..joints import NO_FORCE, NO_MOTION, Force, Motion
from ..rotation import from_quaternion
from ..scalar import Matrix, Scalar, Vector
from ..spatial import ZERO, ZERO_INERTIA, Mat, RigidInertia, Vec, skew
from ..tree import Tree
from ..tree_indices import ancestors
from .inertia_matrix import SparseRows, add_entry, apply_inertia, dense, factorised, forward_dynamics, rotor_rows
from .kinematics import body_poses


class WorldColumn(NamedTuple):
    """A joint column and its rates in world axes: S, v_p x S, a_p x S + v_p x (v_p x S), v_i x S."""

    S: Motion
    psi1: Motion
    psi2: Motion
    S1: Motion


class InertiaRates(NamedTuple):
    """The twelve numbers of 2 B."""

    T: Mat
    P: Vec

    def __add__(self, o: InertiaRates) -> InertiaRates:  # type: ignore[override]
        return InertiaRates(self.T + o.T, self.P + o.P)

    def times(self, x: Motion) -> Force:
        """2 B x."""
        return Force((self.T @ x.w) * 2.0, x.w.cross(self.P) * 2.0)

    def transposed(self, x: Motion) -> Vec:
        """The angular part of (2 B)^T x; its linear part is zero."""
        return (self.T.T @ x.w + self.P.cross(x.v)) * 2.0


NO_RATES = InertiaRates(Mat(ZERO, ZERO, ZERO), ZERO)


def inertia_rates(body: RigidInertia, v: Motion) -> InertiaRates:
    """Q = v0 h^T + [w]x S, T = tr(Q) 1 - Q."""
    h = body.h
    Q = Mat(h * v.v.x, h * v.v.y, h * v.v.z) + skew(v.w).mul(body.S.mat)
    trace = Q.x.x + Q.y.y + Q.z.z
    T = Mat(
        Vec(trace - Q.x.x, -Q.x.y, -Q.x.z), Vec(-Q.y.x, trace - Q.y.y, -Q.y.z), Vec(-Q.z.x, -Q.z.y, trace - Q.z.z)
    )
    return InertiaRates(T, v.v * body.m + v.w.cross(h))


@dataclass(slots=True)
class WorldSweep:
    """Results of the outward pass, from which columns are made, in world axes about the world origin."""

    columns: list[list[WorldColumn]]
    bodies: list[RigidInertia]
    rates: list[InertiaRates]
    forces: list[Force]


def world_sweep(tree: Tree, q: Vector, v: Vector, a: Vector | None) -> WorldSweep:
    """Columns, inertias, 2 B and (with a) body wrenches of every body."""
    poses, n = body_poses(tree, q), len(tree)
    out = WorldSweep([], [ZERO_INERTIA] * n, [NO_RATES] * n, [NO_FORCE] * n)
    speeds, accelerations = [NO_MOTION] * n, [NO_MOTION] * n
    ground = Motion(ZERO, -tree.gravity)
    for i, b in enumerate(tree.bodies):
        tree.section(i)
        S = [poses[i].motion(c * b.factor) for c in tree.motion_subspace(b)]
        vp = speeds[b.parent] if b.parent >= 0 else NO_MOTION
        ap = accelerations[b.parent] if b.parent >= 0 else ground
        own, own2 = NO_MOTION, NO_MOTION
        for k, s in enumerate(S):
            own = own + s * v[b.v + k]
            own2 = own2 + s * a[b.v + k] if a is not None else own2
        speeds[i] = vp + own
        out.bodies[i] = b.inertia.moved(poses[i].R, poses[i].p)
        out.rates[i] = inertia_rates(out.bodies[i], speeds[i])
        psi1 = [vp.cross(s) for s in S]
        if a is None:
            out.columns.append([WorldColumn(s, p, NO_MOTION, speeds[i].cross(s)) for s, p in zip(S, psi1)])
            continue
        accelerations[i] = ap + own2 + vp.cross(own)
        psi2 = [ap.cross(s) + vp.cross(p) for s, p in zip(S, psi1)]
        out.columns.append([WorldColumn(s, p, d, speeds[i].cross(s)) for s, p, d in zip(S, psi1, psi2)])
        momentum = apply_inertia(out.bodies[i], speeds[i])
        out.forces[i] = apply_inertia(out.bodies[i], accelerations[i]) + speeds[i].cross_force(momentum)
    return out


def _gather(tree: Tree, s: WorldSweep, i: int) -> None:
    """Adds the finished composite of body i to its parent's."""
    p = tree.bodies[i].parent
    if p >= 0:
        s.bodies[p] = s.bodies[p] + s.bodies[i]
        s.rates[p] = s.rates[p] + s.rates[i]
        s.forces[p] = s.forces[p] + s.forces[i]


def zeros(n: int) -> Matrix:
    """An n x n matrix of structural zeros."""
    return [[0.0] * n for _ in range(n)]


def inverse_dynamics_derivatives(tree: Tree, q: Vector, v: Vector, a: Vector) -> tuple[Matrix, Matrix, Matrix]:
    """dtau/dq, dtau/dv and M, each (nv, nv); dq on the tangent space."""
    dq, dv, M = _derivatives(tree, q, v, a)
    return dq, dv, dense(M)


def _derivatives(tree: Tree, q: Vector, v: Vector, a: Vector) -> tuple[Matrix, Matrix, SparseRows]:
    """dtau/dq, dtau/dv and M by one sweep outwards and one inwards, in axes of the world."""
    s = world_sweep(tree, q, v, a)
    dq, dv, M = zeros(tree.nv), zeros(tree.nv), rotor_rows(tree)
    parents = tree.parents
    for j in range(len(tree) - 1, -1, -1):
        body, B, f, bj = s.bodies[j], s.rates[j], s.forces[j], tree.bodies[j]
        for k, c in enumerate(s.columns[j]):
            up_q = B.times(c.psi1) + apply_inertia(body, c.psi2) + c.S.cross_force(f)
            up_v = B.times(c.S) + apply_inertia(body, c.psi1 + c.S1)
            u1, u2 = B.transposed(c.S), apply_inertia(body, c.S)
            col = bj.v + k
            for i in ancestors(parents, j):
                for l, d in enumerate(s.columns[i]):
                    row = tree.bodies[i].v + l
                    dq[col][row] += u1.dot(d.psi1.w) + d.psi2.dot(u2)
                    dv[col][row] += u1.dot(d.S.w) + (d.psi1 + d.S1).dot(u2)
                    if i != j:
                        dq[row][col] += d.S.dot(up_q)
                        dv[row][col] += d.S.dot(up_v)
                    if i != j or l <= k:
                        add_entry(M, col, row, i == j and k == l, d.S.dot(u2))
        _gather(tree, s, j)
    return dq, dv, M


def forward_dynamics_derivatives(tree: Tree, q: Vector, v: Vector, tau: Vector) -> tuple[Matrix, Matrix, Matrix]:
    """da/dq = -M^-1 dtau/dq, da/dv = -M^-1 dtau/dv, and M^-1; each (nv, nv)."""
    a = forward_dynamics(tree, q, v, tau)
    dq, dv, M = _derivatives(tree, q, v, a)
    f, n = factorised(tree, M), tree.nv
    inverse = f.dense_inverse()
    parts = [_transposed([f.solve([-A[i][k] for i in range(n)]) for k in range(n)]) for A in (dq, dv)]
    return parts[0], parts[1], inverse


def _transposed(columns: Matrix) -> Matrix:
    return [list(row) for row in zip(*columns)]


def coriolis_matrix(tree: Tree, q: Vector, v: Vector) -> Matrix:
    """C(q, v) with C v = h - g and dM/dt - 2 C skew; from the Christoffel symbols in coordinates.

    Echeandia and Wensing 2021: C_ij = S_i . (B_c S_j + I_c dS_j/dt), c the deeper of the two bodies.
    """
    s = world_sweep(tree, q, v, None)
    C = zeros(tree.nv)
    parents = tree.parents
    for j in range(len(tree) - 1, -1, -1):
        body, B, bj = s.bodies[j], s.rates[j], tree.bodies[j]
        for k, c in enumerate(s.columns[j]):
            up = B.times(c.S) * 0.5 + apply_inertia(body, c.S1)
            u1, u2 = B.transposed(c.S) * 0.5, apply_inertia(body, c.S)
            col = bj.v + k
            for i in ancestors(parents, j):
                for l, d in enumerate(s.columns[i]):
                    row = tree.bodies[i].v + l
                    C[col][row] += u1.dot(d.S.w) + d.S1.dot(u2)
                    if i != j:
                        C[row][col] += d.S.dot(up)
        _gather(tree, s, j)
    return C


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
