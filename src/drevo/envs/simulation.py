"""The robot of a task: where it comes from, what drives it, and its states in MuJoCo's order."""

from __future__ import annotations

import warnings
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..io.packages import package
from ..mechanics.rotation import from_quaternion
from ..mechanics.scalar import Scalar, Vector, dot, maximum, minimum, sqrt
from ..mechanics.spatial import Vec
from ..model.description import Model
from ..robot.face import Robot
from ..robots.loading import load
from .tasks import Task

Array = np.ndarray[Any, Any]


class TaskRobot:
    """A robot, and where its episodes begin. q and v are Drevo's; `given` and `told` turn those of MuJoCo into
    them and back."""

    def __init__(self, task: Task) -> None:
        self.robot = _loaded(task.source) if isinstance(task.source, str) else task.source()
        self.model: Model = self.robot.model
        self.seconds = self.model.stepping.dt * task.skip
        ranges = [x.control_range or (-inf, inf) for x in self.model.actuators]
        self.controls: Array = np.array(ranges).reshape(-1, 2).T
        self.beginning = np.array([self.model.initial or tuple(self.robot.neutral().tolist())])
        self.initial: Array = self.told(self.beginning, np.zeros((1, self.model.nv)))[0][0]

    def given(self, q: Array, v: Array) -> tuple[Array, Array]:
        """From MuJoCo's states (n, nq), (n, nv); quaternions come to length one."""
        return self._turned(q, v, out=True)

    def told(self, q: Array, v: Array) -> tuple[Array, Array]:
        """To MuJoCo's states."""
        return self._turned(q, v, out=False)

    def _turned(self, q: Array, v: Array, out: bool) -> tuple[Array, Array]:
        turn = drevo_state if out else mujoco_state
        q, v = (np.ascontiguousarray(np.transpose(x)) for x in turn(self.model, list(q.T), list(v.T)))
        return q, v


def mujoco_state(model: Model, q: Vector, v: Vector) -> tuple[list[Scalar], list[Scalar]]:
    """Quaternions w x y z, linear rates of free joints along the world's axes."""
    q, v = list(q), list(v)
    for joint, sq, sv in model.slices():
        if joint.turns:
            x, y, z, w = q[sq.stop - 4 : sq.stop]
            q[sq.stop - 4 : sq.stop] = [w, x, y, z]
            if joint.kind == "free":
                at = slice(sv.start, sv.start + 3)
                v[at] = from_quaternion(x, y, z, w) @ Vec(*v[at])
    return q, v


def drevo_state(model: Model, q: Vector, v: Vector) -> tuple[list[Scalar], list[Scalar]]:
    """Converts MuJoCo's state to ours, the inverse of `mujoco_state`; its quaternions may have any length."""
    q, v = list(q), list(v)
    for joint, sq, sv in model.slices():
        if joint.turns:
            w, x, y, z = q[sq.stop - 4 : sq.stop]
            over = 1.0 / sqrt(w * w + x * x + y * y + z * z)
            q[sq.stop - 4 : sq.stop] = unit = [x * over, y * over, z * over, w * over]
            if joint.kind == "free":
                at = slice(sv.start, sv.start + 3)
                v[at] = from_quaternion(*unit).T @ Vec(*v[at])
    return q, v


def actuator_efforts(model: Model, controls: Vector, q: Vector, v: Vector) -> list[Scalar]:
    """The generalised forces of the actuators: controls and forces cut to their ranges, forces by gains and
    biases, along the joints by gears."""
    slices = {joint.name: (joint, sq.start, sv.start) for joint, sq, sv in model.slices()}
    tau: list[Scalar] = [0.0] * model.nv
    most: dict[int, float] = {}
    for x, control in zip(model.actuators, controls):
        joint, at, rate = slices[x.joint]
        state = 1.0, x.gear * q[at], x.gear * v[rate]
        force = _cut(control, x.control_range) * dot(x.gain, state) + dot(x.bias, state)
        tau[rate] = tau[rate] + x.gear * _cut(force, x.force_range)
        most[rate] = (joint.limit and joint.limit.effort) or inf
    return [_cut(x, (-most[k], most[k])) if k in most else x for k, x in enumerate(tau)]


def _cut(x: Scalar, bounds: tuple[float, float] | None) -> Scalar:
    low, high = bounds or (-inf, inf)
    x = maximum(x, low) if low > -inf else x
    return minimum(x, high) if high < inf else x


def _loaded(name: str) -> Robot:
    """Loads a file of gymnasium's. That other quantities leave out what a robot swims in is no matter here."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        robot = load(asset(name))
    for x in told if not robot.model.stepping.medium else ():
        warnings.warn(x.message, stacklevel=2)
    return robot


def asset(name: str) -> Path:
    """A file of gymnasium's own."""
    gymnasium = package("gymnasium", "drevo.envs", "gymnasium[mujoco]")
    path = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / name
    if not path.is_file():
        raise InputError(
            f"gymnasium {gymnasium.__version__} has no {name}; install gymnasium[mujoco] 1.0 or later"
        )
    return path
