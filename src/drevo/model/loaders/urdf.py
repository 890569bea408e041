"""URDF, read strictly. Mesh files are named but never opened.

Beyond the standard, these joint types are read: `spherical` (or `ball`), `helical` (or `screw`, with <lead
value="metres per revolution"/>), `cylindrical`, and `universal` (with <axis2 xyz="..."/>, the axis that the
first one carries). `floating` is Drevo's free joint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...errors import ModelError
from ...io import xml
from ...io.files import Files
from ...io.xml import Element, Reader
from .. import values
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
    Mimic,
    Shape,
    Vec3,
)
from ..draft import Draft, list_counts, shorten
from ..rotations import from_rpy, matrix_of_quaternion, turn_tensor
from . import primitives
from .primitives import enter_geoms
from .schema import check_known, format_table
from .sdf.include import located
from .urdf_loops import LOOP_TAGS, read_loops

FramePose = tuple[Vec3, Mat3]

# What each element may hold; "once" are those that a second time would contradict.
ONCE = {
    "link": ("inertial",),
    "joint": ("origin", "parent", "child", "axis", "axis2", "lead", "limit", "mimic", "dynamics"),
    "inertial": ("origin", "mass", "inertia"),
}
KNOWN = {
    "robot": ("link", "joint", "material", *LOOP_TAGS, *primitives.TAGS),
    "link": ("inertial", "visual", "collision"),
    "joint": (*ONCE["joint"], "calibration", "safety_controller"),
    "inertial": ONCE["inertial"],
}


def draft_of(root: Element, source: str = "", files: Files | None = None) -> Draft:
    """The draft of a model as the elements of a URDF file describe it, not yet judged as a whole."""
    if root.tag != "robot":
        raise ModelError(
            f"the root element is <{root.tag[:40]}> on line {root.line}; a URDF file begins with <robot>"
        )
    _refuse_xacro(root)
    draft = Draft(root.get("name") or "robot", source=source)
    if not root.get("name"):
        draft.notes.append("the robot has no name in the file; it is called 'robot'")
    draft.links = [_link(draft, element) for element in root.all("link")]
    draft.joints = [_joint(draft, element) for element in root.all("joint")]
    primitives.read_own(draft, root)
    read_loops(draft, root)
    files = files or Files(source)
    enter_geoms(draft, dict(_friction(root)), files, lambda uri: located(uri, files, files.folder))
    _put_in_world(draft)
    draft.take_as_kinematic()
    _doubt_stray(draft, root)
    _note_unused(draft, root)
    check_known(draft, root, format_table("urdf.txt"))
    return draft


def _friction(root: Element) -> Iterator[tuple[str, float]]:
    """Sliding friction by link: Bullet's <contact><lateral_friction>, Gazebo's <mu1>."""
    for link in root.all("link"):
        contact = link.first("contact")
        if (given := contact and contact.first("lateral_friction")) and (mu := _positive(given.get("value"))):
            yield link.get("name"), mu
    for extension in root.all("gazebo"):
        for tag in ("mu1", "mu"):
            if (given := extension.first(tag)) and (mu := _positive(given.get("value") or given.text)):
                yield extension.get("reference"), mu


def _positive(text: str) -> float | None:
    """A number above zero; nothing for anything else: it is no part of the standard."""
    try:
        value = xml.parse_number(text.strip())
    except ValueError:
        return None
    return value if 0.0 < value < xml.MAX_LENGTH else None


def _doubt_stray(draft: Draft, root: Element) -> None:
    """Adds a doubt for each <dynamics> that stands in no joint."""
    for element in (root, *root.all("link")):
        for stray in element.all("dynamics"):
            draft.doubts.append(
                f"<dynamics> on line {stray.line} stands in <{element.tag}> and acts on nothing; move it into a "
                "<joint>"
            )


def _put_in_world(draft: Draft) -> None:
    """A parent "world" that no link defines is the ground, as simulators have it."""
    names = {link.name for link in draft.links}
    held = next((joint for joint in draft.joints if joint.parent == "world"), None)
    if held and "world" not in names:
        draft.links.insert(0, Link("world"))
        draft.doubts.append(
            f"{draft.at(held)} names the parent link 'world', which is not defined and taken as the ground; "
            "define it"
        )


def _refuse_xacro(root: Element) -> None:
    for child in root.children:
        if child.tag.startswith("xacro:"):
            raise ModelError(
                f"<{child.tag[:40]}> on line {child.line} is xacro, a macro language that writes URDF; "
                "name the file .xacro (then the package xacrodoc expands it), or expand it first"
            )


def _note_unused(draft: Draft, root: Element) -> None:
    """Tags that change nothing here: listed once, with how often they occur."""
    unused = Counter(
        child.tag
        for element in (root, *root.all("link"), *root.all("joint"))
        for child in element.children
        if child.tag not in KNOWN[element.tag]
    )
    if unused:
        draft.notes.append("tags not used: " + list_counts(unused))


def _name(draft: Draft, element: Element) -> str:
    name = element.get("name")
    if not name.strip():
        draft.problems.append(f"<{element.tag}> on line {element.line} has no name; give it one")
        return f"<{element.tag} on line {element.line}>"
    if len(name) > xml.MAX_NAME:
        draft.problems.append(
            f"<{element.tag}> on line {element.line} has a name longer than {xml.MAX_NAME}; shorten it"
        )
    return name


def _warn_repeated(draft: Draft, element: Element, owner: str) -> None:
    counts = Counter(child.tag for child in element.children)
    for tag in ONCE[element.tag]:
        if counts[tag] > 1 and tag not in ("parent", "child"):
            lines = shorten([str(child.line) for child in element.all(tag)])
            draft.doubts.append(
                f"{owner}: <{tag}> is given {counts[tag]} times (lines {lines}); the first is used, remove "
                "the others"
            )


def _origin(reader: Reader, element: Element | None) -> FramePose:
    """<origin xyz rpy> or <origin xyz quat_xyzw>; nothing moved or turned where it is absent."""
    x, y, z = reader.vector(element, "xyz", ORIGIN)
    if element and "quat_xyzw" in element.attributes:
        if "rpy" in element.attributes:
            reader.report(f"{reader.owner}: <origin> on line {element.line} has both rpy and quat_xyzw; keep one")
        quaternion = reader.vector(element, "quat_xyzw", (0.0, 0.0, 0.0, 1.0))
        if not abs(sum(c * c for c in quaternion) - 1.0) < 1e-3:
            reader.report(f"{reader.owner}: quat_xyzw on line {element.line} is not of length one; normalise it")
            return (x, y, z), IDENTITY
        return (x, y, z), matrix_of_quaternion(*quaternion)
    rpy = reader.vector(element, "rpy", ORIGIN)
    return (x, y, z), from_rpy(*rpy) if any(rpy) else IDENTITY


# --- links -----------------------------------------------------------------


def _link(draft: Draft, element: Element) -> Link:
    """A link element: inertial and shapes, its faults in the draft."""
    name = _name(draft, element)
    owner = f"link {name!r} (line {element.line})"
    _warn_repeated(draft, element, owner)
    inertial = element.first("inertial")
    return Link(
        name,
        _inertial(draft, inertial, owner) if inertial else None,
        _shapes(draft, element, owner),
        element.line,
    )


def _inertial(draft: Draft, element: Element, owner: str) -> Inertial:
    _warn_repeated(draft, element, owner)
    reader = Reader(draft.problems.append, owner)
    mass = reader.needed(element.first("mass"), element, "mass", "value", xml.MAX_MASS)
    com, turn = _origin(reader, element.first("origin"))
    tensor = _tensor(draft, reader, element)
    return Inertial(mass, com, tensor if turn is IDENTITY else turn_tensor(turn, tensor))


def _tensor(draft: Draft, reader: Reader, element: Element) -> Mat3:
    """Six entries of the inertia element, in its own axes."""
    inertia = element.first("inertia")
    xx, yy, zz = (reader.needed(inertia, element, "inertia", a, xml.MAX_INERTIA) for a in ("ixx", "iyy", "izz"))
    xy, xz, yz = (reader.scalar(inertia, a, 0.0, xml.MAX_INERTIA) for a in ("ixy", "ixz", "iyz"))
    absent = [a for a in ("ixy", "ixz", "iyz") if inertia and a not in inertia.attributes]
    if absent and inertia:
        draft.doubts.append(
            f"{reader.owner}: <inertia> on line {inertia.line} lacks {', '.join(absent)}, taken as zero; add them"
        )
    return ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))


def _shapes(draft: Draft, element: Element, owner: str) -> tuple[Shape, ...]:
    """The visual and collision shapes of a link; a shape that cannot be read is left out and doubted."""
    shapes = []
    for child in element.children:
        geometry = child.first("geometry") if child.tag in ("visual", "collision") else None
        if geometry is None:
            continue
        faults: list[str] = []
        reader = Reader(faults.append, f"{owner}, its {child.tag}")
        place, turn = _origin(reader, child.first("origin"))
        for solid in geometry.children:
            kind, size = _size(reader, solid)
            if kind and not faults:
                shapes.append(Shape(kind, size, place, turn, solid.get("filename"), child.tag))
        draft.doubts += [f"{fault} (the shape is left out)" for fault in faults]
    return tuple(shapes)


def _size(reader: Reader, solid: Element) -> tuple[str, tuple[float, ...]]:
    """Kind and size of a solid; no kind where it is one that Drevo does not draw."""
    if solid.tag == "mesh":
        return "mesh", reader.vector(solid, "scale", (1.0, 1.0, 1.0))
    if solid.tag == "box":
        return "box", reader.vector(solid, "size", (0.0, 0.0, 0.0))
    sizes = SHAPE_SIZES.get(solid.tag)
    if sizes is None:
        return "", ()
    return solid.tag, tuple(reader.scalar(solid, attribute, 0.0) for attribute in sizes)


# --- joints ----------------------------------------------------------------


def _joint(draft: Draft, element: Element) -> Joint:
    name, kind = _name(draft, element), element.get("type")
    owner = f"joint {name!r} (line {element.line})"
    _warn_repeated(draft, element, owner)
    reader = Reader(draft.problems.append, owner)
    place, turn = _origin(reader, element.first("origin"))
    x, y, z = reader.vector(element.first("axis"), "xyz", (1.0, 0.0, 0.0))
    return Joint(
        name,
        kind,
        _end(draft, element, "parent", owner),
        _end(draft, element, "child", owner),
        place,
        turn,
        (x, y, z),
        _axis2(reader, element),
        _lead(reader, element) if kind in ("helical", "screw") else 0.0,
        _limit(draft, element.first("limit"), owner),
        _mimic(reader, element.first("mimic")),
        element.line,
        _dynamics(reader, element.first("dynamics")),
    )


def _end(draft: Draft, element: Element, role: str, owner: str) -> str:
    """The link that <parent> or <child> names; two that differ are ambiguous."""
    names = list(dict.fromkeys(child.get("link") for child in element.all(role)))
    if not names or not names[0]:
        draft.problems.append(f"{owner} names no {role} link; add <{role} link=.../>")
        return f"<{role} of {owner}>"
    if len(names) > 1:
        draft.problems.append(
            f"{owner} names {len(names)} {role} links, {shorten(list(map(repr, names)), 4, ' and ')}; keep one"
        )
    return names[0]


def _axis2(reader: Reader, element: Element) -> Vec3 | None:
    """The second axis of a universal joint, None where none is given."""
    axis2 = element.first("axis2")
    if axis2 is None:
        return None
    x, y, z = reader.vector(axis2, "xyz", (0.0, 0.0, 0.0))
    return (x, y, z)


def _lead(reader: Reader, element: Element) -> float:
    lead = element.first("lead")
    if lead is None:
        reader.report(f'{reader.owner} is a screw without a lead; add <lead value="metres per revolution"/>')
        return 0.0
    return reader.needed(lead, element, "lead", "value")


def _limit(draft: Draft, element: Element | None, owner: str) -> Limit | None:
    """Bounds; what cannot be read of them is doubtful only, since nothing is computed from them."""
    if element is None:
        return None
    reader = Reader(lambda fault: draft.doubts.append(f"{fault} (left out)"), f"{owner}, its limit")
    for attribute in ("lower", "upper", "velocity", "effort"):
        if element.get(attribute).strip().lower().lstrip("+-") == "nan":
            draft.problems.append(f"{owner}: {attribute} of <limit> on line {element.line} is nan; correct it")
    return Limit(*(_finite(reader, element, a) for a in ("lower", "upper", "velocity", "effort")))


def _finite(reader: Reader, element: Element, attribute: str) -> float | None:
    """A bound, None where it is infinite, or so large that it is meant to be: that is no bound."""
    if element.get(attribute).strip().lower().lstrip("+-") in ("inf", "infinity"):
        return None
    return values.bound(reader.optional(element, attribute, xml.ANY))


def _dynamics(reader: Reader, element: Element | None) -> JointDynamics | None:
    """<dynamics damping friction>, and beyond the standard armature, spring_stiffness and spring_reference."""
    if element is None:
        return None
    names = ("armature", "damping", "friction", "spring_stiffness", "spring_reference")
    armature, damping, friction, stiffness, reference = (
        reader.scalar(element, name, 0.0, xml.MAX_INERTIA) for name in names
    )
    return JointDynamics(armature, damping, friction=friction, stiffness=stiffness, reference=reference)


def _mimic(reader: Reader, element: Element | None) -> Mimic | None:
    if element is None:
        return None
    if not element.get("joint"):
        reader.report(f"{reader.owner}: <mimic> on line {element.line} names no joint; add joint=...")
        return None
    return Mimic(
        element.get("joint"), reader.scalar(element, "multiplier", 1.0), reader.scalar(element, "offset", 0.0)
    )
