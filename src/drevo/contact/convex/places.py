"""The places where two convex solids touch: one midway between their nearest points, or more where a face of one
lies on a face or an edge of the other.

The contact's normal is that of the nearest points, or of the least way out. A face that is in line with it within
three degrees is the reference, over which what lies against it is clipped; of the corners that are left those
that are too far are none. Numbers and normals of places are MuJoCo's. Functions run in Python, and as machine code
by `codegen.llvm.plain`.
"""

from __future__ import annotations

from ...codegen.lower.plain_values import Floats, Integers, Part, floats
from ...mechanics.spatial import Mat, Vec
from .boxes import places_of_boxes
from .clipping import MAX_POLYGON, PLACE_NUMBERS, places_over_face, put_place
from .faces import FACE_COSINE, face_in_line, face_normal, put_edge_of
from .fields import places_in_field
from .search import rotation_in, separation
from .simplex import BOX, FIELD, corner_of, put_corner

MAX_OTHER_PLACES = 4  # of solids that are not both boxes


def moved_corners(polygon: Floats, count: int, R: Mat, p: Vec) -> None:
    """Moves the corners of a polygon."""
    for k in range(count):
        put_corner(polygon, k, p + R @ corner_of(polygon, k))


def places_of_faces(
    which: Integers, sizes: Floats, points_a: Floats, points_b: Floats, faces_a: Integers, faces_b: Integers,
    R: Mat, p: Vec, n: Vec, margin: float, out: Floats,
) -> int:  # fmt: skip
    """Enters the places over a face that is in line with the normal n of a contact; 0 where there are none. Of two
    that face each other distances are along the second's."""
    face, other, local = floats(3 * MAX_POLYGON + 3), floats(3 * MAX_POLYGON + 3), -(R.T @ n)
    sides = face_in_line(which[0], sizes, points_a, which[1], faces_a, n, face)
    against = face_in_line(which[2], Part(sizes, 4), points_b, which[3], faces_b, local, other)
    up = face_normal(which[0], points_a, which[1], faces_a, n)
    down = R @ face_normal(which[2], points_b, which[3], faces_b, local)
    if sides > 0:
        along = -down if against > 0 and up.dot(down) < -FACE_COSINE else up
        if against == 0:
            against = put_edge_of(which[2], Part(sizes, 4), points_b, which[3], faces_b, local, other)
        if against == 0:
            return 0
        moved_corners(other, against, R, p)
        return places_over_face(face, sides, up, other, against, along, 1.0, margin, MAX_OTHER_PLACES, out)
    if against == 0:
        return 0
    sides = put_edge_of(which[0], sizes, points_a, which[1], faces_a, n, face)
    if sides == 0:
        return 0
    moved_corners(other, against, R, p)
    return places_over_face(other, against, down, face, sides, down, -1.0, margin, MAX_OTHER_PLACES, out)


def places_within(
    which: Integers, sizes: Floats, points_a: Floats, points_b: Floats, faces_a: Integers, faces_b: Integers,
    R: Mat, p: Vec, margin: float, out: Floats,
) -> int:  # fmt: skip
    """Enters the places in the axes of the first solid, where R and p place the second; gives how many."""
    if which[0] == FIELD:
        return places_in_field(which, sizes, points_a, points_b, faces_a, R, p, margin, out)
    if which[0] == BOX and which[2] == BOX:
        return places_of_boxes(sizes, Part(sizes, 4), R, p, margin, out)
    near = floats(7)
    separation(which, sizes, points_a, points_b, R, p, margin, near)
    if near[0] > margin:
        return 0
    n = corner_of(Part(near, 4), 0)
    count = places_of_faces(which, sizes, points_a, points_b, faces_a, faces_b, R, p, n, margin, out)
    if count == 0:
        put_place(out, 0, near[0], corner_of(Part(near, 1), 0) + n * (0.5 * near[0]), n)
        count = 1
    return count


def places_between(
    which: Integers, sizes: Floats, points_a: Floats, points_b: Floats, faces_a: Integers, faces_b: Integers,
    a: Floats, b: Floats, out: Floats,
) -> None:  # fmt: skip
    """Writes the number of places and each: its distance, point midway and normal from the first solid, of solids
    placed in the world, 12 numbers each. sizes: as of `separation`, and last how far apart places may be."""
    Q, S = rotation_in(a), rotation_in(b)
    T = Q.T
    R = Mat(S.T @ T.x, S.T @ T.y, S.T @ T.z)
    origin = corner_of(a, 3)
    count = places_within(
        which, sizes, points_a, points_b, faces_a, faces_b, R, T @ (corner_of(b, 3) - origin), sizes[9], out
    )
    out[0] = float(count)
    for k in range(count):
        at = 1 + PLACE_NUMBERS * k
        put_corner(Part(out, at + 1), 0, origin + Q @ corner_of(Part(out, at + 1), 0))
        put_corner(Part(out, at + 4), 0, Q @ corner_of(Part(out, at + 4), 0))
