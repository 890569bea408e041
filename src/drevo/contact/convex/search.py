"""The distance of two convex solids by their support functions, outside and inside of each other.

Points of the Minkowski difference D = {a - b} are found by supports along a direction. Outside, the nearest point
of D to the origin is that of a simplex that comes closer step by step; inside, that of a polytope which grows at
its nearest face. All is in the axes of the first solid; R and p place the second one there. Functions here run in
Python, and as machine code by `codegen.llvm.plain`.

  Gilbert, Johnson, Keerthi 1988, A fast procedure for computing the distance between complex objects.
  van den Bergen 2001, Proximity queries and penetration depth computation on 3D game objects.
"""

from __future__ import annotations

from math import sqrt

from ...codegen.lower.plain_values import Floats, Integers, Part, floats, integers
from ...mechanics.spatial import Mat, Vec
from .polish import POLISHED_GAIN, POLISHED_INSIDE, polish
from .simplex import (
    CYLINDER,
    ELLIPSOID,
    GRAPH_B,
    NO_DISTANCE,
    PLANE,
    add_corner,
    corner_of,
    has_corner,
    kept_corners,
    mixed,
    nearest_on_simplex,
    nearest_on_triangle,
    put_corner,
    square_to,
    support_point,
)

MAX_SIMPLEX_STEPS = 120
MAX_CORNERS = 120  # of the polytope
MAX_FACES = 2 * MAX_CORNERS
MAX_HORIZON = 3 * MAX_FACES  # if none of their edges meet
LAST_GAIN = 1e-14  # of the square distance: what a further step could gain at most where the search ends
ROUNDING = 4e-16  # of the distance times the size of D: what rounding makes of that
TOUCHING_SHARE = 1e-26  # of the square size of D: below it the origin is on the simplex
GAIN_SHARE = 1e-10  # of the size of D: what a face gains at most where the polytope ends
STALLED_SHARE = 1e-8  # of the size of D: how far slivers may keep a simplex from the origin that D has
FLAT_SHARE = 1e-9  # of the size of D: below it corners are one point, in line, or in a plane
CORNER_SHARE = 1e-8  # of the size of D: corners that are nearer to each other are one
PARALLEL_COSINE = 1.0 - 1e-12  # of the normals of faces in one plane


def approach(
    which: Integers, sizes: Floats, points_a: Floats, points_b: Floats, R: Mat, p: Vec, W: Floats, A: Floats,
    ends: Integers, most: float, gain: float, out: Floats, face: Integers,
) -> int:  # fmt: skip
    """Gilbert, Johnson and Keerthi's method: 0 with the distance, the point of the first solid and the normal in
    `out`, or the number of corners, 1 to 4, of a simplex that has the origin, in `out` how far D goes on one way,
    where that is known. It ends where the distance is more than `most`, which a plane across the way shows, or a
    step could gain so much of its square at most."""
    share = floats(4)
    v = add_corner(which, sizes, points_a, points_b, R, p, p, W, A, ends, 0)
    share[0] = 1.0
    along = 0.0
    out[0] = NO_DISTANCE
    count, square, size, slack = 1, v.dot(v), v.dot(v), GAIN_SHARE * sizes[8]
    for _ in range(MAX_SIMPLEX_STEPS):
        if square <= TOUCHING_SHARE * size:
            return count
        w = add_corner(which, sizes, points_a, points_b, R, p, -v, W, A, ends, count)
        size, along = max(size, w.dot(w)), v.dot(w)
        if along <= 0.0 and square <= slack * slack:
            break
        if along > 0.0 and along * along > most * most * square:
            break
        if square - along <= gain * square + ROUNDING * sqrt(square * size) or has_corner(W, count, w, 0.0):
            break
        least = nearest_on_simplex(W, count + 1, share)
        if least == 0.0 and count == 3:
            return 4
        if least >= square:
            least = nearest_on_simplex(W, count, share)
            break
        count = kept_corners(W, A, ends, share, count + 1)
        v = mixed(W, share, count)
        square = v.dot(v)
    distance = sqrt(square)
    put_corner(Part(out, 4), 0, v * (-1.0 / distance))
    if along <= ROUNDING * sqrt(square * size) and distance <= STALLED_SHARE * sizes[8]:
        out[0] = max(0.0, -along / distance)
        return count  # no plane parts them, and slivers may keep a simplex so far from the origin
    for k in range(3):
        face[k] = min(k, count - 1)
    out[0] = distance
    put_corner(Part(out, 1), 0, mixed(A, share, count))
    return 0


