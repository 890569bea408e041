"""Newton's method for what sweeps leave, on the natural map of the laws, damped as Levenberg and Marquardt do.

Where rows depend on each other (two points of one rigid foot) the impulses are not unique and sweeps may go on for
ever; the least squares of the natural map have neither trouble. Facchinei and Pang 2003, "Finite-dimensional
variational inequalities and complementarity problems", 8.3; Yamashita and Fukushima 2001, of what lacks rank;
Acary, Bremond and Huber 2018, "On solving contact problems with Coulomb friction", which compares formulations.

Newton's steps on the natural map in as few unknowns as what carries the contacts has freedoms.

With G = P S P' (twelve freedoms of two feet that stand on eight points) a step of F + (D + B G) x = 0 is one in
y = L' P' x, S = L E L'. G + delta stands for G, delta by blocks: where rows depend on each other every step goes
but to a point near by (Rockafellar 1976, "Monotone operators and the proximal point algorithm"), which is right to
delta over what G does to impulses.

    K = D + delta B,     (1 + L' P' K^-1 B P L E) y = -L' P' K^-1 F,     x = -K^-1 (F + B P L E y)

K is of blocks. The matrix is 1 and a product of one whose symmetric part is not negative: its pivots are positive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..scalar import Matrix, Scalar, Vector, accumulate, clip, dot, eliminated, is_zero, maximum, sqrt, where
from .coulomb import DIVISION_GUARD, Carriers, ContactLaw, ImpulseProblem, JointLaw, RowLaw, natural_map

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


CARRIED_DAMPING = 0.1  # delta of the mean diagonal of a block, times the residual over the largest |b|
LEAST_DELTA = 1e-7  # of the same: what is solved for stands beside it
MIN_CARRIED_PIVOT = 1e-13  # of the diagonal of S: what is left of a pivot when it is none
MOST_CARRIED = 18  # unknowns that are solved for without loops


class CarrierFactors(NamedTuple):
    """P; S = L E L', L of ones on its diagonal and E from 0."""

    rows: list[dict[int, Scalar]]
    L: Matrix
    E: list[Scalar]


def few_carriers(p: ImpulseProblem) -> bool:
    """True if the carriers are few enough for steps in their unknowns."""
    return p.carriers is not None and len(p.carriers.S) <= MOST_CARRIED


def carrier_factors(c: Carriers) -> CarrierFactors:
    """Columns of what cannot move are zero."""
    n, E = len(c.S), list[Scalar]()
    S = [list(row[: i + 1]) for i, row in enumerate(c.S)]
    L: Matrix = [[0.0] * i + [1.0] for i in range(n)]
    for k in range(n):
        moves = S[k][k] > MIN_CARRIED_PIVOT * c.S[k][k]
        over = where(moves, 1.0 / where(moves, S[k][k], 1.0), 0.0)
        E.append(where(moves, S[k][k], 0.0))
        for i in range(k + 1, n):
            L[i][k] = S[i][k] * over
            for j in range(k + 1, i + 1):
                S[i][j] = S[i][j] - L[i][k] * S[j][k]
    return CarrierFactors([dict(row) for row in c.rows], L, E)


def carried_step(
    p: ImpulseProblem, c: CarrierFactors, lam: Vector, damping: Scalar, stiff: Scalar = 1.0
) -> tuple[list[Scalar], list[Scalar], Scalar]:
    """The way from lam, how it changes u, and |F|^2 at lam."""
    n, F = len(c.E), natural_map(p, lam, stiff)
    N: list[dict[int, Scalar]] = [{} for _ in range(n)]
    square, side = dot(F, F), dict[int, Scalar]()
    part = CARRIED_DAMPING * damping * sqrt(square) / largest_speed(p) + LEAST_DELTA
    solved: list[tuple[Matrix, list[Scalar]]] = []
    for law in p.laws:
        by_u, by_lam = block_slopes(p, law, lam, stiff)
        delta = part * p.trace(law)
        K = [[x + delta * y for x, y in zip(*rows)] for rows in zip(by_lam, by_u)]
        *columns, there = block_solved(K, [*zip(*by_u), F[law.at : law.rows.stop]])
        own = [list(x) for x in zip(*columns)]
        solved.append((own, there))
        for i, r in enumerate(law.rows):
            moved: dict[int, Scalar] = {}
            for x, s in zip(own[i], law.rows):
                for k, y in c.rows[s].items():
                    accumulate(moved, k, x * y)
            for j, y in c.rows[r].items():
                accumulate(side, j, -(y * there[i]))
                for k, x in moved.items():
                    accumulate(N[j], k, y * x)
    below = [sum((c.L[k][j] * x for k, x in sorted(side.items()) if k >= j), 0.0) for j in range(n)]
    w = [x * y for x, y in zip(c.E, eliminated(_between(c, N), below))]
    z = [dot(c.L[i], w[: i + 1]) for i in range(n)]
    du = [dot(list(row.values()), [z[k] for k in row]) for row in c.rows]
    way: list[Scalar] = []
    for law, (own, there) in zip(p.laws, solved):
        way += [-(x + dot(row, du[law.at : law.rows.stop])) for row, x in zip(own, there)]
    return way, du, square


def _between(c: CarrierFactors, N: list[dict[int, Scalar]]) -> Matrix:
    """1 + L' N L E."""
    n = range(len(N))
    NL = [[sum((c.L[k][j] * x for k, x in sorted(row.items()) if k >= j), 0.0) for j in n] for row in N]
    out = [[sum((c.L[k][i] * NL[k][j] for k in n[i:]), 0.0) * c.E[j] for j in n] for i in n]
    for i in n:
        out[i][i] = out[i][i] + 1.0
    return out


def block_solved(K: Matrix, several: Sequence[Vector]) -> list[list[Scalar]]:
    """K^-1 b of a block of one or three rows, for several b."""
    if len(K) == 1:
        over = 1.0 / K[0][0]
        return [[over * b[0]] for b in several]
    cross = [
        [K[i - 2][j - 2] * K[i - 1][j - 1] - K[i - 2][j - 1] * K[i - 1][j - 2] for i in range(3)] for j in range(3)
    ]
    over = 1.0 / dot(K[0], [row[0] for row in cross])
    return [[over * dot(row, b) for row in cross] for b in several]
