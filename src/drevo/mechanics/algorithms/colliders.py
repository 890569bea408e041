"""The proximity of solids: distance, point and frame of each place where two may touch, over any scalar.

Every pair of kinds has a fixed number of places; one that is none at the moment is at the distance FAR. The rules
are those of MuJoCo; which of a pair stands first, `model.pairing.GEOM_ORDER` says.

  Ericson 2004, Real-Time Collision Detection, ch. 5 (nearest points); MuJoCo's documentation, "Computation".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...model.pairing import TOUCHING_PAIRS
from ..scalar import Scalar, Vector, clip, maximum, sqrt, where
from ..spatial import Mat, Vec
from .boxes import (
    NO_LENGTH,
    NO_PLACE,
    PlacedGeom,
    Proximity,
    absolute,
    capsule_box,
    frame_of,
    length_of,
    of_balls,
    perpendicular,
    sphere_box,
)

AXIS_CYLINDER_STEPS = 10  # Newton's steps of an axis and a cylinder
MAX_SINE = 0.999  # of a sine in them
END_TANGENT = 0.0874886635259240  # tan 5 degrees: of a capsule on an end
MIN_END_COSINE = 0.99  # of its normal there
LEVEL_SINE = 1e-9  # of such a sine: below it the whole axis is as near
PARALLEL_SINE2 = 1e-8  # of the square of the sine of two axes
Ground = Callable[[Scalar, Scalar], tuple[Scalar, Vec]]  # of x, y: the height, and the unit normal


def against_plane(plane: PlacedGeom, solid: PlacedGeom) -> list[Proximity]:
    """A solid on a plane."""
    n = plane.axis
    frame = frame_of(n, solid.axis if solid.kind == "capsule" else None)
    return [_on_plane(plane.p, frame, at, radius) for at, radius in supports(solid, n)]


def found_place(a: PlacedGeom, b: PlacedGeom, place: Vector) -> Proximity:
    """A place that has been searched for: by its distance, point and normal, of a hull on a plane by the corner of
    the hull, in whose axes that stays where it is while both move."""
    if a.kind != "plane":
        return Proximity(place[0], Vec(*place[1:4]), frame_of(Vec(*place[4:])))
    (lowest,) = against_plane(a, b._replace(points=(Vec(*place[1:4]),)))
    return lowest._replace(dist=where(place[0] < NO_PLACE, lowest.dist, NO_PLACE))


def on_ground(ground: Ground, solid: PlacedGeom) -> list[Proximity]:
    """A solid on uneven ground, which is taken by its tangent plane under each support of the solid."""
    n = ground(solid.p.x, solid.p.y)[1]
    found = []
    for at, radius in supports(solid, n):
        height, normal = ground(at.x, at.y)
        frame = frame_of(normal, solid.axis if solid.kind == "capsule" else None)
        found.append(_on_plane(Vec(at.x, at.y, height), frame, at, radius))
    return found


def supports(solid: PlacedGeom, n: Vec) -> list[tuple[Vec, Scalar]]:
    """The spheres by which a solid stands on a plane of normal n: centres and radii."""
    if solid.kind == "sphere":
        return [(solid.p, solid.size[0])]
    if solid.kind == "capsule":
        arm = solid.axis * solid.size[1]
        return [(solid.p + arm, solid.size[0]), (solid.p - arm, solid.size[0])]
    if solid.kind == "box":
        return [(solid.p + corner, 0.0) for corner in _lower_corners(solid, n)]
    if solid.kind == "cylinder":
        return [(at, 0.0) for at in _rim(solid, n)]
    if solid.kind == "ellipsoid":
        return [(solid.p + solid.R @ _lowest(solid.size, solid.R.T @ n), 0.0)]
    return [(solid.p + solid.R @ point, 0.0) for point in solid.points]


def _lowest(axes: Sequence[Scalar], n: Vec) -> Vec:
    """The point of an ellipsoid, in its axes, that is least far along n: -A^2 n / |A n|."""
    scaled = Vec(*(a * x for a, x in zip(axes, n)))
    over = -1.0 / sqrt(scaled.dot(scaled))
    return Vec(*(a * x * over for a, x in zip(axes, scaled)))


def _on_plane(origin: Vec, frame: Mat, at: Vec, radius: Scalar) -> Proximity:
    dist = (at - origin).dot(frame.x) - radius
    return Proximity(dist, at - frame.x * (0.5 * dist + radius), frame)


def _lower_corners(box: PlacedGeom, n: Vec) -> list[Vec]:
    """The corners of a box that are lower along n, one of each of the four pairs of opposite corners."""
    a, b, c = (axis * half for axis, half in zip(box.R.T, box.size))
    found = []
    for corner, k in ((a + b + c, 7.0), (a + b - c, 3.0), (a - b + c, 5.0), (a - b - c, 1.0)):  # k: x + 2 y + 4 z
        over = corner.dot(n) > 0.0
        found.append([where(over, 7.0 - k, k), *(where(over, -x, x) for x in corner)])
    for i, j in SORTING_NETWORK if box.ordered else ():
        pairs, swap = list(zip(found[i], found[j])), found[i][0] > found[j][0]
        found[i], found[j] = [where(swap, y, x) for x, y in pairs], [where(swap, x, y) for x, y in pairs]
    return [Vec(*corner) for _, *corner in found]


def _rim(cylinder: PlacedGeom, n: Vec) -> list[Vec]:
    """The lowest point of the lower end, that of the upper one, and two beside the first, at equal angles."""
    radius, half = cylinder.size
    a = cylinder.axis
    along = a.dot(n)
    up = along > 0.0
    a = Vec(*(where(up, -x, x) for x in a))
    w = a * a.dot(n) - n
    length, upright = length_of(w)
    scale = radius / length
    local = cylinder.R.T.x
    w = Vec(*(where(upright, radius * x, scale * y) for x, y in zip(local, w)))
    side = w.cross(a)
    side = side * (radius * 0.5 * 3.0**0.5 / sqrt(side.dot(side)))
    end, base = a * half, cylinder.p
    return [base + w + end, base + w - end, base - w * 0.5 + side + end, base - w * 0.5 - side + end]


# --- between two solids -----------------------------------------------------------------------------------------


def between(a: PlacedGeom, b: PlacedGeom) -> list[Proximity]:
    """Two solids, of which a stands first. KeyError for a pair that has no rule."""
    return PAIR_RULES[a.kind, b.kind](a, b)


def _sphere_sphere(a: PlacedGeom, b: PlacedGeom) -> list[Proximity]:
    """The place where two spheres are nearest."""
    return [of_balls(a.p, a.size[0], b.p - a.p, b.size[0], perpendicular(a.axis, b.axis))]


def _sphere_capsule(a: PlacedGeom, b: PlacedGeom) -> list[Proximity]:
    axis, half = b.axis, b.size[1]
    t = clip(axis.dot(a.p - b.p), -half, half)
    return [of_balls(a.p, a.size[0], b.p + axis * t - a.p, b.size[0], perpendicular(a.axis, axis))]


def _sphere_cylinder(a: PlacedGeom, b: PlacedGeom) -> list[Proximity]:
    """By the side, an end or the rim, wherever the centre is; inside, by the nearer of side and end."""
    (radius, half), axis = b.size, b.axis
    way = a.p - b.p
    x = axis.dot(way)
    off = way - axis * x
    (length, middle), height = length_of(off), absolute(x)
    far = where(middle, 0.0, length)
    sign = where(x < 0.0, -1.0, 1.0)
    nearer_end = half - height < radius - far
    beside, over = height < half, far < radius  # past no end, past no side
    by_side = where(beside, where(over, where(nearer_end, 0.0, 1.0), 1.0), 0.0)
    by_end = where(over, where(beside, where(nearer_end, 1.0, 0.0), 1.0), 0.0)
    rim = off * (radius / length) + axis * (sign * half)
    target = Vec(*(where(by_side > 0.5, s, r) for s, r in zip(axis * x, rim)))
    ball = of_balls(a.p, a.size[0], target - way, where(by_side > 0.5, radius, 0.0), perpendicular(a.axis, axis))
    end = height - half - a.size[0]
    n = Vec(*(where(by_end > 0.5, -sign * s, y) for s, y in zip(axis, ball.frame.x)))
    dist = where(by_end > 0.5, end, ball.dist)
    return [Proximity(dist, a.p + n * (a.size[0] + 0.5 * dist), frame_of(n))]


def _capsule_cylinder(a: PlacedGeom, b: PlacedGeom) -> list[Proximity]:
    """Contacts at the capsule axis's nearest point to the cylinder or, inside it, by the shortest way out; and,
    where it lies on an end within 5 degrees of flat, at the other end of what is over it."""
    radius, half = a.size
    at, way = b.R.T @ (a.p - b.p), b.R.T @ a.axis
    t, low, high = _nearest(at, way, half, b.size), *_over_end(at, way, half, b.size[0])
    farther = where(t - low < high - t, 1.0, 0.0) > 0.5
    level, steep = where(high > low, 1.0, 0.0) > 0.5, absolute(way.z)
    t = where(level, where(steep < LEVEL_SINE, where(farther, low, high), t), t)
    p = at + way * t
    rim = sqrt(maximum(p.x * p.x + p.y * p.y, NO_LENGTH))
    share = maximum(1.0 - b.size[0] / rim, 0.0)
    off = Vec(p.x * share, p.y * share, p.z - clip(p.z, -b.size[1], b.size[1]))
    far, inside = length_of(off)
    within, over = _way_out(at, way, half, b.size), 1.0 / far
    n = b.R @ Vec(*(-where(inside, x, y * over) for x, y in zip(within.way, off)))
    p = b.p + b.R @ Vec(*(where(inside, x, y) for x, y in zip(within.point, p)))
    dist = where(inside, -within.depth, far) - radius
    one = Proximity(dist, p + n * (radius + 0.5 * dist), frame_of(n))
    other, up = at + way * where(farther, high, low), where(n.dot(b.axis) < 0.0, 1.0, -1.0)
    deep, down = up * other.z - b.size[1] - radius, b.axis * -up
    lies = where(steep < END_TANGENT, where(absolute(n.dot(b.axis)) > MIN_END_COSINE, 1.0, 0.0), 0.0)
    two = b.p + b.R @ other + down * (radius + 0.5 * deep)
    return [one, Proximity(where(level, where(lies > 0.5, deep, NO_PLACE), NO_PLACE), two, frame_of(down))]


def _over_end(at: Vec, way: Vec, half: Scalar, radius: Scalar) -> tuple[Scalar, Scalar]:
    """Between which t at + way t, |t| <= half, is within a cylinder's radius of its axis; equal where nowhere."""
    square = maximum(way.x * way.x + way.y * way.y, NO_LENGTH)
    middle = (at.x * way.x + at.y * way.y) / square
    rest = middle * middle - (at.x * at.x + at.y * at.y - radius * radius) / square
    root = sqrt(maximum(rest, 0.0))
    return clip(-middle - root, -half, half), clip(root - middle, -half, half)


