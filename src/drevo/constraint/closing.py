"""States put on constraints: the nearest one (`hold`), or one that closes them from far (`assemble`).

Newton's steps of least dq.M dq. A set that is asked for often has them in machine code; what that refuses is done
again on arrays, which says why, or finds that nothing is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.ways.rolled import is_large
from ..errors import InputError, NumericsError
from ..io.given import Array, asked
from ..mechanics.configuration import state
from ..model.dynamics import Dynamics
from .checks import LONGEST_CLOSING_STEP, driven_rates, limits, newton_on_constraints
from .dynamics import asked_set
from .kinds import Constraint
from .prepared import Closing, Contacts, GapsAt, PreparedSet
from .solve import Cholesky, MassFactor, RankSplit, factor_of, matvec
from .terms import TermsAt, held_at, terms_at

LONGEST_ASSEMBLY_STEP = 0.5  # rad or m: the longest step of an assembly
ASSEMBLY_STARTS, WIDEST_START = (
    12,
    1.5,
)  # of an assembly: how often, and how far (rad or m, 1 sigma) it begins around q
START_SPREADS = np.linspace(0.0, WIDEST_START, ASSEMBLY_STARTS)
REACHED_GAP = 1e-6  # rad or m: what is within reach, at its very edge too, where steps close slowly


@asked
def hold(
    robot: Dynamics, q: ArrayLike, v: ArrayLike, *, contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None, t: ArrayLike = 0.0, tolerance: float = 1e-12, steps: int = 30,
) -> tuple[Array, Array]:  # fmt: skip
    """The state nearest by M that keeps the constraints: f(q, t) = 0 to the tolerance, and f' = 0.

    Newton steps of least dq.M dq, for drift and for small gaps; contacts and welds keep the places and
    orientations of q that they leave open. Raises NumericsError where the steps do not close.
    """
    return held_under(asked_set(robot, "hold", contacts, constraints), q, v, t, tolerance, steps)


def held_under(
    given: PreparedSet, q: ArrayLike, v: ArrayLike, t: ArrayLike, tolerance: float, steps: int
) -> tuple[Array, Array]:
    """`hold` under a set that is checked."""
    robot, until = given.robot, limits("hold", tolerance, steps)
    x, v, time = state(robot.model, "hold", q=q, v=v, t=t)
    held = held_at(robot, given.found, x)
    with suppress(NumericsError):
        state_held = _held_by_kernels(given.closing(held), x, v, time, *until)
        if state_held is not None:
            return state_held
    return project_state(robot, x, v, terms_at(robot, given.found, time, held), given.names, *until)


def _held_by_kernels(
    closing: Closing | None, q: Array, v: Array, t: Array, tolerance: float, steps: int
) -> tuple[Array, Array] | None:
    """`hold` by machine code; None where there is none, or no state is found."""
    if closing is None:
        return None
    look = closing.looks(t)
    for _ in range(steps + 1):
        gap, step = look(q)
        away = np.abs(gap).max(axis=-1) > tolerance
        if not away.any():
            return q, closing.rates(q, v, t)
        dq = step()
        away &= np.abs(dq).max(axis=-1) <= LONGEST_CLOSING_STEP
        if not away.any():
            return None
        if away.all():
            q = closing.form.robot.integrate(q, dq)
        else:
            moved = closing.form.robot.integrate(q, np.where(away[..., None], dq, 0.0))
            q = np.where(away[..., None], moved, q)
    return None


def project_state(
    robot: Dynamics, q: Array, v: Array, terms: TermsAt, names: Sequence[str], tolerance: float = 1e-12,
    steps: int = 30,
) -> tuple[Array, Array]:  # fmt: skip
    """`hold` under constraints given by their terms at (q, v)."""
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
    robot: Dynamics, q: ArrayLike, *, contacts: Contacts = None, constraints: Sequence[Constraint] | None = None,
    keep: Sequence[str] = (), t: float = 0.0, tolerance: float = 1e-12, steps: int = 100,
) -> Array:  # fmt: skip
    """A configuration that closes the loops and constraints, found from q (..., nq), which may be far off.

    keep: names of joints that stay where they are. Newton steps of least dq.M dq, shortened until the gap
    falls; where that gets stuck, again from around q, further and further. Contacts and welds keep the places and
    orientations of q that they leave open. Raises NumericsError where none closes.
    """
    return assembled_under(asked_set(robot, "assemble", contacts, constraints), q, keep, t, tolerance, steps)


def assembled_under(
    given: PreparedSet, q: ArrayLike, keep: Sequence[str], t: float, tolerance: float, steps: int
) -> Array:
    """`assemble` under a set that is checked."""
    robot = given.robot
    x, time = state(robot.model, "assemble", q=q, t=t)
    if time.ndim:
        raise InputError(f"assemble: t has shape {time.shape}; it must be one number")
    free = ~driven_rates(robot.model, keep, "keep")
    until = limits("assemble", tolerance, steps)
    done = []
    for row in x.reshape(-1, robot.nq):
        closed, off = _put_together(given, row, time, free, until)
        if off:
            raise NumericsError(
                f"robot {robot.name!r} cannot be assembled from here: {off}; begin at another configuration, keep "
                "fewer joints, or correct lengths"
            )
        done.append(closed)
    return np.array(done).reshape(x.shape)


def _put_together(
    given: PreparedSet, q: Array, t: Array, free: Array, until: tuple[float, int]
) -> tuple[Array, str]:
    """By machine code where there is some and nothing is kept."""
    robot, held = given.robot, held_at(given.robot, given.found, q)
    closing = given.closing(held) if free.all() else None
    with suppress(NumericsError):
        if closing is not None:
            return _assembled(robot, given.names, closing.looks(t), q, free, *until)
    look = _look(robot, terms_at(robot, given.found, t, held), free)
    return _assembled(robot, given.names, look, q, free, *until)


def out_of_reach(robot: Dynamics, names: Sequence[str], terms: TermsAt, q: Array) -> str:
    """A sentence on the gap that no configuration found from q closes within CLOSE; or ""."""
    free = np.ones(robot.nv, bool)
    off = _assembled(robot, names, _look(robot, terms, free), q, free, REACHED_GAP, 100)[1]
    return f"the target is out of reach: {off}; give one that the robot can reach" if off else ""


def _assembled(
    robot: Dynamics, names: Sequence[str], look: GapsAt, q: Array, free: Array, tolerance: float, steps: int
) -> tuple[Array, str]:
    """A configuration that closes, and ""; or the nearest, and how far it is off."""
    rng, best, nearest = np.random.default_rng(0), np.inf, q
    said = ""
    for spread in START_SPREADS:
        start = robot.integrate(q, np.where(free, spread * rng.normal(size=robot.nv), 0.0))
        with np.errstate(over="ignore"):  # a gap of 1e300 m is one that does not close
            near, gap = _nearer(robot, look, start, tolerance, steps)
        size = np.abs(gap).max(initial=0.0)
        if size <= tolerance:
            return near, ""
        if size < best:
            best, nearest, said = size, near, _worst(names, gap)
    return nearest, f"at best {said} where no small motion brings it closer, from {ASSEMBLY_STARTS} starts"


def _nearer(robot: Dynamics, look: GapsAt, q: Array, tolerance: float, steps: int) -> tuple[Array, Array]:
    """The configuration at which Newton's shortened steps end, and the gap there."""
    gap, step = look(q)
    for _ in range(steps):
        if np.abs(gap).max(initial=0.0) <= tolerance:
            break
        dq = step()
        dq = dq * min(1.0, LONGEST_ASSEMBLY_STEP / np.abs(dq).max(initial=LONGEST_ASSEMBLY_STEP))
        for part in 0.5 ** np.arange(12):
            trial = robot.integrate(q, part * dq)
            then, further = look(trial)
            if np.linalg.norm(then) < np.linalg.norm(gap):
                break
        else:
            break
        q, gap, step = trial, then, further
    return q, gap


def _look(robot: Dynamics, terms: TermsAt, free: Array) -> GapsAt:
    """Gaps and steps on arrays, of the rates that are free."""
    rest = np.zeros(robot.nv)

    def look(q: Array) -> tuple[Array, Callable[[], Array]]:
        c = terms(q, rest)

        def step() -> Array:
            dq, near = rest.copy(), _measure(robot, q, free)
            dq[free] = RankSplit.of(near, c.jacobian[:, free]).solve(rest[free], c.value)[0]
            return dq

        return c.value, step

    return look


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
