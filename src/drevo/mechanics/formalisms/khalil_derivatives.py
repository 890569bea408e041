"""First derivatives beside the U-form recursion: every body's own axes, an observer that goes along with its pole.

The pairs of columns are those of Singh, Russell, Wensing 2022 (IDSVA). What is new is where they are taken: in the
axes of a body its joint's columns are unit vectors; in the gauged tree the composite bodies of hinges have no
mass; and dynamics does not feel the uniform motion of an observer, so that of each body's observer is the velocity
of its pole, and nothing of it is left in S, its rates or the body's own momentum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ..algorithms.derivatives import zeros
from ..algorithms.inertia_matrix import Factors, SparseRows, add_entry, dense, factorised, rotor_rows
from ..algorithms.inverse_dynamics import rate_matrix
from ..joints import NO_FORCE, NO_MOTION, Force, Motion, Placement
from ..scalar import Matrix, Scalar, Vector, is_zero
from ..spatial import ZERO, ZERO_INERTIA, Mat, RigidInertia, Vec, outer, rotated_mat, skew
from ..tree import Tree
from ..tree_indices import ancestors
from .khalil import Recursion, recursion
from .khalil_forward import forward_dynamics
from .khalil_matrix import composite_to_parent, mass_matrix_rows, traces, wrench


class BodyColumn(NamedTuple):
    """A joint column S and, as the observer sees them, v_p x S, a_p x S + v_p x (v_p x S) and (v_p + v_i) x S."""

    S: Motion
    psi1: Motion
    psi2: Motion
    both: Motion


class Flow(NamedTuple):
    """Q = 2 integral of V r^T dm and p = 2 integral of V dm of a composite body: the twelve numbers of 2 B."""

    Q: Mat
    p: Vec

    def __add__(self, o: Flow) -> Flow:  # type: ignore[override]
        return Flow(self.Q + o.Q, self.p + o.p)

    @property
    def T(self) -> Mat:
        """tr(Q) 1 - Q."""
        x, y, z = self.Q
        return Mat(Vec(y.y + z.z, -x.y, -x.z), Vec(-y.x, x.x + z.z, -y.z), Vec(-z.x, -z.y, x.x + y.y))

    def times(self, s: Motion) -> Force:
        """2 B s."""
        return Force(self.T @ s.w, s.w.cross(self.p))

    def transposed(self, s: Motion) -> Vec:
        """The angular part of (2 B)^T s; its linear part is zero."""
        return self.T.T @ s.w + self.p.cross(s.v)


def flow_of(body: RigidInertia, w: Vec) -> Flow:
    """The flow of one body about a pole at rest: V = w x r. The constants take the factor 2."""
    twice = body + body
    return Flow(skew(w).mul(twice.S.mat), w.cross(twice.h))


def lifted_flow(x: Placement, flow: Flow, P: RigidInertia, slip2: Vec) -> Flow:
    """A composite body's flow for the parent's observer; slip2: twice the velocity of the pole that he sees."""
    Q, p, h = flow.Q, x.to_parent(flow.p), x.to_parent(P.h)
    Q = rotated_mat(x.k, x.s, x.c, Q) if x.k >= 0 else x.Q.mul(Q).mul(x.Q.T) if x.k == -1 else Q
    Q = x.R.mul(Q).mul(x.R.T) + outer(slip2, h + x.p * P.m) + outer(p, x.p)
    return Flow(Q, p + slip2 * P.m)


@dataclass(slots=True)
class BodySweep:
    """By body: composite inertia, flow, wrench and columns, once the bodies behind it are gathered."""

    tree: Tree
    r: Recursion
    bodies: list[RigidInertia]
    flows: list[Flow]
    slips: list[Vec]  # twice the velocity of a body's pole seen from its parent's, in the parent's axes
    columns: list[list[BodyColumn]]
    pushes: dict[int, Flow]  # of forces that stay as they are in the world

    def force(self, i: int) -> Force:
        """The joint's wrench, about the body's pole; the recursion keeps a mass at a hinge's pole apart."""
        f, b = self.r.f[i], self.tree.bodies[i]
        return Force(f.n, f.f + self.r.rates[i].a * b.inertia.m) if b.kind == "revolute" else f

    def gather(self, i: int) -> None:
        """Adds the finished composite of body i to its parent's."""
        p, x = self.tree.bodies[i].parent, self.r.X[i]
        if p >= 0:
            flow = lifted_flow(x, self.flows[i], self.bodies[i], self.slips[i])
            self.flows[p] = self.flows[p] + flow
            if i in self.pushes:
                push = lifted_flow(x, self.pushes[i], ZERO_INERTIA, ZERO)
                self.pushes[p] = self.pushes[p] + push if p in self.pushes else push
            body, _ = composite_to_parent(x, self.bodies[i], traces(self.bodies[i].S))
            self.bodies[p] = self.bodies[p] + body