def _nearest(at: Vec, way: Vec, half: Scalar, size: Sequence[Scalar]) -> Scalar:
    """The t, |t| <= half, at which at + way t is nearest to a cylinder: the root of the slope of half the square
    distance, which rises, by Newton's method between bounds; inside, as near to the cylinder's axis as may be."""
    flat = way.x * way.x + way.y * way.y
    low, high = -half, half
    t = clip(-(at.x * way.x + at.y * way.y) / maximum(flat, NO_LENGTH), low, high)
    first, last = (_along(at, way, size, end)[0] for end in (low, high))
    for _ in range(AXIS_CYLINDER_STEPS):
        slope, bend = _along(at, way, size, t)
        low, high = where(slope > 0.0, low, t), where(slope > 0.0, t, high)
        trial, middle = t - slope / maximum(bend, NO_LENGTH), 0.5 * (low + high)
        t = where(trial < low, middle, where(high < trial, middle, trial))
    return where(first > 0.0, -half, where(last < 0.0, half, t))


class WayOut(NamedTuple):
    """A segment's way out of a cylinder: depth, direction and the segment's point, in the cylinder's axes."""

    depth: Scalar
    way: Vec
    point: Vec

    def or_less(self, o: WayOut) -> WayOut:
        less = o.depth < self.depth
        depth, *rest = (
            where(less, y, x) for x, y in zip((self.depth, *self.way, *self.point), (o.depth, *o.way, *o.point))
        )
        return WayOut(depth, Vec(*rest[:3]), Vec(*rest[3:]))


