"""Newton's steps on the natural map in as few unknowns as what carries the contacts has freedoms.

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

from ..scalar import Matrix, Scalar, Vector, accumulate, dot, eliminated, sqrt, where
from .coulomb import Carriers, ImpulseProblem, natural_map
from .coulomb_newton import block_slopes, largest_speed

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
        *columns, there = _solved(K, [*zip(*by_u), F[law.at : law.rows.stop]])
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


def _solved(K: Matrix, several: Sequence[Vector]) -> list[list[Scalar]]:
    """K^-1 b of a block of one or three rows, for several b."""
    if len(K) == 1:
        over = 1.0 / K[0][0]
        return [[over * b[0]] for b in several]
    cross = [
        [K[i - 2][j - 2] * K[i - 1][j - 1] - K[i - 2][j - 1] * K[i - 1][j - 2] for i in range(3)] for j in range(3)
    ]
    over = 1.0 / dot(K[0], [row[0] for row in cross])
    return [[over * dot(row, b) for row in cross] for b in several]
