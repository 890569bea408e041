"""Bounds on a link's mass from its geometry: the box around it, and the least and greatest volume."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from itertools import product
from math import pi, prod
from typing import Any, NamedTuple

import numpy as np

from ..errors import DrevoError
from ..io.files import Files, read_head
from ..io.meshes import find_mesh, read_mesh_file
from ..model.description import Shape

Array = np.ndarray[Any, Any]
LEAST_SHARE = 0.02  # of its box: a mesh that encloses less is no closed surface
COLLADA_HEAD_BYTES = 4096  # bytes within which a Collada file says what is up
GEOMETRY_ROLES = ("visual", "collision")


class Extent(NamedTuple):
    """The box around a link's shapes in link axes, and what their volume is at least and at most, m^3."""

    low: Array
    high: Array
    least: float
    most: float

    @property
    def sizes(self) -> Array:
        """The box's edges, (3,) m."""
        size: Array = self.high - self.low
        return size


class Bulk(NamedTuple):
    """A shape in its own axes: its box, and its volume at least and at most."""

    low: Array
    high: Array
    least: float
    most: float


class Geometry:
    """Reads the shapes of links; a mesh that several of them name is read once."""

    def __init__(self, files: Files, meshes: bool = True) -> None:
        self.files, self.meshes = files, meshes
        self._known: dict[str, tuple[Array, Array, float] | None] = {}

    def extent(self, shapes: Iterable[Shape]) -> Extent | None:
        """The extent of a link; None where there is no shape, or a role without one that can be read."""
        shapes = list(shapes)
        roles = [[s for s in shapes if s.role == role] for role in GEOMETRY_ROLES]
        extents = [self._role(some) for some in roles if some]
        known = [x for x in extents if x is not None]
        if not known:
            return None
        low = np.min([x.low for x in known], axis=0)
        high = np.max([x.high for x in known], axis=0)
        least = 0.0 if None in extents else min(x.least for x in known)
        most = prod(map(float, high - low)) if None in extents else max(x.most for x in known)
        return Extent(low, high, least, most) if most > 0.0 else None

    def _role(self, shapes: list[Shape]) -> Extent | None:
        """The extent of the shapes of one role together; None where one of them is unknown."""
        low, high, least, most = np.full(3, np.inf), np.full(3, -np.inf), 0.0, 0.0
        for shape in shapes:
            solid = self._solid(shape)
            if solid is None:
                return None
            corners = np.array(list(product(*zip(solid.low, solid.high))))
            placed = corners @ np.array(shape.rotation).T + shape.origin
            low, high = np.minimum(low, placed.min(0)), np.maximum(high, placed.max(0))
            least, most = max(least, solid.least), most + solid.most  # they may lie in one another
        return Extent(low, high, least, most)

    def _solid(self, shape: Shape) -> Bulk | None:
        if shape.kind != "mesh":
            half, volume = _primitive(shape.kind, shape.size)
            return Bulk(-half, half, volume, volume)
        mesh = self._mesh(shape.uri)
        if mesh is None:
            return None
        low, high, volume = mesh
        ends = np.sort([low * shape.size, high * shape.size], axis=0)
        box = prod(map(float, ends[1] - ends[0]))
        inside = abs(volume * prod(shape.size))
        closed = LEAST_SHARE * box < inside <= box
        return Bulk(ends[0], ends[1], inside if closed else 0.0, box)

    def _mesh(self, uri: str) -> tuple[Array, Array, float] | None:
        """Box and signed volume of a mesh file; None where it cannot be read."""
        if uri not in self._known:
            self._known[uri] = self._read(uri) if self.meshes else None
        return self._known[uri]

    def _read(self, uri: str) -> tuple[Array, Array, float] | None:
        path = find_mesh(uri, self.files.folder)
        if path is None or not self.files.may(os.path.realpath(path)):
            return None
        try:
            if _lies(path):
                return None
            points, faces = read_mesh_file(self.files, path)
        except DrevoError:
            return None
        corners = points[faces] if faces is not None else np.zeros((0, 3, 3))
        points = corners.reshape(-1, 3) if len(corners) else points  # a file may hold more than it shows
        volume = np.einsum("ij,ij->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0
        return points.min(0), points.max(0), float(volume)


def _lies(path: str) -> bool:
    """True if it is a Collada file whose z does not point up: some programs turn it, and some do not."""
    if not path.lower().endswith(".dae"):
        return False
    return b"Z_UP" not in read_head(path, COLLADA_HEAD_BYTES)


def _primitive(kind: str, size: tuple[float, ...]) -> tuple[Array, float]:
    """Half the edges of the box around a plain solid, and its volume."""
    if kind == "box":
        return np.array(size) / 2, prod(size)
    radius, length = size[0], size[1] if len(size) > 1 else 0.0
    ball, rod = 4 / 3 * pi * radius**3, pi * radius**2 * length
    half = partial(np.array, dtype=float)
    if kind == "cylinder":
        return half([radius, radius, length / 2]), rod
    return half([radius, radius, radius + length / 2]), ball + rod  # a sphere is a capsule without length
