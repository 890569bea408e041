"""The inverse of M and what takes it: derivatives of forward dynamics, operational-space inertia of a link.

Articulated bodies, Featherstone 2008, chapter 7, freedom by freedom: M^-1 = (1 - H)^T D^-1 (1 - H), whose factors
are one sweep inwards and one outwards. A right-hand side costs 50 operations a freedom; many go side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....codegen.lower.loops import BodyLoop, TreeSolve
from ....codegen.lower.lower import Lowered
from ....mechanics.algorithms.articulated_body import articulated_of_body
from ....mechanics.algorithms.task_space import inverted
from ....mechanics.joints import NO_FORCE, Force, Motion
from ....mechanics.scalar import Matrix, Scalar, Vector, sqrt
from ....mechanics.spatial import Mat, Vec
from . import matrices
from .dynamics import LOAD, SweepShape, articulated_from, numbers_of
from .kinematics import final_step
from .matrices import CARRIED_WRENCH, COMPOSITE_VELOCITY_SLOT
from .step import Kind, StepTracer, flat_of, force_of, mat_of, motion_of, numbers_of_mat


class Freedom(NamedTuple):
    """The offsets of the numbers of a freedom: S, in world axes, are the first; gain: W = U / D 6, and D^-1/2."""

    lever: int
    gain: int


_INERTIA, _INVERSE_FREEDOMS, _PLAIN_FREEDOM = (
    9,
    30,
    Freedom(6, 9),
)  # after the world's rotation; where the first freedom begins
_MOVING, _BESIDE = 49, Freedom(51, 55)  # the articulated inertia and the freedoms beside those of derivatives
_LINK_SLOT, _PLACE_SLOT, _WRENCHES, _ADDED = (
    30,
    42,
    45,
    81,
)  # in the ground's slot: the link in its body, its place, six
_GROUND_NUMBERS = 102  # wrenches on their way to the ground, and the sum

_WHOLE_SWEEP = SweepShape(_INVERSE_FREEDOMS, 16, pose=0, tiled=False, zeroed=True, pairs=True, solves=True)
_LINK_SWEEP = _WHOLE_SWEEP._replace(ground=_GROUND_NUMBERS, link=_LINK_SLOT, zeroed=False)
INVERSE_SHAPES = {
    "inverse_mass_matrix": _WHOLE_SWEEP,
    "forward_dynamics_derivatives": matrices.MATRIX_SHAPES["inverse_dynamics_derivatives"]._replace(
        slot=_MOVING + 21, per_rate=62, tiled=False, solves=True
    ),
    **dict.fromkeys(("inverse_operational_inertia", "operational_inertia"), _LINK_SWEEP),
    **dict.fromkeys(("inwards", "outwards"), _WHOLE_SWEEP._replace(zeroed=False)),
}


# -- articulated bodies, freedom by freedom -------------------------------------------------------------------


def _out(kind: Kind) -> Lowered:
    """The world's rotation and the rigid inertia."""
    t = StepTracer(kind)
    t.write("own", numbers_of_mat(mat_of(t.parent(9, 0)).mul(t.at().rotation)))
    t.write("own", numbers_of(articulated_of_body(t.body.inertia)), _INERTIA)
    t.lose(None, NO_FORCE, _INVERSE_FREEDOMS, 16)
    return t.step(t.quaternions())


def _back(kind: Kind) -> Lowered:
    """The articulated inertia on to the parent; the numbers of every freedom in world axes."""
    t = StepTracer(kind)
    _eliminate(t, _INERTIA, _INVERSE_FREEDOMS, 16, _PLAIN_FREEDOM)
    return t.step()


def _eliminate(t: StepTracer, at: int, first: int, width: int, place: Freedom) -> None:
    """U = I S, D = S^T U and I - U D^-1 U^T for the freedoms of a body from the last to the first.

    at: of the inertia; first, width: of the freedoms.
    """
    X, R, inertia = t.at(), mat_of(t.own(9, 0)), articulated_from(t.own(21, at))
    lever, carried, lost = mat_of(t.parent(9, 0)) @ X.p, inertia, t.lost(first, width)
    for k, column in reversed(list(enumerate(t.tree.motion_subspace(t.body)))):
        S = column * t.body.factor
        U = inertia.times(S)
        pivot = S.dot(U) + t.rotor
        W, y = U * (1.0 / pivot), -S.dot(lost)
        t.tree.guard(pivot, (carried.M if S.w.zero else carried.A).trace + y * y, k)
        if t.kind[4]:
            lost = lost + W * (y + t.tree.loose[k].weight)
        inertia = inertia.less(U, W)
        inertia = inertia if t.kind[3] else inertia.without(S)
        here = first + width * k
        t.write("own", [*(R @ S.w), *(R @ S.v)], here)
        t.write("own", [0.0, 0.0, 0.0] if k else [*lever], here + place.lever)
        t.write("own", [*(R @ W.n), *(R @ W.f), 1.0 / sqrt(pivot)], here + place.gain)
    total = articulated_from(t.parent(21, at)) + inertia.lifted(X)
    t.write("parent", numbers_of(total), at)
    t.lose(X, lost, first, width)


