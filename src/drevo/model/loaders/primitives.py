"""Collision shapes of URDF and SDF as geoms: they touch the ground and other bodies, not one another.

Neither format says which links of a robot may touch each other; SDF's self_collide is off by default.

Elements of Drevo's own in URDF and SDF, which other readers pass over.

Gravity, contact points and free joints as elements, and what other formats have no words for at all (loops,
couplings, tendons, what touches and drives) as JSON, field by field as in Drevo's own files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np

from ...errors import ModelError
from ...io import meshes
from ...io.files import Files
from ...io.xml import Element, Reader
from ..contact import DEFAULT_FRICTION, Geom
from ..description import ORIGIN, ContactPoint, Link, Model, Shape, Vec3
from ..draft import STANDARD_GRAVITY as USUAL
from ..draft import Draft
from . import native
from .solids import hull_of
from .writing import element, text_element

HALVED = {"box": 0, "sphere": 1, "capsule": 1, "cylinder": 1}  # how many sizes are radii


def enter_geoms(draft: Draft, friction: Mapping[str, float], files: Files, locate: Callable[[str], str]) -> None:
    """The geoms of a file that has none of Drevo's own; friction: of links, or of geoms by their names.

    locate: the path that the URI of a mesh means.
    """
    if draft.geoms:
        return
    draft.geoms = geoms_of_shapes(draft.links, friction)
    for link in draft.links:
        for k, shape in enumerate(link.shapes):
            if shape.role == "collision" and not _touches(shape):
                points = _hull(draft, files, locate, link, shape) if shape.kind == "mesh" and files.hulls else ()
                if points:
                    draft.geoms.append(
                        replace(_geom(link, k, shape, friction), kind="hull", size=(), points=points)
                    )
                else:
                    draft.leave_out(f"{shape.kind} shapes of", link.name)


def _hull(draft: Draft, files: Files, locate: Callable[[str], str], link: Link, shape: Shape) -> tuple[Vec3, ...]:
    """The support points of a mesh; none where it cannot be read, which the notes say."""
    label = f"the mesh {shape.uri.rpartition('/')[2]} of link {link.name!r}"
    try:
        path = locate(shape.uri)
        data = files.read(path, meshes.MAX_MESH_BYTES, meshes.weight(path))
        points, _ = meshes.read_mesh(data, os.path.splitext(path)[1][1:].lower())
        return hull_of(draft, files, label, points * np.array(shape.size))
    except ModelError as error:
        draft.notes.append(f"{label}: {error}")
        return ()


def geoms_of_shapes(links: Iterable[Link], friction: Mapping[str, float]) -> list[Geom]:
    """A geom for every collision shape of plain kinds."""
    geoms = []
    for link in links:
        for k, shape in enumerate(link.shapes):
            if shape.role == "collision" and _touches(shape):
                geoms.append(_geom(link, k, shape, friction))
    return geoms


def _geom(link: Link, k: int, shape: Shape, friction: Mapping[str, float]) -> Geom:
    """The collision geom of shape k of a link."""
    name = f"{link.name}_collision{k}"
    rough = (friction.get(name, friction.get(link.name, DEFAULT_FRICTION[0])), *DEFAULT_FRICTION[1:])
    size = () if shape.kind == "mesh" else half_lengths(shape)
    return Geom(name, link.name, shape.kind, size, shape.origin, shape.rotation, rough, conaffinity=0)


def _touches(shape: Shape) -> bool:
    return shape.kind in HALVED and min(shape.size) > 0.0


def half_lengths(shape: Shape) -> tuple[float, ...]:
    """The sizes of a shape with half lengths for whole ones."""
    radii = HALVED[shape.kind]
    return tuple(x if k < radii else x / 2 for k, x in enumerate(shape.size))


NAMESPACE = "drevo"
GRAVITY, CONTACT, JOINT = "drevo:gravity", "drevo:contact_point", "drevo:joint"
KINEMATIC = "drevo:kinematic"  # no link has an inertia, which SDFormat takes for 1 kg
LISTS = (
    *("loops", "couplings", "tendons", "tendon_couplings", "exclusions"),
    *("geoms", "pairs", "softness", "actuators", "sensors"),
)
TAGS = (GRAVITY, CONTACT, JOINT, KINEMATIC, *(f"drevo:{key}" for key in LISTS))


def own_elements(model: Model, gravity: bool) -> list[str]:
    """The elements as lines; gravity: with it, where it is not the usual one."""
    lines = element(GRAVITY, xyz=model.gravity) if gravity and model.gravity != USUAL else []
    for contact in model.contacts:
        lines += element(CONTACT, link=contact.link, xyz=contact.point)
    implied = list(model.geoms) == geoms_of_shapes(model.links, {})
    for key in LISTS:
        if key == "geoms" and implied:
            continue
        lines += [line for x in getattr(model, key) for line in text_element(f"drevo:{key}", native.as_json(x))]
    return lines


def read_own(draft: Draft, root: Element) -> None:
    """Reads the elements of Drevo in a robot's element."""
    reader = Reader(draft.problems.append, draft.name)
    for entry in root.all(GRAVITY):
        x, y, z = reader.vector(entry, "xyz", draft.gravity)
        draft.gravity = (x, y, z)
    for entry in root.all(CONTACT):
        x, y, z = reader.vector(entry, "xyz", ORIGIN)
        draft.contacts.append(ContactPoint(entry.get("link"), (x, y, z)))
    for key in LISTS:
        for entry in root.all(f"drevo:{key}"):
            try:
                plain = json.loads(entry.text)
            except (ValueError, RecursionError) as error:
                raise ModelError(f"<{entry.tag}> on line {entry.line} is not valid JSON: {error}") from None
            getattr(draft, key).extend(native.parts_of(key, [plain], f"<{entry.tag}> on line {entry.line}", draft))
