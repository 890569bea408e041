"""The places where two convex solids touch: one midway between their nearest points, or more where a face of one
lies on a face or an edge of the other.

The contact's normal is that of the nearest points, or of the least way out. A face that is in line with it within
three degrees is the reference, over which what lies against it is clipped; of the corners that are left those
that are too far are none. Numbers and normals of places are MuJoCo's. Functions run in Python, and as machine code
by `codegen.llvm.plain`.
"""

from __future__ import annotations

from math import sqrt

from ...codegen.lower.plain_values import Floats, Integers, Part, floats, integers
from ...mechanics.spatial import Mat, Vec
from .boxes import places_of_boxes
from .clipping import MAX_POLYGON, PLACE_NUMBERS, four_area, places_over_face, put_place, widened
from .faces import (
    EDGE_COSINE,
    FACE_COSINE,
    MAX_AT_CORNER,
    faces_at,
    feature_size,
    put_edges,
    put_faces,
    put_polygon,
)
from .fields import places_in_field
from .search import rotation_in, separation
from .simplex import (
    BOX,
    CYLINDER,
    FIELD,
    GRAPH_A,
    GRAPH_B,
    HULL,
    PLANE,
    SEGMENT,
    corner_of,
    put_corner,
    support_point,
)

MAX_OTHER_PLACES = 4  # of solids that are not both boxes


def places_of_faces(
    which: Integers, sizes: Floats, points_a: Floats, points_b: Floats, R: Mat, p: Vec, n: Vec, numbers: Integers,
    feature: Floats, margin: float, out: Floats,
) -> int:  # fmt: skip
    """Enters the places over a face that is in line with a face or an edge of the other solid, among those that
    have the features of a contact of normal n; 0 where there are none. Of two faces distances are along the
    second's."""
    kind, other, size_b, back = which[0], which[2], Part(sizes, 4), -(R.T @ n)
    graph_a, graph_b = Part(which, which[GRAPH_A]), Part(which, which[GRAPH_B])
    numbers_b, corners_b = Part(numbers, 3), Part(feature, 9)
    of_a, of_b = feature_size(numbers, feature), feature_size(numbers_b, corners_b)
    faces_a, faces_b = integers(MAX_AT_CORNER), integers(MAX_AT_CORNER)
    normals, others = floats(3 * MAX_AT_CORNER), floats(3 * MAX_AT_CORNER)
    many = put_faces(kind, points_a, which[1], graph_a, numbers, of_a, n, faces_a, normals)
    against = put_faces(other, points_b, which[3], graph_b, numbers_b, of_b, back, faces_b, others)
    turn_normals(others, against, R)
    face, polygon = floats(3 * MAX_POLYGON + 3), floats(3 * MAX_POLYGON + 3)
    first, second, most = -1, -1, FACE_COSINE
    for i in range(many):
        for k in range(against):
            along = -corner_of(normals, i).dot(corner_of(others, k))
            if along > most:
                first, second, most = i, k, along
    if first >= 0:
        sides = put_polygon(kind, sizes, points_a, graph_a, faces_a[first], face)
        count = put_polygon(other, size_b, points_b, graph_b, faces_b[second], polygon)
        move_corners(polygon, count, R, p)
        up, down = corner_of(normals, first), corner_of(others, second)
        return places_over_face(face, sides, up, polygon, count, -down, 1.0, margin, MAX_OTHER_PLACES, out)
    ends = floats(3 * MAX_AT_CORNER)
    if kind == SEGMENT or kind == CYLINDER or (of_a < 3 and of_a <= of_b):  # noqa: SIM109
        edges = put_edges(kind, sizes, points_a, which[1], graph_a, numbers, of_a, n, feature, ends)
        chosen = put_edge_over(corner_of(feature, 0), ends, edges, others, against, -n, polygon)
        if chosen >= 0:
            sides = put_polygon(other, size_b, points_b, graph_b, faces_b[chosen], face)
            down = corner_of(others, chosen)
            move_corners(face, sides, R, p)
            return places_over_face(face, sides, down, polygon, 2, down, -1.0, margin, MAX_OTHER_PLACES, out)
    if of_b == 3:
        return 0
    edges = put_edges(other, size_b, points_b, which[3], graph_b, numbers_b, of_b, back, corners_b, ends)
    move_corners(ends, edges, R, p)
    chosen = put_edge_over(p + R @ corner_of(corners_b, 0), ends, edges, normals, many, n, polygon)
    if chosen < 0:
        return 0
    sides, up = put_polygon(kind, sizes, points_a, graph_a, faces_a[chosen], face), corner_of(normals, chosen)
    return places_over_face(face, sides, up, polygon, 2, up, 1.0, margin, MAX_OTHER_PLACES, out)


def turn_normals(normals: Floats, count: int, R: Mat) -> None:
    """Turns normals."""
    for k in range(count):
        put_corner(normals, k, R @ corner_of(normals, k))


def move_corners(corners: Floats, count: int, R: Mat, p: Vec) -> None:
    """Moves points."""
    for k in range(count):
        put_corner(corners, k, p + R @ corner_of(corners, k))


