"""The quadruped of dm_control's suite, whose actuators lag, with an inertial unit and forces in its toes."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import inf

from ..contact.laws.soft.stages import carried_rates
from ..mechanics.algorithms.kinematics import acceleration, placed_bodies
from ..mechanics.scalar import Scalar, maximum, minimum, sqrt, where
from ..mechanics.spatial import Mat, Vec
from .scales import log_of, tolerance
from .suite import SuiteBody, SuiteState, SuiteTask, Xml, normals, of_length_one
from .tasks import Chance

TOES = ("toe_front_left", "toe_front_right", "toe_back_right", "toe_back_left")
ARENA = ("wall_px", "wall_py", "wall_nx", "wall_ny", "terrain", "ball", "target")  # which walking is without
START_RISE, START_RAISES = (
    0.01,
    (64, 32, 16, 8, 4, 2, 1),
)  # m, by which a start is raised, and how often at most, in halves


def _open_plane(root: Xml) -> None:
    """Takes out what else may stand there, and what sees it; the lag of actuators is that of the task."""
    for parent in list(root.iter()):
        for x in [x for x in parent if x.get("name") in ARENA or x.tag == "rangefinder"]:
            parent.remove(x)
    for general in root.iter("general"):
        for name in ("dyntype", "dynprm"):
            general.attrib.pop(name, None)


def _moving(s: SuiteState, link: str) -> tuple[Mat, Vec, Vec]:
    """At the last evaluation, in the axes of a link: from them to the world, what an accelerometer at its origin
    reads, and its angular acceleration."""
    seen = s.moment.seen
    q, v = seen.positions, seen.velocities
    a = [x - y for x, y in zip(seen.accelerations, carried_rates(s.tree, v))]
    frame = s.tree.frames[link]
    R = placed_bodies(s.tree, q)[frame.body].R.mul(frame.R)
    parts = acceleration(s.tree, q, v, a, link, "local", "classical")
    return R, Vec(*parts[:3]) - R.T @ Vec(*s.model.gravity), Vec(*parts[3:])


def _toe(s: SuiteState, link: str) -> tuple[Vec, Vec]:
    """Force and torque with which a leg holds its toe, a ball about its origin, in the axes of the toe."""
    R, linear, angular = _moving(s, link)
    ball, frame = s.weighs[link], s.tree.frames[link]
    centre = placed_bodies(s.tree, s.moment.seen.positions)[frame.body].compose(frame.R, frame.p).p
    force, torque = linear * ball.mass, Mat.of(ball.tensor) @ angular
    for at, _, push in s.contacts(link):
        force, torque = force - R.T @ push, torque - R.T @ (at - centre).cross(push)
    return force, torque


def _area_sine(x: Scalar) -> Scalar:
    size = maximum(x, -x)
    value = log_of(size + sqrt(size * size + 1.0))
    return where(x < 0.0, -value, value)


def _trunk_velocity(s: SuiteState) -> Vec:
    return s.turn("torso").T @ s.speed("torso", Vec(0.0, 0.0, 0.0))


def _quadruped(s: SuiteState) -> list[Scalar]:
    held = [_toe(s, toe) for toe in TOES]
    wrenches = [_area_sine(x) for k in (0, 1) for pair in held for x in pair[k]]
    inertial = [*_moving(s, "torso")[1], *s.spin("torso")]
    joints = [*s.q[7:23], *s.v[6:22], *s.moment.seen.act]
    return [*joints, *_trunk_velocity(s), s.turn("torso").z.z, *inertial, *wrenches]


def _walked(speed: float) -> Callable[[SuiteState], Scalar]:
    def reward(s: SuiteState) -> Scalar:
        upright = tolerance(s.turn("torso").z.z, 1.0, inf, 2.0, "linear", 0.0)
        return upright * tolerance(_trunk_velocity(s).x, speed, inf, speed, "linear", 0.5)

    return reward


def _raised(body: SuiteBody, chance: Chance, q: list[Scalar], v: list[Scalar]) -> None:
    """Turned anyhow, and raised step by step until nothing touches the ground."""
    q[:7] = [0.0, 0.0, 0.0, *of_length_one(normals(chance, 4))]
    poses, steps = placed_bodies(body.tree, q), 0.0
    low = reduce(minimum, (x.touch(poses).dist for x in body.slots if x.links[0] == "world" and not x.solids))
    for more in START_RAISES:
        steps = steps + where(low + START_RISE * (steps + more) < 0.0, float(more), 0.0)
    q[2] = START_RISE * (steps + 1.0)


LEG_TASKS = {
    f"quadruped-{name}": SuiteTask(
        "quadruped", 0.02, _quadruped, _walked(speed), _raised, edit=_open_plane, lag=0.1
    )
    for name, speed in (("walk", 0.5), ("run", 5.0))
}
