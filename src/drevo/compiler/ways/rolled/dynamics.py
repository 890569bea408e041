"""Sweeps of the dynamics: Newton and Euler's, articulated bodies, and the pivots of M."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....codegen.lower.loops import BodyLoop
from ....codegen.lower.lower import Lowered
from ....mechanics.algorithms.articulated_body import Articulated, articulated_of_body, bias_to_parent, joint_of
from ....mechanics.algorithms.inertia_matrix import apply_inertia, inertia_to_parent
from ....mechanics.algorithms.inverse_dynamics import body_force, rate_matrix
from ....mechanics.algorithms.kinematics import step_acceleration, step_velocity
from ....mechanics.joints import NO_FORCE, Force, Motion
from ....mechanics.rotation import joint_coordinate_rates
from ....mechanics.scalar import Scalar, Vector
from ....mechanics.spatial import ZERO, Mat, Sym, Vec
from ....model.quantities import CATALOGUE
from .step import (
    WORLD_ROTATION_NUMBERS,
    Kind,
    StepTracer,
    body_from,
    flat_of,
    force_of,
    mat_of,
    motion_of,
    numbers_of_pose,
    pose_of,
)

LOAD: Kind = ("revolute", 0, True, False, 0, ())  # a load reads nothing of its joint
LINK: Kind = (
    "revolute",
    0,
    False,
    False,
    0,
    (),
)  # a link's frame in its body: R and p of the table, nothing of a joint

# what the loops hand on, in the slot of each body; with external wrenches after the world's rotation
_MOTION = 0
_INVERSE_FORCE, _INVERSE_SLOT, _POSE_SLOT = 9, 15, 15  # w, w', a; n, f; of joint wrenches then R, p
_ARTICULATED_SLOT, _BIAS_SLOT, _GAIN_SLOT = 6, 27, 33  # w, v; A 6, B 9, M 6; n, f; per freedom W 6 and x
_MOVED_SLOT, _PIVOT_SLOT = 21, 31  # articulated inertia, and the body that is moved


# -- inverse dynamics ---------------------------------------------------------------------------------------


def _inverse_out(kind: Kind, quantity: str, loaded: bool) -> Lowered:
    """Motion of the body from its parent's, and the wrench that this takes; for joint wrenches also its pose."""
    t = StepTracer(kind, loaded)
    X = t.at()
    state, rate, rate2 = CATALOGUE[quantity].state, Motion(ZERO, ZERO), Motion(ZERO, ZERO)
    still = "v" not in state
    if not still:
        rate = t.tree.rates(t.argument(1))[0]
    if state[-1] in ("a", "x"):
        rate2 = t.tree.rates(t.argument(len(state) - 1))[0]
    x = t.parent(9, _MOTION)
    before, after = Motion(ZERO if still else Vec(*x[:3]), ZERO), Motion(Vec(*x[3:6]), Vec(*x[6:]))
    w = X.to_child(before.w) + rate.w
    dw, a = step_acceleration(X, before, after, rate, rate2)
    t.turn(X)
    if quantity == "joint_wrenches":
        t.write("own", numbers_of_pose(pose_of(t.parent(12, _POSE_SLOT)).then(X)), _POSE_SLOT)
    t.write("own", [*w, *dw, *a], _MOTION)
    t.write("own", flat_of(body_force(t.body.inertia, w, dw, rate_matrix(w, dw), a)), _INVERSE_FORCE)
    return t.step(t.quaternions())


def _inverse_back(kind: Kind, quantity: str, loaded: bool) -> Lowered:
    """The joint's share of the wrench, and the wrench on to the parent."""
    t = StepTracer(kind, loaded)
    X, f = t.at(), force_of(t.own(6, _INVERSE_FORCE))
    if quantity != "joint_wrenches":
        tau = [t.body.factor * column.dot(f) for column in t.tree.motion_subspace(t.body)]
        state = CATALOGUE[quantity].state
        geared = kind[3] and state[-1] in ("a", "x")
        if kind[5] and quantity in ("inverse_dynamics", "bias"):
            tau = [x - p for x, p in zip(tau, t.passive())]
        t.write("result", t.tree.with_rotors(tau, t.argument(len(state) - 1)) if geared else tau)
    total = force_of(t.parent(6, _INVERSE_FORCE)) + X.force_to_parent(f)
    t.write("parent", flat_of(total), _INVERSE_FORCE)
    return t.step()


