"""Bodies of an MJCF file with their joints: the links and joints of the draft."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from ....io import xml
from ....io.xml import Element, Reader
from ... import values
from ...description import IDENTITY, ORIGIN, Inertial, Joint, JointDynamics, Limit, Link, Mat3, TendonWrap, Vec3
from ...rotations import (
    add_vectors,
    apply,
    compose,
    from_axis_angle,
    inverse_pose,
    matmul,
    quaternion_of,
    turn_tensor,
    unit,
)
from ..schema import true
from .equality import Layout
from .file import (
    IDENTITY_POSE,
    File,
    FramePose,
    PlacedElement,
    held_in,
    in_section,
    limited,
    minus,
    placed_in,
    read_some,
    read_vector,
    rotation_of,
)
from .geoms import SolidGeom, geom_of, pose_of_ends, shape_of
from .inertials import inertial_frame, inertial_of
from .posture import Posture
from .settings import read_softness
from .touching import read_geoms, read_world

MJCF_JOINT_KINDS = {"hinge": "revolute", "slide": "prismatic", "ball": "spherical", "free": "free"}
JOINTED = ("joint", "freejoint")
ACTING = {"armature": "", "damping": "damper", "frictionloss": "frictionloss", "stiffness": "spring"}  # its flag


def read_bodies(file: File) -> Layout:
    """Every body below every <worldbody>, in file order; where they stand."""
    layout = Layout({"world": IDENTITY_POSE}, {}, {}, {}, {})
    worlds = [(held, "world") for world in file.root.all("worldbody") for held in _held(file, world)]
    _read_sites(layout, "world", [held for held, _ in worlds])
    _read_round(layout, "world", read_world(file, [held for held, _ in worlds]))
    stack = [(held, parent, True) for held, parent in reversed(worlds) if held.element.tag == "body"]
    while stack:
        held, parent, stands = stack.pop()
        name = held.element.get("name") or file.unused("body")
        inside = _held(held.file, held.element, held.childclass)
        stands = stands and not any(held.element.tag in JOINTED for held in inside)
        place = _read_body(held, name, parent, inside, stands, layout)
        layout.bodies[name] = placed_in(layout.bodies[parent], place)
        _read_sites(layout, name, inside)
        stack += [(held, name, stands) for held in reversed(inside) if held.element.tag == "body"]
    return layout


def _read_sites(layout: Layout, body: str, inside: list[PlacedElement]) -> None:
    """The named sites of a body, with their sizes."""
    for file_of_site, element, childclass, frame in inside:
        if element.tag == "site" and element.get("name"):
            faults: list[str] = []
            reader, site = Reader(faults.append, "site"), file_of_site.attributes(element, childclass)
            pose = pose_of_ends(reader, site) or (
                read_vector(reader, site, "pos", ORIGIN),
                rotation_of(file_of_site, reader, site),
            )
            name = element.get("name")
            layout.sites[name] = body, placed_in(frame, pose)
            size = read_some(reader, site, "size", (0.005, 0.0, 0.0))
            layout.sizes[name] = (size[0], size[1], size[2]), site.get("type", "sphere")


def _read_round(layout: Layout, body: str, geoms: Iterable[SolidGeom]) -> None:
    """The named spheres and cylinders of a body."""
    for geom in geoms:
        if geom.kind in ("sphere", "cylinder") and geom.element.get("name") and not geom.faults:
            axis = tuple(row[2] for row in geom.turn) if geom.kind == "cylinder" else None
            layout.round[geom.element.get("name")] = TendonWrap(body, geom.place, geom.size[0], axis)  # type: ignore[arg-type]


def _held(file: File, element: Element, childclass: str = "") -> list[PlacedElement]:
    return held_in(file, element, element.get("childclass") or childclass)


def _read_body(
    held: PlacedElement, name: str, parent: str, inside: list[PlacedElement], stands: bool, layout: Layout
) -> FramePose:
    """The links and joints of a body; where it stands in its parent. layout: takes q there by joint, and what is
    round. inside: its elements, placed anew where its frame is aligned with its inertia.

    stands: the body is welded to the world; on a fixed base nobody asks for the inertia of its meshes.
    """
    file, element, _, frame = held
    owner = f"body {name!r} (line {element.line})"
    reader = Reader(file.draft.problems.append, owner)
    _note_body(file, name, {held.element.tag for held in inside})
    origin = read_vector(reader, element, "pos", ORIGIN)
    place = placed_in(frame, (origin, rotation_of(file, reader, element)))
    geoms = _geoms(owner, inside)
    lack = file.draft.standing.append if stands else reader.report
    inertial = inertial_of(file, reader, element.first("inertial"), geoms, lack, origin)
    joints = [held for held in inside if held.element.tag in JOINTED]
    if inertial and _aligned(file, element, joints):
        centre = inertial_frame(file, reader, element.first("inertial"), geoms, inertial)
        back = inverse_pose(centre)
        place, inertial = (
            compose(place, centre),
            Inertial(inertial.mass, ORIGIN, turn_tensor(back[1], inertial.tensor)),
        )
        inside[:] = [held._replace(frame=compose(back, held.frame)) for held in inside]
        geoms = _geoms(owner, inside)
    _joints(file, element, name, parent, place, joints)
    for held, joint in zip(joints, file.draft.joints[-len(joints) :] if joints else ()):
        if joint.kind in ("revolute", "prismatic"):
            layout.at[joint.name] = _reference(held, joint)
    shapes = tuple(shape for geom in geoms if (shape := shape_of(geom)))
    read_geoms(name, geoms)
    _read_round(layout, name, geoms)
    compensated = file.flags.passive and "gravity" not in file.flags.off
    gravcomp = reader.scalar(element, "gravcomp", 0.0, xml.ANY) if compensated else 0.0
    mocap = true(element.get("mocap", "false"))
    file.draft.links.append(Link(name, inertial, shapes, element.line, gravcomp, mocap))
    return place


def _geoms(owner: str, inside: list[PlacedElement]) -> list[SolidGeom]:
    return [
        geom_of(x.file, owner, x.file.attributes(x.element, x.childclass), x.frame)
        for x in inside
        if x.element.tag == "geom"
    ]


def _aligned(file: File, body: Element, joints: list[PlacedElement]) -> bool:
    """The frame of a free body on which nothing hangs is to be that of its inertia."""
    for held in joints:
        joint = held.file.attributes(held.element, held.childclass)
        align = joint.get("align", "auto")
        if (joint.tag == "freejoint" or joint.get("type") == "free") and (
            align == "true" or (align == "auto" and file.compiler.get("alignfree") == "true")
        ):
            return not any(element.tag == "body" for element in body.walk() if element is not body)
    return False


def _reference(held: PlacedElement, joint: Joint) -> float:
    """q of a joint as the file stands."""
    element = held.file.attributes(held.element, held.childclass)
    value = Reader(lambda fault: None, "joint").scalar(element, "ref", 0.0)
    return held.file.angle(value) if joint.kind == "revolute" else value


def _note_body(file: File, name: str, inside: set[str]) -> None:
    """Notes what acts on the body itself and is not read."""
    if "plugin" in inside and file.flags.passive:
        file.draft.ignore("plugin", f"body {name!r}")


def _joints(
    file: File, body: Element, name: str, parent: str, place: FramePose, joints: list[PlacedElement]
) -> None:
    """The joints from the parent to the body, each placed in the frame that the one before moved."""
    origin, turn = place
    for k, held in enumerate(joints):
        element = held.file.attributes(held.element, held.childclass)
        joint, at = _joint(held.file, element, name, held.frame)
        child = name if k == len(joints) - 1 else file.unused(f"{name}_{joint.name}")
        if joint.kind == "free":
            _check_free(file, body, name, parent == "world" and len(joints) == 1)
            if joint.dynamics and (joint.dynamics.springy or joint.name in held.file.springdampers):
                rest = (*origin, *quaternion_of(turn))
                joint = replace(joint, dynamics=replace(joint.dynamics, rest=rest))
            origin, turn = ORIGIN, IDENTITY
        place = _from_reference(held.file, element, joint, add_vectors(origin, apply(turn, at)), turn)
        file.draft.joints.append(
            replace(
                joint,
                parent=parent,
                child=child,
                origin=place[0],
                rotation=place[1],
                child_origin=minus(ORIGIN, at),
            )
        )
        if child != name:
            file.draft.links.append(Link(child, line=element.line))
        parent, origin, turn = child, ORIGIN, IDENTITY
    if not joints:
        weld = file.unused(f"{name}_fixed")
        file.draft.joints.append(Joint(weld, "fixed", parent, name, origin, turn, line=body.line))


def _check_free(file: File, body: Element, name: str, alone: bool) -> None:
    """A free joint stands alone in a body of the world."""
    if not alone:
        file.draft.problems.append(
            f"body {name!r} (line {body.line}) has a free joint, which may only be the single "
            "joint of a body directly in the world; remove the others"
        )


def _joint(file: File, element: Element, body: str, frame: FramePose) -> tuple[Joint, Vec3]:
    """The joint without its place, and its anchor in the frame of the body."""
    kind = "free" if element.tag == "freejoint" else element.get("type", "hinge")
    name = element.get("name") or file.unused(f"{body}_joint")
    reader = Reader(file.draft.problems.append, f"joint {name!r} (line {element.line})")
    moving = kind in ("hinge", "slide")
    anchor = ORIGIN if kind in ("free", "slide") else read_vector(reader, element, "pos", ORIGIN)
    axis = read_vector(reader, element, "axis", (0.0, 0.0, 1.0)) if moving else (0.0, 0.0, 1.0)
    if frame != IDENTITY_POSE:
        anchor = ORIGIN if kind in ("free", "slide") else placed_in(frame, (anchor, IDENTITY))[0]
        axis = apply(frame[1], axis)
    limit = _limit(file, reader, element, kind) if moving else None
    dynamics = _dynamics(file, reader, element, kind, name) if element.tag == "joint" else None
    angle = _ball_limit(file, reader, element) if kind == "ball" else None
    if angle is not None and reader.scalar(element, "margin", 0.0) > angle:
        file.draft.ignore("a margin wider than the range", reader.owner)
    file.lifting += [name] if true(element.get("actuatorgravcomp", "false")) else []
    file.draft.softness += filter(None, [read_softness(reader, element, name, angle)])
    return Joint(
        name,
        MJCF_JOINT_KINDS.get(kind, kind),
        "",
        "",
        axis=axis,
        limit=limit,
        line=element.line,
        dynamics=dynamics,
    ), anchor


def _dynamics(file: File, reader: Reader, element: Element, kind: str, name: str) -> JointDynamics:
    """Rotor, damper, dry friction and spring; q counts as in the file, and so does springref."""
    on = {a: element.get(a, "0") if flag not in file.flags.off else "0" for a, flag in ACTING.items()}
    acts = Element(element.tag, on, element.line)
    stiffness, square, cube = read_some(reader, acts, "stiffness", (0.0,) * 3, xml.MAX_INERTIA)
    damping, quadratic, cubic = read_some(reader, acts, "damping", (0.0,) * 3, xml.MAX_INERTIA)
    if "springdamper" in element.attributes:
        time, ratio = reader.vector(element, "springdamper", (0.0, 0.0))
        if time > 0.0 and ratio > 0.0:
            file.springdampers[name] = time, ratio
    armature, friction = (reader.scalar(acts, a, 0.0, xml.MAX_INERTIA) for a in ("armature", "frictionloss"))
    reference = reader.scalar(element, "springref", 0.0)
    reference = file.angle(reference) if kind == "hinge" else reference
    return JointDynamics(armature, damping, quadratic, friction, stiffness, reference, 0.0, cubic, square, cube)


def tune_springs(file: File, stands: Posture) -> None:
    """springdamper: the spring and damper of a joint's own inertia where the file stands, by MuJoCo's rule."""
    for k, joint in enumerate(file.draft.joints):
        if joint.name not in file.springdampers:
            continue
        time, ratio = file.springdampers[joint.name]
        inertia = 1.0 / stands.of_joint(joint.name)
        if not math.isfinite(inertia):
            file.draft.ignore("springdamper", f"joint {joint.name!r}")
            continue
        spring = 0.0 if "spring" in file.flags.off else inertia / (time * ratio) ** 2
        damper = 0.0 if "damper" in file.flags.off else 2.0 * inertia / time
        dynamics = replace(joint.dynamics or JointDynamics(), stiffness=spring, damping=damper)
        file.draft.joints[k] = replace(joint, dynamics=dynamics)


def check_compensation(file: File) -> None:
    """actuatorgravcomp: weights compensated by actuators are compensated alike if any acts and nothing cuts it."""
    draft, carrying = file.draft, set[str]()
    above = {joint.child: joint for joint in draft.joints}
    for link in draft.links:
        name = link.name if link.gravcomp else ""
        while name in above:
            carrying.add(above[name].name)
            name = above[name].parent
    driven = "actuation" not in file.flags.off and any(in_section(file, "actuator"))
    for joint in draft.joints:
        if joint.name in carrying.intersection(file.lifting):
            if not driven:
                draft.ignore("actuatorgravcomp without actuators", f"joint {joint.name!r}")
            elif joint.limit and joint.limit.effort:
                draft.ignore("actuatorgravcomp within an actuatorfrcrange", f"joint {joint.name!r}")


def _from_reference(file: File, element: Element, joint: Joint, origin: Vec3, turn: Mat3) -> tuple[Vec3, Mat3]:
    """The pose of the joint at q = 0, when the body stands where the file puts it at q = ref."""
    if joint.kind not in ("revolute", "prismatic") or "ref" not in element.attributes:
        return origin, turn
    ref = Reader(file.draft.problems.append, f"joint {joint.name!r} (line {joint.line})").scalar(
        element, "ref", 0.0
    )
    if ref == 0.0 or not any(joint.axis):
        return origin, turn
    if joint.kind == "revolute":
        return origin, matmul(turn, from_axis_angle(joint.axis, -file.angle(ref)))
    x, y, z = unit(joint.axis)
    return add_vectors(origin, apply(turn, (-ref * x, -ref * y, -ref * z))), turn


def _ball_limit(file: File, reader: Reader, element: Element) -> float | None:
    """The largest angle of a ball, rad; the lower bound means nothing where it is not the larger one."""
    if not limited(file, element):
        return None
    return file.angle(max(reader.vector(element, "range", (0.0, 0.0), xml.ANY)))


def _limit(file: File, reader: Reader, element: Element, kind: str) -> Limit | None:
    low, high = reader.vector(element, "actuatorfrcrange", (0.0, 0.0), xml.ANY)
    effort = max(-low, high) if low < high and limited(file, element, "actuatorfrc") else None
    if effort and low != -high:
        file.draft.ignore("an actuatorfrcrange that is not symmetric", reader.owner)
    if not limited(file, element):
        return Limit(effort=effort) if effort else None
    bounds = reader.vector(element, "range", (0.0, 0.0), xml.ANY)
    lower, upper = (values.bound(file.angle(x) if kind == "hinge" else x) for x in bounds)
    return Limit(lower, upper, effort=effort)
