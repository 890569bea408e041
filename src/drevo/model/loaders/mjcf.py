"""MJCF (MuJoCo XML): the tree of bodies with joints and inertias. Mesh files are never opened.

A body with several joints becomes several links, the ones between without mass (BODY_JOINT); a joint whose
`pos` is not zero turns a link at its anchor, to which the body is welded. A free joint counts from the
world's origin, as in MuJoCo, so that its q is the pose of the body. What Drevo does not model (armature,
damping, equality constraints, actuators, tendons) is listed in the notes.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from drevo.errors import ModelError
from drevo.io import xml
from drevo.io.xml import Element, Reader
from drevo.model.description import IDENTITY, ORIGIN, Inertial, Joint, Limit, Link, Mat, Shape, Vec
from drevo.model.loaders import solids
from drevo.model.rotations import (
    from_axis_angle,
    from_quaternion,
    from_z_to,
    matmul,
    transpose,
    turn_tensor,
    unit,
)
from drevo.model.validation import GRAVITY, Draft

KINDS = {"hinge": "revolute", "slide": "prismatic", "ball": "spherical", "free": "free"}
SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}
ALTERS_MASS = ("boundmass", "boundinertia", "settotalmass")  # compiler settings, above zero
ALTERS_TREE = ("frame", "replicate", "attach", "composite", "flexcomp", "include")
NOT_MODELLED = ("armature", "damping", "frictionloss", "stiffness", "ref", "springref")
NOTED = ("equality", "tendon", "actuator", "contact", "deformable", "flex", "plugin")
TURNS = ("quat", "euler", "axisangle", "xyaxes", "zaxis")
DEFAULTED = {  # what we read of an element that has defaults
    "joint": ("type", "pos", "axis", "range", "limited", *NOT_MODELLED),
    "geom": (
        *("type", "pos", *TURNS, "fromto", "size", "mass", "density", "group", "mesh", "shellinertia"),
        *("contype", "conaffinity"),
    ),
}
MOST_CLASSES = 10_000

Classes = dict[str, dict[str, dict[str, str]]]  # class -> tag -> attributes


@dataclass(slots=True)
class _File:
    """What holds for the whole file: settings, default classes, and the draft that grows."""

    draft: Draft
    compiler: dict[str, str]
    classes: Classes
    names: set[str] = field(default_factory=set)
    taken: Counter[str] = field(default_factory=Counter)
    unmodelled: Counter[str] = field(default_factory=Counter)

    @property
    def radian(self) -> bool:
        return self.compiler.get("angle", "degree") == "radian"

    def angle(self, value: float) -> float:
        return value if self.radian else math.radians(value)

    def unused(self, name: str) -> str:
        """The name itself, or with a number where another element has it."""
        found = name
        while found in self.names:
            self.taken[name] += 1
            found = f"{name}_{self.taken[name] + 1}"
        self.names.add(found)
        return found

    def attributes(self, element: Element, childclass: str) -> Element:
        """The element with what its default class says filled in."""
        name = element.get("class") or childclass or "main"
        if name not in self.classes:
            self.draft.problems.append(
                f"<{element.tag}> on line {element.line} has the unknown class {name!r}; define it"
            )
            return element
        tag = "joint" if element.tag == "freejoint" else element.tag
        usual = self.classes[name].get(tag, {})
        if any(turn in element.attributes for turn in TURNS):  # its own orientation is the one that holds
            usual = {key: value for key, value in usual.items() if key not in TURNS}
        return Element(element.tag, {**usual, **element.attributes}, element.line)


def draft_of(root: Element, gravity: Vec = GRAVITY, source: str = "") -> Draft:
    """What the elements say, not yet judged; a gravity other than the default outdoes the file's."""
    if root.tag != "mujoco":
        raise ModelError(
            f"the root element is <{root.tag[:40]}> on line {root.line}; an MJCF file begins with <mujoco>"
        )
    draft = Draft(root.get("model") or "mujoco", links=[Link("world")], source=source)
    compiler = {key: value for element in root.all("compiler") for key, value in element.attributes.items()}
    file = _File(draft, compiler, {"main": {}}, {"world"})
    draft.gravity = gravity if gravity != GRAVITY else _gravity(file, root)
    _check_settings(file, root)
    for element in root.all("default"):
        _read_defaults(file, element, "main", {})
    _reserve_names(file, root)
    _read_bodies(file, root)
    _note(file, root)
    return draft


