"""Contact in an MJCF file, and its time stepping: geoms, explicit pairs, softness of limits, <option>."""

from __future__ import annotations

from itertools import chain

import numpy as np

from ....errors import ModelError
from ....io import meshes, xml
from ....io.images import read_heights
from ....io.xml import Element, Reader
from ...contact import DRAGGED, GEOM_SIZES, PAIR_FRICTION, ContactPair, Geom
from ...description import Vec3
from ...draft import unused
from ...rotations import quaternion_of
from ..solids import hull_of, principal_axes
from .equality import Layout
from .file import File, FramePose, PlacedElement, in_section, placed_in, read_some
from .geoms import SolidGeom, geom_of
from .meshes import asset_name
from .settings import read_friction, read_solimp, read_solref, read_whole

ENDS = ("geom1", "geom2")
MAX_FIELD_NODES = 2**18  # of a height field
COMPILED = "compiled"  # content of a height field whose heights are shares of its largest as they stand
Faces = tuple[tuple[int, ...], ...]
NO_HULL: tuple[Vec3, ...] = ()
NO_FACES: Faces = ()
FLUID = (0.5, 0.25, 1.5, 1.0, 1.0)  # of fluidcoef
NO_SURFACE_VELOCITY = (0.0,) * 6  # of a surface


def read_world(file: File, inside: list[PlacedElement]) -> list[SolidGeom]:
    """The geoms that stand in the world itself."""
    geoms = [
        geom_of(file_of_geom, f"the world (line {geom.line})", file_of_geom.attributes(geom, childclass), within)
        for file_of_geom, geom, childclass, within in inside
        if geom.tag == "geom"
    ]
    read_geoms("world", geoms)
    return geoms


def read_geoms(body: str, geoms: list[SolidGeom]) -> None:
    """Those of a body that may touch; what has no collider here is listed by its kind."""
    for k, geom in enumerate(geoms):
        file, element = geom.file, geom.element
        given_name = element.get("name")
        faults = list(geom.faults)
        reader = Reader(faults.append, f"geom on line {element.line} of body {body!r}")
        bits = [read_whole(reader, element, key, 1) for key in ("contype", "conaffinity")]
        fluid: tuple[float, ...] = ()
        if element.get("fluidshape", "none") != "none" and geom.kind in DRAGGED:
            fluid = read_some(reader, element, "fluidcoef", FLUID, xml.ANY)
        elif element.get("fluidshape", "none") != "none" and file.medium:
            file.draft.ignore("fluidshape", f"a {geom.kind} geom of {body!r}")
        if not (any(bits) or fluid or given_name in _paired(file)):
            continue
        points, faces, size, pose = NO_HULL, NO_FACES, geom.size, (geom.place, geom.turn)
        if geom.kind == "mesh" and not faults:
            points, faces, pose = _hull(geom, given_name or f"a geom of {body!r}")
            size = ()
        elif geom.kind == "hfield":
            points, size = _field(reader, geom)
        if (geom.kind in ("mesh", "hfield") and not points) or geom.kind not in (*GEOM_SIZES, "mesh") or faults:
            file.draft.leave_out(f"{geom.kind} geoms", given_name or body)
            continue
        name = given_name or unused(f"{body}_geom{k}", file.geom_names)
        file.geom_names.add(name)
        if reader.scalar(element, "gap", 0.0) < 0.0:
            file.draft.ignore("a negative gap", f"geom {name!r}")
        file.draft.geoms.append(
            Geom(
                name, body, "hull" if geom.kind == "mesh" else geom.kind, size, *pose,
                read_friction(reader, element), read_whole(reader, element, "condim", 3),
                read_solref(reader, element), read_solimp(reader, element),
                reader.scalar(element, "margin", 0.0), reader.scalar(element, "gap", 0.0),
                read_whole(reader, element, "priority", 0), reader.scalar(element, "solmix", 1.0, xml.ANY),
                bits[0], bits[1], points, read_some(reader, element, "surfacevel", NO_SURFACE_VELOCITY, xml.ANY),
                faces, fluid,
            )
        )  # fmt: skip
        file.draft.problems += faults


def name_fused(file: File) -> None:
    """Welded bodies made one by `fusestatic` touch as softly as their common inertia says."""
    welded = {joint.child for joint in file.draft.joints if joint.kind == "fixed" and joint.parent != "world"}
    if file.compiler.get("fusestatic") == "true" and any(geom.link in welded for geom in file.draft.geoms):
        file.draft.ignore("fusestatic", "<compiler>")


