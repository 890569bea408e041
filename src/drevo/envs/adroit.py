"""Adroit's hand that opens a door, drives a nail, turns a pen and carries a ball, as in gymnasium-robotics.

Rajeswaran et al. 2018, "Learning complex dexterous manipulation with deep reinforcement learning and
demonstrations".
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from ..mechanics.scalar import Scalar
from ..model.contact import Actuator
from ..robot.face import Robot
from .goals import DrawnEnv, endless, norms
from .ours import AdroitTask, quiet_model, robotics_file
from .rotations import cardan_angles, of_axis, product, rotation_quaternions
from .tasks import Moment, Task

Array = np.ndarray[Any, Any]
HELD = 6  # coordinates of what is held, the last ones
GRASP = ("palm", (0.007, -0.05, 0.07))  # links, and points of theirs
HANDLE = ("latch", (0.15, -0.15, 0.0))
TOOL, NAIL = ("Object", (-0.2, 0.0, -0.04)), ("nail", (0.0, 0.0, 0.101))
NAIL_GOAL = ("nail_board", (0.0, 0.0, 0.01))
NAIL_ZONE = 0.034, 0.005  # m, radius and half the height of what feels blows
GAINS = {"A_AR": (500.0, -200.0), "A_WR": (10.0, -10.0)}  # of control and angle, by how names begin
FINGER_GAINS = 1.0, -1.0
PEN_PLACE = np.array([0.0, -0.2, 0.25])  # m, where the pen should stay
PEN_RADIUS, PEN_FALLEN = 0.075, 0.075  # m, about it, and the height below which it has fallen
LIFT_HEIGHT = 0.04  # m, above which a thing has left the table
TINY_SLOPE = 1e-30  # of a direction
REACHED_REWARD, MISSED_REWARD = 10.0, -0.1  # sparse rewards


@cache
def _adroit(scene: str, moved: str) -> Robot:
    """The robot of a scene; a link stands where an episode says."""
    model = quiet_model(robotics_file(f"adroit_hand/adroit_{scene}.xml"))
    links = tuple(replace(x, mocap=x.name == moved) for x in model.links)
    return Robot(replace(model, links=links, actuators=tuple(map(_servo, model.actuators)), notes=()))


def _servo(x: Actuator) -> Actuator:
    """An actuator as the tasks have it."""
    gain, bias = GAINS.get(x.name[:4], FINGER_GAINS)
    return replace(x, gain=(gain, 0.0, 0.0), bias=(0.0, bias, 0.0))


class AdroitEnv(DrawnEnv):
    """Environments of a task of Adroit's hand.

    Observations are (num_envs, n). An action is n numbers, from -1 to 1 over the range of each servo.
    infos["success"]: where the task is done. "goal" of the state: the pose of what stands elsewhere in every
    episode, or the place where the ball should come.
    """

    task: AdroitTask
    goal_size = 7
    moved = ""  # link that stands where an episode draws it
    size: int  # of an observation

    def _plain_task(self) -> Task:
        robot = _adroit(self.task.scene, self.moved)
        return self._task_of(robot, [f"{self.moved}.pose"] * bool(self.moved), self._left_behind, mujoco=False)

    def _left_behind(self, m: Moment) -> Sequence[Scalar]:
        """Numbers that are kept of the last evaluation, its positions first."""
        return m.seen.positions

    def _space(self) -> Any:
        return endless(self.size)

    def _act(self, at: Array, action: Array) -> None:
        state = self._state
        pose = (state["goal"][at],) if self.moved else ()
        found = self._stepped(state["q"][at], state["v"][at], action, *pose)
        state["q"][at], state["v"][at], state["seen"][at] = found

    def _restart(self, mask: Array) -> None:
        """New episodes, drawn one after another in the order of gymnasium-robotics."""
        state, nq = self._state, self.body.model.nq
        state.setdefault("seen", np.zeros((self.num_envs, dict(self.f.outputs)["observation"][0])))
        self.standing = self._pose(self.moved, self.body.beginning)[0] if self.moved else np.eye(4)
        state["q"][mask], state["v"][mask], state["seen"][mask] = self.body.beginning, 0.0, 0.0
        for k in np.flatnonzero(mask):
            state["goal"][k] = self._drawn(state["q"][k])
        state["seen"][mask, :nq] = state["q"][mask]

    def _judged(self, observed: Any) -> tuple[Array, dict[str, Array]]:
        done, dense = self._rated(observed)
        return dense if self.task.dense else np.where(done, REACHED_REWARD, MISSED_REWARD), {"success": done}

    def _pose(self, link: str, q: Array | None = None) -> Array:
        """Poses (n, 4, 4) of a link at the last evaluation, as the file has what is moved."""
        return self.body.robot.pose(self._state["seen"][:, : self.body.model.nq] if q is None else q, link)

    def _place(self, link: str, point: tuple[float, ...] = (0.0, 0.0, 0.0)) -> Array:
        """Places (n, 3) of a point of a link."""
        frame = self._pose(link)
        return np.asarray(frame[:, :3, 3] + frame[:, :3, :3] @ np.array(point))

    @property
    def shift(self) -> Array:
        """Ways (n, 3) of what is moved from where the file has it."""
        return np.asarray(self._state["goal"][:, :3] - self.standing[:3, 3])

    @abstractmethod
    def _drawn(self, q: Array) -> Array:
        """The goal of an episode; q, where it begins, may be changed."""

    @abstractmethod
    def _rated(self, observed: Array) -> tuple[Array, Array]:
        """Done or not, and the dense reward."""


class DoorEnv(AdroitEnv):
    """A door. observation: the hand but its slide, latch, hinge, palm, handle, the way between, open or not."""

    moved, size = "frame", 39

    def _drawn(self, q: Array) -> Array:
        ranges = (-0.3, -0.2), (0.25, 0.35), (0.252, 0.35)
        return np.array([*(self.np_random.uniform(*x) for x in ranges), 1.0, 0.0, 0.0, 0.0])

    def _observed(self) -> Any:
        q, palm, handle = self._state["q"], self._place(*GRASP), self._place(*HANDLE) + self.shift
        hinge, latch = q[:, -2:-1], q[:, -1:]
        opened = np.where(hinge > 1.0, 1.0, -1.0)
        return np.concatenate([q[:, 1:-2], latch, hinge, palm, handle, palm - handle, opened], 1)

    def _rated(self, observed: Array) -> tuple[Array, Array]:
        angle, v = self._state["q"][:, -2], self._state["v"]
        reward = 0.1 * norms(observed[:, -4:-1]) - 0.1 * (angle - 1.57) ** 2 - 1e-5 * (v * v).sum(1)
        return angle >= 1.35, reward + 2.0 * (angle > 0.2) + 8.0 * (angle > 1.0) + 10.0 * (angle > 1.35)


class HammerEnv(AdroitEnv):
    """A hammer and a nail in a board. observation: hand and nail, the hammer's rates, the palm, the hammer's place
    and angles, the nail's place, and the force of a blow, N, at most 1."""

    moved, size = "nail_board", 46

    def _left_behind(self, m: Moment) -> Sequence[Scalar]:
        return [*m.seen.positions, *m.seen.forces, *m.seen.touches]

    def _drawn(self, q: Array) -> Array:
        place = [*self.standing[:2, 3], self.np_random.uniform(0.1, 0.25)]
        return np.concatenate([place, rotation_quaternions(self.standing[None, :3, :3])[0]])

    def _observed(self) -> Any:
        q, v, hammer = self._state["q"], np.clip(self._state["v"][:, -HELD:], -1.0, 1.0), self._pose(TOOL[0])
        angles, nail = cardan_angles(hammer[:, :3, :3]), self._place(*NAIL) + self.shift
        parts = q[:, :-HELD], v, self._place(*GRASP), hammer[:, :3, 3], angles, nail, self._blow()[:, None]
        return np.concatenate(parts, 1)

    def _blow(self) -> Array:
        """The normal forces, N, on the nail's zone, at most 1."""
        slots, nq = self.body.problem.slots, self.body.model.nq
        ends = [[x.geom.link for x in s.held or ()] for s in slots for _ in range(s.most)]
        on = np.array([NAIL[0] in links for links in ends])
        out = np.array([1.0 if links[0] == NAIL[0] else -1.0 for links in ends if NAIL[0] in links])
        forces, touches = np.split(self._state["seen"][:, nq:], [3 * len(on)], 1)
        force, touch = forces.reshape(-1, len(on), 3)[:, on], touches.reshape(-1, len(on), 6)[:, on]
        way = touch[..., :3] - (self._place(*NAIL) + self.shift)[:, None]
        R = self._pose(NAIL[0])[:, :3, :3]
        felt = _hits(way @ R, (touch[..., 3:] * out[:, None]) @ R, *NAIL_ZONE)
        return np.asarray(np.minimum((felt * (force * touch[..., 3:]).sum(-1)).sum(-1), 1.0))

    def _rated(self, observed: Array) -> tuple[Array, Array]:
        palm, hammer, nail = observed[:, 33:36], observed[:, 36:39], observed[:, 42:45]
        head, left = self._place(*TOOL), norms(nail - self._place(*NAIL_GOAL) - self.shift)
        reward = 0.1 * norms(palm - hammer) - norms(head - nail) - 10.0 * left
        reward += 2.0 * ((hammer[:, 2] > LIFT_HEIGHT) & (head[:, 2] > LIFT_HEIGHT)) - 1e-2 * norms(
            self._state["v"]
        )
        return left < 0.01, reward + 25.0 * (left < 0.02) + 75.0 * (left < 0.01)


