"""Shapes as triangles: what a window draws that knows no other solids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...io.given import Array
from ...model.description import Shape
from .mesh import MeshFiles

SIDES, ARC = 32, 9  # of what is round: corners of a circle, of a quarter of one

CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
BOX = np.array([[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6], [0, 2, 6],
                 [0, 6, 4], [1, 5, 7], [1, 7, 3]])  # fmt: skip


def triangles_of(shape: Shape, meshes: MeshFiles) -> tuple[Array, Array]:
    """Points (n, 3) and faces (m, 3) of a shape, in its own axes."""
    found = meshes.triangles(shape) if shape.kind == "mesh" else None
    if found is not None:
        return found
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
