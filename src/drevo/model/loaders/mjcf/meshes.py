"""Mesh assets of an MJCF file, as the solids that they are: opened only where a body's inertia asks for one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from ....errors import DrevoError, ModelError
from ....io import meshes
from ....io.files import Files
from ....io.xml import Element, Reader
from ...rotations import matrix_of_quaternion
from .. import solids
from ..solids import MassProperties

Array = np.ndarray[Any, Any]
T = TypeVar("T")
MESH_INERTIA_RULES = ("legacy", "exact", "convex", "shell")
NEEDED = "give the body an <inertial>"


class Meshes:
    """The assets by name, the folders that their files are looked for in, and the solids found so far."""

    def __init__(
        self, assets: Iterable[Element] = (), files: Files | None = None, folder: str = "", strip: bool = False
    ) -> None:
        self.assets = {asset_name(element): element for element in assets}
        self.files, self.folder, self.strip = files or Files(), folder, strip  # of paths only the name
        self.solids: dict[str, MassProperties] = {}
        self.shapes: dict[str, tuple[Array, Array | None]] = {}
        self.raw: dict[str, tuple[Array, bool]] = {}  # points of files, and whether their scale mirrors them

    def solid(self, name: str) -> MassProperties:
        """Volume (area of a shell), centre and tensor at density one. ModelError says what is in the way."""
        if name not in self.solids:
            self.solids[name] = self._of(name, self._made)
        return self.solids[name]

    def hull(self, name: str) -> tuple[Array, Array, list[list[int]]]:
        """Points (n, 3) of a mesh as it stands in its geom, triangles of their hull, and its faces as MuJoCo has
        them: of the points of the file, which are one where they are given by triangle. ModelError says what is in
        the way."""
        points, triangles = self._of(name, self._shape)
        raw, mirrors = self.raw[name]
        if triangles is not None and np.array_equal(np.sort(triangles.ravel()), np.arange(len(points))):
            first = np.sort(np.unique(raw, axis=0, return_index=True)[1])
            points, raw = points[first], raw[first]
        triangles = meshes.hull_faces(raw)
        faces = meshes.polygons_of(raw, triangles)
        return points, triangles, [[x[0], *x[:0:-1]] for x in faces] if mirrors else faces

    def missing_file(self, name: str) -> str | None:
        """The file that an asset names, where there is none; None for what is at hand or no file."""
        file = self.assets[name].get("file") if name in self.assets else ""
        path = os.path.join(self.folder, os.path.basename(file) if self.strip else file)
        return file if file and self.files.folder and not os.path.isfile(path) else None

    def path_of(self, file: str) -> str:
        """The path of a file that an asset names."""
        return self.files.find(os.path.basename(file) if self.strip else file, (self.folder,))

    def _of(self, name: str, make: Callable[[Element], T]) -> T:
        if name not in self.assets:
            raise ModelError(f"the mesh {name!r}, which no <asset> has; correct its name")
        try:
            return make(self.assets[name])
        except DrevoError as error:
            raise ModelError(f"the mesh {name!r} (line {self.assets[name].line}): {error}") from None

    def _made(self, element: Element) -> MassProperties:
        """Volume, centre and tensor of an asset by its rule of inertia."""
        rule = element.get("inertia", "legacy")
        if rule not in MESH_INERTIA_RULES:
            raise ModelError(f"its inertia={rule!r} is none of {', '.join(MESH_INERTIA_RULES)}")
        points, faces = self._shape(element)
        if faces is None or rule == "convex":
            if element.get("maxhullvert"):
                raise ModelError(f"it is a convex hull cut by maxhullvert, which is not read; {NEEDED}")
            faces = meshes.hull_faces(points)
        return solids.of_triangles(points[faces], rule)

    def _shape(self, element: Element) -> tuple[Array, Array | None]:
        """Points and faces in their places, of the right side out."""
        name = asset_name(element)
        if name not in self.shapes:
            self.shapes[name] = self._placed(element)
        return self.shapes[name]

    def _placed(self, element: Element) -> tuple[Array, Array | None]:
        faults: list[str] = []
        reader = Reader(faults.append, "it")
        for other in ("builtin", "plugin"):
            if element.get(other) or element.first(other):
                raise ModelError(f"it is made by {other}, which is not read; {NEEDED}")
        points, faces = self._data(element, reader)
        scale = np.array(reader.vector(element, "scale", (1.0, 1.0, 1.0)))
        self.raw[asset_name(element)] = points, bool(np.prod(scale) < 0.0)
        w, x, y, z = reader.vector(element, "refquat", (1.0, 0.0, 0.0, 0.0))
        points = (points - reader.vector(element, "refpos", (0.0, 0.0, 0.0))) @ np.array(
            matrix_of_quaternion(x, y, z, w)
        )
        points = points * scale
        if faults:
            raise ModelError(faults[0].removeprefix("it: "))
        return points, faces[:, [0, 2, 1]] if faces is not None and np.prod(scale) < 0.0 else faces

    def _data(self, element: Element, reader: Reader) -> tuple[Array, Array | None]:
        """Points and faces, from the file or written out."""
        if not element.get("file"):
            points = meshes.triples(element.get("vertex"), float)
            return points, meshes.triples(element.get("face"), int) if element.get("face") else None
        path = self.path_of(element.get("file"))
        kind = element.get("content_type").rpartition("/")[2].rpartition(".")[2] or os.path.splitext(path)[1][1:]
        data = self.files.read(path, meshes.MAX_MESH_BYTES, meshes.weight(path))
        return meshes.read_mesh(data, kind.lower())


def asset_name(element: Element) -> str:
    """The name of an asset, that of its file where none is given."""
    return element.get("name") or os.path.splitext(os.path.basename(element.get("file")))[0]
