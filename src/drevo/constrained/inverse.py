"""Efforts and reactions of a motion under constraints, by compiled code, or on arrays what that refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike

from ..errors import DrevoError, NumericsError
from ..io.given import Array, flag
from ..mechanics.acting import has_passive
from ..model.dynamics import Dynamics
from .checks import driven_rates, refuse_undriven, refuse_violation
from .constraint import Constraint
from .dynamics import START, Contacts, asked_state, pushed_by
from .efforts import efforts_function, least_reactions
from .passive import acting_in
from .prepared import NOW, PreparedSet
from .recall import recalled, remember
from .results import ConstrainedEfforts
from .solve import matvec
from .terms import constraint_terms


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
    name, asked = "constrained_inverse_dynamics", (contacts, constraints, actuated)
    plain = t is START and f_ext is None and passive is False
    try:
        if plain and (answer := recalled(robot, name, asked)):
            return answer(q, v, a)  # type: ignore[no-any-return]
    except (ValueError, DrevoError):
        pass  # said below
    given, (x, v, a, time) = asked_state(robot, name, contacts, constraints, q=q, v=v, a=a, t=t)
    driven, pushed = driven_rates(robot.model, actuated), pushed_by(f_ext)
    acts = flag(f"{name}: passive", passive)
    if not pushed and not (acts and has_passive(robot.model)):
        entry = _entry(given, driven)
        with suppress(NumericsError):  # which is said below
            if entry is not None:
                found = entry(x, v, a, time[..., None])
                if plain:
                    remember(robot, name, asked, entry)
                return found
    c = constraint_terms(robot, given.found, x, v, time)
    refuse_violation(matvec(c.jacobian, a), c.gamma, given.names)
    b = robot.inverse_dynamics(x, v, a, **pushed) - acting_in(robot, x, v, acts)
    GT = np.swapaxes(c.jacobian, -1, -2)
    N, left = least_reactions(GT, b, driven)
    refuse_undriven(robot.model, ~driven, left, b)
    tau = b - matvec(GT, N)
    tau[..., ~driven] = 0.0
    return ConstrainedEfforts(tau=tau, reactions=N, rows=given.names, jacobian=c.jacobian, gamma=c.gamma)


def _entry(s: PreparedSet, driven: Array) -> Callable[..., ConstrainedEfforts] | None:
    """What is given from (q, v, a, t) by compiled code, if there is any."""
    f = efforts_function(s, driven)
    if f is None:
        return None
    run, numbers, names, n = f.fast or f, s.number, s.names, s.nv

    def entry(q: Array, v: Array, a: Array, t: Array = NOW) -> ConstrainedEfforts:
        found, jacobian, gamma = run(q, v, a, t) if numbers is None else run(q, v, a, t, numbers)
        return ConstrainedEfforts(names, jacobian, found[..., :n], found[..., n:], gamma)

    return entry
