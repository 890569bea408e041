"""Efforts and reactions of a motion under constraints, by compiled code, or on arrays what that refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike

from ..errors import NumericsError
from ..io.given import flag
from ..mechanics.acting import has_passive
from ..model.dynamics import Dynamics
from .checks import driven_rates, refuse_undriven, refuse_violation
from .constraint import Constraint
from .dynamics import START, Contacts, asked_state, pushed_by
from .efforts import efforts_function, least_reactions
from .passive import acting_in
from .prepared import NOW
from .recall import recalled, remember
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
    given, (x, v, a, time) = asked_state(robot, name, contacts, constraints, q=q, v=v, a=a, t=t)
    driven, pushed = driven_rates(robot.model, actuated), pushed_by(f_ext)
    acts = flag(f"{name}: passive", passive)
    if not pushed and not (acts and has_passive(robot.model)):
        f = efforts_function(given, driven)
        with suppress(NumericsError):  # which is said below
            if f is not None:
                found = f(x, v, a, time[..., None], *given.numbers)
                if t is START and f_ext is None and passive is False:
                    asked = contacts, constraints, actuated, t, f_ext, passive
                    remember(robot, name, asked, (given.names,), [f.fast], (NOW, *given.numbers))
                return ConstrainedEfforts(given.names, *found)
    c = constraint_terms(robot, given.found, x, v, time)
    refuse_violation(matvec(c.jacobian, a), c.gamma, given.names)
    b = robot.inverse_dynamics(x, v, a, **pushed) - acting_in(robot, x, v, acts)
    GT = np.swapaxes(c.jacobian, -1, -2)
    N, left = least_reactions(GT, b, driven)
    refuse_undriven(robot.model, ~driven, left, b)
    tau = b - matvec(GT, N)
    tau[..., ~driven] = 0.0
    return ConstrainedEfforts(tau=tau, reactions=N, rows=given.names, jacobian=c.jacobian, gamma=c.gamma)
