"""The normal of two curved solids to rounding, by Newton's method from where their search ends.

From the first to the second the unit normal n has w = s_B(-n) - s_A(n) = rho n. A search that ends by the distance
has n to the root of its precision only. The derivative of a support s by its direction is D, the matrix of the
radii of curvature (Schneider 2014, Convex bodies, section 2.5): with tangents T of n

    (T'(D_A + D_B) T + rho) x = T'w,    n := n + T x .

To an edge, or the side of a cylinder, n is square; two of these, or a face, have it alone.
"""

from __future__ import annotations

from math import sqrt

from ...codegen.lower.plain_values import Floats, Integers, Part, floats, integers
from ...mechanics.spatial import Mat, Vec
from .simplex import CYLINDER, ELLIPSOID, add_corner, corner_of, put_corner, square_to, support_point

POLISHED_GAIN = 1e-10  # of the square distance: what a further step of the search could gain at most
POLISHED_INSIDE = 1e-7  # of the size of both: what a further corner of the polytope could gain at most
SAME_POINT = 1e-18  # of the square size of both: what rounding makes between a point and itself
SAME_LINE = 1e-12  # of the square sine between two lines: below it they are one
MAX_TURN = 1e-2  # of n, rad: beyond it the search has ended elsewhere
REACH_SLACK = 1e-12  # of the size of both: what rounding makes of a distance
POLISH_STEPS, LAST_TURN = 4, 1e-8


def normalised(x: Vec) -> Vec:
    """A vector of length 1."""
    y: Vec = x * (1.0 / sqrt(x.dot(x)))
    return y


def bend(kind: int, size: Floats, d: Vec, m: Vec) -> Vec:
    """D m: how fast the point that is farthest along d moves where d turns by m."""
    if kind == CYLINDER:
        flat = sqrt(d.x * d.x + d.y * d.y)
        move = size[0] * (d.x * m.y - d.y * m.x) / (flat * flat * flat) if flat > 0.0 else 0.0
        return Vec(-d.y * move, d.x * move, 0.0)
    if kind == ELLIPSOID:
        y, x = Vec(d.x * size[0], d.y * size[1], d.z * size[2]), Vec(m.x * size[0], m.y * size[1], m.z * size[2])
        square = y.dot(y)
        x = (x - y * (y.dot(x) / square)) * (1.0 / sqrt(square))
        return Vec(x.x * size[0], x.y * size[1], x.z * size[2])
    return Vec(0.0, 0.0, 0.0)


def farthest(kind: int, size: Floats, feature: Floats, d: Vec) -> Vec:
    """The point of a curved solid that is farthest along d; of others the first of three."""
    if kind != CYLINDER and kind != ELLIPSOID:
        return corner_of(feature, 0)
    number = integers(1)
    return support_point(kind, size, size, 0, number, d, number)


def way_of(kind: int, size: float, feature: Floats, k: int) -> Vec:
    """The straight way from the first of three points to the k-th, a unit vector; zero where there is none."""
    first, last = corner_of(feature, 0), corner_of(feature, k)
    way = last - first
    if kind == CYLINDER:
        way = Vec(0.0, 0.0, 1.0 if first.z * last.z < 0.0 else 0.0)
    square = way.dot(way)
    apart = square > SAME_POINT * size * size and kind != ELLIPSOID
    return way * (1.0 / sqrt(square)) if apart else Vec(0.0, 0.0, 0.0)


def line_of(kind: int, size: float, feature: Floats) -> Vec:
    """The way along the edge, or the side, on which the three points are; zero where they are one."""
    way = way_of(kind, size, feature, 1)
    return way if way.dot(way) > 0.0 else way_of(kind, size, feature, 2)


def face_of(kind: int, size: float, feature: Floats, d: Vec) -> Vec:
    """The normal of a face on which the three points are; zero where they are on none."""
    if kind == CYLINDER:
        first, wide = corner_of(feature, 0), corner_of(feature, 1) - corner_of(feature, 2)
        most = max(wide.dot(wide), (corner_of(feature, 1) - first).dot(corner_of(feature, 1) - first))
        on_end = d.x * d.x + d.y * d.y < MAX_TURN * MAX_TURN
        return Vec(0.0, 0.0, 1.0 if on_end and most > SAME_POINT * size * size else 0.0)
    return way_of(kind, size, feature, 1).cross(way_of(kind, size, feature, 2))


