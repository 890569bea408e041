"""The shortest way of a tendon around a sphere or a cylinder, or through it: where it meets the surface, and its
length on it.

The way between two points lies in a plane through the centre of a sphere; about a cylinder it is one around a
circle as seen along the axis, and rises evenly. It wraps where the straight way would pass through; with a side
site round the other side, where the centre is within the triangle of both points and that site, as in MuJoCo 4.
With a side site inside it has to pass through: where the straight way does not, it touches the surface in a point.

Descriptions need these for numbers and equations for nodes of a graph: `Scalars` has the functions of either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import atan2, dist, pi, sqrt
from typing import Any, NamedTuple

from .vectors import Vec3

TINY = 1e-15  # of a length, or its square
TOUCH_STEPS = 12  # of Newton's method for the point of a circle where a way through it touches


@dataclass(frozen=True, slots=True)
class TendonWrap:
    """A sphere, or a long cylinder about an axis, around which a tendon lies where the straight way would pass
    through, in the frame of a link; with a side site round the other side, where the centre is between both points
    and the site. With a side site nearer to the centre than the radius it has to pass through."""

    link: str
    centre: Vec3
    radius: float
    axis: Vec3 | None = None
    side: Vec3 | None = None

    @property
    def within(self) -> bool:
        """The side site is inside."""
        return self.side is not None and dist(self.side, self.centre) < self.radius


@dataclass(frozen=True, slots=True)
class TendonSegment:
    """A part of a tendon between points of two links, straight but for what it lies around; behind a pulley its
    share is 1 / divisor."""

    link_a: str
    point_a: Vec3
    link_b: str
    point_b: Vec3
    share: float = 1.0
    around: TendonWrap | None = None

    @property
    def links(self) -> tuple[str, ...]:
        """The links that it names."""
        return (self.link_a, self.link_b, *((self.around.link,) if self.around else ()))


class Scalars(NamedTuple):
    """Functions of numbers, or of what stands for numbers."""

    sqrt: Callable[[Any], Any] = sqrt
    atan2: Callable[[Any, Any], Any] = atan2
    where: Callable[[Any, Any, Any], Any] = lambda condition, a, b: a if condition else b


class Wrapping(NamedTuple):
    """wraps: 1 or 0; first, last: where it meets the surface; arc: its length between them."""

    wraps: Any
    first: list[Any]
    last: list[Any]
    arc: Any


Components = Sequence[Any]


def wrapping(a: Components, b: Components, around: TendonWrap, by: Scalars) -> Wrapping:
    """The way from a to b, seen from the centre along the axes of the link."""
    axis, radius = around.axis, around.radius
    x, y = _across(axis) if axis else _plane(a, b, by)
    ends, aside = [(_dot(x, p), _dot(y, p)) for p in (a, b)], None
    if around.side:
        side = [u - v for u, v in zip(around.side, around.centre)]
        aside = _dot(x, side), _dot(y, side)
    if around.within:
        wraps, touch, arc = _through_circle(ends, radius, by)
    else:
        wraps, touch, arc = _around_circle(ends, radius, aside, by)
    first, last = ([u * p[0] + v * p[1] for u, v in zip(x, y)] for p in touch)
    if axis:
        low, rise = _dot(a, axis), _dot(b, axis) - _dot(a, axis)
        before, after = (by.sqrt(_square(p, t)) for p, t in zip(ends, touch))
        over = rise / _least(before + arc + after, by)
        first = [u + z * (low + over * before) for u, z in zip(first, axis)]
        last = [u + z * (low + over * (before + arc)) for u, z in zip(last, axis)]
        arc = arc * by.sqrt(1.0 + over * over)
    return Wrapping(wraps, first, last, arc)


def _dot(a: Components, b: Components) -> Any:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _cross(a: Components, b: Components) -> list[Any]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def _square(p: Components, r: Components) -> Any:
    return (p[0] - r[0]) * (p[0] - r[0]) + (p[1] - r[1]) * (p[1] - r[1])


def _least(x: Any, by: Scalars) -> Any:
    """x, but no less than what may be divided by."""
    return by.where(x > TINY, x, TINY)


def _across(z: Components) -> tuple[list[Any], list[Any]]:
    """Two axes across a constant one."""
    least = min(range(3), key=lambda k: abs(z[k]))
    x = _cross(z, [float(k == least) for k in range(3)])
    size = sqrt(_dot(x, x))
    x = [u / size for u in x]
    return x, _cross(z, x)


def _plane(a: Components, b: Components, by: Scalars) -> tuple[list[Any], list[Any]]:
    """Two axes of the plane of both points and the centre; of some plane where they are in line."""
    size = _least(by.sqrt(_dot(a, a)), by)
    x, n = [u / size for u in a], _cross(a, b)
    some = [by.where(abs(x[2]) < 0.9, u, v) for u, v in zip((0.0, 0.0, 1.0), (1.0, 0.0, 0.0))]
    off = _dot(n, n) > TINY * TINY
    n = [by.where(off, u, v) for u, v in zip(n, _cross(x, some))]
    size = by.sqrt(_dot(n, n))
    return x, _cross([u / size for u in n], x)


def _around_circle(
    ends: Sequence[Components], radius: float, aside: Components | None, by: Scalars
) -> tuple[Any, Any, Any]:
    """1 or 0, both tangents' points, the arc; about the origin."""
    p, q = ends
    outside, far, passes = _straight_way(p, q, radius * radius, by)
    turn = by.where(p[0] * q[1] - p[1] * q[0] > 0.0, 1.0, -1.0)  # the sense of the way around the centre
    if aside:
        behind = _opposite(p, q, aside, by) > 0.0
        turn, passes = by.where(behind, -turn, turn), by.where(behind, 1.0, passes)
    first, last = (_tangent(r, z, radius, s, by) for r, z, s in ((p, far[0], -turn), (q, far[1], turn)))
    wraps = by.where(_crossing(p, first, q, last, by) > 0.0, 0.0, outside * passes)
    angle = turn * by.atan2(first[0] * last[1] - first[1] * last[0], first[0] * last[0] + first[1] * last[1])
    return wraps, (first, last), radius * by.where(angle < 0.0, angle + 2.0 * pi, angle)


