"""Tree -> Tree: the same equations of motion from fewer numbers.

gauged: mass that a joint cannot move belongs to either of its bodies, so it is handed down to the base.
leaf_phase: a last body's axes are turned until its centre of mass lies in a coordinate plane.
length_unit: lengths are measured in the robot's most frequent one.
Each works on numbers and on symbols; joint forces, inertia matrix and accelerations stay the same, while wrenches
inside joints and the inertias of single bodies do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .joints import LENGTH_COORDINATES
from .rotation import axis_rotation
from .scalar import Scalar, Vector, atan2, cos, is_zero, sin
from .spatial import SYM_ZERO, UNIT_VECS, ZERO, Mat, RigidInertia, Sym, Vec
from .tree import LinkFrame, Tree, TreeBody

SHORT_OFFSET = 1e-2  # of the longest offset
STRUCTURAL_ZERO = 1e-13  # of the largest term: below it a sum of numbers is a structural zero


def drop_rounding(total: RigidInertia, *terms: RigidInertia) -> RigidInertia:
    """A sum of inertias whose rounding left-overs, against the size of the terms, are structural zeros."""
    values = [[b.m, *b.h, *b.S] for b in terms]
    if not all(isinstance(x, (int, float)) for row in values for x in row):
        return total

    def settle(part: list[Scalar], at: slice) -> list[Scalar]:
        size = max((abs(x) for row in values for x in row[at]), default=0.0)
        return [0.0 if abs(x) <= STRUCTURAL_ZERO * size else x for x in part]

    m, h, S = (
        settle([total.m], slice(0, 1)),
        settle(list(total.h), slice(1, 4)),
        settle(list(total.S), slice(4, 10)),
    )
    return RigidInertia(m[0], Vec(*h), Sym(*S))


# -- the inertia gauge --------------------------------------------------------------------------------------


def replaced_entry(S: Sym, k: int, value: Scalar) -> Sym:
    """S with its k-th diagonal entry replaced."""
    rows = [list(r) for r in S.mat]
    rows[k][k] = value
    return Sym.of(Mat.of(rows))


def split_movable(b: TreeBody, P: RigidInertia, gauge: str = "sigma") -> tuple[RigidInertia, RigidInertia]:
    """(what stays, what may go to the parent): points at rest in both bodies. Spec section 3, table.

    gauge "yy" moves so much of S_kk that J_yy = S_kk + S_xx vanishes instead of S_kk: Khalil's base parameters.
    """
    k = b.axis
    if b.kind == "prismatic":
        return RigidInertia(P.m, P.h, SYM_ZERO), RigidInertia(0.0, ZERO, P.S)
    if b.kind == "spherical":
        return RigidInertia(0.0, P.h, P.S), RigidInertia(P.m, ZERO, SYM_ZERO)
    if b.kind not in ("revolute", "helical"):
        return P, RigidInertia(0.0, ZERO, SYM_ZERO)
    x = (k + 1) % 3
    kept = -P.S.mat[x][x] if gauge == "yy" and b.kind == "revolute" else 0.0
    S, moved = replaced_entry(P.S, k, kept), replaced_entry(SYM_ZERO, k, P.S.mat[k][k] - kept)
    if b.kind == "helical":
        return RigidInertia(P.m, P.h, S), RigidInertia(0.0, ZERO, moved)
    h = list(P.h)
    h[k] = 0.0
    return RigidInertia(0.0, Vec(*h), S), RigidInertia(P.m, UNIT_VECS[k] * P.h[k], moved)


def gauged(tree: Tree, gauge: str = "sigma", holders: Sequence[tuple[int, int]] = ()) -> Tree:
    """Every body keeps only what its joint can move; the rest goes from the leaves to the base.

    holders: (body, c) that take a point mass at their pole such that component c of their parent's h vanishes.
    """
    tree.context.assume(
        "Inertias are regrouped: what a joint does not move of its body is counted with the body that carries it."
    )
    P, size = [b.inertia for b in tree.bodies], longest(tree)
    for i in range(len(P) - 1, -1, -1):
        b = tree.bodies[i]
        for child, c in holders:
            if tree.bodies[child].parent == i:
                P[i], P[child] = move_mass_to_parent(P[i], P[child], tree.bodies[child].p, c, size)
        P[i], G = split_movable(b, P[i], gauge)
        if b.parent >= 0:
            G = G.moved(b.R, b.p)
            P[b.parent] = drop_rounding(P[b.parent] + G, P[b.parent], G)
    return tree.replace(bodies=tuple(b._replace(inertia=p) for b, p in zip(tree.bodies, P)))


def longest(tree: Tree) -> float:
    """The largest offset of a tree among those that are numbers."""
    return max((abs(x) for b in tree.bodies for x in b.p if isinstance(x, float)), default=0.0)


def is_short(x: Scalar, longest: float) -> bool:
    """Zero, or so short beside the longest offset that dividing by it would cost digits."""
    return isinstance(x, float) and abs(x) <= SHORT_OFFSET * longest


def move_mass_to_parent(
    parent: RigidInertia, child: RigidInertia, p: Vec, c: int, size: float = 0.0
) -> tuple[RigidInertia, RigidInertia]:
    """A mass at the child's pole p changes hands so that component c of the parent's h vanishes."""
    if is_zero(parent.h[c]) or is_short(p[c], size):
        return parent, child
    mu = parent.h[c] / p[c]
    point = RigidInertia(mu, ZERO, SYM_ZERO).shifted(p)
    minus = RigidInertia(-mu, -point.h, SYM_ZERO - point.S)
    h = list(parent.h + minus.h)
    h[c] = 0.0
    return drop_rounding(
        RigidInertia(parent.m - mu, Vec(*h), parent.S + minus.S), parent, minus
    ), child + RigidInertia(mu, ZERO, SYM_ZERO)


# -- turning and sliding a body's own frame -----------------------------------------------------------------


def leaf_bodies(tree: Tree) -> list[int]:
    """Bodies that carry no other."""
    carriers = {b.parent for b in tree.bodies}
    return [i for i in range(len(tree)) if i not in carriers]


def leaf_phase(tree: Tree, symbols: bool = True) -> Tree:
    """Turns every last hinged body about its axis until h has one transverse component; q + phase in its angle.

    Without a first moment the principal axes of the transverse second moments serve: S_xy = 0. symbols: the phase
    may be one; a function of parameters would find its arc tangent, sine and cosine anew for every sample.
    """
    for i in leaf_bodies(tree):
        phase = _phase(tree.bodies[i])
        if isinstance(phase, (int, float)) or symbols:
            tree = tree if is_zero(phase) else turned_about_axis(tree, i, phase)
    return tree


def _phase(b: TreeBody) -> Scalar:
    """The angle by which `leaf_phase` turns a last body."""
    x, y = (b.axis + 1) % 3, (b.axis + 2) % 3
    h, S = b.inertia.h, b.inertia.S.mat
    if b.kind != "revolute" or is_zero(h[x]) != is_zero(h[y]):
        return 0.0
    if not is_zero(h[x]):
        return atan2(h[y], h[x])
    return 0.0 if is_zero(S[x][y]) else 0.5 * atan2(2.0 * S[x][y], S[x][x] - S[y][y])


def turned_about_axis(tree: Tree, i: int, angle: Scalar) -> Tree:
    """A last body's frame turned about its own axis, so that h_y, or S_xy, vanishes; its zero moves along."""
    b = tree.bodies[i]
    x, y = (b.axis + 1) % 3, (b.axis + 2) % 3
    A = axis_rotation(b.axis, sin(angle), cos(angle))
    P = b.inertia.turned(A.T)
    h, S = list(P.h), [list(r) for r in P.S.mat]
    if is_zero(b.inertia.h[x]) and is_zero(b.inertia.h[y]):
        S[x][y] = S[y][x] = 0.0
    h[y] = 0.0
    bodies, frames = list(tree.bodies), dict(tree.frames)
    bodies[i] = b._replace(inertia=RigidInertia(P.m, Vec(*h), Sym.of(Mat.of(S))), phase=b.phase + angle)
    for name, f in tree.frames.items():
        if f.body == i:
            frames[name] = LinkFrame(i, A.T.mul(f.R), A.T @ f.p)
    return tree.replace(bodies=tuple(bodies), frames=frames)


