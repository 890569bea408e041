"""A robot in motion under its actuators: a compiled step, called with controls, for many states at once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from ...codegen.graph.program import Program
from ...compiler.request import requested
from ...compiler.tracer import Tracer
from ...errors import InputError
from ...io.packages import package
from ...mechanics.scalar import Scalar, dot, maximum, minimum
from ...model.contact import Actuator
from ...model.description import Model
from ...robot.face import Robot
from ...robot.loading import load
from ...simulate.contact.pairs import contact_candidates
from ...simulate.contact.step import compile_step
from .features import features, link_points
from .tasks import Seen, Task

Array = np.ndarray[Any, Any]
METHODS = {"Euler": "euler", "RK4": "rk4", "implicitfast": "implicitfast"}


class Simulation:
    """States of a task's robot; `advance` takes controls.

    Inside, q and v are Drevo's; `given` and `told` turn them into MuJoCo's and back.
    """

    def __init__(self, task: Task, threads: int = 1) -> None:
        skip, looks = task.skip, task.looks
        self.robot = _loaded(task.source) if isinstance(task.source, str) else task.source()
        self.model: Model = self.robot.model
        self.skip, self.threads = skip, threads
        stepping = self.model.stepping
        self.seconds = stepping.timestep * skip
        self.drive = Drive(self.robot)
        self.once = skip if self.drive.constant else 1  # steps of a call: forces may follow the state
        ground = task.ground() if task.ground else None
        self.f = compile_step(
            self.robot, dt=stepping.timestep, ground=ground, method=METHODS[stepping.integrator], repeat=self.once,
            last=bool(looks),
        )  # fmt: skip
        self.results: list[Array] | None = None  # of the last call but one, which nobody has
        self.handed: list[Array] | None = None
        self.sight = Sight(self, looks) if looks else None
        initial = self.model.initial or tuple(self.robot.neutral().tolist())
        self.initial = self.told(np.array([initial]), np.zeros((1, self.model.nv)))[0][0]

    def advance(self, q: Array, v: Array, controls: Array) -> tuple[Array, Array, Seen | None]:
        """q, v after the steps under one action, in Drevo's coordinates, and what is seen then."""
        for _ in range(self.skip // self.once):
            tau = self.drive.efforts(controls, q, v)
            q, v, forces, _, *last = self._step(q, v, tau)
        return q, v, self.sight.after(tau, forces, *last) if self.sight else None

    def _step(self, q: Array, v: Array, tau: Array) -> list[Array]:
        """The results stand where those of the step before last did: new memory costs as much as a small step."""
        out, more = self.handed, {"threads": self.threads} if self.threads > 1 else {}
        if out is None or len(out[0]) != len(q) or self.once < self.skip:
            out = list(self.f(q, v, tau, **more))
        else:
            self.f(q, v, tau, out=tuple(out), **more)
        self.handed, self.results = self.results, out
        return out

    # -- MuJoCo's order: quaternions w x y z, rates of free joints along the world's axes --------------------

    def given(self, q: Array, v: Array) -> tuple[Array, Array]:
        """From MuJoCo's states; quaternions come to length one."""
        return self._turned(q, v, out=True)

    def told(self, q: Array, v: Array) -> tuple[Array, Array]:
        """To MuJoCo's states."""
        return self._turned(q, v, out=False)

    def _turned(self, q: Array, v: Array, out: bool) -> tuple[Array, Array]:
        turning = [(j.kind, sq, sv) for j, sq, sv in self.model.slices() if j.turns]
        if not turning:
            return q, v
        q, v = q.copy(), v.copy()
        for kind, sq, sv in turning:
            at = slice(sq.stop - 4, sq.stop)
            quaternion = np.roll(q[:, at], -1 if out else 1, axis=1)
            x = quaternion if out else np.roll(quaternion, -1, axis=1)
            size = np.linalg.norm(x, axis=1, keepdims=True)
            if kind == "free":
                linear = v[:, sv.start : sv.start + 3]
                v[:, sv.start : sv.start + 3] = _rotated(x / size, linear, back=out)
            q[:, at] = quaternion / size if out else quaternion
        return q, v


def _rotated(quaternion: Array, vectors: Array, back: bool) -> Array:
    """Vectors turned by quaternions x y z w, or back."""
    u, w = quaternion[:, :3], quaternion[:, 3:]
    twice = 2.0 * np.cross(u, vectors) * (-1.0 if back else 1.0)
    found: Array = vectors + w * twice + np.cross(u, twice) * (-1.0 if back else 1.0)
    return found


class Sight:
    """What is seen of evaluations: of the bodies of a file ("*"), or of links, "LINK" or "LINK x y z"."""

    def __init__(self, sim: Simulation, looks: Sequence[str]) -> None:
        model = sim.model
        self.nv, self.threads = model.nv, sim.threads
        named = [look.split() for look in looks]
        links = (
            [link.name for link in model.links[1:] if link.inertial] if looks == ("*",) else [x[0] for x in named]
        )
        self.links = links
        self.whole = looks == ("*",)
        offset = tuple(map(float, named[0][1:])) if len(named[0]) == 4 else (0.0, 0.0, 0.0)
        self.f = features(sim.robot, links) if self.whole else link_points(sim.robot, links, offset)
        self.places = len(contact_candidates(model))

    def after(self, tau: Array, forces: Array, q: Array, v: Array, constraint: Array) -> Seen:
        """At the state of the last evaluation, with the forces found there."""
        if not self.whole:
            none = np.empty((len(q), 0))
            return Seen(self.f(q), none, none, none, none, tau, constraint)
        pushes = (forces.reshape(len(q), -1),) if self.places else ()
        bodies, centre, inertias, rates, wrenches = self.f(q, v, *pushes, threads=self.threads)
        return Seen(bodies, centre, inertias, rates, wrenches, tau, constraint)

    def begun(self, q: Array, v: Array) -> Seen:
        """Where an episode begins: no control yet, and no contact counted."""
        none = np.zeros((len(q), self.nv))
        return self.after(none, np.zeros((len(q), self.places, 3)), q, v, none)


class Drive:
    """What controls exert on the rates of a robot, by its actuators."""

    def __init__(self, robot: Any) -> None:
        self.model: Model = robot.model
        self.actuators: Sequence[Actuator] = self.model.actuators
        self.controls = _bounds([x.control_range for x in self.actuators])
        self.constant = not any(any(x.gain[1:]) or any(x.bias[1:]) for x in self.actuators)
        self.efforts = requested(robot, ("efforts", repr(self.actuators)), self._program)

    def _program(self) -> Program:
        """f(controls, q, v) -> tau: controls and forces cut to their ranges, forces by gains and biases, along the
        joints by gears."""
        model, t = self.model, Tracer("efforts")
        u, q, v = t.input("controls", len(self.actuators)), t.input("q", model.nq), t.input("v", model.nv)
        slices = {joint.name: (joint, sq.start, sv.start) for joint, sq, sv in model.slices()}
        tau: list[Scalar] = [0.0] * model.nv
        efforts: dict[int, float] = {}
        for x, control in zip(self.actuators, u):
            joint, at, rate = slices[x.joint]
            state = 1.0, x.gear * q[at], x.gear * v[rate]
            force = _cut(control, x.control_range) * dot(x.gain, state) + dot(x.bias, state)
            tau[rate] = tau[rate] + x.gear * _cut(force, x.force_range)
            efforts[rate] = (joint.limit and joint.limit.effort) or inf
        t.output("tau", [_cut(x, (-efforts[k], efforts[k])) if k in efforts else x for k, x in enumerate(tau)])
        return t.program()


def _cut(x: Scalar, bounds: tuple[float, float] | None) -> Scalar:
    low, high = bounds or (-inf, inf)
    x = maximum(x, low) if low > -inf else x
    return minimum(x, high) if high < inf else x


def _bounds(ranges: Sequence[tuple[float, float] | None]) -> tuple[Array, Array]:
    found = np.array([x or (-np.inf, np.inf) for x in ranges]).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _loaded(name: str) -> Robot:
    """Of a file of gymnasium's. That other quantities leave out what a robot swims in is no matter here."""
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
