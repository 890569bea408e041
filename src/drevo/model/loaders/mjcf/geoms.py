"""Geoms of an MJCF file: where they stand, how large they are, what they weigh, what they look like."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from ....errors import ModelError
from ....io import xml
from ....io.xml import Element, Reader
from ...description import IDENTITY, ORIGIN, Inertial, Mat3, Shape, Vec3
from ...rotations import add_vectors, apply, from_z_to, turn_tensor
from .. import solids
from ..solids import MassProperties
from .file import IDENTITY_POSE, File, FramePose, placed_in, read_vector, rotation_of

SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}
WEIGHTLESS = ("plane", "hfield")
ALONG = (0.0, 0.0, 0.0, 0.0, 0.0, 1.0)  # of fromto

Complaint = Callable[[str], object]


@dataclass(slots=True)
class SolidGeom:
    """A geom with what its default class says: where it stands and how large it is, read once for all uses."""

    file: File
    element: Element
    kind: str
    place: Vec3 = ORIGIN
    turn: Mat3 = IDENTITY
    size: tuple[float, ...] = ()
    faults: tuple[str, ...] = ()
    fitted: str = ""  # the plain solid that stands for the mesh


def geom_of(file: File, owner: str, element: Element, frame: FramePose = IDENTITY_POSE) -> SolidGeom:
    """A geom as it is read, one with a mesh and no type as a mesh; its faults are kept for who needs it."""
    mesh = element.get("mesh")
    kind, fitted = element.get("type") or ("mesh" if mesh else "sphere"), ""
    if kind in SIZES and mesh:
        kind, fitted = "mesh", kind
    faults: list[str] = []
    reader = Reader(faults.append, owner)
    if kind in SIZES:
        place, turn, size = _placed(file, reader, element, kind)
    elif kind in ("mesh", "plane", "hfield"):
        place, turn = read_vector(reader, element, "pos", ORIGIN), rotation_of(file, reader, element)
        size = (1.0, 1.0, 1.0) if kind == "mesh" else ()
    else:
        return SolidGeom(file, element, kind)
    return SolidGeom(file, element, kind, *placed_in(frame, (place, turn)), size, tuple(faults), fitted)


def inertial_of_geoms(reader: Reader, geoms: Iterable[SolidGeom], lack: Complaint) -> Inertial | None:
    """Mass, centre and inertia of the geoms together; None where they weigh nothing."""
    body = solids.combined_inertia(part for geom in geoms if (part := _part(reader, geom, lack)))
    return body if body.mass else None


def in_groups(reader: Reader, geom: SolidGeom) -> bool:
    """True if the group of a geom is one of those that make inertias."""
    low, high = geom.file.groups
    return low <= reader.scalar(geom.element, "group", 0.0) <= high


def shape_of(geom: SolidGeom) -> Shape | None:
    """The geom as a shape, whole lengths for half ones; None for what Drevo does not draw."""
    if geom.faults or geom.kind not in ("mesh", "box", "sphere", "cylinder", "capsule"):
        return None
    get, size = geom.element.get, geom.size
    if geom.kind == "mesh" and not get("mesh"):
        return None  # of a compiled model
    role = "visual" if get("contype") == get("conaffinity") == "0" else "collision"
    if geom.kind == "box":
        size = (2 * size[0], 2 * size[1], 2 * size[2])
    elif geom.kind != "mesh":
        size = (size[0], *(2 * x for x in size[1:]))
    return Shape(geom.kind, size, geom.place, geom.turn, get("mesh") if geom.kind == "mesh" else "", role)


# --- what they weigh ---------------------------------------------------------------------------------------------


def _part(reader: Reader, geom: SolidGeom, lack: Complaint) -> tuple[float, Vec3, Mat3] | None:
    """The part of a geom in the inertia of its body: mass, centre, tensor, in the axes of the body."""
    element = geom.element
    if geom.kind in WEIGHTLESS:
        return None
    mass = reader.optional(element, "mass", xml.MAX_MASS)
    density = reader.scalar(element, "density", 1000.0, xml.MAX_MASS)
    given_as, amount = ("density", density) if mass is None else ("mass", mass)
    if amount < 0.0:
        reader.report(
            f"{reader.owner}: <geom> on line {element.line} has the negative {given_as} {amount:g}; correct it"
        )
    if amount <= 0.0:
        return None
    for fault in geom.faults:
        reader.report(fault)
    try:
        weighed = _solid(reader, geom)
    except ModelError as error:
        lack(f"{reader.owner}: its <geom> on line {element.line}: {error}")
        return None
    if weighed.volume <= 0.0:  # a fault is told already
        return None
    mass = density * weighed.volume if mass is None else mass
    k = mass / weighed.volume
    a, b, c = ((k * x, k * y, k * z) for x, y, z in weighed.tensor)
    return mass, add_vectors(geom.place, apply(geom.turn, weighed.centre)), turn_tensor(geom.turn, (a, b, c))


def _solid(reader: Reader, geom: SolidGeom) -> MassProperties:
    """A geom at density one, in its own axes."""
    shell = geom.element.get("shellinertia") == "true"
    if geom.kind in SIZES:
        return solids.solid(geom.kind, geom.size, shell)
    if geom.kind != "mesh":
        raise ModelError(f"the type {geom.kind!r} has no inertia that is read; give the body an <inertial>")
    of_mesh = geom.file.meshes.solid(geom.element.get("mesh"))
    return _fit(reader, geom, of_mesh, shell) if geom.fitted else of_mesh


def _fit(reader: Reader, geom: SolidGeom, mesh: MassProperties, shell: bool) -> MassProperties:
    """The plain solid with about the mesh's moments, the longest side along z."""
    if geom.file.compiler.get("fitaabb") == "true":
        raise ModelError("fitaabb fits a solid to the box of a mesh, which is not read; set it to false")
    moments, axes = np.linalg.eigh(np.array(mesh.tensor))
    moments, axes = moments[::-1], axes[:, ::-1]
    half = 0.5 * np.sqrt(np.maximum(6.0 * (moments.sum() - 2.0 * moments) / mesh.volume, 0.0))
    a, b, c = (float(x) for x in half * reader.scalar(geom.element, "fitscale", 1.0))
    around = (a + b) / 2
    size = {
        "sphere": ((a + b + c) / 3,),
        "capsule": (around, max(0.0, c - around / 2)),
        "cylinder": (around, c),
    }.get(geom.fitted, (a, b, c))
    fitted = solids.solid(geom.fitted, size, shell)
    turn = (axes * np.linalg.det(axes)).tolist()
    tensor = turn_tensor((tuple(turn[0]), tuple(turn[1]), tuple(turn[2])), fitted.tensor)
    return MassProperties(fitted.volume, mesh.centre, tensor)


# --- where they stand --------------------------------------------------------------------------------------------


def _placed(file: File, reader: Reader, geom: Element, kind: str) -> tuple[Vec3, Mat3, tuple[float, ...]]:
    """Centre, turn and size of a geom, from pos and an orientation or from `fromto`."""
    if kind != "sphere" and (pose := pose_of_ends(reader, geom)):
        a, b, c, d, e, f = reader.vector(geom, "fromto", ALONG)
        radius, half = _sizes(reader, geom, 1)[0], math.hypot(a - d, b - e, c - f) / 2
        return *pose, (radius, half) if SIZES[kind] == 2 else (radius, radius, half)
    return (
        read_vector(reader, geom, "pos", ORIGIN),
        rotation_of(file, reader, geom),
        _sizes(reader, geom, SIZES[kind]),
    )


def pose_of_ends(reader: Reader, element: Element) -> FramePose | None:
    """The pose of a geom or a site that `fromto` places; None where it has none."""
    if "fromto" not in element.attributes:
        return None
    a, b, c, d, e, f = reader.vector(element, "fromto", ALONG)
    along = (a - d, b - e, c - f)
    return ((a + d) / 2, (b + e) / 2, (c + f) / 2), from_z_to(along) if any(along) else IDENTITY


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
