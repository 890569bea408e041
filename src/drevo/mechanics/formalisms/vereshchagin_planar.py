"""The method of separate bodies in the plane, as Yudintsev's slides print it: (7)-(28), errata applied.

Bodies on hinges across one plane and slides in it, accelerations (x, y, phi) of the centres of mass in axes of the
plane. c_kk and c_{k-1,k} go from the centres of mass of a body and of its parent to the joint between them; (18)
has the minus sign that the slides' own program has, and drives enter (18) and (20). A slide moves c_{k-1,k} along
its direction d, so that S_k = (A_k d, 0) and a'_k has its Coriolis acceleration.
"""

from __future__ import annotations

from typing import NamedTuple

from ...errors import TraceError
from ..algorithms.articulated_body import refuse_shared
from ..scalar import Scalar, Vector, cos, sin
from ..spatial import EYE, UNIT_VECS, ZERO, Mat, Sym, Vec, congruence
from ..tree import Tree
from .written import central

Pair = tuple[Scalar, Scalar]
PlaneRotation = tuple[Pair, Pair]  # rows
ALIGNED_AXES = 1e-12  # how far a hinge may stand off the normal, and a slide off the plane
NO_PLANE_TURN: PlaneRotation = ((1.0, 0.0), (0.0, 1.0))


class PlaneBody(NamedTuple):
    """A body as the plane sees it at q = 0: its mass, moment of inertia about the centre, and c_kk, c_{k-1,k}.

    turn: of a hinge +1 or -1, against the normal; 0 of a slide, whose direction is `slide`.
    """

    parent: int
    v: int
    factor: float
    phase: Scalar
    turn: float
    slide: Pair
    m: Scalar
    J: Scalar
    before: Pair
    own: Pair


class Rod(NamedTuple):
    """One body cut free: its turn A, its rate w, and C, S, a', M, Q of (5), (25)-(28) and (2)."""

    A: PlaneRotation
    w: Scalar
    C: Mat
    S: Vec
    bias: Vec
    M: Sym
    Q: Vec


def forward_dynamics(tree: Tree, q: Vector, v: Vector, tau: Vector) -> list[Scalar]:
    """Accelerations, (nv,), of a tree of hinges and slides in one plane; TraceError for others."""
    bodies, rods = plane_bodies(tree)[0], separate(tree, q, v)
    n = len(rods)
    M, Q, U = [r.M for r in rods], [r.Q for r in rods], [0.0] * n
    for k in range(n - 1, -1, -1):  # (17)-(19), tips to base
        b, (_, _, C, S, bias, _, _) = bodies[k], rods[k]
        for letter, x in (("S", S), ("a^prime", bias), ("Q^star", Q[k])):
            tree.named_vec(x, letter, k)
        tree.named_sym(M[k], "M^star", k)
        MS = M[k] @ S
        U[k] = tree.named(S.dot(MS) + tree.armature.get(b.v, 0.0), f"U_{tree.bodies[k].number}")
        if b.parent < 0:
            continue
        x = (S.dot(Q[k] - M[k] @ bias) + b.factor * tau[b.v]) * (1.0 / U[k])
        M[b.parent] = M[b.parent] + congruence(C.T, M[k] - _square(MS, 1.0 / U[k]))
        Q[b.parent] = Q[b.parent] - C.T @ (M[k] @ (S * x + bias) - Q[k])
    a: list[Scalar] = [0.0] * tree.nv
    moved: list[Vec] = []
    for k, (rod, b) in enumerate(zip(rods, bodies)):  # (20), (21), base to tips
        carried = rod.C @ moved[b.parent] if b.parent >= 0 else ZERO
        x = (b.factor * tau[b.v] + rod.S.dot(Q[k] - M[k] @ (carried + rod.bias))) * (1.0 / U[k])
        moved.append(carried + rod.S * x + rod.bias)
        a[b.v] = x * b.factor
    return a


