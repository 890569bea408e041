"""Constraints f(q, t) = 0 for constrained dynamics: values that name links, points and joints of a robot.

Points are in link axes, results in world axes; reactions act on the robot. `sin`, `cos` and `sqrt` are for
the functions given to `function`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..errors import InputError, one_of
from ..io.given import callable_given as a_function
from ..io.given import number, whole
from ..mechanics.jet import Jet, jet
from ..mechanics.scalar import Scalar, Vector
from ..model import values
from ..model.description import JOINT_LOOPS
from ..model.rotations import unit
from .functions import PoseTracking, Traced, short
from .kinds import (
    Constraint,
    Contact,
    Distance,
    Gear,
    JointClosure,
    PointOnPlane,
    PointToPoint,
    RotationMatrix,
    Triple,
    Weld,
)

_checked = partial(values.checked, InputError)
Numbers = Any  # anything that holds numbers: tuples, lists, numpy arrays


MAX_FUNCTION_VALUES = 100_000  # values of one function
ContactFields = tuple[str, Triple, int, Triple | None, RotationMatrix | None]


# -- public constructors -----------------------------------------------------------------------------------


def contact(link: str, point: Numbers, rows: int = 3, anchor: Numbers = None, rotation: Numbers = None) -> Contact:
    """A contact, as constrained_dynamics takes it in `contacts`.

    rows: 3, the point is held, or 6, the link's orientation too. anchor (world position) and rotation (world
    from link) are what stabilisation returns to; without them only the velocity is stabilised.
    """
    return Contact(*contact_fields(link, point, rows, anchor, rotation))


def contact_fields(
    link: str, point: Numbers, rows: int = 3, anchor: Numbers = None, rotation: Numbers = None
) -> ContactFields:
    """The checked fields of a Contact, which are sooner made than it."""
    try:
        label, size = _foot_known(link, rows)
    except TypeError:  # they are not looked up
        label, size = _foot(link, rows)
    at = None if anchor is None else _checked(label, "anchor", values.vector, anchor)
    turn = None if rotation is None else _checked(label, "rotation", values.rotation, rotation)
    return link, _checked(label, "point", values.vector, point), size, at, turn


def _foot(link: str, rows: int) -> tuple[str, int]:
    """The words for a contact in messages, and its number of rows, checked."""
    label = f"contact of {_name('contact', 'link', link)!r}"
    return label, int(number(f"{label}: rows", rows, "3 (a point) or 6 (a foot)", lambda x: x in (3.0, 6.0)))


_foot_known: Callable[..., tuple[str, int]] = lru_cache(typed=True)(_foot)


def point_on_plane(
    link: str, point: Numbers, normal: Numbers, normal_rate: Numbers = (0.0, 0.0, 0.0), offset: float = 0.0,
    offset_rate: float = 0.0, offset_acceleration: float = 0.0,
) -> PointOnPlane:  # fmt: skip
    """A point of a link stays on the plane (n0 + n1 t) . p = d0 + d1 t + d2 t^2 / 2.

    The reaction is along the normal, in newtons if the normal is a unit vector.
    """
    label = f"point_on_plane of {_name('point_on_plane', 'link', link)!r}"
    n0, n1 = (_checked(label, "normal", values.vector, n) for n in (normal, normal_rate))
    if not any(n0) and not any(n1):
        raise InputError(f"{label}: the normal is zero; give a direction")
    d = [_checked(label, "offset", values.scalar, x) for x in (offset, offset_rate, offset_acceleration)]
    return PointOnPlane(link, _checked(label, "point", values.vector, point), (n0, n1), (d[0], d[1], d[2]))


def point_to_point(
    link_a: str, point_a: Numbers, link_b: str, point_b: Numbers, rows: Numbers = None
) -> PointToPoint:
    """Two points stay together: W (r_a - r_b) = 0, world axes; rows: W (k, 3) of any rank."""
    label = _between("point_to_point", "link", link_a, link_b)
    a, b = _two_points(label, link_a, point_a, link_b, point_b)
    if rows is None:
        return PointToPoint(link_a, a, link_b, b)
    W = tuple(
        _checked(label, f"rows[{i}]", values.vector, w)
        for i, w in enumerate(list_given(f"{label}: rows", rows, "(x, y, z)"))
    )
    if not W:
        raise InputError(f"{label}: rows is empty; give at least one row of three numbers")
    return PointToPoint(link_a, a, link_b, b, W)


def weld(
    link_a: str, point_a: Numbers, link_b: str, point_b: Numbers, rotation: Numbers = None, at: Numbers = None
) -> Weld:
    """Two links move as one: rows r_a - r_b, then omega_a - omega_b.

    rotation: the axes of b in those of a; or at: a configuration (nq,) in which they stand so. With neither the
    weld holds the orientation that each call begins with: of `simulate`, `assemble` and `hold` that of their first
    configuration, of calls about one state that state's own, so that the orientation is never off.
    """
    label = _between("weld", "link", link_a, link_b)
    a, b = _two_points(label, link_a, point_a, link_b, point_b)
    if rotation is not None and at is not None:
        raise InputError(f"{label}: rotation and at say the same thing; give one of them")
    turn = None if rotation is None else _checked(label, "rotation", values.rotation, rotation)
    return Weld(link_a, a, link_b, b, turn, None if at is None else _checked(label, "at", values.sequence, at))


def joint_closure(
    kind: str, link_a: str, point_a: Numbers, axis_a: Numbers, link_b: str, point_b: Numbers,
    axis_b: Numbers = None, rotation: Numbers = None,
) -> JointClosure:  # fmt: skip
    """A joint between two links that closes a loop: "revolute", "prismatic", "cylindrical" or "universal".

    axis_a, axis_b: its axis in either link (universal: the first in a, the second in b); by default alike.
    rotation: the axes of b in those of a, kept by a prismatic joint; of a universal one in any closed position,
    by default one in which its axes are perpendicular.
    Rows: r_a - r_b (prismatic, cylindrical: its two components across the axis), then what turns the axes apart,
    or of a prismatic joint omega_a - omega_b.
    """
    label = _between("joint_closure", "link", link_a, link_b)
    kind = one_of(f"{label}: the kind", kind, JOINT_LOOPS, InputError)
    a, b = _two_points(label, link_a, point_a, link_b, point_b)
    axes = []
    for name, axis in (("axis_a", axis_a), ("axis_b", axis_a if axis_b is None else axis_b)):
        direction = _checked(label, name, values.vector, axis)
        if not any(direction):
            raise InputError(f"{label}: {name} is zero; give a direction")
        axes.append(unit(direction))
    if kind == "prismatic" and rotation is None:
        raise InputError(
            f"{label}: a prismatic joint keeps an orientation; give rotation=, the axes of b in those of a"
        )
    turn = None if rotation is None else _checked(label, "rotation", values.rotation, rotation)
    return JointClosure(kind, link_a, a, axes[0], link_b, b, axes[1], turn)


def distance(link_a: str, point_a: Numbers, link_b: str, point_b: Numbers, length: float) -> Distance:
    """Two points keep their distance, a massless rod: |r_a - r_b| = length > 0, metres."""
    label = _between("distance", "link", link_a, link_b)
    a, b = _two_points(label, link_a, point_a, link_b, point_b)
    size = _checked(label, "length", values.scalar, length)
    if size <= 0.0:
        raise InputError(f"{label}: the length is {size:g}; it must be positive, use point_to_point for zero")
    return Distance(link_a, a, link_b, b, size)


def gear(joint_a: str, joint_b: str, ratio: float, offset: float = 0.0, higher: Numbers = ()) -> Gear:
    """q_a = offset + ratio q_b + higher[0] q_b^2 + higher[1] q_b^3 + ..., for two joints of one freedom."""
    label = _between("gear", "joint", joint_a, joint_b)
    if joint_a == joint_b:
        raise InputError(f"{label}: a joint cannot be geared to itself")
    return Gear(
        joint_a,
        joint_b,
        _checked(label, "ratio", values.scalar, ratio),
        _checked(label, "offset", values.scalar, offset),
        _checked(label, "higher", values.sequence, higher),
    )


def pose_tracking(
    link: str, program: Callable[[Scalar], Sequence[Vector]], point: Numbers = (0.0, 0.0, 0.0)
) -> PoseTracking:
    """A link's frame, moved to `point`, follows program(t), a 4x4 pose in the world over scalars; traced.

    Six rows at the level of the twist: the reaction is force and moment about the point, world axes.
    """
    label = f"pose_tracking of {_name('pose_tracking', 'link', link)!r}"
    a_function(f"{label}: program", program, "callable as program(t) that gives a 4x4 pose")
    tracking = PoseTracking(link, program, _checked(label, "point", values.vector, point))
    _refuse_deformation(tracking)
    return tracking


def _refuse_deformation(c: PoseTracking) -> None:
    """InputError where the pose at t = 0, if there is one, does not turn but stretch."""
    try:
        turn = [[float(jet(x).x) for x in row[:3]] for row in c.checked(Jet(0.0, 1.0))[:3]]
    except InputError:  # it may begin later; what cannot be traced is said at its first use
        return
    if all(math.isfinite(x) for row in turn for x in row):
        _checked(f"pose_tracking of {c.link!r}", "rotation at t = 0", values.rotation, turn)


def function(f: Callable[..., Vector], size: int) -> Traced:
    """f(pose, q, t) = 0, `size` numbers, traced and differentiated.

    pose(link) is the 4x4 pose (rows) of a link in the world, q the nq coordinates, t the time. Only
    + - * / ** and this module's (or NumPy's) sin, cos, sqrt are allowed: no branch on a value.
    """
    a_function("function: f", f, "callable as f(pose, q, t)")
    return Traced(f, whole("function: size", size, 1, MAX_FUNCTION_VALUES, ": the values that f gives, 1 or more"))


def _name(label: str, noun: str, given: object) -> str:
    name: str = _checked(label, noun, values.name, given)
    return name


def _between(kind: str, ends: str, a: object, b: object) -> str:
    """The words for a constraint between two links or joints in messages; both must be names."""
    return f"{kind} between {_name(kind, ends, a)!r} and {_name(kind, ends, b)!r}"


def _two_points(label: str, link_a: str, a: Numbers, link_b: str, b: Numbers) -> tuple[Triple, Triple]:
    """The points of two different links, checked."""
    if link_a == link_b:
        raise InputError(f"{label}: both ends are on the same link, which holds nothing")
    return _checked(label, "point_a", values.vector, a), _checked(label, "point_b", values.vector, b)


# -- words --------------------------------------------------------------------------------------------------


def list_given(title: str, given: Any, one: str) -> list[Any]:
    """The members of a list, None for an empty one, a single member for a list of it; else refused."""
    if given is None:
        return []
    if type(given) is list or type(given) is tuple:  # nearly always so
        return list(given)
    if isinstance(given, (Mapping, Constraint)):
        return [given]
    if not isinstance(given, (str, bytes)):
        with suppress(TypeError, NotImplementedError):  # a memoryview of several axes does not iterate
            return list(np.asarray(given) if isinstance(given, memoryview) else given)
    raise InputError(f"{title} is {short(given)}; it must be a list: {title}=[{one}, ...]")
