"""The derivatives of one state, its freedoms side by side: the recursions of `algorithms.derivatives` by rows.

World axes about the first body that is free, or about the world's origin.

Derivatives of forward dynamics of one state: -M^-1 times the columns that the recursion leaves, eight of them
side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...codegen.graph.program import Program
from ...codegen.llvm.dense.inverse import InverseTail
from ...codegen.lower.loops import Across, RowPairs, RowSweep
from ...codegen.lower.lower import Lowered
from ...mechanics.algorithms.derivatives import InertiaRates, inertia_rates
from ...mechanics.algorithms.inertia_matrix import Factors, apply_inertia
from ...mechanics.algorithms.kinematics import Pose
from ...mechanics.body_table import BODY_KINDS
from ...mechanics.joints import NO_MOTION, Motion
from ...mechanics.spatial import EYE, ZERO, Vec
from ...model.description import Model
from ..formalisms import unsolved_derivatives
from ..tracer import Tracer
from . import MIN_SOLVED_FREEDOMS
from .rolled.dynamics import LOAD
from .rolled.step import (
    Kind,
    StepTracer,
    body_from,
    flat_of,
    force_of,
    mat_of,
    motion_of,
    numbers_of_mat,
    numbers_of_pose,
    pose_of,
)
from .rolled.tables import Tables

QUANTITIES = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives")
# of a row: R p, the speed of its body and the acceleration, those of the parent, S
_POSE, _V, _A, _UP_V, _UP_A, _S = 0, 12, 18, 24, 30, 36
_BODY, _RATES, _FORCE = 42, 52, 64  # composite: m h S, T P, n f
_PAIRS = RowPairs(S=_S, psi1=70, psi2=73, both=79, u1=85, u2=88, up_q=94, up_v=100, h=106)
_DEPTH = 107
_SOLID = 10  # numbers


def plan_across(model: Model, quantity: str) -> Across | None:
    """The plan that computes one state by rows; None where the bodies or their order are not such."""
    if quantity not in QUANTITIES or any(j.mimic for j in model.joints):
        return None
    tables = Tables.of(model)
    c, counts = tables.columns, tables.columns.widths[1]
    free = c.kind == BODY_KINDS.index("free")
    in_order = (c.v == counts.cumsum() - counts).all() and c.loose is None and not (free & (c.parent >= 0)).any()
    if not in_order or c.nv != counts.sum():
        return None
    last = c.v + counts - 1
    ancestors = _ancestors(c.parent.tolist(), c.v.tolist(), last.tolist())
    if not _contiguous(ancestors):
        return None
    solids = [[0.0] * c.nv for _ in range(_SOLID)]
    for body, row in enumerate(last):
        for k in range(_SOLID):
            solids[k][row] = float(c.numbers[body, 12 + k])
    parents = [int(last[p]) if p >= 0 else c.nv for p in c.parent]
    forward = quantity == QUANTITIES[1]
    kinds = tables.kinds
    return Across(
        first=_first(kinds) if forward else (),
        sweeps=_sweeps(kinds, forward),
        places=_PAIRS,
        arguments=("q", "v", "tau" if forward else "a"),
        depth=_DEPTH,
        width=c.numbers.shape[1],
        numbers=tuple(c.numbers.ravel().tolist()),
        solids=tuple(map(tuple, solids)),
        bodies=tuple(zip(tables.number.tolist(), parents, last.tolist(), c.q.tolist(), c.v.tolist())),
        ancestors=ancestors,
        own=tuple(int(v) for v, n in zip(c.v, counts) for _ in range(n)),
        ground={
            **dict(enumerate(numbers_of_pose(Pose(EYE, ZERO)))),
            **dict.fromkeys(range(_V, _A + 3), 0.0),
            **{_A + 3 + k: -x for k, x in enumerate(c.gravity)},
        },
        rotors=tuple(c.numbers[:, 24].repeat(counts).tolist()) if c.geared else (),
    )


def _ancestors(parents: Sequence[int], v: Sequence[int], last: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The ancestors of every row, those of its own body before it among them; the nearest first."""
    found: list[tuple[int, ...]] = []
    for p, first, end in zip(parents, v, last):
        above = (last[p], *found[last[p]]) if p >= 0 else ()
        for row in range(first, end + 1):
            found.append(above)
            above = (row, *above)
    return tuple(found)


def _contiguous(ancestors: Sequence[Sequence[int]]) -> bool:
    """True if the rows are in depth-first order: those of every subtree are contiguous."""
    return all(not x or x[0] in (row - 1, *ancestors[row - 1]) for row, x in enumerate(ancestors))


# -- sweeps ---------------------------------------------------------------------------------------------------


def _first(kinds: Sequence[Kind]) -> tuple[RowSweep, ...]:
    """M and the bias: all is at rest but for the speeds."""
    return (
        RowSweep(tuple(_out(k, False) for k in kinds)),
        RowSweep((_bodies(False),), wide=True),
        RowSweep(tuple(_gather(k, False) for k in kinds), backward=True),
        RowSweep((_efforts(),), wide=True),
    )


def _sweeps(kinds: Sequence[Kind], forward: bool) -> tuple[RowSweep, ...]:
    return (
        RowSweep(tuple(_again(k) if forward else _out(k, True) for k in kinds)),
        RowSweep((_bodies(True),), wide=True),
        RowSweep(tuple(_gather(k, True) for k in kinds), backward=True),
        RowSweep((_columns(),), wide=True),
    )


def _sum(motions: Sequence[Motion], rates: Sequence[object]) -> Motion:
    total = NO_MOTION
    for s, x in zip(motions, rates):
        total = total + s * x
    return total


