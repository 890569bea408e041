"""The method of separate bodies: forward dynamics and joint reactions in O(n), for trees in space.

Vereshchagin 1974 in the form of Yudintsev's slides, at the centres of mass in base axes; (18) has the minus sign
that the slides' own program has, and drives enter (9), (11), (18), (20). Letters: M, Q inertia and active force;
C_k moves a twist from the parent's centre of mass, S_k is the joint map, a'_k the bias acceleration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..algorithms.articulated_body import NO_MATRIX, Articulated, pivots_of, refuse_shared
from ..algorithms.inertia_matrix import Factors
from ..algorithms.inverse_dynamics import External
from ..algorithms.kinematics import Pose, body_poses
from ..joints import NO_FORCE, NO_MOTION, Force, Motion, Placement
from ..scalar import Scalar, Vector, is_zero
from ..spatial import EYE, ZERO, RigidInertia, Sym, Vec, congruence
from ..tree import Tree


class Separate(NamedTuple):
    """One body cut free: centre of mass r, inertia M, force Q, and its joint: rho, S, a', U, S^T and drive."""

    r: Vec
    rho: Vec
    S: list[Motion]
    bias: Motion
    M: Articulated
    Q: Force


def center(body: RigidInertia) -> Vec:
    """The centre of mass in body axes; any point serves a body without mass."""
    return ZERO if is_zero(body.m) else body.h * (1.0 / body.m)


def at_center(body: RigidInertia, c: Vec, R: Pose) -> Articulated:
    """diag(J_c, m E) in base axes (2)."""
    J = congruence(R.R, body.shifted(-c).J)
    m = body.m
    return Articulated(J, NO_MATRIX, Sym(m, 0.0, 0.0, m, 0.0, m))


def separate(tree: Tree, q: Vector, v: Vector, external: External | None) -> list[Separate]:
    """(1)-(5): every body with its joint, from the base outwards."""
    poses, rates = body_poses(tree, q), tree.rates(v)
    out: list[Separate] = []
    omega: list[Vec] = []
    for i, b in enumerate(tree.bodies):
        tree.section(i)
        here = poses[i]
        c = center(b.inertia)
        arm = here.R @ c
        r = here.p + arm
        r_parent = out[b.parent].r if b.parent >= 0 else ZERO
        w_parent = omega[b.parent] if b.parent >= 0 else ZERO
        w_joint, v_joint = here.R @ rates[i].w, here.R @ rates[i].v
        w = w_parent + w_joint
        turning = w_parent.cross(w_joint)
        pole = w_parent.cross(w_parent.cross(here.p - r_parent)) + (w_parent + w_parent + w_joint).cross(v_joint)
        bias = Motion(turning, pole + turning.cross(arm) + w.cross(w.cross(arm)))
        S = [_at(here.R @ s.w, here.R @ s.v, arm) * b.factor for s in tree.motion_subspace(b)]
        M = at_center(b.inertia, c, here)
        Q = Force(-w.cross(M.A @ w), tree.gravity * b.inertia.m)
        tree.named_sym(b.inertia.shifted(-c).J, "J^c", i)
        if external:
            Q = Q + _external(tree, i, here, r, external)
        for x, letter in (
            (c, "r^c"),
            (w, "omega"),
            (here.p - r_parent, "e"),
            (r - r_parent, "r"),
            (arm, "rho"),
            (bias.v, "b"),
            *((s.v, "S") for s in S[:1]),
        ):
            tree.named_vec(x, letter, i)
        tree.named_mat(here.R, "R", i)
        omega.append(w)
        out.append(Separate(r, r - r_parent, S, bias, M, Q))
    return out


def _at(w: Vec, v: Vec, arm: Vec) -> Motion:
    """The motion of a point of a body, an arm away from where v is."""
    return Motion(w, v + w.cross(arm))


def _external(tree: Tree, i: int, here: Pose, r: Vec, external: External) -> Force:
    total = Force(ZERO, ZERO)
    for link, wrench in external.items():
        frame = tree.frames[link]
        if frame.body == i:
            force, at = Vec(*wrench[:3]), here.p + here.R @ frame.p
            total = total + Force(Vec(*wrench[3:]) + (at - r).cross(force), force)
    return total


def shift(rho: Vec) -> Placement:
    """C_k as a placement: no turn, the parent's centre of mass at -rho."""
    return Placement(EYE, -2, 0.0, 1.0, EYE, rho)


