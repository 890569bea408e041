"""Franka's Panda that lifts a cube, or stacks two, under robosuite's operational space control of poses.

Zhu et al. 2020, "robosuite: a modular simulation framework and benchmark for robot learning". Khatib 1987, "A
unified approach for motion and force control of robot manipulators: the operational space formulation".
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from math import pi, sqrt
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from ..mechanics.algorithms.actuators import actuation
from ..mechanics.algorithms.inertia_matrix import Factors, mass_matrix_rows
from ..mechanics.algorithms.inverse_dynamics import inverse_dynamics
from ..mechanics.algorithms.kinematics import jacobian, pose
from ..mechanics.algorithms.task_space import solved, weighed
from ..mechanics.scalar import Scalar, Vector, dot
from ..mechanics.spatial import Vec
from ..mechanics.tree import build_tree
from ..model.loaders.solids import MOST_SUPPORTS
from ..robot.face import Robot
from .goals import DrawnEnv, endless, norms
from .ours import PandaTask, installed_file, quiet_model
from .rotations import of_axis, product, rotation_quaternions
from .tasks import Task

Array = np.ndarray[Any, Any]
ROBOT_FILES = ("robots/panda/robot.xml", "grippers/panda_gripper.xml", "bases/rethink_mount.xml")
STANDING, MOUNT = "-0.56 0 0.912", "0 0 0.01"  # m, the robot's place, and its pedestal's from there
TABLE_PLACE, TABLE_HALVES = "0 0 0.775", "0.4 0.4 0.025"  # m
TABLE_TOP, DROP = 0.8, 0.01  # m, its height, and how far above it cubes are let go
LIFTED_HEIGHT = 0.04  # m, above the table, from which a cube is lifted
CUBE_DENSITY = 1000.0  # kg/m^3
CUBE_XML = """<body name="{0}"><joint type="free"/><geom name="{0}" type="box" size="{1} {1} {1}" density="{2}"
  friction="1 0.005 0.0001" solimp="0.9 0.95 0.001" group="0"/></body>"""
PANDA_JOINTS = 7
ARMATURE, JOINT_FRICTION = 5.0, 0.1  # kg m^2 of the first joint, of the k-th a k-th part; N m of all
READY = np.array([0.0, pi / 16.0, 0.0, -5.0 * pi / 6.0, 0.0, pi - 0.2, pi / 4.0])  # rad
READY_NOISE = 0.02  # rad
OPENED = (0.020833, -0.020833)  # m, of the fingers
GRIP, HAND_LINK, ARM_LINKS = "eef", "right_hand", tuple(f"link{k}" for k in range(1, PANDA_JOINTS + 1))
FINGERS, XYZW = slice(7, 9), [1, 2, 3, 0]
POSE_REACH, TURN_REACH = 0.05, 0.5  # m and rad that an action of 1 leads the hand by
FINGER_SPEED, FINGER_RANGE = 0.2, 0.02  # of the whole range an action; m, half of it
STIFFNESS, POSTURE_STIFFNESS = 150.0, 10.0  # 1/s^2, of the hand and of what it leaves free; damped critically
FINGER_PADS = ("finger1_pad_collision", "finger2_pad_collision")


@cache
def _panda(cubes: tuple[tuple[str, float], ...]) -> Robot:
    """The robot at its table with cubes, names and half their sides in m, out of robosuite's files."""
    assets = installed_file("robosuite", "models/assets")
    files = ("base.xml", "arenas/table_arena.xml", *ROBOT_FILES)
    parts: list[Any] = [ElementTree.parse(Path(assets, name)).getroot() for name in files]
    base, table, arm, gripper, mount = parts
    base.find("compiler").attrib.pop("meshdir")
    for part, file in zip((arm, gripper, mount), ROBOT_FILES):
        for mesh in part.iter("mesh"):
            mesh.set("file", f"{Path(file).parent.as_posix()}/{mesh.get('file')}")
        base.find("asset").extend(part.iter("mesh"))
        base.find("actuator").extend(part.findall("actuator/*"))
    for k, joint in enumerate(arm.iter("joint")):
        joint.set("armature", repr(ARMATURE / (k + 1)))
        joint.set("frictionloss", repr(JOINT_FRICTION))
    bodies = {x.get("name"): x for part in (mount, gripper, arm, table) for x in part.iter("body")}
    stand = mount.find("worldbody/body")
    stand.set("name", "mount")
    stand.set("pos", MOUNT)
    bodies["base"].set("pos", STANDING)
    bodies["base"].append(stand)
    bodies[HAND_LINK].extend(gripper.findall("worldbody/body"))
    bodies["table"].set("pos", TABLE_PLACE)
    bodies["table"].find("geom[@name='table_collision']").set("size", TABLE_HALVES)
    base.find("worldbody").extend([table.find("worldbody/geom[@name='floor']"), bodies["table"], bodies["base"]])
    base.find("worldbody").extend(ElementTree.fromstring(CUBE_XML.format(*x, CUBE_DENSITY)) for x in cubes)
    for body in base.iter("body"):
        for seen in body.findall("geom[@contype='0'][@conaffinity='0']"):
            body.remove(seen)
    return Robot(quiet_model(ElementTree.tostring(base, "unicode"), roots=[assets], hulls=MOST_SUPPORTS))