def _factored(kinds: Sequence[Kind]) -> tuple[BodyLoop, ...]:
    return BodyLoop(False, tuple(map(_out, kinds))), BodyLoop(True, tuple(map(_back, kinds)))


def _shared(t: StepTracer, place: Freedom) -> tuple[Motion, Vec, Force, Scalar]:
    """S, the lever, W and D^-1/2."""
    S, lever, gain = (t.read("shared", n, at) for n, at in ((6, 0), (3, place.lever), (7, place.gain)))
    return motion_of(S), Vec(*lever), force_of(gain), gain[6]


def _inwards(place: Freedom) -> Lowered:
    """e = b - S.p, y = D^-1/2 e; p + W e goes on to the pole above."""
    t = StepTracer(LOAD)
    S, r, W, root = _shared(t, place)
    p, e = force_of(t.read("here", 6)), t.read("entry", 1)[0]
    e = e - S.dot(p)
    t.write("entry", [e * root])
    p = p + W * e
    total = force_of(t.read("above", 6)) + Force(p.n + r.cross(p.f), p.f)
    t.write("above", flat_of(total))
    return t.step()


def _outwards(place: Freedom) -> Lowered:
    """x = D^-1/2 y - W.a, a of the pole above moved to this one; then a + S x is this one's."""
    t = StepTracer(LOAD)
    S, r, W, root = _shared(t, place)
    a = motion_of(t.read("above", 6))
    a = Motion(a.w, a.v + a.w.cross(r))
    x = t.read("entry", 1)[0] * root - a.dot(W)
    t.write("entry", [x])
    t.write("here", flat_of(a + S * x))
    return t.step()


def inverse_mass_matrix(kinds: Sequence[Kind]) -> tuple[BodyLoop | TreeSolve, ...]:
    return *_factored(kinds), *_unit(0, _PLAIN_FREEDOM)


def _unit(number: int, place: Freedom) -> tuple[BodyLoop | TreeSolve, ...]:
    t = StepTracer(LOAD)
    t.write("pair", [1.0], number=number)
    solve = TreeSolve(f"out{number}", _inwards(place), _outwards(place), matrix=True, unit=True)
    return BodyLoop(False, (t.step(),), "rows"), solve


def factor(kinds: Sequence[Kind], quantity: str) -> tuple[BodyLoop | TreeSolve, ...]:
    """One of two factors of M^-1 = F^T F: F x inwards, F^T x outwards."""
    t = StepTracer(LOAD)
    t.write("result", t.read("arg", 1, number=1))
    sweep = {"inwards": (_inwards(_PLAIN_FREEDOM), None), "outwards": (None, _outwards(_PLAIN_FREEDOM))}[quantity]
    return *_factored(kinds), BodyLoop(False, (t.step(),), "rows"), TreeSolve("out0", *sweep)


# -- derivatives of forward dynamics ------------------------------------------------------------------------


def forward_derivatives(kinds: Sequence[Kind]) -> tuple[BodyLoop | TreeSolve, ...]:
    """-M^-1 dtau/dq, -M^-1 dtau/dv and M^-1, of inverse dynamics at a = M^-1 (tau - h)."""
    still, efforts, moving, back = (
        tuple(step(k) for k in kinds) for step in (_still_out, _effort_back, _moving_out, _moving_back)
    )
    ends = _inwards(_BESIDE), _outwards(_BESIDE)
    begin = StepTracer(LOAD)
    begin.write("ground", begin.own(27, matrices.CARRIED))
    pairs = BodyLoop(False, (begin.step(),), "rows", inner=matrices.moving_pair(forward=True))
    return (
        BodyLoop(False, still), BodyLoop(True, efforts), TreeSolve("more", *ends),
        BodyLoop(False, moving), BodyLoop(True, back), pairs,
        TreeSolve("out0", *ends, matrix=True), TreeSolve("out1", *ends, matrix=True), *_unit(2, _BESIDE),
    )  # fmt: skip


def _still_out(kind: Kind) -> Lowered:
    """As of inverse dynamics at a = 0, with the rigid inertia that is to be articulated."""
    t = matrices.out(kind, 2, still=True)
    t.write("own", numbers_of(articulated_of_body(t.body.inertia)), _MOVING)
    t.lose(None, NO_FORCE, _MOVING + 21, 62)
    return t.step(t.quaternions())


