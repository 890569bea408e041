"""Faces of the convex hull of a few points."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ...model.vectors import Vec3

FLAT_SHARE_OF_HULL = 1e-9  # of the size of a hull: points that are nearer to the plane of a face are on it


@lru_cache(maxsize=256)
def faces_of_points(points: tuple[Vec3, ...]) -> tuple[tuple[Vec3, ...], tuple[int, ...]]:
    """Unit normals of the faces, and as integers: their number, where the corners of each begin, where the last
    ends, and the corners, counterclockwise from outside. A hull without volume has none.

    A face is every plane through three points that has all others behind it.
    """
    x = np.array(points, float).reshape(-1, 3)
    flat = FLAT_SHARE_OF_HULL * (np.abs(x - x.mean(0)).max() if len(x) else 0.0)
    normals, corners = list[Vec3](), list[list[int]]()
    for n, on in _supporting_planes(x, flat):
        middle = x[on].mean(0)
        u = x[on[0]] - middle
        across = np.cross(n, u)
        turn = np.arctan2((x[on] - middle) @ across, (x[on] - middle) @ u)
        normals.append((float(n[0]), float(n[1]), float(n[2])))
        corners.append([on[k] for k in np.argsort(turn)])
    starts = np.cumsum([2 + len(corners), *map(len, corners)]).tolist()
    return tuple(normals), (len(corners), *starts, *(k for face in corners for k in face))


def _supporting_planes(x: np.ndarray, flat: float) -> Sequence[tuple[np.ndarray, list[int]]]:
    """Normals of the planes with all points behind them, and the points on each."""
    try:
        from scipy.spatial import ConvexHull, QhullError
    except ImportError:  # a hull without known faces touches at one place
        return []
    if len(x) < 4:
        return []
    try:
        hull = ConvexHull(x)
    except QhullError:  # points in one plane
        return []
    planes: list[tuple[np.ndarray, list[int]]] = []
    vertices = set(hull.vertices.tolist())
    for n, offset in zip(hull.equations[:, :3], hull.equations[:, 3]):
        on = [k for k in np.flatnonzero(np.abs(x @ n + offset) <= flat).tolist() if k in vertices]
        if len(on) > 2 and not any(on == other for _, other in planes):
            planes.append((n, on))
    return planes
