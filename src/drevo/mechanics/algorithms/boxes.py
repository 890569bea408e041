"""Distances of spheres and capsules from boxes, and the places: the rules of `colliders` that boxes have.

A capsule touches where its axis is nearest to the box, at an end of it over a face or at an edge, and, where it
lies along the box, at a second place as far from there as it is over the box. Positions t along the axis count in
half lengths, -1 to 1.

The proximity of two solids that may touch, and the functions that every rule of `colliders` is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

from ..scalar import Scalar, Vector, clip, dot, maximum, minimum, sqrt, where
from ..spatial import Mat, Vec

NO_PLACE = 1e10  # m: the distance of a place that is none
NO_LENGTH = 1e-15  # of lengths and determinants: below it a direction is chosen
X_AXIS = Vec(1.0, 0.0, 0.0)


class PlacedGeom(NamedTuple):
    """A geom in the world: R turns its axes into the world's. size as in `model.contact.Geom`.

    ordered: whether the corners of a box on a plane come in MuJoCo's order, by their signs.
    """

    kind: str
    size: tuple[Scalar, ...]
    R: Mat
    p: Vec
    points: tuple[Vec, ...] = ()  # of a hull, in its axes
    ordered: bool = False

    @property
    def axis(self) -> Vec:
        return Vec(self.R.x.z, self.R.y.z, self.R.z.z)


class Proximity(NamedTuple):
    """The distance (negative: how deep), the point midway, and as rows the normal from 1 to 2 and two tangents.

    slip: how the surface of 2 moves against that of 1 where both solids stand still: along tangents, and its spin.
    """

    dist: Scalar
    point: Vec
    frame: Mat
    slip: tuple[Scalar, ...] = ()

    def slipping(self, u: Vector) -> list[Scalar]:
        """The velocities of surfaces along the frame, from those of the solids there."""
        out = list(u)
        for k, x in enumerate(self.slip[: len(out) - 1], 1):
            out[k] = out[k] + x
        return out


def of_balls(p: Vec, r: Scalar, way: Vec, s: Scalar, concentric: Vec = X_AXIS) -> Proximity:
    """Two spheres, the first about p, the second so far from it; concentric: the normal where they are that."""
    length, same = length_of(way)
    n = Vec(*(where(same, x, y / length) for x, y in zip(concentric, way)))
    dist = where(same, 0.0, length) - r - s
    return Proximity(dist, p + n * (r + 0.5 * dist), frame_of(n))


def perpendicular(a: Vec, b: Vec) -> Vec:
    """The unit vector square to two others, a x b; of parallel ones X."""
    n = a.cross(b)
    length, parallel = length_of(n)
    return Vec(*(where(parallel, x, y / length) for x, y in zip(X_AXIS, n)))


def frame_of(n: Vec, hint: Vec | None = None) -> Mat:
    """Rows: the unit normal, a tangent towards the hint, or else towards y or z, and the third."""
    flat = n.y * n.y < 0.25
    y = Vec(0.0, where(flat, 1.0, 0.0), where(flat, 0.0, 1.0))
    if hint is not None:
        y = hint
    y = y - n * n.dot(y)
    length, along = length_of(y)
    y = Vec(*(where(along, e, part / length) for e, part in zip(X_AXIS, y)))
    return Mat(n, y, n.cross(y))


def length_of(v: Vec) -> tuple[Scalar, Any]:
    """The length of a vector, 1 where it has none, and whether it has none: with slopes there too."""
    square = v.dot(v)
    none = square < NO_LENGTH * NO_LENGTH
    return sqrt(where(none, 1.0, square)), none


def absolute(x: Scalar) -> Scalar:
    return where(x < 0.0, -x, x)


ON_FACE, ON_CORNER, ON_EDGE = 0.0, 1.0, 2.0  # of what a capsule is nearest to
ACROSS = 1e-9  # of a cosine: below it a capsule does not leave a face by the ends of the edge that it crosses
MIN_ALONG_EDGE = 0.5  # of the square of a cosine: above it a capsule at a corner lies along an edge


def sphere_box(a: PlacedGeom, b: PlacedGeom) -> list[Proximity]:
    """By the nearest point; a centre that is inside leaves by the nearest face."""
    return [_ball(b.R.T @ (a.p - b.p), a.size[0], b)]


def _ball(c: Vec, radius: Scalar, box: PlacedGeom) -> Proximity:
    """A sphere about c, in the box's axes."""
    way = Vec(*(clip(x, -s, s) - x for x, s in zip(c, box.size)))
    far, inside = length_of(way)
    over = 1.0 / far
    depth, out = NO_PLACE, [0.0, 0.0, 0.0]
    for k, (x, s) in enumerate(zip(c, box.size)):
        for sign in (1.0, -1.0):
            deep = absolute(s + sign * x)
            less = deep < depth
            out = [where(less, sign if i == k else 0.0, y) for i, y in enumerate(out)]
            depth = where(less, deep, depth)
    n = Vec(*(where(inside, x, y * over) for x, y in zip(out, way)))
    dist = where(inside, -depth, far) - radius
    point = c + n * (radius + 0.5 * dist)
    return Proximity(dist, box.p + box.R @ point, frame_of(box.R @ n))


