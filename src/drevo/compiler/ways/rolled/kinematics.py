"""Sweeps of places and speeds: all bodies outwards, sums over them, and one link by the walk up its path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....codegen.lower.loops import BodyLoop
from ....codegen.lower.lower import Lowered
from ....mechanics.algorithms.energy import about_center
from ....mechanics.algorithms.inertia_matrix import apply_inertia
from ....mechanics.algorithms.kinematics import Pose, express, express_acceleration, step_velocity
from ....mechanics.joints import Force, Placement
from ....mechanics.spatial import Mat, Vec
from .dynamics import LINK, LOAD, SweepShape
from .step import Kind, StepTracer, flat_of, motion_of, numbers_of_pose, pose_of

_VELOCITY_SLOT = 12  # after the pose: w, v in the body's axes; then, of a link's walk, w' and the classical a
_ENERGY = 6  # after the speed, in the ground's slot
ORDERS = {"pose": 0, "jacobian": 0, "velocity": 1, "acceleration": 2}  # quantities of one link
_SUM_SLOTS = {
    "potential_energy": 12,
    "center_of_mass": 12,
    "momentum": 18,
}  # where the sums stand in the ground's slot

KINEMATICS_SHAPES = {
    "poses": SweepShape(12, pose=0),
    "kinetic_energy": SweepShape(7),
    "potential_energy": SweepShape(19, gravity=16, pose=0),
    "center_of_mass": SweepShape(16, pose=0),
    "momentum": SweepShape(28, pose=0),
    "pose": SweepShape(12, pose=0),
    "velocity": SweepShape(18, pose=0),
    "acceleration": SweepShape(24, pose=0),
    "jacobian": SweepShape(12, pose=0, tiled=False, zeroed=True),
}


def final_step(t: StepTracer) -> BodyLoop:
    """The loop of one step at the end, with what the ground's slot has then."""
    return BodyLoop(False, (t.step(),), "once", fresh=False)


# -- all bodies ---------------------------------------------------------------------------------------------


def poses(kinds: Sequence[Kind]) -> tuple[BodyLoop, ...]:
    """World from body; then from every link that moves, in its place of the result."""
    t = StepTracer(LINK)
    link = pose_of(t.own(12, 0)).compose(t.body.R, t.body.p)
    t.write("result", [*(x for row, p in zip(*link) for x in (*row, p)), 0.0, 0.0, 0.0, 1.0])
    return BodyLoop(False, tuple(_placed(k).step() for k in kinds)), BodyLoop(False, (t.step(),), "rows")


def _placed(kind: Kind) -> StepTracer:
    t = StepTracer(kind)
    t.write("own", numbers_of_pose(pose_of(t.parent(12, 0)).then(t.at())))
    return t


def kinetic_energy(kinds: Sequence[Kind]) -> tuple[BodyLoop, ...]:
    end = StepTracer(LOAD)
    end.write("out", [0.5 * end.read("ground", 1, _ENERGY)[0]])
    return BodyLoop(False, tuple(_energy(k) for k in kinds)), final_step(end)


def _energy(kind: Kind) -> Lowered:
    t = StepTracer(kind)
    m = step_velocity(t.at(), motion_of(t.parent(6, 0)), t.tree.rates(t.argument(1))[0])
    t.write("own", flat_of(m))
    twice = t.read("ground", 1, _ENERGY)[0] + m.dot(apply_inertia(t.body.inertia, m))
    twice = twice + (2.0 * t.tree.rotor_energy(t.argument(1)) if kind[3] else 0.0)
    t.write("ground", [twice], _ENERGY)
    return t.step(t.quaternions())


def sums(kinds: Sequence[Kind], quantity: str) -> tuple[BodyLoop, ...]:
    """Mass and first moment of all bodies, of a momentum also that, about the world's origin."""
    at, t = _SUM_SLOTS[quantity], StepTracer(LOAD)
    m, *moment = t.read("ground", 4, at)
    if quantity == "potential_energy":
        found = [Vec(*t.read("ground", 3, KINEMATICS_SHAPES[quantity].gravity)).dot(Vec(*moment))]
    elif quantity == "center_of_mass":
        found = [x * (1.0 / m) for x in moment]
    else:
        n, f = Vec(*t.read("ground", 3, at + 4)), Vec(*t.read("ground", 3, at + 7))
        found = [*f, *about_center(Force(n, f), Vec(*moment) * (1.0 / m))]
    t.write("out", found)
    return BodyLoop(False, tuple(_summed(k, quantity) for k in kinds)), final_step(t)


