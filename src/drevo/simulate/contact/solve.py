"""The impulses of Signorini's and Coulomb's laws on arrays: sweeps, then Newton's method for what they leave."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...mechanics.algorithms.coulomb import (
    ImpulseProblem,
    RowLaw,
    blocks,
    gauss_seidel,
    natural_map,
    residual,
)
from ...mechanics.algorithms.coulomb_newton import ENOUGH, newton_step

Array = np.ndarray[Any, Any]
TOLERANCE = 1e-9  # m/s: of the residual


class Attempt(NamedTuple):
    """Sweeps, from zero or from where the attempt before it stopped, then Newton's method on the natural map of a
    rho, times its own."""

    sweeps: int
    cold: bool
    rho: float


# Of 7000 states of a robot on two feet of four points each (rank 12 of 24) 38 need the second, 5 the third, 3 the
# fourth; of 3000 landings on straight legs 272, 73, 42, and 30 are left
ATTEMPTS = (
    Attempt(7, True, 1.0),
    Attempt(50, True, 30.0),
    Attempt(100, True, 100.0),
    Attempt(50, False, 3.0),
    Attempt(200, True, 300.0),
)
STEPS = 25  # of Newton's, each time
HALVES = 6  # how often a step of it is halved
EASE, STIFFEN = 0.3, 10.0  # of the damping, after a whole step and after none


class Impulses(NamedTuple):
    """lam (n, B), residual (B,) m/s; sweeps and Newton's steps that each problem took (B,)."""

    lam: Array
    residual: Array
    sweeps: Array
    steps: Array


def impulses(p: ImpulseProblem, tolerance: float = TOLERANCE, first: int = ATTEMPTS[0].sweeps) -> Impulses:
    """The impulses and the residual that they have. first: sweeps before Newton's method.

    Where mu couples contacts strongly there may be several solutions: this is one of them.
    """
    count = max([np.size(x) for x in p.b], default=1)
    lam = np.zeros((len(p.b), count))
    sweeps, steps = np.zeros(count, int), np.zeros(count, int)
    left = np.full(count, np.inf) if len(p.b) else np.zeros(count)
    todo = left > tolerance
    for k, way in enumerate(ATTEMPTS):
        if not todo.any():
            break
        some, at = _part(p, todo), np.flatnonzero(todo)
        x = np.zeros((len(p.b), len(at))) if way.cold else lam[:, at]
        x, used = _swept(some, x, way.sweeps if k else first, tolerance)
        x, r, taken = _newton(some, x, tolerance, 1.0 / way.rho)
        better = ~(r >= left[at])
        lam[:, at[better]], left[at[better]] = x[:, better], r[better]
        sweeps[at] += used
        steps[at] += taken
        todo = left > tolerance
    return Impulses(lam, left, sweeps, steps)


def _part(p: ImpulseProblem, which: Array) -> ImpulseProblem:
    """The problems of some rows of the batch."""

    def of(x: Any) -> Any:
        return np.broadcast_to(x, which.shape)[which]

    laws: list[RowLaw] = []
    for law in p.laws:
        laws.append(type(law)(law.at, *map(of, law[1:])))
    return ImpulseProblem([[of(x) for x in row] for row in p.G], [of(x) for x in p.b], laws)


def _swept(p: ImpulseProblem, lam: Array, most: int, tolerance: float) -> tuple[Array, Array]:
    """After sweeps, of each problem until they change less than the tolerance; how many it took."""
    prepared, count = blocks(p), lam.shape[1]
    search: Any = [np.full(count, 0.5) for _ in p.laws]
    used, going = np.zeros(count, int), np.ones(count, bool)
    for _ in range(most):
        new, after, change = gauss_seidel(p, prepared, list(lam), search)
        lam = np.where(going, np.array(new), lam)
        search = [np.where(going, x, y) for x, y in zip(after, search)]
        used += going
        going &= change > tolerance
        if not going.any():
            break
    return lam, used


def _newton(p: ImpulseProblem, lam: Array, tolerance: float, stiff: float) -> tuple[Array, Array, Array]:
    """After Newton's steps, of each problem until its residual is below the tolerance."""
    count = lam.shape[1]
    damping, taken = np.ones(count), np.zeros(count, int)
    left = residual(p, list(lam)) + np.zeros(count)
    for _ in range(STEPS):
        going = left > tolerance
        if not going.any():
            break
        way, square = newton_step(p, list(lam), damping, stiff)
        share = _share(p, lam, np.array(way), square, going, stiff)
        damping *= np.where(share == 1.0, EASE, np.where(share == 0.0, STIFFEN, 1.0))
        lam = lam + share * np.where(going, np.array(way), 0.0)
        taken += going
        left = residual(p, list(lam)) + np.zeros(count)
    return lam, left, taken


def _share(p: ImpulseProblem, lam: Array, way: Array, square: Array, going: Array, stiff: float) -> Array:
    """How much of a step lowers |F|^2 enough: 1, 1/2, .., or 0."""
    share, asked = np.zeros(lam.shape[1]), going.copy()
    for k in range(HALVES + 1):
        a = 0.5**k
        found = sum(x * x for x in natural_map(p, list(lam + a * way), stiff))
        good = asked & (found < square * (1.0 - ENOUGH * a))
        share[good] = a
        asked &= ~good
        if not asked.any():
            break
    return share