def _controlled(robot: Robot) -> Any:
    """The law of (action, q, v): that of `control.task_space`, forces and torques apart, J' v left out.

    action: the place (3,) and rotation (9,) wanted of the grip, controls of the fingers (2,), the posture (7,).
    """
    model, tree = robot.model, build_tree(robot.model)

    def drive(action: Vector, q: Vector, v: Vector, drawn: Vector = ()) -> list[Scalar]:
        place, wanted, fingers, posture = action[:3], action[3:12], action[12:14], action[14:]
        J = [row[:PANDA_JOINTS] for row in jacobian(tree, q, GRIP, "local_world_aligned")]
        A = weighed(Factors(mass_matrix_rows(tree, q)[:PANDA_JOINTS], range(PANDA_JOINTS)), J)
        T, rates = pose(tree, q, GRIP), [dot(row, v[:PANDA_JOINTS]) for row in J]
        turn = Vec(0.0, 0.0, 0.0)
        for k in range(3):
            turn = turn + Vec(*(T[i][k] for i in range(3))).cross(Vec(*wanted[k::3]))
        errors = [*(x - T[i][3] for i, x in enumerate(place)), *(x * 0.5 for x in turn)]
        wrench = [STIFFNESS * e - 2.0 * sqrt(STIFFNESS) * w for e, w in zip(errors, rates)]
        apart = [row[:3] for row in A[:3]], [row[3:] for row in A[3:]]
        force = [*solved(apart[0], wrench[:3], GRIP), *solved(apart[1], wrench[3:], GRIP)]
        away = [POSTURE_STIFFNESS * (x - y) - 2.0 * sqrt(POSTURE_STIFFNESS) * w for x, y, w in zip(posture, q, v)]
        taken = solved(A, [dot(row, away) for row in J], GRIP)
        pull = [x - y for x, y in zip(force, taken)]
        held = inverse_dynamics(tree, q, v, [*away, *[0.0] * (model.nv - PANDA_JOINTS)])
        torques = [x + dot(column, pull) for x, column in zip(held, zip(*J))]
        return actuation(model, q, v, [*torques, *fingers]).efforts

    return drive


