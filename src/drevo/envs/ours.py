"""Tasks of our own: a quadruped that walks over hills, and Kovalchuk's biped that should not fall.

Both are told by a Model alone: what touches, actuators, steps and where an episode begins are data of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import inf
from pathlib import Path

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


def robotics_file(name: str) -> str:
    """A file of gymnasium-robotics' own."""
    spec = find_spec("gymnasium_robotics")
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            "tasks of hands and of Fetch take files of gymnasium-robotics: pip install gymnasium-robotics"
        )
    return str(Path(spec.submodule_search_locations[0], "envs/assets", name))


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


GOALS: dict[str, HandTask | FetchTask | AdroitTask] = {**_hand_tasks(), **_fetch_tasks(), **_adroit_tasks()}
