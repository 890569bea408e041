"""Polygons of faces, clipped by the sides of a reference face: the places where two solids touch.

A reference face is given by its polygon, counterclockwise as seen from outside, and its unit normal; what lies
against it, by a polygon too, or by a segment, which is one of two corners. Functions run in Python, and as
machine code by `codegen.llvm.plain`.

  Sutherland, Hodgman 1974, Reentrant polygon clipping.
"""

from __future__ import annotations

from math import sqrt

from ...codegen.lower.plain_values import Floats, Part, floats
from ...mechanics.spatial import Vec
from .simplex import corner_of, put_corner

MAX_POLYGON = 48  # corners of a face, and of what is left of it
PLACE_NUMBERS = 7  # of a place: distance, point midway, normal
MAX_PLACES = 8  # of two boxes; of others half as many
SIDE_SHARE = 1e-15  # of the size of a side: what is less past it is on it


def clipped_by(polygon: Floats, count: int, at: Vec, inward: Vec, out: Floats) -> int:
    """Cuts a polygon by a plane; gives the number of corners in `out` that are left on its inner side."""
    kept, last = 0, corner_of(polygon, count - 1)
    before = inward.dot(last - at)
    for k in range(count):
        corner = corner_of(polygon, k)
        height = inward.dot(corner - at)
        if (before < 0.0) != (height < 0.0) and kept < MAX_POLYGON:
            put_corner(out, kept, last + (corner - last) * (before / (before - height)))
            kept = kept + 1
        if height >= 0.0 and kept < MAX_POLYGON:
            put_corner(out, kept, corner)
            kept = kept + 1
        last, before = corner, height
    return kept


def clipped_to_face(face: Floats, sides: int, n: Vec, polygon: Floats, count: int) -> int:
    """Leaves of a polygon what is over a face; gives the number of its corners."""
    left = floats(3 * MAX_POLYGON + 3)
    for k in range(sides):
        if count == 0:
            return 0
        a, b = corner_of(face, k), corner_of(face, (k + 1) % sides)
        side = n.cross(b - a)
        slack = SIDE_SHARE * sqrt(side.dot(side))
        count = clipped_by(polygon, count, a - side * slack, side, left)
        for m in range(count):
            put_corner(polygon, m, corner_of(left, m))
    return count


def put_place(out: Floats, k: int, dist: float, point: Vec, n: Vec) -> None:
    """Enters place k: how far two surfaces are apart along a normal, and the point midway between them."""
    out[1 + PLACE_NUMBERS * k] = dist
    put_corner(Part(out, 2 + PLACE_NUMBERS * k), 0, point)
    put_corner(Part(out, 5 + PLACE_NUMBERS * k), 0, n)


def places_over_face(
    face: Floats, sides: int, n: Vec, polygon: Floats, count: int, along: Vec, sign: float, margin: float,
    most: int, out: Floats,
) -> int:  # fmt: skip
    """Enters the corners of a polygon that are over a face, or under it, as places; those that are too far are
    none. along: the direction of distances, n or that in which the polygon faces; sign: -1 where the normal of the
    contact is its opposite."""
    count = clipped_to_face(face, sides, n, polygon, count)
    kept, at = 0, corner_of(face, 0)
    for k in range(count):
        corner = corner_of(polygon, k)
        if n.dot(corner - at) <= margin and not has_near(polygon, kept, corner):
            put_corner(polygon, kept, corner)
            kept = kept + 1
    kept = widest(polygon, kept, most)
    for k in range(kept):
        corner = corner_of(polygon, k)
        height = n.dot(corner - at)
        dist = height * n.dot(along)
        put_place(out, k, dist, corner - n * height + along * (0.5 * dist), along * sign)
    return kept


def has_near(points: Floats, count: int, x: Vec) -> bool:
    """True if one of the first points is this one."""
    for k in range(count):
        way = corner_of(points, k) - x
        if way.dot(way) < 1e-30:
            return True
    return False


def widest(polygon: Floats, count: int, most: int) -> int:
    """Leaves of a convex polygon of too many corners the largest quadrilateral; gives how many are left."""
    if count <= most:
        return count
    if most > 4:
        return most
    best, i1, j1, k1, l1 = -1.0, 0, 1, 2, 3
    for i in range(count):
        for k in range(i + 2, count):
            a, c = corner_of(polygon, i), corner_of(polygon, k)
            across, j2, l2, over, under = c - a, i + 1, i + 1, -1.0, -1.0
            for j in range(i + 1, k):
                area = across.cross(corner_of(polygon, j) - a)
                if area.dot(area) > over:
                    over, j2 = area.dot(area), j
            for l in range(k + 1, count + i):
                area = across.cross(corner_of(polygon, l % count) - a)
                if area.dot(area) > under:
                    under, l2 = area.dot(area), l % count
            if under >= 0.0 and sqrt(over) + sqrt(under) > best:
                best, i1, j1, k1, l1 = sqrt(over) + sqrt(under), i, j2, k, l2
    kept = floats(12)
    put_corner(kept, 0, corner_of(polygon, i1))
    put_corner(kept, 1, corner_of(polygon, j1))
    put_corner(kept, 2, corner_of(polygon, k1))
    put_corner(kept, 3, corner_of(polygon, l1))
    for m in range(4):
        put_corner(polygon, m, corner_of(kept, m))
    return 4
