"""Motion under independent constraints over scalars, by the Schur complement of the inertia matrix.

    M x = f + Gamma^T N,   Gamma x + g = 0                                              Zaremba (2.17), (2.18)
    D = Gamma M^-1 Gamma^T,   N = -D^-1 (g + Gamma x0),   x = x0 + M^-1 Gamma^T N                   (2.19)

With M = L^T E^-1 L and Y = Gamma L^-1 it is D = Y E Y^T: every row is solved half, over the branches it touches.
D = F^T P F is eliminated from the last row to the first, and what the rows need along with it.

Scalars may be vectors: `RowParts` says how many rows of Gamma stand side by side in one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..scalar import Scalar, Vector, dot, is_zero
from .inertia_matrix import Factors, SparseRows


class RowParts:
    """RowParts one by one."""

    width = 1  # rows in a part

    def spread(self, parts: list[Scalar], first: int, last: int) -> list[Scalar]:
        """The entries of parts; none is before `first`, nor from `last` on."""
        return parts

    def pick(self, parts: Sequence[Scalar], row: int) -> Scalar:
        """One entry."""
        return parts[row]

    def unit(self, row: int) -> Scalar:
        """The part with 1 in a row, else 0."""
        return 1.0


class PartFactors(NamedTuple):
    """M = L^T E^-1 L of a matrix whose rows are in parts; with its diagonal."""

    factors: Factors
    diagonal: list[Scalar]

    @staticmethod
    def of(rows: Sequence[list[Scalar]], lower: Sequence[Sequence[int]], by: RowParts) -> PartFactors:
        """rows: those of the lower triangle; lower: where L has entries, by rows."""
        n, w, H = len(rows), by.width, [list(row) for row in rows]
        L: SparseRows = [{} for _ in range(n)]
        pivots, inverse = [0.0] * n, [0.0] * n
        for k in range(n - 1, -1, -1):
            pivots[k] = by.pick(H[k], k)
            inverse[k] = 1.0 / pivots[k]
            share = by.spread([x * inverse[k] for x in H[k][: -(-k // w)]], 0, k)
            for i in sorted(lower[k], reverse=True):
                L[k][i] = share[i]
                for s in range(i // w + 1):
                    H[i][s] = H[i][s] - share[i] * H[k][s]
        diagonal = [by.pick(row, k) for k, row in enumerate(rows)]
        return PartFactors(Factors.known(L, inverse, range(n), pivots), diagonal)


class Needed(NamedTuple):
    """A right-hand side made ready to solve: L^-T f over the rates, and what the rows need, -(g + Gamma x0)."""

    free: list[Scalar]
    rates: list[Scalar]


class Schur:
    """D of rows that are independent, with its factors; `diagonal` and `pivots` tell how nearly they are not.

    A pivot over its diagonal entry is the squared sine of the angle between a row and those eliminated before it.
    parts: of Gamma, each over the rates; touched: by rate the first and one past the last row that it moves; m:
    rows, where those of the last part are fewer than its width.
    """

    def __init__(
        self,
        M: Factors,
        parts: Sequence[Vector],
        by: RowParts | None = None,
        touched: Sequence[tuple[int, int]] | None = None,
        m: int = -1,
    ) -> None:
        m, by = len(parts) if m < 0 else m, by or RowParts()
        self.M, self.m, self.by, self.touched = M, m, by, touched or [(0, m)] * len(M.order)
        Y = [M.solve_transposed(part) for part in parts]
        self.columns = self._apart(Y) if parts else [[] for _ in M.order]
        self.diagonal: list[Scalar] = [0.0] * m
        self.pivots: list[Scalar] = [0.0] * m
        self.inverse: list[Scalar] = [0.0] * m
        self.F: list[list[Scalar]] = [[] for _ in range(m)]
        self._eliminate(Y)

    @staticmethod
    def of_rows(parts: Sequence[Vector], by: RowParts | None, touched: Sequence[tuple[int, int]], m: int) -> Schur:
        """The Schur complement with the identity for M: Gamma Gamma^T and its factors."""
        n = len(touched)
        return Schur(Factors.known([{} for _ in range(n)], [1.0] * n, range(n)), parts, by, touched, m)

    def inverse_diagonal(self) -> list[Scalar]:
        """The diagonal of D^-1, in parts."""
        m, w = self.m, self.by.width
        count = -(-m // w)
        total: list[Scalar] = [0.0] * count
        columns: list[list[Scalar]] = [[0.0] * count for _ in range(m)]  # of F^-1
        for i in range(m - 1, -1, -1):
            mine = columns[i]
            mine[i // w] = self.by.unit(i)
            for k in range(i + 1, m):
                for s in range(k // w, count):
                    mine[s] = mine[s] - self.F[k][i] * columns[k][s]
            for s in range(i // w, count):
                total[s] = total[s] + mine[s] * mine[s] * self.inverse[i]
        return total

    def _apart(self, parts: Sequence[Vector]) -> list[list[Scalar]]:
        """The entries of every rate."""
        return [self.by.spread(list(column), *self.touched[i]) for i, column in enumerate(zip(*parts))]

    def _eliminate(self, Y: Sequence[Vector]) -> None:
        """Row by row; what a part has right of the diagonal is not used."""
        by, m, w = self.by, self.m, self.by.width
        columns = self._apart([[x * e for x, e in zip(part, self.M.inverse)] for part in Y])
        done = [list[Scalar]()] * m
        for i in range(m - 1, -1, -1):
            mine = [column[i] for column in columns]
            row = [dot(mine, part) for part in Y[: i // w + 1]]
            self.diagonal[i] = by.pick(row, i)
            for k in range(m - 1, i, -1):
                if not is_zero(self.F[k][i]):
                    row = [x - self.F[k][i] * y for x, y in zip(row, done[k])]
            done[i], self.pivots[i] = row, by.pick(row, i)
            self.inverse[i] = 0.0 if is_zero(self.pivots[i]) else 1.0 / self.pivots[i]
            self.F[i] = by.spread([x * self.inverse[i] for x in row[: -(-i // w)]], 0, i)[:i]

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