def capsule_box(a: PlacedGeom, b: PlacedGeom) -> list[Proximity]:
    """Two places, of which the second may be none."""
    radius, half = a.size
    line = _Line(b.R.T @ (a.p - b.p), b.R.T @ a.axis, half, b.size)
    near = line.nearest()
    more, here = line.second(near)
    one, two = (_ball(line.at(t), radius, b) for t in (near.t, near.t + more))
    return [one, Proximity(where(here > 0.5, two.dist, NO_PLACE), two.point, two.frame)]


class _Nearest(NamedTuple):
    """The part of a box nearest to a segment. square: of the distance. kind: FACE, at an end, CORNER or EDGE. on:
    where on an edge, -1 to 1. faces: 1 for the axis of the face, if the end is outside of it. corner: 1 by axis
    where the edge or corner is on its positive side. edge: 1 for its axis."""

    square: Scalar
    t: Scalar
    kind: Scalar
    on: Scalar
    faces: tuple[Scalar, ...] = (0.0,) * 3
    corner: tuple[Scalar, ...] = (0.0,) * 3
    edge: tuple[Scalar, ...] = (0.0,) * 3

    def or_nearer(self, o: _Nearest, by: float) -> _Nearest:
        nearer = o.square < self.square - by
        flat = [where(nearer, y, x) for x, y in zip(self._flat(), o._flat())]
        return _Nearest(*flat[:4], *(tuple(flat[k : k + 3]) for k in (4, 7, 10)))

    def _flat(self) -> list[Scalar]:
        return [*self[:4], *self.faces, *self.corner, *self.edge]


