"""Collision shapes of URDF and SDF as geoms: they touch the ground and other bodies, not one another.

Neither format says which links of a robot may touch each other; SDF's self_collide is off by default.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np

from ...errors import ModelError
from ...io import meshes
from ...io.files import Files
from ..contact import DEFAULT_FRICTION, GEOM_SIZES, Geom
from ..description import Link, Shape, Vec3
from ..draft import Draft
from .hulls import hull_of

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
    except ModelError as error:
        draft.notes.append(f"{label}: {error}")
        return ()
    return hull_of(draft, files, label, points * np.array(shape.size))


def geoms_of_shapes(links: Iterable[Link], friction: Mapping[str, float]) -> list[Geom]:
    """A geom for every collision shape of plain kinds."""
    found = []
    for link in links:
        for k, shape in enumerate(link.shapes):
            if shape.role == "collision" and _touches(shape):
                found.append(_geom(link, k, shape, friction))
    return found


def _geom(link: Link, k: int, shape: Shape, friction: Mapping[str, float]) -> Geom:
    """The collision geom of shape k of a link."""
    name = f"{link.name}_collision{k}"
    rough = (friction.get(name, friction.get(link.name, DEFAULT_FRICTION[0])), *DEFAULT_FRICTION[1:])
    size = () if shape.kind == "mesh" else half_lengths(shape)
    return Geom(name, link.name, shape.kind, size, shape.origin, shape.rotation, rough, conaffinity=0)


def _touches(shape: Shape) -> bool:
    return shape.kind in GEOM_SIZES and min(shape.size) > 0.0


def half_lengths(shape: Shape) -> tuple[float, ...]:
    """The sizes of a shape with half lengths for whole ones."""
    radii = HALVED[shape.kind]
    return tuple(x if k < radii else x / 2 for k, x in enumerate(shape.size))