class Solution(NamedTuple):
    """Accelerations, those of the centres of mass, and the reactions R_k of the parent on the body there."""

    a: list[Scalar]
    bodies: list[Motion]
    reactions: list[Force]


def solve(tree: Tree, q: Vector, v: Vector, tau: Vector, external: External | None = None) -> Solution:
    """Tip to base (17), (18), base to tip (20), (21), reactions R_k = M*_k a_k - Q*_k."""
    refuse_shared(tree, "khalil, newton_euler")
    parts = separate(tree, q, v, external)
    M, Q = [p.M for p in parts], [p.Q for p in parts]
    U, lost = [Factors([], [])] * len(parts), [NO_FORCE] * len(parts)
    for k in range(len(parts) - 1, -1, -1):
        b, S = tree.bodies[k], parts[k].S
        MS = [M[k].times(s) for s in S]
        _name(tree, k, M[k], Q[k], MS)
        U[k], behind = pivots_of(tree, k, M[k], S, MS, lost[k])
        for x in U[k].pivots[:1]:
            tree.named(x, f"U_{b.number}")
        if b.parent < 0:
            continue
        free = Q[k] - M[k].times(parts[k].bias)
        _name_wrench(tree, k, free, "F")
        x = U[k].solve([s.dot(free) + tau[b.v + j] for j, s in enumerate(S)])
        for y in x if len(x) == 1 else ():
            tree.named(y, f"a_{b.number}^o")
        left, passed = M[k], free
        for j, f in enumerate(MS):
            row = U[k].solve([1.0 if l == j else 0.0 for l in range(len(S))])
            if len(S) == 1:
                tree.named(row[0], f"U_{b.number}^o")
                _name_wrench(tree, k, f * row[0], "D")
            left = left.less(f, _sum(MS, row))
            passed = passed - f * x[j]
        _name_inertia(tree, k, left, "N")
        _name_wrench(tree, k, passed, "G")
        up = shift(parts[k].rho)
        M[b.parent] = M[b.parent] + left.lifted(up)
        Q[b.parent] = Q[b.parent] + up.force_to_parent(passed)
        lost[b.parent] = lost[b.parent] + up.force_to_parent(behind)
    return _outwards(tree, parts, M, Q, U, tau)


def _name(tree: Tree, k: int, M: Articulated, Q: Force, MS: Sequence[Force]) -> None:
    """The letters of body k with all that it carries."""
    _name_wrench(tree, k, Q, "Q")
    for x in MS[:1]:
        _name_wrench(tree, k, x, "P")
    _name_inertia(tree, k, M, "M")


def _name_wrench(tree: Tree, k: int, x: Force, letter: str) -> None:
    tree.named_vec(x.n, f"{letter}^n", k)
    tree.named_vec(x.f, f"{letter}^f", k)


def _name_inertia(tree: Tree, k: int, M: Articulated, letter: str) -> None:
    for S, above in ((M.A, "n"), (M.M, "f")):
        tree.named_sym(S, f"{letter}^{above}", k)
    for x, above in zip(M.B, "xyz"):
        tree.named_vec(x, f"{letter}^{above}", k)


def _sum(forces: Sequence[Force], weights: Vector) -> Force:
    total = Force(ZERO, ZERO)
    for f, w in zip(forces, weights):
        total = total + f * w
    return total


def _outwards(
    tree: Tree,
    parts: Sequence[Separate],
    M: Sequence[Articulated],
    Q: Sequence[Force],
    U: Sequence[Factors],
    tau: Vector,
) -> Solution:
    a: list[Scalar] = [0.0] * tree.nv
    moved: list[Motion] = []
    reactions: list[Force] = []
    for k, (b, part) in enumerate(zip(tree.bodies, parts)):
        parent = shift(part.rho).motion_to_child(moved[b.parent]) if b.parent >= 0 else NO_MOTION
        here = parent + part.bias
        left = Q[k] - M[k].times(here)
        x = U[k].solve([tau[b.v + j] + s.dot(left) for j, s in enumerate(part.S)])
        for j, s in enumerate(part.S):
            a[b.v + j] = x[j]
            here = here + s * x[j]
        tree.named_vec(here.v, "a^c", k)
        tree.named_vec(here.w, "epsilon", k)
        moved.append(here)
        reactions.append(M[k].times(here) - Q[k])
    return Solution(a, moved, reactions)


def forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, external: External | None = None
) -> list[Scalar]:
    """Accelerations, (nv,)."""
    return solve(tree, q, v, tau, external).a
