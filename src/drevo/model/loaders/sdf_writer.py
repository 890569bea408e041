"""A Model as SDFormat 1.11, its links placed at their parents' and its rotors as Drake has them.

A free joint is none in SDFormat, where a model that no joint holds in the world is free: it is written in an
element of Drevo's own, which others pass over.
"""

from __future__ import annotations

from dataclasses import replace

from ..carriers import WORLD, renamed, with_chains, with_world
from ..description import (
    IDENTITY,
    ORIGIN,
    SHAPE_SIZES,
    Inertial,
    Joint,
    JointDynamics,
    Limit,
    Link,
    Loop,
    Model,
    Shape,
)
from ..draft import STANDARD_GRAVITY
from ..rotations import IDENTITY_POSE, FramePose, compose, inverse_pose, to_rpy
from . import primitives
from .closures import closing_joint
from .writing import SHARED_JOINT_KINDS, Written, begin, element, text_element

SDF_WRITTEN_KINDS = {**SHARED_JOINT_KINDS, "helical": "screw", "spherical": "ball", "free": "free"}


def to_sdf(robot: Model) -> Written:
    """The robot as SDF has it: joints of two or three coordinates as chains of plain ones."""
    model = _told_apart(with_world(with_chains(robot, SDF_WRITTEN_KINDS)))
    closing, rest = _closing(model)
    open_model = replace(model, loops=rest)
    out = begin(robot, open_model, SDF_WRITTEN_KINDS, reserved="::|^__.*__$|^\\s|\\s$|^$")
    out.model = model
    if model.links[0].inertial and model.links[0].inertial.mass:
        out.left_out.append(f"the mass of the immovable link {WORLD!r}")
    joints = {joint.child: joint for joint in model.joints}
    held = element(
        "model",
        *(_link(link, joints[link.name]) for link in model.links[1:]),
        *map(_joint, (*model.joints, *closing)),
        () if any(link.inertial for link in robot.links) else element(primitives.KINEMATIC),
        primitives.own_elements(open_model, gravity=False),
        name=model.name,
    )
    if model.gravity != STANDARD_GRAVITY:
        held = element(
            "world", text_element("gravity", model.gravity), held, name="default"
        )  # "world" is reserved
    out.lines = element(
        "sdf", held, version="1.11", **{"xmlns:drevo": primitives.NAMESPACE, "xmlns:drake": "drake.mit.edu"}
    )
    return out


def _closing(model: Model) -> tuple[list[Joint], tuple[Loop, ...]]:
    """The loops that a joint closes where all coordinates are zero, as those joints, and the other loops."""
    names = {joint.name for joint in model.joints} | {link.name for link in model.links}
    stands: dict[str, FramePose] = {WORLD: IDENTITY_POSE}
    for joint in model.joints:
        place = compose((joint.origin, joint.rotation), (joint.child_origin, joint.child_rotation))
        stands[joint.child] = compose(stands[joint.parent], place)
    closing, rest = [], []
    for k, loop in enumerate(model.loops):
        closing_of_loop = closing_joint(loop, compose(inverse_pose(stands[loop.link_a]), stands[loop.link_b]))
        if closing_of_loop is None or (name := f"loop_{k}") in names:
            rest.append(loop)
        else:
            closing.append(replace(closing_of_loop, name=name))
    return closing, tuple(rest)


def _told_apart(model: Model) -> Model:
    """Links and joints share their names in SDF: a link that is called like a joint gets another name."""
    joints = {joint.name for joint in model.joints}
    taken = joints | {link.name for link in model.links}
    names = {}
    for link in model.links:
        name = link.name
        while name in joints or (name != link.name and name in taken):
            name += "_link"
        if name != link.name:
            names[link.name] = name
            taken.add(name)
    return renamed(model, names)


def _pose(pose: FramePose, relative_to: str | None = None) -> list[str]:
    place, turn = pose
    if pose == IDENTITY_POSE and relative_to is None:
        return []
    return list(
        text_element("pose", (*place, *(ORIGIN if turn == IDENTITY else to_rpy(turn))), relative_to=relative_to)
    )


def _link(link: Link, joint: Joint) -> list[str]:
    pose = compose((joint.origin, joint.rotation), (joint.child_origin, joint.child_rotation))
    return element(
        "link",
        _pose(pose, None if joint.parent == WORLD else joint.parent),
        _inertial(link.inertial or Inertial()),
        *(_shape(shape, f"{shape.role}_{k}") for k, shape in enumerate(link.shapes)),
        name=link.name,
    )


def _inertial(body: Inertial) -> list[str]:
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = body.tensor
    moments = {"ixx": xx, "ixy": xy, "ixz": xz, "iyy": yy, "iyz": yz, "izz": zz}
    inertia = element("inertia", *(text_element(tag, value) for tag, value in moments.items()))
    return element("inertial", _pose((body.com, IDENTITY)), text_element("mass", body.mass), inertia)


def _shape(shape: Shape, name: str) -> list[str]:
    """Lines of a collision or visual element."""
    if shape.kind == "mesh":
        inside = [*text_element("uri", shape.uri), *text_element("scale", shape.size)]
    elif shape.kind == "box":
        inside = list(text_element("size", shape.size))
    else:
        inside = [
            line
            for tag, x in zip(SHAPE_SIZES[shape.kind], shape.size, strict=True)
            for line in text_element(tag, x)
        ]
    geometry = element("geometry", element(shape.kind, inside))
    return element(shape.role, _pose((shape.origin, shape.rotation)), geometry, name=name)


def _joint(joint: Joint) -> list[str]:
    """Lines of a joint element, its frame in the child's."""
    back = inverse_pose((joint.child_origin, joint.child_rotation))
    d = joint.dynamics or JointDynamics()
    moves = joint.kind not in ("fixed", "spherical", "free")
    return element(
        primitives.JOINT if joint.kind == "free" else "joint",
        _pose(back),
        text_element("parent", joint.parent),
        text_element("child", joint.child),
        text_element("screw_thread_pitch", joint.lead if joint.kind == "helical" else None),
        _axis(joint, d) if moves or joint.dynamics else (),
        element("axis2", text_element("xyz", joint.axis2)) if joint.axis2 else (),
        text_element("drake:rotor_inertia", d.armature or None),
        text_element("drake:gear_ratio", 1.0 if d.armature else None),
        name=joint.name,
        type=SDF_WRITTEN_KINDS.get(joint.kind, joint.kind),
    )


def _axis(joint: Joint, d: JointDynamics) -> list[str]:
    """Lines of an axis element with limits, dynamics and mimic."""
    mimic, limit = joint.mimic, joint.limit or Limit()
    acts = {"damping": d.damping, "friction": d.friction}
    acts |= {"spring_stiffness": d.stiffness, "spring_reference": d.reference}
    bounds = {name: getattr(limit, name) for name in ("lower", "upper", "effort", "velocity")}
    dynamics = element("dynamics", *(text_element(tag, value or None) for tag, value in acts.items()))
    follows = {"multiplier": mimic.multiplier, "offset": mimic.offset, "reference": 0.0} if mimic else {}
    return element(
        "axis",
        text_element("xyz", joint.axis),
        element("limit", *(text_element(tag, value) for tag, value in bounds.items())) if joint.limit else (),
        dynamics if len(dynamics) > 1 else (),
        element("mimic", *(text_element(tag, x) for tag, x in follows.items()), joint=mimic.joint)
        if mimic
        else (),
    )
