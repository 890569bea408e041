"""Matrices by pairs of freedoms: a walk from every freedom up its way meets all that are coupled with it.

Each leaves its numbers in world axes about its own pole; what goes from pole to pole is a wrench, n + r x f.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....codegen.lower.loops import BodyLoop
from ....codegen.lower.lower import Lowered
from ....mechanics.algorithms.derivatives import InertiaRates, inertia_rates
from ....mechanics.algorithms.inertia_matrix import apply_inertia, inertia_to_parent
from ....mechanics.algorithms.kinematics import step_velocity
from ....mechanics.joints import Motion, Placement
from ....mechanics.scalar import Scalar, Vector
from ....mechanics.spatial import ZERO, Mat, RigidInertia, Vec
from .dynamics import LOAD, SweepShape
from .step import Kind, StepTracer, body_from, flat_of, force_of, mat_of, motion_of, numbers_of_mat

_INERTIA = 9  # after the world's rotation: m, h, S of the composite body in its own axes
_FREEDOMS = 19  # where in the slot of a body its first freedom begins
_LEVER = 12  # of a freedom: S 6, I S 6, and the way from the pole of the freedom above, 3

COMPOSITE_VELOCITY_SLOT, _RATES_SLOT = (
    19,
    25,
)  # after the composite body: w, v in the body's axes; T 9 and P 3 of the operator B
_CORIOLIS_FREEDOMS = (
    37  # where in the slot of a body its first freedom begins, in a Coriolis matrix: S 6, S' 6, u1 3, u2 6,
)
_ARM_SLOT = 27  # up 6, and the lever
_PUSH, _MOVING = (
    37,
    49,
)  # of derivatives: spatial acceleration and the composite's wrench; where the freedoms begin,
CARRIED, _WAY = (
    24,
    51,
)  # S, psi1, psi2, S' 24; what goes up: u1 3, u2, up_q, up_v, g 24; lever 3, whether it leaves

CARRIED_WRENCH = _PUSH + 6
MATRIX_SHAPES = {
    name: SweepShape(first, size, pose=0, zeroed=True, pairs=True)
    for name, first, size in (("mass_matrix", _FREEDOMS, 15), ("coriolis_matrix", _CORIOLIS_FREEDOMS, 30))
}
ROTORS = ("mass_matrix", "inverse_dynamics_derivatives")  # where each freedom keeps that of its joint
MATRIX_SHAPES["inverse_dynamics_derivatives"] = MATRIX_SHAPES["mass_matrix"]._replace(
    slot=_MOVING, per_rate=55, gravity=_PUSH + 3
)


def mass_matrix(kinds: Sequence[Kind]) -> tuple[BodyLoop, ...]:
    """Composite bodies inwards, then all pairs."""
    out, back, geared = tuple(_out(k) for k in kinds), tuple(_back(k) for k in kinds), kinds[0][3]
    pairs = BodyLoop(False, (_begin(geared),), "rows", inner=_pair(geared))
    return BodyLoop(False, out), BodyLoop(True, back), pairs


def _out(kind: Kind, order: int = 0) -> Lowered:
    t = out(kind, order)
    return t.step(t.quaternions())


def out(kind: Kind, order: int, still: bool = False) -> StepTracer:
    """The world's rotation and the body; by order also its speed and B, its acceleration and the wrench for it.

    still: without accelerations of the joints.
    """
    t = StepTracer(kind)
    X, body = t.at(), t.body.inertia
    t.write("own", numbers_of_mat(mat_of(t.parent(9, 0)).mul(X.rotation)))
    t.write("own", [body.m, *body.h, *body.S], _INERTIA)
    if order:
        rate = t.tree.rates(t.argument(1))[0]
        m = step_velocity(X, motion_of(t.parent(6, COMPOSITE_VELOCITY_SLOT)), rate)
        B = inertia_rates(body, m)
        t.write("own", [*flat_of(m), *numbers_of_mat(B.T), *B.P], COMPOSITE_VELOCITY_SLOT)
    if order > 1:
        push(t, X, m, rate, Motion(ZERO, ZERO) if still else t.tree.rates(t.argument(2))[0])
    return t


def push(t: StepTracer, X: Placement, m: Motion, rate: Motion, rate2: Motion) -> None:
    """The spatial acceleration of a body at speed m, and the wrench for it."""
    a = X.motion_to_child(motion_of(t.parent(6, _PUSH))) + rate2 + m.cross(rate)
    f = apply_inertia(t.body.inertia, a) + m.cross_force(apply_inertia(t.body.inertia, m))
    t.write("own", [*flat_of(a), *flat_of(f)], _PUSH)


def _back(kind: Kind) -> Lowered:
    """The composite body on to the parent; S, I S and the lever of every freedom in world axes."""
    t = StepTracer(kind)
    X, R, total = t.at(), mat_of(t.own(9, 0)), body_from(t.own(10, _INERTIA))
    lever = mat_of(t.parent(9, 0)) @ X.p
    for k, column in enumerate(t.tree.motion_subspace(t.body)):
        s = column * t.body.factor
        f = apply_inertia(total, s)
        numbers = [*(R @ s.w), *(R @ s.v), *(R @ f.n), *(R @ f.f), *(ZERO if k else lever)]
        rotor = [t.rotor] if kind[3] else []
        t.write("own", numbers + rotor, _FREEDOMS + (15 + len(rotor)) * k)
    _pass_on(t, X, total)
    return t.step()


def _pass_on(t: StepTracer, X: Placement, total: RigidInertia) -> None:
    """The composite body on to the parent."""
    joined = body_from(t.parent(10, _INERTIA)) + inertia_to_parent(X, total)
    t.write("parent", [joined.m, *joined.h, *joined.S], _INERTIA)


def _begin(geared: bool) -> Lowered:
    """The wrench of a freedom into the ground's slot, and its rotor."""
    t = StepTracer(LOAD)
    t.write("ground", t.own(6, 6))
    if geared:
        t.write("ground", t.own(1, 15), 6)
    return t.step()


