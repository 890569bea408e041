"""MJCF (MuJoCo XML): the tree of bodies with joints and inertias. Mesh files are never opened.

A body with several joints becomes several links, the ones between without mass (BODY_JOINT); a joint whose
`pos` is not zero turns a link at its anchor, to which the body is welded. A free joint counts from the
world's origin, as in MuJoCo, so that its q is the pose of the body; q of a hinge or a slide counts from its
`ref`. What acts on the motion and is not read (`unread.MJCF`) is warned about; contacts are noted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from drevo.errors import ModelError
from drevo.io import xml
from drevo.io.xml import Element, Reader
from drevo.model.description import IDENTITY, ORIGIN, Joint, Limit, Link, Mat3, Vec3
from drevo.model.draft import GRAVITY, Draft
from drevo.model.loaders import unread
from drevo.model.loaders.mjcf_file import (
    HERE,
    File,
    FramePose,
    Held,
    held_in,
    minus,
    placed_in,
    read_defaults,
    read_vector,
    rotation_of,
)
from drevo.model.loaders.mjcf_geoms import REMEDY, geom_of, inertial_of, shape_of
from drevo.model.rotations import add_vectors, apply, from_axis_angle, matmul, unit
from drevo.model.sentences import list_counts

KINDS = {"hinge": "revolute", "slide": "prismatic", "ball": "spherical", "free": "free"}
ALTERS_MASS = ("boundmass", "boundinertia", "settotalmass")  # compiler settings, above zero
ALTERS_TREE = ("replicate", "attach", "composite", "flexcomp", "include")
NOTED = ("equality", "tendon", "actuator", "contact", "deformable", "plugin")
DEFAULTS_OF = {"spatial": "tendon", "fixed": "tendon", **dict.fromkeys(unread.EQUALITIES, "equality")}


def draft_of(root: Element, source: str = "") -> Draft:
    """What the elements say, not yet judged."""
    if root.tag != "mujoco":
        raise ModelError(
            f"the root element is <{root.tag[:40]}> on line {root.line}; an MJCF file begins with <mujoco>"
        )
    draft = Draft(root.get("model") or "mujoco", links=[Link("world")], source=source)
    file = File(draft, root, _merged(root, "compiler"), unread.Flags(root.all("option")), {"main": {}}, {"world"})
    file.groups = Reader(draft.problems.append, "compiler").vector(file.compiler, "inertiagrouprange", (0.0, 5.0))
    _read_options(file)
    _check_settings(file)
    for element in root.all("default"):
        read_defaults(file, element)
    _reserve_names(file)
    _read_bodies(file)
    _note_sections(file)
    return draft


def _merged(root: Element, tag: str) -> Element:
    """All elements of a tag as one: what a later one says holds."""
    found = root.all(tag)
    attributes = {key: value for element in found for key, value in element.attributes.items()}
    return Element(tag, attributes, found[0].line if found else root.line)


def _read_options(file: File) -> None:
    """Gravity, and what the medium does."""
    option, draft = _merged(file.root, "option"), file.draft
    if "gravity" not in file.flags.off:
        draft.gravity = read_vector(Reader(draft.problems.append, "option"), option, "gravity", GRAVITY)
    else:
        draft.gravity = ORIGIN
    label, before = f"<option> (line {option.line})", len(draft.unread)
    if file.flags.passive:
        file.flags.note(draft, "option", option.attributes, label)
        file.medium = len(draft.unread) > before
    if file.medium:
        file.flags.note(draft, "medium", option.attributes, label)


def _check_settings(file: File) -> None:
    problems, compiler = file.draft.problems, file.compiler
    if compiler.get("coordinate", "local") != "local":
        problems.append("compiler: coordinate='global' is not read; save the model with local coordinates")
    if compiler.get("angle", "degree") not in ("degree", "radian"):
        problems.append(f"compiler: angle={compiler.get('angle')!r} is neither 'degree' nor 'radian'")
    sequence = compiler.get("eulerseq", "xyz")
    if len(sequence) != 3 or set(sequence.lower()) - set("xyz"):
        problems.append(f"compiler: eulerseq={sequence[:20]!r} is not three of x, y, z, X, Y, Z")
    for setting in ALTERS_MASS:
        if not compiler.get(setting, "0").strip().startswith("-") and unread.nonzero(compiler.get(setting, "0")):
            problems.append(_alters(setting, "masses"))
    if compiler.get("balanceinertia") == "true":
        problems.append(_alters("balanceinertia", "inertias"))
    for element in file.root.walk():
        if element.tag in ALTERS_TREE:
            problems.append(f"<{element.tag}> on line {element.line} is not read; {REMEDY}")


def _alters(setting: str, what: str) -> str:
    return f"compiler: {setting} changes {what} and is not read; {REMEDY}, without {setting}"


def _reserve_names(file: File) -> None:
    """Names in the file come before names that we make up."""
    for element in file.root.walk():
        if element.tag in ("body", "joint", "freejoint") and element.get("name"):
            file.names.add(element.get("name"))


def _note_sections(file: File) -> None:
    """What stands beside the bodies: listed in the notes, and warned about where it acts on the motion."""
    draft, flags = file.draft, file.flags
    for section in NOTED:
        held = [child for element in file.root.all(section) for child in element.children]
        if held:
            draft.notes.append(f"{section} not read: {list_counts(Counter(child.tag for child in held))}")
        for child in held:
            found = file.attributes(child, "", DEFAULTS_OF.get(child.tag, "") if section != "actuator" else "")
            label = _label(child)
            if section == "equality" and found.get("active", "true") != "false" and "equality" not in flags.off:
                draft.ignore(f"equality {child.tag}", label)
            elif section == "deformable" and child.tag in unread.ELASTIC and flags.passive:
                draft.ignore(child.tag, label)
            elif section == "tendon":
                _note_tendon(file, found, label)
            elif section == "actuator":
                flags.note(draft, "actuator", found.attributes, label)
                if "actuation" not in flags.off and unread.acts_alone(found):
                    draft.ignore("the force without control", label)


def _note_tendon(file: File, tendon: Element, label: str) -> None:
    attributes = dict(tendon.attributes)
    if not _limited(file, tendon):
        attributes.pop("range", None)
    file.flags.note(file.draft, "tendon", attributes, label)


def _label(element: Element) -> str:
    """What a sentence calls an element that need not have a name."""
    name = element.get("name")
    return f"{element.tag} {name!r}" if name else f"{element.tag} on line {element.line}"


# --- bodies ----------------------------------------------------------------


def _read_bodies(file: File) -> None:
    """Every body below every <worldbody>, in file order."""
    worlds = [(held, "world") for world in file.root.all("worldbody") for held in _held(file, world)]
    stack = [(held, parent) for held, parent in reversed(worlds) if held.element.tag == "body"]
    while stack:
        (element, childclass, frame), parent = stack.pop()
        name = element.get("name") or file.unused("body")
        inside = _held(file, element, childclass)
        _read_body(file, element, name, parent, frame, inside)
        stack += [(held, name) for held in reversed(inside) if held.element.tag == "body"]


def _held(file: File, element: Element, childclass: str = "") -> list[Held]:
    return held_in(file, element, element.get("childclass") or childclass)


def _read_body(file: File, element: Element, name: str, parent: str, frame: FramePose, inside: list[Held]) -> None:
    owner = f"body {name!r} (line {element.line})"
    reader = Reader(file.draft.problems.append, owner)
    _note_body(file, element, name, {held.element.tag for held in inside})
    place = placed_in(frame, (read_vector(reader, element, "pos", ORIGIN), rotation_of(file, reader, element)))
    joints = [held for held in inside if held.element.tag in ("joint", "freejoint")]
    _joints(file, element, name, parent, place, joints)
    geoms = []
    for geom, childclass, within in inside:
        if geom.tag == "geom":
            found = file.attributes(geom, childclass)
            if file.medium:
                file.flags.note(file.draft, "geom in a medium", found.attributes, f"a geom of {owner}")
            geoms.append(geom_of(file, owner, found, within))
    inertial = inertial_of(file, reader, element.first("inertial"), geoms)
    shapes = tuple(shape for geom in geoms if (shape := shape_of(geom)))
    file.draft.links.append(Link(name, inertial, shapes, element.line))


def _note_body(file: File, body: Element, name: str, inside: set[str]) -> None:
    """What acts on the body itself and is not read."""
    flags, label = file.flags, f"body {name!r}"
    if flags.passive and any(file.draft.gravity):
        flags.note(file.draft, "body", body.attributes, label)
    if "plugin" in inside and flags.passive:
        file.draft.ignore("plugin", label)


def _joints(file: File, body: Element, name: str, parent: str, place: FramePose, joints: list[Held]) -> None:
    """The joints from the parent to the body, each placed in the frame that the one before moved."""
    (origin, turn), anchor = place, ORIGIN
    for k, held in enumerate(joints):
        element = file.attributes(held.element, held.childclass)
        joint, at = _joint(file, element, name, held.frame)
        last = k == len(joints) - 1 and at == ORIGIN
        child = name if last else file.unused(f"{name}_{joint.name}")
        if joint.kind == "free":
            _check_free(file, body, name, element, parent == "world" and len(joints) == 1)
            origin, turn = ORIGIN, IDENTITY
        step = minus(at, anchor)
        origin = add_vectors(origin, apply(turn, step))
        origin, turn = _from_reference(file, element, joint, origin, turn)
        file.draft.joints.append(replace(joint, parent=parent, child=child, origin=origin, rotation=turn))
        if child != name:
            file.draft.links.append(Link(child, line=element.line))
        parent, origin, turn, anchor = child, ORIGIN, IDENTITY, at
    if not joints or anchor != ORIGIN:
        origin = minus(origin, anchor)
        weld = file.unused(f"{name}_fixed")
        file.draft.joints.append(Joint(weld, "fixed", parent, name, origin, turn, line=body.line))


def _check_free(file: File, body: Element, name: str, joint: Element, alone: bool) -> None:
    """A free joint stands alone in a body of the world, and may turn the body's frame if nothing hangs on it."""
    if not alone:
        file.draft.problems.append(
            f"body {name!r} (line {body.line}) has a free joint, which may only be the single "
            "joint of a body directly in the world; remove the others"
        )
    align = joint.get("align", "auto")
    aligned = align == "true" or (align == "auto" and file.compiler.get("alignfree") == "true")
    if aligned and not any(element.tag == "body" for element in body.walk() if element is not body):
        file.draft.ignore("align (q is the pose of the inertial frame)", f"the free joint of body {name!r}")


