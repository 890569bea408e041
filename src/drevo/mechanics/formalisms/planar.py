"""Hinge trees in a plane, by absolute angles and one amplitude and phase for each pair of links.

theta, W, A: absolute angle, rate and acceleration of a link. A pair of a link l and an ancestor i, j the
child of i towards l, meets in C = K cos(beta) and S = K sin(beta), beta = theta_l - theta_i + phi_l - psi_j,
K = L_j |h_l|. M is summed back to relative angles; for gauged trees.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from ...errors import TraceError
from ..algorithms.inertia_matrix import Factors, SparseRows, dense, factorised, guard_pivots, with_rotor_rows
from ..scalar import Matrix, Scalar, Vector, accumulate, atan2, cos, is_zero, sin, sqrt
from ..spatial import EYE, Vec
from ..tree import Tree
from ..tree_indices import ancestors

AmplitudePhase = tuple[Scalar, Scalar]  # size and direction


def amplitude_phase(x: Scalar, y: Scalar) -> AmplitudePhase:
    """(r, angle) of a constant plane vector; r may be negative where the vector lies on an axis."""
    if is_zero(y):
        return x, 0.0
    if is_zero(x):
        return y, 0.5 * math.pi
    return sqrt(x * x + y * y), atan2(y, x)


class PlaneTree(NamedTuple):
    """A tree all of whose hinges stand on one axis direction: offsets, first moments, J and gravity by link."""

    tree: Tree
    offset: tuple[AmplitudePhase, ...]
    moment: tuple[AmplitudePhase, ...]
    J: tuple[Scalar, ...]
    gravity: tuple[AmplitudePhase, ...]

    def angles(self, q: Vector) -> list[Scalar]:
        return [b.factor * q[b.q] + b.phase for b in self.tree.bodies]

    def sums(self, v: Vector) -> list[Scalar]:
        """Absolute rates from relative ones."""
        out: list[Scalar] = []
        for b in self.tree.bodies:
            own = b.factor * v[b.v]
            out.append(out[b.parent] + own if b.parent >= 0 else own)
        return out

    def pairs(self, q: Vector) -> Iterator[tuple[int, int, Scalar, Scalar]]:
        """(l, i, K, beta) for every link and each of its ancestors."""
        bodies, own = self.tree.bodies, self.angles(q)
        for l in range(len(bodies)):
            (h, phi), j, beta = self.moment[l], l, own[l]
            while bodies[j].parent >= 0:
                L, psi = self.offset[j]
                if not is_zero(L * h):
                    yield l, bodies[j].parent, L * h, beta + (phi - psi)
                j = bodies[j].parent
                beta = own[j] + beta


def flat(tree: Tree) -> PlaneTree | None:
    """The tree as a plane one, if it is."""
    b0 = tree.bodies[0] if tree.bodies else None
    if b0 is None or any(b.kind != "revolute" or not is_zero(b.inertia.m) for b in tree.bodies):
        return None
    if len({b.v for b in tree.bodies}) < len(tree) or any(abs(b.factor) != 1.0 for b in tree.bodies):
        return None
    if any(b.axis != tree.bodies[b.parent].axis or b.R != EYE for b in tree.bodies if b.parent >= 0):
        return None
    found: list[list[AmplitudePhase]] = []
    for i, b in enumerate(tree.bodies):
        x, y, root = (b.axis + 1) % 3, (b.axis + 2) % 3, tree.bodies[[*ancestors(tree.parents, i)][-1]]
        g: Vec = root.R.T @ tree.gravity
        found.append([amplitude_phase(v[x], v[y]) for v in (b.p, b.inertia.h, g)])
    J = tuple(b.inertia.J.mat[b.axis][b.axis] for b in tree.bodies)
    offset, moment, gravity = (tuple(row[n] for row in found) for n in range(3))
    return PlaneTree(tree, offset, moment, J, gravity)


def required(tree: Tree) -> PlaneTree:
    """The plane tree, or the joint that is in the way."""
    plane = flat(tree)
    if plane is None:
        bad = next((b for b in tree.bodies if b.kind != "revolute"), tree.bodies[-1])
        raise TraceError(
            f"the planar formalism takes hinges with one axis direction; joint {bad.joint!r} ({bad.kind}) is not "
            "such: khalil and newton_euler can"
        )
    return plane


def absolute_forces(plane: PlaneTree, q: Vector, v: Vector, a: Vector) -> list[Scalar]:
    """Forces dual to the absolute angles; gravity is in. O(n^2) in the depth."""
    W, A, theta = plane.sums(v), plane.sums(a), plane.sums(q)
    square = [w * w for w in W]
    T = [J * acc for J, acc in zip(plane.J, A)]
    for l, i, K, beta in plane.pairs(q):
        C, S = K * cos(beta), K * sin(beta)
        T[i] = T[i] + (C * A[l] - S * square[l])
        T[l] = T[l] + (C * A[i] + S * square[i])
    for l, ((h, phi), (g, psi)) in enumerate(zip(plane.moment, plane.gravity)):
        if not is_zero(g * h):
            phase = sum(plane.tree.bodies[j].phase for j in ancestors(plane.tree.parents, l))
            T[l] = T[l] + (g * h) * sin(theta[l] + (phase + phi - psi))
    return T


def inverse_dynamics(tree: Tree, q: Vector, v: Vector, a: Vector) -> list[Scalar]:
    """Joint forces, (nv,) N m; gravity is in."""
    T = absolute_forces(required(tree), q, v, a)
    for l in range(len(T) - 1, -1, -1):
        b = tree.bodies[l]
        if b.parent >= 0:
            T[b.parent] = T[b.parent] + T[l]
    tau: list[Scalar] = [0.0] * tree.nv
    for b, t in zip(tree.bodies, T):
        tau[b.v] = b.factor * t
    return tree.with_rotors(tau, a)


def bias(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """h = C v + g, (nv,)."""
    return inverse_dynamics(tree, q, v, [0.0] * tree.nv)


def gravity(tree: Tree, q: Vector) -> list[Scalar]:
    """g(q), (nv,)."""
    return inverse_dynamics(tree, q, [0.0] * tree.nv, [0.0] * tree.nv)


def mass_matrix_rows(tree: Tree, q: Vector) -> SparseRows:
    """Lower triangle of M: sums over subtrees of what the absolute angles give.

    B_ai: couplings of the subtree of a with its ancestor i. M_ab = M_ac + B_ab, c the child of b towards a;
    M_aa = J_a + sum over children (M_ca + B_ca).
    """
    plane, bodies = required(tree), tree.bodies
    B: SparseRows = [{} for _ in bodies]
    for l, i, K, beta in plane.pairs(q):
        B[l][i] = K * cos(beta)
    own = list(plane.J)
    M: SparseRows = [{} for _ in range(tree.nv)]
    for a in range(len(bodies) - 1, -1, -1):
        tree.section(a)
        entry, b = own[a], a
        M[bodies[a].v][bodies[a].v] = entry
        while bodies[b].parent >= 0:
            b = bodies[b].parent
            coupling = B[a].get(b, 0.0)
            entry = entry + coupling
            if b == bodies[a].parent:
                own[b] = own[b] + (entry + coupling)
            else:
                up = B[bodies[a].parent]
                up[b] = up[b] + coupling if b in up else coupling
            r, c = bodies[a].v, bodies[b].v
            M[max(r, c)][min(r, c)] = bodies[a].factor * bodies[b].factor * entry
    return with_rotor_rows(tree, M)


def mass_matrix(tree: Tree, q: Vector) -> Matrix:
    """M(q), (nv, nv), kg m^2."""
    return dense(mass_matrix_rows(tree, q))


def forward_dynamics(tree: Tree, q: Vector, v: Vector, tau: Vector) -> list[Scalar]:
    """Accelerations, (nv,) rad/s^2, solved for the absolute ones: there M has a constant diagonal."""
    plane, bodies = required(tree), tree.bodies
    H: SparseRows = [{l: J} for l, J in enumerate(plane.J)]
    for l, i, K, beta in plane.pairs(q):
        H[l][i] = K * cos(beta)
    for l, b in enumerate(bodies):  # a rotor turns with the difference of two absolute angles
        rotor = tree.armature.get(b.v, 0.0)
        accumulate(H[l], l, rotor)
        if b.parent >= 0:
            accumulate(H[b.parent], b.parent, rotor)
            accumulate(H[l], b.parent, -rotor)
    h = absolute_forces(plane, q, v, [0.0] * tree.nv)
    T = [b.factor * tau[b.v] for b in bodies]
    for b in bodies:
        if b.parent >= 0:
            T[b.parent] = T[b.parent] - b.factor * tau[b.v]
    f = Factors(H, range(len(bodies)))
    guard_pivots(tree, f, [b.v for b in bodies], f.diagonal, [0.0] * len(bodies))
    A = f.solve([t - x for t, x in zip(T, h)])
    out: list[Scalar] = [0.0] * tree.nv
    for b, acc in zip(bodies, A):
        out[b.v] = b.factor * (acc - A[b.parent] if b.parent >= 0 else acc)
    return out


def inverse_mass_matrix(tree: Tree, q: Vector) -> Matrix:
    """M(q)^-1, (nv, nv), column by column."""
    return factorised(tree, mass_matrix_rows(tree, q)).dense_inverse()
