"""Lagrange equations of the second kind from the elements of the inertia matrix, their terms apart.

    sum H_ij a_j + centrifugal_i + Coriolis_i + gravity_i = tau_i
    centrifugal_i = sum [jj, i] v_j^2,  Coriolis_i = sum 2 [jk, i] v_j v_k over j < k
    [jk, i] = (dH_ij/dq_k + dH_ik/dq_j - dH_jk/dq_i) / 2

Centrifugal and Coriolis terms together are dH/dt v / 2 + gyroscopic, where the gyroscopic terms are S v with the
skew S_ij = sum (dH_ik/dq_j - dH_jk/dq_i) v_k / 2: they do no work. They are part of the two, not added to them.
"""

from __future__ import annotations

from typing import NamedTuple

from ...errors import TraceError
from ..scalar import Matrix, Scalar, Vector, is_zero, partials
from ..spatial import Vec
from ..tree import Tree
from . import telegin


class Equations(NamedTuple):
    """The terms of every equation. gyroscopic is a part of centrifugal + coriolis, shown beside them."""

    inertia: Matrix
    centrifugal: list[Scalar]
    coriolis: list[Scalar]
    gyroscopic: list[Scalar]
    gravity: list[Scalar]


class ChristoffelSymbols:
    """H, its derivatives by the coordinates and Christoffel's symbols of the first kind."""

    def __init__(self, tree: Tree, q: Vector, sequence: str = "merged") -> None:
        for b in tree.bodies:
            if b.nq != b.nv:
                raise TraceError(
                    f"joint {b.joint!r} is {b.kind}: its rates are no derivatives of its coordinates, which the "
                    "Lagrange equations need; formalisms newton_euler, khalil and vereshchagin cover it"
                )
        self.tree, self.n = tree, tree.nv
        self.H = telegin.mass_matrix(tree, q, sequence)
        tree.context.section("derivatives of the elements")
        keys = [(r, c) for r in range(self.n) for c in range(r + 1) if not is_zero(self.H[r][c])]
        rows = partials([self.H[r][c] for r, c in keys], list(q))
        self._d = {(r, c, k): x for (r, c), row in zip(keys, rows) for k, x in enumerate(row)}

    def d(self, r: int, c: int, k: int) -> Scalar:
        """dH_rc / dq_k."""
        return self._d.get((max(r, c), min(r, c), k), 0.0)

    def christoffel(self, j: int, k: int, i: int) -> Scalar:
        """2 [jk, i]."""
        found = self.d(i, j, k) + self.d(i, k, j) - self.d(j, k, i)
        return self.tree.named(found, f"h_{j + 1}{k + 1}_{i + 1}")

    def skew(self, i: int, j: int, v: Vector) -> Scalar:
        """2 S_ij."""
        total: Scalar = 0.0
        for k in range(self.n):
            total = total + (self.d(i, k, j) - self.d(j, k, i)) * v[k]
        return self.tree.named(total, f"G_{i + 1}{j + 1}")


def gravity(tree: Tree, q: Vector) -> list[Scalar]:
    """g_i = - w_i . (m_i x g) - v_i . g m_i: what holds the robot at rest."""
    tree.context.section("gravity")
    parts = telegin.Elements(tree, q, {}, merge=True)
    parts.see.define("g", 0, -1, tree.gravity)
    out: list[Scalar] = [0.0] * tree.nv
    for i in range(len(tree) - 1, -1, -1):
        b, g = tree.bodies[i], parts.see("g", 0, i)
        first = Vec(*(0.0 if g.zero else parts.m(i, axis, i) for axis in "xyz"))
        for k, column in enumerate(parts.columns[i]):
            moment = column.w.cross(first).dot(g) + column.v.dot(g) * parts.mass[i]
            out[b.v + k] = out[b.v + k] - moment * abs(b.factor)
    return [tree.named(x, f"Q_{i + 1}^g") for i, x in enumerate(out)]


def equations(tree: Tree, q: Vector, v: Vector, sequence: str = "merged", gyroscopic: bool = True) -> Equations:
    """All terms; over graph nodes only, for elements are differentiated."""
    s = ChristoffelSymbols(tree, q, sequence)
    n = range(s.n)
    squares = [x * x for x in v]
    centrifugal, coriolis, whirl = [], [], []
    for i in n:
        tree.context.section(f"equation {i + 1}: centrifugal, Coriolis and gyroscopic terms")
        fast: Scalar = 0.0
        mixed: Scalar = 0.0
        for j in n:
            fast = fast + s.christoffel(j, j, i) * squares[j]
            for k in range(j):
                mixed = mixed + s.christoffel(j, k, i) * (v[j] * v[k])
        turned: Scalar = 0.0
        for j in n if gyroscopic else ():
            turned = turned + s.skew(i, j, v) * v[j]
        centrifugal.append(tree.named(0.5 * fast, f"Q_{i + 1}^cf"))
        coriolis.append(tree.named(mixed, f"Q_{i + 1}^c"))
        whirl.append(tree.named(0.5 * turned, f"Q_{i + 1}^gyr"))
    return Equations(s.H, centrifugal, coriolis, whirl, gravity(tree, q))


def inverse_dynamics(tree: Tree, q: Vector, v: Vector, a: Vector) -> list[Scalar]:
    """tau = H a + centrifugal + Coriolis + gravity."""
    e = equations(tree, q, v, gyroscopic=False)
    return [_sum(e, i, a) for i in range(tree.nv)]


def _sum(e: Equations, i: int, a: Vector) -> Scalar:
    total: Scalar = 0.0
    for j, x in enumerate(e.inertia[i]):
        total = total + x * a[j]
    return total + (e.centrifugal[i] + e.coriolis[i] + e.gravity[i])


def bias(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """h = centrifugal + Coriolis + gravity."""
    e = equations(tree, q, v, gyroscopic=False)
    return [x + y + z for x, y, z in zip(e.centrifugal, e.coriolis, e.gravity)]


def coriolis_matrix(tree: Tree, q: Vector, v: Vector) -> Matrix:
    """C_ij = sum [jk, i] v_k."""
    s = ChristoffelSymbols(tree, q)
    C: Matrix = [[0.0] * s.n for _ in range(s.n)]
    for i in range(s.n):
        for j in range(s.n):
            for k in range(s.n):
                C[i][j] = C[i][j] + s.christoffel(j, k, i) * (0.5 * v[k])
    return C


def potential_energy(tree: Tree, q: Vector) -> Scalar:
    """V = - g . (sum over the trees of the ground of their first moments about the world's origin), J."""
    parts = telegin.Elements(tree, q, {}, merge=True)
    parts.see.define("g", 0, -1, tree.gravity)
    total: Scalar = 0.0
    for i, b in enumerate(tree.bodies):
        total = total + parts.d[i].dot(parts.see("g", 0, i))
        if b.parent < 0:
            total = total + parts.X[i].p.dot(tree.gravity) * parts.mass[i]
    return -total