class PenEnv(AdroitEnv):
    """A pen. observation: the hand, the pen's place and rates, its axis, the axis that is wanted, how far it is
    from its place, and how far its axis is from the one that is wanted."""

    moved, size = "target", 45

    def _drawn(self, q: Array) -> Array:
        angles = self.np_random.uniform(-1.0, 1.0), self.np_random.uniform(-1.0, 1.0)
        about_x, about_y = (of_axis(np.array([t]), np.eye(3)[[k]])[0] for k, t in enumerate(angles))
        return np.concatenate([self.standing[:3, 3], product(about_x, about_y)])

    def _observed(self) -> Any:
        q, v, pen = self._state["q"], self._state["v"], self._pose("Object")
        w, x, y, z = self._state["goal"][:, 3:].T
        axis, place = pen[:, :3, 2], pen[:, :3, 3]
        wanted = 2.0 * np.stack([x * z + w * y, y * z - w * x, 0.5 - x * x - y * y], 1)
        parts = q[:, :-HELD], place, v[:, -HELD:], axis, wanted, place - PEN_PLACE, axis - wanted
        return np.concatenate(parts, 1)

    def _rated(self, observed: Array) -> tuple[Array, Array]:
        away, alike = norms(observed[:, 39:42]), (observed[:, 33:36] * observed[:, 36:39]).sum(1)
        near = away < PEN_RADIUS
        reward = alike - away + 10.0 * (near & (alike > 0.9)) - 5.0 * (observed[:, 26] < PEN_FALLEN)
        return near & (alike > 0.95), reward + 50.0 * (near & (alike > 0.95))


