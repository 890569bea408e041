"""Controllers of joints: computed torque, proportional and derivative, with an integral, gravity compensation.

Spong, Hutchinson, Vidyasagar 2006, Robot Modeling and Control, 6.3 (PID, anti-windup by clamping), 8.1 (PD with
gravity compensation), 8.3 (inverse dynamics, or computed torque).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.formalisms import common_algorithm
from ..constraint.functions import call_traced
from ..errors import InputError
from ..io.given import Array, finite, flag, number, numbers
from ..io.reprs import brief
from ..mechanics.configuration import require_unit_quaternions
from ..mechanics.jet import Jet, jet
from ..mechanics.scalar import Scalar, Vector
from ..mechanics.tree import build_tree
from ..model.draft import expect_robot
from ..model.dynamics import Dynamics
from .law import Law, deviation

Reference = ArrayLike | Callable[[Any], Any]


@brief
@dataclass(frozen=True)
class JointController(Law):
    """A law that follows a reference: a configuration (nq,), or a function of time over scalars.

    The function gives q, whose derivatives are then taken, or (q, v, a). kp, kd: a number, or one for each rate.
    """

    robot: Dynamics
    reference: Any
    kp: tuple[float, ...]
    kd: tuple[float, ...]

    def wanted(self, t: Scalar) -> tuple[Vector, Vector, Vector]:
        """q (nq,), v and a (nv,) of the reference at a time."""
        n = self.robot.nv
        if not callable(self.reference):
            return list(self.reference), [0.0] * n, [0.0] * n
        given = call_traced("reference", lambda: self.reference(t))
        if isinstance(given, tuple) and len(given) == 3:
            q, v, a = (list(x) for x in given)
        elif self.robot.nq == n:
            moving = call_traced("reference", lambda: [jet(x) for x in self.reference(Jet(t, 1.0))])
            q, v, a = ([getattr(x, name) for x in moving] for name in ("x", "d", "dd"))
        else:
            raise InputError("reference: joints have quaternions; give (q, v, a) of a time in place of q alone")
        for name, x, size in (("q", q, self.robot.nq), ("v", v, n), ("a", a, n)):
            if len(x) != size:
                raise InputError(f"reference: {name} has {len(x)} values at a time; this robot has {size}")
        return q, v, a

    def errors(self, t: Scalar, q: Vector, v: Vector) -> tuple[list[Scalar], list[Scalar], Vector]:
        """Errors of position and velocity on the tangent space, and the acceleration of the reference."""
        at, rate, a = self.wanted(t)
        return [-x for x in deviation(self.robot.model, at, q)], [x - y for x, y in zip(rate, v)], a

    def corrections(self, t: Scalar, q: Vector, v: Vector) -> tuple[list[Scalar], Vector]:
        """kp e + kd e', and the acceleration of the reference."""
        e, de, a = self.errors(t, q, v)
        return [p * x + d * y for p, d, x, y in zip(self.kp, self.kd, e, de)], a


class ComputedTorque(JointController):
    """tau = M (a_ref + kd e' + kp e) + h: the errors then follow e'' + kd e' + kp e = 0."""

    def over_scalars(self, t: Scalar, q: Vector, v: Vector) -> list[Scalar]:
        more, a = self.corrections(t, q, v)
        tree = build_tree(self.robot.model)
        tau: list[Scalar] = common_algorithm("inverse_dynamics")(tree, q, v, [x + y for x, y in zip(a, more)])
        return tau


@brief
@dataclass(frozen=True)
class ProportionalDerivative(JointController):
    """tau = kp e + kd e', with the torques that hold the robot at rest where `gravity` is True."""

    gravity: bool = True

    def over_scalars(self, t: Scalar, q: Vector, v: Vector) -> list[Scalar]:
        more, _ = self.corrections(t, q, v)
        if not self.gravity:
            return more
        g = common_algorithm("gravity")(build_tree(self.robot.model), q)
        return [x + y for x, y in zip(g, more)]


