"""Subproblems of Paden and Kahan, over any scalar: the angles that bring a point, a distance, a height about.

Angles are sines and cosines, so that one subproblem hands on to the next without a trigonometric function. Where
there is no solution the nearest one is given, twice: who asks compares afterwards (least squares, as in Elias and
Wen 2022, "IK-Geo: Unified robot inverse kinematics using subproblem decomposition"). Differences of squares are
written as products, so that arms that are straight, folded or singular lose no digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...mechanics.scalar import Scalar, atan2, clip, is_zero, maximum, sqrt, where
from ...mechanics.spatial import Vec

NO_RADIUS = 1e-75  # m or m^2: a vector this short has no direction, as its square is near the least number
STRETCHED_SHARE = (
    1e-15  # of the longest square's square: an arm nearer to straight or folded is so but for rounding
)
FREE_RADIUS = 1e-12  # m, or of a unit vector: a shorter one is what rounding has left


class JointAngle(NamedTuple):
    """An angle by its sine and cosine."""

    sin: Scalar
    cos: Scalar

    @property
    def back(self) -> JointAngle:
        """The opposite turn."""
        return JointAngle(-self.sin, self.cos)

    def then(self, o: JointAngle) -> JointAngle:
        """The sum of two angles."""
        return JointAngle(self.sin * o.cos + self.cos * o.sin, self.cos * o.cos - self.sin * o.sin)

    @property
    def angle(self) -> Scalar:
        """From -pi to pi, rad."""
        return atan2(self.sin, self.cos)


ZERO_ANGLE, STRAIGHT_ANGLE = JointAngle(0.0, 1.0), JointAngle(0.0, -1.0)


def rotated_about(h: Vec, turn: JointAngle, v: Vec) -> Vec:
    """v, turned about the unit axis h (Rodrigues): what is along h stays in place."""
    along: Vec = h * h.dot(v)
    moved: Vec = along + (v - along) * turn.cos + h.cross(v) * turn.sin
    return moved


def across_axis(h: Vec, v: Vec) -> Vec:
    """The part of v that is perpendicular to the unit axis h."""
    along: Vec = h * h.dot(v)
    return v - along


def direction(y: Scalar, x: Scalar) -> JointAngle:
    """The angle of the vector (x, y); 0 where it has no length."""
    return _over(y, x, sqrt(x * x + y * y))


def _over(y: Scalar, x: Scalar, radius: Scalar) -> JointAngle:
    some = radius > NO_RADIUS
    over = 1.0 / where(some, radius, 1.0)
    return JointAngle(y * over, where(some, x, 1.0) * over)


def subproblem1(h: Vec, p: Vec, q: Vec) -> JointAngle:
    """The turn about h that brings p nearest to q: R(h) p = q."""
    return direction(h.cross(p).dot(q), across_axis(h, p).dot(q))


def subproblem2(h: Vec, p: Vec, k: Vec, q: Vec) -> list[tuple[JointAngle, JointAngle]]:
    """The turns about h and k that bring p and q together: R(h) p = R(k) q, of equal lengths."""
    return [(t, subproblem1(k, q, rotated_about(h, t, p))) for t in subproblem4(h, p, k, k.dot(q))]


def subproblem3(h: Vec, p: Vec, q: Vec, square: Scalar) -> list[JointAngle]:
    """The turns about h after which |q + R(h) p|^2, across h, is a given square."""
    p, q = across_axis(h, p), across_axis(h, q)
    a, b = sqrt(p.dot(p)), sqrt(q.dot(q))
    longest, shortest = (a + b) * (a + b), (a - b) * (a - b)
    level = 0.5 * (square - 0.5 * (longest + shortest))
    gap = 0.25 * ((longest - square) * (square - shortest))
    gap = where(gap > STRETCHED_SHARE * (longest * longest), gap, 0.0)
    return _level(h.cross(p).dot(q), p.dot(q), level, a * b, gap)


def subproblem4(h: Vec, p: Vec, k: Vec, height: Scalar, free: Sequence[JointAngle] = ()) -> list[JointAngle]:
    """The turns about h after which p has a given height along k: k . R(h) p = height.

    free: two turns that are taken where p is along h, so that any turn is a solution or none.
    """
    y, x = k.dot(h.cross(p)), k.dot(across_axis(h, p))
    level, radius = height - h.dot(p) * k.dot(h), sqrt(x * x + y * y)
    turns = _level(y, x, level, radius, (radius - level) * (radius + level))
    if not free:
        return turns
    long = radius > FREE_RADIUS
    return [JointAngle(where(long, t.sin, o.sin), where(long, t.cos, o.cos)) for t, o in zip(turns, free)]


def _level(y: Scalar, x: Scalar, level: Scalar, radius: Scalar, gap: Scalar) -> list[JointAngle]:
    """The angles t with y sin t + x cos t = level; radius of (x, y); gap: radius^2 - level^2."""
    to = _over(y, x, radius)
    if is_zero(level):
        return [JointAngle(to.cos, -to.sin), JointAngle(-to.cos, to.sin)]
    level = clip(level, -radius, radius)
    apart = _over(sqrt(maximum(gap, 0.0)), level, radius)
    return [to.then(apart), to.then(apart.back)]