class PandaEnv(DrawnEnv):
    """Environments of a task of robosuite.

    observation (num_envs, 53), with two cubes 66: places and quaternions x y z w of the cubes, ways between them
    and from the grip; joints, their cosines, sines and rates, the grip's place, quaternions of hand and grip, the
    fingers and their rates. An action is 7 numbers from -1 to 1: how far the grip goes, over 0.05 m, and turns,
    over 0.5 rad, along the world's axes, and whether the fingers close. "goal" of the state: the posture.
    """

    task: PandaTask
    goal_size = PANDA_JOINTS

    def _plain_task(self) -> Task:
        robot, ends = _panda(self.task.cubes), ((-np.inf,) * 21, (np.inf,) * 21)
        cube, _ = self.task.cubes[0]
        sizes = [f"size.{cube}", f"{cube}.mass", f"{cube}.inertia"] * bool(self.task.drawn)
        return self._task_of(robot, sizes, mujoco=False, controls=ends, drive=_controlled(robot))

    def _compile(self) -> None:
        super()._compile()
        rest = np.zeros((1, self.body.model.nq))
        rest[0, PANDA_JOINTS:] = self.body.beginning[0, PANDA_JOINTS:]
        chain = [self.body.robot.pose(rest, x)[:, :3, :3] for x in ("link0", *ARM_LINKS, HAND_LINK)]
        turns = (rotation_quaternions(np.swapaxes(a, 1, 2) @ b)[0] for a, b in pairwise(chain))
        self.turns = [x * np.sign(x[0]) for x in turns]  # between joints, from link to link
        self.boxes = {x.name: x for x in self.body.model.geoms}
        self.names = [name for name, _ in self.task.cubes]

    def _space(self) -> Any:
        return endless(53 if len(self.names) == 1 else 66)

    def _action_size(self) -> int:
        return PANDA_JOINTS

    # -- steps -------------------------------------------------------------------------------------------------

    def _act(self, at: Array, action: Array) -> None:
        state, n = self._state, len(at)
        q, v, fingers = state["q"][at], state["v"][at], state["fingers"][at]
        frame = self.body.robot.pose(q, GRIP)
        wanted = _turns(TURN_REACH * action[:, 3:6]) @ frame[:, :3, :3]
        fingers = np.clip(fingers + FINGER_SPEED * np.sign(action[:, 6:]) * [-1.0, 1.0], -1.0, 1.0)
        place, widths = (
            frame[:, :3, 3] + POSE_REACH * action[:, :3],
            FINGER_RANGE * (fingers - np.array([-1.0, 1.0])),
        )
        given = np.concatenate([place, wanted.reshape(n, 9), widths, state["goal"][at]], 1)
        sizes = [_numbers(state["sides"][at])] * 2 if self.task.drawn else []  # of the step before, and of this
        state["q"][at], state["v"][at], state["seen"][at] = self._called(q, v, given, np.zeros_like(given), *sizes)
        state["fingers"][at] = fingers

    def _place(self, link: str) -> Array:
        """Places (n, 3) of a link at the last evaluation, as robosuite sees them."""
        return np.asarray(self.body.robot.pose(self._state["seen"], link)[:, :3, 3])

    def _observed(self) -> Array:
        state, n = self._state, FINGERS.stop
        q, v, seen = state["q"], state["v"], state["seen"]
        grip, places = self._place(GRIP), [self._place(x) for x in self.names]
        turned = np.tile([1.0, 0.0, 0.0, 0.0], (len(q), 1))
        for k, turn in enumerate(self.turns):
            turned = product(turned, turn)
            if k < PANDA_JOINTS:
                turned = product(turned, of_axis(seen[:, k], np.array([[0.0, 0.0, 1.0]])))
        site = rotation_quaternions(self.body.robot.pose(seen, GRIP)[:, :3, :3])
        site *= np.where(site[:, :1] < 0.0, -1.0, 1.0)
        cubes = []
        for k, place in enumerate(places):
            turn = seen[:, n + 7 * k + 3 : n + 7 * k + 7]
            cubes += [place, turn / norms(turn)[:, None]]
        between = [b - a for a, b in pairwise(places)]
        ways = [place - grip for place in places]
        arm = [q[:, :PANDA_JOINTS], np.cos(q[:, :PANDA_JOINTS]), np.sin(q[:, :PANDA_JOINTS]), v[:, :PANDA_JOINTS]]
        hand = [grip, turned[:, XYZW], site[:, XYZW], q[:, FINGERS], v[:, FINGERS]]
        return np.concatenate([*cubes, *between, *ways, *arm, *hand], 1)

    def _judged(self, observed: Array) -> tuple[Array, dict[str, Array]]:
        first, grasped = self._place(self.names[0]), self._touch(self.names[0], *FINGER_PADS)
        lifted, reach = (
            first[:, 2] > TABLE_TOP + LIFTED_HEIGHT,
            1.0 - np.tanh(10.0 * norms(first - self._place(GRIP))),
        )
        if len(self.names) == 1:
            dense, success, best = np.where(lifted, 2.25, reach + 0.25 * grasped), lifted, 2.25
        else:
            across = norms((first - self._place(self.names[1]))[:, :2])
            aligned = lifted * (1.0 + 0.5 * (1.0 - np.tanh(across)))
            success, best = ~grasped & lifted & self._touch(*self.names), 2.0
            dense = np.maximum(np.maximum(0.25 * (reach + grasped), aligned), 2.0 * success)
        return dense / best if self.task.dense else success * 1.0, {"success": success}

    def _touch(self, one: str, *others: str) -> Array:
        """True where a box meets all others, as seen."""
        return np.asarray(np.all([_overlap(self._box(one), self._box(x)) for x in others], 0))

    def _box(self, name: str) -> tuple[Array, Array, Array]:
        """Axes (n, 3, 3), middles (n, 3) and half the sides, (3,) or (n, 3), of a box."""
        geom = self.boxes[name]
        frame = self.body.robot.pose(self._state["seen"], geom.link)
        R = frame[:, :3, :3]
        sides = self._state["sides"] if self.task.drawn and name == self.names[0] else np.array(geom.size)
        return R @ np.array(geom.rotation), frame[:, :3, 3] + R @ np.array(geom.origin), sides

    # -- beginnings --------------------------------------------------------------------------------------------

    def _restart(self, mask: Array) -> None:
        """New episodes, drawn one after another."""
        state, n, draw = self._state, FINGERS.stop, self.np_random
        state.setdefault("seen", state["q"].copy())
        state.setdefault("fingers", np.zeros((self.num_envs, 2)))
        sides, drawn = np.array([[x] * 3 for _, x in self.task.cubes]), self.task.drawn
        if drawn:
            state.setdefault("sides", np.tile(sides[0], (self.num_envs, 1)))  # half of them, of the first cube
        for k in np.flatnonzero(mask):
            if drawn:
                sides[0] = state["sides"][k] = self.task.cubes[0][1] + draw.uniform(-drawn, drawn, 3)
            state["goal"][k] = READY + READY_NOISE * draw.standard_normal(PANDA_JOINTS)
            placed = self._placed()
            for j, (half, place) in enumerate(zip(sides, placed)):
                angle = 0.5 * draw.uniform(0.0, 2.0 * pi)
                stands = [*place, TABLE_TOP + DROP + half[2], 0.0, 0.0, np.sin(angle), np.cos(angle)]
                state["q"][k, n + 7 * j : n + 7 * j + 7] = stands
        state["q"][mask, :PANDA_JOINTS], state["q"][mask, FINGERS] = state["goal"][mask], OPENED
        state["v"][mask], state["fingers"][mask], state["seen"][mask] = 0.0, 0.0, state["q"][mask]

    def _placed(self) -> list[Array]:
        """Places x, y of the cubes, none over another."""
        least = sqrt(2.0) * sum(half for _, half in self.task.cubes)
        while True:
            places = [self.np_random.uniform(-self.task.spread, self.task.spread, 2) for _ in self.task.cubes]
            if all(np.linalg.norm(a - b) > least for a, b in pairwise(places)):
                return places


