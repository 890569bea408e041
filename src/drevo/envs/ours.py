"""Tasks of our own: a quadruped that walks over hills, and Kovalchuk's biped that should not fall.

Both are told by a Model alone: what touches, actuators, steps and where an episode begins are data of it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import Any

from ..contact.pairs import contact_candidates
from ..errors import DrevoWarning, InputError
from ..ground import FunctionGround, function
from ..mechanics.algorithms.kinematics import placed_bodies
from ..mechanics.rotation import from_quaternion
from ..mechanics.scalar import Scalar, dot, sin, sqrt, where
from ..mechanics.spatial import Vec
from ..mechanics.tree import build_tree
from ..model.contact import Actuator, Stepping
from ..model.description import JointDynamics, Model
from ..robot.face import Robot
from ..robots.loading import load
from .tasks import GYMNASIUM, Moment, Outcome, Task, TaskNumbers

FEET = ("FR_foot", "FL_foot", "RR_foot", "RL_foot")
STANCE = (0.0, 0.8, -1.6)  # of a leg: hip, thigh, calf
HILL_HEIGHT, HILL_LENGTH = 0.04, 2.0  # m, of hills
SPRING, DAMPER = 100.0, 2.0  # N m/rad and N m s/rad of the joints of a leg
SERVO_REACH = 0.5  # rad that an action of 1 moves a servo by
TORQUE, ROTOR, DRAG = 80.0, 0.1, 2.0  # N m, kg m^2 and N m s/rad of a biped's motors, as its joints feel them
START_CLEARANCE = 0.005  # m, between the lowest point and the ground where an episode begins


def hills(x: Scalar, y: Scalar) -> Scalar:
    """z(x, y), m; 0 at the origin."""
    k = 2.0 * 3.141592653589793 / HILL_LENGTH
    return HILL_HEIGHT * sin(k * x) * sin(0.7 * k * y + 1.0)


def rough() -> FunctionGround:
    """The ground of the quadruped."""
    return function(hills)


def quadruped() -> Robot:
    """Unitree's Go1 of example-robot-data on its feet, with a servo at every joint."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DrevoWarning)  # a link of a milligram has an inertia that no body has
        model = load("go1", base="floating").model
    geoms = tuple(replace(x, friction=(0.8, *x.friction[1:])) for x in model.geoms if x.link in FEET)
    servos = []
    for k, joint in enumerate(j for j in model.moving_joints if j.kind == "revolute"):
        rest, effort = STANCE[k % 3], (joint.limit and joint.limit.effort) or inf
        law = (SERVO_REACH * SPRING, 0.0, 0.0), (rest * SPRING, -SPRING, 0.0)
        servos.append(Actuator(joint.name, joint.name, 1.0, *law, (-1.0, 1.0), (-effort, effort)))
    damped = JointDynamics(damping=DAMPER)  # in the joints, where a step of Euler's takes it implicitly
    joints = tuple(replace(j, dynamics=damped) if j.kind == "revolute" else j for j in model.joints)
    made = replace(
        model, joints=joints, geoms=geoms, pairs=(), actuators=tuple(servos), stepping=Stepping(0.005), notes=(),
        initial=(0.0,) * 6 + (1.0, *STANCE * 4),
    )  # fmt: skip
    return Robot(_lowered(made, rough()))


def driven_biped() -> Robot:
    """Kovalchuk's biped with geared motors at its joints, on the corners of its soles."""
    model = load("biped", base="floating").model
    motors = tuple(
        Actuator(joint.name, joint.name, TORQUE, control_range=(-1.0, 1.0))
        for joint in model.moving_joints
        if joint.kind == "revolute"
    )
    geared = JointDynamics(armature=ROTOR, damping=DRAG)
    joints = tuple(replace(j, dynamics=geared) if j.kind == "revolute" else j for j in model.joints)
    q = (0.0,) * 6 + (1.0,) + (0.0,) * len(motors)
    made = replace(model, joints=joints, actuators=motors, stepping=Stepping(0.004), initial=q)
    return Robot(_lowered(made, "plane"))


