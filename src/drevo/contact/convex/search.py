"""The distance of two convex solids by their support functions, outside and inside of each other.

Points of the Minkowski difference D = {a - b} are found by supports along a direction. Outside, the nearest point
of D to the origin is that of a simplex that comes closer step by step; inside, that of a polytope which grows at
its nearest face. All is in the axes of the first solid; R and p place the second one there. Functions here run in
Python, and as machine code by `codegen.llvm.plain`.

  Gilbert, Johnson, Keerthi 1988, A fast procedure for computing the distance between complex objects.
  van den Bergen 2001, Proximity queries and penetration depth computation on 3D game objects.
  Ericson 2004, Real-Time Collision Detection, ch. 5 and 9.
"""

from __future__ import annotations

from math import sqrt

from ...codegen.llvm.plain_values import Floats, Integers, Part, floats, integers
from ...mechanics.spatial import Mat, Vec

POINT, SEGMENT, BOX, CYLINDER, ELLIPSOID, HULL, PLANE = range(
    7
)  # what a solid is without the ball about its points

MAX_SIMPLEX_STEPS = 120
MAX_CORNERS = 120  # of the polytope
MAX_FACES = 2 * MAX_CORNERS
MAX_HORIZON = 3 * MAX_CORNERS
NEAREST_SHARE = 1e-14  # of the square distance: what a further step could gain at most where it ends
TOUCHING_SHARE = 1e-26  # of the square size of D: below it the origin is on the simplex
GAIN_SHARE = 1e-10  # of the size of D: what a face gains at most where the polytope ends
FLAT_SHARE = 1e-9  # of the size of D: below it corners are one point, in line, or in a plane
NO_DISTANCE = 1e300


def corner_of(points: Floats, k: int) -> Vec:
    """Point k of an array."""
    return Vec(points[3 * k], points[3 * k + 1], points[3 * k + 2])


def put_corner(points: Floats, k: int, x: Vec) -> None:
    points[3 * k] = x.x
    points[3 * k + 1] = x.y
    points[3 * k + 2] = x.z


def support_point(kind: int, size: Floats, points: Floats, count: int, d: Vec) -> Vec:
    """The point of a solid that is farthest along d, in the solid's axes."""
    if kind == BOX:
        return Vec(
            size[0] if d.x >= 0.0 else -size[0], size[1] if d.y >= 0.0 else -size[1],
            size[2] if d.z >= 0.0 else -size[2],
        )  # fmt: skip
    if kind == CYLINDER:
        flat = sqrt(d.x * d.x + d.y * d.y)
        scale = size[0] / flat if flat > 1e-15 else 0.0
        return Vec(d.x * scale, d.y * scale, size[1] if d.z >= 0.0 else -size[1])
    if kind == SEGMENT:
        return Vec(0.0, 0.0, size[1] if d.z >= 0.0 else -size[1])
    if kind == ELLIPSOID:
        x, y, z = d.x * size[0], d.y * size[1], d.z * size[2]
        length = sqrt(x * x + y * y + z * z)
        over = 1.0 / length if length > 1e-300 else 0.0
        return Vec(x * over * size[0], y * over * size[1], z * over * size[2])
    if kind == HULL:
        best, farthest = 0, -NO_DISTANCE
        for k in range(count):
            along = d.x * points[3 * k] + d.y * points[3 * k + 1] + d.z * points[3 * k + 2]
            if along > farthest:
                farthest, best = along, k
        return corner_of(points, best)
    return Vec(0.0, 0.0, 0.0)


def add_corner(
    which: Integers, sizes: Floats, points_a: Floats, points_b: Floats, R: Mat, p: Vec, d: Vec, W: Floats,
    A: Floats, k: int,
) -> Vec:  # fmt: skip
    """The corner of D that is farthest along d, as corner k of W; A has its point of the first solid."""
    a = support_point(which[0], sizes, points_a, which[1], d)
    b = p + R @ support_point(which[2], Part(sizes, 4), points_b, which[3], -(R.T @ d))
    w = a - b
    put_corner(W, k, w)
    put_corner(A, k, a)
    return w