def _numbers(sides: Array) -> Array:
    """Numbers of cubes that a step takes, (n, 7): half their sides (n, 3), masses and principal moments."""
    mass, squares = CUBE_DENSITY * 8.0 * sides.prod(1, keepdims=True), sides**2
    return np.concatenate([sides, mass, mass / 3.0 * (squares.sum(1, keepdims=True) - squares)], 1)


def _turns(vectors: Array) -> Array:
    """Rotations (n, 3, 3) by vectors (n, 3), in single precision as robosuite has them."""
    angle = norms(vectors)
    axis = np.where(angle[:, None] > 0.0, vectors, [0.0, 0.0, 1.0])
    q = of_axis(angle, axis).astype(np.float32)
    square = (q[:, None] @ q[:, :, None])[:, 0].astype(float)
    q = (q * np.sqrt(2.0 / square)).astype(np.float32)
    P = np.moveaxis(q[:, :, None] * q[:, None, :], 0, 2)
    w, x, y, z = P  # times w, x, y, z
    xx, yy, zz = (1.0 - a.astype(float) - b for a, b in ((y[2], z[3]), (x[1], z[3]), (x[1], y[2])))
    rows = [[xx, x[2] - w[3], x[3] + w[2]], [x[2] + w[3], yy, y[3] - w[1]], [x[3] - w[2], y[3] + w[1], zz]]
    return np.moveaxis(np.array(rows, float), -1, 0)


def _overlap(a: tuple[Array, Array, Array], b: tuple[Array, Array, Array]) -> Array:
    """True where two boxes meet: they are apart along none of their normals and of the products of their edges."""
    (Ra, pa, ha), (Rb, pb, hb) = a, b
    edges = np.cross(Ra[:, :, :, None], Rb[:, :, None, :], axis=1).reshape(-1, 3, 9)
    ways = np.concatenate([Ra, Rb, edges], 2)
    apart = abs(np.einsum("nik,ni->nk", ways, pb - pa))
    wide = sum((abs(np.swapaxes(ways, 1, 2) @ R) @ half[..., None])[..., 0] for R, half in ((Ra, ha), (Rb, hb)))
    return np.asarray((apart <= wide).all(1))