@brief
@dataclass
class ProportionalIntegralDerivative:
    """tau = kp e + ki integral of e + kd e' (+ gravity), sampled: a law (t, q, v) of arrays for one robot.

    Torques beyond `limits` are cut, and the integral of a joint stands still while its torque is cut and the error
    would drive it further (anti-windup by clamping). Before another motion: `reset()`.
    """

    law: ProportionalDerivative
    ki: Array
    limits: dict[int, float]  # by rate, of those that have one
    integral: Array = field(init=False)
    arrays_only = True  # for drevo.simulate.Control

    def __post_init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the integral and the time of the last sample."""
        self.integral = np.zeros(len(self.ki))
        self._last: float | None = None

    def __call__(self, t: float, q: ArrayLike, v: ArrayLike) -> Array:
        time = number("pid: t", t)
        x, u = finite("pid: q", q, (self.law.robot.nq,)), finite("pid: v", v, (self.law.robot.nv,))
        error = np.array(self.law.errors(time, list(x), list(u))[0])
        dt = 0.0 if self._last is None else max(time - self._last, 0.0)
        self._last = time
        grown = self.integral + dt * error
        tau = self.law(time, x, u) + self.ki * grown
        held = (self._cut(tau) != tau) & (np.sign(tau) == np.sign(self.ki * error))
        self.integral = np.where(held, self.integral, grown)
        return self._cut(tau + self.ki * (self.integral - grown))

    def _cut(self, tau: Array) -> Array:
        """Torques within the limits."""
        out = tau.copy()
        for k, most in self.limits.items():
            out[k] = min(max(tau[k], -most), most)
        return out


# --- as users make them -----------------------------------------------------------------------------------------


def computed_torque(robot: Dynamics, reference: Reference, kp: ArrayLike, kd: ArrayLike) -> ComputedTorque:
    """The law under which a robot follows a reference with errors that follow e'' + kd e' + kp e = 0.

    reference: a configuration (nq,), or a function of time that gives q, or (q, v, a), by + - * / and drevo.sin
    and its like. kp (1/s^2), kd (1/s): a number, or one for each of the nv rates. All joints are driven. It is
    called as tau(t, q, v), simulated, compiled by drevo.simulate.Control, exported by its c(). Raises InputError.
    """
    return ComputedTorque(*_checked("computed_torque", robot, reference, kp, kd))


def pd(
    robot: Dynamics, reference: Reference, kp: ArrayLike, kd: ArrayLike, gravity: bool = True
) -> ProportionalDerivative:
    """The law tau = kp e + kd e', with gravity compensation unless gravity=False; arguments as of computed_torque.

    kp in N m/rad or N/m, kd in N m s/rad or N s/m.
    """
    return ProportionalDerivative(*_checked("pd", robot, reference, kp, kd), flag("pd: gravity", gravity))


def pid(
    robot: Dynamics,
    reference: Reference,
    kp: ArrayLike,
    ki: ArrayLike,
    kd: ArrayLike,
    limits: ArrayLike | None = None,
    gravity: bool = True,
) -> ProportionalIntegralDerivative:
    """A sampled law as `pd` has, with ki times the integral of the error, and torques within limits (nv,).

    limits: by default those of the robot's joints. It holds an integral: one law for one motion at a time, with
    steps of a fixed dt. ki in N m/(rad s) or N/(m s). Raises InputError.
    """
    law = pd(robot, reference, kp, kd, gravity)
    most = getattr(robot, "max_effort", np.full(robot.nv, np.inf)) if limits is None else limits
    every = enumerate(_gains("pid: limits", most, robot.nv, unbounded=True))
    bounds = {k: x for k, x in every if x < np.inf}
    return ProportionalIntegralDerivative(law, np.array(_gains("pid: ki", ki, robot.nv)), bounds)


def gravity_compensation(robot: Dynamics, kd: ArrayLike = 0.0) -> ProportionalDerivative:
    """The law tau = g(q) - kd v: the robot rests wherever it is put. kd in N m s/rad or N s/m."""
    expect_robot(robot, "gravity_compensation")
    neutral = np.zeros(robot.nq)
    for j, sq, _ in robot.model.slices():
        neutral[sq.stop - 1] = 1.0 if j.turns else 0.0
    return pd(robot, neutral, 0.0, kd)


def _checked(
    name: str, robot: Dynamics, reference: Reference, kp: ArrayLike, kd: ArrayLike
) -> tuple[Dynamics, Any, tuple[float, ...], tuple[float, ...]]:
    expect_robot(robot, name)
    if robot.model.closed:
        raise InputError(f"{name}: robot {robot.name!r} has loops, which have more joints than motions; use track")
    if not callable(reference):
        reference = finite(f"{name}: reference", reference, (robot.nq,), error=InputError)
        require_unit_quaternions(robot.model, f"{name}: reference", reference, InputError)
        reference = tuple(reference.tolist())
    gains = (_gains(f"{name}: {x}", gain, robot.nv) for x, gain in (("kp", kp), ("kd", kd)))
    first, second = gains
    law = robot, reference, first, second
    if callable(reference):
        call_traced(name, lambda: ComputedTorque(*law).wanted(0.0))  # what is wrong with it is said now
    return law


def _gains(title: str, given: ArrayLike, n: int, unbounded: bool = False) -> tuple[float, ...]:
    """nv numbers from 0 on, from one for all or from nv."""
    x = numbers(title, given) if unbounded else finite(title, given, error=InputError)
    if x.shape not in ((), (n,)) or not (x >= 0.0).all():
        raise InputError(f"{title} is a number from 0 on, or {n} of them, one for each rate")
    return tuple(float(y) for y in np.broadcast_to(x, (n,)))
