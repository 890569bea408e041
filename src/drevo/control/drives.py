"""Drives with dynamics of their own: their states are integrated with the robot, commands are voltages or spools.

  L i' = u - R i - n k w,  effort = n k i                             a direct-current motor behind a gear
  p' = 4 beta / V (Q - D w - C p),  Q = Q0 x sqrt(1 - sign(x) p / ps),  effort = D p      a valve and an actuator

H. E. Merritt 1967, "Hydraulic Control Systems": load pressure p, flow Q through a spool at x.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.graph.program import Program
from ..compiler.formalisms import fastest
from ..compiler.trace import requested
from ..compiler.tracer import Tracer
from ..errors import InputError, NumericsError, shown
from ..io.given import Array, finite, flag, number, positive, whole
from ..mechanics.algorithms.passive import passive as passive_forces
from ..mechanics.configuration import require_unit_quaternions
from ..mechanics.jet import Jet, jet
from ..mechanics.scalar import Scalar, Vector, clip, maximum, sqrt, where
from ..model.draft import did_you_mean, expect_robot
from ..model.dynamics import Dynamics
from ..simulate.motion import coordinate_rates, quaternions, with_unit_quaternions
from .linearise import linearise
from .model import LinearModel

RELIEF = 0.02  # of the supply pressure above the relief pressure: there the valve lets the whole flow through
DRIVE_SUBSTEPS = 10  # of the drives in a step of a robot on the ground
LEAST_DROP = 0.05  # of the supply pressure, for a command: a spool opens no wider for what is left


def _positive(drive: object, *may_be_zero: str) -> None:
    """InputError where a field is no positive number, or none from 0 of those that may be 0."""
    for f in fields(drive):  # type: ignore[arg-type]
        name, x = f"{type(drive).__name__}: {f.name}", getattr(drive, f.name)
        if f.name in may_be_zero:
            number(name, x, "a number from 0", lambda x: 0.0 <= x < math.inf)
        elif x is not None:
            positive(name, x)


@dataclass(frozen=True)
class ElectricDrive:
    """A direct-current motor; its command is a voltage, its state a current, A.

    resistance: Ohm; inductance: H; constant k: N m/A, V s/rad; gear n: turns of the motor for one of the joint,
    rad/m of a slide. voltage: V, of the amplifier; current: A, that it lets through while its voltage reaches
    beyond the motor's own; speed: of the joint without load, which the voltage is kept for, rad/s or m/s; None is
    no limit. The inertia of a rotor is the joint's armature. Raises InputError.
    """

    resistance: float
    inductance: float
    constant: float
    gear: float = 1.0
    voltage: float | None = None
    current: float | None = None
    speed: float | None = None
    states: ClassVar[tuple[str, ...]] = ("current",)

    def __post_init__(self) -> None:
        _positive(self)

    def rates(self, z: Vector, u: Scalar, w: Scalar) -> list[Scalar]:
        """Rate of the state at a command and the joint's rate."""
        most = min(self.voltage or math.inf, self.constant * self.gear * (self.speed or math.inf))
        back, (i,) = self.constant * self.gear * w, z
        if self.current is not None:
            drop = self.resistance * self.current  # L i' <= R (limit - i)
            u = clip(u, back - drop, back + drop)
        u = clip(u, -most, most) if most < math.inf else u
        return [(u - self.resistance * i - back) / self.inductance]

    def effort(self, z: Vector) -> Scalar:
        """N m or N on the joint."""
        return self.constant * self.gear * z[0]

    def command(self, z: Vector, effort: Scalar, w: Scalar) -> Scalar:
        """The voltage that holds an effort at the joint rate w: R effort / (k gear) + k gear w."""
        turned = self.constant * self.gear
        return self.resistance / turned * effort + turned * w


@dataclass(frozen=True)
class HydraulicServo:
    """An electro-hydraulic servo; its command is a spool, -1 to 1, its states the spool and the load pressure, Pa.

    flow Q0: m^3/s, of the open valve without load; supply ps: Pa; displacement D: m^3/rad, of a slide m^2, its
    area; volume V: m^3, of oil on both sides; bulk beta: Pa; leak C: m^3/(s Pa); lag: s, of the spool; relief: Pa,
    beyond which the load pressure is let off. Raises InputError.
    """

    flow: float
    supply: float
    displacement: float
    volume: float
    bulk: float = 1.4e9
    leak: float = 0.0
    lag: float = 0.005
    relief: float | None = None
    states: ClassVar[tuple[str, ...]] = ("spool", "pressure")

    def __post_init__(self) -> None:
        _positive(self, "leak")

    def rates(self, z: Vector, u: Scalar, w: Scalar) -> list[Scalar]:
        """Rates of the states at a command and the joint's rate."""
        x, p = z
        lost = self.leak * p
        if self.relief is not None:
            lost = lost + self.flow / (RELIEF * self.supply) * (p - clip(p, -self.relief, self.relief))
        gained = self.stiffness * (self.passed(z) - self.displacement * w - lost)
        return [(clip(u, -1.0, 1.0) - x) / self.lag, gained]

    @property
    def stiffness(self) -> float:
        """4 beta / V, Pa/m^3."""
        return 4.0 * self.bulk / self.volume

    def passed(self, z: Vector) -> Scalar:
        """Flow through the valve, m^3/s; it reverses where the load has more than the supply pressure."""
        x, p = z
        left = 1.0 - where(x > 0.0, p, -p) / self.supply
        return self.flow * x * where(left > 0.0, sqrt(maximum(left, 1e-12)), -sqrt(maximum(-left, 1e-12)))

    def effort(self, z: Vector) -> Scalar:
        """N m or N on the joint."""
        return self.displacement * z[1]

    def command(self, z: Vector, effort: Scalar, w: Scalar) -> Scalar:
        """The spool under which an effort comes about within some lags."""
        missing = effort / self.displacement - z[1]
        wanted = self.displacement * w + self.leak * z[1] + missing / (2.0 * self.lag * self.stiffness)
        left = 1.0 - where(wanted > 0.0, z[1], -z[1]) / self.supply
        return clip(wanted / (self.flow * sqrt(maximum(left, LEAST_DROP))), -1.0, 1.0)


