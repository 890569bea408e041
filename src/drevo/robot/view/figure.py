"""The drawn figure of a robot: links with their shapes, centres of mass, inertia ellipsoids, joints, bones.

The robot in a window's scene: a node for every link, and what belongs to it below.

A robot as a drawing of poles, axes and centres of mass: SVG.
"""

from __future__ import annotations

import tempfile
import webbrowser
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...compiler.pages.drawing import robot_svg
from ...errors import InputError, shown
from ...io.files import saving
from ...io.given import Array
from ...mechanics.configuration import state
from ...model.description import Inertial, Joint, Link, Mat3, Model, Shape, Vec3
from ...model.rotations import from_z_to, quaternion_of
from .mesh import CORNERS, FACES, MeshFiles, ball, coarser, in_steps, revolved, triangles_of

AXIAL_JOINTS = ("revolute", "continuous", "helical", "prismatic", "cylindrical", "universal")


def figure_of(model: Model, meshes: MeshFiles) -> dict[str, Any]:
    """The figure as plain data: `links` in the order of the model, `bones` from a link's frame to a joint."""
    most = FACES // (sum(s.kind == "mesh" for link in model.links for s in meshes.drawn(link)) or 1)
    rows, offsets = link_rows(model)
    numbers = {link.name: k for k, link in enumerate(model.links)}
    moving = {j.child: _joint(j) for j in model.joints if j.kind != "fixed"}
    links = [
        {
            "name": link.name,
            "row": rows[link.name],
            "offset": offsets[link.name][:3].ravel().tolist(),
            "shapes": [_shape(s, meshes, most) for s in meshes.drawn(link)],
            "joints": [moving[link.name]] if link.name in moving else [],
            "contacts": [c.point for c in model.contacts if c.link == link.name],
            **_mass(link.inertial),
        }
        for link in model.links
    ]
    bones = [
        {"from": numbers[j.parent], "to": numbers[j.child], "at": _own_place(j)}
        for j in model.joints
        if j.kind != "free"
    ]
    gravity = np.array(model.gravity)
    size = float(np.linalg.norm(gravity))
    up = (-gravity / size).tolist() if size else [0.0, 0.0, 1.0]
    return {"links": links, "bones": bones, "up": up}


def link_rows(model: Model) -> tuple[dict[str, int], dict[str, Array]]:
    """Row of `poses` that every link goes with, -1 for the ground, and the link's pose there, (4, 4)."""
    carried = (*model.moving_joints, *(j for j in model.joints if j.mimic))
    rows = {j.child: k for k, j in enumerate(carried)} | {model.root: -1}
    offsets = {name: np.eye(4) for name in rows}
    for j in model.joints:
        if j.child not in rows:
            rows[j.child] = rows[j.parent]
            step = _pose(j.rotation, j.origin) @ _pose(j.child_rotation, j.child_origin)
            offsets[j.child] = offsets[j.parent] @ step
    return rows, offsets


def ellipsoid(inertial: Inertial) -> tuple[Array, Array]:
    """Half axes, (3,), and axes as columns, (3, 3), of the uniform solid ellipsoid of that mass and tensor.

    An axis is 0 where the tensor belongs to no body, or to a flat one.
    """
    moments, axes = np.linalg.eigh(np.array(inertial.tensor))
    square = 2.5 * (moments.sum() - 2.0 * moments) / inertial.mass
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    return np.sqrt(np.maximum(square, 0.0)), axes


def _pose(R: Mat3, p: Vec3) -> Array:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, p
    return T


def _mass(inertial: Inertial | None) -> dict[str, Any]:
    if inertial is None or inertial.mass <= 0.0:
        return {}
    half, axes = ellipsoid(inertial)
    return {"com": inertial.com, "ellipsoid": half.tolist(), "turn": axes.ravel().tolist()}


def _joint(j: Joint) -> dict[str, Any]:
    """A joint in the axes of its child."""
    axis = (np.array(j.child_rotation).T @ j.axis).tolist() if j.kind in AXIAL_JOINTS else None
    return {"name": j.name, "kind": j.kind, "axis": axis, "at": _own_place(j)}


def _own_place(j: Joint) -> list[float]:
    """The position of the moved joint in axes of its child, (3,)."""
    place: list[float] = (-np.array(j.child_rotation).T @ j.child_origin + 0.0).tolist()
    return place


def _shape(s: Shape, meshes: MeshFiles, most: int) -> dict[str, Any]:
    triangles = meshes.triangles(s) if s.kind == "mesh" else None
    if triangles is not None:
        points, faces = coarser(*triangles, most)
        inside, more = np.stack([points.min(0), points.max(0)]), in_steps(points, faces)
        inside = np.where(CORNERS > 0, inside[1], inside[0])
    else:
        width = 2 * s.size[0]
        long = s.size[-1] + (width if s.kind == "capsule" else 0.0)
        inside = CORNERS * {"box": s.size, "sphere": (width,) * 3}.get(s.kind, (width, width, long))
        more = {"size": s.size}
    corners = inside @ np.array(s.rotation).T + s.origin
    turn = np.array(s.rotation).ravel().tolist()
    return {"kind": s.kind, "at": s.origin, "turn": turn, "corners": corners.tolist(), **more}


GREY, TEAL, RED_RGB, GOLD_RGB, VIOLET, BONE = (
    (195, 202, 211), (11, 122, 117), (179, 69, 44), (201, 138, 27), (122, 79, 163), (138, 151, 166),
)  # fmt: skip
LAYERS = ("geometry", "joints and links", "frames", "centres of mass", "inertia ellipsoids", "contact points")
SHOWN_LAYERS = frozenset(("geometry", "joints and links", "centres of mass", "contact points"))


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
            path, *mesh, color=colour, visible=layer in SHOWN_LAYERS, flat_shading=layer == "geometry", **more
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
            self._put("centres of mass", f"{at}/com", ball(), RED_RGB, scale=size / 70, position=com)
            self._put("inertia ellipsoids", f"{at}/inertia", ball(), GOLD_RGB, opacity=0.5, position=com,
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


ENDING = ".svg"


class Drawn:
    """SVG text: `svg`. Notebooks show it, `save` writes it, `show` opens it in the viewer of this machine."""

    def __init__(self, model: Model, q: ArrayLike | None = None, letters: Mapping[str, str] | None = None) -> None:
        given = None if q is None else state(model, "draw", q=q)[0]
        if given is not None and given.shape != (model.nq,):
            raise InputError(f"draw: q must be one configuration, ({model.nq},), not {given.shape}")
        if letters is not None and not isinstance(letters, Mapping):
            raise InputError(f"draw: letters is {shown(letters)}; it must be a mapping of letters to letters")
        self.name = model.name
        self.svg = robot_svg(model, None if given is None else given.tolist(), letters)

    def __repr__(self) -> str:
        return f"<Drawing of {self.name!r}: {len(self.svg)} characters of SVG; show() opens it>"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes the drawing to an .svg file and returns its path."""
        with saving("a drawing", path, (ENDING,)) as file:
            file.write_text(self.svg, encoding="utf-8", newline="\n")
        return Path(path)

    def show(self) -> Path:
        """Opens the drawing in the viewer of this machine, from a file of its own; returns its path."""
        file = self.save(Path(tempfile.mkdtemp(prefix="drevo-")) / f"robot{ENDING}")
        webbrowser.open(file.as_uri())
        return file
