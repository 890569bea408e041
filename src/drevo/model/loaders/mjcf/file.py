"""Settings, flags and default classes that hold for a whole MJCF file; and how MJCF writes orientations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ....io.xml import MAX_LENGTH, Budget, Element, Reader
from ...description import IDENTITY, ORIGIN, Mat3, Vec3
from ...draft import Draft
from ...rotations import (
    add_vectors,
    apply,
    from_axis_angle,
    from_z_to,
    matmul,
    matrix_of_quaternion,
    transpose,
    unit,
)
from .defaults import Classes, laid_over
from .expand import MODEL_SUFFIX
from .meshes import Meshes

ROTATION_ATTRIBUTES = ("quat", "euler", "axisangle", "xyaxes", "zaxis")


class Flags:
    """The <flag> settings of an MJCF file: what they switch off and on."""

    def __init__(self, options: Iterable[Element]) -> None:
        flags = [item for option in options for flag in option.all("flag") for item in flag.attributes.items()]
        self.off, self.on = ({name for name, value in flags if value == word} for word in ("disable", "enable"))
        if "constraint" in self.off:
            self.off |= {"contact", "equality", "frictionloss", "limit"}
        if "passive" in self.off:  # older files: springs and dampers at once
            self.off |= {"spring", "damper"}
        self.passive = not {"spring", "damper"} <= self.off  # else no passive force of any kind


FramePose = tuple[Vec3, Mat3]
IDENTITY_POSE: FramePose = (ORIGIN, IDENTITY)


@dataclass(slots=True)
class File:
    """The whole MJCF file or an attached model: settings, default classes, and the draft that grows."""

    draft: Draft
    root: Element
    compiler: Element  # all of them in one
    flags: Flags
    classes: Classes = field(default_factory=lambda: {"main": {}})
    names: set[str] = field(default_factory=set)
    geom_names: set[str] = field(default_factory=set)
    taken: Counter[str] = field(default_factory=Counter)
    groups: tuple[float, ...] = (0.0, 5.0)  # of geoms that count for inertias
    medium: bool = False  # it has a density or a viscosity
    meshes: Meshes = field(default_factory=Meshes)
    models: dict[str, File] = field(default_factory=dict)  # that are attached
    budget: Budget = field(default_factory=Budget)
    depth: int = 0  # of attaching
    springdampers: dict[str, tuple[float, float]] = field(default_factory=dict)  # time constant, ratio by joint
    lifting: list[str] = field(default_factory=list)  # joints whose actuators compensate weights

    @property
    def radian(self) -> bool:
        return self.compiler.get("angle", "degree") == "radian"

    def angle(self, value: float) -> float:
        return value if self.radian else math.radians(value)

    def unused(self, name: str) -> str:
        """The name itself, or with a number where another element has it."""
        free_name = name
        while free_name in self.names:
            self.taken[name] += 1
            free_name = f"{name}_{self.taken[name] + 1}"
        self.names.add(free_name)
        return free_name

    def attributes(self, element: Element, childclass: str, tag: str = "") -> Element:
        """The element with what its default class says filled in."""
        name = element.get("class") or childclass or "main"
        if name not in self.classes:
            self.draft.problems.append(
                f"<{element.tag}> on line {element.line} has the unknown class {name!r}; define it"
            )
            return element
        usual = self.classes[name].get(tag or element.tag, {})
        if any(
            turn in element.attributes for turn in ROTATION_ATTRIBUTES
        ):  # its own orientation is the one that holds
            usual = {key: value for key, value in usual.items() if key not in ROTATION_ATTRIBUTES}
        return Element(element.tag, laid_over(usual, element.attributes), element.line)


def in_section(file: File, tag: str, within: Element | None = None) -> Iterator[tuple[File, Element]]:
    """The elements in the sections of a tag, each with the file or the attached model that it is of."""
    for section in (within or file.root).all(tag):
        of_section = file.models[section.get(MODEL_SUFFIX)] if MODEL_SUFFIX in section.attributes else file
        yield from in_section(of_section, tag, section)
        yield from ((of_section, child) for child in section.children if child.tag != tag)


def limited(file: File, element: Element, prefix: str = "") -> bool:
    """True if the range of a joint or tendon holds, or another one that `prefix` names."""
    limited = element.get(f"{prefix}limited", "auto")
    if limited == "auto":
        return f"{prefix}range" in element.attributes and file.compiler.get("autolimits") != "false"
    return limited != "false" and f"{prefix}range" in element.attributes


# --- frames and orientation -----------------------------------------------------------


class PlacedElement(NamedTuple):
    """An element in a body, or in the frames in it: its file, its default class, and where the frames put it."""

    file: File
    element: Element
    childclass: str
    frame: FramePose = IDENTITY_POSE


def held_in(file: File, top: Element, childclass: str) -> list[PlacedElement]:
    """The children of an element in file order, frames opened; a frame only places what it holds."""
    placed: list[PlacedElement] = []
    stack = [PlacedElement(file, child, childclass) for child in reversed(top.children)]
    while stack:
        file, element, childclass, frame = held = stack.pop()
        if element.tag != "frame":
            placed.append(held)
            continue
        reader = Reader(file.draft.problems.append, f"<frame> (line {element.line})")
        frame = placed_in(frame, (read_vector(reader, element, "pos", ORIGIN), rotation_of(file, reader, element)))
        childclass = element.get("childclass") or childclass
        if MODEL_SUFFIX in element.attributes:  # classes and settings of its own
            file, childclass = file.models.get(element.get(MODEL_SUFFIX), file), ""
        stack += [PlacedElement(file, child, childclass, frame) for child in reversed(element.children)]
    return placed


def placed_in(frame: FramePose, inner: FramePose) -> FramePose:
    """A placement that is given in a frame, outside of it."""
    if frame == IDENTITY_POSE:
        return inner
    return add_vectors(frame[0], apply(frame[1], inner[0])), matmul(frame[1], inner[1])


def read_vector(reader: Reader, element: Element, attribute: str, default: Vec3) -> Vec3:
    x, y, z = reader.vector(element, attribute, default)
    return (x, y, z)


def read_some(
    reader: Reader, element: Element, attribute: str, default: tuple[float, ...], bound: float = MAX_LENGTH
) -> tuple[float, ...]:
    """As many numbers as the default has; the first of them where fewer stand there, as MuJoCo reads some."""
    count = min(len(element.get(attribute).split()) or len(default), len(default))
    return reader.vector(element, attribute, default[:count], bound) + default[count:]


def minus(a: Vec3, b: Vec3) -> Vec3:
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def rotation_of(file: File, reader: Reader, element: Element) -> Mat3:
    """The one of quat, euler, axisangle, xyaxes, zaxis that the element has."""
    given = [a for a in ROTATION_ATTRIBUTES if a in element.attributes]
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


def _matrix(file: File, given: str, v: tuple[float, ...]) -> Mat3:
    if given == "quat":
        return matrix_of_quaternion(v[1], v[2], v[3], v[0])
    if given == "axisangle":
        return from_axis_angle((v[0], v[1], v[2]), file.angle(v[3]))
    if given == "zaxis":
        return from_z_to((v[0], v[1], v[2]))
    return _from_xy((v[0], v[1], v[2]), (v[3], v[4], v[5])) if given == "xyaxes" else from_euler(file, v)


def _from_xy(x: Vec3, y: Vec3) -> Mat3:
    """Columns x, y made orthogonal to x, and z."""
    x = unit(x)
    along = sum(a * b for a, b in zip(x, y, strict=True))
    y = unit((y[0] - along * x[0], y[1] - along * x[1], y[2] - along * x[2]))
    z = (x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0])
    return transpose((x, y, z))


def from_euler(file: File, angles: tuple[float, ...]) -> Mat3:
    """Turns in the order of eulerseq: a small letter about the moved axis, a capital about the fixed one."""
    axes: dict[str, Vec3] = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
    turn = IDENTITY
    for letter, angle in zip(file.compiler.get("eulerseq", "xyz"), angles, strict=False):
        one = from_axis_angle(axes.get(letter.lower(), ORIGIN), file.angle(angle))
        turn = matmul(turn, one) if letter.islower() else matmul(one, turn)
    return turn