def inverse(kinds: Sequence[Kind], quantity: str, loaded: bool) -> tuple[BodyLoop, ...]:
    out = BodyLoop(False, tuple(_inverse_out(k, quantity, loaded) for k in kinds))
    back = BodyLoop(True, tuple(_inverse_back(k, quantity, loaded) for k in kinds))
    loads = _loads(_INVERSE_FORCE, len(CATALOGUE[quantity].state), quantity == "joint_wrenches")
    return (out, loads, back) if loaded else (out, back)


def wrenches(kinds: Sequence[Kind], loaded: bool, frame: str) -> tuple[BodyLoop, ...]:
    """Loops for the wrench of the parent on every link that moves, in its place of the result."""
    t = StepTracer(LINK, loaded)
    f, at = force_of(t.own(6, _INVERSE_FORCE)), pose_of(t.own(12, _POSE_SLOT))
    R = at.R if frame != "local" else t.body.R.T
    force, moment = R @ f.f, R @ (f.n - t.body.p.cross(f.f))
    if frame == "world":
        moment = moment + at.compose(t.body.R, t.body.p).p.cross(force)
    t.write("result", [*force, *moment])
    links = BodyLoop(False, (StepTracer(LOAD).step(), t.step()), "rows")
    return (*inverse(kinds, "joint_wrenches", loaded), links)


def _loads(at: int, argument: int, linked: bool = False) -> BodyLoop:
    """A sweep over the external wrenches: each, moved from the link's origin, is taken from its body's.

    linked: links follow them among the rows, at which nothing is done.
    """
    t = StepTracer(LOAD, True)
    world, wrench = mat_of(t.own(9, -WORLD_ROTATION_NUMBERS)), t.read("arg", 6, number=argument)
    force, moment = world.T @ Vec(*wrench[:3]), world.T @ Vec(*wrench[3:])
    left = force_of(t.own(6, at)) - Force(moment + t.body.p.cross(force), force)
    t.write("own", flat_of(left), at)
    return BodyLoop(False, (t.step(), *([StepTracer(LOAD).step()] if linked else [])), "rows")


# -- forward dynamics ---------------------------------------------------------------------------------------


def articulated_from(x: Vector) -> Articulated:
    return Articulated(Sym(*x[:6]), Mat.of((x[6:9], x[9:12], x[12:15])), Sym(*x[15:21]))


def _forward_out(kind: Kind, loaded: bool, moving_on: bool) -> Lowered:
    """Velocities, rigid inertia and bias force; of a motion also the rates of the coordinates."""
    t = StepTracer(kind, loaded, moving_on)
    X = t.at()
    t.turn(X)
    if moving_on:
        raw = t.argument(0)
        t.write("rates", joint_coordinate_rates(raw, t.unit(raw) if t.body.nq >= 4 else raw, t.argument(1)))
    moving = step_velocity(X, motion_of(t.parent(6, _MOTION)), t.tree.rates(t.argument(1))[0])
    inertia = articulated_of_body(t.body.inertia)
    t.write("own", flat_of(moving), _MOTION)
    t.write("own", flat_of(moving.cross_force(inertia.times(moving))), _BIAS_SLOT)
    t.write("own", numbers_of(inertia), _ARTICULATED_SLOT)
    t.lose(None, NO_FORCE, _GAIN_SLOT, 7)
    return t.step([] if moving_on else t.quaternions())


