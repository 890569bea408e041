"""Faces and edges of solids by their directions, in the axes of the solid.

A hull has its faces behind its points: their normals among the floats, and among the integers their number, where
the corners of each begin, where those of the last end, and the corners, counterclockwise as seen from outside.
Ends of cylinders are polygons. Functions run in Python, and as machine code by `codegen.llvm.plain`.
"""

from __future__ import annotations

from math import sqrt

from ...codegen.lower.plain_values import Floats, Integers, Part
from ...mechanics.spatial import Vec
from .clipping import MAX_POLYGON
from .simplex import BOX, CYLINDER, HULL, NO_DISTANCE, SEGMENT, corner_of, put_corner, support_point

END_CORNERS = 16  # of the polygon that stands for an end of a cylinder, which begins half a side past its X axis
END_COSINE, END_SINE = 0.9238795325112867, 0.3826834323650898  # of its angle
FACE_COSINE = 0.996  # of a face and a contact: above it they are in line
EDGE_COSINE = 0.0893532  # of an edge and a contact: below it they are square


def hull_face(points: Floats, count: int, faces: Integers, d: Vec) -> int:
    """The face of a hull whose normal is nearest to a direction."""
    best, farthest = 0, -NO_DISTANCE
    for k in range(faces[0]):
        along = d.dot(corner_of(points, count + k))
        if along > farthest:
            farthest, best = along, k
    return best


def face_normal(kind: int, points: Floats, count: int, faces: Integers, d: Vec) -> Vec:
    """The unit normal of the face that is nearest to a direction; zero where a solid has no faces."""
    if kind == CYLINDER:
        return Vec(0.0, 0.0, 1.0 if d.z >= 0.0 else -1.0)
    if kind == BOX:
        x, y, z = abs(d.x), abs(d.y), abs(d.z)
        if x >= y and x >= z:
            return Vec(1.0 if d.x >= 0.0 else -1.0, 0.0, 0.0)
        if y >= z:
            return Vec(0.0, 1.0 if d.y >= 0.0 else -1.0, 0.0)
        return Vec(0.0, 0.0, 1.0 if d.z >= 0.0 else -1.0)
    if kind == HULL and faces[0] > 0:
        return corner_of(points, count + hull_face(points, count, faces, d))
    return Vec(0.0, 0.0, 0.0)


def put_rectangle(out: Floats, at: Vec, u: Vec, v: Vec) -> int:
    """Enters the corners of a rectangle by its middle and half sides."""
    put_corner(out, 0, at + u + v)
    put_corner(out, 1, at - u + v)
    put_corner(out, 2, at - u - v)
    put_corner(out, 3, at + u - v)
    return 4


def put_face_polygon(
    kind: int, size: Floats, points: Floats, count: int, faces: Integers, n: Vec, out: Floats
) -> int:
    """Enters the corners of the face that has this normal, counterclockwise from outside; gives how many."""
    if kind == BOX:
        a, b, c = Vec(size[0], 0.0, 0.0), Vec(0.0, size[1], 0.0), Vec(0.0, 0.0, size[2])
        if abs(n.x) > 0.5:
            return put_rectangle(out, a * n.x, b, c * n.x)
        if abs(n.y) > 0.5:
            return put_rectangle(out, b * n.y, c, a * n.y)
        return put_rectangle(out, c * n.z, a, b * n.z)
    if kind == CYLINDER:
        x, y = size[0], 0.0
        for k in range(END_CORNERS):
            put_corner(out, k, Vec(x, y * n.z, size[1] * n.z))
            x, y = x * END_COSINE - y * END_SINE, y * END_COSINE + x * END_SINE
        return END_CORNERS
    face = hull_face(points, count, faces, n)
    first, last, sides = faces[1 + face], faces[2 + face], 0
    for k in range(first, last):
        if sides < MAX_POLYGON // 2:
            put_corner(out, sides, corner_of(points, faces[k]))
            sides = sides + 1
    return sides


def put_edge_of(kind: int, size: Floats, points: Floats, count: int, faces: Integers, d: Vec, out: Floats) -> int:
    """Enters the ends of the farthest edge along a direction that is square to it; gives 2, or 0 for no edge."""
    if kind == CYLINDER or kind == SEGMENT:  # noqa: SIM109 (machine code has no tuples)
        flat = sqrt(d.x * d.x + d.y * d.y)
        if abs(d.z) > EDGE_COSINE or flat < EDGE_COSINE:
            return 0
        radius = size[0] + size[3]  # a capsule is a segment with a ball about each point
        x, y = d.x * (radius / flat), d.y * (radius / flat)
        put_corner(out, 0, Vec(x, y, size[1]))
        put_corner(out, 1, Vec(x, y, -size[1]))
        return 2
    corner = support_point(kind, size, points, count, d)
    put_corner(out, 0, corner)
    if kind == BOX:
        x, y, z = abs(d.x), abs(d.y), abs(d.z)
        if min(min(x, y), z) > EDGE_COSINE:
            return 0
        if x <= y and x <= z:
            put_corner(out, 1, Vec(-corner.x, corner.y, corner.z))
        elif y <= z:
            put_corner(out, 1, Vec(corner.x, -corner.y, corner.z))
        else:
            put_corner(out, 1, Vec(corner.x, corner.y, -corner.z))
        return 2
    if kind == HULL:
        return put_hull_edge(points, faces, corner, d, out)
    return 0


def put_hull_edge(points: Floats, faces: Integers, corner: Vec, d: Vec, out: Floats) -> int:
    """Enters the other end of the edge from a corner that is most square to a direction; gives 2, or 0."""
    least, ends = EDGE_COSINE, 0
    for k in range(faces[0]):
        first, last = faces[1 + k], faces[2 + k]
        for m in range(first, last):
            follower = m + 1 if m + 1 < last else first
            way = corner_of(points, faces[m]) - corner
            to = corner_of(points, faces[follower]) - corner
            length = sqrt(to.dot(to))
            if way.dot(way) == 0.0 and length > 0.0 and abs(to.dot(d)) < least * length:
                least = abs(to.dot(d)) / length
                put_corner(out, 1, corner + to)
                ends = 2
    return ends


def face_in_line(kind: int, size: Floats, points: Floats, count: int, faces: Integers, d: Vec, out: Floats) -> int:
    """Enters the face that is in line with a direction; gives the number of its corners, 0 for no face."""
    n = face_normal(kind, points, count, faces, d)
    if n.dot(d) < FACE_COSINE:
        return 0
    return put_face_polygon(kind, size, points, count, faces, n, Part(out, 0))
