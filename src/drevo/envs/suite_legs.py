"""The quadruped of dm_control's suite, whose actuators lag, with an inertial unit and forces in its toes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from math import inf, pi

from ..contact.laws.soft.stages import carried_rates
from ..mechanics.algorithms.kinematics import acceleration, placed_bodies
from ..mechanics.scalar import Scalar, cos, maximum, minimum, sin, sqrt, where
from ..mechanics.spatial import Mat, Vec
from .scales import log_of, tolerance
from .suite import SuiteBody, SuiteState, SuiteTask, Xml, norm_of, normals, of_length_one
from .tasks import Chance

TOES = ("toe_front_left", "toe_front_right", "toe_back_right", "toe_back_left")
ARENA = ("wall_px", "wall_py", "wall_nx", "wall_ny", "ball", "target")  # which walking is without
FETCH_REACH, FETCH_GOAL, FETCH_FAR = 0.45, 0.4, 15.0 * 2.0**0.5  # m, of workspace and ball, of the target
SPAWN = 13.5  # m from the middle, of the quadruped and the ball
START_RISE = 0.01  # m, by which a start is raised
START_SLACK = 1e-12  # m, above what touches by rounding alone
START_RAISES = (64, 32, 16, 8, 4, 2, 1)  # how often at most, in halves


def _on_plane(without: Sequence[str], root: Xml) -> None:
    """Takes out names, the terrain and what looks at it; the lag of actuators is that of the task."""
    for parent in list(root.iter()):
        for x in [x for x in parent if x.get("name") in (*without, "terrain") or x.tag == "rangefinder"]:
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


def _upright(s: SuiteState) -> Scalar:
    return tolerance(s.turn("torso").z.z, 1.0, inf, 2.0, "linear", 0.0)


def _walked(speed: float) -> Callable[[SuiteState], Scalar]:
    return lambda s: _upright(s) * tolerance(_trunk_velocity(s).x, speed, inf, speed, "linear", 0.5)


def _fetching(s: SuiteState) -> list[Scalar]:
    R, trunk, at = s.turn("torso").T, s.place("torso"), s.body.at["ball_root"][1].start
    rate, turning = Vec(*s.v[at : at + 3]) - Vec(*s.v[:3]), Vec(*s.v[at + 3 : at + 6])
    ways = s.place("ball") - trunk, rate, turning, Vec(0.0, 0.0, 0.05) - trunk
    return [*_quadruped(s), *(x for way in ways for x in R @ way)]


def _fetched(s: SuiteState) -> Scalar:
    ball = s.place("ball")
    near, home = (
        tolerance(norm_of(way[:2]), 0.0, size, FETCH_FAR, "linear", 0.0)
        for way, size in ((s.place("torso", 0.8, 0.0, -0.2) - ball, FETCH_REACH), (ball, FETCH_GOAL))
    )
    return _upright(s) * near * (0.5 + 0.5 * home)


def _raised(body: SuiteBody, q: list[Scalar]) -> None:
    """Raises step by step until nothing touches the floor."""
    poses, steps = placed_bodies(body.tree, q), 0.0
    on_floor = [x for x in body.slots if x.held and x.held[0].geom.name == "floor" and "ball" not in x.links]
    low = reduce(minimum, (x.touch(poses).dist for x in on_floor if not x.solids)) + START_SLACK
    for more in START_RAISES:
        steps = steps + where(low + START_RISE * (steps + more) < 0.0, float(more), 0.0)
    q[2] = START_RISE * (steps + 1.0) + START_SLACK


def _anyhow(body: SuiteBody, chance: Chance, q: list[Scalar], v: list[Scalar]) -> None:
    q[:7] = [0.0, 0.0, 0.0, *of_length_one(normals(chance, 4))]
    _raised(body, q)


def _anywhere(body: SuiteBody, chance: Chance, q: list[Scalar], v: list[Scalar]) -> None:
    """Upright anywhere, and a ball that flies."""
    half = chance.uniform(0.0, pi)
    x, y, *ball = (chance.uniform(-SPAWN, SPAWN) for _ in range(4))
    q[:7] = [x, y, 0.0, 0.0, 0.0, sin(half), cos(half)]
    _raised(body, q)
    at, rate = (x.start for x in body.at["ball_root"])
    q[at : at + 3] = *ball, 2.0
    v[rate : rate + 2] = normals(chance, 2, 5.0)


_QUADRUPED = SuiteTask(
    "quadruped", 0.02, _quadruped, _walked(0.5), _anyhow, edit=partial(_on_plane, ARENA), lag=0.1
)
LEG_TASKS = {
    "quadruped-fetch": replace(
        _QUADRUPED, observe=_fetching, reward=_fetched, start=_anywhere, edit=partial(_on_plane, ())
    ),
    "quadruped-run": replace(_QUADRUPED, reward=_walked(5.0)),
    "quadruped-walk": _QUADRUPED,
}
