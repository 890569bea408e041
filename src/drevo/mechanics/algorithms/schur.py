"""Motion under independent constraints over scalars, by the Schur complement of the inertia matrix.

    M a + h = tau + Gamma^T N,   Gamma a + gamma = 0                                    Zaremba (2.17), (2.18)
    D = Gamma M^-1 Gamma^T,   N = -D^-1 (gamma + Gamma a0),   a = a0 + M^-1 Gamma^T N               (2.19)

With M = L^T E L and Y = Gamma L^-1 it is D = Y E^-1 Y^T: every row is solved half, over the branches it touches.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..scalar import Scalar, Vector, dot, is_zero
from .inertia_matrix import Factors, SparseRows


class Schur:
    """D of rows Gamma that are independent; `diagonal` and `pivots` tell how nearly they are not.

    A pivot over its diagonal entry is the squared sine of the angle between a row and those eliminated before it.
    """

    def __init__(self, M: Factors, jacobian: Sequence[Vector]) -> None:
        self.M = M
        self.Y = [M.solve_transposed(row) for row in jacobian]
        self.columns = list(zip(*self.Y)) or [()] * len(M.order)
        D: SparseRows = [{} for _ in self.Y]
        for r, y in enumerate(self.Y):
            scaled = [x * e for x, e in zip(y, M.inverse)]
            for s in range(r + 1):
                x = dot(scaled, self.Y[s])
                if not is_zero(x):
                    D[r][s] = x
        self.diagonal = [row[r] for r, row in enumerate(D)]
        self.factors = Factors(D, range(len(D)))

    @property
    def pivots(self) -> list[Scalar]:
        return self.factors.pivots

    def accelerations(self, force: Vector, gamma: Vector) -> tuple[list[Scalar], list[Scalar]]:
        """a and N; force: tau - h."""
        y0 = self.M.solve_transposed(force)
        held = [x * e for x, e in zip(y0, self.M.inverse)]
        N = self.factors.solve([-(g + dot(y, held)) for g, y in zip(gamma, self.Y)])
        pushed = [x + dot(column, N) for x, column in zip(y0, self.columns)]
        return self.M.solve_lower(pushed), N

    def correction(self, gap: Vector) -> list[Scalar]:
        """The least dq by M with Gamma dq = -gap."""
        push = self.factors.solve([-x for x in gap])
        return self.M.solve_lower([dot(column, push) for column in self.columns])