def _lowered(model: Model, ground: object) -> Model:
    """Lowers or raises a model's initial state until its lowest point is just above the ground."""
    poses = placed_bodies(build_tree(model), list(model.initial))
    lowest = min(float(x.touch(poses).dist) for x in contact_candidates(model, ground))
    q = list(model.initial)
    q[2] += START_CLEARANCE - lowest
    return replace(model, initial=tuple(q))


def _felt(m: Moment) -> tuple[Vec, Vec, Vec]:
    """Gravity's direction, rates and turning rates in the axes of the base."""
    w, x, y, z = m.q[3:7]
    over = 1.0 / sqrt(dot([w, x, y, z], [w, x, y, z]))
    R = from_quaternion(x * over, y * over, z * over, w * over).T
    return R @ Vec(0.0, 0.0, -1.0), R @ Vec(*m.v[:3]), Vec(*m.v[3:6])


def _observed(m: Moment) -> list[Scalar]:
    return [*(x for part in _felt(m) for x in part), *m.q[7:], *m.v[6:]]


def _walking(level: Callable[[Scalar, Scalar], Scalar]) -> Callable[[Moment, TaskNumbers], Outcome]:
    """Reward of the forward rate that is wanted, less that of turning, effort and falling; an end where it falls.

    level: the height of the ground at x, y.
    """

    def judge(m: Moment, n: TaskNumbers) -> Outcome:
        down, rates, turns = _felt(m)
        off = (rates.x - n["speed"]) * (1.0 / n["speed_width"])
        forward = 1.0 / (1.0 + off * off)
        effort = n["ctrl_cost_weight"] * dot(m.action, m.action)
        restless = n["turn_cost_weight"] * turns.dot(turns)
        above = m.q[2] - level(m.q[0], m.q[1]) - n["least_height"]
        stands = where(down.z + n["upright"] > 0.0, 0.0, where(above < 0.0, 0.0, 1.0))
        infos = {"x_position": m.q[0], "x_velocity": rates.x, "reward_forward": forward}
        return Outcome(forward + n["healthy_reward"] * stands - effort - restless, 1.0 - stands, infos)

    return judge


NUMBERS = {
    "speed": 0.5, "speed_width": 0.5, "ctrl_cost_weight": 0.01, "turn_cost_weight": 0.02, "healthy_reward": 0.5,
    "upright": 0.5**0.5, "least_height": 0.15, "reset_noise_scale": 0.02,
}  # fmt: skip
OURS: dict[str, Task] = {
    "Go1Hills-v0": Task(
        quadruped, 4, 1000, _observed, _walking(hills),
        NUMBERS, ground=rough,
    ),
    "Biped-v0": Task(
        driven_biped, 5, 1000, _observed, _walking(lambda x, y: 0.0),
        {**NUMBERS, "speed": 0.3, "least_height": 0.6}, ground=lambda: "plane",
    ),
}  # fmt: skip
TASKS = {**GYMNASIUM, **OURS}


@dataclass(frozen=True)
class HandTask:
    """A task of the hand. place: the goal has a place. turns: how its orientation is drawn."""

    held: str
    place: bool
    turns: str  # "xyz", "z" or "parallel"
    dense: bool
    limit: int = 100
    skip: int = 20  # steps under one action

    @property
    def tolerance(self) -> tuple[float, float]:
        """Distance, m, and angle, rad, under which a goal is reached."""
        return (0.05 if self.held == "pen" else 0.01), 0.1

    @property
    def source(self) -> str:
        """The file, gymnasium-robotics' own."""
        return robotics_file(f"hand/manipulate_{self.held}.xml")


