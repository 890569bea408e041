"""<replicate> and <attach>, opened before anything is read: both become frames with renamed copies in them.

Tendons, equalities, pairs, actuators and sensors that refer to nothing but what is copied are copied with it.

<include>: what a file names is put in the place of the name, as if it stood there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from ....errors import ModelError
from ....io import xml
from ....io.files import Files
from ....io.xml import Budget, Element, Reader
from ...description import ORIGIN, Mat3, Vec3
from ...rotations import add_vectors, apply

MODEL_SUFFIX = " model"  # of a <frame> that we make: what stands in it is of the attached model of this name
SECTIONS = ("tendon", "equality", "contact", "actuator", "sensor")  # each refers to those before it
REFERENCES = {
    **{f"{kind}{k}": kind for kind in ("joint", "body", "site", "geom", "tendon") for k in ("", "1", "2")},
    **dict.fromkeys(("sidesite", "refsite", "cranksite", "slidersite"), "site"), "jointinparent": "joint",
    "actuator": "actuator", "objname": "", "refname": "",
}  # fmt: skip
NAMED_KINDS = {"freejoint": "joint", "xbody": "body", **dict.fromkeys(("fixed", "spatial"), "tendon")}
Complaint = Callable[[str], object]
EulerRotation = Callable[[Vec3], Mat3]


def expand(
    root: Element, models: dict[str, Element], turn: EulerRotation, report: Complaint, budget: Budget
) -> None:
    """Open every <replicate> and <attach> below the root, inner ones first.

    `models`: name -> root of what may be attached; `turn`: the rotation of Euler angles as the file writes them.
    """
    for element in reversed(list(root.walk())):
        if element.tag == "replicate":
            _replicate(root, element, turn, report, budget)
        elif element.tag == "attach":
            _attach(root, element, models, report, budget)


def _replicate(root: Element, element: Element, turn: EulerRotation, report: Complaint, budget: Budget) -> None:
    """Copies in frames: the k-th turned by k times the angles of `euler`, each `offset` from the one before."""
    reader = Reader(report, f"<replicate> on line {element.line}")
    count = max(round(reader.scalar(element, "count", 0.0, xml.MAX_ELEMENTS)), 0)
    offset, euler = reader.vector(element, "offset", ORIGIN), reader.vector(element, "euler", ORIGIN)
    sep, held, place = element.get("sep"), element.children, ORIGIN
    names, sections = _names(held), [x for kind in SECTIONS for x in root.all(kind)]
    element.tag, element.attributes, element.children = "frame", {}, []
    for k in range(count):
        angles = (k * euler[0], k * euler[1], k * euler[2])
        frame = Element("frame", {"pos": _text(place), "euler": _text(angles)}, element.line)
        suffix = f"{sep}{k:0{len(str(count))}}"
        frame.children = [copied(child, "", suffix, budget) for child in held]
        element.children.append(frame)
        root.children += [_shared(x, names, "", suffix, budget) for x in sections]
        place = add_vectors(place, apply(turn(angles), (offset[0], offset[1], offset[2])))
    for section in (x for top in sections for x in top.walk() if x.tag == top.tag):
        section.children = [x for x in section.children if not _within(x, names)]


def _text(numbers: Vec3) -> str:
    return " ".join(map(repr, numbers))


def _attach(
    outer: Element, element: Element, models: dict[str, Element], report: Complaint, budget: Budget
) -> None:
    """A body or a frame of another model, or all of its world."""
    name, prefix = element.get("model"), element.get("prefix")
    kind = "body" if element.get("body") else "frame"
    part = element.get(kind)
    element.tag, element.attributes, root = "frame", {MODEL_SUFFIX: name}, models.get(name)
    if root is None:
        report(f"<attach> on line {element.line} names the model {name!r}, which no <asset> has; correct the name")
        return
    attached = [held for world in root.all("worldbody") for held in world.children]
    if part:
        inside = [e for world in root.all("worldbody") for e in world.walk() if e.tag == kind]
        attached = [e for e in inside if e.get("name") == part][:1]
        if not attached:
            report(f"<attach> on line {element.line} names the {kind} {part!r}, which the model {name!r} has not")
    element.children = [copied(child, prefix, "", budget) for child in attached]
    names = _names(attached)
    for section in (x for kind in SECTIONS for x in root.all(kind)):
        twin = _shared(section, names, prefix, "", budget)
        held = [twin] if MODEL_SUFFIX in twin.attributes else twin.children  # of a model that this one attaches
        outer.children.append(Element(twin.tag, {MODEL_SUFFIX: name}, twin.line, held))


def _names(held: list[Element]) -> set[str]:
    """Kinds and names of what stands in elements, with the world."""
    names = {
        f"{NAMED_KINDS.get(x.tag, x.tag)} {x.get('name')}" for top in held for x in top.walk() if x.get("name")
    }
    return names | {"body world"}


def _within(element: Element, names: set[str]) -> bool:
    """True if an element beside the bodies refers to something, and to these alone."""
    parts = [(x, key) for x in element.walk() for key in REFERENCES if x.get(key)]
    kinds = [REFERENCES[key] or x.get(key.replace("name", "type")) for x, key in parts]
    return bool(parts) and all(
        f"{NAMED_KINDS.get(kind, kind)} {x.get(key)}" in names for (x, key), kind in zip(parts, kinds)
    )


def _shared(section: Element, names: set[str], prefix: str, suffix: str, budget: Budget) -> Element:
    """A section with those elements that refer to these names alone, renamed; their own names join these."""
    twin = Element(section.tag, section.attributes, section.line)
    for child in section.children:
        if child.tag == section.tag:  # of an attached model
            twin.children.append(_shared(child, names, prefix, suffix, budget))
        elif _within(child, names):
            kind = "actuator" if section.tag == "actuator" else NAMED_KINDS.get(child.tag, child.tag)
            names.add(f"{kind} {child.get('name')}")
            twin.children.append(copied(child, prefix, suffix, budget))
    return twin


def copied(top: Element, prefix: str, suffix: str, budget: Budget) -> Element:
    """An element and all below it, renamed, and what it refers to."""
    twin = _twin(top, prefix, suffix)
    stack = [(top, twin)]
    while stack:
        old, new = stack.pop()
        if wrong := budget.spend(old.tag):
            raise ModelError(
                f"<{old.tag}> on line {old.line}: {wrong}; the file is refused as a robot description"
            )
        new.children = [_twin(child, prefix, suffix) for child in old.children]
        stack += zip(old.children, new.children)
    return twin


def _twin(element: Element, prefix: str, suffix: str) -> Element:
    attributes = {
        key: f"{prefix}{value}{suffix}" if value and _names_copied(key, value) else value
        for key, value in element.attributes.items()
    }
    return Element(element.tag, attributes, element.line)


def _names_copied(key: str, value: str) -> bool:
    return key == "name" or (key in REFERENCES and value != "world")


ROOTS = ("mujoco", "mujocoinclude")
MAX_INCLUDE_DEPTH = 32  # a file that names a file that names ...


class IncludedFrom(NamedTuple):
    """The place of an element: in a file of this folder, included by these files."""

    folder: str
    chain: tuple[str, ...] = ()


def include(root: Element, folder: str, source: str, files: Files, budget: Budget) -> None:
    """Put what every <include> names in its place: a file in the folder of the root, or else in its own."""

    def spliced(element: Element, place: IncludedFrom) -> list[Element]:
        out: list[Element] = []
        for child in element.children:
            if child.tag == "include":
                inner, top = _opened(child, folder, place, files, budget)
                out += spliced(top, inner)
            else:
                out.append(child)
                pending.append((child, place))
        return out

    pending = [(root, IncludedFrom(folder, (os.path.realpath(source),)))]
    while pending:
        element, place = pending.pop()
        element.children = spliced(element, place)


def _opened(
    element: Element, folder: str, place: IncludedFrom, files: Files, budget: Budget
) -> tuple[IncludedFrom, Element]:
    """The root of the file that an <include> names."""
    label = f"<include> on line {element.line}"
    try:
        path = files.find(element.get("file"), (folder, place.folder))
        real = os.path.realpath(path)
        if real in place.chain or len(place.chain) > MAX_INCLUDE_DEPTH:
            raise ModelError(
                f"{element.get('file')!r} includes itself or too many files in each other; take it out"
            )
        data = files.read(path, xml.MAX_XML_BYTES, xml.WEIGHT)
    except ModelError as error:
        raise ModelError(f"{label}: {error}") from None
    name = os.path.basename(path)
    try:
        root = xml.parse(data, file=name, budget=budget)
    except ModelError as error:
        raise ModelError(f"{label}, {name!r}: {error}") from None
    if root.tag not in ROOTS:
        raise ModelError(f"{label}: {name!r} begins with <{root.tag[:40]}>; <mujoco> or <mujocoinclude> is needed")
    return IncludedFrom(os.path.dirname(path), (*place.chain, real)), root
