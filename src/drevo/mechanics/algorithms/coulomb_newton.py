"""Newton's method for what sweeps leave, on the natural map of the laws, damped as Levenberg and Marquardt do.

Where rows depend on each other (two points of one rigid foot) the impulses are not unique and sweeps may go on for
ever; the least squares of the natural map have neither trouble. Facchinei and Pang 2003, "Finite-dimensional
variational inequalities and complementarity problems", 8.3; Yamashita and Fukushima 2001, of what lacks rank;
Acary, Bremond and Huber 2018, "On solving contact problems with Coulomb friction", which compares formulations.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..scalar import Matrix, Scalar, Vector, clip, dot, is_zero, maximum, sqrt, where
from .coulomb import DIVISION_GUARD, ContactLaw, ImpulseProblem, JointLaw, RowLaw, natural_map

NEWTON_DAMPING = 1e-3  # of the scale of J' J, times the residual over the largest |b|
MIN_NEWTON_DAMPING = 1e-14  # of the same scale
MIN_DECREASE = 0.1  # of the decrease of |F|^2 by a whole step along a straight line


def linearised(p: ImpulseProblem, lam: Vector, stiff: Scalar = 1.0) -> tuple[list[Scalar], Matrix]:
    """The natural map F and a generalised Jacobian of it by lam."""
    J: Matrix = []
    for law in p.laws:
        by_u, by_lam = block_slopes(p, law, lam, stiff)
        for own, more in zip(by_u, by_lam):
            row = [dot(own, [p.G[r][k] for r in law.rows]) for k in range(len(lam))]
            for x, r in zip(more, law.rows):
                row[r] = row[r] + x
            J.append(row)
    return natural_map(p, lam, stiff), J


def block_slopes(p: ImpulseProblem, law: RowLaw, lam: Vector, stiff: Scalar = 1.0) -> tuple[Matrix, Matrix]:
    """Those of F of a block by its velocities and, these held, by its impulses."""
    return (_contact_slopes if isinstance(law, ContactLaw) else _joint_slopes)(p, law, lam, stiff)


def _contact_slopes(p: ImpulseProblem, law: RowLaw, lam: Vector, stiff: Scalar) -> tuple[Matrix, Matrix]:
    """D W and m (1 - D), D the slope of the projection, W that of u^ by u, m the mean diagonal."""
    u, m = p.velocity(lam, law.rows), p.trace(law) * stiff
    speed = sqrt(u[1] * u[1] + u[2] * u[2])
    away = law.bound / maximum(speed, DIVISION_GUARD)
    turned = [1.0, u[1] * away, u[2] * away]  # the first row of W
    shifted = [u[0] + law.bound * speed, u[1], u[2]]
    D = _projection_slope([lam[r] - x / m for r, x in zip(law.rows, shifted)], law.bound)
    by_u = [[d[0] * turned[0], d[0] * turned[1] + d[1], d[0] * turned[2] + d[2]] for d in D]
    return by_u, [[m * ((1.0 if i == k else 0.0) - x) for k, x in enumerate(d)] for i, d in enumerate(D)]


def _projection_slope(x: Vector, mu: Scalar) -> Matrix:
    """The slope of the projection on the cone, one of those at its edges."""
    size = sqrt(x[1] * x[1] + x[2] * x[2])
    inside, outside = size <= mu * x[0], mu * size <= -x[0]
    share = 1.0 / (1.0 + mu * mu)
    t = [y / maximum(size, DIVISION_GUARD) for y in x[1:]]
    normal, across = share * mu, mu * share * (x[0] + mu * size) / maximum(size, DIVISION_GUARD)
    along = mu * normal - across
    middle = [
        [share, normal * t[0], normal * t[1]],
        [normal * t[0], across + along * (t[0] * t[0]), along * (t[0] * t[1])],
        [normal * t[1], along * (t[0] * t[1]), across + along * (t[1] * t[1])],
    ]
    return [
        [where(inside, 1.0 if i == j else 0.0, where(outside, 0.0, y)) for j, y in enumerate(row)]
        for i, row in enumerate(middle)
    ]


def _joint_slopes(p: ImpulseProblem, law: RowLaw, lam: Vector, stiff: Scalar) -> tuple[Matrix, Matrix]:
    """1 and 0 where friction or a bound holds the joint, 0 and m where it moves freely."""
    assert isinstance(law, JointLaw)
    (u,), m, r = p.velocity(lam, law.rows), p.trace(law) * stiff, law.at
    w = u - m * lam[r]
    held = m * law.bound
    cut = w - clip(w, -held, held)  # what friction leaves: beyond a bound where that one pushes
    free = where(abs(w) > held, where(cut > law.lower, where(cut < law.upper, 1.0, 0.0), 0.0), 0.0)
    return [[1.0 - free]], [[free * m]]


def newton_step(
    p: ImpulseProblem, lam: Vector, damping: Scalar, stiff: Scalar = 1.0
) -> tuple[list[Scalar], Scalar]:
    """The way from lam by least squares, and |F|^2 at lam. damping: times what `NEWTON_DAMPING` says."""
    F, J = linearised(p, lam, stiff)
    square = dot(F, F)
    more = stabiliser(p, damping, square)
    columns = [list(c) for c in zip(*J)]
    A = [[dot(c, columns[j]) + (more[i] if i == j else 0.0) for j in range(i + 1)] for i, c in enumerate(columns)]
    return solved_beside(A, [[-dot(c, F) for c in columns]])[0], square


def stabiliser(p: ImpulseProblem, damping: Scalar, square: Scalar) -> list[Scalar]:
    """The terms added to the diagonal of J' J for damping, by |F|^2: of every row by its own scale."""
    part = NEWTON_DAMPING * damping * sqrt(square) / largest_speed(p) + MIN_NEWTON_DAMPING
    out: list[Scalar] = []
    for law in p.laws:
        size = p.trace(law)
        out += [size * size * part] * len(law.rows)
    return out


def largest_speed(p: ImpulseProblem) -> Scalar:
    """The largest velocity that impulses have to deal with; parting contacts do not count."""
    most: Scalar = DIVISION_GUARD
    for law in p.laws:
        for r in law.rows:
            most = maximum(most, -p.b[r] if isinstance(law, ContactLaw) and r == law.at else abs(p.b[r]))
    return most


def solved_beside(A: Matrix, several: Sequence[Vector]) -> list[list[Scalar]]:
    """x of A x = b for several b by Cholesky's square-root-free factors; A (lower triangle) is overwritten."""
    n, out = len(A), [list(b) for b in several]
    for k in range(n):
        over, column = 1.0 / A[k][k], [row[k] if k < len(row) else 0.0 for row in A]
        for i in range(k + 1, n):
            if is_zero(column[i]):
                continue
            factor = column[i] * over
            for j in range(k + 1, i + 1):
                A[i][j] = A[i][j] - factor * column[j]
            for x in out:
                x[i] = x[i] - factor * x[k]
            A[i][k] = factor
        for x in out:
            x[k] = x[k] * over
    for x in out:
        for k in range(n - 1, -1, -1):
            for i in range(k + 1, n):
                x[k] = x[k] - A[i][k] * x[i]
    return out
