"""Matrices by pairs of freedoms: a walk from every freedom up its way meets all that are coupled with it.

Each leaves its numbers in world axes about its own pole; what goes from pole to pole is a wrench, n + r x f.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..algorithms.inertia_matrix import lifted, wrench_of
from ..emit.llvm_rolled import Loop, Step
from ..mechanics.joints import Force
from ..mechanics.spatial import ZERO, Body, Sym, Vec
from .dynamics import LOAD, Shape
from .step import Kind, Tracer, flat_of, force_of, mat_of, motion_of, numbers_of_mat

_INERTIA = 9  # after the world's rotation: m, h, S of the composite body in its own axes
FREEDOMS = 19  # where in the slot of a body its first freedom begins
_LEVER = 12  # of a freedom: S 6, I S 6, and the way from the pole of the freedom above, 3

SHAPES = {"mass_matrix": Shape(FREEDOMS, 15, pose=0, tiled=False, zeroed=True)}


def mass_matrix(kinds: Sequence[Kind]) -> tuple[Loop, ...]:
    """Composite bodies inwards, then all pairs."""
    out, back = tuple(_out(k) for k in kinds), tuple(_back(k) for k in kinds)
    return Loop(False, out), Loop(True, back), Loop(False, (_begin(),), "rows", inner=_pair())


def _out(kind: Kind) -> Step:
    t = Tracer(kind)
    t.write("own", numbers_of_mat(mat_of(t.parent(9, 0)).mul(t.at().rotation)))
    body = t.body.inertia
    t.write("own", [body.m, *body.h, *body.S], _INERTIA)
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
        t.write("own", numbers, FREEDOMS + 15 * k)
    more, up = _body(t.parent(10, _INERTIA)), lifted(X, total)
    joined = more + up
    t.write("parent", [joined.m, *joined.h, *joined.S], _INERTIA)
    return t.step()


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
    t.write("ground", flat_of(Force(f.n + r.cross(f.f), f.f)))
    return t.step()


__all__ = ["FREEDOMS", "SHAPES", "mass_matrix"]
