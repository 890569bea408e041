"""The impulses of Signorini's and Coulomb's laws on arrays: sweeps, then Newton's method for what they leave."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....mechanics.algorithms.coulomb import (
    Carriers,
    ImpulseProblem,
    RowLaw,
    blocks,
    gauss_seidel,
    natural_map,
    parted,
    residual,
)
from ....mechanics.algorithms.coulomb_interior import aimed, barriers, begun, impulses_at, stepped
from ....mechanics.algorithms.coulomb_newton import (
    MIN_DECREASE,
    carried_step,
    carrier_factors,
    few_carriers,
    newton_step,
)
from ....mechanics.scalar import Vector, dot

Array = np.ndarray[Any, Any]
Path = list[list[Any]]
RESIDUAL_TOLERANCE = 1e-9  # m/s: of the residual
MAX_PARTING_SWEEPS = 100  # sweeps at most of what parts without friction


class Attempt(NamedTuple):
    """Sweeps from zero, or so many steps of the interior point, from its beginning or from where it has stopped;
    then so many steps of Newton's method on the natural map of a rho, times its own."""

    sweeps: int = 0
    interior: int = 0
    cold: bool = True
    steps: int = 25
    rho: float = 1.0


# Of some 250 states each of a robot on two feet of four points (rank 12 of 24) the first leaves 11 (stands on
# straight legs), 4 (on bent ones) and 7 (lands); the second 5, 0 and 1, all none
SOLVER_ATTEMPTS = (
    Attempt(sweeps=5, steps=10),
    Attempt(interior=10, steps=8),
    Attempt(interior=10, cold=False, steps=10),
    Attempt(interior=20, cold=False),
    Attempt(sweeps=50, rho=30.0),
    Attempt(sweeps=100, rho=100.0),
    Attempt(sweeps=200, rho=300.0),
)
MAX_HALVINGS = 6  # how often a step of it is halved
DAMPING_FALL, DAMPING_RISE = 0.3, 10.0  # of the damping, after a whole step and after none


class Impulses(NamedTuple):
    """lam (n, B), residual (B,) m/s; sweeps and Newton's steps that each problem took (B,); where contacts had to
    part without friction (B,); impulses that move bodies (n, B)."""

    lam: Array
    residual: Array
    sweeps: Array
    steps: Array
    eased: Array
    pushing: Array


def impulses(
    p: ImpulseProblem, tolerance: float = RESIDUAL_TOLERANCE, first: int = SOLVER_ATTEMPTS[0].sweeps,
    splits: bool = False,
) -> Impulses:  # fmt: skip
    """The impulses and the residual that they have. first: sweeps before Newton's method. splits: those that are
    kept part nothing, and others, that move bodies, part it.

    Where mu couples contacts strongly there may be several solutions: this is one of them. Against friction there
    may be none that parts contacts: where none is found, impulses that part nothing come first, and contacts part
    without friction. Where that cannot be either, nothing parts, and the residual is that of what was asked.
    """
    found = _attempted(p, tolerance, first)
    stuck = found.eased[...] = found.residual > tolerance
    again = stuck | (p.parts() > 0.0) if splits else stuck
    if again.any():
        asked, still, failed = _part(p, again), _attempted(_part(p.eased(), again), tolerance, first), stuck[again]
        lam, change = _parted(asked, list(still.lam), tolerance)
        apart = change <= tolerance
        found.pushing[:, again] = np.where(failed, np.where(apart, lam, still.lam), found.lam[:, again])
        found.lam[:, again] = still.lam if splits else found.pushing[:, again]
        left = np.where(apart, np.maximum(still.residual, change), residual(asked, list(still.lam)))
        found.residual[again] = np.where(failed, left, np.maximum(still.residual, found.residual[again]))
        found.sweeps[again] += still.sweeps
        found.steps[again] += still.steps
    return found


def _parted(p: ImpulseProblem, before: list[Array], tolerance: float) -> tuple[Array, Array]:
    """The impulses with what parts contacts, and the change of the last sweep."""
    lam, change = np.array(before), np.full(len(before[0]), np.inf)
    for _ in range(MAX_PARTING_SWEEPS):
        going = change > tolerance
        if not going.any():
            break
        new, after = parted(p, before, list(lam))
        lam, change = np.where(going, np.array(new), lam), np.where(going, after, change)
    return lam, change


def _attempted(p: ImpulseProblem, tolerance: float, first: int) -> Impulses:
    """One attempt after the other."""
    count = max([np.size(x) for x in p.b], default=1)
    lam = np.zeros((len(p.b), count))
    sweeps, steps = np.zeros(count, int), np.zeros(count, int)
    left = np.full(count, np.inf) if len(p.b) else np.zeros(count)
    todo = left > tolerance
    path: Path = []
    for k, way in enumerate(SOLVER_ATTEMPTS):
        if not todo.any():
            break
        some, at = _part(p, todo), np.flatnonzero(todo)
        if way.sweeps:
            x, used = _swept(some, np.zeros((len(p.b), len(at))), way.sweeps if k else first, tolerance)
        else:
            begin = path_of(some, len(at)) if way.cold else [[y[todo] for y in z] for z in path]
            now, used = _followed(some, begin, way.interior, tolerance)
            path = [[_spread(y, todo) for y in z] for z in now]
            x = np.array(impulses_at(some, now))
        x, r, taken = _newton(some, x, tolerance, 1.0 / way.rho, way.steps)
        better = ~(r >= left[at])
        lam[:, at[better]], left[at[better]] = x[:, better], r[better]
        sweeps[at] += used
        steps[at] += taken
        todo = left > tolerance
    return Impulses(lam, left, sweeps, steps, np.zeros(count, bool), lam.copy())


