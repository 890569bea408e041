"""Two boxes: the direction along which they are least in each other, and the places where they touch.

The direction is a face's normal or the common perpendicular of two edges; of a face the one of the other box that
is most against it is clipped to it, of two edges the place is midway between them. That edges count only where
they are clearly less deep, or clearly askew, is MuJoCo's rule.

  Gottschalk, Lin, Manocha 1996, OBBTree: a hierarchical structure for rapid interference detection, section 5.
"""

from __future__ import annotations

from math import sqrt

from ...codegen.lower.plain_values import Floats, Integers, Part, floats, integers
from ...mechanics.spatial import Mat, Vec
from .clipping import MAX_PLACES, MAX_POLYGON, PLACE_NUMBERS, clipped_by, has_near, put_place
from .faces import axis_of, box_face, box_normal, put_rectangle
from .simplex import NO_DISTANCE, corner_of, put_corner

EDGE_GAIN_SHARE = (
    0.05  # of the depth along a face: edges nearly in line with it count if they are less deep by that
)
LEAST_DEPTH_SHARE = 1e-7  # of the size of a box: faces that are less deep, and edges then, are taken as so deep
EDGE_FACE_COSINE = 0.99  # of a face and two edges that are nearly in line
LEAST_EDGE_SINE = 1e-15  # of two edges: below it they have no perpendicular


def reach_along(size: Floats, d: Vec) -> float:
    """The length from the middle of a box to its end along a direction."""
    return float(size[0] * abs(d.x) + size[1] * abs(d.y) + size[2] * abs(d.z))


def face_depth(size_a: Floats, size_b: Floats, R: Mat, p: Vec, n: Floats) -> float:
    """The least depth along the faces of both boxes; `n`: that direction, from the first, and 1 where it is of the
    second."""
    deep = NO_DISTANCE
    for k in range(6):
        d = axis_of(k) if k < 3 else R @ axis_of(k - 3)
        off = d.dot(p)
        depth = reach_along(size_a, d) + reach_along(size_b, R.T @ d) - abs(off)
        if depth < deep:
            deep = depth
            put_corner(n, 0, d if off >= 0.0 else -d)
            n[3] = 0.0 if k < 3 else 1.0
    return deep


def edge_depth(size_a: Floats, size_b: Floats, R: Mat, p: Vec, n: Floats, edges: Integers) -> float:
    """The least depth along perpendiculars of two edges; `n`: that direction, from the first; `edges`: axes."""
    deep = NO_DISTANCE
    for i in range(3):
        for j in range(3):
            d = axis_of(i).cross(R @ axis_of(j))
            length = sqrt(d.dot(d))
            if length > LEAST_EDGE_SINE:
                d = d * (1.0 / length)
                off = d.dot(p)
                depth = reach_along(size_a, d) + reach_along(size_b, R.T @ d) - abs(off)
                if depth < deep:
                    deep = depth
                    put_corner(n, 0, d if off >= 0.0 else -d)
                    edges[0] = i
                    edges[1] = j
    return deep


def middle_of_edge(size: Floats, d: Vec, k: int) -> Vec:
    """The middle of the edge along axis k that is farthest along a direction."""
    return Vec(
        0.0 if k == 0 else (size[0] if d.x >= 0.0 else -size[0]),
        0.0 if k == 1 else (size[1] if d.y >= 0.0 else -size[1]),
        0.0 if k == 2 else (size[2] if d.z >= 0.0 else -size[2]),
    )


def clamped(x: float, most: float) -> float:
    """x, or the bound that it passes."""
    return max(min(x, most), -most)


def put_edges_place(
    size_a: Floats, size_b: Floats, R: Mat, p: Vec, n: Vec, edges: Integers, depth: float, out: Floats
) -> None:
    """Enters the place midway between the nearest points of two edges, which may be at their ends."""
    u, w = axis_of(edges[0]), R @ axis_of(edges[1])
    a = middle_of_edge(size_a, n, edges[0])
    b = p + R @ middle_of_edge(size_b, -(R.T @ n), edges[1])
    way, c = b - a, u.dot(w)
    s = clamped((u.dot(way) - c * w.dot(way)) / (1.0 - c * c), size_a[edges[0]])
    t = clamped(s * c - w.dot(way), size_b[edges[1]])
    s = clamped(t * c + u.dot(way), size_a[edges[0]])
    put_place(out, 0, -depth, (a + u * s + b + w * t) * 0.5, n)


def places_of_boxes(size_a: Floats, size_b: Floats, R: Mat, p: Vec, margin: float, out: Floats) -> int:
    """Enters the places where two boxes touch, in the axes of the first, R and p placing the second there; gives
    how many."""
    n, m = floats(4), floats(4)
    edges = integers(2)
    deep, deep_edges = face_depth(size_a, size_b, R, p, n), edge_depth(size_a, size_b, R, p, m, edges)
    if deep < -margin or deep_edges < -margin:
        return 0
    normal, askew = corner_of(n, 0), corner_of(m, 0)
    least = LEAST_DEPTH_SHARE * reach_along(size_a, Vec(1.0, 1.0, 1.0))
    clearly = (
        deep_edges < deep - EDGE_GAIN_SHARE * max(abs(deep), least) or abs(askew.dot(normal)) < EDGE_FACE_COSINE
    )
    if deep_edges < deep * (1.0 - 1e-12) and clearly:
        put_edges_place(size_a, size_b, R, p, askew, edges, deep_edges, out)
        return 1
    if n[3] < 0.5:
        return places_of_face(size_a, size_b, R, p, normal, margin, out)
    count = places_of_face(size_b, size_a, R.T, -(R.T @ p), -(R.T @ normal), margin, out)
    for k in range(count):
        place = 1 + PLACE_NUMBERS * k
        put_place(out, k, out[place], p + R @ corner_of(Part(out, place + 1), 0), normal)
    return count


def places_of_face(size: Floats, other: Floats, R: Mat, p: Vec, n: Vec, margin: float, out: Floats) -> int:
    """Enters the places over a face of a box, of outward normal n: what its four sides leave of the face of the
    other that is most against it, in MuJoCo's order."""
    polygon, left = floats(3 * MAX_POLYGON + 3), floats(3 * MAX_POLYGON + 3)
    axis, against = box_face(n) // 2, box_face(-(R.T @ n))
    u, v = (against // 2 + 1) % 3, (against // 2 + 2) % 3
    middle = box_normal(against) * other[against // 2]
    put_rectangle(polygon, p + R @ middle, R @ (axis_of(u) * other[u]), R @ (axis_of(v) * other[v]))
    count, kept = 4, 0
    for k in range(4):
        side = (axis + 1 + k // 2) % 3
        outward = axis_of(side) * (1.0 if k % 2 == 0 else -1.0)
        count = clipped_by(polygon, count, outward * size[side], -outward, left, True)
        for m in range(count):
            put_corner(polygon, m, corner_of(left, m))
    for k in range(count):
        corner = corner_of(polygon, k)
        dist = n.dot(corner) - size[axis]
        if dist <= margin and kept < MAX_PLACES and not has_near(left, kept, corner):
            put_corner(left, kept, corner)
            put_place(out, kept, dist, corner - n * (0.5 * dist), n)
            kept = kept + 1
    return kept