def put_edge_over(start: Vec, ends: Floats, edges: int, normals: Floats, faces: int, d: Vec, out: Floats) -> int:
    """Enters the ends of the first edge that is in line with a face, of those that look along a direction; gives
    the face, or -1."""
    for i in range(faces):
        n = corner_of(normals, i)
        if n.dot(d) > 0.0:
            for k in range(edges):
                way = corner_of(ends, k) - start
                if abs(way.dot(n)) < EDGE_COSINE * sqrt(way.dot(way)):
                    put_corner(out, 0, start)
                    put_corner(out, 1, start + way)
                    return i
    return -1


def places_on_plane(
    points: Floats, count: int, graph: Integers, R: Mat, p: Vec, margin: float, out: Floats
) -> int:
    """Enters the places of a hull on the plane z = 0, by its corners in its axes: the lowest, and of the lowest
    face that has it up to three others that make a large quadrilateral."""
    lowest, four, kept = integers(1), integers(4), integers(4)
    lowest[0] = 0
    support = support_point(HULL, points, points, count, graph, -R.z, lowest)
    first = p + R @ support
    if first.z > margin:
        return 0
    up = Vec(0.0, 0.0, 1.0)
    put_place(out, 0, first.z, support, up)
    if graph[0] == 0:
        return 1
    best, least, at = -1, 1.0, faces_at(graph, count) + lowest[0]
    for k in range(graph[at], graph[at + 1]):
        along = R.z.dot(corner_of(points, count + graph[k]))
        if along < least:
            least, best = along, graph[k]
    if best < 0:
        return 1
    start, corner, polygon = graph[1 + best], 0, floats(3 * MAX_POLYGON + 3)
    sides = min(graph[2 + best] - start, MAX_POLYGON)
    for k in range(sides):
        put_corner(polygon, k, corner_of(points, graph[start + k]))
        if graph[start + k] == lowest[0]:
            corner = k
    for k in range(4):
        four[k] = (corner + k) % sides
        kept[k] = four[k]
    if sides > 4:
        widened(polygon, sides, four, four_area(polygon, four[0], four[1], four[2], four[3]), kept)
    places = 1
    for k in range(1, min(sides, 4)):
        x = p + R @ corner_of(polygon, kept[k])
        if x.z <= margin and x.z <= p.z:
            put_place(out, places, x.z, corner_of(polygon, kept[k]), up)
            places = places + 1
    return places


def places_within(
    which: Integers, sizes: Floats, points_a: Floats, points_b: Floats, R: Mat, p: Vec, margin: float, out: Floats
) -> int:
    """Enters the places in the axes of the first solid, where R and p place the second; gives how many."""
    if which[0] == FIELD:
        return places_in_field(which, sizes, points_a, points_b, R, p, margin, out)
    if which[0] == BOX and which[2] == BOX:
        return places_of_boxes(sizes, Part(sizes, 4), R, p, margin, out)
    if which[0] == PLANE:
        return places_on_plane(points_b, which[3], Part(which, which[GRAPH_B]), R, p, margin, out)
    near, numbers, feature = floats(7), integers(6), floats(18)
    separation(which, sizes, points_a, points_b, R, p, margin, near, numbers, feature)
    if near[0] > margin:
        return 0
    n, count = corner_of(Part(near, 4), 0), 0
    if which[8] > 1:
        count = places_of_faces(which, sizes, points_a, points_b, R, p, n, numbers, feature, margin, out)
    if count == 0:
        put_place(out, 0, near[0], corner_of(Part(near, 1), 0) + n * (0.5 * near[0]), n)
        count = 1
    return count


def places_beside(
    which: Integers, sizes: Floats, points_a: Floats, points_b: Floats, a: Floats, b: Floats, moves: Floats,
    out: Floats,
) -> None:  # fmt: skip
    """Writes what `places_between` does, of a second solid that has turned a little about its origin and moved, by
    six numbers along the world's axes."""
    turn, columns, moved = corner_of(moves, 0), rotation_in(b).T, floats(12)
    rows = Mat(
        columns.x + turn.cross(columns.x), columns.y + turn.cross(columns.y), columns.z + turn.cross(columns.z)
    ).T
    put_corner(moved, 0, rows.x)
    put_corner(moved, 1, rows.y)
    put_corner(moved, 2, rows.z)
    put_corner(moved, 3, corner_of(b, 3) + corner_of(moves, 1))
    places_between(which, sizes, points_a, points_b, a, moved, out)


def places_between(
    which: Integers, sizes: Floats, points_a: Floats, points_b: Floats, a: Floats, b: Floats, out: Floats
) -> None:
    """Writes the number of places and each: its distance, point midway (on a plane the corner in the hull's axes)
    and normal from the first solid, of solids placed in the world, 12 numbers each. sizes: as of `separation`, and
    last how far apart places may be."""
    Q, S = rotation_in(a), rotation_in(b)
    T = Q.T
    R = Mat(S.T @ T.x, S.T @ T.y, S.T @ T.z)
    origin = corner_of(a, 3)
    count = places_within(which, sizes, points_a, points_b, R, T @ (corner_of(b, 3) - origin), sizes[9], out)
    out[0] = float(count)
    for k in range(count):
        at = 1 + PLACE_NUMBERS * k
        if which[0] != PLANE:
            put_corner(Part(out, at + 1), 0, origin + Q @ corner_of(Part(out, at + 1), 0))
        put_corner(Part(out, at + 4), 0, Q @ corner_of(Part(out, at + 4), 0))