def nearest_on_segment(a: Vec, b: Vec, share: Floats) -> float:
    """The square distance of the origin from a segment, and the shares of its ends in the nearest point."""
    way = b - a
    square = way.dot(way)
    t = -a.dot(way) / square if square > 0.0 else 0.0
    t = min(max(t, 0.0), 1.0)
    share[0] = 1.0 - t
    share[1] = t
    at = a + way * t
    return float(at.dot(at))


def nearest_on_edges(a: Vec, b: Vec, c: Vec, share: Floats) -> float:
    """The square distance of the origin from the border of a triangle, and the shares of its corners."""
    trial = floats(2)
    least = nearest_on_segment(a, b, share)
    share[2] = 0.0
    square = nearest_on_segment(b, c, trial)
    if square < least:
        least = square
        share[0] = 0.0
        share[1] = trial[0]
        share[2] = trial[1]
    square = nearest_on_segment(a, c, trial)
    if square < least:
        least = square
        share[0] = trial[0]
        share[1] = 0.0
        share[2] = trial[1]
    return least


def nearest_on_triangle(a: Vec, b: Vec, c: Vec, share: Floats) -> float:
    """The square distance from a triangle, within it by that of its plane, and the shares of its corners."""
    n = (b - a).cross(c - a)
    square = n.dot(n)
    if square <= 0.0:
        return nearest_on_edges(a, b, c, share)
    x, y, z = b.cross(c).dot(n), c.cross(a).dot(n), a.cross(b).dot(n)
    if x > 0.0 and y > 0.0 and z > 0.0:
        over = 1.0 / (x + y + z)
        share[0] = x * over
        share[1] = y * over
        share[2] = z * over
        along = n.dot(a)
        return float(along * along / square)
    return nearest_on_edges(a, b, c, share)


def nearest_on_simplex(W: Floats, count: int, share: Floats) -> float:
    """The square distance from a simplex of up to four corners, 0 inside of four, and their shares."""
    a = corner_of(W, 0)
    if count == 1:
        share[0] = 1.0
        return float(a.dot(a))
    b = corner_of(W, 1)
    if count == 2:
        return nearest_on_segment(a, b, share)
    c = corner_of(W, 2)
    if count == 3:
        return nearest_on_triangle(a, b, c, share)
    trial, faces = floats(3), integers(12)
    least, inside = NO_DISTANCE, True
    for k in range(4):  # the face without corner k
        for m in range(3):
            faces[3 * k + m] = (k + 1 + m) % 4
        i, j, l = faces[3 * k], faces[3 * k + 1], faces[3 * k + 2]
        x, y, z = corner_of(W, i), corner_of(W, j), corner_of(W, l)
        n = (y - x).cross(z - x)
        opposite, origin = n.dot(corner_of(W, k) - x), -n.dot(x)
        if opposite * origin > 0.0 and abs(opposite) > 0.0:
            continue
        inside = False
        square = nearest_on_triangle(x, y, z, trial)
        if square < least:
            least = square
            share[k] = 0.0
            share[i] = trial[0]
            share[j] = trial[1]
            share[l] = trial[2]
    if inside:
        return 0.0
    return least


def kept_corners(W: Floats, A: Floats, share: Floats, count: int) -> int:
    """Leaves only the corners that have a share; gives how many."""
    kept = 0
    for k in range(count):
        if share[k] > 0.0:
            put_corner(W, kept, corner_of(W, k))
            put_corner(A, kept, corner_of(A, k))
            share[kept] = share[k]
            kept = kept + 1
    return kept


def mixed(points: Floats, share: Floats, count: int) -> Vec:
    """The point that has these shares of corners."""
    x: Vec = corner_of(points, 0) * share[0]
    for k in range(1, count):
        x = x + corner_of(points, k) * share[k]
    return x


def has_corner(W: Floats, count: int, w: Vec) -> bool:
    """True if a corner is among those before it."""
    for k in range(count):
        x = corner_of(W, k) - w
        if x.dot(x) == 0.0:
            return True
    return False


