"""The arm of dm_control's suite that brings a ball or a peg and stacks boxes, and chains of masses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial, reduce
from itertools import combinations
from math import inf, pi
from operator import add
from xml.etree import ElementTree

from ..mechanics.algorithms.kinematics import Pose, placed_bodies
from ..mechanics.scalar import Scalar, Vector, atan2, cos, dot, maximum, minimum, sin, where
from ..mechanics.spatial import Mat, Vec
from .scales import log_of, tolerance
from .suite import SuiteBody, SuiteState, SuiteTask, Xml, hang, norm_of, normals, of_length_one
from .tasks import Chance

ARM = ("arm_root", "arm_shoulder", "arm_elbow", "arm_wrist")
ARM_JOINTS = (*ARM, "finger", "fingertip", "thumb", "thumbtip")
HAND_TOUCHES = ("palm_touch", "finger_touch", "thumb_touch", "fingertip_touch", "thumbtip_touch")
GRASP_PLACE, PINCH_PLACE = (0.0, 0.0, 0.065), (0.0, 0.0, 0.09)  # m, in the hand
CLOSE_BY = 0.01  # m, within which things are together
BOX_HALF = 0.022  # m, half the side of a box
PROPS = ("ball", "target_ball", "cup", "peg", "target_peg", "slot")
PEG_MIDDLE, PEG_PINCH, PEG_TIP = -0.063, -0.025, -0.113  # m, along z of the peg
IN_HAND, IN_TARGET = 0.1, 0.2  # of a number from 0 to 1, below which a thing starts there
TARGET_Y = 0.001  # m


def _arm(s: SuiteState) -> list[Scalar]:
    """Sines and cosines of the arm's joints, their rates, and touches."""
    at = [s.body.at[x] for x in ARM_JOINTS]
    angles = [s.q[q.start] for q, _ in at]
    turns = [f(x) for x in angles for f in (sin, cos)]
    return [*turns, *(s.v[v.start] for _, v in at), *(log_of(1.0 + s.touch(x)) for x in HAND_TOUCHES)]


def _planar(place: Vec, angle: Scalar) -> list[Scalar]:
    return [place.x, place.z, cos(0.5 * angle), sin(0.5 * angle)]


def _hand(s: SuiteState) -> list[Scalar]:
    return _planar(s.place("hand"), -reduce(add, (s.q[s.body.at[x][0].start] for x in ARM)))


def _thing(s: SuiteState, name: str) -> list[Scalar]:
    return _planar(s.place(name), s.q[s.body.at[f"{name}_y"][0].start])


def _rates(s: SuiteState, names: Sequence[str], order: str) -> list[Scalar]:
    return [s.v[s.body.at[f"{name}_{x}"][1].start] for name in names for x in order]


def _put_arm(body: SuiteBody, chance: Chance, q: list[Scalar]) -> None:
    """Joints anywhere within their limits, finger and thumb alike."""
    for joint, at, _ in body.model.slices():
        if joint.name in ARM_JOINTS:
            limit = joint.limit
            ends = (limit.lower, limit.upper) if limit and limit.lower is not None else (-pi, pi)
            q[at.start] = chance.uniform(*ends)
    q[body.at["finger"][0].start] = q[body.at["thumb"][0].start]


# -- a ball or a peg ---------------------------------------------------------------------------------------


@cache
def _without(*names: str) -> Callable[[Xml], None]:
    def edit(root: Xml) -> None:
        world = root.find("worldbody")
        assert world is not None
        for body in [x for x in world.findall("body") if x.get("name") in names]:
            world.remove(body)

    return edit


def _bringing(thing: str, s: SuiteState) -> list[Scalar]:
    x, z, angle, _ = s.drawn
    target = _planar(Vec(x, TARGET_Y, z), angle)
    return [*_arm(s), *_hand(s), *_thing(s, thing), *_rates(s, [thing], "xzy"), *target]