def _forward_back(kind: Kind, loaded: bool, moving_on: bool, gains: tuple[str, int]) -> Lowered:
    """Articulated inertia and bias force on to the parent; the joint keeps W = U D^-1 and x = D^-1 u."""
    t = StepTracer(kind, loaded, moving_on)
    X, rate, tau = t.at(), t.tree.rates(t.argument(1))[0], t.argument(2)
    tau = [x + p for x, p in zip(tau, t.passive())] if kind[5] else tau
    inertia, p = articulated_from(t.own(21, _ARTICULATED_SLOT)), force_of(t.own(6, _BIAS_SLOT))
    c = motion_of(t.own(6, _MOTION)).cross(rate)
    joint = joint_of(t.tree, 0, inertia, p, tau, c, t.lost(_GAIN_SLOT, 7))
    n = t.body.nv
    rows = [joint.D.solve([1.0 if l == k else 0.0 for l in range(n)]) for k in range(n)]
    columns = [_sum([U * x for U, x in zip(joint.U, row)]) for row in rows]
    t.write(gains[0], [*(x for W in columns for x in flat_of(W)), *joint.D.solve(joint.u)], gains[1])
    passed, force = bias_to_parent(inertia, p, joint, kind[3])
    total = articulated_from(t.parent(21, _ARTICULATED_SLOT)) + passed.lifted(X)
    t.write("parent", numbers_of(total), _ARTICULATED_SLOT)
    t.write("parent", flat_of(force_of(t.parent(6, _BIAS_SLOT)) + X.force_to_parent(force)), _BIAS_SLOT)
    t.lose(X, joint.lost, _GAIN_SLOT, 7)
    return t.step()


def numbers_of(x: Articulated) -> list[Scalar]:
    return [*x.A, *(y for row in x.B for y in row), *x.M]


def _sum(forces: Sequence[Force]) -> Force:
    total = forces[0]
    for f in forces[1:]:
        total = total + f
    return total


def _forward_accelerate(kind: Kind, loaded: bool, moving_on: bool, gains: tuple[str, int]) -> Lowered:
    """a' = X a_p + c; q'' = x - W^T a'; a = a' + S q''. Accelerations take the place of the inertia."""
    t = StepTracer(kind, loaded, moving_on)
    X, rate, n = t.at(), t.tree.rates(t.argument(1))[0], t.body.nv
    here = X.motion_to_child(motion_of(t.parent(6, _ARTICULATED_SLOT))) + motion_of(t.own(6, _MOTION)).cross(rate)
    gain = t.read(gains[0], 7 * n, gains[1])
    a = [gain[6 * n + k] - here.dot(force_of(gain[6 * k : 6 * k + 6])) for k in range(n)]
    for column, x in zip(t.tree.motion_subspace(t.body), a):
        here = here + column * (t.body.factor * x)
    t.write("own", flat_of(here), _ARTICULATED_SLOT)
    t.write("result", a)
    return t.step()


def forward(
    kinds: Sequence[Kind], loaded: bool, moving_on: bool = False, blocked: bool = False
) -> tuple[BodyLoop, ...]:
    """moving_on: the right-hand side of a motion, whose quaternions need not be unit. blocked: slots do not last
    from sweep to sweep, so the gains stand beside."""
    gains = ("gains", 0) if blocked else ("own", _GAIN_SLOT)
    out = BodyLoop(False, tuple(_forward_out(k, loaded, moving_on) for k in kinds))
    back, accelerate = (
        BodyLoop(step is _forward_back, tuple(step(k, loaded, moving_on, gains) for k in kinds))
        for step in (_forward_back, _forward_accelerate)
    )
    return (out, _loads(_BIAS_SLOT, 3), back, accelerate) if loaded else (out, back, accelerate)


# -- passive forces -----------------------------------------------------------------------------------------


def joint_forces(kinds: Sequence[Kind]) -> tuple[BodyLoop, ...]:
    """The loop for the passive forces of each joint, in which no other has a part."""
    return (BodyLoop(False, tuple(map(_joint_forces, kinds))),)


def _joint_forces(kind: Kind) -> Lowered:
    t = StepTracer(kind)
    t.write("result", t.passive() if kind[5] else [0.0] * t.body.nv)
    return t.step(t.quaternions())