def _way_out(at: Vec, way: Vec, half: Scalar, size: Sequence[Scalar]) -> WayOut:
    """The shortest of those by the side, by an end, and over the rim across the segment."""
    radius, end = size
    square = way.x * way.x + way.y * way.y
    flat = sqrt(maximum(square, NO_LENGTH))
    across = Vec(-way.y, way.x, 0.0) * (1.0 / flat)
    p = at + way * clip(-(at.x * way.x + at.y * way.y) / maximum(square, NO_LENGTH), -half, half)
    off = sqrt(maximum(p.x * p.x + p.y * p.y, 0.0))
    middle = off < NO_LENGTH
    outward = Vec(*(where(middle, x, y / where(middle, 1.0, off)) for x, y in zip(across, (p.x, p.y, 0.0))))
    side = WayOut(radius - off, outward, p)
    up = where(at.z < 0.0, -1.0, 1.0)
    last = at + way * where(up * way.z > 0.0, -half, half)
    return side.or_less(WayOut(end - up * last.z, Vec(0.0, 0.0, up), last)).or_less(
        _over_rim(at, way, half, across, flat, size)
    )


def _over_rim(at: Vec, way: Vec, half: Scalar, across: Vec, flat: Scalar, size: Sequence[Scalar]) -> WayOut:
    """Along n = x across + y above, x^2 + y^2 = 1, both square to the segment: the least over x of
    radius |n_xy| + end |n_z| - n . at, by Newton's method."""
    (radius, end), above = size, way.cross(across)
    a, b, steep = across.dot(at), above.dot(at), way.z * way.z
    k, rise = absolute(a), end * flat - absolute(b)
    x = clip(absolute(way.z) * k / (flat * sqrt(maximum((radius * flat) ** 2 - k * k, NO_LENGTH))), 0.0, MAX_SINE)
    for _ in range(AXIS_CYLINDER_STEPS):
        level, y = sqrt(maximum(steep + (flat * x) ** 2, NO_LENGTH)), sqrt(1.0 - x * x)
        slope = radius * flat * flat * x / level - rise * x / y - k
        bend = radius * flat * flat * steep / (level * level * level) - rise / (y * y * y)
        x = clip(where(bend > 0.0, x - slope / where(bend > 0.0, bend, 1.0), x), 0.0, MAX_SINE)
    level, y = sqrt(maximum(steep + (flat * x) ** 2, NO_LENGTH)), sqrt(1.0 - x * x)
    n = across * where(a < 0.0, -x, x) + above * where(b < 0.0, -y, y)
    rim = Vec(n.x * radius / level, n.y * radius / level, where(n.z < 0.0, -end, end))
    return WayOut(radius * level + rise * y - k * x, n, at + way * clip(way.dot(rim - at), -half, half))


