"""What observations are made of beside q and v, as one compiled function: places, inertias and rates of bodies.

Inertias and rates are about the robot's centre of mass in the world's axes, as MuJoCo's cinert and cvel are.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from ...codegen.graph.program import Program
from ...codegen.runtime.function import Function
from ...compiler.request import requested
from ...compiler.tracer import Tracer
from ...mechanics.algorithms.kinematics import WORLD, Pose, body_poses, step_velocity
from ...mechanics.joints import STILL, Motion
from ...mechanics.rotation import from_quaternion
from ...mechanics.scalar import Scalar
from ...mechanics.spatial import Mat, Sym, Vec, congruence
from ...mechanics.tree import Tree
from ...model.description import Inertial, Model
from ...simulate.contact.pairs import contact_candidates
from .tasks import Look, Moment, Task, TaskNumbers

LOOKS = ("seen", "before")  # after a step, and after the one before it


def features(robot: Any, links: Sequence[str]) -> Function:
    """f(q, v, forces) -> (places, centre, inertias, rates, wrenches); without forces where nothing can touch.

    forces: (3 places,) N, on the second geom of each of `contact_candidates`, in world axes. places: of the links'
    frames, (links, 3); centre: of mass of the robot, (3,); inertias (links, 10): xx yy zz xy xz yz about the
    centre, m times the way from there, m; rates (links, 6): angular, linear at the centre; wrenches (links, 6): of
    contacts, torque about the centre, force.
    """
    model: Model = robot.model
    asked = ("what is observed", tuple(links), repr(model.geoms), repr(model.pairs), repr(model.exclusions))
    return requested(robot, asked, lambda: _program(model, links))


def link_points(robot: Any, links: Sequence[str], point: Sequence[float]) -> Function:
    """f(q) -> (links, 3): where a point of the frame of each link is."""
    model: Model = robot.model

    def program() -> Program:
        t = Tracer("places", model)
        (q,) = t.state("q")
        poses = dict(enumerate(body_poses(t.tree, q))) | {-1: WORLD}
        at = [_pose(t.tree, poses, link) for link in links]
        t.output("places", [x.p + x.R @ Vec(*point) for x in at], (len(links), 3))
        return t.program()

    return requested(robot, ("places", tuple(links), tuple(point)), program)


def judgement(
    robot: Any, task: Task, asked: Hashable, numbers: TaskNumbers, sizes: Mapping[str, int], ours: bool
) -> Function:
    """f(q, v, before, action, ..) -> (observation, reward, terminated, infos..), of a task of those numbers.

    asked: tells tasks apart. sizes: of a Moment's parts and of what is seen. Behind the action, "seen_PART" and
    "before_PART" of what the task looks at. ours: q and v are Drevo's, not MuJoCo's.
    """

    def program() -> Program:
        t = Tracer("judged")
        q, v, before, action = (t.input(x, sizes[x]) for x in ("q", "v", "before", "action"))

        def look(mark: str) -> Look:
            return Look(lambda part: t.input(f"{mark}_{part}", sizes[part]))

        seen, earlier = map(look, LOOKS)
        if ours:
            q, v = _as_mujoco(robot.model, q, v)
        moment = Moment(q, v, before, action, numbers["seconds"], seen, earlier)
        observed, outcome = task.observe(moment), task.judge(moment, numbers)
        t.output("observation", observed, (len(observed),))
        for name, x in (("reward", outcome.reward), ("terminated", outcome.terminated), *outcome.infos.items()):
            t.output(name, [x], ())
        return t.program()

    return requested(robot, ("judged", asked, tuple(sorted(numbers.items())), ours), program)


def _as_mujoco(model: Model, q: Sequence[Any], v: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Quaternions w x y z, linear rates of free joints along the world's axes."""
    q, v = list(q), list(v)
    for joint, sq, sv in model.slices():
        if joint.turns:
            x, y, z, w = q[sq.stop - 4 : sq.stop]
            q[sq.stop - 4 : sq.stop] = [w, x, y, z]
            if joint.kind == "free":
                at = slice(sv.start, sv.start + 3)
                v[at] = from_quaternion(x, y, z, w) @ Vec(*v[at])
    return q, v


def _program(model: Model, links: Sequence[str]) -> Program:
    t = Tracer("observed", model)
    q, v = t.state("q", "v")
    poses = dict(enumerate(body_poses(t.tree, q))) | {-1: WORLD}
    moving = _moving(t.tree, q, v)
    at = {link.name: _pose(t.tree, poses, link.name) for link in model.links}
    weighs = {link.name: link.inertial for link in model.links if link.inertial and link.inertial.mass}
    centre = _centre(at, weighs)
    t.output("places", [at[link].p for link in links], (len(links), 3))
    t.output("centre", centre)
    t.output("inertias", [_inertia(at[x], weighs.get(x) or Inertial(), centre) for x in links], (len(links), 10))
    t.output("rates", [_rates(t.tree, poses, moving, x, centre) for x in links], (len(links), 6))
    t.output("wrenches", _wrenches(t, links, poses, centre, model), (len(links), 6))
    return t.program()


def _wrenches(t: Tracer, links: Sequence[str], poses: Mapping[int, Pose], centre: Vec, model: Model) -> list[Any]:
    found = {link: (Vec(0.0, 0.0, 0.0), Vec(0.0, 0.0, 0.0)) for link in links}
    places = contact_candidates(model)
    forces = t.input("forces", 3 * len(places)) if places else []
    for k, x in enumerate(places):
        force = Vec(*forces[3 * k : 3 * k + 3])
        torque = (x.touch(poses).point - centre).cross(force)
        for geom, sign in zip(x.geoms, (-1.0, 1.0)):
            if geom.link in found:
                a, b = found[geom.link]
                found[geom.link] = a + torque * sign, b + force * sign
    return [part for pair in found.values() for part in pair]


def _pose(tree: Tree, poses: Mapping[int, Pose], link: str) -> Pose:
    frame = tree.frames[link]
    return poses[frame.body].compose(frame.R, frame.p)


def _moving(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> dict[int, Motion]:
    """By body its motion in its own axes."""
    found = {-1: STILL}
    for i, (b, X, rate) in enumerate(zip(tree.bodies, tree.placements(q), tree.rates(v))):
        found[i] = step_velocity(X, found[b.parent], rate)
    return found


def _centre(at: Mapping[str, Pose], weighs: Mapping[str, Inertial]) -> Vec:
    total = sum(body.mass for body in weighs.values())
    centre = Vec(0.0, 0.0, 0.0)
    for link, body in weighs.items():
        centre = centre + (at[link].p + at[link].R @ Vec(*body.com)) * (body.mass / total)
    return centre


def _inertia(pose: Pose, body: Inertial, centre: Vec) -> list[Scalar]:
    way = pose.p + pose.R @ Vec(*body.com) - centre
    own = congruence(pose.R, Sym.of(Mat.of(body.tensor)))
    x, y, z, m = *way, body.mass
    about = Sym(
        own.xx + m * (y * y + z * z), own.xy - m * (x * y), own.xz - m * (x * z),
        own.yy + m * (x * x + z * z), own.yz - m * (y * z), own.zz + m * (x * x + y * y),
    )  # fmt: skip
    return [about.xx, about.yy, about.zz, about.xy, about.xz, about.yz, *(way * m), m]


def _rates(
    tree: Tree, poses: Mapping[int, Pose], moving: Mapping[int, Motion], link: str, centre: Vec
) -> list[Scalar]:
    body = tree.frames[link].body
    R, p = poses[body]
    w = R @ moving[body].w
    return [*w, *(R @ moving[body].v + w.cross(centre - p))]