@dataclass(frozen=True)
class FetchTask:
    """A task of Fetch. start: x of the base, m. held: where the object is put first, x, y, z, m; None for none.

    fingers: whether they move. lift: of the gripper above its usual start, m. spread, reach: ranges of the object
    and of goals about the gripper, m. ahead: of goals, m. air: whether goals may be above the table.
    """

    file: str
    start: float
    held: tuple[float, float, float] | None
    fingers: bool = False
    lift: float = 0.0
    spread: float = 0.15
    reach: float = 0.15
    ahead: float = 0.0
    air: bool = False
    dense: bool = False
    limit: int = 50
    skip: int = 20  # steps under one action


@dataclass(frozen=True)
class AdroitTask:
    """A task of Adroit's hand. scene: "door", "hammer", "pen" or "relocate"."""

    scene: str
    dense: bool
    limit: int = 200
    skip: int = 5  # steps under one action


@dataclass(frozen=True)
class SawyerTask:
    """A task of metaworld. low, high: of what is drawn, places of what is pushed and of what stands or is wanted.

    moved: the link that stands where an episode draws it. ahead: the goal from what is drawn last. goals: to which
    it is cut where it is observed. apart: least way between the places. flat: they are as high as a puck lies.
    joint: the last coordinate where an episode begins. stale: it is first seen as it was before. hand: its start.
    """

    file: str
    low: tuple[float, ...]
    high: tuple[float, ...]
    moved: str = ""
    ahead: tuple[float, float, float] = (0.0, 0.0, 0.0)
    goals: tuple[tuple[float, float], ...] = ()
    apart: float = 0.0
    flat: bool = False
    joint: float | None = None
    stale: bool = False
    hand: tuple[float, float, float] = (0.0, 0.6, 0.2)
    limit: int = 500
    skip: int = 5  # steps under one action


@dataclass(frozen=True)
class PandaTask:
    """A task of robosuite. cubes: names, and half the sides, m. spread: range of their places on the table, m.
    drawn: by how much half of each side of the first cube may be more or less, as an episode draws it, m."""

    cubes: tuple[tuple[str, float], ...]
    spread: float
    dense: bool
    drawn: float = 0.0
    limit: int = 1000
    skip: int = 25  # steps under one action


def quiet_model(source: object, **options: Any) -> Model:
    """The model of a file or a text, of which tasks need the motion alone: what is not read is no matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load(source, **options).model


def robotics_file(name: str) -> str:
    """A file of gymnasium-robotics' own."""
    return installed_file("gymnasium_robotics", f"envs/assets/{name}")


