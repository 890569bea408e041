"""Operational-space inertia of a link: what resists a force on it. Khatib 1987, A unified approach for motion and
force control of robot manipulators: the operational space formulation, (18).
"""

from __future__ import annotations

from ...errors import TraceError
from ..scalar import Matrix, Scalar, Vector, dot, is_zero, sqrt
from ..tree import Tree
from .inertia_matrix import Factors, SparseRows, factorised, mass_matrix_rows
from .kinematics import jacobian

MIN_LINK_PIVOT = (
    1e-10  # of a diagonal entry of J M^-1 J^T: a pivot below it means a direction in which the link cannot move
)


def inverse_operational_inertia(
    tree: Tree, q: Vector, link: str, frame: str, M: SparseRows | None = None
) -> Matrix:
    """J M^-1 J^T, (6, 6), linear first: the acceleration that a wrench on the link at rest adds to its own.

    M = L^T D L, so it is Y D^-1 Y^T with Y = J L^-1. M: rows that are there already.
    """
    f = factorised(tree, mass_matrix_rows(tree, q) if M is None else M)
    return weighed(f, jacobian(tree, q, link, frame))


def weighed(f: Factors, J: Matrix) -> Matrix:
    """J M^-1 J^T by the factors of M."""
    Y = [f.solve_transposed(row) for row in J]
    moved = [[y * x for y, x in zip(row, f.inverse)] for row in Y]
    n = len(J)
    lower = [[dot(moved[i], Y[j]) for j in range(i + 1)] for i in range(n)]
    return [[lower[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]


def operational_inertia(tree: Tree, q: Vector, link: str, frame: str, M: SparseRows | None = None) -> Matrix:
    """(J M^-1 J^T)^-1, (6, 6), linear first; not a number where the link cannot move in all six directions."""
    require_mobile(jacobian(tree, q, link, frame), link)
    return inverted(inverse_operational_inertia(tree, q, link, frame, M), link)


def require_mobile(J: Matrix, link: str) -> None:
    """TraceError where fewer than six rates move a link."""
    if sum(not all(map(is_zero, column)) for column in zip(*J)) < 6:
        raise immobile(link)


def inverted(A: Matrix, link: str) -> Matrix:
    """A^-1, symmetric; not a number where a pivot is lost."""
    n = len(A)
    L, inverse = _factors(A, link)
    W: Matrix = [[0.0] * n for _ in range(n)]  # L^-1
    for k in range(n):
        W[k][k] = 1.0
        for i in range(k + 1, n):
            W[i][k] = -dot(L[i][k:i], [W[j][k] for j in range(k, i)])
    moved = [[w * inverse[k] for w in W[k]] for k in range(n)]
    lower = [[dot([moved[k][i] for k in range(i, n)], [W[k][j] for k in range(i, n)]) for j in range(i + 1)]
             for i in range(n)]  # fmt: skip
    return [[lower[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]


def _factors(A: Matrix, link: str) -> tuple[Matrix, list[Scalar]]:
    """L and D^-1 of A = L D L^T."""
    n, inverse = len(A), []
    S, L = [list(row) for row in A], [[0.0] * len(A) for _ in A]
    for k in range(n):
        if is_zero(S[k][k]):
            raise immobile(link)
        inverse.append(1.0 / (_kept(S[k][k], A[k][k]) if k else S[k][k]))
        for i in range(k + 1, n):
            L[i][k] = S[i][k] * inverse[k]
            for j in range(k + 1, i + 1):
                S[i][j] = S[i][j] - L[i][k] * S[j][k]
    return L, inverse


def immobile(link: str) -> TraceError:
    return TraceError(
        f"operational_inertia: link {link!r} cannot move in all six directions in any configuration; take "
        "inverse_operational_inertia, and of it the directions in which it moves"
    )


def _kept(pivot: Scalar, diagonal: Scalar) -> Scalar:
    """The pivot; not a number where it is lost in the rounding of the diagonal that it is what is left of."""
    root = sqrt(pivot - MIN_LINK_PIVOT * diagonal)
    return root * root + MIN_LINK_PIVOT * diagonal
