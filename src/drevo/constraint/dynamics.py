"""Dynamics under constraints f(q, t) = 0: accelerations, reactions, the efforts for a motion, landings.

    M a + h = tau + Gamma^T N,   Gamma a + gamma = 0                                    Zaremba (2.17), (2.18)

A set is prepared once; then a call is one of machine code: terms, solve and the decision on the rank. What it
refuses is done again on arrays, which says why, or finds that nothing is wrong. a is the projection of Udwadia and
Kalaba: a and Gamma^T N are unique for any set, N has the least norm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import DrevoError, NumericsError
from ..io.given import FLOAT_DTYPE, Array, asked, flag, number
from ..mechanics.configuration import state
from ..mechanics.reframe import refuse_gimbal_lock
from ..model.draft import expect_robot
from ..model.dynamics import START_TIME, Dynamics
from .checks import feedback, refuse_contradictions, refuse_lost
from .collection import acting_in
from .kinds import Constraint
from .prepared import TIME_ZERO, PreparedSet, SolvedMotion, prepared_set
from .prepared import Contacts as Contacts
from .results import ConstrainedMotion as ConstrainedMotion
from .results import Impact as Impact
from .results import RowSizes
from .solve import RankSplit, factor_of, matvec, require_finite
from .terms import TermsAt, terms_at


@asked
def constrained_dynamics(
    robot: Dynamics, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None, f_ext: Mapping[str, ArrayLike] | None = None,
    t: ArrayLike = START_TIME, stabilise: tuple[ArrayLike, ArrayLike] | None = None, passive: bool = False,
) -> ConstrainedMotion:  # fmt: skip
    """Accelerations and reactions under contacts and constraints; gravity is in (`passive`: joint forces too).

    contacts: {"link", "point", "rows": 3 | 6}; rows 6 are force and moment about the point, world axes.
    stabilise (damping, stiffness): gamma + damping f' + stiffness f in place of gamma (Baumgarte), each a number,
    one per row, or a matrix, for states that are off. Dependent rows are allowed: rank says how many count, N has
    the least norm, a is unique, feedback that they do not share is met in the least squares of M^-1. Raises
    NumericsError where rows contradict each other by more than 1e-6 of their size wherever the robot is.
    """
    given = asked_set(robot, "constrained_dynamics", contacts, constraints)
    gains = None if stabilise is None else feedback(stabilise, given.size)
    return motion_under(given, q, v, tau, f_ext, t, gains, passive)


def motion_under(
    given: PreparedSet, q: ArrayLike, v: ArrayLike, tau: ArrayLike, f_ext: Mapping[str, ArrayLike] | None,
    t: ArrayLike, gains: tuple[Array, Array] | None, passive: bool,
) -> ConstrainedMotion:  # fmt: skip
    """`constrained_dynamics` under a set that is checked."""
    if motion := _at_once(given, q, v, tau, f_ext, t, gains, passive):
        return motion
    name, robot = "constrained_dynamics", given.robot
    x, v, tau, time = state(robot.model, name, q=q, v=v, tau=tau, t=t)
    refuse_gimbal_lock(robot.model, x)
    tau = tau + acting_in(robot, x, v, flag(f"{name}: passive", passive))
    with suppress(NumericsError):  # which is said below
        if given.form.compiled:
            times, (solver, behind) = time[..., None], _solver(given, gains)
            solved = solver(x, v, _loaded(robot, x, v, tau, f_ext), times, *behind)
            return ConstrainedMotion.found(given, solved, times)
    return accelerations(robot, x, v, tau, terms_at(robot, given.found, time), given.names, f_ext, gains)


def _at_once(
    given: PreparedSet, q: Any, v: Any, tau: Any, f_ext: Any, t: Any, gains: Any, passive: Any
) -> ConstrainedMotion | None:
    """The motion by compiled code for arguments as they come; None where it refuses them, or others are wanted."""
    now, acting, robot = moment(t), passive is True and given.form.acts, given.robot
    if now is None or type(passive) is not bool or not given.form.plain or (acting and gains is not None):
        return None
    solver, behind = _solver(given, gains, acting)
    try:
        if f_ext is not None:
            if type(tau) is not np.ndarray or tau.dtype != FLOAT_DTYPE or tau.shape[-1:] != (robot.nv,):
                return None
            tau = _loaded(robot, q, v, tau, f_ext)
        return ConstrainedMotion.found(given, solver(q, v, tau, now, *behind), now)
    except (ValueError, DrevoError):  # said elsewhere
        return None


def asked_set(
    robot: Dynamics, title: str, contacts: Contacts, constraints: Sequence[Constraint] | None
) -> PreparedSet:
    """The set of constraints of a call, checked."""
    expect_robot(robot, title)
    return prepared_set(robot, contacts, constraints)


def moment(t: ArrayLike) -> Array | None:
    """The time as kernels take it, where that is one number as it should be."""
    return TIME_ZERO if t is START_TIME else np.array((t,)) if type(t) is float and isfinite(t) else None


def _solver(
    s: PreparedSet, gains: tuple[Array, Array] | None, acting: bool = False
) -> tuple[Callable[..., SolvedMotion], Sequence[Array]]:
    """A kernel, and what it is given behind the time."""
    if gains is None:
        return s.form.fed("passive") if acting else s.form.motion, s.numbers
    if gains[0].ndim == 1:
        return s.form.fed("rows"), [*s.numbers, *gains]
    return s.form.fed("matrices"), [*s.numbers, *map(np.ravel, gains)]


def _loaded(robot: Dynamics, q: Array, v: Array, tau: Array, f_ext: Mapping[str, ArrayLike] | None) -> Array:
    """tau with the efforts that f_ext does."""
    pushed = pushed_by(f_ext)
    return tau + (robot.bias(q, v) - robot.bias(q, v, **pushed)) if pushed else tau


def accelerations(
    robot: Dynamics, q: Array, v: Array, tau: Array, terms: TermsAt, names: tuple[str, ...],
    f_ext: Mapping[str, ArrayLike] | None = None, gains: tuple[Array, Array] | None = None,
) -> ConstrainedMotion:  # fmt: skip
    """Accelerations and reactions on arrays, under constraints given by their terms at (q, v) and rows' names."""
    c = terms(q, v)
    gamma = c.gamma
    if gains is not None:
        gamma = gamma + _fed(gains[0], c.rate) + _fed(gains[1], c.value)
    h = robot.bias(q, v, **pushed_by(f_ext))
    s = RankSplit.of(factor_of(robot, q), c.jacobian)
    refuse_contradictions(robot, q, v, terms, c, s, names, gains is not None)
    a, N = require_finite(*s.solve(tau - h, gamma))
    return ConstrainedMotion.of(RowSizes(names, len(names)), a, N, s.rank, c)


