"""Faces and edges of solids, in the axes of the solid.

Faces have numbers: those of a hull as `hulls.hull_tables` has them, its normals behind its points; of a box two
an axis, that of the positive side first; of a cylinder 0 its upper and 1 its lower end, which are polygons. A
feature of a solid is a corner, an edge or a face, told by the numbers of one, two or three points. Functions run
in Python, and as machine code by `codegen.llvm.plain`.
"""

from __future__ import annotations

from math import sqrt

from ...codegen.lower.plain_values import Floats, Integers
from ...mechanics.spatial import Vec
from .clipping import MAX_POLYGON
from .simplex import BOX, CYLINDER, HULL, SEGMENT, corner_of, put_corner

END_CORNERS = 16  # of the polygon that stands for an end of a cylinder, which begins on its X axis
END_COSINE, END_SINE = 0.9238795325112867, 0.3826834323650898  # of its angle
FACE_COSINE = 0.996  # of a face and a contact: above it they are in line
EDGE_COSINE = 0.0893532  # of an edge and a face: below it they are in line
MAX_AT_CORNER = 64  # faces that meet in a corner


def axis_of(k: int) -> Vec:
    """The unit vector along an axis of coordinates."""
    return Vec(1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0)


def box_face(d: Vec) -> int:
    """The face of a box whose normal is nearest to a direction."""
    x, y, z = abs(d.x), abs(d.y), abs(d.z)
    if x >= y and x >= z:
        return 0 if d.x >= 0.0 else 1
    if y >= z:
        return 2 if d.y >= 0.0 else 3
    return 4 if d.z >= 0.0 else 5