def _out(kind: Kind, moving: bool) -> Lowered:
    """The place, the columns, the speed and the acceleration of a body."""
    t = StepTracer(kind)
    here = pose_of(t.parent(12, _POSE)).then(t.at())
    here = here._replace(p=ZERO) if kind[0] == "free" else here
    S = [here.motion(c * t.body.factor) for c in t.tree.motion_subspace(t.body)]
    vp, ap = motion_of(t.parent(6, _V)), motion_of(t.parent(6, _A))
    own = _sum(S, t.argument(1))
    a = ap + vp.cross(own) + (_sum(S, t.argument(2)) if moving else NO_MOTION)
    for k, s in enumerate(S):
        t.write("row", [*numbers_of_pose(here), *(x for m in (vp + own, a, vp, ap) for x in flat_of(m))], 0, k)
        t.write("row", flat_of(s), _S, k)
    return t.step(t.quaternions())


def _again(kind: Kind) -> Lowered:
    """The acceleration, now that those of the joints are known."""
    t = StepTracer(kind)
    n = t.body.nv
    S = [motion_of(t.read("row", 6, _S, k)) for k in range(n)]
    vp, ap = motion_of(t.parent(6, _V)), motion_of(t.parent(6, _A))
    a = ap + vp.cross(_sum(S, t.argument(1))) + _sum(S, t.read("more", n))
    for k in range(n):
        t.write("row", flat_of(a), _A, k)
        t.write("row", flat_of(ap), _UP_A, k)
    return t.step()


def _bodies(whole: bool) -> Lowered:
    """A body in world axes, the wrench for its acceleration; whole: 2 B, and the rates of the column."""
    t = StepTracer(LOAD)
    at, v, a = pose_of(t.read("row", 12, _POSE)), *(motion_of(t.read("row", 6, k)) for k in (_V, _A))
    body = body_from(t.read("solid", _SOLID)).moved(at.R, at.p)
    f = apply_inertia(body, a) + v.cross_force(apply_inertia(body, v))
    t.write("row", [body.m, *body.h, *body.S], _BODY)
    t.write("row", flat_of(f), _FORCE)
    if whole:
        S, vp, ap = (motion_of(t.read("row", 6, k)) for k in (_S, _UP_V, _UP_A))
        B, psi1 = inertia_rates(body, v), vp.cross(S)
        t.write("row", [*numbers_of_mat(B.T), *B.P], _RATES)
        t.write("row", [*psi1.w], _PAIRS.psi1)
        t.write("row", flat_of(ap.cross(S) + vp.cross(psi1)), _PAIRS.psi2)
        t.write("row", flat_of(psi1 + v.cross(S)), _PAIRS.both)
    return t.step()


def _gather(kind: Kind, whole: bool) -> Lowered:
    """The composite body on to the parent, and to the other rows of its own."""
    t = StepTracer(kind)
    for at, count in ((_BODY, 22 if whole else 10), (_FORCE, 6)):
        own = t.own(count, at)
        t.write("parent", [x + y for x, y in zip(t.parent(count, at), own)], at)
        for k in range(t.body.nv - 1):
            t.write("row", own, at, k)
    return t.step()


def _efforts() -> Lowered:
    """u2 = I S and the bias S . f."""
    t = StepTracer(LOAD)
    S, f, body = motion_of(t.read("row", 6, _S)), force_of(t.read("row", 6, _FORCE)), t.read("row", 10, _BODY)
    t.write("row", flat_of(apply_inertia(body_from(body), S)), _PAIRS.u2)
    t.write("row", [S.dot(f)], _PAIRS.h)
    return t.step()


def _columns() -> Lowered:
    """u1 = (2 B)^T S, u2 = I S; by q 2 B psi1 + I psi2 + S x* f, by v 2 B S + I (psi1 + dS/dt)."""
    t, p = StepTracer(LOAD), _PAIRS
    S, psi2, both = (motion_of(t.read("row", 6, k)) for k in (p.S, p.psi2, p.both))
    psi1 = Motion(Vec(*t.read("row", 3, p.psi1)), ZERO)  # of which only turning matters to 2 B
    body, x = body_from(t.read("row", 10, _BODY)), t.read("row", 12, _RATES)
    B, f = InertiaRates(mat_of(x), Vec(*x[9:12])), force_of(t.read("row", 6, _FORCE))
    t.write("row", [*B.transposed(S)], p.u1)
    t.write("row", flat_of(apply_inertia(body, S)), p.u2)
    t.write("row", flat_of(B.times(psi1) + apply_inertia(body, psi2) + S.cross_force(f)), p.up_q)
    t.write("row", flat_of(B.times(S) + apply_inertia(body, both)), p.up_v)
    return t.step()


def _inverse_tail(t: Tracer, f: Factors) -> InverseTail:
    """The factors as hidden results, and the solve that reads them."""
    lower = tuple(tuple(sorted(row)) for row in f.L)
    t.output("L", [row[j] for row, at in zip(f.L, lower) for j in at])
    t.output("E", [-x for x in f.inverse])
    return InverseTail(tuple(f.order), lower)


def solved_program(model: Model) -> Program | None:
    """dtau/dq and dtau/dv at the accelerations, -1, and the factors of M; None for small robots."""
    if model.nv < MIN_SOLVED_FREEDOMS:
        return None
    t = Tracer("forward_dynamics_derivatives", model)
    _, dq, dv, f = unsolved_derivatives(t.tree, *t.state("q", "v", "tau"))
    one = [[-float(r == c) for c in range(model.nv)] for r in range(model.nv)]
    for name, x in (("dq", dq), ("dv", dv), ("one", one)):
        t.output(name, x)
    return t.program(named=True, tail=_inverse_tail(t, f))
