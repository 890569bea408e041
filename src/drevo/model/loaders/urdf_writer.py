"""A Model as URDF text. Joint types beyond the standard are written as loaders.urdf reads them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

from drevo.errors import DrevoWarning, ModelError
from drevo.model.carriers import with_carriers
from drevo.model.description import (
    IDENTITY,
    ORIGIN,
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
from drevo.model.draft import GRAVITY, Draft
from drevo.model.rotations import to_rpy
from drevo.model.validation import joints_depth_first

_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_TYPES = {"free": "floating"}
_SIZES = {"cylinder": ("radius", "length"), "capsule": ("radius", "length"), "sphere": ("radius",)}


def to_urdf(model: Model) -> str:
    """URDF text of the model.

    What URDF cannot hold, and what `load` can be told, is left out with one DrevoWarning: gravity, contact points,
    an order of q that is not depth first. A model with loops is refused: without them it would be another robot.
    """
    if model.closed:
        raise ModelError(f"robot {model.name!r} has closed loops, which URDF cannot hold; save it as JSON or TOML")
    for name in (model.name, *(link.name for link in model.links), *(joint.name for joint in model.joints)):
        if _NOT_XML.search(name):
            raise ModelError(f"the name {name!r} has a character that XML cannot hold; save it as JSON or TOML")
    model = with_carriers(model)
    if lost := list(_lost(model)):
        warnings.warn(f"robot {model.name!r} as URDF: {'; '.join(lost)}", DrevoWarning, stacklevel=4)
    lines = [f"<robot{_attributes(name=model.name)}>"]
    for link in model.links:
        lines += [f"  {line}" for line in _link(link)]
    for joint in model.joints:
        lines += [f"  {line}" for line in _joint(joint)]
    return "\n".join([*lines, "</robot>", ""])


def _lost(model: Model) -> Iterator[str]:
    """What a reader of the text will not find in it."""
    if model.gravity != GRAVITY:
        yield f"its gravity is not in the file, load it with gravity={model.gravity}"
    for joint in model.joints:
        if joint.dynamics and (joint.dynamics.quadratic or joint.dynamics.offset):
            yield f"the quadratic damping and constant force of joint {joint.name!r} are not in the file"
    if model.contacts:
        yield f"its {len(model.contacts)} contact points are not in the file"
    order = joints_depth_first(Draft(model.name, list(model.links), list(model.joints)))
    if [joint.name for joint in order if joint.nq] != [joint.name for joint in model.moving_joints]:
        yield "its coordinates are read in another order, depth first; go by the names of the joints"


def _attributes(**pairs: str | float | tuple[float, ...]) -> str:
    return "".join(f" {key}={quoteattr(_text(value))}" for key, value in pairs.items())


def _text(value: str | float | tuple[float, ...]) -> str:
    if isinstance(value, str):
        return value
    return " ".join(map(_number, value)) if isinstance(value, tuple) else _number(value)


def _number(x: float) -> str:
    return repr(float(x)).removesuffix(".0")


def _element(tag: str, **pairs: str | float | tuple[float, ...]) -> str:
    return f"<{tag}{_attributes(**pairs)}/>"


def _origin(place: Vec3, turn: Mat3) -> str:
    return _element("origin", xyz=place, rpy=ORIGIN if turn == IDENTITY else to_rpy(turn))


def _link(link: Link) -> Iterator[str]:
    if link.inertial is None and not link.shapes:
        yield _element("link", name=link.name)
        return
    yield f"<link{_attributes(name=link.name)}>"
    if link.inertial:
        yield from _inertial(link.inertial)
    for shape in link.shapes:
        yield from _shape(shape)
    yield "</link>"


def _inertial(body: Inertial) -> Iterator[str]:
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = body.tensor
    yield "  <inertial>"
    yield f"    {_origin(body.com, IDENTITY)}"
    yield f"    {_element('mass', value=body.mass)}"
    yield f"    {_element('inertia', ixx=xx, ixy=xy, ixz=xz, iyy=yy, iyz=yz, izz=zz)}"
    yield "  </inertial>"


def _shape(shape: Shape) -> Iterator[str]:
    if shape.kind == "mesh":
        solid = _element("mesh", filename=shape.uri, scale=shape.size)
    elif shape.kind in _SIZES:
        solid = _element(shape.kind, **dict(zip(_SIZES[shape.kind], shape.size, strict=True)))
    else:
        solid = _element(shape.kind, size=shape.size)
    origin = _origin(shape.origin, shape.rotation)
    yield f"  <{shape.role}>{origin}<geometry>{solid}</geometry></{shape.role}>"


def _joint(joint: Joint) -> Iterator[str]:
    yield f"<joint{_attributes(name=joint.name, type=_TYPES.get(joint.kind, joint.kind))}>"
    yield f"  {_element('parent', link=joint.parent)}"
    yield f"  {_element('child', link=joint.child)}"
    yield f"  {_origin(joint.origin, joint.rotation)}"
    yield f"  {_element('axis', xyz=joint.axis)}"
    if joint.axis2:
        yield f"  {_element('axis2', xyz=joint.axis2)}"
    if joint.kind == "helical":
        yield f"  {_element('lead', value=joint.lead)}"
    if joint.limit:
        yield f"  {_limit(joint.limit)}"
    if joint.dynamics:
        yield f"  {_dynamics(joint.dynamics)}"
    if joint.mimic:
        mimic = joint.mimic
        yield f"  {_element('mimic', joint=mimic.joint, multiplier=mimic.multiplier, offset=mimic.offset)}"
    yield "</joint>"


def _dynamics(d: JointDynamics) -> str:
    values = {"damping": d.damping, "friction": d.friction, "armature": d.armature}
    values |= {"spring_stiffness": d.stiffness, "spring_reference": d.reference}
    return _element("dynamics", **{name: value for name, value in values.items() if value})


def _limit(limit: Limit) -> str:
    bounds = {name: getattr(limit, name) for name in ("lower", "upper", "velocity", "effort")}
    return _element("limit", **{name: bound for name, bound in bounds.items() if bound is not None})
