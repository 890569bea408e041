"""The shapes of a link as solids of density 1: primitives and closed meshes; of a mesh that is open its hull."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..io.meshes import hull_faces
from ..model.description import Link, Model, Shape
from ..robot.view.mesh import MeshFiles
from . import solids
from .solids import Solid, open_edges

ROLES = ("collision", "visual")


class ShapedSolids(NamedTuple):
    """Solids of density 1, and in words what they were made of."""

    solids: Sequence[Solid]
    about: str


def solids_of(model: Model, link: Link, role: str) -> ShapedSolids | None:
    """The shapes of one role; None without any. InputError where a mesh cannot be read or has no inside."""
    shapes = [x for x in link.shapes if x.role == role]
    solids, words = [], []
    meshes = MeshFiles(model) if any(x.kind == "mesh" for x in shapes) else None
    for x in shapes:
        solid, word = _mesh(x, meshes) if meshes and x.kind == "mesh" else (_primitive(x), x.kind)
        if (volume := solid.volume()) > 0.0:
            solids.append(solid.moved(np.eye(4), volume))
            words.append(word)
    if not solids:
        return None
    said = ", ".join(f"{words.count(x)} {x}" if words.count(x) > 1 else x for x in dict.fromkeys(words))
    return ShapedSolids(solids, f"{role} shapes ({said})")


def _mesh(shape: Shape, files: MeshFiles) -> tuple[Solid, str]:
    triangles, name = files.triangles(shape), os.path.basename(shape.uri)
    if triangles is None:
        raise InputError(f"mesh {name!r} cannot be read: {files.faults[shape.uri]}")
    points, faces = triangles
    open_, every = open_edges(points, faces)
    if open_:
        faces = hull_faces(points)
        name += f", open at {open_} of {every} edges: its hull"
    return solids.mesh(1.0, points, faces, shape.origin, shape.rotation), name


def _primitive(x: Shape) -> Solid:
    if x.kind == "box":
        return solids.box(1.0, x.size, x.origin, x.rotation)
    if x.kind == "sphere":
        return solids.sphere(1.0, x.size[0], x.origin)
    make = solids.cylinder if x.kind == "cylinder" else solids.capsule
    return make(1.0, x.size[0], x.size[1], x.origin, x.rotation)