def body_sweep(
    tree: Tree,
    q: Vector,
    v: Vector,
    a: Vector,
    wrenches: Mapping[int, Force] | None = None,
    pushes: Mapping[int, Flow] | None = None,
) -> BodySweep:
    """The recursion out and back, and what the columns need of it.

    wrenches, pushes: of forces that act on bodies and stay as they are in the world, in the body's axes; the flow
    of a force F at r is F r^T and F, that of a moment n is [n]x.
    """
    r = recursion(tree, q, v, a, parallel=False, wrenches=wrenches)
    bodies = [b.inertia for b in tree.bodies]
    out = BodySweep(tree, r, bodies, [flow_of(b, x.w) for b, x in zip(bodies, r.rates)], [], [],
                    dict(pushes or {}))  # fmt: skip
    for i in range(len(tree)):
        out.slips.append(slip_of(r, i) * 2.0)
        out.columns.append(_columns(tree, r, i))
    return out


def slip_of(r: Recursion, i: int) -> Vec:
    """The velocity of a body's pole seen from its parent's, in the parent's axes."""
    p = r.tree.bodies[i].parent
    return (r.rates[p] if p >= 0 else r.start).w.cross(r.X[i].p) + r.X[i].to_parent(r.own[i].v)


def _columns(tree: Tree, r: Recursion, i: int) -> list[BodyColumn]:
    """The joint columns of body i and their rates, in its axes, for an observer at rest with its pole."""
    b, x, w = tree.bodies[i], r.X[i], r.rates[i].w
    up = r.rates[b.parent] if b.parent >= 0 else r.start
    before = Motion(w - r.own[i].w, -r.own[i].v)  # of the parent
    if b.kind == "wheel":  # nothing changes with its angle, and w x S is that of the parent
        return [BodyColumn(S, NO_MOTION, NO_MOTION, (c := before.cross(S)) + c) for S in tree.motion_subspace(b)]
    pole = x.to_child(r.poles[i])
    # a fixed axis has one second derivative in both bodies
    U = r.rates[i].U if b.nv == 1 else rate_matrix(before.w, x.to_child(up.dw))
    out = []
    for S in tree.motion_subspace(b):
        psi1 = before.cross(S)
        twist = before.v.cross(before.w.cross(S.w))
        psi2 = Motion(U @ S.w, U @ S.v + pole.cross(S.w) + twist + twist)
        out.append(BodyColumn(S, psi1, psi2, psi1 + Motion(w.cross(S.w), w.cross(S.v))))
    return out


class WrenchRates(NamedTuple):
    """Row and column of one rate on their way up: what the subtree does when the rate, or its coordinate, changes.

    by_q, by_v, by_a: change of the subtree's wrench; rates: (2 B)^T S; held: the same of forces that stay as they
    are in the world. In the axes of the body that was reached.
    """

    by_q: Force
    by_v: Force
    by_a: Force
    rates: Vec
    held: Vec

    def to_parent(self, x: Placement, slip2: Vec) -> WrenchRates:
        """About the parent's pole, for its observer."""
        a = x.force_to_parent(self.by_a)
        return WrenchRates(
            x.force_to_parent(self.by_q),
            x.force_to_parent(self.by_v),
            a,
            x.to_parent(self.rates) - a.f.cross(slip2),
            x.to_parent(self.held),
        )


