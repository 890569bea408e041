"""Motions that bounce, by the moments of their impacts: free motion by dop853, impulses where a gap closes.

Steps under Coulomb's law are right to first order in the step; this is right to the tolerances of the integrator,
for few bodies that touch and leave. Contacts that stay closed are not for it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..contact.laws.exact.problem import TouchingRobot, exact_robot
from ..contact.laws.exact.solve import impulses
from ..contact.pairs import warn_of_untouched
from ..errors import InputError, NumericsError
from ..io.given import Array, seconds, whole
from ..mechanics.algorithms.delassus import ContactSlot, impact_problem
from ..mechanics.algorithms.kinematics import WORLD_POSE, body_poses
from ..mechanics.algorithms.passive import passive_tree
from ..mechanics.tree import Tree
from ..model.dynamics import Dynamics
from .run import Event, simulate
from .table import Occurrence, Table

TOUCH = "touch"
NEAR = 1e-9  # m: gaps below it at an impact close with the first one
SLOW = 1e-7  # m/s: what parts more slowly does not part


def simulate_bouncing(
    robot: Dynamics,
    q0: ArrayLike,
    v0: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    *,
    duration: float,
    dt: float | None = None,
    ground: object = "plane",
    friction: float | None = None,
    restitution: float = 1.0,
    impacts: int = 1000,
    **given: Any,
) -> Table:
    """The motion from (q0, v0), whose impacts follow Newton's restitution and Coulomb's friction exactly.

    impacts: how many there may be. given: rtol, atol, as `simulate` takes them. The table's events are the
    impacts, with the state after each. NumericsError where a contact does not part again, and beyond `impacts`.
    """
    m = exact_robot(robot.model, 1.0, ground, friction, restitution)
    warn_of_untouched(robot.model, ground)
    end, most = seconds("duration", duration), whole("impacts", impacts)
    tree = passive_tree(robot.model)
    gaps = [partial(_gap, tree, x) for x in m.slots]
    events = [Event(gap, terminal=True, direction=-1, name=f"{TOUCH} {k}") for k, gap in enumerate(gaps)]
    now, q, v = 0.0, q0, v0
    pieces: list[Table] = []
    starts, found = [0.0], list[Occurrence]()
    while True:
        piece = simulate(robot, q, v, tau, duration=end - now, dt=dt, method="dop853", events=events, **given)
        if piece.q.ndim > 2:
            raise InputError("impacts are found for one motion; of a batch simulate each row by itself")
        pieces.append(piece)
        if not piece.events or now + piece.t[-1] >= end:
            return _joined(robot, pieces, starts, found)
        now, last = now + piece.events[-1].t, piece.events[-1]
        q, v = last.q, _after(m, tree, last, now)
        found.append(Occurrence(last.name, now, np.array(q), v))
        starts.append(now)
        if len(found) > most:
            raise NumericsError(f"simulate: {most} impacts until t = {now:.6g} s; law='coulomb' in steps goes on")


def _gap(tree: Tree, slot: ContactSlot, t: float, q: Array, v: Array) -> float:
    return float(slot.touch(dict(enumerate(body_poses(tree, q.tolist()))) | {-1: WORLD_POSE}).dist)


def _after(m: TouchingRobot, tree: Tree, at: Occurrence, now: float) -> Array:
    """The velocities after the impact."""
    closed = [
        x for k, x in enumerate(m.slots) if at.name == f"{TOUCH} {k}" or _gap(tree, x, now, at.q, at.v) < NEAR
    ]
    given = [list(x[:, None]) for x in (at.q, at.v)]
    free = impact_problem(tree, given[0], given[1], closed, m.stepping.restitution)
    lam = impulses(free.problem, 1e-13).lam
    v = np.array([float(np.asarray(x).reshape(())) for x in _numbers(free.pushed(list(lam)))])
    parting = impact_problem(tree, given[0], list(v[:, None]), closed, 0.0).problem.b[::3]
    if min(float(np.asarray(x).reshape(-1)[0]) for x in parting) < SLOW:
        raise NumericsError(
            f"simulate: at t = {now:.6g} s a contact does not part again; dop853 finds impacts alone, steps with "
            "method='moreau' go on"
        )
    return v


def _numbers(values: list[Any]) -> list[Any]:
    return [np.asarray(x).reshape(-1)[0] for x in values]


def _joined(robot: Dynamics, pieces: list[Table], starts: list[float], found: list[Occurrence]) -> Table:
    """One table; where two pieces meet, the state after the impact follows that before it."""
    t = np.concatenate([start + piece.t for start, piece in zip(starts, pieces)])
    q, v = (np.concatenate([getattr(piece, x) for piece in pieces]) for x in "qv")
    steps, rejected = (sum(getattr(piece, x) for piece in pieces) for x in ("steps", "rejected"))
    return Table(robot, t, q, v, "dop853", steps, rejected, tuple(found))