# -- whether M is regular -----------------------------------------------------------------------------------


def _pivots_out(kind: Kind) -> Lowered:
    """The rigid inertia, to be articulated, and the body, to be moved."""
    t = StepTracer(kind)
    body = t.body.inertia
    t.write("own", [*numbers_of(articulated_of_body(body)), body.m, *body.h, *body.S])
    t.lose(None, NO_FORCE, _PIVOT_SLOT, 0)
    return t.step()


def _pivots_back(kind: Kind) -> Lowered:
    """Pivots of D = S^T I S, relative to what the joint moves: the body and half of what each child moves.

    Halves, since the whole of a long chain would hide a pivot that is sound.
    """
    t = StepTracer(kind)
    X, n, still = t.at(), t.body.nv, Motion(ZERO, ZERO)
    inertia, moved = articulated_from(t.own(21, 0)), body_from(t.own(10, _MOVED_SLOT))
    lost, weight = t.lost(_PIVOT_SLOT, 0), [t.tree.loose[k].weight if kind[4] else 0.0 for k in range(n)]
    joint = joint_of(t.tree, 0, inertia, NO_FORCE, [0.0] * n, still, lost)
    y = joint.D.solve_transposed([w - s.dot(lost) for s, w in zip(joint.S, weight)])
    t.write("result", [
        p / (s.dot(apply_inertia(moved, s)) + t.rotor + (x - w) * (x - w))
        for p, s, x, w in zip(joint.D.pivots, joint.S, y, weight)
    ])  # fmt: skip
    passed, _ = bias_to_parent(inertia, NO_FORCE, joint, kind[3])
    t.write("parent", numbers_of(articulated_from(t.parent(21, 0)) + passed.lifted(X)), 0)
    more = inertia_to_parent(X, moved)
    t.lose(X, joint.lost, _PIVOT_SLOT, 0)
    half = [0.5 * x for x in (more.m, *more.h, *more.S)]
    t.write("parent", [x + y for x, y in zip(t.parent(10, _MOVED_SLOT), half)], _MOVED_SLOT)
    return t.step()


def pivots(kinds: Sequence[Kind]) -> tuple[BodyLoop, ...]:
    return tuple(BodyLoop(s is _pivots_back, tuple(s(k) for k in kinds)) for s in (_pivots_out, _pivots_back))


class SweepShape(NamedTuple):
    """The layout of what sweeps for a quantity hand on: scalars of a slot, and more of a body's per freedom.

    gravity, pose: where in the ground's slot -g stands and where the world's own pose, or (at 0) that of a link
    in its body; -1: nowhere. tiled, zeroed: as of Rolled. pairs: the rows are the freedoms, which begin in the
    slot of a body where its own numbers end. ground: of its slot, where it is larger than a body's; link: where in
    it a link stands in its body. solves: with room for sweeps over the freedoms.
    """

    slot: int
    per_rate: int = 0
    gravity: int = -1
    pose: int = -1
    tiled: bool = True
    zeroed: bool = False
    pairs: bool = False
    ground: int = 0
    link: int = 0
    solves: bool = False

    @property
    def first(self) -> int:
        """Scalars of the ground's slot."""
        return max(self.slot, self.ground)


DYNAMICS_SHAPES = {
    **dict.fromkeys(("inverse_dynamics", "bias", "gravity"), SweepShape(_INVERSE_SLOT, gravity=_MOTION + 6)),
    "inertia_product": SweepShape(_INVERSE_SLOT),
    "joint_wrenches": SweepShape(_POSE_SLOT + 12, gravity=_MOTION + 6, pose=_POSE_SLOT),
    **dict.fromkeys(("forward_dynamics", "motion"), SweepShape(_GAIN_SLOT, 7, _ARTICULATED_SLOT + 3)),
    "passive": SweepShape(1),
    "pivots": SweepShape(_PIVOT_SLOT, tiled=False),
}