Drive = ElectricDrive | HydraulicServo


class DrivenMotion(NamedTuple):
    """Times (n,), q (n, nq), v (n, nv), states z (n, nz) and commands u (n, drives) of the drives, tau (n, nv)."""

    t: Array
    q: Array
    v: Array
    z: Array
    u: Array
    tau: Array


class DrivenRobot:
    """A robot with drives on some of its joints: {joint: ElectricDrive or HydraulicServo}; the others turn freely.

    z holds the states of the drives one after the other, u their commands, in the order of `drives`. passive: with
    the damping, dry friction and springs of the joints. Raises InputError.
    """

    def __init__(self, robot: Dynamics, drives: Mapping[str, Drive], passive: bool = True) -> None:
        expect_robot(robot, "DrivenRobot")
        if not isinstance(drives, Mapping) or not drives:
            raise InputError(f"DrivenRobot: drives is {{joint: drive}}, not {shown(drives)}")
        rates = {j.name: sv.start for j, _, sv in robot.model.slices() if j.nv == 1}
        for name, drive in drives.items():
            if name not in rates:
                hint = did_you_mean(str(name), rates)
                raise InputError(f"DrivenRobot: {name!r} is no joint of one freedom of {robot.model.name!r}{hint}")
            if not isinstance(drive, Drive):
                raise InputError(f"DrivenRobot: {name!r} has no drive but {shown(drive)}")
        self.robot, self.drives, self.passive = robot, dict(drives), flag("DrivenRobot: passive", passive)
        self.places = [rates[name] for name in drives]
        self.states = tuple(f"{name}.{x}" for name, drive in drives.items() for x in drive.states)
        asked = ("driven", *self.drives.items(), self.passive)
        self._rates = requested(robot, asked, self._program, lasting=False)

    @property
    def nz(self) -> int:
        """The number of states of the drives."""
        return len(self.states)

    def _each(self, z: Any) -> list[Any]:
        """The states of every drive."""
        ends = np.cumsum([0, *(len(d.states) for d in self.drives.values())])
        return [z[a:b] for a, b in pairwise(ends)]

    def changes(self, v: Any, z: Any, u: Any) -> list[Scalar]:
        """Rates of the states of the drives, (nz,), over scalars."""
        each = zip(self.drives.values(), self._each(z), u, self.places)
        return [x for drive, state, c, k in each for x in drive.rates(state, c, v[k])]

    def efforts(self, z: Any) -> list[Scalar]:
        """Efforts of the drives on the joints, (nv,), over scalars."""
        out: list[Scalar] = [0.0] * self.robot.nv
        for drive, states, k in zip(self.drives.values(), self._each(z), self.places):
            out[k] = drive.effort(states)
        return out

    def commands(self, v: Any, z: Any, tau: Any) -> list[Scalar]:
        """Commands under which the efforts (nv,) of a law come about, over scalars."""
        each = zip(self.drives.values(), self._each(z), self.places)
        return [drive.command(states, tau[k], v[k]) for drive, states, k in each]

    @property
    def driven(self) -> Array:
        """The rates (nv,) that a drive acts on, True or False."""
        return np.isin(np.arange(self.robot.nv), self.places)

    def advanced(self, v: Array, z: Array, tau: Array, dt: float) -> Array:
        """States of the drives (nz,) after dt, s, of commands for the efforts tau (nv,), at joints that keep v."""
        h = dt / DRIVE_SUBSTEPS
        for _ in range(DRIVE_SUBSTEPS):
            u: list[Any] = self.commands(v, z, tau)
            changes: list[Any] = self.changes(v, z, u)
            changes = self.changes(v, z + 0.5 * h * np.array(changes), u)
            z = z + h * np.array(changes)
        return z

    def _program(self) -> Program:
        """The program of the rates of the state of a robot and its drives."""
        model = self.robot.model
        t = Tracer("driven_motion", model, acting=True)
        raw, v, z, u = (
            t.input(name, n)
            for name, n in (("q", model.nq), ("v", model.nv), ("z", self.nz), ("u", len(self.places)))
        )
        q, tau = with_unit_quaternions(model, raw), self.efforts(z)
        if self.passive:
            tau = [x + p for x, p in zip(tau, passive_forces(t.tree, q, v))]
        t.output("dq", coordinate_rates(model, raw, q, v))
        t.output("a", fastest(t.tree, ["forward_dynamics"])["forward_dynamics"](t.tree, q, v, tau))
        t.output("dz", self.changes(v, z, u))
        return t.program()

    def simulate(
        self,
        q0: ArrayLike,
        v0: ArrayLike | None = None,
        command: ArrayLike | Callable[[float, Array, Array, Array], ArrayLike] = 0.0,
        *,
        duration: float,
        dt: float = 1e-4,
        z0: ArrayLike | None = None,
        every: int = 1,
    ) -> DrivenMotion:
        """The motion by Runge and Kutta's method of order 4, a record every `every` steps of dt, s.

        command: numbers, V or parts of the spool's way, one for each drive, or a function (t, q, v, z) of them,
        held over a step. v0 (nv,), z0 (nz,): by default 0. Raises InputError; NumericsError where dt is too long.
        """
        r, name = self.robot, "DrivenRobot.simulate"
        q = finite(f"{name}: q0", q0, (r.nq,))
        require_unit_quaternions(r.model, f"{name}: q0", q)
        v = np.zeros(r.nv) if v0 is None else finite(f"{name}: v0", v0, (r.nv,))
        z = np.zeros(self.nz) if z0 is None else finite(f"{name}: z0", z0, (self.nz,))
        h, every = positive(f"{name}: dt", dt), whole(f"{name}: every", every)
        steps = math.ceil(positive(f"{name}: duration", duration) / h - 1e-9)
        y, records = np.concatenate([q, v, z]), list[tuple[Any, ...]]()
        given = command if callable(command) else partial(_constant, finite(f"{name}: command", command))
        for k in range(steps + 1):
            parts = np.split(y, [r.nq, r.nq + r.nv])
            u = finite(f"{name}: command", given(k * h, *parts))
            u = finite(f"{name}: command", u if u.ndim else np.full(len(self.places), u), (len(self.places),))
            if k % every == 0:
                records.append((k * h, *parts, u, np.array(self.efforts(parts[2]), float)))
            try:
                y = self._step(y, u, h)
            except NumericsError as error:
                raise NumericsError(f"{name}: after t = {k * h:g} s: {error}; take a shorter dt") from None
        return DrivenMotion(*(np.array(column) for column in zip(*records)))

    def _step(self, y: Array, u: Array, h: float) -> Array:
        def slope(y: Array) -> Array:
            return np.concatenate(self._rates(*np.split(y, [r.nq, r.nq + r.nv]), u))

        r = self.robot
        k1 = slope(y)
        k2 = slope(y + 0.5 * h * k1)
        k3 = slope(y + 0.5 * h * k2)
        y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + slope(y + h * k3))
        for k in quaternions(r.model):
            y[k : k + 4] /= np.linalg.norm(y[k : k + 4])
        return np.asarray(y)

    def linearise(self, q: ArrayLike, v: ArrayLike, z: ArrayLike, u: ArrayLike) -> LinearModel:
        """The linear model about a state: (dq, dv, dz)' = A (dq, dv, dz) + B du. Raises InputError."""
        n, name = self.robot.nv, "DrivenRobot.linearise"
        at = [finite(f"{name}: {x}", y, (size,)).tolist() for x, y, size in (
            ("v", v, n), ("z", z, self.nz), ("u", u, len(self.places)))]  # fmt: skip
        every = [j.name for j in self.robot.model.moving_joints]
        L = linearise(self.robot, q, v, self.efforts(at[1]), actuated=every, passive=self.passive)
        slopes = [self._slopes(at, which) for which in range(3)]
        A = np.zeros((2 * n + self.nz, 2 * n + self.nz))
        A[: 2 * n, : 2 * n] = L.A
        A[: 2 * n, 2 * n :] = L.B @ slopes[1][self.nz :]
        A[2 * n :, n : 2 * n], A[2 * n :, 2 * n :] = slopes[0][: self.nz], slopes[1][: self.nz]
        B = np.concatenate([np.zeros((2 * n, len(self.places))), slopes[2][: self.nz]])
        inputs = tuple(f"{joint}.u" for joint in self.drives)
        return LinearModel(A, B, states=(*L.states, *self.states), inputs=inputs)

    def _slopes(self, at: Sequence[Sequence[float]], which: int) -> Array:
        """Slopes (nz + nv, n) of the rates of z and of the efforts by v, z or u."""
        columns = []
        for k in range(len(at[which])):
            moved: list[Any] = [list(x) for x in at]
            moved[which][k] = Jet(moved[which][k], 1.0)
            columns.append([jet(x).d for x in (*self.changes(*moved), *self.efforts(moved[1]))])
        return np.array(columns, float).T


def _constant(u: Array, *state: Any) -> Array:
    return u
