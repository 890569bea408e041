"""Robots whose body 0 moves as it is told: its joint to the ground is a custom one whose coordinate is the time.

With F = (1, G), G the slope of the pose by time, the equations of joints by formula give inertial forces of the
given motion exactly; rate 1 and acceleration 0 of the time are put in, its row is left out. Where accelerations
are solved for, the clock has a rotor so heavy that what the joints do to it is far below rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..constraint.kinds import Constraint
from ..constraint.prepared import Contacts
from ..errors import InputError, ModelError
from ..io.given import Array, asked_methods, finite, leading, number, numbers
from ..io.packages import package
from ..mechanics.scalar import where
from ..model.description import Joint, JointDynamics, Link, Model
from ..model.formula import POSE_STEPS, faults
from ..model.quantities import CATALOGUE, Quantity, quantity
from ..simulate.control import Control
from ..simulate.integrators import Integrator
from ..simulate.run import Event, simulate
from ..simulate.table import Table
from .parts import formula_of
from .rerooted import base_and_path

CLOCK_ROTOR = 1e30  # kg m^2 in units of the time's rate: accelerations of the clock below 1e-20 of the joints'
ThreeByTime = Callable[[Any], Sequence[Any]]
BASE_MOTION = "with_base_motion"


@asked_methods
class MovingBase:
    """A robot on a body 0 with a given motion, made by `robot.with_base_motion`.

    Every quantity of the catalogue is a method whose last argument is the time t, s (..., or 0), which broadcasts:
    `moved.inverse_dynamics(q, v, a, t)`, `moved.bias(q, v, t)`, `moved.forward_dynamics(q, v, tau, t)`,
    `moved.velocity(q, v, t, link="hand")`. Arguments and results are of the joints alone, (..., nv), of columns
    too: J v is then the velocity less that of the base. Results by link begin with body 0.
    clocked: the robot with the time as its first coordinate, of rate 1 and acceleration 0, for what takes a Robot:
    `drevo.compile(moved.clocked, ...)`, loads, derivatives, pages; `moved.state(t, q, v, a)` gives its states.
    """

    def __init__(self, robot: Any, light: Any, heavy: Any) -> None:
        self.robot, self.clocked, self._driven = robot, light, heavy
        self.name, self.nq, self.nv = light.name, light.nq - 1, light.nv - 1
        self.joint_names: tuple[str, ...] = light.joint_names[1:]
        self.link_names, self.moving_links = light.link_names, light.moving_links

    def __repr__(self) -> str:
        return f"<MovingBase {self.name!r}: nq {self.nq}, nv {self.nv}, body 0 moves as given>"

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in CATALOGUE and hasattr(self.clocked, name):
            raise InputError(
                f"a robot on a base with a given motion has no {name!r}: give its .clocked, which has the time as "
                "its first coordinate, to drevo.write_out, drevo.compile and others that take a robot"
            )
        return partial(self._value, quantity(name))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *CATALOGUE]

    def state(self, t: ArrayLike, *given: ArrayLike) -> tuple[Array, ...]:
        """States of `clocked` from t (...) and q (..., nq), v, a (..., nv), as many of them as are given."""
        return self._joined(("q", "v", "a")[: len(given)], given, t)

    def _joined(self, names: Sequence[str], given: Sequence[ArrayLike], t: ArrayLike) -> tuple[Array, ...]:
        moment = finite("t", t)
        first = {"q": moment, "v": np.ones(()), **dict.fromkeys(("a", "tau", "x"), np.zeros(()))}
        out = []
        for name, x in zip(names, given):
            array = numbers(name, x, (..., self.nq if name == "q" else self.nv))
            lead = leading(BASE_MOTION, t=first[name][..., None], **{name: array})
            parts = np.broadcast_to(first[name], lead)[..., None], np.broadcast_to(array, (*lead, array.shape[-1]))
            out.append(np.concatenate(parts, -1))
        return tuple(out)

    def _value(self, x: Quantity, *given: ArrayLike, t: ArrayLike = 0.0, **more: Any) -> Any:
        """A quantity at states of the joints and a time, given by place or by name."""
        named = [more.pop(name) for name in x.state[len(given) :] if name in more]
        at = [*given, *named]
        if len(at) == len(x.state) + 1 and not named:
            *at, t = at
        if len(at) != len(x.state):
            raise InputError(f"{x.name} on a moving base takes {', '.join(x.state)}, t; {len(at)} were given")
        robot = self._driven if x.inverse else self.clocked
        joined = self._joined(x.state, at, t)
        link = [more.pop("link", None)] if x.name == "operational_space" else []  # where the link stands first
        got = getattr(robot, x.name)(*link, *joined, **more)
        if len(x.outputs) == 1:
            return _joints_of(got, x.outputs[0][1])
        parts = [y if y is None else _joints_of(y, shape) for y, (_, shape) in zip(got, x.outputs)]
        return got._make(parts) if hasattr(got, "_make") else type(got)(parts)

    def simulate(
        self, q0: ArrayLike, v0: ArrayLike | None = None, tau: Any = None, *, t0: float = 0.0,
        duration: float, dt: float | None = None, method: str | Integrator = "rk4", every: int = 1,
        rtol: float = 1e-9, atol: float | None = None, max_steps: int | None = None,
        events: Sequence[Event] = (), contacts: Contacts = None, constraints: Sequence[Constraint] | None = None,
        stabilise: tuple[ArrayLike, ArrayLike] | None = None, passive: bool = True,
        progress: Callable[[float], None] | None = None,
    ) -> CarriedTable:  # fmt: skip
        """The motion of the joints from a state (..., nq), (..., nv) at t0, s: `drevo.simulate` with its options.

        tau, a Control or a function (t, q, v), sees the joints alone, and the time of the base. Raises InputError,
        NumericsError.
        """
        start = number(f"{BASE_MOTION}: t0", t0)
        rates = np.zeros(self.nv) if v0 is None else v0
        q1, v1 = self._joined(("q", "v"), (q0, rates), start)
        v1 = np.broadcast_to(v1, (*leading(BASE_MOTION, q=q1, v=v1), self.nv + 1))
        moved = simulate(
            self._driven, q1, v1, self._efforts(tau), duration=duration, dt=dt, method=method, every=every,
            rtol=rtol, atol=atol, max_steps=max_steps, events=events, contacts=contacts,
            constraints=constraints, stabilise=stabilise, passive=passive, progress=progress,
        )  # fmt: skip
        whole = replace(moved, robot=self.clocked)
        q, v = whole.q[..., 1:], whole.v[..., 1:]
        return CarriedTable(
            self.robot, start + whole.t, q, v, whole.method, whole.steps, whole.rejected, whole.events,
            passive=whole.passive, clocked=whole,
        )  # fmt: skip

    def _efforts(self, tau: Any) -> Any:
        if tau is None:
            return None
        if isinstance(tau, Control):
            return Control(lambda t, q, v: [0.0, *tau(q[0], q[1:], v[1:])])
        if callable(tau):
            return lambda t, q, v: self._joined(("tau",), (tau(q.flat[0], q[..., 1:], v[..., 1:]),), 0.0)[0]
        return self._joined(("tau",), (tau,), 0.0)[0]


@dataclass(frozen=True, eq=False, repr=False)
class CarriedTable(Table):
    """A motion on a moving base: t (n,) s, q (n, ..., nq), v and efforts (n, ..., nv) of the joints.

    clocked: the Table with the time as first coordinate; energy, J, and reactions are those of it.
    """

    clocked: Table = field(kw_only=True, repr=False)

    @property
    def energy(self) -> Array:
        return self.clocked.energy

    @property
    def efforts(self) -> Array:
        return self.clocked.efforts[..., 1:]

    @property
    def reactions(self) -> Array:
        return self.clocked.reactions

    @property
    def rows(self) -> tuple[str, ...]:
        return self.clocked.rows

    @property
    def gaps(self) -> tuple[Array, Array]:
        return self.clocked.gaps

    def at(self, t: float) -> tuple[Array, Array]:
        """(q, v) of the joints at any time of the motion, s."""
        q, v = self.clocked.at(number("at: t", t) - (self.t[0] - self.clocked.t[0]))
        return q[..., 1:], v[..., 1:]


def _joints_of(x: Array, shape: Sequence[int | str]) -> Array:
    """A result without what is the clock's."""
    for axis, size in enumerate(reversed(shape), 1):
        if size == "nv":
            x = np.take(x, range(1, x.shape[-axis]), -axis)
    return x