def _rotor(t: StepTracer, at: int) -> Scalar:
    """The rotor inertia of the freedom with which the walk begins: only for the first entry, the diagonal's."""
    found = t.read("ground", 1, at)[0]
    t.write("ground", [0.0], at)
    return found


def _pair(geared: bool) -> Lowered:
    """An entry and its mirror; the wrench goes on to the pole above."""
    t = StepTracer(LOAD)
    f, S = force_of(t.read("ground", 6)), motion_of(t.read("upper", 6))
    x = S.dot(f) + (_rotor(t, 6) if geared else 0.0)
    t.write("pair", [x])
    t.write("mirror", [x])
    r = Vec(*t.read("upper", 3, _LEVER))
    t.write("ground", [*(f.n + r.cross(f.f))])
    return t.step()


# -- the Coriolis matrix ------------------------------------------------------------------------------------


def coriolis_matrix(kinds: Sequence[Kind]) -> tuple[BodyLoop, ...]:
    """C_ij = S_i . (B_c S_j + I_c S'_j), c the deeper of the two bodies, as in algorithms.derivatives."""
    out, back = tuple(_out(k, 1) for k in kinds), tuple(_turning_back(k) for k in kinds)
    begin = StepTracer(LOAD)
    begin.write("ground", begin.own(15, 12))
    return (
        BodyLoop(False, out),
        BodyLoop(True, back),
        BodyLoop(False, (begin.step(),), "rows", inner=_turning_pair()),
    )


def _rates(x: Vector) -> InertiaRates:
    return InertiaRates(mat_of(x), Vec(*x[9:12]))


def _turning_back(kind: Kind) -> Lowered:
    """The composite body and its B on to the parent; the numbers of every freedom in world axes."""
    t = StepTracer(kind)
    X, R, total = t.at(), mat_of(t.own(9, 0)), body_from(t.own(10, _INERTIA))
    m, B = motion_of(t.own(6, COMPOSITE_VELOCITY_SLOT)), _rates(t.own(12, _RATES_SLOT))
    lever = mat_of(t.parent(9, 0)) @ X.p
    for k, column in enumerate(t.tree.motion_subspace(t.body)):
        s = column * t.body.factor
        s1, u2 = m.cross(s), apply_inertia(total, s)
        up = B.times(s) * 0.5 + apply_inertia(total, s1)
        vectors = (*s, *s1, B.transposed(s) * 0.5, *u2, *up)
        numbers = [x for vector in vectors for x in R @ vector]
        t.write("own", [*numbers, *(ZERO if k else lever)], _CORIOLIS_FREEDOMS + 30 * k)
    _pass_on(t, X, total)
    _pass_on_rates(t, X, B)
    return t.step()


def _pass_on_rates(t: StepTracer, X: Placement, B: InertiaRates) -> None:
    joined = _rates(t.parent(12, _RATES_SLOT)) + _lifted(X, B)
    t.write("parent", [*numbers_of_mat(joined.T), *joined.P], _RATES_SLOT)


def _lifted(X: Placement, B: InertiaRates) -> InertiaRates:
    """B in the axes of the parent about its pole: T + (P . p) 1 - P p^T."""
    E = X.rotation
    T, P = E.mul(B.T).mul(E.T), E @ B.P
    along = P.dot(X.p)
    moved = Mat(*(Vec(*(along if r == c else 0.0 for c in range(3))) - X.p * P[r] for r in range(3)))
    return InertiaRates(T + moved, P)