def approach(
    which: Integers, sizes: Floats, points_a: Floats, points_b: Floats, R: Mat, p: Vec, W: Floats, A: Floats,
    out: Floats,
) -> int:  # fmt: skip
    """Gilbert, Johnson and Keerthi's method: 0 with the distance, the point of the first solid and the normal in
    `out`, or the number of corners, 1 to 4, of a simplex that has the origin."""
    share = floats(4)
    v = add_corner(which, sizes, points_a, points_b, R, p, p, W, A, 0)
    share[0] = 1.0
    count, square, size = 1, v.dot(v), v.dot(v)
    for _ in range(MAX_SIMPLEX_STEPS):
        if square <= TOUCHING_SHARE * size:
            return count
        w = add_corner(which, sizes, points_a, points_b, R, p, -v, W, A, count)
        size = max(size, w.dot(w))
        if square - v.dot(w) <= NEAREST_SHARE * square or has_corner(W, count, w):
            break
        least = nearest_on_simplex(W, count + 1, share)
        if least == 0.0 and count == 3:
            return 4
        if least >= square:
            least = nearest_on_simplex(W, count, share)
            break
        count = kept_corners(W, A, share, count + 1)
        v = mixed(W, share, count)
        square = v.dot(v)
    distance = sqrt(square)
    out[0] = distance
    put_corner(Part(out, 1), 0, mixed(A, share, count))
    put_corner(Part(out, 4), 0, v * (-1.0 / distance))
    return 0


def square_to(n: Vec) -> Vec:
    """A unit vector square to another."""
    least = Vec(1.0, 0.0, 0.0)
    if abs(n.y) <= abs(n.x) and abs(n.y) <= abs(n.z):
        least = Vec(0.0, 1.0, 0.0)
    elif abs(n.z) <= abs(n.x):
        least = Vec(0.0, 0.0, 1.0)
    m: Vec = n.cross(least)
    return m * (1.0 / sqrt(m.dot(m)))


