"""The method of separate bodies in the plane, as Yudintsev's slides print it: (7)-(28), errata applied.

Bodies hinged about one axis direction, one coordinate each, accelerations (x, y, phi) of the centres of mass in
base axes. c_kk and c_{k-1,k} go from the centres of mass of a body and of its parent to the hinge between them;
(18) has the minus sign that the slides' own program has, and drives enter (18) and (20).
"""

from __future__ import annotations

from typing import NamedTuple

from ...errors import TraceError
from ..scalar import Scalar, Vector, cos, sin
from ..spatial import ZERO, Mat, Sym, Vec, congruence
from ..tree import Tree, TreeBody
from .telegin_planar import parallel
from .vereshchagin import center

Pair = tuple[Scalar, Scalar]
PlaneRotation = tuple[Pair, Pair]  # rows


class Rod(NamedTuple):
    """One body cut free: its turn A, its rate w, and C, S, a', M, Q of (5), (25)-(28) and (2)."""

    A: PlaneRotation
    w: Scalar
    c: Vec  # its own centre of mass, in body axes
    C: Mat
    S: Vec
    bias: Vec
    M: Sym
    Q: Vec


def forward_dynamics(tree: Tree, q: Vector, v: Vector, tau: Vector) -> list[Scalar]:
    """Accelerations, (nv,), of a tree of hinges that all stand on one axis direction; TraceError for others."""
    rods = separate(tree, q, v)
    n = len(rods)
    M, Q, U = [r.M for r in rods], [r.Q for r in rods], [0.0] * n
    for k in range(n - 1, -1, -1):  # (17)-(19), tips to base
        (_, _, _, C, S, bias, _, _), b = rods[k], tree.bodies[k]
        MS = M[k] @ S
        U[k] = S.dot(MS)
        if b.parent < 0:
            continue
        x = (S.dot(Q[k] - M[k] @ bias) + _effort(b, tau)) * (1.0 / U[k])
        M[b.parent] = M[b.parent] + congruence(C.T, M[k] - _square(MS, 1.0 / U[k]))
        Q[b.parent] = Q[b.parent] - C.T @ (M[k] @ (S * x + bias) - Q[k])
    a: list[Scalar] = [0.0] * tree.nv
    moved: list[Vec] = []
    for k, (rod, b) in enumerate(zip(rods, tree.bodies)):  # (20), (21), base to tips
        carried = rod.C @ moved[b.parent] if b.parent >= 0 else ZERO
        x = (_effort(b, tau) + rod.S.dot(Q[k] - M[k] @ (carried + rod.bias))) * (1.0 / U[k])
        moved.append(carried + rod.S * x + rod.bias)
        a[b.v] = x * b.factor
    return a


def separate(tree: Tree, q: Vector, v: Vector) -> list[Rod]:
    """(2), (25)-(28) of every body, in the axes of its tree's first body at q = 0."""
    rods: list[Rod] = []
    roots: list[TreeBody] = []
    for i, b in enumerate(tree.bodies):
        if b.kind != "revolute" or (b.parent >= 0 and parallel(tree, i) != 1):
            raise TraceError(
                f"the planar method of separate bodies takes hinges on one axis direction; joint {b.joint!r} "
                f"({b.kind}) is not such: vereshchagin takes every joint"
            )
        up = rods[b.parent] if b.parent >= 0 else None
        roots.append(roots[b.parent] if up else b)
        rods.append(_rod(b, up, b.factor * q[b.q] + b.phase, b.factor * v[b.v], roots[i].R.T @ tree.gravity))
    return rods


def _rod(b: TreeBody, up: Rod | None, angle: Scalar, rate: Scalar, gravity: Vec) -> Rod:
    x, y = (b.axis + 1) % 3, (b.axis + 2) % 3
    own = (cos(angle), -sin(angle)), (sin(angle), cos(angle))
    c = center(b.inertia)
    A = _product(_product(up.A, ((b.R[x][x], b.R[x][y]), (b.R[y][x], b.R[y][y]))), own) if up else own
    w = up.w + rate if up else rate
    here = _times(A, (-c[x], -c[y]))  # A_k c_kk
    there = _times(up.A, (b.p[x] - up.c[x], b.p[y] - up.c[y])) if up else (0.0, 0.0)  # A_{k-1} c_{k-1,k}
    arm = _quarter((here[0] - there[0], here[1] - there[1]))
    C = Mat(Vec(1.0, 0.0, arm[0]), Vec(0.0, 1.0, arm[1]), Vec(0.0, 0.0, 1.0))
    before = up.w * up.w if up else 0.0
    bias = Vec(here[0] * (w * w) - there[0] * before, here[1] * (w * w) - there[1] * before, 0.0)
    m, J = b.inertia.m, b.inertia.shifted(-c).J.mat[b.axis][b.axis]
    force = Vec(gravity[x] * m, gravity[y] * m, 0.0)
    return Rod(A, w, c, C, Vec(*_quarter(here), 1.0), bias, Sym(m, 0.0, 0.0, m, 0.0, J), force)


def _effort(b: TreeBody, tau: Vector) -> Scalar:
    return b.factor * tau[b.v]


def _square(f: Vec, x: Scalar) -> Sym:
    """f x f^T."""
    return Sym(f.x * f.x * x, f.x * f.y * x, f.x * f.z * x, f.y * f.y * x, f.y * f.z * x, f.z * f.z * x)


def _quarter(r: Pair) -> Pair:
    """A_{-pi/2} r."""
    return r[1], -r[0]


def _times(A: PlaneRotation, r: Pair) -> Pair:
    return A[0][0] * r[0] + A[0][1] * r[1], A[1][0] * r[0] + A[1][1] * r[1]


def _product(A: PlaneRotation, B: PlaneRotation) -> PlaneRotation:
    (a, b), (c, d) = _times(A, (B[0][0], B[1][0])), _times(A, (B[0][1], B[1][1]))
    return (a, c), (b, d)