def _part(p: ImpulseProblem, which: Array) -> ImpulseProblem:
    """The problems of some rows of the batch."""

    def of(x: Any) -> Any:
        return x if isinstance(x, float) else np.broadcast_to(x, which.shape)[which]

    laws: list[RowLaw] = [type(law)(law.at, *map(of, law[1:])) for law in p.laws]
    carriers = p.carriers and Carriers(
        [{k: of(x) for k, x in row.items()} for row in p.carriers.rows],
        [[of(x) for x in row] for row in p.carriers.S],
    )
    push = {k: of(x) for k, x in p.push.items()}
    return ImpulseProblem([[of(x) for x in row] for row in p.G], [of(x) for x in p.b], laws, carriers, push=push)


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


def path_of(p: ImpulseProblem, count: int) -> Path:
    """The point at which the path of the interior-point method begins."""
    return [[y + np.zeros(count) for y in x] for x in begun(p)]


def _spread(x: Array, where: Array) -> Array:
    """Values of some rows of the batch at their places."""
    out = np.zeros(where.shape)
    out[where] = x
    return out


def _followed(p: ImpulseProblem, path: Path, most: int, tolerance: float) -> tuple[Path, Array]:
    """After steps of the interior point, of each problem until its residual is below the tolerance."""
    count = len(path[0][0])
    G = np.array([[x + np.zeros(count) for x in row] for row in p.G]).transpose(2, 0, 1)
    used, going = np.zeros(count, int), np.ones(count, bool)
    for _ in range(most):
        going = going & (residual(p, impulses_at(p, path)) > tolerance)
        if not going.any():
            break
        found, A = barriers(p, path), G.copy()
        for law, x in zip(p.laws, found):
            for i, row in enumerate(x.firmness(p.trace(law))):
                for j, y in enumerate(row):
                    A[:, law.at + i, law.at + j] += y
                    A[:, law.at + j, law.at + i] = A[:, law.at + i, law.at + j]
        first = _solved(A, [y for x in found for y in x.side()])
        aim, curved = aimed(p, found, first)
        way = _solved(A, [y for x, c in zip(found, curved) for y in x.side(aim, c)])
        new, inside = stepped(p, path, found, way, aim, curved)
        going = going & (inside > 0.0)
        path = [[np.where(going, a, b) for a, b in zip(x, y)] for x, y in zip(new, path)]
        used += going
    return path, used


def _solved(A: Array, b: list[Any]) -> list[Any]:
    """x of A x = b by problem."""
    sides = np.array([y + np.zeros(len(A)) for y in b]).T
    return list(np.linalg.solve(A, sides[..., None])[..., 0].T)


def _newton(
    p: ImpulseProblem, lam: Array, tolerance: float, stiff: float, most: int
) -> tuple[Array, Array, Array]:
    """After Newton's steps, of each problem until its residual is below the tolerance: in the freedoms of what
    carries the contacts where these are few, else by least squares."""
    count = lam.shape[1]
    damping, taken = np.ones(count), np.zeros(count, int)
    known = carrier_factors(p.carriers) if p.carriers and few_carriers(p) else None
    u = p.velocity(list(lam), range(len(lam)))
    left = residual(p._replace(u=u), list(lam)) + np.zeros(count)
    for _ in range(most):
        going = left > tolerance
        if not going.any():
            break
        here = p._replace(u=u)
        if known:
            way, du, square = carried_step(here, known, list(lam), damping, stiff)
        else:
            way, square = newton_step(here, list(lam), damping, stiff)
            du = [dot(row, way) for row in p.G]
        share = _share(here, lam, np.array(way), du, square, going, stiff)
        damping *= np.where(share == 1.0, DAMPING_FALL, np.where(share == 0.0, DAMPING_RISE, 1.0))
        lam = lam + share * np.where(going, np.array(way), 0.0)
        taken += going
        u = p.velocity(list(lam), range(len(lam)))
        left = residual(p._replace(u=u), list(lam)) + np.zeros(count)
    return lam, left, taken


def _share(
    p: ImpulseProblem, lam: Array, way: Array, du: Vector, square: Array, going: Array, stiff: float
) -> Array:
    """The share of a step that lowers |F|^2 enough: 1, 1/2, .., or 0."""
    share, asked = np.zeros(lam.shape[1]), going.copy()
    assert p.u is not None
    for k in range(MAX_HALVINGS + 1):
        a = 0.5**k
        there = p._replace(u=[x + a * y for x, y in zip(p.u, du)])
        found = sum(x * x for x in natural_map(there, list(lam + a * way), stiff))
        good = asked & (found < square * (1.0 - MIN_DECREASE * a))
        share[good] = a
        asked &= ~good
        if not asked.any():
            break
    return share
