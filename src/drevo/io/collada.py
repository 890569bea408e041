"""Triangles out of Collada files (.dae): the geometries of the visual scene, in metres and its own axes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import DrevoError, ModelError
from . import xml
from .xml import Element

Array = np.ndarray[Any, Any]
MAX_SCENE_NODES = 10_000  # that a scene shows: nodes may be shown again and again
MAX_TRIANGLES = 2_000_000  # triangles


def read_collada(data: bytes) -> tuple[Array, Array]:
    """Points (n, 3) and faces (m, 3) of all that the scene shows. ModelError where there is nothing to read."""
    root = xml.parse(data)
    if root.tag != "COLLADA":
        raise ModelError(f"its root is <{root.tag:.40}>, not <COLLADA>; export it again")
    try:
        return _scene(root)
    except DrevoError:
        raise
    except (ValueError, IndexError, KeyError) as error:
        raise ModelError(f"it is no Collada file that can be read ({error}); export it again") from None


def _scene(root: Element) -> tuple[Array, Array]:
    unit = next((float(x.get("meter", "1")) for x in root.walk() if x.tag == "unit"), 1.0)
    known = {x.get("id"): x for x in root.walk() if x.get("id")}
    points, faces, count = [np.zeros((0, 3))], [np.zeros((0, 3), np.int64)], 0
    meshes: dict[str, tuple[Array, Array]] = {}
    for name, T in _placed(root, known):
        if name not in meshes:
            meshes[name] = _geometry(known[name], known)
        p, f = meshes[name]
        points.append((p @ T[:3, :3].T + T[:3, 3]) * unit)
        faces.append(f + count)
        count += len(p)
        if sum(map(len, faces)) > MAX_TRIANGLES:
            raise ValueError(f"more than {MAX_TRIANGLES} triangles")
    p, f = np.concatenate(points), np.concatenate(faces)
    if len(f) == 0 or not np.isfinite(p).all() or f.min() < 0 or f.max() >= len(p):
        raise ValueError("no triangles, or some of points that do not exist")
    return p, f


def _placed(root: Element, known: dict[str, Element]) -> Iterator[tuple[str, Array]]:
    """Every geometry of the scene and where it stands; without a scene each as it is."""
    scenes = [x for x in root.walk() if x.tag == "visual_scene"]
    if not scenes:
        yield from ((x.get("id"), np.eye(4)) for x in root.walk() if x.tag == "geometry")
    stack, count = [(node, np.eye(4)) for scene in scenes[:1] for node in scene.all("node")], 0
    while stack:
        node, above = stack.pop()
        count += 1
        if count > MAX_SCENE_NODES:
            raise ValueError(f"more than {MAX_SCENE_NODES} nodes")
        T = above @ _transform(node)
        yield from ((x.get("url").removeprefix("#"), T) for x in node.all("instance_geometry"))
        inner = [*node.all("node"), *(known[x.get("url").removeprefix("#")] for x in node.all("instance_node"))]
        stack += [(x, T) for x in inner]


def _transform(node: Element) -> Array:
    T = np.eye(4)
    for x in node.children:
        if x.tag not in ("matrix", "translate", "scale", "rotate"):
            continue
        given, matrix = _floats(x), np.eye(4)
        if x.tag == "matrix":
            matrix = given.reshape(4, 4)
        elif x.tag == "translate":
            matrix[:3, 3] = given
        elif x.tag == "scale":
            matrix[:3, :3] = np.diag(given)
        elif np.linalg.norm(given[:3]):
            a, u = np.radians(given[3]), given[:3] / np.linalg.norm(given[:3])
            K = np.cross(np.eye(3), u)
            matrix[:3, :3] = np.eye(3) + np.sin(a) * K + (1 - np.cos(a)) * K @ K
        T = T @ matrix
    return T


def _geometry(geometry: Element, known: dict[str, Element]) -> tuple[Array, Array]:
    mesh = geometry.first("mesh")
    points, faces = [np.zeros((0, 3))], [np.zeros((0, 3), np.int64)]
    count = 0
    for part in [] if mesh is None else mesh.children:
        if part.tag not in ("triangles", "polylist"):
            continue
        inputs = part.all("input")
        vertex = next(x for x in inputs if x.get("semantic") == "VERTEX")
        positions = next(
            x for x in known[vertex.get("source")[1:]].all("input") if x.get("semantic") == "POSITION"
        )
        array = known[positions.get("source")[1:]].first("float_array")
        p = _floats(array).reshape(-1, 3)
        stride = 1 + max(int(x.get("offset", "0")) for x in inputs)
        indices = [_floats(x).astype(np.int64) for x in part.all("p")]
        corner = (np.concatenate(indices) if indices else np.zeros(0, np.int64)).reshape(-1, stride)
        faces.append(_cut(corner[:, int(vertex.get("offset", "0"))], part) + count)
        points.append(p)
        count += len(p)
    return np.concatenate(points), np.concatenate(faces)


def _cut(corners: Array, part: Element) -> Array:
    """Triangles of polygons, as fans."""
    counts = part.first("vcount")
    if part.tag == "triangles" or counts is None:
        return corners.reshape(-1, 3)
    sizes = _floats(counts).astype(np.int64)
    if sizes.sum() != len(corners) or (len(sizes) and sizes.min() < 0):
        raise ValueError("polygons with other corners than are counted")
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]]) if len(sizes) else sizes
    out = [np.zeros((0, 3), np.int64)]
    for size in np.unique(sizes[sizes > 2]):
        at = first[sizes == size][:, None] + np.arange(size)
        out += [corners[at[:, [0, k, k + 1]]] for k in range(1, size - 1)]
    return np.concatenate(out)


def _floats(element: Element | None) -> Array:
    numbers: Array = np.array([] if element is None else element.text.split(), float)
    return numbers
