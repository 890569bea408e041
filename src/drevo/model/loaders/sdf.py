"""SDFormat: one model, with the pose semantics of versions 1.5 and later. Mesh files are never opened.

A link's frame in SDFormat may stand anywhere relative to its joint; where they differ, the joint turns a link
LINK_JOINT without mass, to which the link is welded. A model that no joint holds in the world stands in it by its
root link, as in URDF; a root link with a pose of its own is welded to a link "world" at that pose.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from drevo.errors import ModelError
from drevo.io import xml
from drevo.io.files import Files
from drevo.io.xml import Budget, Element, Reader
from drevo.model import values
from drevo.model.description import (
    IDENTITY,
    ORIGIN,
    Inertial,
    Joint,
    JointDynamics,
    Limit,
    Link,
    Mat3,
    Mimic,
    Shape,
    Vec3,
)
from drevo.model.draft import GRAVITY, Draft
from drevo.model.loaders import own, unread
from drevo.model.loaders.sdf_include import MODEL, flattened, included
from drevo.model.messages import list_counts, listed
from drevo.model.rotations import (
    HERE,
    FramePose,
    apply,
    compose,
    from_rpy,
    inverse_pose,
    matmul,
    matrix_of_quaternion,
    transpose,
    turn_tensor,
)

KINDS = {"ball": "spherical", "screw": "helical", "revolute2": "universal"}
KNOWN = ("pose", "link", "joint", "frame", "static", "self_collide", "allow_auto_disable", *own.TAGS)
SOLIDS = {
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
}


@dataclass(slots=True)
class _File:
    """The draft that grows, and where every named frame stands in the model."""

    draft: Draft
    old_axes: bool  # before 1.5, axes were given in the frame of the model
    frames: dict[str, tuple[str, FramePose]] = field(default_factory=dict)
    placed: dict[str, FramePose] = field(default_factory=dict)

    def where(self, name: str) -> FramePose:
        """The pose of a frame in the model: up the chain of frames it is relative to, without recursion."""
        chain: dict[str, None] = {}
        while name not in self.placed and name in self.frames and name not in chain:
            chain[name] = None
            name = self.frames[name][0]
        if name not in self.placed:
            why = "refers to itself" if name in chain else "does not exist"
            self.draft.problems.append(
                f"the frame {name!r}, to which a pose is relative, {why}; correct relative_to"
            )
            self.placed[name] = HERE
        for link in reversed(chain):
            self.placed[link] = compose(self.placed[self.frames[link][0]], self.frames[link][1])
        return self.placed[next(iter(chain), name)]


def draft_of(root: Element, source: str = "", files: Files | None = None, model: str = "") -> Draft:
    """What the elements say, not yet judged."""
    if root.tag != "sdf":
        raise ModelError(
            f"the root element is <{root.tag[:40]}> on line {root.line}; an SDF file begins with <sdf>"
        )
    files = files or Files(source)
    missing = included(root, files, files.folder)
    chosen, world = _chosen(root, model, missing)
    top = flattened(chosen, Budget())
    draft = Draft(
        top.get("name") or "robot", source=source, notes=[f"not found, and left out: {x}" for x in missing]
    )
    reader = Reader(draft.problems.append, "world")
    if world:
        draft.gravity = _vec(_numbers(reader, world.first("gravity"), GRAVITY))
    file = _File(draft, _version(root) < (1, 5))
    _place(file, top)
    draft.links = [_link(file, element) for element in top.all("link")]
    draft.joints = [joint for element in _joints(top) for joint in _joint(file, element)]
    own.read_own(draft, top)
    _stand(file, top)
    unused = Counter(child.tag for child in top.children if child.tag not in KNOWN)
    if unused:
        draft.notes.append("tags not used: " + list_counts(unused))
    for element in (*([world] if world else ()), top, *top.children):
        if element.tag in unread.SDF:
            unread.note(draft, unread.SDF[element.tag], element, f"{element.tag} {element.get('name')!r}")
    return draft


def _version(root: Element) -> tuple[float, float]:
    """Major and minor: 1.11 is later than 1.9."""
    try:
        major, _, minor = root.get("version", "1.7").partition(".")
        return xml.parse_number(major), xml.parse_number(minor or "0")
    except ValueError as error:
        raise ModelError(f"version of <sdf> on line {root.line}: {error}") from None


def _chosen(root: Element, wanted: str, missing: list[str]) -> tuple[Element, Element | None]:
    """The model of the file that is wanted, by default the one that moves, and the world that holds it."""
    worlds = root.all("world")
    models: list[tuple[Element, Element | None]] = [(model, None) for model in root.all("model")]
    models += [(model, world) for world in worlds for model in world.all("model")]
    found = [held for held in models if not unread.true(_text(held[0], "static"))]
    names = listed(model.get("name") for model, _ in models)
    if wanted:
        found = [held for held in models if held[0].get("name") == wanted]
        if len(found) != 1:
            raise ModelError(f"the file has {len(found)} models {wanted!r}; it has {names}: correct the name")
    if not found and missing:
        raise ModelError(missing[0])
    if len(found) != 1:
        static = listed(model.get("name") for model, _ in models if unread.true(_text(model, "static")))
        why = f" ({static} {'is' if len(models) == 1 else 'are'} static)" if static else ""
        raise ModelError(
            f"the file has {len(found)} models that can move{why}; it must hold exactly one, or name it "
            f"(drevo.load(..., model=...)): there are {names or 'none'}"
        )
    if found[0][0].get("placement_frame"):
        raise ModelError(f"<model> on line {found[0][0].line} has a placement_frame, not read; flatten it")
    return found[0]


def _stand(file: _File, model: Element) -> None:
    """Put the model in the world: a link "world" where a joint names it, or where the root link has a pose."""
    draft = file.draft
    if any(joint.parent == "world" for joint in draft.joints):
        draft.links.insert(0, Link("world"))
        return
    carried = {joint.child for joint in draft.joints}
    roots = [link.name for link in draft.links if link.name not in carried]
    if len(roots) == 1 and roots[0] != "world" and file.where(roots[0]) != HERE:
        place, turn = file.where(roots[0])
        draft.links.insert(0, Link("world"))
        draft.joints.insert(
            0, Joint(f"{roots[0]}_fixed", "fixed", "world", roots[0], place, turn, line=model.line)
        )


# --- values and poses ------------------------------------------------------


def _text(element: Element | None, tag: str) -> str:
    child = element.first(tag) if element else None
    return child.text if child else ""


def _numbers(
    reader: Reader, element: Element | None, default: tuple[float, ...], bound: float = xml.MAX_LENGTH
) -> tuple[float, ...]:
    """The numbers that stand inside an element; the default where it is absent or empty."""
    if element is None or not element.text:
        return default
    return reader.vector(Element(element.tag, {"value": element.text}, element.line), "value", default, bound)


def _vec(values: tuple[float, ...]) -> Vec3:
    return (values[0], values[1], values[2])


def _pose(reader: Reader, element: Element | None) -> FramePose:
    """<pose>: a place, and roll pitch yaw or a quaternion."""
    if element is None or not element.text:
        return HERE
    if element.get("rotation_format") == "quat_xyzw":
        v = _numbers(reader, element, (0.0,) * 6 + (1.0,))
        if abs(math.hypot(*v[3:]) - 1.0) > 1e-3:
            reader.report(
                f"{reader.owner}: the quaternion on line {element.line} is not of length one; normalise it"
            )
            return HERE
        return _vec(v), matrix_of_quaternion(*v[3:])
    v = _numbers(reader, element, (0.0,) * 6)
    angles = [math.radians(x) for x in v[3:]] if unread.true(element.get("degrees")) else v[3:]
    return _vec(v), from_rpy(*angles) if any(angles) else IDENTITY


def _place(file: _File, model: Element) -> None:
    """Enter every frame with what it is relative to."""
    file.placed[MODEL] = HERE
    file.placed["world"] = inverse_pose(_pose(Reader(file.draft.problems.append, "model"), model.first("pose")))
    for element in model.children:
        if element.tag not in ("link", "joint", "frame", own.JOINT):
            continue
        pose = element.first("pose")
        reader = Reader(file.draft.problems.append, f"{element.tag} {element.get('name')!r} (line {element.line})")
        usual = {"link": "", "frame": element.get("attached_to")}.get(element.tag, _text(element, "child"))
        relative = (pose.get("relative_to") or pose.get("frame") if pose else "") or usual or MODEL
        file.frames[_key(element)] = (relative, _pose(reader, pose))


# --- links -----------------------------------------------------------------


def _link(file: _File, element: Element) -> Link:
    name = _name(file, element)
    owner = f"link {name!r} (line {element.line})"
    inertial = element.first("inertial")
    if inertial is None:
        file.draft.doubts.append(
            f"{owner} has no <inertial>, taken as 1 kg with moments of 1 kg m^2, as SDFormat means it; give it one"
        )
    shapes = tuple(shape for child in element.children if (shape := _shape(child)))
    body = _inertial(file, inertial, owner) if inertial else Inertial(1.0, ORIGIN, IDENTITY)
    return Link(name, body, shapes, element.line)


def _name(file: _File, element: Element) -> str:
    if not element.get("name").strip():
        file.draft.problems.append(f"<{element.tag}> on line {element.line} has no name; give it one")
    return _key(element)


def _key(element: Element) -> str:
    """The name, or what stands for one."""
    return element.get("name") or f"<{element.tag} on line {element.line}>"


def _inertial(file: _File, element: Element, owner: str) -> Inertial:
    reader = Reader(file.draft.problems.append, owner)
    if unread.true(element.get("auto")):
        reader.report(f"{owner}: <inertial auto='true'> on line {element.line} is not read; write the inertia out")
    pose = element.first("pose")
    if pose and pose.get("relative_to"):
        reader.report(f"{owner}: relative_to in the pose of <inertial> on line {pose.line} is not read; remove it")
    com, turn = _pose(reader, pose)
    mass = _usual(file, reader, element, "mass", xml.MAX_MASS)
    inertia = element.first("inertia") or element
    xx, yy, zz = (_usual(file, reader, inertia, tag, xml.MAX_INERTIA) for tag in ("ixx", "iyy", "izz"))
    xy, xz, yz = (
        _numbers(reader, inertia.first(tag), (0.0,), xml.MAX_INERTIA)[0] for tag in ("ixy", "ixz", "iyz")
    )
    tensor: Mat3 = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    return Inertial(mass, com, tensor if turn == IDENTITY else turn_tensor(turn, tensor))


def _usual(file: _File, reader: Reader, parent: Element, tag: str, bound: float) -> float:
    """A mass or a moment; 1 where it is absent, as SDFormat means it, with a doubt."""
    child = parent.first(tag)
    if child is None or not child.text:
        file.draft.doubts.append(
            f"{reader.owner}: <{parent.tag}> on line {parent.line} has no <{tag}>, taken as 1, as SDFormat means "
            "it; add it"
        )
    return _numbers(reader, child, (1.0,), bound)[0]


def _needed(reader: Reader, parent: Element, tag: str, bound: float) -> float:
    child = parent.first(tag)
    if child is None or not child.text:
        reader.report(f"{reader.owner}: <{parent.tag}> on line {parent.line} has no <{tag}>; add it")
    return _numbers(reader, child, (0.0,), bound)[0]


def _shape(element: Element) -> Shape | None:
    """A plain solid or a mesh; None for the rest, and for what cannot be read: nothing is computed from it."""
    geometry = element.first("geometry") if element.tag in ("visual", "collision") else None
    if geometry is None:
        return None
    faults: list[str] = []
    reader = Reader(faults.append, element.tag)
    place = _pose(reader, element.first("pose"))
    for solid in geometry.children:
        if solid.tag == "mesh":
            scale = _numbers(reader, solid.first("scale"), (1.0, 1.0, 1.0))
            shape = Shape("mesh", scale, *place, _text(solid, "uri"), element.tag)
        elif solid.tag in SOLIDS:
            zero = ORIGIN if solid.tag == "box" else (0.0,)
            size = [x for tag in SOLIDS[solid.tag] for x in _numbers(reader, solid.first(tag), zero)]
            shape = Shape(solid.tag, tuple(size), *place, "", element.tag)
        else:
            continue
        return None if faults else shape
    return None


# --- joints ----------------------------------------------------------------


def _joints(model: Element) -> list[Element]:
    """The joints, free ones among them, which SDFormat does not have."""
    return [element for element in model.children if element.tag in ("joint", own.JOINT)]


def _joint(file: _File, element: Element) -> list[Joint]:
    """The joint, and the weld from its frame to the link's where they differ."""
    name, kind = _name(file, element), element.get("type")
    reader = Reader(file.draft.problems.append, f"joint {name!r} (line {element.line})")
    parent, child = (_end(reader, element, role) for role in ("parent", "child"))
    if child not in file.frames or (parent not in file.frames and parent != "world"):
        return [Joint(name, kind, parent, child, line=element.line)]  # validation names what does not exist
    here = file.where(name)
    place, turn = compose(inverse_pose(file.where(parent)), here)
    back = compose(inverse_pose(here), file.where(child))
    apart = file.frames[name][1] != HERE or file.frames[name][0] != child
    moved = f"{child}_{name}" if apart and kind != "fixed" else child
    if kind == "fixed":
        place, turn = compose((place, turn), back)
    axis = element.first("axis")
    joint = Joint(
        name,
        KINDS.get(kind, kind),
        parent,
        moved,
        place,
        turn,
        _axis(file, reader, axis, here),
        _axis(file, reader, element.first("axis2"), here) if element.first("axis2") else None,
        _lead(reader, element) if kind == "screw" else 0.0,
        _limit(reader, axis),
        _mimic(reader, axis),
        element.line,
        _dynamics(reader, element, axis),
    )
    if moved == child:
        return [joint]
    file.draft.links.append(Link(moved, line=element.line))
    return [joint, Joint(f"{name}_fixed", "fixed", moved, child, *back, line=element.line)]