# -- the unit of length -------------------------------------------------------------------------------------


def length_unit(tree: Tree) -> Tree:
    """Lengths in the offset component that occurs most often; the unit of mass absorbs the rest. Spec section 6.

    Angles and moments hold no length; sliding coordinates and forces are converted on the way, `linear_rates`.
    A coordinate that both slides and turns, by a mimic joint, has no unit to change: such a tree stays as it is.
    So does one whose symbols people read. The unit is a number: a symbol might be zero.
    """
    kinds = {(b.v, b.kind == "prismatic") for b in tree.bodies}
    if len(kinds) > len({v for v, _ in kinds}) or tree.context.in_metres:
        return tree
    size = longest(tree)
    offsets = (x for b in tree.bodies for x in b.p if b.parent >= 0)
    found = Counter(abs(x) for x in offsets if isinstance(x, float) and not is_short(x, size))
    return in_unit(tree, found.most_common(1)[0][0]) if found else tree


def linear_rates(tree: Tree) -> list[int]:
    """Rates that are lengths a second, so that they and their forces feel the unit of length."""
    return sorted({b.v + k for b in tree.bodies for k in range(LENGTH_COORDINATES[b.kind])})


def linear_coordinates(tree: Tree) -> list[int]:
    """Coordinates that are lengths."""
    return sorted({b.q + k for b in tree.bodies for k in range(LENGTH_COORDINATES[b.kind])})


def scaled(values: Vector, at: Sequence[int], unit: Scalar) -> list[Scalar]:
    """Some values divided by the unit."""
    out = list(values)
    if isinstance(unit, float) and unit == 1.0:
        return out
    for i in at:
        out[i] = out[i] * (1.0 / unit)
    return out


def in_unit(tree: Tree, unit: Scalar) -> Tree:
    """Lengths divided by the unit, first moments times it, masses times its square; S is free of lengths then."""

    def shorter(p: Vec) -> Vec:
        return Vec(*(x if is_zero(x) else 1.0 if x is unit else x / unit for x in p))

    def smaller(b: TreeBody) -> TreeBody:
        P = b.inertia
        inertia = RigidInertia(P.m * (unit * unit), P.h * unit, P.S)
        return b._replace(p=shorter(b.p), pitch=b.pitch / unit, inertia=inertia)

    frames = {name: LinkFrame(f.body, f.R, shorter(f.p)) for name, f in tree.frames.items()}
    tree.context.assume(
        f"Lengths inside the equations are in units of {unit:.6g} m, masses in 1/{unit * unit:.6g} kg; "
        "arguments and results are in SI units."
    )
    return tree.replace(
        bodies=tuple(map(smaller, tree.bodies)), frames=frames, gravity=shorter(tree.gravity), unit=unit
    )
