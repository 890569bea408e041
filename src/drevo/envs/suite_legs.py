"""The quadruped of dm_control's suite, whose actuators lag, with an inertial unit and forces in its toes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce
from math import cos as cosine
from math import inf, pi
from operator import add, mul

import numpy as np

from ..io.given import Array
from ..mechanics.algorithms.kinematics import placed_bodies
from ..mechanics.algorithms.sensors import HELD_SENSORS
from ..mechanics.scalar import Scalar, cos, maximum, sin, sqrt, where
from ..mechanics.spatial import Vec
from ..model.description import Model
from .scales import decay, log_of, tolerance
from .suite import SuiteBody, SuiteState, SuiteTask, Xml, norm_of, normals, of_length_one
from .tasks import Chance

TOES = ("toe_front_left", "toe_front_right", "toe_back_right", "toe_back_left")
ARENA = ("wall_px", "wall_py", "wall_nx", "wall_ny", "ball", "target")  # which walking is without
FETCH_REACH, FETCH_GOAL, FETCH_FAR = 0.45, 0.4, 15.0 * 2.0**0.5  # m, of workspace and ball, of the target
SPAWN = 13.5  # m from the middle, of the quadruped and the ball
WORKSPACE = (0.8, 0.0, -0.2)  # m, in the trunk
TERRAIN_SEED, BUMPS = 0, 30  # of the terrain, bumps along its side
BOWL_RADIUS, BOWL_HEIGHT = 30.0, 5.0  # m
START_RISE = 0.01  # m, by which a start is raised


def _without(names: Sequence[str], root: Xml) -> None:
    for parent in list(root.iter()):
        for x in [x for x in parent if x.get("name") in names]:
            parent.remove(x)


def _area_sine(x: Scalar) -> Scalar:
    size = maximum(x, -x)
    value = log_of(size + sqrt(size * size + 1.0))
    return where(x < 0.0, -value, value)


def _trunk_velocity(s: SuiteState) -> Vec:
    return s.turn("torso").T @ s.speed("torso", Vec(0.0, 0.0, 0.0))


def _quadruped(s: SuiteState) -> list[Scalar]:
    wrenches = [_area_sine(x) for kind in HELD_SENSORS for toe in TOES for x in s.reading(f"{kind}_{toe}")]
    inertial = [*s.reading("imu_accel"), *s.spin("torso")]
    joints = [*s.q[7:23], *s.v[6:22], *s.moment.seen.act]
    return [*joints, *_trunk_velocity(s), s.turn("torso").z.z, *inertial, *wrenches]


def _upright(s: SuiteState, least: float = 1.0) -> Scalar:
    return tolerance(s.turn("torso").z.z, least, inf, 1.0 + least, "linear", 0.0)


def _walked(speed: float, s: SuiteState) -> Scalar:
    return _upright(s) * tolerance(_trunk_velocity(s).x, speed, inf, speed, "linear", 0.5)


def _fetching(s: SuiteState) -> list[Scalar]:
    R, trunk, at = s.turn("torso").T, s.place("torso"), s.body.at["ball_root"][1].start
    rate, turning = Vec(*s.v[at : at + 3]) - Vec(*s.v[:3]), Vec(*s.v[at + 3 : at + 6])
    ways = s.place("ball") - trunk, rate, turning, Vec(0.0, 0.0, 0.05) - trunk
    return [*_quadruped(s), *(x for way in ways for x in R @ way)]


def _fetched(s: SuiteState) -> Scalar:
    ball, reach = s.place("ball"), s.place("torso", *WORKSPACE)
    near, home = (
        tolerance(norm_of(way[:2]), 0.0, size, FETCH_FAR, "linear", 0.0)
        for way, size in ((reach - ball, FETCH_REACH), (ball, FETCH_GOAL))
    )
    return _upright(s) * near * (0.5 + 0.5 * home)


def _escaping(s: SuiteState) -> list[Scalar]:
    """Observes as walking, the origin from the trunk, and hyperbolic tangents of what rangefinders read, m."""
    falls = [decay(2.0 * x) for x in s.moment.seen.ranges]
    return [*_quadruped(s), *(s.turn("torso").T @ -s.place("torso")), *((1.0 - x) / (1.0 + x) for x in falls)]


def _escaped(s: SuiteState) -> Scalar:
    far = norm_of(s.place("torso", *WORKSPACE))
    return _upright(s, cosine(pi / 9.0)) * tolerance(far, BOWL_RADIUS, inf, BOWL_RADIUS, "linear", 0.0)


def _bowl(model: Model) -> Model:
    """Gives the height field its terrain: a bowl times smooth bumps, which are drawn once."""
    bumps = np.random.default_rng(TERRAIN_SEED).uniform(0.15, 1.0, (BUMPS, BUMPS))
    field = next(x for x in model.geoms if x.kind == "hfield")
    side, zoom = np.linspace(-1.0, 1.0, field.columns), _zoom(BUMPS, field.columns)
    bowl = 0.5 - 0.5 * np.cos(2.0 * pi * np.clip(np.hypot(side, side[:, None]), 0.04, 1.0))
    heights = BOWL_HEIGHT * (bowl * (zoom @ bumps @ zoom.T)).astype(np.float32).astype(float).ravel()
    points = tuple((x, y, z) for (x, y, _), z in zip(field.points, heights.tolist()))
    return replace(model, geoms=tuple(replace(x, points=points) if x is field else x for x in model.geoms))


def _zoom(n: int, m: int) -> Array:
    """The matrix (m, n) of cubic splines through n values, mirrored at both ends, at m places between them."""
    knots = np.arange(-1, n + 1)

    def taps(x: Array) -> Array:
        far, out = abs(x[:, None] - knots), np.zeros((n, len(x)))
        near = 2.0 / 3.0 - far**2 + 0.5 * far**3
        spline = np.where(far < 1.0, near, np.maximum(2.0 - far, 0.0) ** 3 / 6.0)
        np.add.at(out, n - 1 - abs(n - 1 - abs(knots)), spline.T)
        return out.T

    zoomed: Array = taps(np.linspace(0.0, n - 1.0, m)) @ np.linalg.inv(taps(np.arange(n)))
    return zoomed


def _anyhow(body: SuiteBody, chance: Chance, q: list[Scalar], v: list[Scalar]) -> None:
    q[:7] = [0.0, 0.0, 0.0, *of_length_one(normals(chance, 4))]


def _anywhere(body: SuiteBody, chance: Chance, q: list[Scalar], v: list[Scalar]) -> None:
    """Upright anywhere, and a ball that flies."""
    half = chance.uniform(0.0, pi)
    x, y, *ball = (chance.uniform(-SPAWN, SPAWN) for _ in range(4))
    q[:7] = [x, y, 0.0, 0.0, 0.0, sin(half), cos(half)]
    at, rate = (x.start for x in body.at["ball_root"])
    q[at : at + 3] = *ball, 2.0
    v[rate : rate + 2] = normals(chance, 2, 5.0)


# -- the dog -------------------------------------------------------------------------------------------------

SPINE_ENDS = ("torso", "pelvis")  # what stands at a height
PAWS = ("palm_L", "palm_R", "sole_L", "sole_R")
LEG_ENDS = ("foot_L", "foot_R", "hand_L", "hand_R")  # sensors of force
UPRIGHT_COSINE = cosine(pi / 6.0)
STAND_SHARE = 0.9  # of the height of the file's pose
BALL_START, BALL_FAR = 7.5, 10.0  # m from the middle
BITE, BALL_TARGET = 0.005, 0.1  # m, radii of the mouth and of the target
UPPER_BITE, LOWER_BITE = (0.065, 0.0, -0.07), (0.063, 0.0, 0.005)  # m, in skull and jaw


def _leaning(s: SuiteState) -> list[Scalar]:
    """Heights of the tips of unit axes of skull, torso and pelvis."""
    return [x for link in ("skull", *SPINE_ENDS) for x in s.turn(link).z]


def _dog_speed(s: SuiteState) -> Vec:
    return s.turn("torso").T @ s.drift("torso")


def _paws(s: SuiteState) -> list[Scalar]:
    return [s.touch(x) for x in PAWS]


def _dog(s: SuiteState) -> list[Scalar]:
    n = sum(joint.kind == "revolute" for joint in s.model.joints)
    head = s.turn("skull").T @ s.speed("skull", Vec(0.0, 0.0, 0.0))
    inertial = [*s.reading("accelerometer"), *head, *s.spin("skull")]
    ends = [x for name in LEG_ENDS for x in s.reading(name)]
    joints, heights = [*s.q[7 : 7 + n], *s.v[6 : 6 + n]], [s.place(x).z for x in SPINE_ENDS]
    return [*joints, *heights, *_leaning(s), *_dog_speed(s), *inertial, *ends, *_paws(s), *s.moment.seen.act]


def _dog_stands(s: SuiteState) -> Scalar:
    """Rewards a trunk at its height, a back that is upright, and weight on the paws."""
    poses, frames = placed_bodies(s.tree, s.model.initial), [s.tree.frames[x] for x in SPINE_ENDS]
    heights = [STAND_SHARE * poses[f.body].compose(f.R, f.p).p.z for f in frames]
    root = s.tree.frames["torso"].body
    weight = -s.model.gravity[2] * sum(x.mass for name, x in s.weighs.items() if root in s.carriers(name))
    factors = [tolerance(s.place(x).z, high, inf, high) for x, high in zip(SPINE_ENDS, heights)]
    factors += [tolerance(x, UPRIGHT_COSINE, inf, UPRIGHT_COSINE + 1.0, "linear", 0.0) for x in _leaning(s)[2::3]]
    return reduce(mul, factors) * tolerance(reduce(add, _paws(s)), weight, inf, weight, "linear", 0.9)


def _dog_moves(speed: float, s: SuiteState) -> Scalar:
    forward = tolerance(_dog_speed(s).x, speed, 2.0 * speed, speed, "linear", 0.0)
    return _dog_stands(s) * (0.8 * forward + 0.2)


def _dog_fetching(s: SuiteState) -> list[Scalar]:
    R, head, ball = s.turn("skull").T, s.place("skull"), Vec(0.0, 0.0, 0.0)
    ways = s.place("ball") - head, s.speed("ball", ball) - s.speed("skull", ball), -head
    return [*_dog(s), *(x for way in ways for x in R @ way)]


def _dog_fetches(s: SuiteState) -> Scalar:
    ball = s.place("ball")
    bites = s.place("skull", *UPPER_BITE), s.place("jaw", *LOWER_BITE)
    near, home = 0.5 * reduce(add, (norm_of(ball - x) for x in bites)), norm_of(ball)
    caught = (6.0 * tolerance(near, 0.0, BITE, 2.0, "reciprocal") + 1.0) * (1.0 / 7.0)
    brought = tolerance(home, 0.0, BALL_TARGET, BALL_FAR, "reciprocal")
    return _dog_stands(s) * where(home < 2.0 * BALL_TARGET, 1.0, caught) * (0.5 * brought + 0.5)


def _dog_stirred(body: SuiteBody, chance: Chance, q: list[Scalar], v: list[Scalar]) -> None:
    half = chance.uniform(0.0, pi)
    q[3:7] = 0.0, 0.0, sin(half), cos(half)
    v[0], v[1], v[5] = normals(chance, 3, 2.0)


def _ball_thrown(body: SuiteBody, chance: Chance, q: list[Scalar], v: list[Scalar]) -> None:
    """A ball that flies towards the middle, about."""
    _dog_stirred(body, chance, q, v)
    at, rate = (x.start for x in body.at["ball_root"])
    angle, height, speed = (chance.uniform(0.0, most) for most in (2.0 * pi, 3.0, 5.0))
    way = sin(angle), cos(angle)
    q[at : at + 3] = *(BALL_START * x for x in way), 0.05
    v[rate : rate + 2] = [speed * (x - y) for x, y in zip(normals(chance, 2, 0.05), way)]
    v[rate + 2] = sqrt(-2.0 * body.model.gravity[2] * height)


_QUADRUPED = SuiteTask(
    "quadruped", 0.02, _quadruped, partial(_walked, 0.5), _anyhow, edit=partial(_without, (*ARENA, "terrain")),
    rise=START_RISE,
)  # fmt: skip
_DOG = SuiteTask("dog", 0.015, _dog, _dog_stands, _dog_stirred, edit=partial(_without, ARENA), engaged=1.0)
LEG_TASKS = {
    "dog-fetch": replace(_DOG, observe=_dog_fetching, reward=_dog_fetches, start=_ball_thrown, edit=None),
    "dog-stand": _DOG,
    **{
        f"dog-{name}": replace(_DOG, reward=partial(_dog_moves, speed))
        for name, speed in (("walk", 1.0), ("trot", 3.0), ("run", 9.0))
    },
    "quadruped-escape": replace(
        _QUADRUPED, observe=_escaping, reward=_escaped, edit=partial(_without, ARENA), shape=_bowl
    ),
    "quadruped-fetch": replace(
        _QUADRUPED, observe=_fetching, reward=_fetched, start=_anywhere, edit=partial(_without, ("terrain",))
    ),
    "quadruped-run": replace(_QUADRUPED, reward=partial(_walked, 5.0)),
    "quadruped-walk": _QUADRUPED,
}