# --- the description ---------------------------------------------------------------------------------------------


def clocked(model: Model, position: Any, orientation: Any, times: ArrayLike | None) -> tuple[Model, Model]:
    """The model with the time as the first coordinate of body 0, without and with the rotor of the clock."""
    paths = _path("position", position, times), _path("orientation", orientation, times)

    def pose(t: list[Any]) -> dict[str, Any]:
        (x, y, z), (roll, pitch, yaw) = (path(t[0]) for path in paths)
        values = {"x": x, "y": y, "z": z, "yaw": yaw, "pitch": pitch, "roll": roll}
        return {step: values[step] for step in POSE_STEPS if not _is_zero(values[step])}

    try:
        formula = formula_of(f"{BASE_MOTION} of robot {model.name!r}", pose, 1)
    except ModelError as error:
        raise InputError(str(error)) from None
    assert formula is not None
    for fault in faults(formula):
        still = "moves nothing" in fault
        raise InputError(
            f"{BASE_MOTION}: {'the motion does not depend on the time; give f(t)' if still else fault}"
        )
    light = _on_clock(model, Joint("time", "custom", "ground", model.root, formula=formula))
    clock, *rest = light.joints
    return light, replace(light, joints=(replace(clock, dynamics=JointDynamics(armature=CLOCK_ROTOR)), *rest))