def _gravity(file: _File, root: Element) -> Vec:
    gravity = GRAVITY
    for option in root.all("option"):
        x, y, z = Reader(file.draft.problems.append, "option").vector(option, "gravity", gravity)
        gravity = (x, y, z)
    return gravity


def _check_settings(file: _File, root: Element) -> None:
    problems, compiler = file.draft.problems, file.compiler
    if compiler.get("coordinate", "local") != "local":
        problems.append("compiler: coordinate='global' is not read; save the model with local coordinates")
    if compiler.get("angle", "degree") not in ("degree", "radian"):
        problems.append(f"compiler: angle={compiler['angle']!r} is neither 'degree' nor 'radian'")
    sequence = compiler.get("eulerseq", "xyz")
    if len(sequence) != 3 or set(sequence.lower()) - set("xyz"):
        problems.append(f"compiler: eulerseq={sequence[:20]!r} is not three of x, y, z, X, Y, Z")
    for setting in ALTERS_MASS:
        if compiler.get(setting, "0").strip(" +-0.") and not compiler[setting].strip().startswith("-"):
            problems.append(f"compiler: {setting} changes masses and is not read; save the compiled model instead")
    if compiler.get("balanceinertia") == "true":
        problems.append(
            "compiler: balanceinertia changes inertias and is not read; save the compiled model instead"
        )
    for element in root.walk():
        if element.tag in ALTERS_TREE and not (element.tag == "frame" and not element.children):
            problems.append(
                f"<{element.tag}> on line {element.line} is not read; save the compiled model in MuJoCo "
                "and load that"
            )


def _read_defaults(file: _File, top: Element, top_name: str, inherited: dict[str, dict[str, str]]) -> None:
    """Every class with what it inherits, outer classes first."""
    stack = [(top, top.get("class") or top_name, inherited)]
    while stack:
        element, name, above = stack.pop()
        own = {tag: dict(found) for tag, found in (file.classes.get(name) or above).items()}
        for child in element.children:
            read = DEFAULTED.get(child.tag, ())
            own.setdefault(child.tag, {}).update({a: child.attributes[a] for a in read if a in child.attributes})
        file.classes[name] = own
        if len(file.classes) > MOST_CLASSES:
            raise ModelError(f"line {element.line}: the file has more than {MOST_CLASSES} default classes")
        if element is top:
            file.classes["main"] = own
        stack += [(child, child.get("class"), own) for child in element.all("default")]


def _reserve_names(file: _File, root: Element) -> None:
    """Names in the file come before names that we make up."""
    for element in root.walk():
        if element.tag in ("body", "joint", "freejoint") and element.get("name"):
            file.names.add(element.get("name"))


def _note(file: _File, root: Element) -> None:
    notes = file.draft.notes
    for section in NOTED:
        held = Counter(child.tag for element in root.all(section) for child in element.children)
        if held:
            notes.append(f"{section} not read: " + ", ".join(f"{tag} ({n})" for tag, n in held.items()))
    if file.unmodelled:
        listed = ", ".join(f"{name} ({n})" for name, n in file.unmodelled.items())
        notes.append(f"attributes of bodies and joints that are not modelled: {listed}")


# --- bodies ----------------------------------------------------------------


def _read_bodies(file: _File, root: Element) -> None:
    """Every body below every <worldbody>, in file order."""
    stack = [
        (body, "world", world.get("childclass"))
        for world in reversed(root.all("worldbody"))
        for body in reversed(world.all("body"))
    ]
    while stack:
        element, parent, childclass = stack.pop()
        childclass = element.get("childclass") or childclass
        name = element.get("name") or file.unused("body")
        _read_body(file, element, name, parent, childclass)
        stack += [(child, name, childclass) for child in reversed(element.all("body"))]


