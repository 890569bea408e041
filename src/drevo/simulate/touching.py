"""Motions of robots that touch: one compiled call from record to record."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..contact.step import METHODS, compile_step
from ..errors import InputError, NumericsError, one_of, warn_caller
from ..io.asked import asked
from ..io.given import Array, seconds, whole
from ..model.dynamics import Dynamics
from .arguments import by_step, checked_law, start
from .bouncing import simulate_bouncing
from .checks import STEPS, bounded
from .table import Table

UNSETTLED = 1e-6  # m/s: a residual of the exact law that is told


@asked
def simulate_touching(
    robot: Dynamics,
    q0: ArrayLike,
    v0: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    *,
    duration: float,
    dt: float = 1e-3,
    ground: object = "plane",
    law: str = "soft",
    method: str | None = None,
    every: int = 1,
    friction: float | None = None,
    threads: int = 1,
    **more: Any,
) -> Table:
    """The motion from (q0, v0) on a ground; leading dimensions are a batch.

    tau: nothing, constant efforts (..., nv), or efforts held over each step (steps, ..., nv). ground, law, method,
    friction: see `contact.step.compile_step`; more: what a law takes beside, as restitution. With law
    "coulomb" and method "dop853" impacts are found by events: `bouncing.simulate_bouncing`. dt: s, with a record
    every `every` steps. The table has `contact_forces` (n, ..., places, 3), N in world axes, and `residual`
    (n, ...): of the steps up to a record the worst. Raises InputError, ModelError, NumericsError.
    """
    one_of("simulate: law", law, METHODS, InputError)
    if law == "coulomb" and isinstance(method, str) and method == "dop853":
        more = {"duration": duration, "dt": dt, "ground": ground, "friction": friction, **more}
        return simulate_bouncing(robot, q0, v0, tau, **more)
    end, dt = seconds("duration", duration), seconds("dt", dt)
    every = whole("every", every, use=": a record is kept every 1, 2, ... steps")
    bounded(end, dt, STEPS, "steps")
    steps = max(1, math.ceil(end / dt - 1e-9))
    records = -(-steps // every)
    lead, q, v = start(robot, q0, v0, records + 1.0)
    held = _efforts(robot, tau, lead, records * every)
    repeat = every if len(held) == 1 else 1
    named: dict[str, Any] = {"method": method} if method is not None else {}
    f = compile_step(robot, dt=dt, ground=ground, law=law, repeat=repeat, friction=friction, **named, **more)
    out = _stepped(partial(f, threads=threads), q, v, held, records, every // repeat, dt * repeat)
    if law == "coulomb":
        _tell_unsettled(out[3], dt * every)
    shape = (records + 1, *lead)
    qs, vs, forces, residual = (x.reshape(*shape, *x.shape[2:]) for x in out)
    times = dt * every * np.arange(records + 1)
    return Table(
        robot, times, qs, vs, f"{method or METHODS[law][0]} under the {law} law", records * every, passive=True,
        efforts=checked_law(robot, lambda t, *_: held[0].reshape(*lead, robot.nv), lead),
        contact_forces=forces, residual=residual,
    )  # fmt: skip


def _tell_unsettled(residual: Array, interval: float) -> None:
    """A warning where impulses do not fulfil the law."""
    worst = residual.max(initial=0.0)
    if worst > UNSETTLED:
        when = interval * np.unravel_index(int(residual.argmax()), residual.shape)[0]
        told = f"simulate: until t = {when:g} s the impulses of a step leave a residual of {worst:.2g} m/s"
        warn_caller(f"{told}; the table's residual says where: take a shorter step")


def _efforts(robot: Dynamics, tau: Any, lead: tuple[int, ...], steps: int) -> Array:
    """(1 or steps, count, nv)."""
    if callable(tau):
        raise InputError(
            "simulate: on a ground tau is constant or an array by step; call a compiled step in a loop"
        )
    x, stepped = by_step(robot, np.zeros(robot.nv) if tau is None else tau, lead)
    if stepped and len(x) < steps:
        raise InputError(f"tau has {len(x)} steps; the motion takes {steps}")
    return np.ascontiguousarray(x.reshape(len(x), math.prod(lead), robot.nv))


def _stepped(f: Any, q: Array, v: Array, held: Array, records: int, times: int, dt: float) -> tuple[Array, ...]:
    """Records of q, v, forces and the residual, each (records + 1, count, ...); the first has no forces.

    times: calls of f from record to record.
    """
    out: tuple[Array, ...] = ()
    for k in range(records):
        worst = np.zeros(len(q))
        for n in range(k * times, (k + 1) * times):
            try:
                q1, v1, forces, residual = f(q, v, held[min(n, len(held) - 1)])
            except NumericsError as error:
                raise NumericsError(f"simulate: in the call from {n * dt:g} s on {error}") from error
            out = out or tuple(np.zeros((records + 1, *x.shape)) for x in (q1, v1, forces, residual))
            if n == 0:
                out[0][0], out[1][0] = q, v
            q, v, worst = q1, v1, np.maximum(worst, residual)
        for x, y in zip(out, (q, v, forces, worst)):
            x[k + 1] = y
    return out
