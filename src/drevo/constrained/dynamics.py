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

from ..compiler.rolled import is_large
from ..errors import DrevoError, InputError, NumericsError
from ..io.asked import asked
from ..io.given import FLOAT, Array, flag, number
from ..mechanics.configuration import state
from ..mechanics.trunk import refuse_gimbal_lock
from ..model.dynamics import Dynamics
from ..model.messages import expect_robot
from .checks import (
    driven_rates,
    feedback,
    limits,
    newton_on_constraints,
    refuse_contradictions,
    refuse_lost,
)
from .constraint import Constraint
from .passive import acting_in
from .prepared import NOW, PreparedSet, SolvedMotion, prepared_set
from .prepared import Contacts as Contacts
from .recall import called, recalled
from .results import ConstrainedMotion as ConstrainedMotion
from .results import Impact as Impact
from .results import RowSizes
from .solve import Cholesky, MassFactor, RankSplit, factor_of, matvec
from .terms import TermsAt, held_at, terms_at

STRIDE = 0.5  # rad or m: the longest step of an assembly
STARTS, FURTHEST = 12, 1.5  # of an assembly: how often, and how far (rad or m, 1 sigma) it begins around q
CLOSE = 1e-6  # rad or m: what is within reach, at its very edge too, where steps close slowly
START = 0.0  # the time, s, and what else is meant where nothing is given
ON_ROWS = ("_set", "_time"), ("_x", "_held")  # members that are known, and found


@recalled(3, ("contacts", "constraints", "stabilise"), ConstrainedMotion, *ON_ROWS)
def constrained_dynamics(
    robot: Dynamics,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None,
    f_ext: Mapping[str, ArrayLike] | None = None,
    t: ArrayLike = START,
    stabilise: tuple[ArrayLike, ArrayLike] | None = None,
    passive: bool = False,
) -> ConstrainedMotion:
    """Accelerations and reactions under contacts and constraints; gravity is in (`passive`: joint forces too).

    contacts: {"link", "point", "rows": 3 | 6}; rows 6 are force and moment about the point, world axes.
    stabilise (gamma1, gamma0): gamma + gamma1 f' + gamma0 f in place of gamma (Baumgarte), each a number, one
    per row, or a matrix, for states that are off. Dependent rows are allowed: rank says how many count, N has the
    least norm, a is unique, feedback that they do not share is met in the least squares of M^-1. Raises
    NumericsError where rows contradict each other by more than 1e-6 of their size wherever the robot is.
    """
    name = "constrained_dynamics"
    given = asked_set(robot, name, contacts, constraints)
    gains = None if stabilise is None else feedback(stabilise, given.size)
    what = (contacts, constraints, f_ext, t, stabilise, passive) if t is START and f_ext is None else None
    if motion := _at_once(given, q, v, tau, f_ext, t, gains, passive, what):
        return motion
    x, v, tau, time = state(robot.model, name, q=q, v=v, tau=tau, t=t)
    refuse_gimbal_lock(robot.model, x)
    tau = tau + acting_in(robot, x, v, flag(f"{name}: passive", passive))
    with suppress(NumericsError):  # which is said below
        if given.form.compiled:
            times, (solver, behind) = time[..., None], _solver(given, gains)
            found = solver(x, v, _loaded(robot, x, v, tau, f_ext), times, *behind)
            return ConstrainedMotion.found(given, found, times)
    return accelerations(robot, x, v, tau, terms_at(robot, given.found, time), given.names, f_ext, gains)


def _at_once(
    given: PreparedSet, q: Any, v: Any, tau: Any, f_ext: Any, t: Any, gains: Any, passive: Any, asked: Any
) -> ConstrainedMotion | None:
    """What compiled code finds for arguments as they come; None where it refuses them, or others are wanted."""
    now, acting, robot = moment(t), passive is True and given.form.acts, given.robot
    if now is None or type(passive) is not bool or not given.form.plain or (acting and gains is not None):
        return None
    if f_ext is not None:
        try:
            if type(tau) is not np.ndarray or tau.dtype != FLOAT or tau.shape[-1:] != (robot.nv,):
                return None
            tau = _loaded(robot, q, v, tau, f_ext)
        except (ValueError, DrevoError):
            return None
    solver, behind = _solver(given, gains, acting)
    found = called("constrained_dynamics", given, (q, v, tau), [solver], (now, *behind), asked, (given, now))
    return None if found is None else ConstrainedMotion.found(given, found, now)