class _Line(NamedTuple):
    """A segment in the axes of a box: its middle, direction and half length, and the half lengths of the box."""

    p: Vec
    axis: Vec
    half: Scalar
    size: Sequence[Scalar]

    @property
    def h(self) -> Vec:
        found: Vec = self.axis * self.half
        return found

    def at(self, t: Scalar) -> Vec:
        found: Vec = self.p + self.h * t
        return found

    def nearest(self) -> _Nearest:
        found = _Nearest(NO_PLACE, 0.0, ON_FACE, 0.0)
        for t in (-1.0, 1.0):
            found = found.or_nearer(self._end(t), 0.0)
        for j in range(3):
            for signs in product((-1.0, 1.0), repeat=2):
                found = found.or_nearer(self._edge(j, signs[::-1]), NO_LENGTH)
        return found

    def _end(self, t: float) -> _Nearest:
        """An end that is over a face, or inside."""
        out = [x - clip(x, -s, s) for x, s in zip(self.at(t), self.size)]
        beyond = tuple(where(x < 0.0, 1.0, where(x > 0.0, 1.0, 0.0)) for x in out)
        square = where(sum(beyond, 0.0) > 1.5, NO_PLACE, dot(out, out))
        return _Nearest(square, t, ON_FACE, 0.0, faces=beyond)

    def _edge(self, j: int, signs: Sequence[float]) -> _Nearest:
        """The nearest points of the segment and of an edge along axis j, on these sides of the others."""
        others, s, h = [k for k in range(3) if k != j], self.size[j], self.h
        corner = [0.0, 0.0, 0.0]
        for k, sign in zip(others, signs):
            corner[k] = sign * self.size[k]
        way = Vec(*corner) - self.p
        a, b, c = s * s, -s * h[j], self.half * self.half
        u, v = -s * way[j], h.dot(way)
        det = a * c - b * b
        parallel = absolute(det) < NO_LENGTH
        over = 1.0 / where(parallel, 1.0, det)
        x, t = (c * u - b * v) * over, (a * v - b * u) * over
        low, high = x < -1.0, x > 1.0
        side = where(high, 1.0, where(low, -1.0, 0.0))
        t = where(high, (v - b) / c, where(low, (v + b) / c, t))
        x = clip(x, -1.0, 1.0)
        past = where(t > 1.0, 1.0, where(t < -1.0, -1.0, 0.0))
        again = (u - past * b) / a
        side = where(past * past > 0.5, where(again > 1.0, 1.0, where(again < -1.0, -1.0, side)), side)
        x = where(past * past > 0.5, clip(again, -1.0, 1.0), x)
        t = clip(t, -1.0, 1.0)
        off = [y - t * z + (s * x if k == j else 0.0) for k, (y, z) in enumerate(zip(way, h))]
        upper: list[Scalar] = [0.0, 0.0, 0.0]
        for k, sign in zip(others, signs):
            upper[k] = 0.5 + 0.5 * sign
        upper[j] = where(side > 0.5, 1.0, 0.0)
        kind = where(side * side > 0.5, ON_CORNER, ON_EDGE)
        edge = tuple(1.0 if k == j else 0.0 for k in range(3))
        return _Nearest(where(parallel, NO_PLACE, dot(off, off)), t, kind, x, corner=tuple(upper), edge=edge)

    # -- the second place -------------------------------------------------------------------------------------

    def second(self, near: _Nearest) -> tuple[Scalar, Scalar]:
        """The step along the axis from the first place to the second, and 1.0 if there is a second, else 0.0."""
        h = self.h
        ahead = [where(x > 0.0, 1.0, 0.0) for x in h]
        apart = [(x - y) * (x - y) for x, y in zip(ahead, near.corner)]
        reach = [2.0 * s / maximum(absolute(x), NO_LENGTH) for s, x in zip(self.size, h)]
        found: list[tuple[Scalar, Scalar]] = [self._from_face(near)]
        found += [self._from_corner(near.t, apart, reach), self._from_edge(near, ahead, apart, reach)]
        more, here = found[0]
        for kind, (x, is_there) in zip((ON_CORNER, ON_EDGE), found[1:]):
            fits = near.kind > kind - 0.5
            more, here = where(fits, x, more), where(fits, is_there, here)
        return more, here

    def _from_face(self, near: _Nearest) -> tuple[Scalar, Scalar]:
        """From an end over a face along the axis while it is over the face; none from inside."""
        sign, end, h = -near.t, self.at(near.t), self.h
        more: Scalar = 2.0
        for k, s in enumerate(self.size):
            over = sign / where(absolute(h[k]) < NO_LENGTH, NO_LENGTH, h[k])
            for bound in (s, -s):
                way = (bound - end[k]) * over
                fits = where(way > 0.0, where(near.faces[k] > 0.5, 0.0, 1.0), 0.0)
                more = where(fits > 0.5, minimum(more, way), more)
        return sign * more, sum(near.faces, 0.0)

    def _from_corner(self, t: Scalar, apart: Sequence[Scalar], reach: Sequence[Scalar]) -> tuple[Scalar, Scalar]:
        """Along an edge or over a face, unless the axis points to the corner or away from it."""
        count = sum(apart, 0.0)
        one = count < 1.5
        sign = where(one, 1.0, -1.0)
        single = [where(one, x, 1.0 - x) for x in apart]  # the axis that differs from the other two
        lies = sum((x * y * y for x, y in zip(single, self.axis)), 0.0) > MIN_ALONG_EDGE
        along, over = 1.0 - sign * t, 1.0 + sign * t
        for x, y in zip(single, reach):
            along, over = where(x > 0.5, minimum(along, y), along), where(x > 0.5, over, minimum(over, y))
        turns = where(count < 0.5, 0.0, where(count > 2.5, 0.0, 1.0))
        return where(lies, sign * along, -sign * over), turns

    def _from_edge(
        self, near: _Nearest, ahead: Sequence[Scalar], apart: Sequence[Scalar], reach: Sequence[Scalar]
    ) -> tuple[Scalar, Scalar]:
        """From within an edge, across the face with which the axis has the lesser angle."""
        count = sum((x * (1.0 - e) for x, e in zip(apart, near.edge)), 0.0)
        out: tuple[Scalar, Scalar] = 0.0, 0.0
        for j in range(3):
            first, last = (j + 1) % 3, (j + 2) % 3
            steeper = absolute(self.axis[first]) > absolute(self.axis[last])

            def across(pick: Callable[[int], Scalar], steeper=steeper, first=first, last=last) -> Scalar:  # type: ignore[no-untyped-def]
                return where(steeper, pick(first), pick(last))

            differs = across(lambda k: apart[k])
            sign = where(differs > 0.5, 1.0, -1.0)
            more = minimum(1.0 - sign * near.t, across(lambda k: reach[k]))
            same = (ahead[j] - differs) * (ahead[j] - differs) < 0.5
            left = where(same, 1.0 - near.on, 1.0 + near.on)
            more = sign * where(absolute(self.axis[j]) < ACROSS, more, minimum(more, 0.5 * left * reach[j]))
            fits = near.edge[j] > 0.5
            out = (
                where(fits, more, out[0]),
                where(fits, where((count - 1.0) * (count - 1.0) < 0.25, 1.0, 0.0), out[1]),
            )
        return out
