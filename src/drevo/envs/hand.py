"""The Shadow hand that turns a block, an egg or a pen, as in gymnasium-robotics."""

from __future__ import annotations

from functools import cache
from math import pi
from typing import Any

import numpy as np

from ..errors import NumericsError
from ..robot.face import Robot
from .goals import GoalEnv
from .ours import HandTask, quiet_model
from .rotations import apart, octahedral, of_axis, product, without_turn
from .tasks import Task

Array = np.ndarray[Any, Any]
HAND, OBJECT = 24, 7  # coordinates of the hand, and of what it holds
SETTLING_STEPS, SETTLING_TRIES = 10, 100
PALM_HEIGHT = 0.04  # m, below which the object has fallen off the hand
TARGET_RANGE = np.array([(-0.04, 0.04), (-0.06, 0.02), (0.0, 0.06)])  # m, of goals about the object
START_NOISE = 0.005  # m
DENSE_WEIGHT = 10.0  # of the distance, 1/m, beside the angle


@cache
def _hand(file: str) -> Robot:
    return Robot(quiet_model(file))


class HandEnv(GoalEnv):
    """Environments of a task of the hand.

    observation (num_envs, 61): q and v of the hand, v and q of the object; goals (num_envs, 7): place and
    quaternion w x y z. An action is 20 numbers, from -1 to 1 over the range of each servo.
    """

    task: HandTask
    goal_size = OBJECT

    def _plain_task(self) -> Task:
        return self._task_of(_hand(self.task.source), observe=lambda m: m.q[:1])

    def _size(self) -> int:
        return 2 * HAND + 2 * OBJECT - 1

    def _act(self, at: Array, action: Array) -> None:
        state = self._state
        state["q"][at], state["v"][at], *_ = self._stepped(state["q"][at], state["v"][at], action)

    def _left(self, achieved: Array, goal: Array) -> Array:
        distance, angle = self._away(achieved, goal)
        return DENSE_WEIGHT * distance + angle

    def _shown(self, index: int) -> Array:
        """With the goal beside it."""
        q, v = (x[index : index + 1] for x in self.body.told(self._state["q"], self._state["v"]))
        q = q.copy()
        q[0, HAND + OBJECT :] = self._state["goal"][index] + [0.0 if self.task.place else 0.15, *[0.0] * 6]
        shown: Array = self.body.given(q, v)[0][0]
        return shown

    def _observed(self) -> dict[str, Array]:
        q, v = self.body.told(self._state["q"], self._state["v"])
        held = q[:, HAND : HAND + OBJECT].copy()
        parts = (q[:, :HAND], v[:, :HAND], v[:, HAND : HAND + 6], held)
        goal = self._state["goal"].copy()
        return {"observation": np.concatenate(parts, 1), "achieved_goal": held, "desired_goal": goal}

    def _away(self, achieved: Array, goal: Array) -> tuple[Array, Array]:
        """Distances, m, and angles, rad, between goals; the place is no matter where the goal has none."""
        distance = np.linalg.norm(achieved[..., :3] - goal[..., :3], axis=-1) * self.task.place
        turned = achieved[..., 3:]
        if self.task.held == "pen":
            turned = without_turn(turned, goal[..., 3:])
        return distance, apart(turned, goal[..., 3:])

    def _reached(self, achieved: Array, goal: Array) -> Array:
        near = [x < most for x, most in zip(self._away(achieved, goal), self.task.tolerance)]
        return np.asarray(near[0] & near[1], float)

    def _restart(self, mask: Array) -> None:
        """New episodes where a mask says so: the object settles in the hand, and is drawn again if it falls."""
        at, state = np.flatnonzero(mask), self._state
        seeking = at
        for _ in range(SETTLING_TRIES):
            q, v = self._settled(len(seeking))
            stays = self.body.told(q, v)[0][:, HAND + 2] > PALM_HEIGHT
            state["q"][seeking[stays]], state["v"][seeking[stays]] = q[stays], v[stays]
            seeking = seeking[~stays]
            if not len(seeking):
                break
        else:
            raise NumericsError(f"{self.name}: the {self.task.held} fell off the hand in {SETTLING_TRIES} tries")
        held = self.body.told(state["q"], state["v"])[0][at, HAND : HAND + 3]
        if self.task.place:
            held = held + self.np_random.uniform(*TARGET_RANGE.T, (len(at), 3))
        state["goal"][at] = np.concatenate([held, self._turns(len(at))], 1)

    def _settled(self, count: int) -> tuple[Array, Array]:
        q = np.repeat(self.body.initial[None], count, 0)
        held = q[:, HAND : HAND + OBJECT]
        if self.task.held != "pen":
            held[:, 3:] = product(held[:, 3:], self._turns(count))
        held[:, :3] += self.np_random.normal(0.0, START_NOISE, (count, 3))
        q, v = self.body.given(q, np.zeros((count, self.body.model.nv)))
        for _ in range(SETTLING_STEPS):
            q, v, *_ = self._stepped(q, v, np.zeros((count, self.single_action_space.shape[0])))
        return q, v

    def _turns(self, count: int) -> Array:
        """Quaternions (count, 4) as goals of the task are drawn."""
        draw, kind = self.np_random, self.task.turns
        axis = draw.uniform(-1.0, 1.0, (count, 3)) if kind == "xyz" else np.array([[0.0, 0.0, 1.0]] * count)
        turned = of_axis(draw.uniform(-pi, pi, count), axis)
        return product(turned, octahedral(draw.integers(24, size=count))) if kind == "parallel" else turned
