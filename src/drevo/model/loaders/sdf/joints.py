"""Joints of an SDFormat model, each placed in the links that it holds together; gearboxes as couplings."""

from __future__ import annotations

import math
from dataclasses import replace

from ....io import xml
from ....io.xml import Element, Reader
from ... import values
from ...description import ORIGIN, Joint, JointCoupling, JointDynamics, Limit, Link, Mimic, Vec3
from ...rotations import IDENTITY_POSE, FramePose, apply, compose, inverse_pose, matmul, transpose
from ..schema import true
from .frames import MODEL, WORLD, Scene, as_vec3, child_text, given_name, read_numbers

SDF_JOINT_KINDS = {"ball": "spherical", "screw": "helical", "revolute2": "universal"}
GEARBOX = "gearbox"
GEARBOX_MISALIGNMENT = 1e-6  # how far an axis of a gearbox may be from the hinge's


def read_joint(scene: Scene, element: Element) -> None:
    """Enter the joint, or the two that make one whose axes have different things acting in them."""
    name, kind = given_name(scene, element), element.get("type")
    reader = Reader(scene.draft.problems.append, f"joint {name!r} (line {element.line})")
    parent, child = (_end(scene, reader, element, role) for role in ("parent", "child"))
    if kind == GEARBOX:
        scene.gearboxes.append(element)
        return
    joint_pose, axis = scene.where(name), element.first("axis")
    joint = Joint(
        name,
        SDF_JOINT_KINDS.get(kind, kind),
        parent,
        child,
        *compose(inverse_pose(_link_pose(scene, parent)), joint_pose),
        _axis(scene, reader, axis, joint_pose),
        lead=_lead(scene, reader, element) if kind == "screw" else 0.0,
        limit=_limit(reader, axis),
        mimic=_mimic(reader, axis),
        line=element.line,
        dynamics=_dynamics(reader, element, axis),
    )
    place, turn = compose(inverse_pose(joint_pose), _link_pose(scene, child))
    joint = replace(joint, child_origin=place, child_rotation=turn)
    if joint.kind != "universal":
        scene.draft.joints.append(joint)
        return
    second = element.first("axis2")
    joint = replace(joint, axis2=_axis(scene, reader, second, joint_pose))
    scene.draft.joints += _apart(scene, joint, _limit(reader, second), _dynamics(reader, element, second))


def _apart(scene: Scene, joint: Joint, limit: Limit | None, dynamics: JointDynamics | None) -> list[Joint]:
    """A joint of two axes in one, or where other forces act about the second, as two hinges."""
    if joint.dynamics == dynamics:
        return [joint]
    middle = f"{joint.child}_{joint.name}"
    scene.draft.links.append(Link(middle, line=joint.line))
    first = replace(joint, name=f"{joint.name}_1", kind="revolute", child=middle, child_origin=ORIGIN,
                    child_rotation=IDENTITY_POSE[1], axis2=None)  # fmt: skip
    return [first, Joint(
        f"{joint.name}_2", "revolute", middle, joint.child, axis=joint.axis2 or joint.axis, limit=limit,
        dynamics=dynamics, line=joint.line, child_origin=joint.child_origin, child_rotation=joint.child_rotation,
    )]  # fmt: skip


def _end(scene: Scene, reader: Reader, element: Element, role: str) -> str:
    """The link that an end of the joint is attached to."""
    name = child_text(element, role)
    if not name:
        reader.report(f"{reader.owner} names no {role} link; add <{role}>")
        return f"<{role}>"
    return scene.link_of(name)


def _link_pose(scene: Scene, name: str) -> FramePose:
    """The pose of a link or of the world, in the model; validation names what does not exist."""
    return scene.where(name) if name in scene.frames or name == WORLD else IDENTITY_POSE


def _axis(scene: Scene, reader: Reader, element: Element | None, joint_pose: FramePose) -> Vec3:
    """The axis in the frame of the joint, from the frame that it is expressed in."""
    xyz = element.first("xyz") if element else None
    if element is None or xyz is None:
        return (0.0, 0.0, 1.0)
    axis = as_vec3(read_numbers(reader, xyz, (0.0, 0.0, 1.0)))
    frame = xyz.get("expressed_in")
    if scene.old_axes or true(child_text(element, "use_parent_model_frame")):
        frame = MODEL
    if not frame:
        return axis
    return apply(matmul(transpose(joint_pose[1]), scene.where(frame)[1]), axis)


def _lead(scene: Scene, reader: Reader, element: Element) -> float:
    """Metres per revolution; the older thread_pitch is radians per metre, left-handed."""
    if pitch_element := element.first("screw_thread_pitch"):
        return read_numbers(reader, pitch_element, (1.0,))[0]
    pitch_element = element.first("thread_pitch")
    if pitch_element is None:
        scene.draft.doubts.append(
            f"{reader.owner} has no <screw_thread_pitch>, taken as 1 metre per revolution, as SDFormat means it; "
            "add it"
        )
        return 1.0
    pitch = read_numbers(reader, pitch_element, (1.0,))[0]
    if abs(pitch) < 1e-6:
        reader.report(
            f"{reader.owner} has the thread_pitch {pitch:g}; give <screw_thread_pitch>, metres per revolution"
        )
        return 0.0
    return -2.0 * math.pi / pitch