def _along(at: Vec, way: Vec, size: Sequence[Scalar], t: Scalar) -> tuple[Scalar, Scalar]:
    """The slope of half the square distance of at + way t from a cylinder in its axes, and the slope of that."""
    (radius, half), (x, y, z) = size, at + way * t
    square = maximum(x * x + y * y, NO_LENGTH)
    along, share = x * way.x + y * way.y, 1.0 - radius / sqrt(square)
    flat = way.x * way.x + way.y * way.y
    beside, over = share > 0.0, absolute(z) > half
    slope = where(beside, share * along, 0.0) + (z - clip(z, -half, half)) * way.z
    bend = where(beside, share * flat + (1.0 - share) * (along * along / square), 0.0)
    return slope, bend + where(over, way.z * way.z, 0.0)


def _capsule_capsule(a: PlacedGeom, b: PlacedGeom) -> list[Proximity]:
    """The nearest points of the axes; where these are parallel, the ends of their overlap, or twice the one.

    Axes that cross, or nearly do, are taken along their common perpendicular, which rounding cannot turn.
    """
    u, w, (ra, la), (rb, lb) = a.axis, b.axis, a.size, b.size
    way = b.p - a.p
    c, p, q = u.dot(w), u.dot(way), w.dot(way)
    det = 1.0 - c * c
    parallel = det < PARALLEL_SINE2
    free = (p - c * q) / where(parallel, 1.0, det)
    s = clip(free, -la, la)
    t = c * s - q
    past = absolute(t) > lb
    inside = where(past, 0.0, where(absolute(free) > la, 0.0, where(parallel, 0.0, 1.0))) > 0.5
    t = clip(t, -lb, lb)
    s = where(past, clip(c * t + p, -la, la), s)
    lower, upper = (
        _end_of_overlap(end, c, p, q, la) for end in (where(c < 0.0, lb, -lb), where(c < 0.0, -lb, lb))
    )
    ends = [(s, clip(t, -lb, lb)) for s, t in (lower, upper)]
    s, t = where(parallel, ends[0][0], s), where(parallel, ends[0][1], t)
    square = perpendicular(u, w)
    apart = way + w * t - u * s
    crosses = where(inside, det - apart.dot(apart), -1.0) > 0.0
    apart = Vec(*(where(crosses, x, y) for x, y in zip(square * square.dot(way), apart)))
    one = of_balls(a.p + u * s, ra, apart, rb, square)
    two = of_balls(a.p + u * ends[1][0], ra, way + w * ends[1][1] - u * ends[1][0], rb)
    return [one, Proximity(where(parallel, two.dist, NO_PLACE), two.point, two.frame)]