def with_four_corners(
    which: Integers, sizes: Floats, points_a: Floats, points_b: Floats, R: Mat, p: Vec, W: Floats, A: Floats,
    ends: Integers, count: int, flat: Floats,
) -> int:  # fmt: skip
    """Makes a simplex that has the origin one of four corners, as far as D has any; `flat`: a direction along
    which it has none."""
    size = sizes[8]
    if count == 1:
        for k in range(6):
            sign = 1.0 if k % 2 == 0 else -1.0
            d = Vec(sign if k < 2 else 0.0, sign if k // 2 == 1 else 0.0, sign if k > 3 else 0.0)
            w = add_corner(which, sizes, points_a, points_b, R, p, d, W, A, ends, 1) - corner_of(W, 0)
            if count == 1 and w.dot(w) > FLAT_SHARE * FLAT_SHARE * size * size:
                count = 2
                break
    put_corner(flat, 0, Vec(1.0, 0.0, 0.0))
    if count == 2:
        way = corner_of(W, 1) - corner_of(W, 0)
        way = way * (1.0 / sqrt(way.dot(way)))
        d = square_to(way)
        put_corner(flat, 0, d)
        for _ in range(4):
            w = add_corner(which, sizes, points_a, points_b, R, p, d, W, A, ends, 2) - corner_of(W, 0)
            off = w - way * w.dot(way)
            if off.dot(off) > FLAT_SHARE * FLAT_SHARE * size * size:
                count = 3
                break
            d = way.cross(d)
    if count == 3:
        first = corner_of(W, 0)
        n = (corner_of(W, 1) - first).cross(corner_of(W, 2) - first)
        n = n * ((1.0 if first.dot(n) < 0.0 else -1.0) / sqrt(n.dot(n)))  # first to where the origin is
        put_corner(flat, 0, n)
        for _ in range(2):
            w = add_corner(which, sizes, points_a, points_b, R, p, n, W, A, ends, 3) - first
            if abs(w.dot(n)) > FLAT_SHARE * size:
                count = 4
                break
            n = -n
    return count


def put_face(W: Floats, faces: Integers, planes: Floats, at: int, i: int, j: int, k: int, slack: float) -> None:
    """Enters a face by its corners, and its plane: normal and distance from the origin; a turned one has none."""
    faces[3 * at] = i
    faces[3 * at + 1] = j
    faces[3 * at + 2] = k
    a = corner_of(W, i)
    n = (corner_of(W, j) - a).cross(corner_of(W, k) - a)
    length = sqrt(n.dot(n))
    n = n * (1.0 / length) if length > 0.0 else n
    planes[4 * at] = n.x
    planes[4 * at + 1] = n.y
    planes[4 * at + 2] = n.z
    along = n.dot(a)
    planes[4 * at + 3] = along if length > 0.0 and along > -slack else NO_DISTANCE


def put_edge(edges: Integers, count: int, i: int, j: int) -> int:
    """Adds an edge of what is seen, or takes it out where it has been added the other way round."""
    for k in range(count):
        if edges[2 * k] == j and edges[2 * k + 1] == i:
            edges[2 * k] = edges[2 * count - 2]
            edges[2 * k + 1] = edges[2 * count - 1]
            return count - 1
    edges[2 * count] = i
    edges[2 * count + 1] = j
    return count + 1


def nearest_face(faces: Integers, planes: Floats, count: int) -> int:
    """The face whose plane is nearest to the origin."""
    best, least = 0, NO_DISTANCE
    for k in range(count):
        if faces[3 * k] >= 0 and planes[4 * k + 3] < least:
            least, best = planes[4 * k + 3], k
    return best


def facing(W: Floats, faces: Integers, planes: Floats, count: int, most: float) -> int:
    """The nearest face among those whose planes are up to so far from the origin, as those of one plane are."""
    best, least, share = 0, NO_DISTANCE, floats(3)
    for k in range(count):
        if faces[3 * k] >= 0 and planes[4 * k + 3] <= most:
            a, b, c = corner_of(W, faces[3 * k]), corner_of(W, faces[3 * k + 1]), corner_of(W, faces[3 * k + 2])
            square = nearest_on_triangle(a, b, c, share)
            if square < least:
                least, best = square, k
    return best


def grown(W: Floats, faces: Integers, planes: Floats, count: int, corner: int, best: int, slack: float) -> int:
    """Takes out the faces that a new corner sees and joins it with their border; gives how many there are."""
    edges, free = integers(2 * MAX_HORIZON), integers(MAX_FACES)
    horizon, gone, w = 0, 0, corner_of(W, corner)
    for k in range(count):
        if faces[3 * k] < 0:
            free[gone] = k
            gone = gone + 1
        elif k == best or planes[4 * k] * w.x + planes[4 * k + 1] * w.y + planes[4 * k + 2] * w.z > (
            planes[4 * k + 3] + slack
        ):
            for m in range(3):
                horizon = put_edge(edges, horizon, faces[3 * k + m], faces[3 * k + (m + 1) % 3])
            faces[3 * k] = -1
            free[gone] = k
            gone = gone + 1
    for k in range(horizon):
        at = count
        if gone > 0:
            gone = gone - 1
            at = free[gone]
        elif count == MAX_FACES:  # rounding has left faces that many corners see
            return count
        else:
            count = count + 1
        put_face(W, faces, planes, at, edges[2 * k], edges[2 * k + 1], corner, slack)
    return count


def first_faces(W: Floats, faces: Integers, planes: Floats, slack: float) -> None:
    """Enters the four faces of a simplex, their corners counterclockwise as seen from outside."""
    first = corner_of(W, 0)
    turn = (corner_of(W, 1) - first).cross(corner_of(W, 2) - first).dot(corner_of(W, 3) - first)
    i, j = 2, 1
    if turn < 0.0:
        i, j = 1, 2
    put_face(W, faces, planes, 0, 0, i, j, slack)
    put_face(W, faces, planes, 1, 0, 3, i, slack)
    put_face(W, faces, planes, 2, 0, j, 3, slack)
    put_face(W, faces, planes, 3, i, 3, j, slack)


def search_inside(
    which: Integers, sizes: Floats, points_a: Floats, points_b: Floats, R: Mat, p: Vec, W: Floats, A: Floats,
    ends: Integers, count: int, gain: float, out: Floats, face: Integers,
) -> None:  # fmt: skip
    """The expanding polytope: how deep two solids are in each other, of which a simplex of D has the origin.

    gain: of the size of D, what a further corner could gain at most where it ends. face: the corners of D about
    the nearest point.
    """
    flat, share = floats(3), floats(3)
    count = with_four_corners(which, sizes, points_a, points_b, R, p, W, A, ends, count, flat)
    if count < 4:
        out[0] = 0.0
        nearest_on_simplex(W, count, share)
        for k in range(3):
            face[k] = min(k, count - 1)
        put_corner(Part(out, 1), 0, mixed(A, share, count))
        put_corner(Part(out, 4), 0, corner_of(flat, 0))
        return
    faces, planes = integers(3 * MAX_FACES), floats(4 * MAX_FACES)
    slack = GAIN_SHARE * sizes[8]
    first_faces(W, faces, planes, STALLED_SHARE * sizes[8])
    corners, count, deep = 4, 4, out[0]
    best = nearest_face(faces, planes, count)
    i, j, k = faces[3 * best], faces[3 * best + 1], faces[3 * best + 2]
    normal = corner_of(Part(out, 4), 0)
    while corners < MAX_CORNERS and count < MAX_FACES - 8:
        n = corner_of(Part(planes, 4 * best), 0)
        w = add_corner(which, sizes, points_a, points_b, R, p, n, W, A, ends, corners)
        along = w.dot(n)
        if along < deep:  # along any direction D ends somewhere; the nearest end is how deep
            deep, normal = along, n
            i, j, k = faces[3 * best], faces[3 * best + 1], faces[3 * best + 2]
        if along - planes[4 * best + 3] <= gain * sizes[8] or has_corner(W, corners, w, CORNER_SHARE * sizes[8]):
            break
        count = grown(W, faces, planes, count, corners, best, slack)
        corners = corners + 1
        best = nearest_face(faces, planes, count)
    best = facing(W, faces, planes, count, deep + slack)
    if normal.dot(corner_of(Part(planes, 4 * best), 0)) > PARALLEL_COSINE:
        i, j, k = faces[3 * best], faces[3 * best + 1], faces[3 * best + 2]
    nearest_on_triangle(corner_of(W, i), corner_of(W, j), corner_of(W, k), share)
    face[0] = i
    face[1] = j
    face[2] = k
    out[0] = -deep
    a = corner_of(A, i) * share[0] + corner_of(A, j) * share[1] + corner_of(A, k) * share[2]
    put_corner(Part(out, 1), 0, a)
    put_corner(Part(out, 4), 0, normal)


def separation(
    which: Integers, sizes: Floats, points_a: Floats, points_b: Floats, R: Mat, p: Vec, most: float, out: Floats,
    numbers: Integers, feature: Floats,
) -> None:  # fmt: skip
    """The distance of two solids (negative: how deep), the point of the first surface, the unit normal from it.
    numbers, feature: of three points of each, maybe alike, between which the nearest points are, and where they
    are in its axes.

    which: kind and number of points of each. sizes: three of each and the radius of the ball about its points,
    then the size of both together. A plane stands first. Of solids farther apart than `most` it says only that.
    """
    if which[0] == PLANE:
        n, graph = Vec(0.0, 0.0, 1.0), Part(which, which[GRAPH_B])
        numbers[3] = 0
        b = p + R @ support_point(which[2], Part(sizes, 4), points_b, which[3], graph, -R.z, Part(numbers, 3))
        out[0] = b.z
        put_corner(Part(out, 1), 0, Vec(b.x, b.y, 0.0))
        put_corner(Part(out, 4), 0, n)
    else:
        W, A = floats(3 * MAX_CORNERS + 3), floats(3 * MAX_CORNERS + 3)
        ends, face, reach = integers(2 * MAX_CORNERS + 2), integers(3), most + sizes[3] + sizes[7]
        for k in range(3):
            face[k] = 0
        curved = which[0] == CYLINDER or which[0] == ELLIPSOID or which[2] == CYLINDER or which[2] == ELLIPSOID
        gain = POLISHED_GAIN if curved else LAST_GAIN
        count = approach(which, sizes, points_a, points_b, R, p, W, A, ends, reach, gain, out, face)
        if count > 0:
            inside = POLISHED_INSIDE if curved else GAIN_SHARE
            search_inside(which, sizes, points_a, points_b, R, p, W, A, ends, count, inside, out, face)
        for k in range(3):
            a = corner_of(A, face[k])
            numbers[k] = ends[2 * face[k]]
            numbers[3 + k] = ends[2 * face[k] + 1]
            put_corner(feature, k, a)
            put_corner(feature, 3 + k, R.T @ (a - corner_of(W, face[k]) - p))
        if curved and out[0] <= reach:
            polish(which, sizes, points_a, points_b, R, p, feature, out)
    out[0] = out[0] - (sizes[3] + sizes[7])
    put_corner(Part(out, 1), 0, corner_of(Part(out, 1), 0) + corner_of(Part(out, 4), 0) * sizes[3])


def rotation_in(placed: Floats) -> Mat:
    """The rotation that a placed solid has: 9 numbers by rows, before its 3 of position."""
    return Mat(corner_of(placed, 0), corner_of(placed, 1), corner_of(placed, 2))


def between_solids(
    which: Integers, sizes: Floats, points_a: Floats, points_b: Floats, a: Floats, b: Floats, out: Floats
) -> None:
    """Writes distance, nearest points of both and the normal from the first, of solids placed in the world, 12
    numbers each."""
    R, S = rotation_in(a), rotation_in(b)
    T = R.T
    local, numbers, feature = floats(7), integers(6), floats(18)
    relative = Mat(S.T @ R.T.x, S.T @ R.T.y, S.T @ R.T.z)
    separation(
        which, sizes, points_a, points_b, relative, T @ (corner_of(b, 3) - corner_of(a, 3)), NO_DISTANCE, local,
        numbers, feature,
    )  # fmt: skip
    n = R @ corner_of(Part(local, 4), 0)
    first = corner_of(a, 3) + R @ corner_of(Part(local, 1), 0)
    out[0] = local[0]
    put_corner(Part(out, 1), 0, first)
    put_corner(Part(out, 1), 1, first + n * local[0])
    put_corner(Part(out, 1), 2, n)