def asked_set(
    robot: Dynamics, who: str, contacts: Contacts, constraints: Sequence[Constraint] | None
) -> PreparedSet:
    """The set of constraints of a call, checked."""
    expect_robot(robot, who)
    return prepared_set(robot, contacts, constraints)


def moment(t: ArrayLike) -> Array | None:
    """The time as kernels take it, where that is one number as it should be."""
    return NOW if t is START else np.array((t,)) if type(t) is float and isfinite(t) else None


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
    robot: Dynamics,
    q: Array,
    v: Array,
    tau: Array,
    terms: TermsAt,
    names: tuple[str, ...],
    f_ext: Mapping[str, ArrayLike] | None = None,
    gains: tuple[Array, Array] | None = None,
) -> ConstrainedMotion:
    """The same on arrays, under constraints given by their terms at (q, v), and their rows' names."""
    c = terms(q, v)
    gamma = c.gamma
    if gains is not None:
        gamma = gamma + _fed(gains[0], c.rate) + _fed(gains[1], c.value)
    h = robot.bias(q, v, **pushed_by(f_ext))
    s = RankSplit.of(factor_of(robot, q), c.jacobian)
    refuse_contradictions(robot, q, v, terms, c, s, names, gains is not None)
    a, N = s.solve(tau - h, gamma)
    return ConstrainedMotion.of(RowSizes(names, len(names)), a, N, s.rank, c)


def _fed(gain: Array, x: Array) -> Array:
    return matvec(gain, x) if gain.ndim == 2 else np.asarray(gain * x)


def pushed_by(f_ext: Mapping[str, ArrayLike] | None) -> dict[str, Any]:
    """f_ext as a keyword where there is any: without it a faster entry is called."""
    return {} if f_ext is None or (isinstance(f_ext, Mapping) and not f_ext) else {"f_ext": f_ext}


@recalled(2, ("contacts", "constraints"), Impact, *ON_ROWS)
def impact(
    robot: Dynamics,
    q: ArrayLike,
    v: ArrayLike,
    contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None,
    restitution: float = START,
    t: ArrayLike = START,
) -> Impact:
    """The velocity after the constraints strike: v projected by M, f' after = -restitution f' before.

    restitution: from 0, the rows stay together, to 1, they part as fast as they met. Raises InputError,
    NumericsError where rows ask for rates that no motion has.
    """
    given = asked_set(robot, "impact", contacts, constraints)
    rule = "a number from 0, the rows stay together, to 1, no energy is lost"
    e = number("impact: restitution", restitution, rule, lambda x: 0.0 <= x <= 1.0)
    behind = *given.numbers, np.array([e])
    if t is START and given.form.plain:
        what = contacts, constraints, restitution, t
        found = called("impact", given, (q, v), [given.form.impact], (NOW, *behind), what, (given, NOW))
        if found is not None:
            return Impact.found(given, found, NOW)
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
    after, impulses = split.solve(matvec(robot.mass_matrix(x), v), explicit + e * c.rate)
    return Impact.of(RowSizes(given.names, given.size), after, impulses, split.rank, c)


@asked
def hold(
    robot: Dynamics,
    q: ArrayLike,
    v: ArrayLike,
    contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None,
    t: ArrayLike = 0.0,
    tolerance: float = 1e-12,
    steps: int = 30,
) -> tuple[Array, Array]:
    """The state nearest by M that keeps the constraints: f(q, t) = 0 to the tolerance, and f' = 0.

    Newton steps of least dq.M dq, for drift and for small gaps; contacts and welds keep the places and
    orientations of q that they leave open. Raises NumericsError where the steps do not close.
    """
    given = asked_set(robot, "hold", contacts, constraints)
    x, v, time = state(robot.model, "hold", q=q, v=v, t=t)
    terms = terms_at(robot, given.found, time, held_at(robot, given.found, x))
    return project_state(robot, x, v, terms, given.names, *limits("hold", tolerance, steps))


def project_state(
    robot: Dynamics,
    q: Array,
    v: Array,
    terms: TermsAt,
    names: Sequence[str],
    tolerance: float = 1e-12,
    steps: int = 30,
) -> tuple[Array, Array]:
    """The same under constraints given by their terms at (q, v)."""
    q, c = newton_on_constraints(robot, q, terms, tolerance, steps)
    if not np.max(np.abs(c.value), initial=0.0) <= tolerance:
        raise NumericsError(
            f"the constraints cannot be met from here: after Newton's steps {_worst(names, c.value)}; "
            "start closer, or correct the constraint"
        )
    s = RankSplit.of(factor_of(robot, q), c.jacobian)
    return q, s.solve(matvec(robot.mass_matrix(q), v), c.rate)[0]  # c is of rest: its rate is f_t