def installed_file(package: str, name: str) -> str:
    """A file of an installed package, which is not imported."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        distribution = package.replace("_", "-")
        raise InputError(f"the task takes files of {distribution}: pip install {distribution}")
    return str(Path(spec.submodule_search_locations[0], name))


def _fetch_tasks() -> dict[str, FetchTask]:
    block = (1.25, 0.53, 0.4)
    tasks = {
        "Reach": FetchTask("reach", 0.4049, None, lift=0.2, air=True),
        "Push": FetchTask("push", 0.405, block),
        "Slide": FetchTask("slide", 0.05, (1.7, 1.1, 0.41), lift=-0.02, spread=0.1, reach=0.3, ahead=0.4),
        "PickAndPlace": FetchTask("pick_and_place", 0.405, block, fingers=True, lift=0.2, air=True),
    }
    return {
        f"Fetch{name}{'Dense' * dense}-v4": replace(task, dense=dense)
        for name, task in tasks.items()
        for dense in (False, True)
    }


def _hand_tasks() -> dict[str, HandTask]:
    kinds = {"": (True, "xyz"), "Full": (True, "xyz")}
    block = {**kinds, "RotateZ": (False, "z"), "RotateParallel": (False, "parallel"), "RotateXYZ": (False, "xyz")}
    others = {**kinds, "Rotate": (False, "xyz")}
    return {
        f"HandManipulate{held.capitalize()}{kind}{'Dense' * dense}-v1": HandTask(held, *goal, dense)
        for held, goals in (("block", block), ("egg", others), ("pen", others))
        for kind, goal in goals.items()
        for dense in (False, True)
    }


def _adroit_tasks() -> dict[str, AdroitTask]:
    return {
        f"AdroitHand{scene.capitalize()}{'Sparse' * (not dense)}-v1": AdroitTask(scene, dense)
        for scene in ("door", "hammer", "pen", "relocate")
        for dense in (True, False)
    }


def _sawyer_tasks() -> dict[str, SawyerTask]:
    puck, air = ((-0.1, 0.6, 0.02), (0.1, 0.7, 0.02)), ((-0.1, 0.1), (0.8, 0.9), (0.05, 0.3))
    low, high = ((*a, *b) for a, b in zip(puck, zip(*air)))
    table = ((-0.1, 0.1), (0.8, 0.9), (0.01, 0.02))
    drawer, window = ((-0.1, 0.9, 0.0), (0.1, 0.9, 0.0), "drawer"), "window"
    middle, far = ((0.0, y, 0.20000000298023224) for y in (0.6000000238418579, 0.4000000059604645))  # single there
    return {
        "reach-v3": SawyerTask("sawyer_reach_v3", low, high, goals=air, apart=0.15),
        "push-v3": SawyerTask(
            "sawyer_push_v3", (*low[:5], 0.01), (*high[:5], 0.02), goals=table, apart=0.15, flat=True
        ),
        "pick-place-v3": SawyerTask("sawyer_pick_place_v3", low, high, goals=air, apart=0.15),
        "door-open-v3": SawyerTask(
            "sawyer_door_pull", (0.0, 0.85, 0.15), (0.1, 0.95, 0.15), "door", (-0.3, -0.45, 0.0),
            ((-0.3, -0.2), (0.4, 0.5), (0.1499, 0.1501)), joint=0.0,
        ),
        "drawer-open-v3": SawyerTask("sawyer_drawer", *drawer, (0.0, -0.36, 0.09), stale=True, hand=middle),
        "drawer-close-v3": SawyerTask("sawyer_drawer", *drawer, (0.0, -0.16, 0.09), joint=-0.15, hand=middle),
        "button-press-topdown-v3": SawyerTask(
            "sawyer_button_press_topdown", (-0.1, 0.8, 0.115), (0.1, 0.9, 0.115), "box",
            (0.0, -0.1 * math.cos(1.57), 0.1 * math.sin(1.57)), hand=far,
        ),
        "peg-insert-side-v3": SawyerTask(
            "sawyer_peg_insertion_side", (0.0, 0.5, 0.02, -0.35, 0.4, -0.001), (0.2, 0.7, 0.02, -0.25, 0.7, 0.001),
            "box", (0.03, 0.0, 0.13), ((-0.32, -0.22), (0.4, 0.7), (0.129, 0.131)), apart=0.1,
        ),
        "window-open-v3": SawyerTask(
            "sawyer_window_horizontal", (-0.1, 0.7, 0.16), (0.1, 0.9, 0.16), window, (0.2, 0.0, 0.0),
            joint=0.0, stale=True, hand=far,
        ),
        "window-close-v3": SawyerTask(
            "sawyer_window_horizontal", (0.0, 0.75, 0.2), (0.0, 0.9, 0.2), window, joint=0.2, stale=True, hand=far
        ),
    }  # fmt: skip


GOALS: dict[str, HandTask | FetchTask | AdroitTask | SawyerTask | PandaTask] = {
    **_hand_tasks(),
    **_fetch_tasks(),
    **_adroit_tasks(),
    **_sawyer_tasks(),
    **{f"Lift{'Dense' * dense}": PandaTask((("cube", 0.021),), 0.03, dense, 0.001) for dense in (False, True)},
    **{
        f"Stack{'Dense' * dense}": PandaTask((("cubeA", 0.02), ("cubeB", 0.025)), 0.08, dense)
        for dense in (False, True)
    },
}
