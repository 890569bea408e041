"""Meshes of a description as triangles to draw: found where a description may look, coarse enough for a page."""

from __future__ import annotations

import base64
import os
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import DrevoError
from ...io.files import Files
from ...io.given import Array
from ...io.meshes import hull_faces, read_mesh_file
from ...model.description import Link, Model, Shape
from ...model.loaders.sdf.include import located
from ...model.messages import shorten

FACES = 24_000  # of all meshes on a page: some hundred kilobytes
FINEST = 96  # cells along the longest side of a mesh that is made coarser
COARSEST = 6
STEPS = 32767  # of an int16


@dataclass
class MeshFiles:
    """The mesh files of a model, and the faults of those that cannot be drawn."""

    model: Model
    files: Files = field(init=False)
    known: dict[str, tuple[Array, Array] | None] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.files = Files(self.model.source)

    def triangles(self, shape: Shape) -> tuple[Array, Array] | None:
        """Points (n, 3), scaled, and faces (m, 3), in axes of the shape; None where the file cannot be read."""
        if shape.uri not in self.known:
            try:
                self.known[shape.uri] = self._read(shape.uri)
            except DrevoError as error:
                self.known[shape.uri], self.faults[shape.uri] = None, str(error)
        found = self.known[shape.uri]
        return None if found is None else (found[0] * shape.size, found[1])

    def _read(self, uri: str) -> tuple[Array, Array]:
        path = located(uri, self.files, self.files.folder)
        points, faces = read_mesh_file(self.files, path)
        return points, hull_faces(points) if faces is None else faces

    def drawn(self, link: Link) -> list[Shape]:
        """The shapes that are shown, else, where none can be drawn, those that collide."""
        for role in ("visual", "collision"):
            given = [s for s in link.shapes if s.role == role]
            if found := [s for s in given if s.kind != "mesh" or self.triangles(s) is not None]:
                return found
        return []

    def told(self) -> str:
        """One sentence on what is not drawn, nor another shape in its place; "" where all is."""
        missing = {}
        for link in self.model.links:
            role = next((s.role for s in self.drawn(link)), None)
            lost = [s.uri for s in link.shapes if s.uri in self.faults and s.role in (role or s.role,)]
            missing.update({uri: self.faults[uri] for uri in lost})
        if not missing:
            return ""
        why = shorten([f"{os.path.basename(uri) or uri!r} ({text})" for uri, text in missing.items()], 2, "; ")
        return f"meshes of {self.model.name!r} that are not drawn: {why}"


def coarser(points: Array, faces: Array, most: int) -> tuple[Array, Array]:
    """About the same surface in at most so many triangles, if that can be: points of a cell become their mean."""
    low, size = points.min(0), float(np.ptp(points, axis=0).max()) or 1.0
    points, faces = _merged(points, faces, (points - low) * (2 * STEPS / size))
    if len(faces) <= most:
        return points, faces
    cells = [FINEST]
    while cells[-1] * 0.85 >= COARSEST:
        cells.append(int(cells[-1] * 0.85))
    found: dict[int, tuple[Array, Array]] = {}

    def fewer(k: int) -> int:
        found[k] = _merged(points, faces, (points - low) * (cells[k] / size))
        return -len(found[k][1])

    first = bisect_left(range(len(cells) - 1), -most, key=fewer)
    if first not in found:
        fewer(first)
    return found[first]


def _merged(points: Array, faces: Array, place: Array) -> tuple[Array, Array]:
    """Points by the cell of their place, and the triangles that are left."""
    x, y, z = place.astype(np.int64).T
    of = np.unique((x << 40) | (y << 20) | z, return_inverse=True)[1].ravel()
    count = np.bincount(of)
    means = np.stack([np.bincount(of, points[:, k]) / count for k in range(3)], axis=1)
    f = of[faces]
    f = f[(f[:, 0] != f[:, 1]) & (f[:, 1] != f[:, 2]) & (f[:, 2] != f[:, 0])]
    a, b, c = np.sort(f, axis=1).T
    return means, f[np.unique((a << 42) | (b << 21) | c, return_index=True)[1]]


def in_steps(points: Array, faces: Array) -> dict[str, Any]:
    """Points as whole steps about their middle, and faces, as base64 of little-endian int16 and uint16."""
    low, high = points.min(0), points.max(0)
    middle, unit = (low + high) / 2, (float((high - low).max()) or 1.0) / 2 / STEPS
    whole = np.rint((points - middle) / unit).astype("<i2")
    return {
        "middle": middle.tolist(), "unit": unit, "points": base64.b64encode(whole.tobytes()).decode(),
        "faces": base64.b64encode(faces.astype("<u2").tobytes()).decode(),
    }  # fmt: skip
