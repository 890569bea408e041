"""Bodies of an MJCF file: their inertias, written out or from their geoms, and what they look like."""

from __future__ import annotations

import math
from dataclasses import dataclass

from drevo.io import xml
from drevo.io.xml import Element, Reader
from drevo.model.description import IDENTITY, ORIGIN, Inertial, Mat3, Shape, Vec3
from drevo.model.loaders import solids
from drevo.model.loaders.mjcf_file import HERE, File, FramePose, placed_in, read_vector, rotation_of
from drevo.model.rotations import from_z_to, turn_tensor

SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}
REMEDY = 'write saveinertial="true" into <compiler>, save the compiled model in MuJoCo (mj_saveLastXML), load that'


@dataclass(slots=True)
class Geom:
    """A geom with what its default class says: where it stands and how large it is, read once for all uses."""

    element: Element
    kind: str
    place: Vec3 = ORIGIN
    turn: Mat3 = IDENTITY
    size: tuple[float, ...] = ()
    faults: tuple[str, ...] = ()


def geom_of(file: File, owner: str, element: Element, frame: FramePose = HERE) -> Geom:
    """A geom as it is read, one with a mesh and no type as a mesh; its faults are kept for who needs it."""
    kind = element.get("type") or ("mesh" if element.get("mesh") else "sphere")
    faults: list[str] = []
    reader = Reader(faults.append, owner)
    if kind in SIZES:
        place, turn, size = _placed(file, reader, element, kind)
    elif kind == "mesh":
        place, turn, size = (
            read_vector(reader, element, "pos", ORIGIN),
            rotation_of(file, reader, element),
            (1.0, 1.0, 1.0),
        )
    else:
        return Geom(element, kind)
    return Geom(element, kind, *placed_in(frame, (place, turn)), size, tuple(faults))


def inertial_of(file: File, reader: Reader, element: Element | None, geoms: list[Geom]) -> Inertial | None:
    """From <inertial>, or from the geoms where it is absent, as `inertiafromgeom` says."""
    rule = file.compiler.get("inertiafromgeom", "auto")
    if element is not None and rule != "true":
        return _explicit(file, reader, element)
    if rule == "false":
        return None
    body = solids.together(part for geom in geoms if (part := _part(file, reader, geom)))
    return body if body.mass else None


def shape_of(geom: Geom) -> Shape | None:
    """The geom as a shape, whole lengths for half ones; None for what Drevo does not draw."""
    if geom.faults or geom.kind not in ("mesh", "box", "sphere", "cylinder", "capsule"):
        return None
    get, size = geom.element.get, geom.size
    role = "visual" if get("contype") == get("conaffinity") == "0" else "collision"
    if geom.kind == "box":
        size = (2 * size[0], 2 * size[1], 2 * size[2])
    elif geom.kind != "mesh":
        size = (size[0], *(2 * x for x in size[1:]))
    return Shape(geom.kind, size, geom.place, geom.turn, get("mesh") if geom.kind == "mesh" else "", role)


def _explicit(file: File, reader: Reader, element: Element) -> Inertial:
    if "pos" not in element.attributes:
        reader.report(f"{reader.owner}: <inertial> on line {element.line} has no pos; add it")
    mass = reader.needed(element, element, "inertial", "mass", xml.MAX_MASS)
    com, turn = read_vector(reader, element, "pos", ORIGIN), rotation_of(file, reader, element)
    if "fullinertia" in element.attributes:
        xx, yy, zz, xy, xz, yz = reader.vector(element, "fullinertia", (0.0,) * 6, xml.MAX_INERTIA)
        return Inertial(mass, com, turn_tensor(turn, ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))))
    if "diaginertia" not in element.attributes:
        reader.report(
            f"{reader.owner}: <inertial> on line {element.line} has no diaginertia or fullinertia; add one"
        )
    x, y, z = reader.vector(element, "diaginertia", ORIGIN, xml.MAX_INERTIA)
    return Inertial(mass, com, turn_tensor(turn, solids.diagonal((x, y, z))))


def _part(file: File, reader: Reader, geom: Geom) -> tuple[float, Vec3, Mat3, Vec3] | None:
    """What a geom adds to its body: mass, centre, turn, principal moments; its group must count."""
    element, kind = geom.element, geom.kind
    low, high = file.groups
    if not low <= reader.scalar(element, "group", 0.0) <= high or kind in ("plane", "hfield"):
        return None
    mass = reader.optional(element, "mass", xml.MAX_MASS)
    density = reader.scalar(element, "density", 1000.0, xml.MAX_MASS)
    what, amount = ("density", density) if mass is None else ("mass", mass)
    if amount < 0.0:
        reader.report(
            f"{reader.owner}: <geom> on line {element.line} has the negative {what} {amount:g}; correct it"
        )
    if amount <= 0.0:
        return None
    if kind not in SIZES or element.get("shellinertia") == "true":
        what = f"a geom of type {kind}" if kind not in SIZES else "a shell"
        reader.report(
            f"{reader.owner} takes its inertia from {what} (line {element.line}), not read; add an <inertial>, or "
            + REMEDY
        )
        return None
    for fault in geom.faults:
        reader.report(fault)
    mass = density * solids.volume(kind, geom.size) if mass is None else mass
    return mass, geom.place, geom.turn, solids.moments(kind, geom.size, mass)


def _placed(file: File, reader: Reader, geom: Element, kind: str) -> tuple[Vec3, Mat3, tuple[float, ...]]:
    """Centre, turn and size of a geom, from pos and an orientation or from `fromto`."""
    if "fromto" in geom.attributes and kind != "sphere":
        a, b, c, d, e, f = reader.vector(geom, "fromto", (0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
        along, radius = (a - d, b - e, c - f), _sizes(reader, geom, 1)[0]
        half = math.hypot(*along) / 2
        size = (radius, half) if SIZES[kind] == 2 else (radius, radius, half)
        return ((a + d) / 2, (b + e) / 2, (c + f) / 2), from_z_to(along) if half else IDENTITY, size
    return (
        read_vector(reader, geom, "pos", ORIGIN),
        rotation_of(file, reader, geom),
        _sizes(reader, geom, SIZES[kind]),
    )


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