def _on_clock(model: Model, clock: Joint) -> Model:
    """The model on that joint, in place of one that carries a floating base."""
    chain = [] if sum(j.parent == model.root for j in model.joints) != 1 else base_and_path(
        model, model.links[-1].name)[0]  # fmt: skip
    gone, bare = {j.name for j in chain}, {j.parent for j in chain[1:]}
    links = tuple(link for link in model.links if link.name not in bare)
    if chain:
        clock = replace(clock, name=_free(clock.name, model.joints), parent=model.root, child=chain[-1].child)
    else:
        ground = Link(_free(clock.parent, model.links))
        clock, links = replace(clock, name=_free(clock.name, model.joints), parent=ground.name), (ground, *links)
    size = sum(j.nq for j in chain)
    kept = {
        "links": links,
        "joints": (clock, *(j for j in model.joints if j.name not in gone)),
        "keyframes": tuple(replace(key, q=(0.0, *key.q[size:])) for key in model.keyframes),
        "initial": model.initial and (0.0, *model.initial[size:]),
    }
    for name in ("actuators", "sensors", "softness"):
        kept[name] = tuple(x for x in getattr(model, name) if x.joint not in gone)
    return replace(model, **kept)  # type: ignore[arg-type]


def _free(name: str, taken: Sequence[Any]) -> str:
    """The name, with lines after it where something is called so."""
    while name in {x.name for x in taken}:
        name += "_"
    return name


def _is_zero(x: Any) -> bool:
    return isinstance(x, (int, float)) and x == 0.0


def _path(argument: str, given: Any, times: ArrayLike | None) -> ThreeByTime:
    """Three scalars by time: of a function, of three numbers, or of a cubic spline through rows."""
    if callable(given):
        return partial(_checked, f"{BASE_MOTION}: {argument}", given)
    rows = finite(f"{BASE_MOTION}: {argument}", given, error=InputError)
    if rows.shape == (3,):
        return lambda t: rows.tolist()
    if rows.ndim != 2 or rows.shape[1] != 3 or times is None:
        rule = "is a function f(t), three numbers, or an array (n, 3) at times= (n,)"
        raise InputError(f"{BASE_MOTION}: {argument} {rule}, not of shape {rows.shape}")
    knots = finite(f"{BASE_MOTION}: times", times, error=InputError)
    if knots.shape != rows.shape[:1] or len(knots) < 4 or (np.diff(knots) <= 0.0).any():
        raise InputError(
            f"{BASE_MOTION}: times are {len(rows)} numbers that rise, at least 4, one for each row of {argument}"
        )
    spline = package("scipy.interpolate", "a spline of given arrays", "scipy").CubicSpline(knots, rows)
    return partial(_spline, knots.tolist(), spline.c.tolist())


def _spline(knots: list[float], c: list[list[list[float]]], t: Any) -> list[Any]:
    """The values of a cubic spline; beyond its ends the cubics there go on."""
    out: list[Any] = [None] * 3
    for i, knot in enumerate(knots[:-1]):
        d = t - knot
        for axis in range(3):
            a, b, e, f = (c[k][i][axis] for k in range(4))
            value = ((a * d + b) * d + e) * d + f
            out[axis] = value if i == 0 else where(d > 0.0, value, out[axis])
    return out


def _checked(call: str, path: ThreeByTime, t: Any) -> Sequence[Any]:
    values = path(t)
    if isinstance(values, (str, dict)) or not hasattr(values, "__len__") or len(values) != 3:
        three = "[roll, pitch, yaw]" if call.endswith("orientation") else "[x, y, z]"
        raise InputError(f"{call} gave {type(values).__name__}; f(t) gives three numbers, {three}")
    return [x if not isinstance(x, np.generic) else float(x) for x in values]