def _straight_way(p: Components, q: Components, square: float, by: Scalars) -> tuple[Any, list[Any], Any]:
    """1 where both ends are outside a circle of a squared radius, else 0; squares of their tangents' lengths; 1
    where the straight way passes through, else 0."""
    far = [x * x + y * y - square for x, y in (p, q)]
    outside = by.where(far[0] < 0.0, 0.0, by.where(far[1] < 0.0, 0.0, 1.0))
    dx, dy = q[0] - p[0], q[1] - p[1]
    share = -(dx * p[0] + dy * p[1]) / _least(dx * dx + dy * dy, by)
    share = by.where(share < 0.0, 0.0, by.where(share > 1.0, 1.0, share))
    x, y = p[0] + share * dx, p[1] + share * dy
    return outside, far, by.where(x * x + y * y > square, 0.0, 1.0)


def _through_circle(ends: Sequence[Components], radius: float, by: Scalars) -> tuple[Any, Any, Any]:
    """1 or 0, the point of touch twice, no arc: of a way that has to pass through.

    Both parts meet the radius there at one angle: y, the tangent of how far it is from the middle of both ends, is
    the root next to 0 of

        2 y / sqrt(1 + y^2) = P + Q y,   P = (B - A) sin(G / 2),   Q = (A + B) cos(G / 2),

    A, B: the radius over how far the ends are, G the angle between them. From 0 Newton's steps rise to it.
    """
    outside, _, passes = _straight_way(ends[0], ends[1], radius * radius, by)
    over = [by.where(outside > 0.0, 1.0 / _least(by.sqrt(x * x + y * y), by), 0.5 / radius) for x, y in ends]
    (ux, uy), (vx, vy) = ((x * z, y * z) for (x, y), z in zip(ends, over))
    cosine, sine = (
        0.5 * by.sqrt(_least((vx + z * ux) * (vx + z * ux) + (vy + z * uy) * (vy + z * uy), by))
        for z in (1.0, -1.0)
    )
    P, Q, y = radius * (over[1] - over[0]) * sine, radius * (over[0] + over[1]) * cosine, 0.0
    for _ in range(TOUCH_STEPS):
        r = 1.0 / by.sqrt(1.0 + y * y)
        slope = 2.0 * (r * r * r) - Q
        y = y + (P + (Q - 2.0 * r) * y) / by.where(slope > TINY, slope, 1.0)
    r = radius / by.sqrt(1.0 + y * y)
    along, aside = 0.5 * r / cosine, 0.5 * r * y / sine
    touch = (ux + vx) * along + (vx - ux) * aside, (uy + vy) * along + (vy - uy) * aside
    return outside * (1.0 - passes), (touch, touch), 0.0


def _opposite(p: Components, q: Components, aside: Components, by: Scalars) -> Any:
    """1 where the centre is within the triangle of both points and the side site, else 0."""
    size = p[0] * q[1] - p[1] * q[0]
    s, t = aside[0] * q[1] - aside[1] * q[0], p[0] * aside[1] - p[1] * aside[0]
    return by.where(s * size < 0.0, by.where(t * size < 0.0, 1.0, 0.0), 0.0)


def _tangent(p: Components, far: Any, radius: float, sign: Any, by: Scalars) -> Components:
    """The point in which a tangent from p meets the circle; far: the square of its length."""
    over = radius / _least(far + radius * radius, by)
    turn = by.sqrt(by.where(far > 0.0, far, 0.0)) * sign
    return (p[0] * radius + p[1] * turn) * over, (p[1] * radius - p[0] * turn) * over


def _crossing(a: Components, b: Components, c: Components, d: Components, by: Scalars) -> Any:
    """1 where the ways from a to b and from c to d cross, else 0."""
    (ux, uy), (vx, vy), (wx, wy) = ((r[0] - p[0], r[1] - p[1]) for p, r in ((a, b), (c, d), (c, a)))
    size = vy * ux - vx * uy
    aligned = abs(size) < TINY
    over = 1.0 / by.where(aligned, 1.0, size)
    s, t = (vx * wy - vy * wx) * over, (ux * wy - uy * wx) * over
    inside = [by.where(z < 0.0, 0.0, by.where(z > 1.0, 0.0, 1.0)) for z in (s, t)]
    return by.where(aligned, 0.0, inside[0] * inside[1])
