"""Meshes of a description as triangles to draw: found where a description may look, coarse enough for a page.

Shapes as triangles: what a window draws that knows no other solids.
"""

from __future__ import annotations

import base64
import os
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import DrevoError
from ...io.files import Files
from ...io.given import Array
from ...io.meshes import hull_faces, read_mesh_file
from ...model.description import Link, Model, Shape
from ...model.draft import shorten
from ...model.loaders.sdf.include import located

FACES = 24_000  # of all meshes on a page: some hundred kilobytes
COARSE_CELLS = 96  # cells along the longest side of a mesh that is made coarser
COARSEST = 6
MESH_GRID_STEPS = 32767  # of an int16


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
        mesh = self.known[shape.uri]
        return None if mesh is None else (mesh[0] * shape.size, mesh[1])

    def _read(self, uri: str) -> tuple[Array, Array]:
        path = located(uri, self.files, self.files.folder)
        points, faces = read_mesh_file(self.files, path)
        return points, hull_faces(points) if faces is None else faces

    def drawn(self, link: Link) -> list[Shape]:
        """The shapes that are shown, else, where none can be drawn, those that collide."""
        for role in ("visual", "collision"):
            given = [s for s in link.shapes if s.role == role]
            if drawable := [s for s in given if s.kind != "mesh" or self.triangles(s) is not None]:
                return drawable
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
    points, faces = _merged(points, faces, (points - low) * (2 * MESH_GRID_STEPS / size))
    if len(faces) <= most:
        return points, faces
    cells = [COARSE_CELLS]
    while cells[-1] * 0.85 >= COARSEST:
        cells.append(int(cells[-1] * 0.85))
    merged: dict[int, tuple[Array, Array]] = {}

    def fewer(k: int) -> int:
        merged[k] = _merged(points, faces, (points - low) * (cells[k] / size))
        return -len(merged[k][1])

    first = bisect_left(range(len(cells) - 1), -most, key=fewer)
    if first not in merged:
        fewer(first)
    return merged[first]


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
    middle, unit = (low + high) / 2, (float((high - low).max()) or 1.0) / 2 / MESH_GRID_STEPS
    whole = np.rint((points - middle) / unit).astype("<i2")
    return {
        "middle": middle.tolist(), "unit": unit, "points": base64.b64encode(whole.tobytes()).decode(),
        "faces": base64.b64encode(faces.astype("<u2").tobytes()).decode(),
    }  # fmt: skip


SIDES, ARC = 32, 9  # of what is round: corners of a circle, of a quarter of one

CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
BOX = np.array([[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6], [0, 2, 6],
                 [0, 6, 4], [1, 5, 7], [1, 7, 3]])  # fmt: skip


def triangles_of(shape: Shape, meshes: MeshFiles) -> tuple[Array, Array]:
    """Points (n, 3) and faces (m, 3) of a shape, in its own axes."""
    mesh = meshes.triangles(shape) if shape.kind == "mesh" else None
    if mesh is not None:
        return mesh
    if shape.kind == "box":
        return CORNERS * shape.size, BOX
    r, half = shape.size[0], shape.size[-1] / 2
    if shape.kind == "cylinder":
        return revolved([(0, -half), (r, -half), (r, -half), (r, half), (r, half), (0, half)])
    return ball(r, half if shape.kind == "capsule" else 0.0)


def ball(r: float = 1.0, half: float = 0.0) -> tuple[Array, Array]:
    """A sphere; with a half length a capsule along z."""
    u = np.linspace(0.0, np.pi / 2, ARC)
    up = [(r * np.cos(x), half + r * np.sin(x)) for x in u]
    return revolved([*((x, -z) for x, z in reversed(up)), *up])


def revolved(profile: Sequence[tuple[float, float]]) -> tuple[Array, Array]:
    """The surface of revolution about z of a line (radius, z), from below to above: points and faces."""
    u = np.arange(SIDES) * (2 * np.pi / SIDES)
    r, z = np.array(profile, float).T
    points = np.stack([np.outer(r, np.cos(u)), np.outer(r, np.sin(u)), np.outer(z, np.ones(SIDES))], -1)
    k = np.arange(len(r) * SIDES).reshape(len(r), SIDES)
    a, b, c, d = k[:-1], np.roll(k[:-1], -1, 1), np.roll(k[1:], -1, 1), k[1:]
    faces = np.concatenate([np.stack(x, -1).reshape(-1, 3) for x in ((a, b, c), (a, c, d))])
    return points.reshape(-1, 3), faces
