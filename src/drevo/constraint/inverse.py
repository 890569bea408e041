"""Efforts and reactions of a motion under constraints, by compiled code, or on arrays what that refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.call.function import Function
from ..codegen.store.memo import memoised
from ..errors import DrevoError, NumericsError
from ..io.given import Array, asked, flag
from ..mechanics.configuration import state
from ..model.dynamics import START_TIME, Dynamics
from .checks import driven_rates, refuse_undriven, refuse_violation
from .collection import acting_in
from .dynamics import Contacts, asked_set, pushed_by
from .efforts import efforts_function, least_reactions
from .kinds import Constraint
from .prepared import TIME_ZERO, PreparedSet
from .results import ConstrainedEfforts
from .solve import matvec, require_finite
from .terms import constraint_terms


@asked
def constrained_inverse_dynamics(
    robot: Dynamics, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None, actuated: Sequence[str] | None = None,
    t: ArrayLike = START_TIME, f_ext: Mapping[str, ArrayLike] | None = None, passive: bool = False,
) -> ConstrainedEfforts:  # fmt: skip
    """Efforts and reactions of a motion that keeps the constraints; gravity is in (`passive`: joint forces too).

    actuated: names of the driven joints; by default all but a floating base or trunk. Where drives and
    constraints share the load in many ways, the efforts are the least (2-norm), and among equal ones N is.
    Raises NumericsError where the motion violates the constraints or cannot be driven.
    """
    given = asked_set(robot, "constrained_inverse_dynamics", contacts, constraints)
    return efforts_under(given, driven_of(robot, actuated), q, v, a, f_ext, t, passive)


def driven_of(robot: Dynamics, actuated: Sequence[str] | None) -> Array:
    """`driven_rates`, which for the default are found once."""

    def find() -> Array:
        driven = driven_rates(robot.model, actuated)
        driven.setflags(write=False)  # it is that of many results
        return driven

    return memoised(robot, "driven", find) if actuated is None else find()


def efforts_under(
    given: PreparedSet, driven: Array, q: ArrayLike, v: ArrayLike, a: ArrayLike,
    f_ext: Mapping[str, ArrayLike] | None, t: ArrayLike, passive: bool,
) -> ConstrainedEfforts:  # fmt: skip
    """`constrained_inverse_dynamics` under a set that is checked."""
    name, robot = "constrained_inverse_dynamics", given.robot
    f = memoised(given.form, ("efforts", driven.tobytes()), lambda: _fast(efforts_function(given, driven)))
    if f is not None and t is START_TIME and f_ext is None and passive is False:
        with suppress(ValueError, DrevoError):  # said below
            return ConstrainedEfforts(given.names, *f(q, v, a, TIME_ZERO, *given.numbers))
    x, v, a, time = state(robot.model, name, q=q, v=v, a=a, t=t)
    pushed, acts = pushed_by(f_ext), flag(f"{name}: passive", passive)
    if f is not None and not pushed and not (acts and given.form.acts):
        with suppress(NumericsError):  # which is said below
            return ConstrainedEfforts(given.names, *f(x, v, a, time[..., None], *given.numbers))
    c = constraint_terms(robot, given.found, x, v, time)
    with np.errstate(over="ignore", invalid="ignore"):
        reached = matvec(c.jacobian, a)
    refuse_violation(reached, c.gamma, given.names)
    b = robot.inverse_dynamics(x, v, a, **pushed) - acting_in(robot, x, v, acts)
    GT = np.swapaxes(c.jacobian, -1, -2)
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        N, left = least_reactions(GT, b, driven)
        tau, _ = require_finite(b - matvec(GT, N), N)
    refuse_undriven(robot.model, ~driven, left, b)
    tau[..., ~driven] = 0.0
    return ConstrainedEfforts(tau=tau, reactions=N, rows=given.names, jacobian=c.jacobian, gamma=c.gamma)


def _fast(f: Function | None) -> Callable[..., Any] | None:
    return f and (f.fast or f)