def _read_body(file: _File, element: Element, name: str, parent: str, childclass: str) -> None:
    owner = f"body {name!r} (line {element.line})"
    reader = Reader(file.draft.problems.append, owner)
    file.unmodelled.update(a for a in ("gravcomp",) if element.get(a, "0").strip(" 0."))
    place = _vector(reader, element, "pos", ORIGIN), _turn(file, reader, element)
    _joints(file, element, name, parent, place, childclass)
    geoms = [file.attributes(geom, childclass) for geom in element.all("geom")]
    inertial = _inertial(file, reader, element.first("inertial"), geoms)
    shapes = tuple(shape for geom in geoms if (shape := _shape(file, geom)))
    file.draft.links.append(Link(name, inertial, shapes, element.line))


def _joints(file: _File, body: Element, name: str, parent: str, place: tuple[Vec, Mat], childclass: str) -> None:
    """The joints from the parent to the body, each placed in the frame that the one before moved."""
    elements = [file.attributes(e, childclass) for e in body.children if e.tag in ("joint", "freejoint")]
    (origin, turn), anchor = place, ORIGIN
    for k, element in enumerate(elements):
        joint, at = _joint(file, element, name)
        last = k == len(elements) - 1 and at == ORIGIN
        child = name if last else file.unused(f"{name}_{joint.name}")
        if joint.kind == "free":
            if parent != "world" or len(elements) > 1:
                file.draft.problems.append(
                    f"body {name!r} (line {body.line}) has a free joint, which may only be the single "
                    "joint of a body directly in the world; remove the others"
                )
            origin, turn = ORIGIN, IDENTITY
        step = _minus(at, anchor)
        origin = tuple(
            o + sum(r * s for r, s in zip(row, step, strict=True)) for o, row in zip(origin, turn, strict=True)
        )  # type: ignore[assignment]
        file.draft.joints.append(
            Joint(
                joint.name,
                joint.kind,
                parent,
                child,
                origin,
                turn,
                joint.axis,
                limit=joint.limit,
                line=joint.line,
            )
        )
        if child != name:
            file.draft.links.append(Link(child, line=element.line))
        parent, origin, turn, anchor = child, ORIGIN, IDENTITY, at
    if not elements or anchor != ORIGIN:
        origin = _minus(origin, anchor)
        weld = file.unused(f"{name}_fixed")
        file.draft.joints.append(Joint(weld, "fixed", parent, name, origin, turn, line=body.line))


def _joint(file: _File, element: Element, body: str) -> tuple[Joint, Vec]:
    """The joint without its place, and its anchor in the frame of the body."""
    kind = "free" if element.tag == "freejoint" else element.get("type", "hinge")
    name = element.get("name") or file.unused(f"{body}_joint")
    reader = Reader(file.draft.problems.append, f"joint {name!r} (line {element.line})")
    moving = kind in ("hinge", "slide")
    anchor = ORIGIN if kind in ("free", "slide") else _vector(reader, element, "pos", ORIGIN)
    axis = _vector(reader, element, "axis", (0.0, 0.0, 1.0)) if moving else (0.0, 0.0, 1.0)
    if kind != "free":
        file.unmodelled.update(a for a in NOT_MODELLED if element.get(a, "0").strip(" +-0."))
    limit = _limit(file, reader, element, kind) if moving else None
    return Joint(name, KINDS.get(kind, kind), "", "", axis=axis, limit=limit, line=element.line), anchor


def _limit(file: _File, reader: Reader, element: Element, kind: str) -> Limit | None:
    if element.get("limited", "auto") == "false" or "range" not in element.attributes:
        return None
    if element.get("limited", "auto") == "auto" and file.compiler.get("autolimits") == "false":
        return None
    lower, upper = reader.vector(element, "range", (0.0, 0.0), xml.ANY)
    return Limit(file.angle(lower), file.angle(upper)) if kind == "hinge" else Limit(lower, upper)


# --- orientation -----------------------------------------------------------