def wrench_rates(s: BodySweep, i: int, c: BodyColumn) -> WrenchRates:
    """Wrench rate of body i's column: by q 2 B psi1 + I psi2 + S x* f, by v 2 B S + I (psi1 + dS/dt), by a I S."""
    P, flow = s.bodies[i], s.flows[i]
    t = traces(P.S)
    by_q, held = NO_FORCE, ZERO
    if s.tree.bodies[i].kind != "wheel":
        by_q = flow.times(c.psi1) + wrench(P, t, c.psi2) + c.S.cross_force(s.force(i))
    if i in s.pushes:
        by_q, held = by_q + s.pushes[i].times(c.S), s.pushes[i].transposed(c.S)
    return WrenchRates(by_q, flow.times(c.S) + wrench(P, t, c.both), wrench(P, t, c.S), flow.transposed(c.S), held)


@dataclass(slots=True)
class Derivatives:
    """dtau/dq, dtau/dv by rows and the lower triangle of M, filled from the last body to the first."""

    dq: Matrix
    dv: Matrix
    M: SparseRows

    def meet(self, s: BodySweep, j: int, k: int, i: int, h: WrenchRates) -> None:
        """The entries of rate k of body j, whose hook has come up to body i, with the rates of body i."""
        bj, bi = s.tree.bodies[j], s.tree.bodies[i]
        size, at = bj.factor * bi.factor, bj.v + k
        for l, d in enumerate(s.columns[i]):
            row = bi.v + l
            self.dq[at][row] += size * (h.rates.dot(d.psi1.w) + d.psi2.dot(h.by_a) + h.held.dot(d.S.w))
            self.dv[at][row] += size * (h.rates.dot(d.S.w) + d.both.dot(h.by_a))
            if i != j:
                self.dq[row][at] += size * d.S.dot(h.by_q)
                self.dv[row][at] += size * d.S.dot(h.by_v)
            if i != j or l <= k:
                add_entry(self.M, at, row, i == j and k == l, size * d.S.dot(h.by_a))


def empty(tree: Tree) -> Derivatives:
    """Before the first body."""
    return Derivatives(zeros(tree.nv), zeros(tree.nv), rotor_rows(tree))


def columnwise(s: BodySweep, out: Derivatives) -> Iterator[int]:
    """Fills `out` from the last body to the first; after j the rates from body j on have all their entries."""
    for j in range(len(s.tree) - 1, -1, -1):
        s.tree.section(j, "derivatives by joint")
        for k, c in enumerate(s.columns[j]):
            h = wrench_rates(s, j, c)
            for i in ancestors(s.tree.parents, j):
                out.meet(s, j, k, i, h)
                if s.tree.bodies[i].parent >= 0:
                    h = h.to_parent(s.r.X[i], s.slips[i])
        s.gather(j)
        yield j


def inverse_dynamics_derivatives(tree: Tree, q: Vector, v: Vector, a: Vector) -> tuple[Matrix, Matrix, Matrix]:
    """dtau/dq, dtau/dv and M, each (nv, nv); dq on the tangent space."""
    out = empty(tree)
    for _ in columnwise(body_sweep(tree, q, v, a), out):
        pass
    return out.dq, out.dv, dense(out.M)


