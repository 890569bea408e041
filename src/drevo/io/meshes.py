"""Triangles out of mesh files: STL (binary and text), OBJ, and MuJoCo's MSH. Bounded; nothing is executed.

Finds the mesh files of a description: by path, file://, package://, $(find ...). Nothing is opened.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Sequence
from math import isqrt
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np

from ..errors import DrevoError, ModelError
from . import xml
from .collada import read_collada
from .files import read_head
from .packages import package

if TYPE_CHECKING:
    from .files import Files

Array = np.ndarray[Any, Any]
MAX_MESH_BYTES = 16 * 2**20  # of one file
MAX_TEXT = 9 * 2**20  # where every number is parsed
MOST_CORNERS = 1000  # of one polygon
MOST_POINTS = 200_000  # of which a hull is sought
CELLS_OF_RADIAN = 100.0  # of directions of normals: what is in one is one face, as in MuJoCo
POLE_COSINE = 1.0 - 1e-7  # of a normal and Z: above it the normal has no azimuth
HASH_OFFSET = np.uint64(0x9E3779B9)  # of how the two angles of a cell make one number
LEAST_NORMAL = 1e-300  # of a normal
FLAT_SHARE_OF_SPREAD = 1e-9  # of the largest extent of points: they have none where it is less
_POINT = re.compile(rb"^v ([^\n]*)", re.MULTILINE)
_CORNER_REST = re.compile(rb"/\S*")  # of a corner: its texture and normal
_VERTEX = re.compile(rb"vertex\s+(\S{1,40})\s+(\S{1,40})\s+(\S{1,40})(?!\S)")


def weight(path: str) -> int:
    """The factor by which a byte of a mesh file counts among the bytes of all files: text more than numbers."""
    return 4 if path.lower().endswith(".obj") or read_head(path, 5) == b"solid" else 1


def read_mesh_file(files: Files, path: str) -> tuple[Array, Array | None]:
    """All that a file shows, by its ending; of Collada (.dae) the scene in metres. None for faces: their hull."""
    kind = os.path.splitext(path)[1][1:].lower()
    if kind == "dae":
        return read_collada(files.read(path, xml.MAX_XML_BYTES, xml.WEIGHT))
    return read_mesh(files.read(path, MAX_MESH_BYTES, weight(path)), kind, whole=True)


def read_mesh(data: bytes, kind: str, whole: bool = False) -> tuple[Array, Array | None]:
    """Points (n, 3) in double precision, of numbers in single precision, and faces (m, 3); None: their hull.

    whole: of OBJ all objects, not the first one alone, which is what MuJoCo takes.
    """
    if kind not in ("stl", "obj", "msh"):
        raise ModelError(f"a mesh file of the type {kind[:20]!r} is not read; save it as STL or OBJ")
    try:
        with np.errstate(over="ignore"):
            points, faces = _obj(data, whole) if kind == "obj" else {"stl": _stl, "msh": _msh}[kind](data)
    except DrevoError:
        raise
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
        rows: Array = np.array(text.split(), dtype=kind).reshape(-1, 3)
    except (ValueError, OverflowError) as error:
        raise ModelError(f"its {'face' if kind is int else 'vertex'} is no list of triples ({error})") from None
    if not np.isfinite(rows).all() or len(rows) == 0:
        raise ModelError("its vertices or faces are none, or not finite")
    return rows.astype(np.float32).astype(float) if kind is float else rows


def _flatness(points: Array) -> str:
    """Says why points enclose no volume."""
    apart = np.unique(points, axis=0)
    spread = np.linalg.svd(apart - apart.mean(0), compute_uv=False)
    rank = int((spread > FLAT_SHARE_OF_SPREAD * spread.max(initial=0.0)).sum())
    shape = ("at one place", "in a line", "in a plane", "nearly in a plane")[rank]
    return f"{len(points)} points, {len(apart)} of them different, {shape}"


def hull_faces(points: Array) -> Array:
    """Faces of the convex hull, their normals outward."""
    if len(points) > MOST_POINTS:
        raise ModelError(f"it is the hull of {len(points)} points, {MOST_POINTS} at most; give it faces")
    spatial = package("scipy", "the convex hull of a mesh") and package(
        "scipy.spatial", "the convex hull of a mesh"
    )
    try:
        hull = spatial.ConvexHull(points, qhull_options="Qt")
    except (ValueError, RuntimeError):  # Qhull's own
        raise ModelError(f"its points have no convex hull: {_flatness(points)}; give it a thickness") from None
    corners = points[hull.simplices]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inward = (normal * hull.equations[:, :3]).sum(1) < 0.0
    faces: Array = np.where(inward[:, None], hull.simplices[:, [1, 0, 2]], hull.simplices)
    return faces


def polygons_of(points: Array, triangles: Array) -> list[list[int]]:
    """The corners of faces: of triangles that share edges, and whose normals are in one cell of 0.01 rad.

    Cells are of azimuth and polar angle. In the order of MuJoCo: cells as its table of them has them, edges as
    triangles bring them, from the first one that is left.
    """
    corners = points[triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), LEAST_NORMAL)
    x, y, z = normals.T + 0.0  # of which no zero is negative
    azimuth = np.where(np.abs(z) > POLE_COSINE, 0.0, np.arctan2(y, x))
    angles = np.stack((azimuth, np.arccos(np.clip(z, -1.0, 1.0))), 1)
    cells = [(a, b) for a, b in (np.rint(angles * CELLS_OF_RADIAN) + 0.0).tolist()]
    sides = [((a, b), (b, c), (c, a)) for a, b, c in triangles.tolist()]
    owner = {edge: k for k, three in enumerate(sides) for edge in three}
    left, out = set(range(len(sides))), dict[tuple[float, float], list[list[int]]]()
    for seed in range(len(sides)):
        if seed not in left:
            continue
        left.remove(seed)
        joined = [seed]
        for k in joined:
            for a, b in sides[k]:
                other = owner.get((b, a))
                if other in left and cells[other] == cells[seed]:
                    left.remove(other)
                    joined.append(other)
        edges = dict[tuple[int, int], None]()
        for k in sorted(joined):
            inner = [(b, a) for a, b in sides[k] if (b, a) in edges]
            edges |= {(a, b): None for a, b in sides[k] if (b, a) not in inner}
            for edge in inner:
                del edges[edge]
        after, path = dict(edges), list(next(iter(edges)))
        while path[-1] != path[0] and len(path) <= len(after):
            path.append(next(b for a, b in after if a == path[-1]))
        out.setdefault(cells[seed], []).append(path[:-1])
    return [path for cell in _as_hashed(list(out)) for path in out[cell]]


def _as_hashed(cells: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Pairs of numbers in the order in which a hash table of the C++ library of Clang has them, as MuJoCo's does:
    a new bucket is before all others, what comes into a bucket before what is there."""
    seeds, more = (np.array(cells).reshape(-1, 2) + 0.0).view(np.uint64).T
    hashes = (seeds ^ (more + HASH_OFFSET + (seeds << np.uint64(6)) + (seeds >> np.uint64(2)))).tolist()

    def is_prime(k: int) -> bool:
        return all(k % i for i in range(2, isqrt(k) + 1))

    count, chain, buckets = 0, list[list[int]](), dict[int, list[int]]()
    for n, place in enumerate(hashes):
        if n == count:
            count = next(k for k in range(max(2, 2 * count + 1), 4 * count + 3) if is_prime(k))
            before, last = [k for bucket in chain for k in bucket], -1
            chain, buckets = [], {}
            for k in before:
                at = hashes[k] % count
                if at not in buckets:
                    buckets[at], last = [], at
                    chain.append(buckets[at])
                buckets[at].insert(len(buckets[at]) if at == last else 0, k)
        at = place % count
        if at not in buckets:
            buckets[at] = []
            chain.insert(0, buckets[at])
        buckets[at].insert(0, n)
    return [cells[k] for bucket in chain for k in bucket]


