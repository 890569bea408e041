"""Efforts and reactions of a motion under constraints, by compiled code, or on arrays what that refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import NumericsError
from ..io.given import Array, flag
from ..mechanics.configuration import state
from ..model.dynamics import Dynamics
from .checks import driven_rates, refuse_undriven, refuse_violation
from .constraint import Constraint
from .dynamics import START, Contacts, asked_set, pushed_by
from .efforts import efforts_function, least_reactions
from .passive import acting_in
from .prepared import NOW, PreparedSet
from .recall import called, recalled
from .results import ConstrainedEfforts
from .solve import matvec
from .terms import constraint_terms

FOUND = "tau", "reactions", "jacobian", "gamma"  # by compiled code, in this order


@recalled(3, ("contacts", "constraints", "actuated"), ConstrainedEfforts, ("rows",), FOUND)
def constrained_inverse_dynamics(
    robot: Dynamics,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None,
    actuated: Sequence[str] | None = None,
    t: ArrayLike = START,
    f_ext: Mapping[str, ArrayLike] | None = None,
    passive: bool = False,
) -> ConstrainedEfforts:
    """Efforts and reactions of a motion that keeps the constraints; gravity is in (`passive`: joint forces too).

    actuated: names of the driven joints; by default all but a floating base or trunk. Where drives and
    constraints share the load in many ways, the efforts are the least (2-norm), and among equal ones N is.
    Raises NumericsError where the motion violates the constraints or cannot be driven.
    """
    name = "constrained_inverse_dynamics"
    given = asked_set(robot, name, contacts, constraints)
    driven, f = given.form.once((actuated,), lambda: _driven(given, actuated))
    if f is not None and t is START and f_ext is None and passive is False:
        asked = contacts, constraints, actuated, t, f_ext, passive
        found = called(name, given, (q, v, a), [f], (NOW, *given.numbers), asked, (given.names,))
        if found is not None:
            return ConstrainedEfforts(given.names, *found)
    x, v, a, time = state(robot.model, name, q=q, v=v, a=a, t=t)
    pushed, acts = pushed_by(f_ext), flag(f"{name}: passive", passive)
    if f is not None and not pushed and not (acts and given.form.acts):
        with suppress(NumericsError):  # which is said below
            return ConstrainedEfforts(given.names, *f(x, v, a, time[..., None], *given.numbers))
    c = constraint_terms(robot, given.found, x, v, time)
    refuse_violation(matvec(c.jacobian, a), c.gamma, given.names)
    b = robot.inverse_dynamics(x, v, a, **pushed) - acting_in(robot, x, v, acts)
    GT = np.swapaxes(c.jacobian, -1, -2)
    N, left = least_reactions(GT, b, driven)
    refuse_undriven(robot.model, ~driven, left, b)
    tau = b - matvec(GT, N)
    tau[..., ~driven] = 0.0
    return ConstrainedEfforts(tau=tau, reactions=N, rows=given.names, jacobian=c.jacobian, gamma=c.gamma)


def _driven(given: PreparedSet, actuated: Sequence[str] | None) -> tuple[Array, Any]:
    """Which rates have a drive, and what is compiled for them."""
    driven = driven_rates(given.robot.model, actuated)
    f = efforts_function(given, driven)
    return driven, f and (f.fast or f)