class Inverse:
    """M^-1 = N D^-1 N^T with N = L^-1, which has the zeros of L: far branches meet over what they share only."""

    def __init__(self, f: Factors) -> None:
        n = len(f.order)
        self.order, self.place, self.inverse = f.order, {v: i for i, v in enumerate(f.order)}, f.inverse
        self.N: SparseRows = [{} for _ in range(n)]
        for i, row in enumerate(f.L):
            for a, l in row.items():
                for j, x in ((a, 1.0), *self.N[a].items()):
                    self.N[i][j] = self.N[i].get(j, 0.0) - l * x

    def times(self, *b: Mapping[int, Scalar]) -> Matrix:
        """M^-1 b for several b, by the rates that are not zero; side by side, so that N is read once for all."""
        n, some = len(self.order), range(len(b))
        rest: Matrix = [[0.0] * n for _ in b]
        for v, i in self.place.items():
            for c in some:
                rest[c][i] = rest[c][i] + b[c].get(v, 0.0)
            for j, y in self.N[i].items():
                for c in some:
                    rest[c][j] = rest[c][j] + y * b[c].get(v, 0.0)
        z = [[x * d for x, d in zip(column, self.inverse)] for column in rest]
        out: Matrix = [[0.0] * n for _ in b]
        for i, v in enumerate(self.order):
            for c in some:
                out[c][v] = z[c][i]
            for j, y in self.N[i].items():
                for c in some:
                    out[c][v] = out[c][v] + y * z[c][j]
        return out

    def dense(self) -> Matrix:
        """M^-1: the entry of two rates is a sum over the rates above both."""
        n = len(self.order)
        out = zeros(n)
        for i, v in enumerate(self.order):
            scaled = {i: self.inverse[i], **{k: x * self.inverse[k] for k, x in self.N[i].items()}}
            for j in range(i + 1):
                x: Scalar = 0.0
                for k, y in ((j, 1.0), *self.N[j].items()):
                    x = x + y * scaled.get(k, 0.0)
                out[v][self.order[j]] = out[self.order[j]][v] = x
        return out


def before_solving(tree: Tree, q: Vector, v: Vector, tau: Vector) -> tuple[list[Scalar], Matrix, Matrix, Factors]:
    """a, dtau/dq and dtau/dv at it, and the factors of M, by which the derivatives of a follow."""
    a = forward_dynamics(tree, q, v, tau, parallel=False, sums=False)
    dq, dv, _ = inverse_dynamics_derivatives(tree, q, v, a)
    return a, dq, dv, factorised(tree, mass_matrix_rows(tree, q, sums=False))


def forward_dynamics_derivatives(tree: Tree, q: Vector, v: Vector, tau: Vector) -> tuple[Matrix, Matrix, Matrix]:
    """da/dq = -M^-1 dtau/dq, da/dv = -M^-1 dtau/dv, and M^-1; each (nv, nv).

    Each column is solved as soon as it is complete, so that few of them are alive at a time.
    """
    a = forward_dynamics(tree, q, v, tau, parallel=False, sums=False)
    f = factorised(tree, mass_matrix_rows(tree, q, sums=False))
    inverse, n, s, known = Inverse(f), tree.nv, body_sweep(tree, q, v, a), empty(tree)
    dq, dv = carried_by_base(s)
    for j in columnwise(s, known):
        tree.section(j, "accelerations by joint")
        for at in completed(tree, j):
            columns = ({r: A[r][at] for r in range(n) if not is_zero(A[r][at])} for A in (known.dq, known.dv))
            for out, column in zip((dq, dv), inverse.times(*columns)):
                for r, x in enumerate(column):
                    out[r][at] = out[r][at] - x
    return dq, dv, inverse.dense()


def carried_by_base(s: BodySweep) -> tuple[Matrix, Matrix]:
    """The derivatives that the accelerations of a free base answer at once; takes them out of the base's columns.

    Its joint resists no motion, so I psi2 and I (psi1 + dS/dt) of its columns are columns of M themselves.
    """
    dq, dv = zeros(s.tree.nv), zeros(s.tree.nv)
    for i, b in enumerate(s.tree.bodies):
        if b.kind != "free" or b.parent >= 0 or b.v in s.tree.armature:
            continue
        for k, c in enumerate(s.columns[i]):
            for out, m in ((dq, c.psi2), (dv, c.both)):
                for l, x in enumerate((*m.v, *m.w)):
                    out[b.v + l][b.v + k] = -x
            s.columns[i][k] = c._replace(psi2=NO_MOTION, both=NO_MOTION)
    return dq, dv


def completed(tree: Tree, j: int) -> range:
    """Rates that no body before j moves: their columns are done with body j."""
    b = tree.bodies[j]
    return range(b.v, b.v + b.nv) if all(x.v != b.v for x in tree.bodies[:j]) else range(0)