def _effort_back(kind: Kind) -> Lowered:
    """tau - h, and the articulated inertia."""
    t = StepTracer(kind)
    f, tau = force_of(t.own(6, CARRIED_WRENCH)), t.argument(2)
    h = [t.body.factor * column.dot(f) for column in t.tree.motion_subspace(t.body)]
    t.write("more", [x - y for x, y in zip(tau, h)])
    t.write("parent", flat_of(force_of(t.parent(6, CARRIED_WRENCH)) + t.at().force_to_parent(f)), CARRIED_WRENCH)
    _eliminate(t, _MOVING, _MOVING + 21, 62, _BESIDE)
    return t.step()


def _moving_out(kind: Kind) -> Lowered:
    """The acceleration of the body and the wrench for it, at the a that was found."""
    t = StepTracer(kind)
    rates = t.tree.rates(t.argument(1))[0], t.tree.rates(t.read("more", t.body.nv))[0]
    matrices.push(t, t.at(), motion_of(t.own(6, COMPOSITE_VELOCITY_SLOT)), *rates)
    return t.step()


def _moving_back(kind: Kind) -> Lowered:
    return matrices.moving_back(kind, _MOVING + 21, 62)


# -- what resists a force on a link -------------------------------------------------------------------------


def operational(kinds: Sequence[Kind], quantity: str, frame: str) -> tuple[BodyLoop, ...]:
    """J M^-1 J^T = sum of y D^-1 y^T on the way up, y = S^T P of six unit wrenches P on the link."""
    end = StepTracer(LOAD)
    A = _symmetric(end.read("ground", 21, _ADDED))
    if frame == "world":
        A = _about_origin(A, Vec(*end.read("ground", 3, _PLACE_SLOT)))
    found = inverted(A, "") if quantity == "operational_inertia" else A
    end.write("out", [x for row in found for x in row])
    begin, way = BodyLoop(False, (_begin(frame),), "first"), BodyLoop(False, (_way(),), "way", fresh=False)
    return *_factored(kinds), begin, way, final_step(end)


def _begin(frame: str) -> Lowered:
    """Unit wrenches at the link's origin, forces first, about the pole of its body."""
    t = StepTracer(LOAD)
    R, link = mat_of(t.own(9, 0)), t.read("ground", 12, _LINK_SLOT)
    r = R @ Vec(*link[9:12])
    axes = (
        R.mul(mat_of(link)).T if frame == "local" else Mat.of(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
    )
    zero = Vec(0.0, 0.0, 0.0)
    wrenches = [Force(r.cross(e), e) for e in axes] + [Force(e, zero) for e in axes]
    t.write("ground", [*r, *(x for f in wrenches for x in flat_of(f))], _PLACE_SLOT)
    return t.step()


def _way() -> Lowered:
    t = StepTracer(LOAD)
    S, r, gain = motion_of(t.own(6, 0)), Vec(*t.own(3, _PLAIN_FREEDOM.lever)), t.own(7, _PLAIN_FREEDOM.gain)
    place, added = Vec(*t.read("ground", 3, _PLACE_SLOT)), t.read("ground", 21, _ADDED)
    wrenches = [force_of(t.read("ground", 6, _WRENCHES + 6 * k)) for k in range(6)]
    y = [S.dot(P) for P in wrenches]
    z = [x * gain[6] for x in y]
    products = [z[i] * z[j] for i in range(6) for j in range(i + 1)]
    t.write("ground", [a + b for a, b in zip(added, products)], _ADDED)
    left = [P - force_of(gain) * x for P, x in zip(wrenches, y)]
    moved = [x for P in left for x in (*(P.n + r.cross(P.f)), *P.f)]
    t.write("ground", [*(place + r), *moved], _PLACE_SLOT)
    return t.step()


def _symmetric(lower: Vector) -> Matrix:
    return [[lower[max(i, j) * (max(i, j) + 1) // 2 + min(i, j)] for j in range(6)] for i in range(6)]


def _about_origin(A: Matrix, p: Vec) -> Matrix:
    """T A T^T, T v = (v + p x w, w): from the link's origin at p to the world's."""

    def moved(column: Vector) -> list[Scalar]:
        v, w = Vec(*column[:3]), Vec(*column[3:])
        return [*(v + p.cross(w)), *w]

    half = [moved(column) for column in zip(*A)]  # by columns of T A, which are rows of A T^T
    full = [moved(row) for row in zip(*half)]
    return [[full[max(i, j)][min(i, j)] for j in range(6)] for i in range(6)]
