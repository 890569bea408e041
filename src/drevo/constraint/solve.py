"""The small solve of constrained dynamics: y = F^-T a with M^-1 = F^T F, where F is L^-1 of M = L L^T.

There a is the projection of Udwadia and Kalaba: a and Gamma^T N are unique for any set of rows, N has the least
norm, and the directions that count are the rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..codegen.call.diagnose import first_lost
from ..codegen.graph.program import PIVOT_FLOOR
from ..codegen.store.build import Spec
from ..codegen.store.memo import memoised
from ..compiler.ways.rolled import is_large, rolled_function
from ..errors import NumericsError
from ..model.dynamics import Dynamics

if TYPE_CHECKING:
    from ..codegen.call.function import Function

Array = np.ndarray[Any, Any]
CONSISTENT_SHARE = 1e-6  # of the largest right-hand side, at least 1: what dependent rows may disagree by (SI)
ENOUGH_LEFT = 0.01  # of the square of a row: what is left of it by the rows before it, to be chosen in its turn
RANK_TOLERANCE = 1e-10  # of the largest singular value of Gamma L^-T: below it a direction counts as lost


class MassFactor(Protocol):
    """M^-1 = F^T F at some states: F and F^T times rows (..., m, nv)."""

    def inwards(self, rows: Array) -> Array: ...

    def outwards(self, rows: Array) -> Array: ...


class Cholesky(NamedTuple):
    """F = L^-1, M = L L^T."""

    L: Array

    def inwards(self, rows: Array) -> Array:
        """Rows times the inverse of L transposed."""
        return np.asarray(np.swapaxes(np.linalg.solve(self.L, np.swapaxes(rows, -1, -2)), -1, -2))

    def outwards(self, rows: Array) -> Array:
        return Cholesky(np.swapaxes(self.L, -1, -2)).inwards(rows)


class Sweeps(NamedTuple):
    """F of articulated bodies, for large trees: O(nv) a row, and no matrix is formed."""

    robot: Dynamics
    q: Array

    def inwards(self, rows: Array) -> Array:
        return self._swept(0, rows)

    def outwards(self, rows: Array) -> Array:
        return self._swept(1, rows)

    def _swept(self, which: int, rows: Array) -> Array:
        sweep = factor_sweeps(self.robot)[which]
        try:
            return np.asarray(sweep(self.q[..., None, :], rows))
        except NumericsError as error:
            refusal = error
        try:  # each state once, so that its own row is named
            sweep(self.q, np.zeros((*self.q.shape[:-1], self.robot.nv)))
        except NumericsError as error:
            refusal = error
        raise NumericsError(f"robot {self.robot.name!r}: {str(refusal).partition(': ')[2]}")


class RankSplit(NamedTuple):
    """Gamma F^T = U diag(s) V^T with M^-1 = F^T F; inverse holds 1 / s of the kept directions, else 0."""

    factor: MassFactor
    U: Array
    inverse: Array
    V: Array

    @classmethod
    def of(cls, factor: MassFactor, jacobian: Array) -> RankSplit:
        weighted = factor.inwards(jacobian)
        if not weighted.shape[-2] or not weighted.shape[-1]:
            *lead, m, n = weighted.shape
            return cls(factor, np.zeros((*lead, m, 0)), np.zeros((*lead, 0)), np.zeros((*lead, n, 0)))
        U, s, Vt = np.linalg.svd(weighted, full_matrices=False)
        keep = s > RANK_TOLERANCE * s[..., :1]
        inverse = np.divide(1.0, s, out=np.zeros_like(s), where=keep)
        return cls(factor, U, inverse, np.swapaxes(Vt, -1, -2))

    @property
    def rank(self) -> Any:
        kept = np.count_nonzero(self.inverse, axis=-1)
        return int(kept) if np.ndim(kept) == 0 else kept

    def solve(self, force: Array, gamma: Array) -> tuple[Array, Array]:
        """a and least-norm N: y = y0 + V s^-1 U^T need, N = U s^-2 U^T need, need = -(gamma + Gamma a0)."""
        with np.errstate(over="ignore", invalid="ignore"):  # `require_finite` refuses it
            y0 = self.factor.inwards(force[..., None, :])[..., 0, :]
            wanted = -matvec(np.swapaxes(self.U, -1, -2), gamma) * self.inverse
            held = np.where(self.inverse > 0.0, matvec(np.swapaxes(self.V, -1, -2), y0), 0.0)
            share = wanted - held
            y = y0 + matvec(self.V, share)
            a = self.factor.outwards(y[..., None, :])[..., 0, :]
            return a, matvec(self.U, self.inverse * share)

    def lost(self, x: Array) -> Array:
        """The part of a right-hand side that no motion can meet."""
        kept = np.where(self.inverse > 0.0, matvec(np.swapaxes(self.U, -1, -2), x), 0.0)
        return x - matvec(self.U, kept)


def require_finite(a: Array, N: Array) -> tuple[Array, Array]:
    """Accelerations or velocities and reactions; NumericsError where one is no number."""
    if not (np.isfinite(a).all() and np.isfinite(N).all()):
        raise NumericsError(
            "accelerations or reactions under the constraints are beyond the largest number; give smaller "
            "velocities, torques or masses"
        )
    return a, N


def matvec(A: Array, x: Array) -> Array:
    """A x, the last axes."""
    return np.asarray((A @ x[..., None])[..., 0])


def pseudoinverse(A: Array, size: Array | None = None) -> Array:
    """Moore-Penrose inverse; singular values below RANK of `size`, else of the largest, are rounding."""
    if not A.shape[-1] or not A.shape[-2]:
        return np.zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]))
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    least = RANK_TOLERANCE * (s[..., :1] if size is None else size[..., None])
    inverse = np.divide(1.0, s, out=np.zeros_like(s), where=s > least)
    return np.asarray((np.swapaxes(Vt, -1, -2) * inverse[..., None, :]) @ np.swapaxes(U, -1, -2))


def factor_of(robot: Dynamics, q: Array) -> MassFactor:
    """F at q (..., nq); NumericsError where rounding is all that is left of a pivot."""
    if is_large(robot.model):
        return Sweeps(robot, q)
    return Cholesky(_cholesky(robot, q))


def factor_sweeps(robot: Dynamics) -> tuple[Function, ...]:
    """F x and F^T x of (q, x), made once for a large robot."""

    def make() -> tuple[Function, ...]:
        functions = [rolled_function(robot.model, name, Spec(check=True)) for name in ("inwards", "outwards")]
        return tuple(f for f in functions if f is not None)

    return memoised(robot, ("factor of the inverse of M",), make)


def _cholesky(robot: Dynamics, q: Array) -> Array:
    """L. A pivot is L_kk^2, of which rounding takes eps sum_i (L^-1)_ki^2 M_ii, as in `guard_pivots`."""
    M = robot.mass_matrix(q)
    diagonal = np.diagonal(M, axis1=-2, axis2=-1)
    try:
        L = np.linalg.cholesky(M)
        if np.all(matvec(np.linalg.inv(L) ** 2, diagonal) * PIVOT_FLOOR[8] < 1.0):
            return L
    except np.linalg.LinAlgError:
        pass
    shares = pivot_shares(M, *factors_of(M))
    names = [joint for joint, _ in robot.model.freedoms()]
    lost = first_lost(shares.reshape(-1, robot.nv)[:, ::-1], names[::-1])
    where = f" in row {lost.row} of the batch" if M.ndim > 2 else ""
    raise NumericsError(
        f"robot {robot.name!r}: the mass matrix is singular to working precision{where} at {lost.place}, "
        "so the motion is not determined; give the bodies beside it mass, or leave the singular configuration"
    )


def factors_of(M: Array) -> tuple[Array, Array]:
    """D and L of M = L^T D L, from the last rate to the first, whether M is positive or not."""
    rest, D, L = np.array(M), np.zeros(M.shape[:-1]), np.zeros_like(M)
    for k in range(M.shape[-1] - 1, -1, -1):
        row = rest[..., k, :].copy()
        D[..., k] = pivot = row[..., k]
        share = np.divide(row, pivot[..., None], out=np.zeros_like(row), where=pivot[..., None] > 0.0)
        rest -= share[..., :, None] * row[..., None, :]
        L[..., k, :k], L[..., k, k] = share[..., :k], 1.0
    return D, L


def pivot_shares(M: Array, D: Array, L: Array) -> Array:
    """The pivots D of `factors_of` M, divided by their rounding errors in units of eps."""
    diagonal = np.diagonal(M, axis1=-2, axis2=-1)
    return np.asarray(D / matvec(np.swapaxes(np.linalg.inv(L), -1, -2) ** 2, diagonal))


def independent_rows(weighted: Array, least: float) -> Array:
    """Flags (..., m) of rows that span all, at each configuration by itself; weighted: Gamma F^T, (..., m, nv).

    Each is the first one with enough left of it, so that nearly all configurations have the same rows, else that
    with the most. A row is left out where the squared sine between it and the span of those chosen is below
    `least`.
    """
    rest, size = weighted, _squares(weighted)
    floor, chosen = _floor(size, least), np.zeros(size.shape, bool)
    for _ in range(min(weighted.shape[-2:])):
        left = _squares(rest)
        share = np.divide(left, size, out=np.zeros_like(left), where=left > floor)
        most = share.max(-1, keepdims=True)
        best = np.where(most < ENOUGH_LEFT, share == most, share >= ENOUGH_LEFT).argmax(-1)[..., None]
        if not most.any():
            break
        picked = np.arange(size.shape[-1]) == best
        chosen |= picked & (most > 0.0)
        length = np.sqrt(np.take_along_axis(left, best, -1))
        row = np.take_along_axis(rest, best[..., None], -2)[..., 0, :]
        direction = np.divide(row, length, out=np.zeros_like(row), where=most > 0.0)
        for _ in range(2):  # twice is enough (Kahan): what rounding leaves of the direction
            rest = rest - matvec(rest, direction)[..., None] * direction[..., None, :]
        rest[picked] = 0.0
    return chosen


def spanned_by_rows(weighted: Array, kept: Sequence[int], least: float) -> Array:
    """True (n,) where the rows kept, which are independent, span all of (n, m, nv) to the same measure."""
    basis = weighted[:, kept]
    back = np.swapaxes(basis, -1, -2)
    rest = weighted - weighted @ back @ np.linalg.solve(basis @ back, basis)
    return np.asarray((_squares(rest) <= _floor(_squares(weighted), least)).all(-1))


def _squares(rows: Array) -> Array:
    return np.asarray(np.einsum("...k,...k->...", rows, rows))


def _floor(size: Array, least: float) -> Array:
    """The square that a row may have left and still follow from others; a row of rounding alone does too."""
    return np.asarray(least * np.maximum(size, least * size.max(axis=-1, keepdims=True, initial=0.0)))
