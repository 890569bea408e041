"""Triangles out of mesh files: STL (binary and text), OBJ, and MuJoCo's MSH. Bounded; nothing is executed."""

from __future__ import annotations

import re
from array import array
from typing import Any

import numpy as np

from drevo.errors import InputError, ModelError
from drevo.io.packages import package

Array = np.ndarray[Any, Any]
MAX_BYTES = 32 * 2**20  # of one file
MAX_TEXT = 16 * 2**20  # where every number is parsed
_VERTEX = re.compile(rb"vertex\s+(\S{1,40})\s+(\S{1,40})\s+(\S{1,40})(?!\S)")


def read_mesh(data: bytes, kind: str) -> tuple[Array, Array | None]:
    """Points (n, 3) in double precision, of numbers in single precision, and faces (m, 3); None: their hull."""
    if kind not in ("stl", "obj", "msh"):
        raise ModelError(f"a mesh file of the type {kind[:20]!r} is not read; save it as STL or OBJ")
    try:
        with np.errstate(over="ignore"):
            points, faces = {"stl": _stl, "obj": _obj, "msh": _msh}[kind](data)
    except (ValueError, OverflowError) as error:
        raise ModelError(f"the mesh file is no {kind.upper()}, or cut off ({error}); export it again") from None
    if len(points) < 3 or not np.isfinite(points).all():
        raise ModelError("the mesh file has no points, or some that are not finite; export it again")
    if faces is not None and (len(faces) == 0 or faces.min() < 0 or faces.max() >= len(points)):
        raise ModelError("the mesh file has no faces, or some with points that do not exist; export it again")
    return points.astype(np.float32).astype(float), faces


def triples(text: str, kind: type) -> Array:
    """Rows of three numbers in a text."""
    try:
        found: Array = np.array(text.split(), dtype=kind).reshape(-1, 3)
    except (ValueError, OverflowError) as error:
        raise ModelError(f"its {'face' if kind is int else 'vertex'} is no list of triples ({error})") from None
    if not np.isfinite(found).all() or len(found) == 0:
        raise ModelError("its vertices or faces are none, or not finite")
    return found.astype(np.float32).astype(float) if kind is float else found


def hull_faces(points: Array) -> Array:
    """Faces of the convex hull, their normals outward."""
    spatial = package("scipy", "the convex hull of a mesh") and package(
        "scipy.spatial", "the convex hull of a mesh"
    )
    try:
        found = spatial.ConvexHull(points, qhull_options="Qt")
    except Exception as error:  # Qhull's own, of points in a plane
        raise InputError(f"its points have no convex hull: {str(error).splitlines()[0][:100]}") from None
    corners = points[found.simplices]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inward = (normal * found.equations[:, :3]).sum(1) < 0.0
    faces: Array = np.where(inward[:, None], found.simplices[:, [0, 2, 1]], found.simplices)
    return faces


def _corners(points: Array) -> tuple[Array, Array]:
    return points.reshape(-1, 3), np.arange(len(points.reshape(-1, 3))).reshape(-1, 3)


def _stl(data: bytes) -> tuple[Array, Array]:
    """A head of 80 bytes, a count and 50 bytes a triangle; or text, which begins with `solid`."""
    count = int(np.frombuffer(data, "<u4", 1, 80)[0]) if len(data) >= 84 else -1
    if len(data) == 84 + 50 * count:
        rows = np.frombuffer(data, np.dtype([("f", "<f4", 12), ("rest", "<u2")]), count, 84)
        return _corners(rows["f"][:, 3:])
    if not data.lstrip().startswith(b"solid"):
        raise ValueError(f"{len(data)} bytes for {count} triangles")
    _check_text(data)
    corners = np.array(_VERTEX.findall(data), dtype="S40").astype(float)
    if len(corners) == 0 or len(corners) % 3:
        raise ValueError("vertices that make no triangles")
    return _corners(corners)


def _check_text(data: bytes) -> None:
    if len(data) > MAX_TEXT:
        raise ModelError(f"the mesh file has {len(data)} bytes of text, {MAX_TEXT} at most; save it as binary STL")


def _msh(data: bytes) -> tuple[Array, Array | None]:
    """Four counts (points, normals, texture coordinates, faces), then the points, ..., then the faces."""
    count = [int(n) for n in np.frombuffer(data, "<i4", 4)]
    points, normals, coordinates, faces = count
    first = 16 + 12 * points + 12 * normals + 8 * coordinates
    if min(count) < 0 or first + 12 * faces != len(data):
        raise ValueError(f"{len(data)} bytes for the counts {count}")
    found = np.frombuffer(data, "<f4", 3 * points, 16).reshape(-1, 3)
    return found, np.frombuffer(data, "<i4", 3 * faces, first).reshape(-1, 3) if faces else None


def _obj(data: bytes) -> tuple[Array, Array]:
    """Points (v) and polygons (f) of the first object with any; quadrangles are cut along the shorter diagonal."""
    _check_text(data)
    places = array("d")
    polygons: list[list[int]] = []
    ended = False
    for line in data.replace(b"\\\n", b" ").splitlines():
        if line.startswith(b"v "):
            places.extend(map(float, line.split()[1:4]))
        elif line.startswith(b"f ") and not ended:
            n = len(places) // 3
            corners = [int(word.partition(b"/")[0]) for word in line.split()[1:]]
            polygons.append([k - 1 if k > 0 else n + k for k in corners])
        elif line[:2] in (b"o ", b"g ", b"o", b"g") and polygons:
            ended = True
    points = np.array(places).reshape(-1, 3)
    return points, np.array([face for polygon in polygons for face in _cut(polygon, points)]).reshape(-1, 3)


def _cut(polygon: list[int], points: Array) -> list[tuple[int, int, int]]:
    if len(polygon) == 4 and max(polygon) < len(points):
        a, b, c, d = polygon
        if _apart(points[a], points[c]) >= _apart(points[b], points[d]):
            return [(a, b, d), (b, c, d)]
    return [(polygon[0], polygon[k], polygon[k + 1]) for k in range(1, len(polygon) - 1)]


def _apart(a: Array, b: Array) -> float:
    return float(((a - b) ** 2).sum())
