"""Matrices by pairs of freedoms: a walk from every freedom up its way meets all that are coupled with it.

Each leaves its numbers in world axes about its own pole; what goes from pole to pole is a wrench, n + r x f.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..algorithms.derivatives import Rates, rates_of
from ..algorithms.inertia_matrix import lifted, wrench_of
from ..algorithms.kinematics import step_velocity
from ..emit.llvm_rolled import Loop, Step
from ..mechanics.joints import Placement
from ..mechanics.scalar import Scalar
from ..mechanics.spatial import ZERO, Body, Mat, Sym, Vec
from .dynamics import LOAD, Shape
from .step import Kind, Tracer, flat_of, force_of, mat_of, motion_of, numbers_of_mat

_INERTIA = 9  # after the world's rotation: m, h, S of the composite body in its own axes
_FREEDOMS = 19  # where in the slot of a body its first freedom begins
_LEVER = 12  # of a freedom: S 6, I S 6, and the way from the pole of the freedom above, 3

_SPEED, _RATES = 19, 25  # after the composite body: w, v in the body's axes; T 9 and P 3 of the operator B
_TURNING = 37  # where in the slot of a body its first freedom begins, in a Coriolis matrix: S 6, S' 6, u1 3, u2 6,
_ARM = 27  # up 6, and the lever

SHAPES = {
    name: Shape(first, size, pose=0, tiled=False, zeroed=True, pairs=True)
    for name, first, size in (("mass_matrix", _FREEDOMS, 15), ("coriolis_matrix", _TURNING, 30))
}


def mass_matrix(kinds: Sequence[Kind]) -> tuple[Loop, ...]:
    """Composite bodies inwards, then all pairs."""
    out, back = tuple(_out(k) for k in kinds), tuple(_back(k) for k in kinds)
    return Loop(False, out), Loop(True, back), Loop(False, (_begin(),), "rows", inner=_pair())


def _out(kind: Kind, moving: bool = False) -> Step:
    """The world's rotation and the body; where it moves also its speed and its operator B."""
    t = Tracer(kind)
    X, body = t.at(), t.body.inertia
    t.write("own", numbers_of_mat(mat_of(t.parent(9, 0)).mul(X.rotation)))
    t.write("own", [body.m, *body.h, *body.S], _INERTIA)
    if moving:
        m = step_velocity(X, motion_of(t.parent(6, _SPEED)), t.tree.rates(t.argument(1))[0])
        B = rates_of(body, m)
        t.write("own", [*flat_of(m), *numbers_of_mat(B.T), *B.P], _SPEED)
    return t.step(t.quaternions())


def _body(x: Sequence[object]) -> Body:
    return Body(x[0], Vec(*x[1:4]), Sym(*x[4:10]))


def _back(kind: Kind) -> Step:
    """The composite body on to the parent; S, I S and the lever of every freedom in world axes."""
    t = Tracer(kind)
    X, R, total = t.at(), mat_of(t.own(9, 0)), _body(t.own(10, _INERTIA))
    lever = mat_of(t.parent(9, 0)) @ X.p
    for k, column in enumerate(t.tree.columns(t.body)):
        s = column * t.body.factor
        f = wrench_of(total, s)
        numbers = [*(R @ s.w), *(R @ s.v), *(R @ f.n), *(R @ f.f), *(ZERO if k else lever)]
        t.write("own", numbers, _FREEDOMS + 15 * k)
    _pass_on(t, X, total)
    return t.step()


def _pass_on(t: Tracer, X: Placement, total: Body) -> None:
    """The composite body on to the parent."""
    joined = _body(t.parent(10, _INERTIA)) + lifted(X, total)
    t.write("parent", [joined.m, *joined.h, *joined.S], _INERTIA)


def _begin() -> Step:
    """The wrench of a freedom into the ground's slot."""
    t = Tracer(LOAD)
    t.write("ground", t.own(6, 6))
    return t.step()


def _pair() -> Step:
    """An entry and its mirror; the wrench goes on to the pole above."""
    t = Tracer(LOAD)
    f, S = force_of(t.read("ground", 6)), motion_of(t.read("upper", 6))
    x = S.dot(f)
    t.write("pair0", [x])
    t.write("mirror0", [x])
    r = Vec(*t.read("upper", 3, _LEVER))
    t.write("ground", [*(f.n + r.cross(f.f))])
    return t.step()


# -- the Coriolis matrix ------------------------------------------------------------------------------------


def coriolis_matrix(kinds: Sequence[Kind]) -> tuple[Loop, ...]:
    """C_ij = S_i . (B_c S_j + I_c S'_j), c the deeper of the two bodies, as in algorithms.derivatives."""
    out, back = tuple(_out(k, True) for k in kinds), tuple(_turning_back(k) for k in kinds)
    begin = Tracer(LOAD)
    begin.write("ground", begin.own(15, 12))
    return Loop(False, out), Loop(True, back), Loop(False, (begin.step(),), "rows", inner=_turning_pair())


def _rates(x: Sequence[Scalar]) -> Rates:
    return Rates(mat_of(x), Vec(*x[9:12]))


def _turning_back(kind: Kind) -> Step:
    """The composite body and its B on to the parent; the numbers of every freedom in world axes."""
    t = Tracer(kind)
    X, R, total = t.at(), mat_of(t.own(9, 0)), _body(t.own(10, _INERTIA))
    m, B = motion_of(t.own(6, _SPEED)), _rates(t.own(12, _RATES))
    lever = mat_of(t.parent(9, 0)) @ X.p
    for k, column in enumerate(t.tree.columns(t.body)):
        s = column * t.body.factor
        s1, u2 = m.cross(s), wrench_of(total, s)
        up = B.times(s) * 0.5 + wrench_of(total, s1)
        vectors = (*s, *s1, B.transposed(s) * 0.5, *u2, *up)
        numbers = [x for vector in vectors for x in R @ vector]
        t.write("own", [*numbers, *(ZERO if k else lever)], _TURNING + 30 * k)
    _pass_on(t, X, total)
    joined = _rates(t.parent(12, _RATES)) + _lifted(X, B)
    t.write("parent", [*numbers_of_mat(joined.T), *joined.P], _RATES)
    return t.step()


def _lifted(X: Placement, B: Rates) -> Rates:
    """B in the axes of the parent about its pole: T + (P . p) 1 - P p^T."""
    E = X.rotation
    T, P = E.mul(B.T).mul(E.T), E @ B.P
    along = P.dot(X.p)
    moved = Mat(*(Vec(*(along if r == c else 0.0 for c in range(3))) - X.p * P[r] for r in range(3)))
    return Rates(T + moved, P)


def _turning_pair() -> Step:
    """The entries (row, other) and (other, row); both wrenches go on to the pole above, a pure moment stays."""
    t = Tracer(LOAD)
    g, r = t.read("ground", 15), Vec(*t.read("upper", 3, _ARM))
    u1, u2, up = Vec(*g[:3]), force_of(g[3:]), force_of(g[9:])
    S, S1 = motion_of(t.read("upper", 6)), motion_of(t.read("upper", 6, 6))
    t.write("pair0", [u1.dot(S.w) + S1.dot(u2)])
    t.write("mirror0", [S.dot(up)])
    for at, f in ((3, u2), (9, up)):
        t.write("ground", [*(f.n + r.cross(f.f))], at)
    return t.step()


__all__ = ["SHAPES", "coriolis_matrix", "mass_matrix"]
