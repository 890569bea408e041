"""The drawn figure of a robot: links with their shapes, centres of mass, inertia ellipsoids, joints, bones."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...io.given import Array
from ...model.description import Inertial, Joint, Mat3, Model, Shape, Vec3
from .mesh import FACES, MeshFiles, coarser, in_steps
from .triangles import CORNERS

TURNING = ("revolute", "continuous", "helical", "prismatic", "cylindrical", "universal")


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
            own = _pose(j.rotation, j.origin) @ _pose(j.child_rotation, j.child_origin)
            offsets[j.child] = offsets[j.parent] @ own
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
    axis = (np.array(j.child_rotation).T @ j.axis).tolist() if j.kind in TURNING else None
    return {"name": j.name, "kind": j.kind, "axis": axis, "at": _own_place(j)}


def _own_place(j: Joint) -> list[float]:
    """The position of the moved joint in axes of its child, (3,)."""
    place: list[float] = (-np.array(j.child_rotation).T @ j.child_origin + 0.0).tolist()
    return place


def _shape(s: Shape, meshes: MeshFiles, most: int) -> dict[str, Any]:
    found = meshes.triangles(s) if s.kind == "mesh" else None
    if found is not None:
        points, faces = coarser(*found, most)
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
