"""Kovalchuk, Kulakov, Semenov: the recursion over a tree of links, in link axes.

Link i hangs on link f(i) at its frame (f(i), ns(i)), which stands at M in the main frame of f(i); its own
main frame follows by A = Rot_z(theta + sigma q) Trans_z(d + chi q) Trans_x(a) Rot_x(alpha) (classical DH).
sigma is 1 for a revolute joint, 0 for a prismatic one; chi 0, 1, and metres per radian for a screw. f_i and
M_i are what link i exerts ON ITS PARENT, about the origin of frame (f(i), ns(i)): the opposite of
`joint_wrenches`.
Printed formulas with the corrections K-E1..K-E9: a leaf has a frame too, the whole moment is turned into the
parent's axes, and the arm of phi is l_i1 + c_i.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...errors import TraceError
from ..algorithms.inverse_dynamics import External
from ..rotation import axis_rotation
from ..scalar import Matrix, Scalar, Vector, cos, is_zero, sin
from ..spatial import EYE, SYM_ZERO, UNIT_VECS, ZERO, Mat, Sym, Vec
from ..tree import Tree, TreeBody
from ..tree_indices import children_of, depth_first, subtree_ends


class MechanismLink(NamedTuple):
    """A link and its joint. parent: index of f(i), -1 for the base. Inertia J about the centre of mass c."""

    parent: int
    M_R: Mat
    M_p: Vec
    sigma: float
    chi: Scalar
    theta: Scalar = 0.0
    d: Scalar = 0.0
    tail_R: Mat = EYE
    tail_p: Vec = ZERO
    axis: int = 2  # of the joint in frame (f, ns); DH has z
    m: Scalar = 0.0
    c: Vec = ZERO
    J: Sym = SYM_ZERO


class Load(NamedTuple):
    """External force and moment on a link, base axes; about its centre of mass, or `at` (main axes)."""

    F: Vec
    M: Vec
    at: Vec | None = None


class LinkState(NamedTuple):
    """The state of a link from the forward recursion. k-th entries belong to its frames (i, 1), (i, 2), ..."""

    A_R: Mat  # main frame in frame (f, ns)
    A_p: Vec
    R: Mat  # main frame in the base
    p: Vec
    z: Vec  # joint axis, base axes
    w: Vec
    e: Vec
    l: list[Vec]  # from the origin of (f, ns) to that of (i, k)
    l_main: Vec
    v: list[Vec]
    a: list[Vec]
    v_main: Vec
    a_main: Vec
    v_c: Vec
    a_c: Vec


class Wrench(NamedTuple):
    """f_i and M_i, link on parent, about the origin of frame (f, ns)."""

    f: Vec
    M: Vec


BASE_STATE = LinkState(
    EYE, ZERO, EYE, ZERO, ZERO, ZERO, ZERO, [], ZERO, [], [], ZERO, ZERO, ZERO, ZERO
)  # fmt: skip


@dataclass(frozen=True)
class Mechanism:
    """Links with f(i) < i, and gravity in base axes. named: takes a vector of a link, its letter and the link."""

    links: tuple[MechanismLink, ...]
    gravity: Vec
    named: Callable[[Vec, str, int], Vec] = lambda v, letter, i: v

    @property
    def children(self) -> list[list[int]]:
        return children_of([l.parent for l in self.links])

    def __len__(self) -> int:
        return len(self.links)


def _step(l: MechanismLink, q: Scalar) -> tuple[Mat, Vec]:
    """A_i."""
    angle = l.theta + l.sigma * q
    turn = axis_rotation(l.axis, sin(angle), cos(angle)) if l.sigma or not is_zero(l.theta) else EYE
    return turn.mul(l.tail_R), UNIT_VECS[l.axis] * (l.d + l.chi * q) + turn @ l.tail_p


def _frames(mech: Mechanism, i: int, kids: Sequence[int]) -> list[Vec]:
    """Origins of the frames (i, k) in main axes; a leaf has one at its main origin [K-E1]."""
    return [mech.links[k].M_p for k in kids] or [ZERO]


def _at(out: Sequence[LinkState], mech: Mechanism, kids: Sequence[Sequence[int]], i: int) -> tuple[Vec, Vec]:
    """v and a of the frame (f, ns) that link i hangs on."""
    f = mech.links[i].parent
    if f < 0:
        return ZERO, ZERO
    ns = list(kids[f]).index(i)
    return out[f].v[ns], out[f].a[ns]


def link_motion(mech: Mechanism, q: Vector, qd: Vector, qdd: Vector) -> list[LinkState]:
    """omega, epsilon, v and a of every link in its own main axes, (4), (5) and after; gravity is not in.

    p stays in base axes, z in the parent's.
    """
    out: list[LinkState] = []
    kids = mech.children
    for i, l in enumerate(mech.links):
        f = out[l.parent] if l.parent >= 0 else BASE_STATE
        A_R, A_p = _step(l, q[i])
        z = l.M_R @ UNIT_VECS[l.axis]
        back = l.M_R.mul(A_R).T  # ^f R_i transposed
        rate = f.w.cross(z * qd[i])
        w = back @ (f.w + z * (l.sigma * qd[i]))
        e = back @ (f.e + (z * qdd[i] + rate) * l.sigma)
        v0, a0 = _at(out, mech, kids, i)
        v0 = back @ (v0 + z * (l.chi * qd[i]))
        a0 = back @ (a0 + (z * qdd[i] + rate * 2.0) * l.chi)
        l_main = A_R.T @ A_p
        arms = [l_main + r for r in _frames(mech, i, kids[i])]
        v = [v0 + w.cross(x) for x in (*arms, l_main)]
        a = [a0 + e.cross(x) + w.cross(w.cross(x)) for x in (*arms, l_main)]
        v_c = v[-1] + w.cross(l.c)
        a_c = a[-1] + e.cross(l.c) + w.cross(w.cross(l.c))
        R, p = f.R.mul(back.T), f.p + f.R @ (l.M_p + l.M_R @ A_p)
        for x, letter in ((w, "omega"), (e, "epsilon"), (a[-1], "a"), (a_c, "a^c")):
            mech.named(x, letter, i)
        for x, letter in zip(R, ("R^x", "R^y", "R^z")):
            mech.named(x, letter, i)
        out.append(LinkState(A_R, A_p, R, p, z, w, e, arms, l_main, v[:-1], a[:-1], v[-1], a[-1], v_c, a_c))
    return out


def _moment_about_com(l: MechanismLink, R: Mat, load: Load) -> Vec:
    return load.M if load.at is None else load.M + (R @ (load.at - l.c)).cross(load.F)


NO_LOAD = Load(ZERO, ZERO)


def link_wrenches(
    mech: Mechanism, s: Sequence[LinkState], loads: Mapping[int, Load] | None = None
) -> list[Wrench]:
    """f_i and M_i in the axes of frame (f, ns) from the link-axes motion, tips to base [K-E2, K-E3, K-E4]."""
    out = [Wrench(ZERO, ZERO)] * len(mech)
    kids = mech.children
    for i in reversed(range(len(mech))):
        l, x, load = mech.links[i], s[i], (loads or {}).get(i, NO_LOAD)
        down = x.R.T
        phi = mech.named((down @ mech.gravity - x.a_c) * l.m + down @ load.F, "phi", i)
        f = phi
        M = down @ _moment_about_com(l, x.R, load) - l.J @ x.e - x.w.cross(l.J @ x.w)
        M = M + (x.l_main + l.c).cross(phi)
        for k, child in enumerate(kids[i]):
            turn = mech.links[child].M_R
            force = turn @ out[child].f
            f = f + force
            M = M + turn @ out[child].M + x.l[k].cross(force)
        out[i] = Wrench(mech.named(x.A_R @ f, "f", i), mech.named(x.A_R @ M, "M", i))
    return out


def project_wrenches(mech: Mechanism, axes: Sequence[Vec], wrenches: Sequence[Wrench]) -> list[Scalar]:
    """tau_i = -z . (sigma M + chi f), z in the axes of the wrenches."""
    return [-z.dot(w.M * l.sigma + w.f * l.chi) for l, z, w in zip(mech.links, axes, wrenches)]


def link_efforts(
    mech: Mechanism, q: Vector, qd: Vector, qdd: Vector, loads: Mapping[int, Load] | None = None
) -> list[Scalar]:
    """Drive efforts."""
    s = link_motion(mech, q, qd, qdd)
    return project_wrenches(mech, [UNIT_VECS[l.axis] for l in mech.links], link_wrenches(mech, s, loads))


def unit_accelerations(mech: Mechanism, q: Vector) -> Matrix:
    """The inertia matrix column by column: unit acceleration of joint i moves its subtree only [K-E9].

    Entries between branches are structural zeros and are never touched.
    """
    n, kids = len(mech), mech.children
    steps = [_step(l, x) for l, x in zip(mech.links, q)]
    order = depth_first(kids, [i for i, l in enumerate(mech.links) if l.parent < 0])
    place = {link: k for k, link in enumerate(order)}
    ends = subtree_ends([place.get(mech.links[i].parent, -1) for i in order])
    matrix: Matrix = [[0.0] * n for _ in range(n)]
    for i in range(n):
        below = order[place[i] : ends[place[i]]]
        for j, entry in _column(mech, steps, kids, i, below).items():
            matrix[i][j] = matrix[j][i] = entry
    return matrix


def _column(
    mech: Mechanism, steps: Sequence[tuple[Mat, Vec]], kids: Sequence[Sequence[int]], i: int, below: Sequence[int]
) -> dict[int, Scalar]:
    """i_ji = -k . (sigma M_j + chi f_j) for j in the subtree of i, all else at rest."""
    eps: dict[int, Vec] = {}
    acc: dict[int, tuple[Vec, list[Vec]]] = {}
    for j in below:
        l, (A_R, A_p) = mech.links[j], steps[j]
        e_f, a_f, one = ZERO, ZERO, 1.0
        if j != i:
            e_f, a_f, one = eps[l.parent], acc[l.parent][1][list(kids[l.parent]).index(j)], 0.0
        back, z = l.M_R.mul(A_R).T, l.M_R @ UNIT_VECS[l.axis]
        eps[j] = back @ (e_f + z * (l.sigma * one))
        a0, l_main = back @ (a_f + z * (l.chi * one)), A_R.T @ A_p
        frames = [a0 + eps[j].cross(l_main + r) for r in _frames(mech, j, kids[j])]
        acc[j] = a0 + eps[j].cross(l_main + l.c), frames
    out: dict[int, Wrench] = {}
    for j in reversed(below):
        l, (A_R, A_p) = mech.links[j], steps[j]
        l_main = A_R.T @ A_p
        f = -(acc[j][0] * l.m)
        M = (l_main + l.c).cross(f) - l.J @ eps[j]
        for child in kids[j]:
            below_l = mech.links[child]
            force = below_l.M_R @ out[child].f
            f, M = f + force, M + below_l.M_R @ out[child].M + (l_main + below_l.M_p).cross(force)
        out[j] = Wrench(A_R @ f, A_R @ M)
    return {
        j: -UNIT_VECS[l.axis].dot(w.M * l.sigma + w.f * l.chi) for j, w in out.items() for l in (mech.links[j],)
    }


# -- the same quantities of a Tree, with the signatures of `algorithms` ------------------------------------


def mechanism_of(tree: Tree) -> Mechanism:
    """A tree in the paper's terms: M is the joint's origin, all DH constants are zero."""
    links = tuple(_link(b) for b in tree.bodies)
    for i, l in enumerate(links):
        tree.named_vec(l.c, "r^c", i)
        tree.named_sym(l.J, "J^c", i)
    return Mechanism(links, tree.gravity, tree.named_vec)


def _link(b: TreeBody) -> MechanismLink:
    """A body as a link of the book; TraceError for a joint of several freedoms."""
    if b.kind not in ("revolute", "prismatic", "helical"):
        raise TraceError(
            f"joint {b.joint!r} is {b.kind}; formalism 'kovalchuk' has joints of one freedom: use "
            "newton_euler, or load with base='trunk'"
        )
    sigma, chi = {"revolute": (1.0, 0.0), "prismatic": (0.0, 1.0), "helical": (1.0, b.pitch)}[b.kind]
    P = b.inertia
    if is_zero(P.m):
        return MechanismLink(b.parent, b.R, b.p, sigma, chi, b.phase, axis=b.axis, J=P.J)
    c = P.h * (1.0 / P.m)
    away = Sym(c.x * P.h.x, c.x * P.h.y, c.x * P.h.z, c.y * P.h.y, c.y * P.h.z, c.z * P.h.z)
    return MechanismLink(b.parent, b.R, b.p, sigma, chi, b.phase, axis=b.axis, m=P.m, c=c, J=(P.S - away).turned())


def _own(tree: Tree, x: Vector) -> list[Scalar]:
    return [b.factor * x[b.v] for b in tree.bodies]


def inverse_dynamics(
    tree: Tree, q: Vector, v: Vector, a: Vector, external: External | None = None
) -> list[Scalar]:
    """Joint forces, (nv,)."""
    mech = mechanism_of(tree)
    loads = {
        tree.frames[link].body: Load(Vec(*x[:3]), Vec(*x[3:]), tree.frames[link].p)
        for link, x in (external or {}).items()
        if tree.frames[link].body >= 0
    }
    own = [b.factor * q[b.q] for b in tree.bodies]
    tau: list[Scalar] = [0.0] * tree.nv
    for b, x in zip(tree.bodies, link_efforts(mech, own, _own(tree, v), _own(tree, a), loads)):
        tau[b.v] = tau[b.v] + b.factor * x
    return tree.with_rotors(tau, a)


def bias(tree: Tree, q: Vector, v: Vector, external: External | None = None) -> list[Scalar]:
    """The H vector: inverse dynamics at zero acceleration, external loads in."""
    return inverse_dynamics(tree, q, v, [0.0] * tree.nv, external)


def mass_matrix(tree: Tree, q: Vector) -> Matrix:
    """M by unit accelerations, (nv, nv), entries between branches exactly zero."""
    links = unit_accelerations(mechanism_of(tree), [b.factor * q[b.q] for b in tree.bodies])
    M: Matrix = [[0.0] * tree.nv for _ in range(tree.nv)]
    for b, row in zip(tree.bodies, links):
        for d, x in zip(tree.bodies, row):
            M[b.v][d.v] = M[b.v][d.v] + (b.factor * d.factor) * x
    for k, x in tree.armature.items():
        M[k][k] = M[k][k] + x
    return M
