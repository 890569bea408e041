"""The proximity of two solids that may touch, and the functions that every rule of `colliders` is made of."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..scalar import Scalar, Vector, sqrt, where
from ..spatial import Mat, Vec

NO_PLACE = 1e10  # m: the distance of a place that is none
NO_LENGTH = 1e-15  # of lengths and determinants: below it a direction is chosen
X_AXIS = Vec(1.0, 0.0, 0.0)


class PlacedGeom(NamedTuple):
    """A geom in the world: R turns its axes into the world's. size as in `model.contact.Geom`."""

    kind: str
    size: tuple[Scalar, ...]
    R: Mat
    p: Vec
    points: tuple[Vec, ...] = ()  # of a hull, in its axes

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