def toward(face: Vec, n: Vec) -> Vec:
    """The unit normal of a face on the side of n; zero where there is none."""
    return normalised(face * face.dot(n)) if face.dot(face) > SAME_LINE else Vec(0.0, 0.0, 0.0)


def parting(
    which: Integers, sizes: Floats, points_a: Floats, points_b: Floats, R: Mat, p: Vec, n: Vec
) -> float:  # fmt: skip
    """The width of the slab across n that parts two solids; negative where it is an overlap."""
    W, A, ends = floats(3), floats(3), integers(2)
    return float(-add_corner(which, sizes, points_a, points_b, R, p, n, W, A, ends, 0).dot(n))


def newton_turn(which: Integers, sizes: Floats, R: Mat, n: Vec, line: Vec, w: Vec) -> Vec:
    """T x: how far n is from where it is to be; across a line only, where there is one."""
    free, size_b, back = line.dot(line) == 0.0, Part(sizes, 4), -(R.T @ n)
    i = square_to(n) if free else line
    j = n.cross(i)
    D_i = bend(which[0], sizes, n, i) + R @ bend(which[2], size_b, back, R.T @ i)
    D_j = bend(which[0], sizes, n, j) + R @ bend(which[2], size_b, back, R.T @ j)
    ii, ij, jj = i.dot(D_i) + n.dot(w), i.dot(D_j) if free else 0.0, j.dot(D_j) + n.dot(w)
    x, y, det = i.dot(w) if free else 0.0, j.dot(w), ii * jj - ij * ij
    over = 1.0 / det if det != 0.0 else 0.0
    turn: Vec = i * ((jj * x - ij * y) * over) + j * ((ii * y - ij * x) * over)
    return turn


def polish(
    which: Integers, sizes: Floats, points_a: Floats, points_b: Floats, R: Mat, p: Vec, feature: Floats,
    out: Floats,
) -> None:  # fmt: skip
    """Mends distance, point and normal of the first of two solids without the balls about them. Nothing changes
    where the new normal parts them less than the old one, or than the points.

    feature: three points of each, maybe alike, between which the search has ended, in its axes.
    """
    size, feature_b, begin = sizes[8], Part(feature, 9), corner_of(Part(out, 4), 0)
    line_a, line_b = line_of(which[0], size, feature), R @ line_of(which[2], size, feature_b)
    face_a = toward(face_of(which[0], size, feature, begin), begin)
    face_b = toward(R @ face_of(which[2], size, feature_b, R.T @ begin), begin)
    least = parting(which, sizes, points_a, points_b, R, p, begin) - REACH_SLACK * size
    on_a, on_b = face_a.dot(face_a) > 0.0, face_b.dot(face_b) > 0.0
    if on_a:  # and not beside it
        on_a = parting(which, sizes, points_a, points_b, R, p, face_a) > least
    if on_b:
        on_b = parting(which, sizes, points_a, points_b, R, p, face_b) > least
    line = line_a if line_a.dot(line_a) > 0.0 else line_b
    n, across = begin - line * line.dot(begin), line_a.cross(line_b)
    if on_a or on_b:
        n = face_a if on_a else face_b
    crossed = across.dot(across) > SAME_LINE and not on_a and not on_b
    n, done = normalised(across * across.dot(begin) if crossed else n), crossed or on_a or on_b
    a, w, rho = begin, begin, 0.0
    for _ in range(POLISH_STEPS):
        a = farthest(which[0], sizes, feature, n)
        w = p + R @ farthest(which[2], Part(sizes, 4), feature_b, -(R.T @ n)) - a
        rho = n.dot(w)
        if done:
            break
        turn = newton_turn(which, sizes, R, n, line, w)
        n = normalised(n + turn)
        done = turn.dot(turn) < LAST_TURN * LAST_TURN
    apart = parting(which, sizes, points_a, points_b, R, p, n)
    better = apart > least and apart > rho - REACH_SLACK * size
    if done and better and n.dot(begin) > 1.0 - 0.5 * MAX_TURN * MAX_TURN:
        if crossed:
            side = line_b.cross(n)
            a = a + line_a * (w.dot(side) / line_a.dot(side))
        elif on_b or line_b.dot(line_b) > 0.0:  # of several nearest points the one that was found
            old = corner_of(Part(out, 1), 0)
            a = old + n * n.dot(a - old) if on_a or line_a.dot(line_a) > 0.0 else a
        else:
            a = a + w - n * rho
        out[0] = rho
        put_corner(Part(out, 1), 0, a)
        put_corner(Part(out, 4), 0, n)
