"""What observations are made of beside q and v, as one compiled function: places, inertias and rates of bodies.

Inertias and rates are about the robot's centre of mass in the world's axes, as MuJoCo's cinert and cvel are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...codegen.graph.program import Program
from ...codegen.runtime.function import Function
from ...compiler.request import requested
from ...compiler.tracer import Tracer
from ...contact.pairs import contact_candidates
from ...mechanics.algorithms.kinematics import WORLD, Pose, body_poses, step_velocity
from ...mechanics.joints import STILL, Motion
from ...mechanics.scalar import Scalar
from ...mechanics.spatial import Mat, Sym, Vec, congruence
from ...mechanics.tree import Tree
from ...model.description import Inertial, Model


def features(robot: Any, links: Sequence[str]) -> Function:
    """f(q, v) -> (places, centre, inertias, rates, points).

    places: of the links' frames, (links, 3); centre: of mass of the robot, (3,); inertias (links, 10): xx yy zz xy
    xz yz about the centre, m times the way from there, m; rates (links, 6): angular, linear at the centre; points
    (places, 3): where the robot touches, in the order of `contact_candidates`.
    """
    model: Model = robot.model
    asked = ("what is observed", tuple(links), repr(model.geoms), repr(model.pairs), repr(model.exclusions))
    return requested(robot, asked, lambda: _program(model, links))


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
    points = [x.touch(poses).point for x in contact_candidates(model)] if model.geoms else []
    t.output("points", points, (len(points), 3))
    return t.program()


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