def _end_of_overlap(t: Scalar, c: Scalar, p: Scalar, q: Scalar, la: Scalar) -> tuple[Scalar, Scalar]:
    """The point of the first axis over the end t of the second, or else its own end and what is over that."""
    over = c * t + p
    s = clip(over, -la, la)
    return s, where(absolute(over) > la, c * s - q, t)


PairRule = Callable[[PlacedGeom, PlacedGeom], list[Proximity]]
PAIR_RULES: dict[tuple[str, str], PairRule] = {
    **{pair: against_plane for pair in TOUCHING_PAIRS if pair[0] == "plane"},
    ("sphere", "sphere"): _sphere_sphere,
    ("sphere", "capsule"): _sphere_capsule,
    ("sphere", "cylinder"): _sphere_cylinder,
    ("capsule", "capsule"): _capsule_capsule,
    ("capsule", "cylinder"): _capsule_cylinder,
    ("sphere", "box"): sphere_box,
    ("capsule", "box"): capsule_box,
}
SORTING_NETWORK = ((0, 1), (2, 3), (0, 2), (1, 3), (1, 2))  # of four
TWICE = tuple(("capsule", kind) for kind in ("capsule", "cylinder", "box"))  # pairs that may touch at two places


def places(kinds: Sequence[str], points: int = 0) -> int:
    """The number of places of contact that a pair of kinds has; 0 where it has no rule. points: of a hull."""
    if tuple(kinds) not in PAIR_RULES:
        return 0
    if kinds[0] != "plane":
        return 2 if tuple(kinds) in TWICE else 1
    return {"sphere": 1, "ellipsoid": 1, "capsule": 2, "cylinder": 4, "box": 4}.get(kinds[1], points)
