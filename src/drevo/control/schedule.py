"""Gain scheduling: regulators about equilibria over a grid of joint coordinates, and the law between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.graph.program import Program
from ..compiler.pages.telegin_inputs import with_coordinates
from ..compiler.tracer import Tracer
from ..constraint.kinds import Constraint
from ..constraint.prepared import Contacts
from ..errors import DrevoError, InputError, shown
from ..io.given import Array, finite
from ..io.reprs import result
from ..mechanics.configuration import state
from ..mechanics.scalar import Scalar, Vector, clip, dot
from ..model.draft import did_you_mean, expect_robot, listed
from ..model.dynamics import Dynamics
from .law import HasProgram, Law, deviation, efforts_of
from .linearise import linearise
from .regulate import lqr
from .trim import trim

MAX_GRID_NODES = 10_000  # nodes of a grid
Axes = tuple[tuple[str, Array], ...]
Command = ArrayLike | Callable[[Any], Any]


@result
class Schedule(HasProgram):
    """Regulators about equilibria over a grid of wanted coordinates of some joints.

    axes: the joints and their values; q (*grid, nq), tau (*grid, nv), K (*grid, driven rates, 2 nv); poles: of the
    closed loop at every node. Between nodes all are interpolated linearly along each axis, beyond the ends held.
    dt: of gains for steps, None for continuous ones.
    """

    robot: Dynamics
    axes: Axes
    q: Array
    tau: Array
    K: Array
    poles: Array
    driven: Array
    dt: float | None = None

    def at(self, command: ArrayLike) -> tuple[Array, Array, Array]:
        """q, tau and K of the coordinates wanted (axes,)."""
        s = finite("schedule: command", command, (len(self.axes),)).tolist()
        q, tau, K = self._over(s)
        return np.array(q), np.array(tau), np.array(K).reshape(self.K.shape[-2:])

    def law(self, command: Command) -> ScheduledLaw:
        """tau = law(t, q, v) towards the coordinates wanted: numbers, one for each axis, or a function of t, over
        scalars, that gives them."""
        if not callable(command):
            command = finite("schedule: command", command, (len(self.axes),))
        return ScheduledLaw(self, command)

    def efforts(self, s: Vector, q: Vector, v: Vector) -> list[Scalar]:
        """tau - K (q less its equilibrium, v) over scalars; s: the coordinates wanted."""
        held, tau, K = self._over(s)
        off, n = [*deviation(self.robot.model, held, q), *v], self.K.shape[-1]
        driven = [x for x, moved in zip(tau, self.driven) if moved]
        rows = [K[k * n : (k + 1) * n] for k in range(len(driven))]
        return efforts_of(self.driven, [x - dot(row, off) for x, row in zip(driven, rows)])

    def program(self, name: str = "schedule") -> Program:
        """(s, q, v) -> tau; s: the coordinates wanted."""
        model = self.robot.model
        t = Tracer(name, model)
        s, (q, v) = t.input("s", len(self.axes)), t.state("q", "v")
        t.output("tau", self.efforts(s, q, v))
        wanted = [(joint, "", "coordinate wanted", "") for joint, _ in self.axes]
        return with_coordinates(t.program(robot=self.robot.name, quantity=name, coordinates={"s": wanted}), model)

    def _over(self, s: Vector) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        """q, tau and K, row-major, over scalars."""
        parts = [table.reshape(*self._grid, -1) for table in (self.q, self.tau, self.K)]
        rows = np.concatenate(parts, -1)
        for (_, values), x in zip(self.axes, s):
            rows = _along(values, rows, x)
        flat, sizes = list(rows), [part.shape[-1] for part in parts]
        q, tau = flat[: sizes[0]], flat[sizes[0] : sizes[0] + sizes[1]]
        return q, tau, flat[sizes[0] + sizes[1] :]

    @property
    def _grid(self) -> tuple[int, ...]:
        return tuple(len(values) for _, values in self.axes)


def _along(values: Array, rows: Any, x: Scalar) -> Any:
    """The first axis of a table interpolated: y_0 + sum (y_k+1 - y_k) clip((x - x_k) / (x_k+1 - x_k), 0, 1)."""
    out = list(rows[0].ravel())
    for k in range(len(values) - 1):
        part = clip((x - float(values[k])) * (1.0 / float(values[k + 1] - values[k])), 0.0, 1.0)
        change = (rows[k + 1] - rows[k]).ravel()
        out = [y + d * part for y, d in zip(out, change)]
    return np.array(out, object).reshape(rows.shape[1:])


@result
class ScheduledLaw(Law):
    """The law of a schedule towards a command; see `Schedule.law`."""

    schedule: Schedule
    command: Command

    @property
    def robot(self) -> Dynamics:  # type: ignore[override]
        """The robot of the schedule."""
        return self.schedule.robot

    def over_scalars(self, t: Scalar, q: Vector, v: Vector) -> list[Scalar]:
        """The efforts towards the command at t."""
        s = self.command(t) if callable(self.command) else self.command
        wanted = list(s) if isinstance(s, (list, tuple, np.ndarray)) else [s]
        if len(wanted) != len(self.schedule.axes):
            raise InputError(f"schedule: the command has {len(wanted)} numbers for {len(self.schedule.axes)} axes")
        return self.schedule.efforts([float(x) if isinstance(x, np.floating) else x for x in wanted], q, v)


def schedule(
    robot: Dynamics,
    grid: Mapping[str, ArrayLike],
    Q: ArrayLike,
    R: ArrayLike,
    q0: ArrayLike | None = None,
    actuated: Sequence[str] | None = None,
    dt: float | None = None,
    *,
    contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None,
    f_ext: Mapping[str, ArrayLike] | None = None,
    passive: bool = True,
) -> Schedule:
    """Regulators about the equilibria of a grid {joint: rising values, rad or m}.

    At every node the joints of the grid have their values and the others go to the equilibrium near q0 (by default
    neutral), as trim finds it under contacts, constraints and f_ext. Q, R: see lqr; dt: gains for a
    computer that acts every dt seconds. Raises InputError; NumericsError that names the node.
    """
    expect_robot(robot, "schedule")
    model = robot.model
    if any(j.nq >= 4 for j in model.moving_joints):
        raise InputError(
            "schedule: configurations with quaternions are not interpolated; schedule a robot without"
        )
    axes = _axes(robot, grid)
    (start,) = state(model, "schedule", q0=np.zeros(robot.nq) if q0 is None else q0)
    if start.ndim != 1:
        raise InputError("schedule: q0 must be (nq,)")
    given: dict[str, Any] = {"contacts": contacts, "constraints": constraints, "f_ext": f_ext, "passive": passive}
    at = {j.name: sq.start for j, sq, _ in model.slices()}
    nodes = []
    for node in product(*(values for _, values in axes)):
        q = start.copy()
        for (joint, _), x in zip(axes, node):
            q[at[joint]] = x
        try:
            held = trim(robot, q, actuated=actuated, keep=[joint for joint, _ in axes], **given)
            L = linearise(robot, held.q, np.zeros(robot.nv), held.tau, actuated=actuated, **given)
            nodes.append((held, L, lqr(L if dt is None else L.discretised(dt), Q, R)))
        except DrevoError as error:
            said = ", ".join(f"{joint} = {x:g}" for (joint, _), x in zip(axes, node))
            raise type(error)(f"schedule: at the node {said}: {error}") from None
    shape = tuple(len(values) for _, values in axes)
    tables = zip(*((held.q, held.tau, regulator.K, regulator.poles) for held, _, regulator in nodes))
    q, tau, K, poles = (np.array(x).reshape(*shape, *np.shape(x[0])) for x in tables)
    return Schedule(robot, axes, q, tau, K, poles, nodes[0][1].driven, dt)


def _axes(robot: Dynamics, grid: Any) -> Axes:
    """The joints of a grid and their values, checked."""
    if not isinstance(grid, Mapping) or not grid:
        raise InputError(f"schedule: grid must be {{joint: rising values}}, not {shown(grid)}")
    names = [j.name for j in robot.model.moving_joints if j.nq == 1]
    out = []
    for joint, given in grid.items():
        if joint not in names:
            hint = did_you_mean(joint, names) if isinstance(joint, str) else ""
            raise InputError(
                f"schedule: {shown(joint)} is no joint of one coordinate{hint}; there are {listed(names)}"
            )
        values = finite(f"schedule: values of {joint!r}", given, (None,))
        if len(values) < 2 or not (np.diff(values) > 0.0).all():
            raise InputError(f"schedule: values of {joint!r} must be two or more, rising")
        out.append((joint, values))
    if (nodes := prod(len(values) for _, values in out)) > MAX_GRID_NODES:
        raise InputError(f"schedule: the grid has {nodes:.3g} nodes, more than {MAX_GRID_NODES}")
    return tuple(out)