def _limit(reader: Reader, axis: Element | None) -> Limit | None:
    limit = axis.first("limit") if axis else None
    if limit is None:
        return None
    return Limit(*(_bound(reader, limit.first(tag)) for tag in ("lower", "upper", "velocity", "effort")))


def _bound(reader: Reader, element: Element | None) -> float | None:
    """A bound; None where it is absent, infinite, or so large (1e16 by default) that it means none."""
    if element is None or element.text.lower().lstrip("+-") in ("", "inf", "infinity"):
        return None
    return values.bound(read_numbers(reader, element, (0.0,), xml.ANY)[0])


def _dynamics(reader: Reader, joint: Element, axis: Element | None) -> JointDynamics | None:
    """<dynamics> of an axis, and the rotor that Drake reads; None where nothing acts."""
    dynamics = axis.first("dynamics") if axis else None
    tags = ("damping", "friction", "spring_stiffness", "spring_reference")
    damping, friction, stiffness, reference = (
        read_numbers(reader, dynamics.first(tag) if dynamics else None, (0.0,), xml.MAX_INERTIA)[0] for tag in tags
    )
    rotor, ratio = (read_numbers(reader, joint.first(f"drake:{tag}"), (x,), xml.MAX_INERTIA)[0]
                    for tag, x in (("rotor_inertia", 0.0), ("gear_ratio", 1.0)))  # fmt: skip
    if rotor and ratio == 0.0:
        reader.report(f"{reader.owner}: the gear ratio is 0; give the turns of the rotor per turn of the joint")
    if dynamics is None and not rotor:
        return None
    return JointDynamics(
        rotor * ratio * ratio, damping, friction=friction, stiffness=stiffness, reference=reference
    )


def _mimic(reader: Reader, axis: Element | None) -> Mimic | None:
    mimic = axis.first("mimic") if axis else None
    if mimic is None:
        return None
    ratio, offset, reference = (
        read_numbers(reader, mimic.first(tag), (default,))[0]
        for tag, default in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
    )
    return Mimic(mimic.get("joint"), ratio, offset - ratio * reference)


# --- gearboxes ---------------------------------------------------------------------------------------------------


def read_gearboxes(scene: Scene) -> None:
    """theta_1 = -ratio theta_2, the angles of parent and child about axis and axis2, from the reference body."""
    for element in scene.gearboxes:
        reader = Reader(scene.draft.problems.append, f"joint {element.get('name')!r} (line {element.line})")
        body = scene.link_of(child_text(element, "gearbox_reference_body"))
        ratio, gearbox_pose = (
            read_numbers(reader, element.first("gearbox_ratio"), (1.0,))[0],
            scene.where(element.get("name")),
        )
        if ratio == 0.0:
            reader.report(
                f"{reader.owner}: gearbox_ratio is 0; give the turns of the parent per turn of the child"
            )
        ends = [
            _hinge(scene, reader, element, gearbox_pose, body, *x)
            for x in (("parent", "axis"), ("child", "axis2"))
        ]
        if None in ends:
            continue
        (one, sign), (other, sign2) = (end for end in ends if end)
        scene.draft.couplings.append(JointCoupling(one, other, (0.0, -ratio * sign * sign2)))


def _hinge(
    scene: Scene, reader: Reader, element: Element, gearbox_pose: FramePose, body: str, role: str, tag: str
) -> tuple[str, float] | None:
    """The hinge between the reference body and an end of a gearbox, and whether it turns the other way."""
    end, wanted = (
        scene.link_of(child_text(element, role)),
        apply(gearbox_pose[1], _axis(scene, reader, element.first(tag), gearbox_pose)),
    )
    for joint in scene.draft.joints:
        if joint.kind in ("revolute", "continuous") and {joint.parent, joint.child} == {body, end}:
            axis = apply(matmul(scene.where(joint.parent)[1], joint.rotation), joint.axis)
            sizes = math.hypot(*axis) * math.hypot(*wanted) * (1.0 if joint.child == end else -1.0)
            along = sum(a * b for a, b in zip(axis, wanted, strict=True)) / sizes if sizes else 0.0
            if abs(abs(along) - 1.0) < GEARBOX_MISALIGNMENT:
                return joint.name, math.copysign(1.0, along)
    reader.report(
        f"{reader.owner} is a gearbox, and no hinge along its {tag} joins its {role} {end!r} to the "
        f"gearbox_reference_body {body!r}; add one, or remove the gearbox"
    )
    return None