def box_normal(face: int) -> Vec:
    """The outward unit normal of a face of a box."""
    return axis_of(face // 2) * (1.0 if face % 2 == 0 else -1.0)


def put_rectangle(out: Floats, at: Vec, u: Vec, v: Vec) -> int:
    """Enters the corners of a rectangle by its middle and half sides."""
    put_corner(out, 0, at + u + v)
    put_corner(out, 1, at - u + v)
    put_corner(out, 2, at - u - v)
    put_corner(out, 3, at + u - v)
    return 4


def put_polygon(kind: int, size: Floats, points: Floats, graph: Integers, face: int, out: Floats) -> int:
    """Enters the corners of a face, clockwise from outside, in MuJoCo's order; gives how many."""
    if kind == BOX:
        a, b, c, n = Vec(size[0], 0.0, 0.0), Vec(0.0, size[1], 0.0), Vec(0.0, 0.0, size[2]), box_normal(face)
        if face < 2:
            return put_rectangle(out, a * n.x, c * n.x, b)
        if face < 4:
            return put_rectangle(out, b * n.y, -a, c * (-n.y))
        return put_rectangle(out, c * n.z, a * (-n.z), b)
    if kind == CYLINDER:
        x, y, up = size[0], 0.0, 1.0 if face == 0 else -1.0
        for k in range(END_CORNERS):
            put_corner(out, k, Vec(x, -(y * up), size[1] * up))
            x, y = x * END_COSINE - y * END_SINE, y * END_COSINE + x * END_SINE
        return END_CORNERS
    first, last = graph[1 + face], graph[2 + face]
    sides: int = min(last - first, MAX_POLYGON // 2)
    for k in range(sides):
        put_corner(out, k, corner_of(points, graph[last - 1 - k]))
    return sides


def feature_size(numbers: Integers, corners: Floats) -> int:
    """The number of different points, 1 to 3, of the three of a feature; these come first."""
    if numbers[0] == numbers[1]:
        if numbers[0] == numbers[2]:
            return 1
        numbers[1] = numbers[2]
        put_corner(corners, 1, corner_of(corners, 2))
        return 2
    if numbers[2] == numbers[0] or numbers[2] == numbers[1]:
        return 2
    return 3


def faces_at(graph: Integers, count: int) -> int:
    """The place in a graph that tells where the faces of each point begin."""
    return graph[1 + graph[0]] + count + 1  # type: ignore[no-any-return]


def is_at(graph: Integers, count: int, point: int, face: int) -> bool:
    """True if a point is a corner of a face."""
    first = faces_at(graph, count) + point
    for k in range(graph[first], graph[first + 1]):  # noqa: SIM110 (machine code has no any)
        if graph[k] == face:
            return True
    return False


def put_box_faces(numbers: Integers, size: int, d: Vec, faces: Integers) -> int:
    """Enters the faces of a box that have a feature; of points of none that in line with a contact."""
    many = 0
    for axis in range(3):
        positive = 0
        for k in range(size):
            positive = positive + (numbers[k] // (1 if axis == 0 else 2 * axis)) % 2
        if positive == 0 or positive == size:
            faces[many] = 2 * axis + (0 if positive > 0 else 1)
            many = many + 1
    if many != 4 - size:
        faces[0] = box_face(d)
        many = 1 if box_normal(faces[0]).dot(d) > FACE_COSINE else 0
    return many


def put_faces(
    kind: int, points: Floats, count: int, graph: Integers, numbers: Integers, size: int, d: Vec, faces: Integers,
    normals: Floats,
) -> int:  # fmt: skip
    """Enters the faces that have a feature of so many points, and their normals; gives how many. d: the direction
    of the contact outward."""
    many = 0
    if kind == CYLINDER and size == 1:
        faces[0] = numbers[0]
        put_corner(normals, 0, Vec(0.0, 0.0, 1.0 if numbers[0] == 0 else -1.0))
        many = 1
    elif kind == BOX:
        many = put_box_faces(numbers, size, d, faces)
        for k in range(many):
            put_corner(normals, k, box_normal(faces[k]))
    elif kind == HULL and graph[0] > 0:
        first = faces_at(graph, count) + numbers[0]
        for k in range(graph[first], graph[first + 1]):
            face = graph[k]
            has = size < 2 or is_at(graph, count, numbers[1], face)
            if many < MAX_AT_CORNER and has and (size < 3 or is_at(graph, count, numbers[2], face)):
                faces[many] = face
                put_corner(normals, many, corner_of(points, count + face))
                many = many + 1
    return many


def put_edges(
    kind: int, size: Floats, points: Floats, count: int, graph: Integers, numbers: Integers, of: int, d: Vec,
    corners: Floats, ends: Floats,
) -> int:  # fmt: skip
    """Enters the other ends of the edges from the first point of a feature of one or two points; gives how many.

    Of a cylinder it is the line that is farthest along a direction, which `corners` then begins with.
    """
    if kind == SEGMENT or kind == CYLINDER:  # noqa: SIM109 (machine code has no tuples)
        return put_side(size, d, corners, ends)
    start = corner_of(corners, 0)
    if of == 2 and (kind == BOX or kind == HULL):  # noqa: SIM109
        put_corner(ends, 0, corner_of(corners, 1))
        return 1
    many = 0
    if kind == BOX:
        put_corner(ends, 0, Vec(-start.x, start.y, start.z))
        put_corner(ends, 1, Vec(start.x, -start.y, start.z))
        put_corner(ends, 2, Vec(start.x, start.y, -start.z))
        many = 3
    elif kind == HULL and graph[0] > 0:
        at = faces_at(graph, count) + numbers[0]
        for k in range(graph[at], graph[at + 1]):
            first, last = graph[1 + graph[k]], graph[2 + graph[k]]
            for m in range(first, last):
                if graph[m] == numbers[0] and many < MAX_AT_CORNER:
                    put_corner(ends, many, corner_of(points, graph[m - 1 if m > first else last - 1]))
                    many = many + 1
    return many


def put_side(size: Floats, d: Vec, start: Floats, end: Floats) -> int:
    """Enters the ends of the line of a cylinder that is farthest along a direction, the farther one first, or of
    the axis of a capsule moved by what the radius along that has across it; gives 1, or 0 where it is askew."""
    flat = sqrt(d.x * d.x + d.y * d.y)
    if abs(d.z) > EDGE_COSINE or flat < EDGE_COSINE:
        return 0
    out, up = size[0] / flat + size[3], size[1] if d.z >= 0.0 else -size[1]  # one of the radii is 0
    put_corner(start, 0, Vec(d.x * out, d.y * out, up))
    put_corner(end, 0, Vec(d.x * out, d.y * out, -up))
    return 1
