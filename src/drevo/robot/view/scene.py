"""The robot in a window's scene: a node for every link, and what belongs to it below."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...io.given import Array
from ...model.description import Link, Model
from ...model.rotations import from_z_to, quaternion_of
from .figure import ellipsoid, figure_of, link_rows
from .mesh import MeshFiles
from .triangles import ball, revolved, triangles_of

GREY, TEAL, RED, GOLD, VIOLET, BONE = (
    (195, 202, 211), (11, 122, 117), (179, 69, 44), (201, 138, 27), (122, 79, 163), (138, 151, 166),
)  # fmt: skip
LAYERS = ("geometry", "joints and links", "frames", "centres of mass", "inertia ellipsoids", "contact points")
SHOWN = frozenset(("geometry", "joints and links", "centres of mass", "contact points"))


class SceneRobot:
    """Nodes of a viser scene that follow the links; `layers`: what of it is shown together."""

    def __init__(self, scene: Any, model: Model, meshes: MeshFiles, poses: Array) -> None:
        self.scene, self.model = scene, model
        self.rows, self.offsets = link_rows(model)
        self.places = self.link_poses(poses)
        self.figure = figure_of(model, meshes)
        self.size = self._size()
        self.layers: dict[str, list[Any]] = {name: [] for name in LAYERS}
        self.nodes = {link.name: self._link(k, link, meshes) for k, link in enumerate(model.links)}
        self.bones = [self._bone(k) for k in range(len(self.figure["bones"]))]
        self.move(poses)

    def link_poses(self, poses: Array) -> dict[str, Array]:
        """World from every link, (4, 4), of the rows of `poses`."""
        out = {}
        for name, row in self.rows.items():
            out[name] = self.offsets[name] if row < 0 else poses[row] @ self.offsets[name]
        return out

    def move(self, poses: Array) -> None:
        """Puts every link where it now is."""
        self.places = self.link_poses(poses)
        for name, T in self.places.items():
            self.nodes[name].wxyz, self.nodes[name].position = quaternion(T[:3, :3]), T[:3, 3]
        for bone, given in zip(self.bones, self.figure["bones"]):
            a, b = self._ends(given)
            length = float(np.linalg.norm(b - a))
            bone.position, bone.wxyz = (a + b) / 2, _along((b - a) / length) if length else (1.0, 0.0, 0.0, 0.0)
            bone.scale = (self.size / 120, self.size / 120, max(length, 1e-9))

    def _ends(self, bone: dict[str, Any]) -> tuple[Array, Array]:
        names = [link.name for link in self.model.links]
        T = self.places[names[bone["to"]]]
        return self.places[names[bone["from"]]][:3, 3], T[:3, :3] @ bone["at"] + T[:3, 3]

    def _size(self) -> float:
        """The diagonal of the box around the robot; 1 where it is 0."""
        points = [
            self.places[link["name"]] @ [*p, 1.0]
            for link in self.figure["links"]
            for p in ([0.0, 0.0, 0.0], *(s for x in link["shapes"] for s in x["corners"]))
        ]
        return float(np.linalg.norm(np.ptp(points, axis=0))) or 1.0

    def _put(self, layer: str, path: str, mesh: tuple[Array, Array], colour: tuple[int, ...], **more: Any) -> Any:
        more.setdefault("side", "double")
        node = self.scene.add_mesh_simple(
            path, *mesh, color=colour, visible=layer in SHOWN, flat_shading=layer == "geometry", **more
        )
        self.layers[layer].append(node)
        return node

    def _link(self, k: int, link: Link, meshes: MeshFiles) -> Any:
        at, size = f"/links/{k}", self.size
        node = self.scene.add_frame(at, show_axes=False)
        for i, s in enumerate(meshes.drawn(link)):
            mesh = triangles_of(s, meshes)
            self._put("geometry", f"{at}/shape{i}", mesh, GREY, wxyz=quaternion(s.rotation), position=s.origin)
        self.layers["frames"].append(
            self.scene.add_frame(f"{at}/frame", axes_length=size / 12, axes_radius=size / 400, visible=False)
        )
        for j in self.figure["links"][k]["joints"]:
            r = size / 45
            mesh = (
                revolved([(0, -1.5), (1, -1.5), (1, -1.5), (1, 1.5), (1, 1.5), (0, 1.5)]) if j["axis"] else ball()
            )
            turn = _along(j["axis"] or (0.0, 0.0, 1.0))
            self._put("joints and links", f"{at}/joint", mesh, TEAL, scale=r, wxyz=turn, position=j["at"])
        if link.inertial is not None and link.inertial.mass > 0.0:
            half, axes = ellipsoid(link.inertial)
            com = link.inertial.com
            self._put("centres of mass", f"{at}/com", ball(), RED, scale=size / 70, position=com)
            self._put("inertia ellipsoids", f"{at}/inertia", ball(), GOLD, opacity=0.5, position=com,
                      scale=tuple(np.maximum(half, size / 500)), wxyz=quaternion(axes))  # fmt: skip
        for i, point in enumerate(self.figure["links"][k]["contacts"]):
            self._put("contact points", f"{at}/contact{i}", ball(), VIOLET, scale=size / 90, position=point)
        return node

    def _bone(self, k: int) -> Any:
        rod = revolved([(0, -0.5), (1, -0.5), (1, -0.5), (1, 0.5), (1, 0.5), (0, 0.5)])
        return self._put("joints and links", f"/bones/{k}", rod, BONE)


def quaternion(R: Any) -> tuple[float, float, float, float]:
    """w, x, y, z of a rotation matrix."""
    rows: Any = np.asarray(R, float).tolist()
    x, y, z, w = quaternion_of(rows)
    return w, x, y, z


def _along(axis: Any) -> tuple[float, float, float, float]:
    """The turn of z to a direction."""
    x, y, z = map(float, axis)
    return quaternion(from_z_to((x, y, z)))
