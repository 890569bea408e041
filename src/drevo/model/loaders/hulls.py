"""Meshes that touch, as a few support points of their convex hulls."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ModelError
from ...io import meshes
from ...io.files import Files
from ...io.packages import package
from ..description import Vec3
from ..draft import Draft

Array = np.ndarray[Any, Any]
LEAST = 4  # points of a body


def support_points(points: Array, most: int) -> tuple[tuple[Vec3, ...], int, float]:
    """At most so many corners of the convex hull, how many it has, and how far it stands out of theirs, m.

    The corner that stands out most is added again and again. ModelError for points in a plane.
    """
    corners = points[np.unique(meshes.hull_faces(points))]
    if len(corners) <= most:
        return _tuples(corners), len(corners), 0.0
    chosen = _spread(corners)
    while True:
        out = _standing_out(corners[chosen], corners)
        if len(chosen) >= most or out.max() <= 0.0:
            return _tuples(corners[chosen]), len(corners), float(max(out.max(), 0.0))
        chosen.append(int(out.argmax()))


def _tuples(points: Array) -> tuple[Vec3, ...]:
    return tuple((float(x), float(y), float(z)) for x, y, z in points)


def _spread(corners: Array) -> list[int]:
    """Four corners that enclose a volume: each as far as may be from the point, line and plane of those before."""
    first = int(((corners - corners.mean(0)) ** 2).sum(1).argmax())
    way = corners - corners[first]
    second = int((way**2).sum(1).argmax())
    across = np.cross(way, way[second])
    third = int((across**2).sum(1).argmax())
    fourth = int(np.abs(way @ across[third]).argmax())
    return [first, second, third, fourth]


def _standing_out(chosen: Array, corners: Array) -> Array:
    """The distance by which corners stand out of the hull of some of them; negative inside."""
    spatial = package("scipy.spatial", "a mesh that touches", "scipy")
    planes = spatial.ConvexHull(chosen, qhull_options="Qt QJ").equations
    found: Array = (corners @ planes[:, :3].T + planes[:, 3]).max(1)
    return found


def hull_of(draft: Draft, files: Files, label: str, points: Array) -> tuple[Vec3, ...]:
    """The support points of a mesh, which the notes tell of."""
    found, corners, out = support_points(points, files.hulls)
    draft.notes.append(
        f"{label} touches by {len(found)} of the {corners} corners of its convex hull, which stands out by up to "
        f"{1000.0 * out:.3g} mm"
    )
    return found


def check_hulls(count: object) -> int:
    """Checks the number of support points that a mesh may have; 0 where meshes do not touch."""
    if (
        isinstance(count, bool)
        or not isinstance(count, int)
        or (count and not LEAST <= count <= meshes.MOST_CORNERS)
    ):
        raise ModelError(
            f"hulls is 0, or from {LEAST} to {meshes.MOST_CORNERS} support points of each mesh, not {count!r}"
        )
    return count