def _vector(reader: Reader, element: Element, attribute: str, default: Vec) -> Vec:
    x, y, z = reader.vector(element, attribute, default)
    return (x, y, z)


def _minus(a: Vec, b: Vec) -> Vec:
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def _turn(file: _File, reader: Reader, element: Element) -> Mat:
    """The one of quat, euler, axisangle, xyaxes, zaxis that the element has."""
    given = [a for a in TURNS if a in element.attributes]
    if not given:
        return IDENTITY
    if len(given) > 1:
        reader.report(f"{reader.owner}: <{element.tag}> has {' and '.join(given)}; keep one orientation")
    values = reader.vector(
        element,
        given[0],
        {"quat": (1.0, 0, 0, 0), "axisangle": (0, 0, 1.0, 0), "xyaxes": (1.0, 0, 0, 0, 1, 0)}.get(
            given[0], (0.0, 0.0, 1.0) if given[0] == "zaxis" else ORIGIN
        ),
    )
    try:
        return _matrix(file, given[0], values)
    except ZeroDivisionError:
        reader.report(
            f"{reader.owner}: {given[0]} of <{element.tag}> on line {element.line} has no direction; correct it"
        )
        return IDENTITY


def _matrix(file: _File, given: str, v: tuple[float, ...]) -> Mat:
    if given == "quat":
        return from_quaternion(v[1], v[2], v[3], v[0])
    if given == "axisangle":
        return from_axis_angle((v[0], v[1], v[2]), file.angle(v[3]))
    if given == "zaxis":
        return from_z_to((v[0], v[1], v[2]))
    return _from_xy((v[0], v[1], v[2]), (v[3], v[4], v[5])) if given == "xyaxes" else _from_euler(file, v)


def _from_xy(x: Vec, y: Vec) -> Mat:
    """Columns x, y made orthogonal to x, and z."""
    x = unit(x)
    along = sum(a * b for a, b in zip(x, y, strict=True))
    y = unit((y[0] - along * x[0], y[1] - along * x[1], y[2] - along * x[2]))
    z = (x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0])
    return transpose((x, y, z))


def _from_euler(file: _File, angles: tuple[float, ...]) -> Mat:
    """Turns in the order of eulerseq: a small letter about the moved axis, a capital about the fixed one."""
    axes: dict[str, Vec] = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
    turn = IDENTITY
    for letter, angle in zip(file.compiler.get("eulerseq", "xyz"), angles, strict=False):
        one = from_axis_angle(axes.get(letter.lower(), ORIGIN), file.angle(angle))
        turn = matmul(turn, one) if letter.islower() else matmul(one, turn)
    return turn


# --- inertia ---------------------------------------------------------------


def _inertial(file: _File, reader: Reader, element: Element | None, geoms: list[Element]) -> Inertial | None:
    """From <inertial>, or from the geoms where it is absent, as `inertiafromgeom` says."""
    rule = file.compiler.get("inertiafromgeom", "auto")
    if element is not None and rule != "true":
        return _explicit(file, reader, element)
    if rule == "false":
        return None
    body = solids.together(part for geom in geoms if (part := _part(file, reader, geom)))
    return body if body.mass else None


def _explicit(file: _File, reader: Reader, element: Element) -> Inertial:
    if "pos" not in element.attributes:
        reader.report(f"{reader.owner}: <inertial> on line {element.line} has no pos; add it")
    mass = reader.needed(element, element, "inertial", "mass", xml.MAX_MASS)
    com, turn = _vector(reader, element, "pos", ORIGIN), _turn(file, reader, element)
    if "fullinertia" in element.attributes:
        xx, yy, zz, xy, xz, yz = reader.vector(element, "fullinertia", (0.0,) * 6, xml.MAX_INERTIA)
        return Inertial(mass, com, turn_tensor(turn, ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))))
    if "diaginertia" not in element.attributes:
        reader.report(
            f"{reader.owner}: <inertial> on line {element.line} has no diaginertia or fullinertia; add one"
        )
    x, y, z = reader.vector(element, "diaginertia", ORIGIN, xml.MAX_INERTIA)
    return Inertial(mass, com, turn_tensor(turn, solids.diagonal((x, y, z))))