def _close(x: Vec, y: Vec) -> Scalar:
    return tolerance(norm_of(x - y), 0.0, CLOSE_BY, 2.0 * CLOSE_BY)


def _ball_brought(s: SuiteState) -> Scalar:
    return _close(s.place("ball"), Vec(s.drawn[0], TARGET_Y, s.drawn[1]))


def _peg_brought(s: SuiteState) -> Scalar:
    x, z, angle, _ = s.drawn

    def at_target(along: float) -> Vec:
        return Vec(x + along * sin(angle), TARGET_Y, z + along * cos(angle))

    grasping = _close(s.place("peg"), s.place("hand", *GRASP_PLACE)) + _close(
        s.place("peg", 0.0, 0.0, PEG_PINCH), s.place("hand", *PINCH_PLACE)
    )
    bringing = reduce(add, (_close(s.place("peg", 0.0, 0.0, k), at_target(k)) for k in (PEG_MIDDLE, PEG_TIP)))
    return maximum(bringing * 0.5, grasping * (1.0 / 6.0))


def _brought(thing: str, holder: str, body: SuiteBody, chance: Chance, q: list[Scalar], v: list[Scalar]) -> Scalar:
    """In the hand, at its target or anywhere, then on the move."""
    x, z, angle, kind = chance.commands()
    _put_arm(body, chance, q)
    frame = body.tree.frames["hand"]
    R, p = placed_bodies(body.tree, q)[frame.body].compose(frame.R, frame.p)
    grasp = p + R @ Vec(*GRASP_PLACE)
    held = grasp.x, grasp.z, pi - atan2(R.z.x, R.x.x)
    free = chance.uniform(-0.5, 0.5), chance.uniform(0.0, 0.7), chance.uniform(0.0, 2.0 * pi)
    for name, *places in zip("xzy", held, (x, z, angle), free):
        a, b, c = places
        q[body.at[f"{thing}_{name}"][0].start] = where(kind < IN_HAND, a, where(kind < IN_TARGET, b, c))
    v[body.at[f"{thing}_x"][1].start] = where(kind < IN_TARGET, 0.0, chance.uniform(-5.0, 5.0))
    turned = Mat(Vec(cos(angle), 0.0, sin(angle)), Vec(0.0, 1.0, 0.0), Vec(-sin(angle), 0.0, cos(angle)))
    return body.apart(q, {holder: Pose(turned, Vec(x, 0.0, z))} if holder else None)


# -- boxes -------------------------------------------------------------------------------------------------


def _box_names(body: SuiteBody) -> list[str]:
    return [link.name for link in body.model.links if link.name in ("box0", "box1", "box2", "box3")]


def _box_target(s: SuiteState) -> Vec:
    x, level = s.drawn
    steps = [where(level < k, 0.0, 2.0) for k in range(1, len(_box_names(s.body)))]
    return Vec(x, TARGET_Y, BOX_HALF * reduce(add, steps, 1.0))


def _stacking(s: SuiteState) -> list[Scalar]:
    names, target = _box_names(s.body), _box_target(s)
    boxes = [x for name in names for x in _thing(s, name)]
    return [*_arm(s), *_hand(s), *boxes, *_rates(s, names, "xyz"), target.x, target.z]


def _stacked(s: SuiteState) -> Scalar:
    target = _box_target(s)
    nearest = reduce(minimum, (norm_of(s.place(x) - target) for x in _box_names(s.body)))
    far = tolerance(norm_of(s.place("hand", *GRASP_PLACE) - target), 0.1, inf, CLOSE_BY)
    return tolerance(nearest, 0.0, 0.0, 2.0 * BOX_HALF) * far


def _tossed(body: SuiteBody, chance: Chance, q: list[Scalar], v: list[Scalar]) -> Scalar:
    _put_arm(body, chance, q)
    boxes = []
    for name in _box_names(body):
        boxes.append([chance.uniform(0.1, 0.3), chance.uniform(0.0, 0.7), chance.uniform(0.0, 2.0 * pi)])
        for axis, x in zip("xzy", boxes[-1]):
            q[body.at[f"{name}_{axis}"][0].start] = x
    clear = body.apart(q)
    for one, other in combinations(boxes, 2):
        clear = clear * _squares_apart(one, other)
    return clear


