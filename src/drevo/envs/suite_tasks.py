"""The table of dm_control's suite: what its tasks observe and reward, and how their episodes start.

Tassa et al. 2020, "dm_control: software and tasks for continuous control".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial, reduce
from math import acos, inf, pi, radians
from math import cos as cosine
from xml.etree import ElementTree

from ..mechanics.scalar import Scalar, Vector, cos, minimum, sin, where
from ..mechanics.spatial import Vec
from .scales import log_of, tolerance
from .suite import SuiteBody, SuiteStart, SuiteState, SuiteTask, Xml, hang, norm_of, normals, of_length_one
from .suite_hands import HAND_TASKS
from .suite_legs import LEG_TASKS
from .tasks import Chance


def _state(s: SuiteState) -> list[Scalar]:
    return [*s.q, *s.v]


def _scattered(body: SuiteBody, chance: Chance, q: list[Scalar], v: list[Scalar]) -> None:
    body.scatter(chance, q)


def _scattered_apart(body: SuiteBody, chance: Chance, q: list[Scalar], v: list[Scalar]) -> Scalar:
    body.scatter(chance, q)
    return body.apart(q)


def _mean(x: Sequence[Scalar]) -> Scalar:
    return sum(x[1:], x[0]) * (1.0 / len(x))


def _calm(s: SuiteState) -> Scalar:
    """1 without control, 0.8 where all of it is at its ends."""
    return 0.8 + 0.2 * _mean([tolerance(x, 0.0, 0.0, 1.0, "quadratic", 0.0) for x in s.control])


def _felt(s: SuiteState, sensors: Sequence[str]) -> list[Scalar]:
    return [log_of(1.0 + s.touch(x)) for x in sensors]


def _columns(s: SuiteState, links: Sequence[str], parts: str) -> list[Scalar]:
    """Entries of rotations, body by body, such as "zz" and "xz": row, then column."""
    return [getattr(getattr(s.turn(link), part[0]), part[1]) for link in links for part in parts.split()]


# -- acrobot, pendulum, cart and poles -----------------------------------------------------------------------


def _any_angle(body: SuiteBody, chance: Chance, q: list[Scalar], v: list[Scalar]) -> None:
    q[:] = [chance.uniform(-pi, pi) for _ in q]


def _acrobot(s: SuiteState) -> list[Scalar]:
    arms = "upper_arm", "lower_arm"
    return [*_columns(s, arms, "xz"), *_columns(s, arms, "zz"), *s.v]


def _raised(margin: float, s: SuiteState) -> Scalar:
    """Rewards an acrobot whose tip is near the target above."""
    return tolerance(norm_of(s.place("lower_arm", 0.0, 0.0, 1.0) - Vec(0.0, 0.0, 4.0)), 0.0, 0.2, margin)


def _poles(s: SuiteState) -> list[str]:
    return [link.name for link in s.model.links if link.name.startswith("pole_")]


def _on_cart(s: SuiteState) -> list[Scalar]:
    return [s.q[0], *_columns(s, _poles(s), "zz xz"), *s.v]


def _balanced(s: SuiteState) -> Scalar:
    upright = _mean([0.5 * (x + 1.0) for x in _columns(s, _poles(s), "zz")])
    centred = 0.5 * (1.0 + tolerance(s.q[0], 0.0, 0.0, 2.0))
    slow = reduce(minimum, [tolerance(x, 0.0, 0.0, 5.0) for x in s.v[1:]])
    return upright * _calm(s) * (0.5 * (1.0 + slow)) * centred


def _firmly_balanced(s: SuiteState) -> Scalar:
    upright = [tolerance(x, 0.995, 1.0) for x in _columns(s, _poles(s), "zz")]
    return reduce(lambda x, y: x * y, upright, tolerance(s.q[0], -0.25, 0.25))


def _upright(body: SuiteBody, chance: Chance, q: list[Scalar], v: list[Scalar]) -> None:
    q[:] = [chance.uniform(-0.1, 0.1), *(chance.uniform(-0.034, 0.034) for _ in q[1:])]
    v[:] = normals(chance, len(v), 0.01)


def _hanging(body: SuiteBody, chance: Chance, q: list[Scalar], v: list[Scalar]) -> None:
    x, angle = normals(chance, 2, 0.01)
    q[:] = [x, pi + angle, *normals(chance, len(q) - 2, 0.1)]
    v[:] = normals(chance, len(v), 0.01)


@cache
def _with_poles(count: int) -> Callable[[Xml], None]:
    def edit(root: Xml) -> None:
        pole = root.find("worldbody/body/body")
        for k in range(2, count + 1):
            pole = hang(pole, f"pole_{k}", {"name": f"hinge_{k}"}, [{}], pos="0 0 1", childclass="pole")

    return edit


# -- a ball in a cup, a point, a planar arm, a finger --------------------------------------------------------


def _above_cup(body: SuiteBody, chance: Chance, q: list[Scalar], v: list[Scalar]) -> Scalar:
    q[2:] = chance.uniform(-0.2, 0.2), chance.uniform(0.2, 0.5)
    return body.apart(q)


def _caught(s: SuiteState) -> Scalar:
    way = s.place("cup", 0.0, 0.0, -0.05) - s.place("ball")
    inside: Scalar = 1.0
    for x in (way.x, way.z, -way.x, -way.z):
        inside = where(x < 0.025, inside, 0.0)
    return inside


def _at_centre(s: SuiteState) -> Scalar:
    return tolerance(norm_of(s.place("pointmass") - Vec(0.0, 0.0, 0.01)), 0.0, 0.015, 0.015) * _calm(s)


def _pulled_askew(action: Vector, q: Vector, v: Vector, drawn: Vector) -> list[Scalar]:
    """Two controls that pull along directions which are drawn, at least acos 0.9 apart: 0.1 N each."""
    first = 2.0 * pi * drawn[0]
    second = first + where(drawn[1] < 0.5, drawn[2], -drawn[2])
    a, b = (0.1 * minimum(1.0, -minimum(1.0, -x)) for x in action)
    return [a * f(first) + b * f(second) for f in (cos, sin)]


def _target(s: SuiteState) -> Vec:
    angle, radius = s.drawn
    return Vec(radius * sin(angle), radius * cos(angle), 0.01)


def _reaching(s: SuiteState) -> list[Scalar]:
    return [*s.q, *(_target(s) - s.place("finger"))[:2], *s.v]


def _reached(size: float, s: SuiteState) -> Scalar:
    return tolerance(norm_of((_target(s) - s.place("finger"))[:2]), 0.0, size + 0.01)


SPINNER_TIP = 0.13  # m, from the hinge


def _fingered(s: SuiteState) -> list[Scalar]:
    tip, hinge = s.place("spinner", 0.0, 0.0, SPINNER_TIP), s.place("spinner")
    felt = _felt(s, ("touchtop", "touchbottom"))
    return [*s.q[:2], tip.x - hinge.x, tip.z - hinge.z, *s.v, *felt]


def _left(s: SuiteState, size: float) -> Scalar:
    way = _aimed(s) - s.place("spinner", 0.0, 0.0, SPINNER_TIP)
    return norm_of(way) - size


def _aimed(s: SuiteState) -> Vec:
    (angle,) = s.drawn
    return s.place("spinner") + Vec(SPINNER_TIP * sin(angle), 0.0, SPINNER_TIP * cos(angle))


def _turning(size: float, s: SuiteState) -> list[Scalar]:
    way = _aimed(s) - s.place("spinner")
    return [*_fingered(s), way.x, way.z, _left(s, size)]


def _turned(size: float, s: SuiteState) -> Scalar:
    return where(_left(s, size) > 0.0, 0.0, 1.0)


def _spun(s: SuiteState) -> Scalar:
    return where(s.v[2] > -15.0, 0.0, 1.0)


def _loose_hinge(root: Xml) -> None:
    next(x for x in root.iter("joint") if x.get("name") == "hinge").set("damping", "0.03")


# -- cheetah, hopper, walker, humanoid -----------------------------------------------------------------------


def _fast(x: Scalar, speed: float, margin: float, least: float) -> Scalar:
    return tolerance(x, speed, inf, margin, "linear", least)


def _limits_alone(body: SuiteBody, chance: Chance, q: list[Scalar], v: list[Scalar]) -> None:
    first = list(q[:3])
    body.scatter(chance, q)
    q[:3] = first


def _hopper(s: SuiteState) -> list[Scalar]:
    return [*s.q[1:], *s.v, *_felt(s, ("touch_toe", "touch_heel"))]


def _hopping(fast: bool, s: SuiteState) -> Scalar:
    torso, foot = (s.place(link, *s.weighs[link].com) for link in ("torso", "foot"))
    stands = tolerance(torso.z - foot.z, 0.6, 2.0)
    return stands * (_fast(s.drift("torso").x, 2.0, 1.0, 0.5) if fast else _calm(s))


def _walker(s: SuiteState) -> list[Scalar]:
    links = [link.name for link in s.model.links[1:] if link.inertial and link.inertial.mass]
    return [*_columns(s, links, "xx xz"), s.place("torso").z, *s.v]


def _walking(speed: float, s: SuiteState) -> Scalar:
    standing = tolerance(s.place("torso").z, 1.2, inf, 0.6)
    stands = (3.0 * standing + 0.5 * (1.0 + s.turn("torso").z.z)) * 0.25
    moves = 5.0 * _fast(s.drift("torso").x, speed, speed / 2.0, 0.5) + 1.0 if speed else 6.0
    return stands * moves * (1.0 / 6.0)


def _humanoid(trunk: str, limbs: Sequence[str], s: SuiteState) -> list[Scalar]:
    R, p = s.turn(trunk), s.place(trunk)
    ends = [x for limb in limbs for x in R.T @ (s.place(limb) - p)]
    return [*s.q[7:], s.place("head").z, *ends, *R.z, *s.drift(trunk), *s.v]


def _humanoid_stands(trunk: str, axis: str, speed: float, s: SuiteState) -> Scalar:
    upright = tolerance(getattr(s.turn(trunk).z, axis), 0.9, inf, 1.9, "linear", 0.0)
    stands = tolerance(s.place("head").z, 1.4, inf, 0.35) * upright * _calm(s)
    along = s.drift(trunk)[:2]
    if not speed:
        return stands * _mean([tolerance(x, 0.0, 0.0, 2.0) for x in along])
    return stands * (5.0 * _fast(norm_of(along), speed, speed, 0.0) + 1.0) * (1.0 / 6.0)


# -- swimmer, fish -------------------------------------------------------------------------------------------


@cache
def _with_links(count: int) -> Callable[[Xml], None]:
    def edit(root: Xml) -> None:
        body, motors = root.find("worldbody/body"), ElementTree.SubElement(root, "actuator")
        reach = 360.0 / count
        for k in range(count - 1):
            joint = {"name": f"joint_{k}", "range": f"{-reach} {reach}"}
            body = hang(body, f"segment_{k}", joint, [{"class": "visual"}, {"class": "inertial"}], pos="0 .1 0")
            ElementTree.SubElement(motors, "motor", name=f"motor_{k}", joint=f"joint_{k}")

    return edit


def _nose_way(s: SuiteState) -> Vec:
    near, x, y = s.drawn
    reach = where(near < 0.2, 0.3, 2.0)
    target = Vec(reach * x, reach * y, 0.05)
    return s.turn("head").T @ (target - s.place("head", 0.0, -0.06, 0.0))


def _swimmer(s: SuiteState) -> list[Scalar]:
    links = ["head", *(x.name for x in s.model.links if x.name.startswith("segment_"))]
    rates = [(s.turn(x).T @ s.speed(x, Vec(0.0, 0.0, 0.0)), s.spin(x)) for x in links]
    return [*s.q[3:], *_nose_way(s)[:2], *(x for v, w in rates for x in (v.x, v.y, w.z))]


def _at_nose(s: SuiteState) -> Scalar:
    return tolerance(norm_of(_nose_way(s)[:2]), 0.0, 0.1, 0.5, "long_tail")


FISH_JOINTS = ("tail1", "tail_twist", "tail2", "finright_roll", "finright_pitch", "finleft_roll", "finleft_pitch")
MOUTH = (0.0, 0.0745, 0.0)  # m, in the torso


def _adrift(body: SuiteBody, chance: Chance, q: list[Scalar], v: list[Scalar]) -> None:
    q[3:7] = of_length_one(normals(chance, 4, 1.0))
    q[7:] = [chance.uniform(-0.2, 0.2) for _ in q[7:]]


def _mouth_way(s: SuiteState) -> Vec:
    """From the mouth to the target, along the axes of the mouth, whose z is ahead."""
    way = s.turn("torso").T @ (Vec(*s.drawn) - s.place("torso", *MOUTH))
    return Vec(way.x, -way.z, way.y)


def _fish(swims: bool, s: SuiteState) -> list[Scalar]:
    joints = [s.q[s.body.at[x][0].start] for x in FISH_JOINTS]
    return [*joints, s.turn("torso").z.z, *(_mouth_way(s) if swims else ()), *s.v]


def _fish_upright(s: SuiteState) -> Scalar:
    return tolerance(s.turn("torso").z.z, 1.0, 1.0, 1.0)


def _fish_swims(s: SuiteState) -> Scalar:
    near = tolerance(norm_of(_mouth_way(s)), 0.0, 0.045, 0.09)
    return (7.0 * near + 0.5 * (s.turn("torso").z.z + 1.0)) * 0.125


# -- the table -----------------------------------------------------------------------------------------------

REACHER_TARGETS = (0.0, 2.0 * pi), (0.05, 0.2)  # of a reacher: angle and radius
SWIMMER_TARGETS = (0.0, 1.0), (-1.0, 1.0), (-1.0, 1.0)  # of a swimmer: whether the target is near, and its place
FISH_TARGETS = (-0.4, 0.4), (-0.4, 0.4), (0.1, 0.3)  # of a fish: place of the target, m
ASKEW = (0.0, 1.0), (0.0, 1.0), (acos(0.9), pi - acos(0.9))  # of a point: turns of the directions of pull
SPEEDS = {"stand": 0.0, "walk": 1.0, "run": 10.0}  # m/s
LIMBS = ("left_hand", "left_foot", "right_hand", "right_foot")
CMU_LIMBS = ("lhand", "lfoot", "rhand", "rfoot")


def _cartpole(reward: Callable[[SuiteState], Scalar], start: SuiteStart, poles: int = 1) -> SuiteTask:
    return SuiteTask("cartpole", 0.01, _on_cart, reward, start, edit=_with_poles(poles) if poles > 1 else None)


_SUITE_ACROBOT = SuiteTask("acrobot", 0.01, _acrobot, partial(_raised, 1.0), _any_angle)
_SUITE_REACHER = SuiteTask("reacher", 0.02, _reaching, partial(_reached, 0.05), _scattered, REACHER_TARGETS)
_SUITE_POINT = SuiteTask("point_mass", 0.02, _state, _at_centre, _scattered)
_SUITE_FINGER = SuiteTask("finger", 0.02, _fingered, _spun, _scattered_apart)
_SUITE_FISH = SuiteTask("fish", 0.04, partial(_fish, False), _fish_upright, _adrift)
_SUITE_HOPPER = SuiteTask("hopper", 0.02, _hopper, partial(_hopping, False), _scattered)
_SUITE_SWIMMER = SuiteTask("swimmer", 0.03, _swimmer, _at_nose, _scattered, SWIMMER_TARGETS)
_SUITE_TASKS = {
    "acrobot-swingup": _SUITE_ACROBOT,
    "acrobot-swingup_sparse": replace(_SUITE_ACROBOT, reward=partial(_raised, 0.0)),
    "ball_in_cup-catch": SuiteTask("ball_in_cup", 0.02, _state, _caught, _above_cup),
    "cartpole-balance": _cartpole(_balanced, _upright),
    "cartpole-balance_sparse": _cartpole(_firmly_balanced, _upright),
    "cartpole-swingup": _cartpole(_balanced, _hanging),
    "cartpole-swingup_sparse": _cartpole(_firmly_balanced, _hanging),
    "cartpole-three_poles": _cartpole(_balanced, _hanging, 3),
    "cartpole-two_poles": _cartpole(_balanced, _hanging, 2),
    "cheetah-run": SuiteTask(
        "cheetah", 0.01, lambda s: [*s.q[1:], *s.v], lambda s: _fast(s.drift("torso").x, 10.0, 10.0, 0.0),
        _limits_alone, settling=200,
    ),
    "finger-spin": replace(_SUITE_FINGER, edit=_loose_hinge),
    **{
        f"finger-turn_{name}": replace(
            _SUITE_FINGER, observe=partial(_turning, size), reward=partial(_turned, size), drawn=((-pi, pi),)
        )
        for name, size in (("easy", 0.07), ("hard", 0.03))
    },
    "fish-swim": replace(_SUITE_FISH, observe=partial(_fish, True), reward=_fish_swims, drawn=FISH_TARGETS),
    "fish-upright": _SUITE_FISH,
    "hopper-hop": replace(_SUITE_HOPPER, reward=partial(_hopping, True)),
    "hopper-stand": _SUITE_HOPPER,
    **{
        f"{file}-{name}": SuiteTask(
            file, seconds, partial(_humanoid, trunk, limbs), partial(_humanoid_stands, trunk, axis, speed),
            _scattered_apart, rise=rise,
        )
        for file, trunk, axis, seconds, limbs, rise in (
            ("humanoid", "torso", "z", 0.025, LIMBS, None), ("humanoid_CMU", "thorax", "y", 0.02, CMU_LIMBS, 0.0)
        )
        for name, speed in SPEEDS.items()
    },
    "humanoid-run_pure_state": SuiteTask(
        "humanoid", 0.025, _state, partial(_humanoid_stands, "torso", "z", 10.0), _scattered_apart
    ),
    "pendulum-swingup": SuiteTask(
        "pendulum", 0.02, lambda s: [*_columns(s, ["pole"], "zz xz"), *s.v],
        lambda s: tolerance(s.turn("pole").z.z, cosine(radians(8.0)), 1.0), _any_angle,
    ),
    "point_mass-easy": _SUITE_POINT,
    "point_mass-hard": replace(_SUITE_POINT, drawn=ASKEW, drive=_pulled_askew),
    **{
        f"reacher-{name}": replace(_SUITE_REACHER, reward=partial(_reached, size))
        for name, size in (("easy", 0.05), ("hard", 0.015))
    },
    **{f"swimmer-swimmer{links}": replace(_SUITE_SWIMMER, edit=_with_links(links)) for links in (6, 15)},
    **{
        f"walker-{name}": SuiteTask("walker", 0.025, _walker, partial(_walking, min(speed, 8.0)), _scattered)
        for name, speed in SPEEDS.items()
    },
}  # fmt: skip
SUITE: dict[str, SuiteTask] = {
    f"dm_control-{name}-v0": task for name, task in sorted((_SUITE_TASKS | HAND_TASKS | LEG_TASKS).items())
}
