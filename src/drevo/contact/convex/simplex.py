"""Supports of solids, corners of their difference, and the nearest point of a simplex of them to the origin.

Ericson 2004, Real-Time Collision Detection, ch. 5 and 9.
"""

from __future__ import annotations

from math import sqrt

from ...codegen.lower.plain_values import Floats, Integers, Part, floats, integers
from ...mechanics.spatial import Mat, Vec

POINT, SEGMENT, BOX, CYLINDER, ELLIPSOID, HULL, PLANE, FIELD = range(8)  # kinds of points with a ball about each
FLAT_SINE = 1e-7  # of a corner over the face of three others: four that are lower hold nothing
NO_DISTANCE = 1e300
FEW_POINTS = 16  # of a hull: all are looked at
HALF_GRID = 3  # coordinates of directions on either side of 0, from which points a search of a hull begins
GRAPH_A, GRAPH_B = 4, 5  # where `which` says how far behind it the graph of each hull is


def corner_of(points: Floats, k: int) -> Vec:
    """Point k of an array."""
    return Vec(points[3 * k], points[3 * k + 1], points[3 * k + 2])


def put_corner(points: Floats, k: int, x: Vec) -> None:
    points[3 * k] = x.x
    points[3 * k + 1] = x.y
    points[3 * k + 2] = x.z


def square_to(n: Vec) -> Vec:
    """A unit vector square to another."""
    least = Vec(1.0, 0.0, 0.0)
    if abs(n.y) <= abs(n.x) and abs(n.y) <= abs(n.z):
        least = Vec(0.0, 1.0, 0.0)
    elif abs(n.z) <= abs(n.x):
        least = Vec(0.0, 0.0, 1.0)
    m: Vec = n.cross(least)
    return m * (1.0 / sqrt(m.dot(m)))


def support_point(
    kind: int, size: Floats, points: Floats, count: int, graph: Integers, d: Vec, number: Integers
) -> Vec:
    """The point of a solid that is farthest along d, in the solid's axes.

    number: the number of a hull's point where the search begins, and of what it finds; of a box the bits of its
    positive coordinates, of a cylinder 1 at its lower end. graph: `hulls.hull_tables`.
    """
    if kind == BOX:
        number[0] = (1 if d.x >= 0.0 else 0) + (2 if d.y >= 0.0 else 0) + (4 if d.z >= 0.0 else 0)
        return Vec(
            size[0] if d.x >= 0.0 else -size[0], size[1] if d.y >= 0.0 else -size[1],
            size[2] if d.z >= 0.0 else -size[2],
        )  # fmt: skip
    if kind == CYLINDER:
        number[0] = 0 if d.z >= 0.0 else 1
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
        number[0] = farthest_point(points, count, graph, d, number[0])
        return corner_of(points, number[0])
    return Vec(0.0, 0.0, 0.0)


def farthest_point(points: Floats, count: int, graph: Integers, d: Vec, start: int) -> int:
    """The point of a hull that is farthest along d: of a few the best, of more from neighbour to neighbour, from
    `start` or from what is farthest about there."""
    if graph[0] == 0 or count <= FEW_POINTS:
        best, farthest = 0, -NO_DISTANCE
        for k in range(count):
            along = d.dot(corner_of(points, k))
            if along > farthest:
                farthest, best = along, k
        return best
    first = graph[1 + graph[0]]
    best, farthest, at = start, d.dot(corner_of(points, start)), -1
    if 0.0 < d.dot(d) < NO_DISTANCE:  # a number
        scale, middle, n = HALF_GRID / max(max(abs(d.x), abs(d.y)), abs(d.z)), HALF_GRID + 0.5, 2 * HALF_GRID + 1
        cell = n * (n * int(d.x * scale + middle) + int(d.y * scale + middle)) + int(d.z * scale + middle)
        near = graph[graph[first + 2 * count + 1] + cell]
        along = d.dot(corner_of(points, near))
        if along > farthest:
            farthest, best = along, near
    while best != at:
        at = best
        for k in range(graph[first + at], graph[first + at + 1]):
            along = d.dot(corner_of(points, graph[k]))
            if along > farthest:
                farthest, best = along, graph[k]
    return best


def add_corner(
    which: Integers, sizes: Floats, points_a: Floats, points_b: Floats, R: Mat, p: Vec, d: Vec, W: Floats,
    A: Floats, ends: Integers, k: int,
) -> Vec:  # fmt: skip
    """The corner of D that is farthest along d, as corner k of W; A has its point of the first solid, `ends` the
    numbers of the points of both."""
    for m in range(2):
        ends[2 * k + m] = ends[2 * k + m - 2] if k > 0 else 0
    graph_a, graph_b = Part(which, which[GRAPH_A]), Part(which, which[GRAPH_B])
    a = support_point(which[0], sizes, points_a, which[1], graph_a, d, Part(ends, 2 * k))
    b = p + R @ support_point(
        which[2], Part(sizes, 4), points_b, which[3], graph_b, -(R.T @ d), Part(ends, 2 * k + 1)
    )
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
        edge = corner_of(W, k) - x
        opposite, origin = n.dot(edge), -n.dot(x)
        flat = opposite * opposite <= FLAT_SINE * FLAT_SINE * n.dot(n) * edge.dot(edge)
        if opposite * origin > 0.0 and not flat:
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


def kept_corners(W: Floats, A: Floats, ends: Integers, share: Floats, count: int) -> int:
    """Leaves only the corners that have a share; gives how many."""
    kept = 0
    for k in range(count):
        if share[k] > 0.0:
            put_corner(W, kept, corner_of(W, k))
            put_corner(A, kept, corner_of(A, k))
            ends[2 * kept] = ends[2 * k]
            ends[2 * kept + 1] = ends[2 * k + 1]
            share[kept] = share[k]
            kept = kept + 1
    return kept


def mixed(points: Floats, share: Floats, count: int) -> Vec:
    """The point that has these shares of corners."""
    x: Vec = corner_of(points, 0) * share[0]
    for k in range(1, count):
        x = x + corner_of(points, k) * share[k]
    return x


def has_corner(W: Floats, count: int, w: Vec, slack: float) -> bool:
    """True if a corner is among those before it, or nearer to one than the slack."""
    for k in range(count):
        x = corner_of(W, k) - w
        if x.dot(x) <= slack * slack:
            return True
    return False