def _squares_apart(one: Vector, other: Vector) -> Scalar:
    """1.0 where an axis of one of two equal squares parts them, else 0.0."""
    x, z, turn = (b - a for a, b in zip(one, other))
    c, s = cos(turn), sin(turn)
    reach = BOX_HALF * (1.0 + maximum(c, -c) + maximum(s, -s))
    ways = [x * f - z * g for a in (one[2], other[2]) for f, g in ((cos(a), sin(a)), (sin(a), -cos(a)))]
    return where(reduce(maximum, (maximum(way, -way) for way in ways)) > reach, 1.0, 0.0)


# -- masses in a row, held by springs ----------------------------------------------------------------------


@cache
def _in_row(count: int, driven: int) -> Callable[[Xml], None]:
    def edit(root: Xml) -> None:
        body, motors = root.find("worldbody"), ElementTree.SubElement(root, "actuator")
        for k in range(count):
            place = ".25 0 0" if k else ".25 0 .1"
            body = hang(body, f"body_{k}", {"name": f"joint_{k}"}, [{}], pos=place)
            if k < driven:
                ElementTree.SubElement(motors, "motor", name=f"motor_{k}", joint=f"joint_{k}")

    return edit


def _sprung(action: Vector, q: Vector, v: Vector, stiffness: Vector) -> list[Scalar]:
    """The motors, and springs of a stiffness that is drawn, N/m."""
    return [u - k * x for u, k, x in zip((*action, *[0.0] * len(q)), stiffness, q)]


def _square_cost(s: SuiteState) -> Scalar:
    return 1.0 - 0.5 * dot(s.q, s.q) - 0.05 * dot(s.control, s.control)


def _on_sphere(body: SuiteBody, chance: Chance, q: list[Scalar], v: list[Scalar]) -> None:
    q[:] = [2.0**0.5 * x for x in of_length_one(normals(chance, len(q)))]


def _at_rest(s: SuiteState) -> Scalar:
    state = [*s.q, *s.v]
    return where(dot(state, state) < 1e-12, 1.0, 0.0)


# -- the table ---------------------------------------------------------------------------------------------

PROP_TARGETS = (-0.4, 0.4), (0.1, 0.4), (-pi, pi), (0.0, 1.0)
INSERT_TARGETS = (-0.4, 0.4), (0.1, 0.4), (-pi / 3.0, pi / 3.0), (0.0, 1.0)
HAND_TASKS = {
    **{
        f"lqr-lqr_{count}_{driven}": SuiteTask(
            "lqr", 0.03, lambda s: [*s.q, *s.v], _square_cost, _on_sphere, ((15.0, 25.0),) * count,
            _in_row(count, driven), _sprung, _at_rest, limit=2**53,
        )
        for count, driven in ((2, 1), (6, 2))
    },
    **{
        f"manipulator-{kind}_{thing}": SuiteTask(
            "manipulator", 0.01, partial(_bringing, thing), reward, partial(_brought, thing, holder), targets,
            _without(*(x for x in PROPS if x not in (thing, f"target_{thing}", holder))), moved=holder,
        )
        for thing, reward, cup in (("ball", _ball_brought, "cup"), ("peg", _peg_brought, "slot"))
        for kind, holder, targets in (("bring", "", PROP_TARGETS), ("insert", cup, INSERT_TARGETS))
    },
    **{
        f"stacker-stack_{count}": SuiteTask(
            "stacker", 0.01, _stacking, _stacked, _tossed, ((-0.37, 0.37), (0.0, float(count))),
            _without(*(f"box{k}" for k in range(count, 4))),
        )
        for count in (2, 4)
    },
}  # fmt: skip