def plane_bodies(tree: Tree) -> tuple[list[PlaneBody], list[Mat]]:
    """The bodies as their plane sees them, and the rows ex, ey, n of the plane of each in axes of the base.

    What hangs on the base by one joint has a plane of its own."""
    refuse_shared(tree, "vereshchagin of trees without mimics, khalil, newton_euler")
    turns: list[Mat] = []
    for b in tree.bodies:
        turns.append(turns[b.parent].mul(b.R) if b.parent >= 0 else b.R)
    roots: list[int] = []
    for i, b in enumerate(tree.bodies):
        roots.append(roots[b.parent] if b.parent >= 0 else i)
    of_root = {k: _plane(tree, turns, [i for i, root in enumerate(roots) if root == k]) for k in set(roots)}
    planes = [of_root[k] for k in roots]
    centers, inertias = zip(*(central(tree, i) for i in range(len(tree))))
    out = []
    for i, b in enumerate(tree.bodies):
        plane = planes[i]
        axis = plane @ (turns[i] @ UNIT_VECS[b.axis])
        hinge = b.kind == "revolute"
        off = (abs(axis.x) + abs(axis.y)) if hinge else abs(axis.z)
        if b.kind not in ("revolute", "prismatic") or off > ALIGNED_AXES:
            raise TraceError(
                f"the planar method of separate bodies takes hinges across one plane and slides in it; joint "
                f"{b.joint!r} ({b.kind}) is not such: vereshchagin takes every joint"
            )
        up = b.parent
        before = plane @ ((turns[up] if up >= 0 else EYE) @ (b.p - (centers[up] if up >= 0 else ZERO)))
        own = plane @ (turns[i] @ (-centers[i]))
        normal = turns[i].T @ plane[2]
        J = normal.dot(inertias[i] @ normal)
        out.append(PlaneBody(up, b.v, b.factor, b.phase, float(round(axis.z)) if hinge else 0.0,
                             (0.0, 0.0) if hinge else (axis.x, axis.y), b.inertia.m, J, (before.x, before.y),
                             (own.x, own.y)))  # fmt: skip
    return out, planes


def _plane(tree: Tree, turns: list[Mat], bodies: list[int]) -> Mat:
    """Across the first hinge, with the other axes of its body at q = 0; of slides alone, along the first two."""
    for i in bodies:
        if tree.bodies[i].kind == "revolute":
            x, y, z = (turns[i] @ UNIT_VECS[(tree.bodies[i].axis + k) % 3] for k in (1, 2, 0))
            return Mat(x, y, z)
    along = [turns[i] @ UNIT_VECS[tree.bodies[i].axis] for i in bodies]
    others = [x for x in (*along, *UNIT_VECS) if abs(x.dot(along[0])) < 1.0 - ALIGNED_AXES]
    normal = along[0].cross(others[0])
    normal = normal * (1.0 / float(normal.dot(normal)) ** 0.5)
    return Mat(along[0], normal.cross(along[0]), normal)


def separate(tree: Tree, q: Vector, v: Vector) -> list[Rod]:
    """(2), (25)-(28) of every body, in the axes of the plane."""
    rods = list[Rod]()
    for b, plane, body in zip(*plane_bodies(tree), tree.bodies):
        x, rate = b.factor * q[body.q], b.factor * v[b.v]
        up = rods[b.parent] if b.parent >= 0 else None
        rods.append(_rod(b, up, x, rate, plane @ tree.gravity))
    return rods


def _rod(b: PlaneBody, up: Rod | None, x: Scalar, rate: Scalar, gravity: Vec) -> Rod:
    A0, w0 = (up.A, up.w) if up else (NO_PLANE_TURN, 0.0)
    arm = (b.before[0] + b.slide[0] * x, b.before[1] + b.slide[1] * x) if not b.turn else b.before
    A = _product(A0, _turn(b.turn * (x + b.phase))) if b.turn else A0
    w = w0 + b.turn * rate if b.turn else w0
    own, before = _times(A, b.own), _times(A0, arm)  # A_k c_kk and A_{k-1} c_{k-1,k}
    lever = _quarter((own[0] - before[0], own[1] - before[1]))
    C = Mat(Vec(1.0, 0.0, lever[0]), Vec(0.0, 1.0, lever[1]), Vec(0.0, 0.0, 1.0))
    bias = Vec(own[0] * (w * w) - before[0] * (w0 * w0), own[1] * (w * w) - before[1] * (w0 * w0), 0.0)
    if b.turn:
        side = _quarter(own)
        S = Vec(b.turn * side[0], b.turn * side[1], b.turn)
    else:
        along, twice = _times(A, b.slide), 2.0 * (w * rate)
        S, side = Vec(along[0], along[1], 0.0), _quarter(along)
        bias = bias - Vec(twice * side[0], twice * side[1], 0.0)
    force = Vec(gravity.x * b.m, gravity.y * b.m, 0.0)
    return Rod(A, w, C, S, bias, Sym(b.m, 0.0, 0.0, b.m, 0.0, b.J), force)


def _turn(angle: Scalar) -> PlaneRotation:
    return (cos(angle), -sin(angle)), (sin(angle), cos(angle))


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
