"""Polygons of faces, clipped by the sides of a reference face: the places where two solids touch.

A reference face is given by its polygon, clockwise as seen from outside, and its unit normal; what lies against
it, by a polygon too, or by a segment, which is one of two corners. Functions run in Python, and as machine code by
`codegen.llvm.plain`.

  Sutherland, Hodgman 1974, Reentrant polygon clipping.
"""

from __future__ import annotations

from math import sqrt

from ...codegen.lower.plain_values import Floats, Integers, Part, floats, integers
from ...mechanics.spatial import Vec
from .simplex import corner_of, put_corner

MAX_POLYGON = 256  # corners of a face, and of what is left of it
PLACE_NUMBERS = 7  # of a place: distance, point midway, normal
MAX_PLACES = 8  # of two boxes; of others half as many
LARGER = 1.0 + 1e-12  # of an area: what is less is a tie, whose first quadrilateral stays
ON_SIDE = 1e-15  # m: what is less past a side is on it


def clipped_by(
    polygon: Floats, count: int, at: Vec, inward: Vec, out: Floats, leading: bool,
) -> int:  # fmt: skip
    """Cuts a polygon by a plane; gives the number of corners in `out` that are left on its inner side. leading:
    the corner stands first that was first, not the next one or a cut before it."""
    if count == 0:
        return 0
    kept, last = 0, corner_of(polygon, 0)
    before = inward.dot(last - at)
    for k in range(count):
        corner = corner_of(polygon, (k + 1) % count)
        height = inward.dot(corner - at)
        if leading and before > -ON_SIDE and kept < MAX_POLYGON:
            put_corner(out, kept, last)
            kept = kept + 1
        if (before <= -ON_SIDE) != (height <= -ON_SIDE) and kept < MAX_POLYGON:
            put_corner(out, kept, last + (corner - last) * (before / (before - height)))
            kept = kept + 1
        if not leading and height > -ON_SIDE and kept < MAX_POLYGON:
            put_corner(out, kept, corner)
            kept = kept + 1
        last, before = corner, height
    return kept


def clipped_to_face(face: Floats, sides: int, n: Vec, polygon: Floats, count: int) -> int:
    """Leaves of a polygon what is over a face; gives the number of its corners."""
    left = floats(3 * MAX_POLYGON + 3)
    for k in range(sides):
        a, b = corner_of(face, k), corner_of(face, (k + 1) % sides)
        side = (b - a).cross(n)
        count = clipped_by(polygon, count, a, side * (1.0 / sqrt(side.dot(side))), left, False)
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
    given = count
    count = clipped_to_face(face, sides, n, polygon, count)
    kept, at = 0, corner_of(face, 0)
    for k in range(count):
        corner = corner_of(polygon, k)
        if n.dot(corner - at) <= margin:
            put_corner(polygon, kept, corner)
            kept = kept + 1
    if given == 2 and kept > 2:
        kept = farthest_two(polygon, kept)
    elif kept > most:
        kept = widest(polygon, kept)
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


def farthest_two(points: Floats, count: int) -> int:
    """Leaves the two points that are farthest apart."""
    i, j, most = 0, 1, 0.0
    for k in range(count):
        for m in range(k + 1, count):
            way = corner_of(points, m) - corner_of(points, k)
            if way.dot(way) > most:
                i, j, most = k, m, way.dot(way)
    first, second = corner_of(points, i), corner_of(points, j)
    put_corner(points, 0, first)
    put_corner(points, 1, second)
    return 2


def four_area(polygon: Floats, i: int, j: int, k: int, l: int) -> float:
    """Twice the area of a quadrilateral."""
    across = (corner_of(polygon, i) - corner_of(polygon, k)).cross(corner_of(polygon, j) - corner_of(polygon, l))
    return sqrt(across.dot(across))


def widened(polygon: Floats, count: int, four: Integers, best: float, kept: Integers) -> float:
    """Moves three corners of a quadrilateral on as long as its area grows; gives that. kept: the largest one."""
    grows = True
    while grows:
        grows = False
        for turn in range(3):  # after each step of the last corner those before it
            moves = True
            while moves and (turn == 0 or grows):
                at = 3 - turn
                before = four[at]
                four[at] = (before + 1) % count
                area = four_area(polygon, four[0], four[1], four[2], four[3])
                moves = area > best * LARGER
                if moves:
                    best = area
                    for m in range(4):
                        kept[m] = four[m]
                    grows = True
                    if turn == 0:
                        break
                else:
                    four[at] = before
    return best


def widest(polygon: Floats, count: int) -> int:
    """Leaves of a convex polygon a large quadrilateral, whose corners go round as long as that makes it larger."""
    four, kept, left = integers(4), integers(4), floats(12)
    for m in range(4):
        four[m] = m
        kept[m] = m
    best = four_area(polygon, 0, 1, 2, 3)
    for first in range(count):
        four[0] = first
        best = widened(polygon, count, four, best, kept)
        for m in range(1, 4):  # the first one has come to the second, which goes on, and so may the next
            if four[m] != four[m - 1]:
                break
            four[m] = (four[m] + 1) % count
    for m in range(4):
        put_corner(left, m, corner_of(polygon, kept[m]))
    for m in range(4):
        put_corner(polygon, m, corner_of(left, m))
    return 4
