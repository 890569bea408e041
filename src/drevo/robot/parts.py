"""The parts of a body and its joint, as given to a builder: each checked, as the model holds it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ..errors import ModelError, one_of, shown
from ..io.xml import ANY, MAX_MASS
from ..model import values
from ..model.description import (
    IDENTITY,
    JOINT_SIZES,
    ORIGIN,
    Inertial,
    JointDynamics,
    Limit,
    Link,
    Mat3,
    Mimic,
    Shape,
    TendonJoint,
    Vec3,
)
from ..model.messages import did_you_mean
from ..model.rotations import from_rpy, shift_tensor
from ..model.validation import KIND_NAMES

_checked = partial(values.checked, ModelError)
Numbers = Any  # anything that holds numbers: tuples, lists, numpy arrays
ZERO: Mat3 = (ORIGIN, ORIGIN, ORIGIN)


def given_shares(who: str, joints: Mapping[str, float] | None) -> tuple[TendonJoint, ...]:
    """The coefficient of each joint in the length of a tendon, checked."""
    if joints is not None and not isinstance(joints, Mapping):
        raise ModelError(f"{who}: joints is a mapping of names to metres a radian or metre, not {shown(joints)}")
    given = (joints or {}).items()
    return tuple(
        TendonJoint(_checked(who, "joint", values.name, j), _checked(who, "coefficient", values.scalar, c))
        for j, c in given
    )


def check_shape(who: str, shape: object) -> None:
    if not isinstance(shape, Shape):
        raise ModelError(f"{who}: a shape is a drevo.model.description.Shape, not {shown(shape)}")
    _checked(who, "size of a shape", values.sequence, shape.size)
    _checked(who, "origin of a shape", values.vector, shape.origin)
    _checked(who, "rotation of a shape", values.rotation, shape.rotation)


def given_kind(who: str, kind: str) -> str:
    if not isinstance(kind, str) or kind not in KIND_NAMES:
        raise ModelError(
            f"{who}: the joint is of unknown type {kind!r}{did_you_mean(str(kind), KIND_NAMES)}; known are "
            f"{', '.join(JOINT_SIZES)}"
        )
    return KIND_NAMES[kind]


def _inertial(who: str, mass: float, com: Numbers, inertia: Numbers, inertia_at: str) -> Inertial | None:
    one_of(f"{who}: inertia_at", inertia_at, ("com", "joint"), ModelError)
    m = _checked(who, "mass", lambda value: values.scalar(value, MAX_MASS), mass)
    c = _checked(who, "com", values.vector, com)
    tensor = ZERO if inertia is None else _checked(who, "inertia", values.tensor, inertia)
    if inertia_at == "joint" and inertia is not None:
        tensor = shift_tensor(tensor, -m, c)
    return Inertial(m, c, tensor) if m or any(map(any, tensor)) else None


def given_link(who: str, name: str, *given: Any) -> Link:
    """mass, com, inertia, inertia_at, gravcomp."""
    *body, gravcomp = given
    part = _checked(who, "gravcomp", lambda x: values.scalar(x, ANY), gravcomp)
    return Link(name, _inertial(who, *body), gravcomp=part)


def given_rotation(who: str, rotation: Numbers, rpy: Numbers) -> Mat3:
    if rotation is not None and rpy is not None:
        raise ModelError(f"{who}: both rotation and rpy are given; give one of them")
    if rpy is not None:
        angles: Vec3 = _checked(who, "rpy", values.vector, rpy)
        return from_rpy(*angles) if any(angles) else IDENTITY
    return IDENTITY if rotation is None else _checked(who, "rotation", values.rotation, rotation)


def given_placement(
    who: str, origin: Numbers, rotation: Numbers, rpy: Numbers, axis: Numbers, axis2: Numbers
) -> tuple[Vec3, Mat3, Vec3, Vec3 | None]:
    return (
        _checked(who, "origin", values.vector, origin),
        given_rotation(who, rotation, rpy),
        _checked(who, "axis", values.vector, axis),
        None if axis2 is None else _checked(who, "axis2", values.vector, axis2),
    )


def given_lead(who: str, kind: str, lead: float | None) -> float:
    if KIND_NAMES[kind] != "helical":
        return 0.0
    if lead is None:
        raise ModelError(
            f"{who}: a helical joint needs its lead, the advance in metres per revolution: give lead=..."
        )
    return _checked(who, "lead", values.scalar, lead)


def given_limit(who: str, limit: Limit | Sequence[float] | None) -> Limit | None:
    """Bounds; an infinite one is none."""
    if limit is None:
        return None
    if isinstance(limit, Limit):
        return Limit(*(_bound(who, x) for x in (limit.lower, limit.upper, limit.velocity, limit.effort)))
    bounds = limit.tolist() if hasattr(limit, "tolist") else limit
    if not isinstance(bounds, (tuple, list)):
        raise ModelError(f"{who}: limit {shown(limit)} is not a list of numbers; give (lower, upper), or a Limit")
    if len(bounds) != 2:
        raise ModelError(f"{who}: limit has {len(bounds)} numbers; give (lower, upper), or a Limit")
    return Limit(_bound(who, bounds[0]), _bound(who, bounds[1]))


def _bound(who: str, value: object) -> float | None:
    if value is None or (isinstance(value, float) and math.isinf(value)):
        return None
    return _checked(who, "limit", lambda x: values.scalar(x, ANY), value)


def given_dynamics(who: str, whole: JointDynamics | None, rotor: Any, *given: float) -> JointDynamics | None:
    """The passive dynamics of the joint and its rotor, checked; None for nothing."""
    names = ("armature", "damping", "friction", "stiffness", "reference")
    parts: dict[str, Any] = {n: _checked(who, n, lambda x: values.scalar(x, ANY), x) for n, x in zip(names, given)}
    if rotor is not None:
        parts |= _rotor(who, rotor)
    if whole is not None and any(parts.values()):
        raise ModelError(f"{who}: both dynamics and {', '.join(n for n in parts if parts[n])} are given; give one")
    if whole is not None and not isinstance(whole, JointDynamics):
        raise ModelError(f"{who}: dynamics is a drevo.model.description.JointDynamics, not {shown(whole)}")
    found = JointDynamics(**parts) if whole is None else whole
    return None if found == JointDynamics() else found


def _rotor(who: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
        raise ModelError(f"{who}: rotor is (inertia, gear ratio), or with an axis besides, not {shown(given)}")
    numbers = [_checked(who, "rotor", lambda x: values.scalar(x, ANY), x) for x in given[:2]]
    axis = _checked(who, "the rotor's axis", values.vector, given[2]) if len(given) == 3 else None
    return {"rotor": numbers[0], "gear": numbers[1], "rotor_axis": axis}


def given_mimic(who: str, mimic: Mimic | Sequence[Any] | str | None) -> Mimic | None:
    if mimic is None or isinstance(mimic, Mimic):
        return mimic
    given = (mimic,) if isinstance(mimic, str) else tuple(mimic) if isinstance(mimic, (tuple, list)) else ()
    joint, *ratio = given or ("",)
    if not given or len(ratio) > 2:
        raise ModelError(f"{who}: mimic is a joint's name, or (name, multiplier, offset)")
    numbers = [_checked(who, "mimic", values.scalar, part) for part in ratio]
    return Mimic(_checked(who, "mimic", values.name, joint), *numbers)