def _corners(points: Array) -> tuple[Array, Array]:
    """Points and faces of triangles that are given by their corners alone."""
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
    points_read = np.frombuffer(data, "<f4", 3 * points, 16).reshape(-1, 3)
    return points_read, np.frombuffer(data, "<i4", 3 * faces, first).reshape(-1, 3) if faces else None


def _obj(data: bytes, whole: bool) -> tuple[Array, Array]:
    """Points (v) and polygons (f) of all objects, or the first with any; quadrangles are cut along the shorter
    diagonal."""
    _check_text(data)
    lines = data.replace(b"\\\n", b" ").splitlines()
    points = _numbers(_POINT.findall(b"\n".join(lines)), 3)
    first = next((i for i, line in enumerate(lines) if line.startswith(b"f ")), len(lines))
    ends = (i for i in range(first, len(lines)) if not whole and lines[i][:2] in (b"o ", b"g ", b"o", b"g"))
    last = next(ends, len(lines))
    seen, rows = (b"\n" + b"\n".join(lines[:first])).count(b"\nv "), []
    for line in lines[first:last]:
        if line.startswith(b"f "):
            rows.append((_CORNER_REST.sub(b"", line[2:]), seen))
        else:
            seen += line.startswith(b"v ")
    sizes = np.array([len(row.split()) for row, _ in rows])
    if len(sizes) and not 3 <= sizes.min() <= sizes.max() <= MOST_CORNERS:
        raise ValueError(f"a face with {sizes.max() if sizes.max() > 3 else sizes.min()} corners")
    faces = []
    for size in np.unique(sizes):
        some = [rows[i] for i in np.flatnonzero(sizes == size)]
        corners = _numbers([row for row, _ in some], int(size)).astype(np.int64)
        corners = np.where(corners > 0, corners - 1, corners + np.array([n for _, n in some])[:, None])
        faces.append(_cut(corners, points))
    return points, np.concatenate(faces) if faces else np.zeros((0, 3), np.int64)