@asked
def assemble(
    robot: Dynamics,
    q: ArrayLike,
    contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None,
    keep: Sequence[str] = (),
    t: float = 0.0,
    tolerance: float = 1e-12,
    steps: int = 100,
) -> Array:
    """A configuration that closes the loops and constraints, found from q (..., nq), which may be far off.

    keep: names of joints that stay where they are. Newton steps of least dq.M dq, shortened until the gap
    falls; where that gets stuck, again from around q, further and further. Contacts and welds keep the places and
    orientations of q that they leave open. Raises NumericsError where none closes.
    """
    given = asked_set(robot, "assemble", contacts, constraints)
    x, time = state(robot.model, "assemble", q=q, t=t)
    if time.ndim:
        raise InputError(f"assemble: t has shape {time.shape}; it must be one number")
    free = ~driven_rates(robot.model, keep, "keep")
    until = limits("assemble", tolerance, steps)
    done = []
    for row in x.reshape(-1, robot.nq):
        terms = terms_at(robot, given.found, time, held_at(robot, given.found, row))
        closed, off = _assembled(robot, given.names, terms, row, free, *until)
        if off:
            raise NumericsError(
                f"robot {robot.name!r} cannot be assembled from here: {off}; begin at another configuration, keep "
                "fewer joints, or correct lengths"
            )
        done.append(closed)
    return np.array(done).reshape(x.shape)


def out_of_reach(robot: Dynamics, names: Sequence[str], terms: TermsAt, q: Array) -> str:
    """What no configuration that is found from q meets within CLOSE, as a sentence; or ""."""
    off = _assembled(robot, names, terms, q, np.ones(robot.nv, bool), CLOSE, 100)[1]
    return f"the target is out of reach: {off}; give one that the robot can reach" if off else ""


def _assembled(
    robot: Dynamics, names: Sequence[str], terms: TermsAt, q: Array, free: Array, tolerance: float, steps: int
) -> tuple[Array, str]:
    """A configuration that closes, and ""; or the nearest, and how far it is off."""
    rng, best, nearest = np.random.default_rng(0), np.inf, q
    said = ""
    for spread in np.linspace(0.0, FURTHEST, STARTS):
        start = robot.integrate(q, np.where(free, spread * rng.normal(size=robot.nv), 0.0))
        with np.errstate(over="ignore"):  # a gap of 1e300 m is one that does not close
            near, gap = _nearer(robot, terms, start, free, tolerance, steps)
        size = np.abs(gap).max(initial=0.0)
        if size <= tolerance:
            return near, ""
        if size < best:
            best, nearest, said = size, near, _worst(names, gap)
    return nearest, f"at best {said} where no small motion brings it closer, from {STARTS} starts"


def _nearer(
    robot: Dynamics, terms: TermsAt, q: Array, free: Array, tolerance: float, steps: int
) -> tuple[Array, Array]:
    """Where Newton's shortened steps end, and the gap there."""
    rest = np.zeros(robot.nv)
    c = terms(q, rest)
    for _ in range(steps):
        if np.abs(c.value).max(initial=0.0) <= tolerance:
            break
        near = _measure(robot, q, free)
        dq = rest.copy()
        dq[free] = RankSplit.of(near, c.jacobian[:, free]).solve(rest[free], c.value)[0]
        dq *= min(1.0, STRIDE / np.abs(dq).max(initial=STRIDE))
        for part in 0.5 ** np.arange(12):
            trial = robot.integrate(q, part * dq)
            then = terms(trial, rest)
            if np.linalg.norm(then.value) < np.linalg.norm(c.value):
                break
        else:
            break
        q, c = trial, then
    return q, c.value


def _measure(robot: Dynamics, q: Array, free: Array) -> MassFactor:
    """The factor of M, which only says what is near: where it is singular, of what is next to it."""
    if free.all() and is_large(robot.model):
        return factor_of(robot, q)
    M = robot.mass_matrix(q)[np.ix_(free, free)]
    try:
        return Cholesky(np.linalg.cholesky(M))
    except np.linalg.LinAlgError:
        return Cholesky(np.linalg.cholesky(M + 1e-9 * np.diag(np.trace(M) + np.diagonal(M))))


def _worst(names: Sequence[str], value: Array) -> str:
    """The row that is off the most, and by how much."""
    *_, i = np.unravel_index(int(np.argmax(np.abs(value))), value.shape)
    return f"{names[int(i)]} is still off by {np.max(np.abs(value)):.3g}"