def _fed(gain: Array, x: Array) -> Array:
    return matvec(gain, x) if gain.ndim == 2 else np.asarray(gain * x)


def pushed_by(f_ext: Mapping[str, ArrayLike] | None) -> dict[str, Any]:
    """f_ext as a keyword where there is any: without it a faster entry is called."""
    return {} if f_ext is None or (isinstance(f_ext, Mapping) and not f_ext) else {"f_ext": f_ext}


@asked
def impact(
    robot: Dynamics, q: ArrayLike, v: ArrayLike, *, contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None, restitution: float = 0.0, t: ArrayLike = START_TIME,
) -> Impact:  # fmt: skip
    """The velocity after the constraints strike: v projected by M, f' after = -restitution f' before.

    q (..., nq), v (..., nv), in SI units. restitution: from 0, the rows stay together, to 1, they part as fast as
    they met. Raises InputError, NumericsError where rows ask for rates that no motion has.
    """
    return impact_under(asked_set(robot, "impact", contacts, constraints), q, v, restitution, t)


def impact_under(
    given: PreparedSet, q: ArrayLike, v: ArrayLike, restitution: float = 0.0, t: ArrayLike = START_TIME
) -> Impact:
    """`impact` under a set that is checked."""
    rule, robot = "a number from 0, the rows stay together, to 1, no energy is lost", given.robot
    plain = type(restitution) is float and 0.0 <= restitution <= 1.0
    e = restitution if plain else number("impact: restitution", restitution, rule, lambda x: 0.0 <= x <= 1.0)
    behind = *given.numbers, np.array((e,))
    if t is START_TIME and given.form.plain:
        kernel = given.form.impact
        with suppress(ValueError, DrevoError):  # said below
            return Impact.found(given, kernel(q, v, TIME_ZERO, *behind), TIME_ZERO)
    x, v, time = state(robot.model, "impact", q=q, v=v, t=t)
    refuse_gimbal_lock(robot.model, x)
    with suppress(NumericsError):  # which is said below
        if given.form.compiled:
            times = time[..., None]
            return Impact.found(given, given.form.impact(x, v, times, *behind), times)
    terms = terms_at(robot, given.found, time)
    c = terms(x, v)
    explicit = c.rate - matvec(c.jacobian, v)  # f_t
    split = RankSplit.of(factor_of(robot, x), c.jacobian)
    refuse_lost(robot, x, v, terms, split, given.names, explicit)
    after, impulses = require_finite(*split.solve(matvec(robot.mass_matrix(x), v), explicit + e * c.rate))
    return Impact.of(RowSizes(given.names, given.size), after, impulses, split.rank, c)