def _part(file: _File, reader: Reader, geom: Element) -> tuple[float, Vec, Mat, Vec] | None:
    """What a geom adds to its body: mass, centre, turn, principal moments."""
    kind = _kind(geom)
    if not _counts(file, reader, geom) or kind in ("plane", "hfield"):
        return None
    mass = reader.optional(geom, "mass", xml.MAX_MASS)
    density = reader.scalar(geom, "density", 1000.0, xml.MAX_MASS)
    if (density if mass is None else mass) == 0.0:
        return None
    if kind not in SIZES or geom.get("shellinertia") == "true":
        what = f"a geom of type {kind}" if kind not in SIZES else "a shell"
        reader.report(
            f"{reader.owner} takes its inertia from {what} (line {geom.line}), not read; add an <inertial>"
        )
        return None
    place, turn, size = _placed(file, reader, geom, kind)
    mass = density * solids.volume(kind, size) if mass is None else mass
    return mass, place, turn, solids.moments(kind, size, mass)


def _kind(geom: Element) -> str:
    """The type of a geom; one with a mesh and no type is a mesh."""
    return geom.get("type") or ("mesh" if geom.get("mesh") else "sphere")


def _counts(file: _File, reader: Reader, geom: Element) -> bool:
    """Whether the geom's group is within inertiagrouprange."""
    settings = Element("compiler", file.compiler, 0)
    low, high = reader.vector(settings, "inertiagrouprange", (0.0, 5.0))
    return low <= reader.scalar(geom, "group", 0.0) <= high


def _placed(file: _File, reader: Reader, geom: Element, kind: str) -> tuple[Vec, Mat, tuple[float, ...]]:
    """Centre, turn and size of a geom, from pos and an orientation or from `fromto`."""
    if "fromto" in geom.attributes and kind != "sphere":
        a, b, c, d, e, f = reader.vector(geom, "fromto", (0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
        along, radius = (a - d, b - e, c - f), _sizes(reader, geom, 1)[0]
        half = math.hypot(*along) / 2
        size = (radius, half) if SIZES[kind] == 2 else (radius, radius, half)
        return ((a + d) / 2, (b + e) / 2, (c + f) / 2), from_z_to(along) if half else IDENTITY, size
    return _vector(reader, geom, "pos", ORIGIN), _turn(file, reader, geom), _sizes(reader, geom, SIZES[kind])


def _sizes(reader: Reader, geom: Element, count: int) -> tuple[float, ...]:
    """The first `count` sizes; more of them may stand there."""
    given = geom.get("size").split()
    if len(given) < count:
        reader.report(f"{reader.owner}: <geom> on line {geom.line} has {len(given)} sizes, {count} needed")
        return (0.0,) * count
    trimmed = Element("geom", {"size": " ".join(given[:count])}, geom.line)
    size = reader.vector(trimmed, "size", (0.0,) * count)
    if min(size) <= 0.0:
        reader.report(f"{reader.owner}: <geom> on line {geom.line} has a size that is not positive; correct it")
    return size


def _shape(file: _File, geom: Element) -> Shape | None:
    """The geom as a shape, whole lengths for half ones; None for what Drevo does not draw."""
    kind = _kind(geom)
    role = "visual" if geom.get("contype") == geom.get("conaffinity") == "0" else "collision"
    faults: list[str] = []
    reader = Reader(faults.append, "geom")
    if kind == "mesh":
        place = _vector(reader, geom, "pos", ORIGIN), _turn(file, reader, geom)
        shape = Shape("mesh", (1.0, 1.0, 1.0), *place, geom.get("mesh"), role)
    elif kind in ("box", "sphere", "cylinder", "capsule"):
        origin, turn, size = _placed(file, reader, geom, kind)
        whole = tuple(2 * x for x in size) if kind == "box" else (*size[:1], *(2 * x for x in size[1:]))
        shape = Shape(kind, whole, origin, turn, "", role)
    else:
        return None
    return None if faults else shape