class RelocateEnv(AdroitEnv):
    """A ball. observation: arm and hand, the ways from the ball to the palm, and from the target to both."""

    goal_size, size = 3, 39

    def _drawn(self, q: Array) -> Array:
        ranges = (-0.15, 0.15), (-0.15, 0.3), (-0.2, 0.2), (-0.2, 0.2), (0.15, 0.35)
        x, y, *goal = (self.np_random.uniform(*bounds) for bounds in ranges)
        q[-HELD : 2 - HELD] = [x, y] - self._pose("Object", self.body.beginning)[0, :2, 3]
        return np.array(goal)

    def _observed(self) -> Any:
        palm, ball, goal = self._place(*GRASP), self._place("Object"), self._state["goal"]
        return np.concatenate([self._state["q"][:, :-HELD], palm - ball, palm - goal, ball - goal], 1)

    def _rated(self, observed: Array) -> tuple[Array, Array]:
        to_ball, to_goal, left = (norms(observed[:, k : k + 3]) for k in (30, 33, 36))
        lifted = self._place("Object")[:, 2] > LIFT_HEIGHT
        reward = 0.1 * to_ball + lifted * (1.0 - 0.5 * to_goal - 0.5 * left)
        return left < 0.1, reward + 10.0 * (left < 0.1) + 20.0 * (left < 0.05)


def _hits(start: Array, way: Array, radius: float, half: float) -> Array:
    """True where rays from points (..., 3) along ways (..., 3) meet a cylinder about z."""
    (x, y, z), (u, v, w) = np.moveaxis(start, -1, 0), np.moveaxis(way, -1, 0)
    along, across = x * u + y * v, np.maximum(u * u + v * v, TINY_SLOPE)
    root = along * along - across * (x * x + y * y - radius * radius)
    steep = np.copysign(np.maximum(abs(w), TINY_SLOPE), w)
    wide, thick = np.sqrt(np.maximum(root, 0.0)) / across, half / abs(steep)
    enters = np.maximum(-along / across - wide, -z / steep - thick)
    leaves = np.minimum(-along / across + wide, -z / steep + thick)
    return np.asarray((root >= 0.0) & (leaves >= np.maximum(enters, 0.0)))


ADROIT = {"door": DoorEnv, "hammer": HammerEnv, "pen": PenEnv, "relocate": RelocateEnv}
