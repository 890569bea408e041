"""a with M a + h = tau in O(n): articulated bodies, in body axes, limb by limb. Featherstone 2008, table 7.1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...errors import TraceError
from ..joints import NO_FORCE, NO_MOTION, Force, Motion, Placement
from ..scalar import Scalar, Vector, accumulate, is_zero
from ..spatial import SYM_ZERO, ZERO, Mat, RigidInertia, Sym, Vec, congruence, outer, rotated, rotated_mat, skew
from ..tree import Tree
from .inertia_matrix import Factors, SparseRows, guard_pivots
from .inverse_dynamics import External, external_on
from .kinematics import step_velocity

NO_MATRIX = Mat(ZERO, ZERO, ZERO)


class Articulated(NamedTuple):
    """A symmetric 6x6 inertia: n = A w + B v, f = B^T w + M v."""

    A: Sym
    B: Mat
    M: Sym

    def __add__(self, o: Articulated) -> Articulated:  # type: ignore[override]
        return Articulated(self.A + o.A, self.B + o.B, self.M + o.M)

    def times(self, x: Motion) -> Force:
        return Force(self.A @ x.w + self.B @ x.v, self.B.T @ x.w + self.M @ x.v)

    def less(self, U: Force, W: Force) -> Articulated:
        """Less U W^T, for W a multiple of U or one of several whose sum is symmetric."""
        return Articulated(self.A - _outer_sym(U.n, W.n), self.B - outer(U.n, W.f), self.M - _outer_sym(U.f, W.f))

    def without(self, S: Motion) -> Articulated:
        """The inertia with I S = 0 written as zeros, if S is along one axis: behind a joint it is so exactly."""
        along = [k for k, x in enumerate((*S.w, *S.v)) if not is_zero(x)]
        if len(along) != 1:
            return self
        k = along[0] % 3
        rest = Mat(*(Vec(*(0.0 if r == k or c == k else 1.0 for c in range(3))) for r in range(3)))
        B = self.B
        if along[0] < 3:
            return Articulated(_kept(self.A, rest), Mat(*(ZERO if r == k else B[r] for r in range(3))), self.M)
        columns = Mat(*(Vec(*(0.0 if c == k else x for c, x in enumerate(row))) for row in B))
        return Articulated(self.A, columns, _kept(self.M, rest))

    def lifted(self, X: Placement) -> Articulated:
        """Moves the inertia to the parent's axes about the parent's origin; the transform of section 2.8."""
        A, B, M = self
        if X.k >= 0:
            A, M = rotated(X.k, X.s, X.c, A), rotated(X.k, X.s, X.c, M)
            B = rotated_mat(X.k, X.s, X.c, B)
        for R in (X.Q, X.R) if X.k == -1 else (X.R,):
            A, B, M = congruence(R, A), R.mul(B).mul(R.T), congruence(R, M)
        P = skew(X.p)
        moved = B + P.mul(M.mat)
        cross = P.mul(B.T)  # [p] B^T; its transpose completes A
        A = A + Sym.of(cross) + Sym.of(moved.mul(P.T))
        return Articulated(A, moved, M)


def _kept(S: Sym, mask: Mat) -> Sym:
    """S where the mask is 1, zero elsewhere."""
    return Sym(*(x if m == 1.0 else 0.0 for x, m in zip(S, Sym.of(mask))))


def _outer_sym(a: Vec, b: Vec) -> Sym:
    return Sym(a.x * b.x, a.x * b.y, a.x * b.z, a.y * b.y, a.y * b.z, a.z * b.z)


NO_INERTIA = Articulated(SYM_ZERO, NO_MATRIX, SYM_ZERO)


def articulated_of_body(body: RigidInertia) -> Articulated:
    """A rigid body as a 6x6 inertia."""
    m = body.m
    return Articulated(body.J, skew(body.h), Sym(m, 0.0, 0.0, m, 0.0, m))


class ArticulatedJoint(NamedTuple):
    """A joint's terms from the inward pass for the accelerations: S, U = I S, D's factors, u, and c = v x S rate.

    lost: what the test of the pivots further in takes from this joint.
    """

    S: list[Motion]
    U: list[Force]
    D: Factors
    u: list[Scalar]
    c: Motion
    lost: Force


def forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, external: External | None = None
) -> list[Scalar]:
    """Accelerations, (nv,). Coordinates that drive several joints are refused: they couple the branches."""
    refuse_shared(tree)
    X, rates, n = tree.placements(q), tree.rates(v), len(tree)
    moving, world = [NO_MOTION] * n, [X[0].R] * n if n else []
    inertia, p, lost = [NO_INERTIA] * n, [NO_FORCE] * n, [NO_FORCE] * n
    joints: list[ArticulatedJoint | None] = [None] * n
    for out, i in tree.tour():
        b = tree.bodies[i]
        if out:
            tree.section(i)
            moving[i] = step_velocity(X[i], moving[b.parent], rates[i]) if b.parent >= 0 else rates[i]
            inertia[i] = articulated_of_body(b.inertia)
            p[i] = moving[i].cross_force(inertia[i].times(moving[i]))
            if external:
                world[i] = (world[b.parent].mul(X[i].rotation)) if b.parent >= 0 else X[i].rotation
                p[i] = p[i] - external_on(tree, i, world[i], external)
        else:
            joint = joint_of(tree, i, inertia[i], p[i], tau, moving[i].cross(rates[i]), lost[i])
            joints[i] = joint
            if b.parent >= 0:
                lost[b.parent] = lost[b.parent] + X[i].force_to_parent(joint.lost)
                Ia, pa = bias_to_parent(inertia[i], p[i], joint, b.v in tree.armature)
                inertia[b.parent] = inertia[b.parent] + Ia.lifted(X[i])
                p[b.parent] = p[b.parent] + X[i].force_to_parent(pa)
    return _accelerations(tree, X, joints)  # type: ignore[arg-type]


def solve_with_inertia(tree: Tree, q: Vector, force: Vector) -> list[Scalar]:
    """M^-1 force, (nv,): the same bodies at rest and without weight."""
    return forward_dynamics(tree.replace(gravity=ZERO), q, [0.0] * tree.nv, force)


def refuse_shared(tree: Tree, capable: str = "khalil, newton_euler") -> None:
    """An O(n) method cannot carry a coordinate that moves several joints: it couples the branches."""
    seen: dict[int, str] = {}
    for b in tree.bodies:
        if b.v in seen:
            raise TraceError(
                f"joint {b.joint!r} shares the coordinate of joint {seen[b.v]!r} (mimic), which this formalism "
                f"cannot carry; formalisms that can: {capable}"
            )
        seen[b.v] = b.joint


def joint_of(
    tree: Tree, i: int, inertia: Articulated, p: Force, tau: Vector, c: Motion, lost: Force = NO_FORCE
) -> ArticulatedJoint:
    """U = I S, D = S^T U, u = tau - S^T p."""
    b = tree.bodies[i]
    S = [s * b.factor for s in tree.motion_subspace(b)]
    U = [inertia.times(s) for s in S]
    u = [tau[b.v + k] - s.dot(p) for k, s in enumerate(S)]
    D, lost = pivots_of(tree, i, inertia, S, U, lost)
    return ArticulatedJoint(S, U, D, u, c, lost)


def pivots_of(
    tree: Tree, i: int, inertia: Articulated, S: Sequence[Motion], U: Sequence[Force], lost: Force
) -> tuple[Factors, Force]:
    """The factors of D = S^T U, its pivots guarded by what the body carries, turned about any axis or shifted.

    lost: the bias force that makes the right-hand side of `guard_pivots`; then what the parent feels of it.
    """
    D: SparseRows = [{l: S[k].dot(U[l]) for l in range(k + 1)} for k in range(len(S))]
    rates = [tree.bodies[i].v + k for k in range(len(S))]
    for k, v in enumerate(rates):
        accumulate(D[k], k, tree.armature.get(v, 0.0))
    factors = Factors(D, range(len(S)))
    traces = [(inertia.M if s.w.zero else inertia.A).trace for s in S]
    y = [-s.dot(lost) for s in S]
    guard_pivots(tree, factors, rates, [tree.carried[v] for v in rates] if tree.carried else traces, y)
    if not tree.loose.keys() & rates:
        return factors, NO_FORCE
    for u, x in zip(U, factors.solve_lower(y)):
        lost = lost + u * x
    return factors, lost


def bias_to_parent(
    inertia: Articulated, p: Force, j: ArticulatedJoint, rotor: bool = False
) -> tuple[Articulated, Force]:
    """Inertia and bias force felt by the parent: I - U D^-1 U^T and p + Ia c + U D^-1 u. A rotor resists in D."""
    n = len(j.S)
    x = j.D.solve(j.u)
    for k in range(n):
        row = j.D.solve([1.0 if l == k else 0.0 for l in range(n)])
        W = NO_FORCE
        for l in range(n):
            W = W + j.U[l] * row[l]
        inertia = inertia.less(j.U[k], W)
        p = p + j.U[k] * x[k]
    if n == 1 and not rotor:
        inertia = inertia.without(j.S[0])
    return inertia, p + inertia.times(j.c)


def _accelerations(tree: Tree, X: Sequence[Placement], joints: Sequence[ArticulatedJoint]) -> list[Scalar]:
    """a' = X a_p + c; q'' = D^-1 (u - U^T a'); a = a' + S q''."""
    a: list[Motion] = []
    out: list[Scalar] = [0.0] * tree.nv
    ground = Motion(ZERO, -tree.gravity)
    for i, (b, j) in enumerate(zip(tree.bodies, joints)):
        here = X[i].motion_to_child(a[b.parent] if b.parent >= 0 else ground) + j.c
        x = j.D.solve([u - here.dot(U) for u, U in zip(j.u, j.U)])
        for k, s in enumerate(j.S):
            out[b.v + k] = x[k]
            here = here + s * x[k]
        a.append(here)
    return out