def _end(reader: Reader, element: Element, role: str) -> str:
    name = _text(element, role)
    if not name:
        reader.report(f"{reader.owner} names no {role} link; add <{role}>")
    return name or f"<{role}>"


def _axis(file: _File, reader: Reader, element: Element | None, here: FramePose) -> Vec3:
    """The axis in the frame of the joint, from the frame that it is expressed in."""
    xyz = element.first("xyz") if element else None
    if element is None or xyz is None:
        return (0.0, 0.0, 1.0)
    axis = _vec(_numbers(reader, xyz, (0.0, 0.0, 1.0)))
    frame = xyz.get("expressed_in")
    if file.old_axes or unread.true(_text(element, "use_parent_model_frame")):
        frame = MODEL
    if not frame:
        return axis
    return apply(matmul(transpose(here[1]), file.where(frame)[1]), axis)


def _lead(reader: Reader, element: Element) -> float:
    """Metres per revolution; the older thread_pitch is radians per metre, left-handed."""
    if element.first("screw_thread_pitch"):
        return _needed(reader, element, "screw_thread_pitch", xml.MAX_LENGTH)
    pitch = _needed(reader, element, "thread_pitch", xml.MAX_LENGTH)
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
    return values.bound(_numbers(reader, element, (0.0,), xml.ANY)[0])


def _dynamics(reader: Reader, joint: Element, axis: Element | None) -> JointDynamics | None:
    """<dynamics> of the axis, and the rotor that Drake reads; what acts on a second axis is not read."""
    dynamics = axis.first("dynamics") if axis else None
    tags = ("damping", "friction", "spring_stiffness", "spring_reference")
    damping, friction, stiffness, reference = (
        _numbers(reader, dynamics.first(tag) if dynamics else None, (0.0,), xml.MAX_INERTIA)[0] for tag in tags
    )
    rotor, ratio = (_numbers(reader, joint.first(f"drake:{tag}"), (x,), xml.MAX_INERTIA)[0]
                    for tag, x in (("rotor_inertia", 0.0), ("gear_ratio", 1.0)))  # fmt: skip
    return JointDynamics(
        rotor * ratio * ratio, damping, friction=friction, stiffness=stiffness, reference=reference
    )


def _mimic(reader: Reader, axis: Element | None) -> Mimic | None:
    mimic = axis.first("mimic") if axis else None
    if mimic is None:
        return None
    ratio, offset, reference = (
        _numbers(reader, mimic.first(tag), (default,))[0]
        for tag, default in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
    )
    return Mimic(mimic.get("joint"), ratio, offset - ratio * reference)