def _turning_pair() -> Lowered:
    """The entries (row, other) and (other, row); both wrenches go on to the pole above, a pure moment stays."""
    t = StepTracer(LOAD)
    g, r = t.read("ground", 15), Vec(*t.read("upper", 3, _ARM_SLOT))
    u1, u2, up = Vec(*g[:3]), force_of(g[3:]), force_of(g[9:])
    S, S1 = motion_of(t.read("upper", 6)), motion_of(t.read("upper", 6, 6))
    t.write("pair", [u1.dot(S.w) + S1.dot(u2)])
    t.write("mirror", [S.dot(up)])
    for at, f in ((3, u2), (9, up)):
        t.write("ground", [*(f.n + r.cross(f.f))], at)
    return t.step()


# -- derivatives --------------------------------------------------------------------------------------------


def derivatives(kinds: Sequence[Kind]) -> tuple[BodyLoop, ...]:
    """dtau/dq, dtau/dv and M: Singh, Russell, Wensing 2022, as in algorithms.derivatives."""
    geared = kinds[0][3]
    out, back = tuple(_out(k, 2) for k in kinds), tuple(moving_back(k, width=55 + geared) for k in kinds)
    begin = StepTracer(LOAD)
    begin.write("ground", begin.own(27, CARRIED))
    if geared:
        begin.write("ground", begin.own(1, 55), 27)
    return (
        BodyLoop(False, out),
        BodyLoop(True, back),
        BodyLoop(False, (begin.step(),), "rows", inner=moving_pair(geared=geared)),
    )


def moving_back(kind: Kind, first: int = _MOVING, width: int = 55) -> Lowered:
    """Composite body, B and wrench on to the parent; the numbers of every freedom in world axes.

    first, width: where the freedoms begin, and how much each has.
    """
    t = StepTracer(kind)
    X, R, total = t.at(), mat_of(t.own(9, 0)), body_from(t.own(10, _INERTIA))
    m, B, f = (
        motion_of(t.own(6, COMPOSITE_VELOCITY_SLOT)),
        _rates(t.own(12, _RATES_SLOT)),
        force_of(t.own(6, CARRIED_WRENCH)),
    )
    vp, ap = (X.motion_to_child(motion_of(t.parent(6, at))) for at in (COMPOSITE_VELOCITY_SLOT, _PUSH))
    lever = mat_of(t.parent(9, 0)) @ X.p
    for k, column in enumerate(t.tree.motion_subspace(t.body)):
        s = column * t.body.factor
        psi1, s1 = vp.cross(s), m.cross(s)
        psi2 = ap.cross(s) + vp.cross(psi1)
        up_q = B.times(psi1) + apply_inertia(total, psi2)
        up_v = B.times(s) + apply_inertia(total, psi1 + s1)
        pairs = (s, psi1, psi2, s1, apply_inertia(total, s), up_q, up_v, s.cross_force(f))
        vectors = [x for pair in pairs for x in pair]
        vectors.insert(8, B.transposed(s))
        numbers = [x for vector in vectors for x in R @ vector]
        rotor = [t.rotor] if width == 56 else []
        t.write("own", [*numbers, *(ZERO if k else lever), float(k == 0), *rotor], first + width * k)
    _pass_on(t, X, total)
    _pass_on_rates(t, X, B)
    t.write("parent", flat_of(force_of(t.parent(6, CARRIED_WRENCH)) + X.force_to_parent(f)), CARRIED_WRENCH)
    return t.step()


def moving_pair(forward: bool = False, geared: bool = False) -> Lowered:
    """Six entries; forward: the negative of four, without M.

    g = S x* f is of the bodies further in only: it joins up_q where the walk leaves the body.
    """
    t = StepTracer(LOAD)
    carried = t.read("ground", 27)
    u1, (u2, up_q, up_v, g) = Vec(*carried[:3]), (force_of(carried[k:]) for k in (3, 9, 15, 21))
    S, psi1, psi2, S1 = (motion_of(t.read("upper", 6, k)) for k in (0, 6, 12, 18))
    *way, leaves = t.read("upper", 4, _WAY)
    entries = (
        (u1.dot(psi1.w) + psi2.dot(u2), S.dot(up_q)),
        (u1.dot(S.w) + (psi1 + S1).dot(u2), S.dot(up_v)),
        2 * (S.dot(u2) + (_rotor(t, 27) if geared else 0.0),),
    )
    for k, (x, mirrored) in enumerate(entries[:2] if forward else entries):
        t.write("pair", [-x if forward else x], number=k)
        t.write("mirror", [-mirrored if forward else mirrored], number=k)
    full = up_q + g * leaves
    for at, f in ((3, u2), (9, full), (15, up_v)):
        t.write("ground", [*(f.n + Vec(*way).cross(f.f))], at)
    t.write("ground", [*full.f], 12)
    t.write("ground", flat_of(g * (1.0 - leaves)), 21)
    return t.step()
