"""Closed surfaces of triangles: the exact integrals over the part of their inside that lies beyond a plane.

By the theorem of Gauss, the integral of t^a y^b z^c over a body is that of y^(b+1) / (b+1) t^a z^c n_y over its
surface. The face that a cut across t leaves has n_y = 0 and need not be made: triangles beyond the plane count in
full, those that it crosses with the part beyond (after Mirtich 1996, Fast and accurate computation of polyhedral
mass properties, J. of Graphics Tools 1(2)).
"""

from __future__ import annotations

import numpy as np

from ..io.given import Array

PAIRS = 2_000_000  # of a triangle and a plane at once
SAME = 2**20  # steps along the longest side of a mesh: corners within one are the same


def part_beyond(corners: Array, normal: Array, offsets: Array) -> Array:
    """Pseudo-inertia (k, 4, 4) at density 1 of what triangles (n, 3, 3) enclose where normal . x >= offset."""
    size = float(np.linalg.norm(normal))
    R = _across(normal / size)
    X = np.ones((*corners.shape[:2], 4))
    X[..., :3] = corners @ R.T
    flux, h = _flux(X).reshape(-1, 16), offsets / size
    P = np.zeros((len(h), 16))
    for first in range(0, len(h), step := max(1, PAIRS // len(X))):
        rows = slice(first, first + step)
        d = X[None, :, :, 0] - h[rows, None, None]
        inside = (d >= 0.0).sum(axis=2)
        P[rows] = (inside >= 2) @ flux
        k, i = np.nonzero((inside == 1) | (inside == 2))
        one = inside[k, i] == 1
        odd = np.argmax((d[k, i] >= 0.0) == one[:, None], axis=1)  # the corner that stands alone on its side
        o, a, b = ((X[i, (odd + j) % 3], d[k, i, (odd + j) % 3]) for j in range(3))
        tips = _flux(np.stack([o[0], _cut(*o, *a), _cut(*o, *b)], axis=1)).reshape(-1, 16)
        np.add.at(P, k + first, np.where(one, 1.0, -1.0)[:, None] * tips)
    turn = np.eye(4)
    turn[:3, :3] = R.T
    return np.asarray(turn @ (P.reshape(-1, 4, 4) / _POWERS) @ turn.T)


def open_edges(points: Array, faces: Array) -> tuple[int, int]:
    """Counts the edges that are not shared by two triangles that turn the same way, and all edges."""
    low, size = points.min(0), float(np.ptp(points, axis=0).max()) or 1.0
    x, y, z = np.rint((points - low) * (SAME / size)).astype(np.int64).T
    f = np.unique((x << 42) | (y << 21) | z, return_inverse=True)[1].ravel()[faces]
    f = f[(f[:, 0] != f[:, 1]) & (f[:, 1] != f[:, 2]) & (f[:, 2] != f[:, 0])]
    ends = np.concatenate([f[:, [0, 1]], f[:, [1, 2]], f[:, [2, 0]]])
    _, edge = np.unique((ends.min(1) << 32) | ends.max(1), return_inverse=True)
    turns = np.bincount(edge.ravel(), np.where(ends[:, 0] < ends[:, 1], 1, -1))
    return int(np.count_nonzero(turns)), len(turns)


# By which power of y an entry was raised too far
_POWERS = 1.0 + (np.arange(4) == 1)[:, None] + (np.arange(4) == 1)[None, :]


def _flux(X: Array) -> Array:
    """Integral of y x x^T n_y over triangles of homogeneous corners (m, 3, 4), (m, 4, 4)."""
    (t1, _, z1, _), (t2, _, z2, _) = (np.moveaxis(X[:, j] - X[:, 0], -1, 0) for j in (1, 2))
    y, S = X[..., 1], X.sum(axis=1)
    r = np.einsum("mi,mia->ma", y, X)
    mixed = S[:, :, None] * r[:, None, :]
    found = y.sum(axis=1)[:, None, None] * (S[:, :, None] * S[:, None, :] + np.swapaxes(X, 1, 2) @ X)
    found += mixed + np.swapaxes(mixed, 1, 2) + 2.0 * np.swapaxes(X * y[..., None], 1, 2) @ X
    return np.asarray((z1 * t2 - t1 * z2)[:, None, None] / 120.0 * found)


def _cut(o: Array, do: Array, x: Array, dx: Array) -> Array:
    """The intersection of a plane and the line from o to x, on either side of it at the distances do and dx."""
    return np.asarray(o + (do / (do - dx))[:, None] * (x - o))


def _across(u: Array) -> Array:
    """Rows: a unit vector and two across it."""
    y = np.cross(u, np.eye(3)[int(np.argmin(np.abs(u)))])
    y /= np.linalg.norm(y)
    return np.stack([u, y, np.cross(u, y)])