def with_four_corners(
    which: Integers, sizes: Floats, points_a: Floats, points_b: Floats, R: Mat, p: Vec, W: Floats, A: Floats,
    count: int, flat: Floats,
) -> int:  # fmt: skip
    """Makes a simplex that has the origin one of four corners, as far as D has any; `flat`: a direction along
    which it has none."""
    size = sizes[8]
    if count == 1:
        for k in range(6):
            sign = 1.0 if k % 2 == 0 else -1.0
            d = Vec(sign if k < 2 else 0.0, sign if k // 2 == 1 else 0.0, sign if k > 3 else 0.0)
            w = add_corner(which, sizes, points_a, points_b, R, p, d, W, A, 1) - corner_of(W, 0)
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
            w = add_corner(which, sizes, points_a, points_b, R, p, d, W, A, 2) - corner_of(W, 0)
            off = w - way * w.dot(way)
            if off.dot(off) > FLAT_SHARE * FLAT_SHARE * size * size:
                count = 3
                break
            d = way.cross(d)
    if count == 3:
        first = corner_of(W, 0)
        n = (corner_of(W, 1) - first).cross(corner_of(W, 2) - first)
        n = n * (1.0 / sqrt(n.dot(n)))
        put_corner(flat, 0, n)
        for _ in range(2):
            w = add_corner(which, sizes, points_a, points_b, R, p, n, W, A, 3) - first
            if abs(w.dot(n)) > FLAT_SHARE * size:
                count = 4
                break
            n = -n
    return count


def put_face(W: Floats, faces: Integers, planes: Floats, at: int, i: int, j: int, k: int) -> None:
    """The face of three corners, and its plane: normal and distance from the origin."""
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
    planes[4 * at + 3] = n.dot(a) if length > 0.0 else NO_DISTANCE


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
        else:
            count = count + 1
        put_face(W, faces, planes, at, edges[2 * k], edges[2 * k + 1], corner)
    return count


def search_inside(
    which: Integers, sizes: Floats, points_a: Floats, points_b: Floats, R: Mat, p: Vec, W: Floats, A: Floats,
    count: int, out: Floats,
) -> None:  # fmt: skip
    """The expanding polytope: how deep two solids are in each other, of which a simplex of D has the origin."""
    flat, share = floats(3), floats(3)
    count = with_four_corners(which, sizes, points_a, points_b, R, p, W, A, count, flat)
    if count < 4:
        out[0] = 0.0
        nearest_on_simplex(W, count, share)
        put_corner(Part(out, 1), 0, mixed(A, share, count))
        put_corner(Part(out, 4), 0, corner_of(flat, 0))
        return
    faces, planes = integers(3 * MAX_FACES), floats(4 * MAX_FACES)
    first = corner_of(W, 0)
    turn = (corner_of(W, 1) - first).cross(corner_of(W, 2) - first).dot(corner_of(W, 3) - first)
    i, j = 2, 1
    if turn < 0.0:
        i, j = 1, 2
    put_face(W, faces, planes, 0, 0, i, j)
    put_face(W, faces, planes, 1, 0, 3, i)
    put_face(W, faces, planes, 2, 0, j, 3)
    put_face(W, faces, planes, 3, i, 3, j)
    corners, count, slack = 4, 4, GAIN_SHARE * sizes[8]
    best = nearest_face(faces, planes, count)
    while corners < MAX_CORNERS and count < MAX_FACES - 8:
        n = corner_of(Part(planes, 4 * best), 0)
        w = add_corner(which, sizes, points_a, points_b, R, p, n, W, A, corners)
        if w.dot(n) - planes[4 * best + 3] <= slack or has_corner(W, corners, w):
            break
        count = grown(W, faces, planes, count, corners, best, slack)
        corners = corners + 1
        best = nearest_face(faces, planes, count)
    best = facing(W, faces, planes, count, planes[4 * best + 3] + slack)
    i, j, k = faces[3 * best], faces[3 * best + 1], faces[3 * best + 2]
    nearest_on_triangle(corner_of(W, i), corner_of(W, j), corner_of(W, k), share)
    out[0] = -planes[4 * best + 3]
    a = corner_of(A, i) * share[0] + corner_of(A, j) * share[1] + corner_of(A, k) * share[2]
    put_corner(Part(out, 1), 0, a)
    put_corner(Part(out, 4), 0, corner_of(Part(planes, 4 * best), 0))


def separation(
    which: Integers, sizes: Floats, points_a: Floats, points_b: Floats, R: Mat, p: Vec, out: Floats
) -> None:
    """The distance of two solids (negative: how deep), the point of the first surface, the unit normal from it.

    which: kind and number of points of each. sizes: three of each and the radius of the ball about its points,
    then the size of both together. A plane stands first.
    """
    if which[0] == PLANE:
        n = Vec(0.0, 0.0, 1.0)
        b = p + R @ support_point(which[2], Part(sizes, 4), points_b, which[3], -R.z)
        out[0] = b.z
        put_corner(Part(out, 1), 0, Vec(b.x, b.y, 0.0))
        put_corner(Part(out, 4), 0, n)
    else:
        W, A = floats(3 * MAX_CORNERS + 3), floats(3 * MAX_CORNERS + 3)
        count = approach(which, sizes, points_a, points_b, R, p, W, A, out)
        if count > 0:
            search_inside(which, sizes, points_a, points_b, R, p, W, A, count, out)
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
    local = floats(7)
    relative = Mat(S.T @ R.T.x, S.T @ R.T.y, S.T @ R.T.z)
    separation(which, sizes, points_a, points_b, relative, T @ (corner_of(b, 3) - corner_of(a, 3)), local)
    n = R @ corner_of(Part(local, 4), 0)
    first = corner_of(a, 3) + R @ corner_of(Part(local, 1), 0)
    out[0] = local[0]
    put_corner(Part(out, 1), 0, first)
    put_corner(Part(out, 1), 1, first + n * local[0])
    put_corner(Part(out, 1), 2, n)