def _numbers(rows: list[bytes], count: int) -> Array:
    """The first numbers of every row."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of NumPy, where the text is not all numbers
        try:
            values = np.fromstring(b" ".join(rows), dtype=float, sep=" ")
        except (DeprecationWarning, ValueError):  # by its version
            raise ValueError("something that is no number") from None
    if len(values) != count * len(rows):  # more of them may stand there: weights, colours
        first = re.compile(rb"^\s*((?:\S+[^\S\n]+){%d}\S+)[^\n]*" % (count - 1), re.MULTILINE)
        text, cut = first.subn(rb"\1", b"\n".join(rows))
        if cut != len(rows) or text.count(b"\n") != len(rows) - 1:
            raise ValueError(f"a row of fewer than {count} numbers")
        values = np.fromstring(text, dtype=float, sep=" ")
        if len(values) != count * len(rows):
            raise ValueError("something that is no number")
    return values.reshape(-1, count)


def _cut(polygons: Array, points: Array) -> Array:
    """Triangles of polygons (m, n) with n corners each."""
    if polygons.shape[1] == 4 and polygons.max() < len(points):
        a, b, c, d = (points[polygons[:, k]] for k in range(4))
        other = ((a - c) ** 2).sum(1) >= ((b - d) ** 2).sum(1)
        polygons = np.where(other[:, None], polygons[:, [1, 2, 3, 0]], polygons)
    fans = [polygons[:, [0, k, k + 1]] for k in range(1, polygons.shape[1] - 1)]
    return np.concatenate(fans)


_URI_SCHEME = re.compile(r"^([a-z]+)://", re.IGNORECASE)
_FOUND = re.compile(
    r"^(?:file://)?\$\(find(?:-pkg-share)?\s+([^\s()]+)\s*\)/*"
)  # as xacro and ROS 2 say package://
VARIABLES = ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "GAZEBO_MODEL_PATH", "GZ_SIM_RESOURCE_PATH")
MOST_FILES = 20_000  # that are looked at for one that was moved


def find_mesh(uri: str, folder: str) -> str | None:
    """The path of a mesh that a description in `folder` names; None where there is no such file."""
    return next(filter(os.path.isfile, _candidates(uri, folder)), None)


def find_moved(uri: str, folder: str) -> str | None:
    """The one file of that name, in any case of letters, below the folder or the one above; None for several."""
    name, folder = os.path.basename(uri).lower(), os.path.abspath(folder)
    for top in (folder, os.path.dirname(folder)):
        same_name, seen = list[str](), 0
        for path, _, files in os.walk(top):
            same = (os.path.join(path, file) for file in files if file.lower() == name)
            same_name += filter(os.path.isfile, same)  # no pipe
            seen += len(files)
            if seen > MOST_FILES:
                return None
        if same_name:
            return same_name[0] if len(same_name) == 1 else None
    return None


def _candidates(uri: str, folder: str) -> Iterator[str]:
    uri = _FOUND.sub(r"package://\1/", uri)
    folder, scheme = os.path.abspath(folder or "."), _URI_SCHEME.match(uri)
    if "\0" in uri or not uri.strip():
        return
    if scheme is None:
        yield os.path.join(folder, uri)
    elif scheme[1].lower() == "file":
        path = unquote(uri[len("file://") :])
        yield path if os.path.isabs(path) else os.path.join(folder, path)
    else:
        package, _, rest = uri[scheme.end() :].partition("/")
        for above in _above(folder):
            if os.path.basename(above) == package:
                yield os.path.join(above, rest)
            yield os.path.join(above, package, rest)
        for variable in VARIABLES:
            for root in filter(None, os.environ.get(variable, "").split(os.pathsep)):
                yield os.path.join(root, package, rest)
                yield os.path.join(root, "share", package, rest)


def _above(folder: str) -> Iterator[str]:
    """Yields a folder and all above it, the nearest first."""
    while True:
        yield folder
        up = os.path.dirname(folder)
        if up == folder:
            return
        folder = up
