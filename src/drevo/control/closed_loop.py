"""The linear model of a robot under a law: (dq, dv)' = (A + B dtau/d(q, v)) (dq, dv)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..constraint.functions import call_traced
from ..errors import InputError
from ..io.given import Array, finite, number
from ..mechanics.algorithms.derivatives import displaced
from ..mechanics.configuration import require_unit_quaternions
from ..mechanics.jet import Jet, jet
from ..mechanics.tree import build_tree
from ..model.draft import expect_robot
from ..model.dynamics import Dynamics
from ..simulate.control import Control
from .linearise import linearise
from .model import LinearModel


def closed_loop(
    robot: Dynamics, law: Any, q: ArrayLike, v: ArrayLike | None = None, t: float = 0.0, passive: bool = True
) -> LinearModel:
    """The linear model about a state of a robot under a law of drevo.control, or any law(t, q, v) over scalars.

    The state is (dq, dv), (2 nv,), dq on the tangent space; inputs are torques beside those of the law, of every
    joint, N m or N. v: by default 0. passive: with the damping, dry friction and springs of the joints. Raises
    InputError, NumericsError.
    """
    expect_robot(robot, "closed_loop")
    x = finite("closed_loop: q", q, (robot.nq,))
    require_unit_quaternions(robot.model, "closed_loop: q", x)
    u = np.zeros(robot.nv) if v is None else finite("closed_loop: v", v, (robot.nv,))
    tau, slopes = _slopes(robot, Control(law), number("closed_loop: t", t), x, u)
    every = [j.name for j in robot.model.moving_joints]
    L = linearise(robot, x, u, tau, actuated=every, passive=passive)
    return LinearModel(L.A + L.B @ slopes, L.B, states=L.states, inputs=L.inputs, units=L.units)


def _slopes(robot: Dynamics, law: Control, t: float, q: Array, v: Array) -> tuple[Array, Array]:
    """The efforts (nv,) of a law and their slopes (nv, 2 nv), a direction at a time."""
    tree, n = build_tree(robot.model), robot.nv
    plain = {sv.start + k: sq.start + k for j, sq, sv in robot.model.slices() if j.nq == j.nv for k in range(j.nv)}
    columns = []
    for k in range(2 * n):
        step: list[Any] = [0.0] * n
        if k < n:
            step[k] = Jet(0.0, 1.0)
        x: list[Any] = displaced(tree, q.tolist(), step, 1)
        u: list[Any] = v.tolist()
        if k in plain:
            x[plain[k]] = Jet(x[plain[k]], 1.0)
        elif k >= n:
            u[k - n] = Jet(u[k - n], 1.0)
        columns.append(_efforts(law, t, x, u))
    return np.array([y.x for y in columns[0]], float), np.array([[y.d for y in c] for c in columns], float).T


def _efforts(law: Control, t: float, q: list[Any], v: list[Any]) -> list[Jet]:
    """The efforts along one direction."""
    tau: list[Jet] = call_traced("closed_loop: the law", lambda: [jet(y) for y in law(t, q, v)])
    if len(tau) != len(v):
        raise InputError(f"closed_loop: the law gives {len(tau)} efforts for {len(v)} freedoms")
    return tau