def _hull(geom: SolidGeom, label: str) -> tuple[tuple[Vec3, ...], Faces, FramePose]:
    """The support points of a mesh in its principal axes, where MuJoCo keeps them, its faces if these are all, and
    the place of these axes. No points where meshes do not touch, or a plain solid stands for it."""
    file, name, pose = geom.file, geom.element.get("mesh"), (geom.place, geom.turn)
    if geom.fitted or not file.meshes.files.hulls:
        return NO_HULL, NO_FACES, pose
    try:
        points, triangles, polygons = file.meshes.hull(name)
        body = file.meshes.solid(name)
        turn, support = principal_axes(body.tensor), hull_of(file.draft, file.meshes.files, label, points)
    except ModelError as error:
        file.draft.notes.append(f"{label}: {error}")
        return NO_HULL, NO_FACES, pose
    corners = np.unique(triangles)
    faces = NO_FACES
    if len(support) == len(corners):
        support, number = points[corners], dict(zip(corners.tolist(), range(len(corners))))
        faces = tuple(tuple(number[k] for k in face) for face in polygons)
    along = ((np.array(support) - body.centre) @ np.array(turn)).tolist()
    return tuple((x, y, z) for x, y, z in along), faces, placed_in(pose, (body.centre, turn))


def _field(reader: Reader, geom: SolidGeom) -> tuple[tuple[Vec3, ...], tuple[float, ...]]:
    """The nodes of a height field, half its sides and its depth; none of one that is not read or too large."""
    assets = (x for section in geom.file.root.all("asset") for x in section.all("hfield"))
    asset = next((x for x in assets if asset_name(x) == geom.element.get("hfield")), None)
    if asset is None:
        return (), ()
    x, y, top, deep = reader.vector(asset, "size", (0.0, 0.0, 0.0, 0.0))
    if asset.get("file"):
        try:
            data = geom.file.meshes.files.read(geom.file.meshes.path_of(asset.get("file")), meshes.MAX_MESH_BYTES)
            shares = read_heights(data, MAX_FIELD_NODES).astype(np.float32)
        except ModelError as error:
            geom.file.draft.notes.append(f"the height field {asset_name(asset)!r}: {error}")
            return (), ()
        rows, columns = shares.shape
    else:
        rows, columns = (read_whole(reader, asset, key, 0) for key in ("nrow", "ncol"))
        if min(rows, columns) < 2 or rows * columns > MAX_FIELD_NODES:
            return (), ()
        shares = np.array(reader.vector(asset, "elevation", (0.0,) * (rows * columns), xml.ANY), np.float32)
    if asset.get("content_type") != COMPILED:  # the last row is written first
        shares = (shares - shares.min()).reshape(rows, columns)[::-1].ravel() / (np.ptp(shares) or 1.0)
    heights = shares.astype(float) * top
    grid = np.meshgrid(np.linspace(-x, x, columns), np.linspace(-y, y, rows))
    return tuple(zip(*(part.ravel().tolist() for part in (*grid, heights)))), (x, y, deep)


def _paired(file: File) -> set[str]:
    """The names of geoms in explicit pairs."""
    return {pair.get(end) for _, pair in in_section(file, "contact") if pair.tag == "pair" for end in ENDS}


def read_pair(file: File, element: Element, label: str) -> None:
    """An explicit pair; what it does not say is as usual, whatever its geoms say."""
    reader = Reader(file.draft.problems.append, label)
    known = {geom.name for geom in file.draft.geoms}
    ends = [element.get(end) for end in ENDS]
    if not set(ends) <= known:
        file.draft.leave_out("pairs of geoms that are not read", "-".join(ends))
        return
    margin, gap = (reader.optional(element, name) or 0.0 for name in ("margin", "gap"))
    if gap < 0.0:
        file.draft.ignore("a negative gap", label)
    file.draft.pairs.append(
        ContactPair(
            ends[0], ends[1], read_whole(reader, element, "condim", 3),
            read_some(reader, element, "friction", PAIR_FRICTION), read_solref(reader, element),
            read_solimp(reader, element), margin, gap, read_solref(reader, element, "solreffriction", (0.0, 0.0)),
        )
    )  # fmt: skip


def read_initial(file: File, layout: Layout) -> None:
    """q as the file puts the robot: hinges and slides at `ref`, free bodies where they stand."""
    parts: list[tuple[float, ...]] = []
    for joint in file.draft.joints:
        if joint.kind in ("revolute", "prismatic") and not joint.mimic:
            parts.append((layout.at.get(joint.name, 0.0),))
        elif joint.kind == "spherical":
            parts.append((0.0, 0.0, 0.0, 1.0))
        elif joint.kind == "free":
            place, turn = layout.bodies[joint.child]
            parts.append((*place, *quaternion_of(turn)))
    neutral = [(0.0,) if len(part) == 1 else (0.0,) * (len(part) - 1) + (1.0,) for part in parts]
    file.draft.initial = tuple(chain(*parts)) if parts != neutral else ()
