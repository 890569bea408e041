"""The small dense solve of constrained dynamics, in the coordinates y = L^T a with M = L L^T.

There a is the projection of Udwadia and Kalaba: a and Gamma^T N are unique for any set of rows, N has the least
norm, and the directions that count are the rank.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..codegen.graph.program import FLOOR
from ..codegen.runtime.diagnose import first_lost
from ..errors import NumericsError
from ..model.dynamics import Dynamics

Array = np.ndarray[Any, Any]
RANK = 1e-10  # of the largest singular value of Gamma L^-T: below it a direction counts as lost


class RankSplit(NamedTuple):
    """Gamma L^-T = U diag(s) V^T with M = L L^T; inverse holds 1 / s of the kept directions, else 0."""

    L: Array
    U: Array
    inverse: Array
    V: Array

    @classmethod
    def of(cls, L: Array, jacobian: Array) -> RankSplit:
        """M = L L^T."""
        weighted = np.swapaxes(np.linalg.solve(L, np.swapaxes(jacobian, -1, -2)), -1, -2)
        if not weighted.shape[-2] or not weighted.shape[-1]:
            lead, m, n = weighted.shape[:-2], *weighted.shape[-2:]
            return cls(L, np.zeros((*lead, m, 0)), np.zeros((*lead, 0)), np.zeros((*lead, n, 0)))
        U, s, Vt = np.linalg.svd(weighted, full_matrices=False)
        keep = s > RANK * s[..., :1]
        inverse = np.divide(1.0, s, out=np.zeros_like(s), where=keep)
        return cls(L, U, inverse, np.swapaxes(Vt, -1, -2))

    @property
    def rank(self) -> Any:
        kept = np.count_nonzero(self.inverse, axis=-1)
        return int(kept) if np.ndim(kept) == 0 else kept

    def solve(self, force: Array, gamma: Array) -> tuple[Array, Array]:
        """a and least-norm N: y = y0 + V s^-1 U^T need, N = U s^-2 U^T need, need = -(gamma + Gamma a0)."""
        y0 = _lower(self.L, force)
        wanted = -matvec(np.swapaxes(self.U, -1, -2), gamma) * self.inverse
        held = np.where(self.inverse > 0.0, matvec(np.swapaxes(self.V, -1, -2), y0), 0.0)
        share = wanted - held
        y = y0 + matvec(self.V, share)
        a = _lower(np.swapaxes(self.L, -1, -2), y)
        return a, matvec(self.U, self.inverse * share)

    def lost(self, x: Array) -> Array:
        """The part of a right-hand side that no motion can meet."""
        kept = np.where(self.inverse > 0.0, matvec(np.swapaxes(self.U, -1, -2), x), 0.0)
        return x - matvec(self.U, kept)


def matvec(A: Array, x: Array) -> Array:
    """A x, the last axes."""
    return np.asarray((A @ x[..., None])[..., 0])


def _lower(L: Array, x: Array) -> Array:
    return np.asarray(np.linalg.solve(L, x[..., None])[..., 0])


def pseudoinverse(A: Array, size: Array) -> Array:
    """Moore-Penrose inverse; singular values below RANK of `size` are rounding, even if all are."""
    if not A.shape[-1] or not A.shape[-2]:
        return np.zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]))
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    inverse = np.divide(1.0, s, out=np.zeros_like(s), where=s > RANK * size[..., None])
    return np.asarray((np.swapaxes(Vt, -1, -2) * inverse[..., None, :]) @ np.swapaxes(U, -1, -2))


def cholesky(robot: Dynamics, q: Array) -> Array:
    """L of M = L L^T; NumericsError where rounding is all that is left of a pivot, which is the square of L_kk."""
    M = robot.mass_matrix(q)
    diagonal = np.diagonal(M, axis1=-2, axis2=-1)
    try:
        L = np.linalg.cholesky(M)
        if np.all(np.diagonal(L, axis1=-2, axis2=-1) ** 2 > FLOOR[8] * diagonal):
            return L
    except np.linalg.LinAlgError:
        pass
    names = [j.name for j in robot.model.moving_joints for _ in range(j.nv)]
    lost = first_lost(
        _pivots(M).reshape(-1, robot.nv)[:, ::-1] / diagonal.reshape(-1, robot.nv)[:, ::-1], names[::-1]
    )
    where = f" in row {lost.row} of the batch" if M.ndim > 2 else ""
    raise NumericsError(
        f"robot {robot.name!r}: the mass matrix is singular to working precision{where} at joint {lost.joint!r}, "
        "so the motion is not determined; give the bodies beside it mass, or leave the singular configuration"
    )


def _pivots(M: Array) -> Array:
    """D of M = L^T D L, from the last rate to the first."""
    rest, out = np.array(M), np.zeros(M.shape[:-1])
    for k in range(M.shape[-1] - 1, -1, -1):
        row = rest[..., k, :].copy()
        out[..., k] = pivot = row[..., k]
        share = np.divide(row, pivot[..., None], out=np.zeros_like(row), where=pivot[..., None] > 0.0)
        rest -= share[..., :, None] * row[..., None, :]
    return out


def independent(L: Array, jacobian: Array, least: float) -> tuple[int, ...]:
    """Rows that span all, chosen one by one with the most left of it; jacobian (m, nv).

    A row is left out where the squared sine between it and the span of those chosen is below `least`.
    """
    rest = np.linalg.solve(L, jacobian.T).T
    size = _squares(rest)
    floor = _floor(size, least)
    chosen: list[int] = []
    while len(chosen) < min(rest.shape):
        left = _squares(rest)
        share = np.divide(left, size, out=np.zeros_like(left), where=left > floor)
        best = int(share.argmax())
        if share[best] == 0.0:
            break
        chosen.append(best)
        direction = rest[best] / np.sqrt(left[best])
        for _ in range(2):  # twice is enough (Kahan): what rounding leaves of the direction
            rest = rest - np.outer(rest @ direction, direction)
        rest[best] = 0.0
    return tuple(sorted(chosen))


def spanned(L: Array, jacobian: Array, kept: tuple[int, ...], least: float) -> bool:
    """Whether the rows kept, which are independent, span all of (n, m, nv) to the same measure."""
    weighted = np.swapaxes(np.linalg.solve(L, np.swapaxes(jacobian, -1, -2)), -1, -2)
    own = weighted[:, kept]
    back = np.swapaxes(own, -1, -2)
    rest = weighted - weighted @ back @ np.linalg.solve(own @ back, own)
    return bool((_squares(rest) <= _floor(_squares(weighted), least)).all())


def _squares(rows: Array) -> Array:
    return np.asarray(np.einsum("...k,...k->...", rows, rows))


def _floor(size: Array, least: float) -> Array:
    """The square that a row may have left and still follow from others; a row of rounding alone does too."""
    return np.asarray(least * np.maximum(size, least * size.max(axis=-1, keepdims=True, initial=0.0)))


__all__ = ["RANK", "RankSplit", "cholesky", "independent", "matvec", "pseudoinverse", "spanned"]
