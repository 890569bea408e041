"""The line along which a link is cut: sections are its perpendicular planes, s metres from its start."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, shown
from ..io.given import Array, finite, number, whole
from ..io.reprs import result
from ..model.description import Model
from ..model.draft import model_of
from .masses import Distribution, named

LEAST_SPAN = 1e-6  # m: children nearer to the origin than this say nothing about a direction
SIDE_OFFSET = 1e-6  # of the span: how near to a joint its two sides are
MAX_SECTIONS = 1_000_000  # sections of a diagram
PARALLEL_AXIS = 1e-3  # of |axis x direction|


@result
class Span:
    """From `start` along x of `rotation` (3x3, columns: section axes x, y, z in link axes) over `length` metres.

    back: how far it also reaches behind the start, m, where s is negative. held: s where the parent holds the
    link. Sections beyond it carry what is outboard; those before it carry only the piece of the link that stands
    back over its joint.
    """

    start: Array
    rotation: Array
    length: float
    held: float = 0.0
    back: float = 0.0

    @staticmethod
    def between(start: ArrayLike, end: ArrayLike, y: ArrayLike | None = None, held: float = 0.0) -> Span:
        """From a point to a point of the link. y: about where the section's y points, by default along the link
        axis that is the most across."""
        a, b = finite("start of a span", start, (3,)), finite("end of a span", end, (3,))
        length = float(np.linalg.norm(b - a))
        if length <= LEAST_SPAN:
            raise InputError(f"a span goes from one point to another, not from {shown(start)} to {shown(end)}")
        return Span(a, _axes(b - a, y), length, number("held of a span", held))

    @property
    def direction(self) -> Array:
        """Unit vector outboard, in link axes."""
        return np.asarray(self.rotation[:, 0])

    def points(self, s: Array) -> Array:
        """Section centres (k, 3) in link axes."""
        return np.asarray(self.start + s[:, None] * self.direction)

    def along(self, x: ArrayLike) -> float:
        """s of a point of the link."""
        return float((finite("a point of a span", x, (3,)) - self.start) @ self.direction)

    def sections(self, link: str, s: ArrayLike) -> Array:
        """s as an array (k,); InputError where one is outside the span."""
        given = np.atleast_1d(finite(f"sections of link {link!r}: s", s, error=InputError))
        if given.ndim != 1:
            raise InputError(f"sections of link {link!r}: s has shape {given.shape}; give a number or a list")
        low, high = 0.0 - self.back, self.length
        edge = 1e-9 * (high - low)
        for x in given[(given < low - edge) | (given > high + edge)]:
            raise InputError(
                f"the section s = {x:g} m is outside link {link!r}, whose span goes from {low:.6g} to {high:.6g} "
                "m; choose s within it, or give another span"
            )
        return np.asarray(np.clip(given, low, high))


def span_of(model: Model, link: str, mass: Distribution) -> Span:
    """The span of a link for which none is given.

    Towards the middle of its children's joints; where they are at its own, or it has none, along the link axis
    in which its mass reaches furthest: away from the joint on a last link, towards it on others. It covers the
    mass and all joints; s is 0 at the link's own joint. There the parent holds the link, or at the rear end where
    the joint's axis is along the span (a shaft is held from its end).
    """
    link = named(model, link).name
    if not isinstance(mass, Distribution):
        raise InputError(f"span_of: mass is {shown(mass)}; give what drevo.loads.distribution makes")
    joints = [np.array(j.origin) for j in model_of(model, "a span").joints if j.parent == link]
    joint, axis = _own_joint(model, link)
    middle = np.mean(joints, axis=0) - joint if joints else np.zeros(3)
    direction = middle if np.linalg.norm(middle) > LEAST_SPAN else _longest(mass, joint, bool(joints))
    if np.linalg.norm(direction) <= LEAST_SPAN:
        raise InputError(
            f"link {link!r} has no length: no mass and no joint away from its origin; give span=Span.between(...)"
        )
    R = _axes(direction, None)
    d = R[:, 0]
    held = float(joint @ d)
    ends = [held, *(float(p @ d) for p in joints), *mass.reach(d)]
    low, high = min(ends), max(ends)
    shaft = axis is not None and np.linalg.norm(np.cross(axis, d)) < PARALLEL_AXIS
    return Span(joint, R, high - held, low - held if shaft else 0.0, held - low)


def _own_joint(model: Model, link: str) -> tuple[Array, Array | None]:
    """The point at which the parent holds a link, and the joint's axis where it moves; link axes."""
    joint = next((j for j in model.joints if j.child == link), None)
    if joint is None or joint.kind == "fixed":
        return np.zeros(3), None
    back = np.array(joint.child_rotation).T
    return 0.0 - back @ joint.child_origin, back @ joint.axis


def _longest(mass: Distribution, joint: Array, carries: bool) -> Array:
    """Along the link axis in which the mass reaches furthest, away from its joint or, of a carrier, to it."""
    reaches = [max(mass.reach(sign * e)) - sign * float(joint @ e) for e in np.eye(3) for sign in (1.0, -1.0)]
    k = int(np.argmax(reaches))
    if reaches[k] <= LEAST_SPAN:
        return np.zeros(3)
    away = np.eye(3)[k // 2] * (1.0 if k % 2 == 0 else -1.0)
    return np.asarray(-away if carries else away)


def _axes(direction: Array, y: ArrayLike | None) -> Array:
    x = direction / np.linalg.norm(direction)
    up = np.eye(3)[int(np.argmin(np.abs(x)))] if y is None else finite("y of a span", y, (3,))
    across = up - x * (x @ up)
    if not np.linalg.norm(across) > 1e-9 * np.linalg.norm(up):
        raise InputError(f"y of a span is {shown(y)}; it must be a direction across the span")
    side = across / np.linalg.norm(across)
    return np.stack([x, side, np.cross(x, side)], axis=1)


def spread(model: Model, link: str, span: Span, count: int) -> Array:
    """Evenly spread sections from end to end, and both sides of every joint between: there the loads jump."""
    whole("sections", count, 2, MAX_SECTIONS)
    places = [span.held, *(span.along(j.origin) for j in model.joints if j.parent == link)]
    step = SIDE_OFFSET * (span.length + span.back)
    sides = [s for x in places if step - span.back < x < span.length - step for s in (x - step, x, x + step)]
    return np.unique([*np.linspace(-span.back, span.length, count), *sides])


def chosen(model: Model, link: str, mass: Distribution, span: Span | Sequence[ArrayLike] | None) -> Span:
    """The stated span, also as a pair of points, or the usual one."""
    if span is None:
        return span_of(model, link, mass)
    if isinstance(span, Span):
        return span
    if not isinstance(span, (tuple, list, np.ndarray)) or not np.iterable(span) or len(span) != 2:
        raise InputError(f"span is {shown(span)}; give a Span or two points, from and to")
    return Span.between(span[0], span[1])
