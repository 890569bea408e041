"""Faces and edges of the convex hull of points, as tables of the search."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product

import numpy as np

from ...errors import DrevoError
from ...io import meshes
from ...model.vectors import Vec3
from .simplex import HALF_GRID

CORNER_DIGITS = 12  # of coordinates, m
Faces = tuple[tuple[int, ...], ...]


@lru_cache(maxsize=256)
def hull_tables(points: tuple[Vec3, ...], faces: Faces = ()) -> tuple[tuple[Vec3, ...], tuple[int, ...]]:
    """Unit normals of the faces, and as integers: their number, where the corners of each begin, and end, and the
    corners, counterclockwise from outside; then where the neighbours of each point begin, and end, where its faces
    do likewise, the neighbours and the faces, and at last the point farthest along each direction of a grid. A
    hull without volume has no faces.
    """
    x = np.array(points, float).reshape(-1, 3)
    normals, polygons = list[Vec3](), faces or _found_faces(x)
    if not polygons:
        return (), (0, 2)
    near, at = ([list[int]() for _ in x] for _ in range(2))
    for k, corners in enumerate(polygons):
        spokes = x[list(corners[1:])] - x[corners[0]]
        n = np.cross(spokes[:-1], spokes[1:]).sum(0)  # twice the areas about the first corner
        n = n / max(np.linalg.norm(n), meshes.LEAST_NORMAL)
        normals.append((float(n[0]), float(n[1]), float(n[2])))
        for i, j in zip(corners, (*corners[1:], corners[0])):
            near[i].append(j)
            near[j].append(i)
            at[i].append(k)
    real = [k for k, some in enumerate(near) if some]
    near = [sorted(set(some)) or real for some in near]  # from a point inside anywhere
    table = [len(polygons), *_starts(2 + len(polygons), polygons), *(k for corners in polygons for k in corners)]
    starts = _starts(len(table) + 2 * (len(x) + 1), [*near, *at])
    table += [*starts[: len(x) + 1], *starts[len(x) :], *(k for some in (*near, *at) for k in some)]
    grid = np.linspace(-1.0, 1.0, 2 * HALF_GRID + 1)
    table += (np.array([*product(grid, repeat=3)]) @ x.T).argmax(1).tolist()
    return tuple(normals), tuple(table)


def _starts(first: int, parts: Sequence[Sequence[int]]) -> list[int]:
    """The places where each part begins, and where the last one ends."""
    return [first + k for k in np.cumsum([0, *map(len, parts)]).tolist()]


def _found_faces(x: np.ndarray) -> Sequence[Sequence[int]]:
    """Corners of the faces of a hull; none without volume, or without SciPy: it touches at one place then."""
    try:
        x = np.round(x, CORNER_DIGITS)  # faces along axes get normals along axes
        return meshes.polygons_of(x, meshes.hull_faces(x)) if len(x) > 3 else ()
    except DrevoError:
        return ()