def _joint(file: File, element: Element, body: str, frame: FramePose) -> tuple[Joint, Vec3]:
    """The joint without its place, and its anchor in the frame of the body."""
    kind = "free" if element.tag == "freejoint" else element.get("type", "hinge")
    name = element.get("name") or file.unused(f"{body}_joint")
    reader = Reader(file.draft.problems.append, f"joint {name!r} (line {element.line})")
    moving = kind in ("hinge", "slide")
    anchor = ORIGIN if kind in ("free", "slide") else read_vector(reader, element, "pos", ORIGIN)
    axis = read_vector(reader, element, "axis", (0.0, 0.0, 1.0)) if moving else (0.0, 0.0, 1.0)
    if frame != HERE:
        anchor = ORIGIN if kind in ("free", "slide") else placed_in(frame, (anchor, IDENTITY))[0]
        axis = apply(frame[1], axis)
    if element.tag == "joint":
        file.flags.note(file.draft, "joint", element.attributes, f"joint {name!r}")
    limit = _limit(file, reader, element, kind) if moving else None
    return Joint(name, KINDS.get(kind, kind), "", "", axis=axis, limit=limit, line=element.line), anchor


def _from_reference(file: File, element: Element, joint: Joint, origin: Vec3, turn: Mat3) -> tuple[Vec3, Mat3]:
    """Where the joint stands at q = 0, when the body stands where the file puts it at q = ref."""
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


def _limited(file: File, element: Element) -> bool:
    """Whether the range of a joint or tendon holds."""
    limited = element.get("limited", "auto")
    if limited == "auto":
        return "range" in element.attributes and file.compiler.get("autolimits") != "false"
    return limited != "false" and "range" in element.attributes


def _limit(file: File, reader: Reader, element: Element, kind: str) -> Limit | None:
    if not _limited(file, element):
        return None
    lower, upper = reader.vector(element, "range", (0.0, 0.0), xml.ANY)
    return Limit(file.angle(lower), file.angle(upper)) if kind == "hinge" else Limit(lower, upper)
