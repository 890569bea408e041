"""Motion under independent constraints over scalars, by the Schur complement of the inertia matrix.

    M x = f + Gamma^T N,   Gamma x + g = 0                                              Zaremba (2.17), (2.18)
    D = Gamma M^-1 Gamma^T,   N = -D^-1 (g + Gamma x0),   x = x0 + M^-1 Gamma^T N                   (2.19)

With M = L^T E^-1 L and Y = Gamma L^-1 it is D = Y E Y^T: every row is solved half, over the branches it touches.
D = F^T P F is eliminated from the last row to the first, and what the rows need along with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..scalar import Scalar, Vector, dot, is_zero
from .inertia_matrix import Factors


class Needed(NamedTuple):
    """A right-hand side made ready to solve: L^-T f over the rates, and what the rows need, -(g + Gamma x0)."""

    free: list[Scalar]
    rates: list[Scalar]


class Schur:
    """D of rows that are independent, with its factors; `diagonal` and `pivots` tell how nearly they are not.

    A pivot over its diagonal entry is the squared sine of the angle between a row and those eliminated before it.
    rows: of Gamma, over the rates.
    """

    def __init__(self, M: Factors, rows: Sequence[Vector]) -> None:
        m = len(rows)
        self.M, self.m = M, m
        Y = [M.solve_transposed(row) for row in rows]
        self.columns: list[list[Scalar]] = [list(x) for x in zip(*Y)] if rows else [[] for _ in M.order]
        self.diagonal: list[Scalar] = [0.0] * m
        self.pivots: list[Scalar] = [0.0] * m
        self.inverse: list[Scalar] = [0.0] * m
        self.F: list[list[Scalar]] = [[] for _ in range(m)]
        self._eliminate(Y)

    @staticmethod
    def of_rows(rows: Sequence[Vector], n: int) -> Schur:
        """The Schur complement with the identity for M, of n rates: Gamma Gamma^T and its factors."""
        return Schur(Factors.known([{} for _ in range(n)], [1.0] * n, range(n)), rows)

    def inverse_diagonal(self) -> list[Scalar]:
        """The diagonal of D^-1."""
        m = self.m
        total: list[Scalar] = [0.0] * m
        columns: list[list[Scalar]] = [[0.0] * m for _ in range(m)]  # of F^-1
        for i in range(m - 1, -1, -1):
            mine = columns[i]
            mine[i] = 1.0
            for k in range(i + 1, m):
                for s in range(k, m):
                    mine[s] = mine[s] - self.F[k][i] * columns[k][s]
            for s in range(i, m):
                total[s] = total[s] + mine[s] * mine[s] * self.inverse[i]
        return total

    def _eliminate(self, Y: Sequence[Vector]) -> None:
        """Row by row; what is right of the diagonal is not used."""
        m = self.m
        scaled = [[x * e for x, e in zip(row, self.M.inverse)] for row in Y]
        done = [list[Scalar]()] * m
        for i in range(m - 1, -1, -1):
            row = [dot(scaled[i], y) for y in Y[: i + 1]]
            self.diagonal[i] = row[i]
            for k in range(m - 1, i, -1):
                if not is_zero(self.F[k][i]):
                    row = [x - self.F[k][i] * y for x, y in zip(row, done[k])]
            done[i], self.pivots[i] = row, row[i]
            self.inverse[i] = 0.0 if is_zero(self.pivots[i]) else 1.0 / self.pivots[i]
            self.F[i] = [x * self.inverse[i] for x in row[:i]]

    def needed(self, f: Vector, g: Vector) -> Needed:
        """Makes the right-hand side f, g ready for `solved`."""
        free = self.M.solve_transposed(f)
        held = [x * e for x, e in zip(free, self.M.inverse)]
        rates = list(g)
        for x, column in zip(held, self.columns):
            for r in range(self.m):
                rates[r] = rates[r] + column[r] * x
        return Needed(free, [-x for x in rates])

    def solved(self, x: Needed) -> tuple[list[Scalar], list[Scalar]]:
        """x and N."""
        share, N = list(x.rates), list[Scalar]()
        for i in range(self.m - 1, -1, -1):
            for j, f in enumerate(self.F[i]):
                share[j] = share[j] - f * share[i]
        for y, inverse, row in zip(share, self.inverse, self.F):
            y = y * inverse
            for n, f in zip(N, row):
                y = y - f * n
            N.append(y)
        pushed = []
        for y, column in zip(x.free, self.columns):
            for n, c in zip(N, column):
                y = y + c * n
            pushed.append(y)
        return self.M.solve_lower(pushed), N

    def accelerations(self, force: Vector, gamma: Vector) -> tuple[list[Scalar], list[Scalar]]:
        """x and N of f = force, g = gamma."""
        return self.solved(self.needed(force, gamma))
