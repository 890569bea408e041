"""The robot of a task: where it comes from, what drives it, and its states in MuJoCo's order.

Pictures of an environment: by the plain renderer, or in a window of the browser.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from ..contact.laws.soft.problem import soft_problem
from ..contact.laws.soft.stages import SoftProblem
from ..errors import InputError
from ..ground import ground_of
from ..io.given import Array
from ..io.packages import package
from ..mechanics.algorithms.actuators import control_ranges
from ..mechanics.rotation import from_quaternion
from ..mechanics.scalar import Scalar, Vector, dot, sqrt
from ..mechanics.spatial import Vec
from ..model.description import Model
from ..robot.face import Robot
from ..robot.view.raster import Renderer
from ..robots.loading import load
from .tasks import Task

METHOD_BY_INTEGRATOR = {"Euler": "euler", "RK4": "rk4", "implicitfast": "implicitfast"}


class TaskRobot:
    """A robot, and where its episodes begin. q and v are Drevo's; `given` and `told` turn those of the task, which
    may be in MuJoCo's order, into them and back; `inward` and `outward` do so over scalars."""

    def __init__(self, task: Task) -> None:
        self.skip, self.mujoco, self.random = task.skip, task.mujoco, task.random
        self.ground: Any = ground_of(task.ground() if task.ground else None)  # as it is now
        self.robot = _loaded(task.source) if isinstance(task.source, str) else task.source()
        self.model: Model = self.robot.model
        self.seconds = self.model.stepping.dt * task.skip
        ranges = [x or (-inf, inf) for x in control_ranges(self.model)]
        self.controls: Array = np.array(task.controls or np.array(ranges).reshape(-1, 2).T)
        self.beginning = np.array([self.model.initial or tuple(self.robot.neutral().tolist())])
        self.initial: Array = self.told(self.beginning, np.zeros((1, self.model.nv)))[0][0]

    def __getstate__(self) -> dict[str, Any]:
        return {k: x for k, x in vars(self).items() if k != "problem"}

    @cached_property
    def problem(self) -> SoftProblem:
        """The problem of a step."""
        stepping = self.model.stepping
        method = METHOD_BY_INTEGRATOR[stepping.integrator]
        problem = soft_problem(self.model, self.ground, stepping.dt, method, self.skip)
        return replace(problem, parameters=self.random.patterns)

    def inward(self, q: Vector, v: Vector) -> tuple[list[Scalar], list[Scalar]]:
        """From a state of the task; quaternions come to length one."""
        return drevo_state(self.model, q, v) if self.mujoco else (unit_state(self.model, q), list(v))

    def outward(self, q: Vector, v: Vector) -> tuple[list[Scalar], list[Scalar]]:
        """To a state of the task."""
        return mujoco_state(self.model, q, v) if self.mujoco else (list(q), list(v))

    def given(self, q: Array, v: Array) -> tuple[Array, Array]:
        """From states of the task (n, nq), (n, nv)."""
        return _turned(self.inward, q, v)

    def told(self, q: Array, v: Array) -> tuple[Array, Array]:
        """To states of the task."""
        return _turned(self.outward, q, v)


def _turned(turn: Callable[..., Any], q: Array, v: Array) -> tuple[Array, Array]:
    q, v = (np.ascontiguousarray(np.transpose(x)) for x in turn(list(q.T), list(v.T)))
    return q, v


def unit_state(model: Model, q: Vector) -> list[Scalar]:
    """q with quaternions of length one."""
    out = list(q)
    for joint, at, _ in model.slices():
        if joint.turns:
            part = out[at.stop - 4 : at.stop]
            over = 1.0 / sqrt(dot(part, part))
            out[at.stop - 4 : at.stop] = [x * over for x in part]
    return out


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


RENDER_MODES = ("rgb_array", "human")


class Picture:
    """The robot of an environment as it is drawn."""

    def __init__(self, robot: Any, ground: Any) -> None:
        self.robot, self.renderer = robot, Renderer(robot, ground)
        self.window: Any = None

    def shown(self, q: Array, window: bool) -> Array | None:
        """A picture, or None where a window shows it."""
        if not window:
            return self.renderer.picture(q)
        if self.window is None:
            self.window = self.robot.view(q)
        self.window.q = q
        return None

    def close(self) -> None:
        if self.window is not None:
            self.window.close()