def _summed(kind: Kind, quantity: str) -> Lowered:
    t, at = StepTracer(kind), _SUM_SLOTS[quantity]
    X, body = t.at(), t.body.inertia
    here = pose_of(t.parent(12, 0)).then(X)
    t.write("own", numbers_of_pose(here))
    more = [body.m, *(here.R @ body.h + here.p * body.m)]
    if quantity == "momentum":
        m = step_velocity(X, motion_of(t.parent(6, _VELOCITY_SLOT)), t.tree.rates(t.argument(1))[0])
        t.write("own", flat_of(m), _VELOCITY_SLOT)
        own = apply_inertia(body, m)
        f = here.R @ own.f
        more += [*(here.R @ own.n + here.p.cross(f)), *f]
    t.write("ground", [x + y for x, y in zip(t.read("ground", len(more), at), more)], at)
    return t.step(t.quaternions())


# -- one link -----------------------------------------------------------------------------------------------


def link_kinematics(kinds: Sequence[Kind], quantity: str, options: Mapping[str, str]) -> tuple[BodyLoop, ...]:
    """From the link up its path: where it stands, and how it moves, in the body that was reached."""
    up = BodyLoop(False, tuple(_up(k, quantity) for k in kinds), "path")
    if quantity == "jacobian":
        return up, BodyLoop(False, tuple(_columns(k, options["frame"]) for k in kinds), "path", fresh=False)
    t = StepTracer(LOAD)
    g = t.read("ground", 12 + 6 * ORDERS[quantity])
    at = pose_of(g)
    if quantity == "pose":
        t.write("out", [*(x for row, p in zip(*at) for x in (*row, p)), 0.0, 0.0, 0.0, 1.0])
    elif quantity == "velocity":
        linear, angular = express(motion_of(g[_VELOCITY_SLOT:]), at, options["frame"])
        t.write("out", [*linear, *angular])
    else:
        moving, more = motion_of(g[_VELOCITY_SLOT:]), motion_of(g[_VELOCITY_SLOT + 6 :])
        t.write("out", express_acceleration(at, moving, more, options["frame"], options["kind"]))
    return up, final_step(t)


def _up(kind: Kind, quantity: str) -> Lowered:
    """From the body's frame to its parent's."""
    t, order = StepTracer(kind), ORDERS[quantity]
    X, g = t.at(), t.read("ground", 12 + 6 * order)
    at, moved = pose_of(g), []
    if quantity == "jacobian":
        t.write("own", numbers_of_pose(at))
    if order:
        moved = _carried(t, X, at.p, g, order)
    turned = Mat(*(X.to_parent(column) for column in at.R.T)).T
    t.write("ground", [*numbers_of_pose(Pose(turned, X.p + X.to_parent(at.p))), *moved])
    return t.step(t.quaternions())


def _carried(t: StepTracer, X: Placement, p: Vec, g: Sequence[object], order: int) -> list[object]:
    """w, v (w', a) of a link relative to a body, taken on to its parent: the joint's own motion is added."""
    joint, own = t.tree.rates(t.argument(1))[0], motion_of(g[_VELOCITY_SLOT:])
    out = [*X.to_parent(joint.w + own.w), *X.to_parent(joint.v + joint.w.cross(p) + own.v)]
    if order > 1:
        joint2, own2 = t.tree.rates(t.argument(2))[0], motion_of(g[_VELOCITY_SLOT + 6 :])
        pole = joint2.v + joint.w.cross(joint.v) + joint2.w.cross(p) + joint.w.cross(joint.w.cross(p))
        across = joint.w.cross(own.v)
        out += [
            *X.to_parent(joint2.w + joint.w.cross(own.w) + own2.w),
            *X.to_parent(pole + across + across + own2.v),
        ]
    return out


def _columns(kind: Kind, frame: str) -> Lowered:
    """The columns of a body's joint; `own`: the link in the body, the ground's slot: in the world."""
    t = StepTracer(kind)
    at, world = pose_of(t.own(12, 0)), pose_of(t.read("ground", 12))
    rows: list[list[object]] = [[] for _ in range(6)]
    for s in t.tree.motion_subspace(t.body):
        w, v = at.R.T @ s.w, at.R.T @ (s.v + s.w.cross(at.p))
        if frame != "local":
            w, v = world.R @ w, world.R @ v
        if frame == "world":
            v = v + world.p.cross(w)
        for row, x in zip(rows, (*v, *w)):
            row.append(t.body.factor * x)
    for k, row in enumerate(rows):
        t.write("row", row, number=k)
    return t.step()
