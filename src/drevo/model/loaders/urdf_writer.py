"""A Model as URDF that urdfdom reads; armature, springs, gravity and contact points in words of Drevo's own."""

from __future__ import annotations

from ..carriers import with_carriers, with_chains
from ..description import (
    IDENTITY,
    ORIGIN,
    SHAPE_SIZES,
    Inertial,
    Joint,
    JointDynamics,
    Limit,
    Link,
    Mat3,
    Model,
    Shape,
    Vec3,
)
from ..rotations import to_rpy
from ..values import BOUND_THAT_IS_NONE
from .primitives import NAMESPACE, own_elements
from .writing import SHARED_JOINT_KINDS, Written, begin, element

URDF_WRITTEN_KINDS = {**SHARED_JOINT_KINDS, "free": "floating"}


def to_urdf(robot: Model) -> Written:
    """The robot as URDF has it: screws and joints of two or three coordinates as chains of plain ones."""
    model = with_carriers(with_chains(robot, (*URDF_WRITTEN_KINDS, "spherical")))
    out = begin(robot, model, URDF_WRITTEN_KINDS)
    drevo_elements = own_elements(model, gravity=True)
    coupled = {name for joint in model.joints if joint.mimic for name in (joint.name, joint.mimic.joint)}
    out.lines = element(
        "robot",
        *map(_link, model.links),
        *(_joint(joint, joint.name in coupled) for joint in model.joints),
        drevo_elements,
        name=model.name,
        **({"xmlns:drevo": NAMESPACE} if drevo_elements else {}),
    )
    return out


def _origin(place: Vec3, turn: Mat3) -> list[str]:
    return element("origin", xyz=place, rpy=ORIGIN if turn == IDENTITY else to_rpy(turn))


def _link(link: Link) -> list[str]:
    return element(
        "link", _inertial(link.inertial) if link.inertial else (), *map(_shape, link.shapes), name=link.name
    )


def _inertial(body: Inertial) -> list[str]:
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = body.tensor
    return element(
        "inertial",
        _origin(body.com, IDENTITY),
        element("mass", value=body.mass),
        element("inertia", ixx=xx, ixy=xy, ixz=xz, iyy=yy, iyz=yz, izz=zz),
    )


def _shape(shape: Shape) -> list[str]:
    if shape.kind == "mesh":
        solid = element("mesh", filename=shape.uri, scale=shape.size)
    elif shape.kind == "box":
        solid = element("box", size=shape.size)
    else:
        solid = element(shape.kind, **dict(zip(SHAPE_SIZES[shape.kind], shape.size, strict=True)))
    return element(shape.role, _origin(shape.origin, shape.rotation), element("geometry", solid))


def _joint(joint: Joint, coupled: bool) -> list[str]:
    """The joint; one without bounds is continuous, unless it follows or is followed: Pinocchio has no such."""
    mimic, limit = joint.mimic, joint.limit or Limit()
    kind = URDF_WRITTEN_KINDS.get(joint.kind, joint.kind)
    if kind in ("revolute", "continuous"):
        kind = "continuous" if (limit.lower, limit.upper) == (None, None) and not coupled else "revolute"
    return element(
        "joint",
        _origin(joint.origin, joint.rotation),
        element("parent", link=joint.parent),
        element("child", link=joint.child),
        element("axis", xyz=joint.axis) if joint.kind not in ("fixed", "free", "spherical") else (),
        _limit(limit, kind) if joint.limit or kind in ("revolute", "prismatic") else (),
        _dynamics(joint.dynamics) if joint.dynamics else (),
        element("mimic", joint=mimic.joint, multiplier=mimic.multiplier, offset=mimic.offset) if mimic else (),
        name=joint.name,
        type=kind,
    )


def _dynamics(d: JointDynamics) -> list[str]:
    """urdfdom wants damping or friction, and passes over the rest."""
    values = {"friction": d.friction, "armature": d.armature}
    values |= {"spring_stiffness": d.stiffness, "spring_reference": d.reference}
    return element("dynamics", damping=d.damping, **{name: value or None for name, value in values.items()})


def _limit(limit: Limit, kind: str) -> list[str]:
    """urdfdom wants effort and velocity of every limit, and takes bounds that are not there for 0."""

    def bound(value: float | None, usual: float = BOUND_THAT_IS_NONE) -> float:
        return usual if value is None else value

    bounds = {"effort": bound(limit.effort), "velocity": bound(limit.velocity)}
    if kind in ("revolute", "prismatic"):
        bounds = {"lower": bound(limit.lower, -BOUND_THAT_IS_NONE), "upper": bound(limit.upper), **bounds}
    return element("limit", **bounds)
