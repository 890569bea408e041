"""Fetch's arm that reaches, pushes, slides, and picks and places, as in gymnasium-robotics.

An action moves a body of motion capture, to which a weld draws the gripper.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from ..model.description import ORIGIN, Model
from ..model.loaders.solids import MOST_SUPPORTS
from ..robot.face import Robot
from .goals import GoalEnv, norms
from .ours import FetchTask, quiet_model, robotics_file
from .rotations import cardan_angles, rotation_quaternions
from .tasks import Task

Array = np.ndarray[Any, Any]
GRIPPER_LINK, GRIP_POINT = "robot0:gripper_link", (0.02, 0.0, 0.0)  # grip: a point of the gripper
FINGER_JOINTS = ("robot0:r_gripper_finger_joint", "robot0:l_gripper_finger_joint")
OBJECT_JOINT, OBJECT_LINK = "object0:joint", "object0"
BASE_Y = 0.48  # m, y of the base
FIRST_REACH = np.array([-0.498, 0.005, -0.431])  # m, by which the gripper is led before all episodes
DOWNWARD_QUATERNION = np.array([1.0, 0.0, 1.0, 0.0])  # the gripper's quaternion w x y z, of any length
LEADING_STEPS = 10
ACTION_REACH = np.float32(0.05)  # m that an action of 1 moves the gripper by
GOAL_RADIUS = 0.05  # m, under which a goal is reached
LEAST_WAY = 0.1  # m, of the object from the gripper where an episode begins
MAX_RISE, RISING_SHARE = 0.45, 0.5  # m, of goals above the table, and how many of them are


@cache
def _fetch(file: str) -> Robot:
    """The robot of a file, whose meshes touch by their hulls."""
    model = quiet_model(robotics_file(f"fetch/{file}.xml"), hulls=MOST_SUPPORTS)
    welds = tuple(replace(x, point_a=ORIGIN, point_b=ORIGIN) for x in model.loops)  # as its environments have it
    return Robot(replace(model, loops=welds, notes=()))


class FetchEnv(GoalEnv):
    """Environments of a task of Fetch.

    observation (num_envs, 25), or 10 without an object: the grip's place, the object's, the way between them, the
    fingers, the object's angles about x, y, z, its rates less those of the grip, its turning rates, those of the
    grip and of the fingers; rates per step. Goals (num_envs, 3): places of the object, else of the grip. An action
    is 4 numbers from -1 to 1: how far the gripper goes, over 0.05 m, and how far the fingers open.
    """

    task: FetchTask
    goal_size = 3

    def _plain_task(self) -> Task:
        robot = _fetch(self.task.file)
        still = None if robot.model.actuators else ((-1.0,), (1.0,))
        return self._task_of(robot, ["robot0:mocap.pose"], controls=still)

    def _compile(self) -> None:
        super()._compile()
        model = self.body.model
        places = {joint.name: (at.start, rate.start) for joint, at, rate in model.slices()}
        self.fingers = [[places[name][k] for name in FINGER_JOINTS] for k in (0, 1)]
        self.servos = [places[x.joint][0] for x in model.actuators]
        self.held = places[OBJECT_JOINT] if self.task.held else None
        self.settled = self._settled(model, places)

    def _settled(self, model: Model, places: dict[str, tuple[int, int]]) -> tuple[Array, Array, Array]:
        """q and v after the gripper was led to where it starts, and where its grip and the object were."""
        q, v = self.body.beginning.copy(), np.zeros((1, model.nv))
        q[0, places["robot0:slide0"][0]], q[0, places["robot0:slide1"][0]] = self.task.start, BASE_Y
        if self.held and self.task.held:
            q[0, self.held[0] : self.held[0] + 7] = [*self.task.held, 0.0, 0.0, 0.0, 1.0]
        grip = self._gripper(q)[1] + FIRST_REACH + [0.0, 0.0, self.task.lift]
        pose = np.concatenate([grip, DOWNWARD_QUATERNION[None]], 1)
        seen = q
        for _ in range(LEADING_STEPS):
            q, v, seen = self._called(q, v, np.zeros((1, max(1, len(self.servos)))), pose)
        height = seen[:, self.held[0] + 2] if self.held else np.zeros(1)
        return q[0], v[0], np.append(self._gripper(seen)[1][0], height)

    def _size(self) -> int:
        return 25 if self.task.held else 10

    def _action_size(self) -> int:
        return 4

    # -- steps -------------------------------------------------------------------------------------------------

    def _act(self, at: Array, action: Array) -> None:
        state, action = self._state, action.astype(np.float32)
        frame, _ = self._gripper(state["seen"][at])
        turn = rotation_quaternions(frame[:, :3, :3])
        turn *= np.where(turn @ DOWNWARD_QUATERNION < 0.0, -1.0, 1.0)[:, None]
        pose = np.concatenate([frame[:, :3, 3] + action[:, :3] * ACTION_REACH, turn + DOWNWARD_QUATERNION], 1)
        opened = action[:, 3:] * np.float32(self.task.fingers)
        controls = state["q"][at][:, self.servos] + opened if self.servos else np.zeros((len(at), 1))
        q, v, seen = self._called(state["q"][at], state["v"][at], controls, pose)
        if not self.task.fingers:
            q[:, self.fingers[0]] = 0.0
            seen = q
        state["q"][at], state["v"][at], state["seen"][at] = q, v, seen

    def _gripper(self, q: Array) -> tuple[Array, Array]:
        """Poses of the gripper (n, 4, 4), and places of its grip (n, 3)."""
        frame = self.body.robot.pose(q, GRIPPER_LINK)
        return frame, frame[:, :3, 3] + frame[:, :3, :3] @ np.array(GRIP_POINT)

    def _observed(self) -> dict[str, Array]:
        q, v, seen = (self._state[x] for x in ("q", "v", "seen"))
        seconds, robot = self.body.seconds, self.body.robot
        _, grip = self._gripper(seen)
        moved = robot.velocity(seen, v, GRIPPER_LINK, point=GRIP_POINT)[:, :3] * seconds
        fingers, opening = q[:, self.fingers[0]], v[:, self.fingers[1]] * seconds
        parts, achieved = [grip, fingers, moved, opening], grip
        if self.held:
            rate = self.held[1]
            frame = robot.pose(seen, OBJECT_LINK)
            achieved, R = frame[:, :3, 3], frame[:, :3, :3]
            along = self.body.told(q, v)[1][:, rate : rate + 3] * seconds
            turning = np.einsum("nij,nj->ni", R, v[:, rate + 3 : rate + 6]) * seconds
            way, angles = achieved - grip, cardan_angles(R)
            parts = [grip, achieved, way, fingers, angles, along - moved, turning, moved, opening]
        goal = self._state["goal"].copy()
        return {"observation": np.concatenate(parts, 1), "achieved_goal": achieved.copy(), "desired_goal": goal}

    def _left(self, achieved: Array, goal: Array) -> Array:
        return norms(achieved - goal)

    def _reached(self, achieved: Array, goal: Array) -> Array:
        return np.asarray(self._left(achieved, goal) < GOAL_RADIUS, float)

    # -- beginnings --------------------------------------------------------------------------------------------

    def _restart(self, mask: Array) -> None:
        """One after another, in the order in which gymnasium-robotics draws."""
        q, v, grip = self.settled
        state = self._state
        state.setdefault("seen", state["q"].copy())
        for k in np.flatnonzero(mask):
            state["q"][k], state["v"][k] = q, v
            if self.held:
                state["q"][k, self.held[0] : self.held[0] + 2] = self._object_place(grip[:2])
            state["goal"][k] = self._drawn_goal(grip)
        state["seen"][mask] = state["q"][mask]

    def _object_place(self, grip: Array) -> Array:
        place = grip
        while np.linalg.norm(place - grip) < LEAST_WAY:
            place = grip + self.np_random.uniform(-self.task.spread, self.task.spread, 2)
        return place

    def _drawn_goal(self, grip: Array) -> Array:
        draw, task = self.np_random, self.task
        goal: Array = grip[:3] + draw.uniform(-task.reach, task.reach, 3)
        if task.held:
            goal += [task.ahead, 0.0, 0.0]
            goal[2] = grip[3]
            if task.air and draw.uniform() < RISING_SHARE:
                goal[2] += draw.uniform(0.0, MAX_RISE)
        return goal
