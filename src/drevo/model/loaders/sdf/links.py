"""Links of an SDFormat model: what they weigh, written out or by their shapes, and what they look like."""

from __future__ import annotations

import os

import numpy as np

from ....errors import DrevoError, ModelError
from ....io import meshes, xml
from ....io.xml import Element, Reader
from ...description import IDENTITY, ORIGIN, SHAPE_SIZES, Inertial, Link, Mat3, Shape, Vec3
from ...rotations import add_vectors, apply, turn_tensor
from .. import solids
from ..schema import true
from ..solids import MassProperties
from .frames import Scene, child_text, given_name, read_numbers, read_pose
from .include import located

SDF_SIZES = {**SHAPE_SIZES, "ellipsoid": ("radii",)}
TRIPLES = ("size", "radii")
SDF_HALVED = {"box": (0, 1, 2), "cylinder": (1,), "capsule": (1,)}  # sizes that `solids` takes by half
FRICTION_PATHS = (("surface", "friction", "bullet", "friction"), ("surface", "friction", "ode", "mu"))
WATER = 1000.0  # kg/m^3, of shapes that do not say


def read_link(scene: Scene, element: Element) -> Link:
    name = given_name(scene, element)
    owner = f"link {name!r} (line {element.line})"
    inertial = element.first("inertial")
    shapes = _shapes(scene, element, name)
    if inertial is None:
        scene.draft.doubts.append(
            f"{owner} has no <inertial>, taken as 1 kg with moments of 1 kg m^2, as SDFormat means it; give it one"
        )
        return Link(name, Inertial(1.0, ORIGIN, IDENTITY), shapes, element.line)
    by_shapes = true(inertial.get("auto"))
    body = _by_shapes(scene, element, inertial, owner) if by_shapes else _inertial(scene, inertial, owner)
    return Link(name, body, shapes, element.line)


def _inertial(scene: Scene, element: Element, owner: str) -> Inertial:
    reader = Reader(scene.draft.problems.append, owner)
    pose = element.first("pose")
    if pose and pose.get("relative_to"):
        reader.report(f"{owner}: relative_to in the pose of <inertial> on line {pose.line} is not read; remove it")
    com, turn = read_pose(reader, pose)
    mass = _usual(scene, reader, element, "mass", xml.MAX_MASS)
    inertia = element.first("inertia") or element
    xx, yy, zz = (_usual(scene, reader, inertia, tag, xml.MAX_INERTIA) for tag in ("ixx", "iyy", "izz"))
    xy, xz, yz = (
        read_numbers(reader, inertia.first(tag), (0.0,), xml.MAX_INERTIA)[0] for tag in ("ixy", "ixz", "iyz")
    )
    tensor: Mat3 = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    return Inertial(mass, com, tensor if turn == IDENTITY else turn_tensor(turn, tensor))


def _usual(scene: Scene, reader: Reader, parent: Element, tag: str, bound: float) -> float:
    """A mass or a moment; 1 where it is absent, as SDFormat means it, with a doubt."""
    child = parent.first(tag)
    if child is None or not child.text:
        scene.draft.doubts.append(
            f"{reader.owner}: <{parent.tag}> on line {parent.line} has no <{tag}>, taken as 1, as SDFormat means "
            "it; add it"
        )
    return read_numbers(reader, child, (1.0,), bound)[0]


# --- by shapes ---------------------------------------------------------------------------------------------------


def _by_shapes(scene: Scene, link: Element, inertial: Element, owner: str) -> Inertial:
    """<inertial auto="true">: of all collisions, by their densities, or as heavy as <mass> says."""
    reader = Reader(scene.draft.problems.append, owner)
    usual = read_numbers(reader, inertial.first("density"), (WATER,), xml.MAX_MASS)[0]
    parts = []
    for element in link.all("collision"):
        density = read_numbers(reader, element.first("density"), (usual,), xml.MAX_MASS)[0]
        place, turn = read_pose(reader, element.first("pose"))
        solid = next(iter((element.first("geometry") or element).children), element)
        try:
            if density < 0.0:
                raise ModelError(f"its density {density:g} is negative; correct it")
            weighed = _weighed(scene, reader, solid)
        except DrevoError as error:
            reader.report(f"{owner}: its <collision> on line {element.line}: {error}")
            return Inertial()
        rows: Mat3 = tuple(tuple(density * x for x in row) for row in weighed.tensor)  # type: ignore[assignment]
        centre: Vec3 = add_vectors(place, apply(turn, weighed.centre))
        parts.append((density * weighed.volume, centre, turn_tensor(turn, rows)))
    body = solids.combined_inertia(parts)
    if body.mass <= 0.0:
        reader.report(f"{owner}: its <inertial auto='true'> has no collision that weighs; write the inertia out")
    wanted = read_numbers(reader, inertial.first("mass"), (body.mass,), xml.MAX_MASS)[0]
    k = wanted / (body.mass or 1.0)
    tensor: Mat3 = tuple(tuple(k * x for x in row) for row in body.tensor)  # type: ignore[assignment]
    return Inertial(wanted, body.com, tensor)


def _weighed(scene: Scene, reader: Reader, solid: Element) -> MassProperties:
    """A solid at density one."""
    if solid.tag == "mesh":
        path = located(child_text(solid, "uri"), scene.files, scene.files.folder)
        data = scene.files.read(path, meshes.MAX_MESH_BYTES, meshes.weight(path))
        points, faces = meshes.read_mesh(data, os.path.splitext(path)[1][1:].lower())
        scale = np.array(read_numbers(reader, solid.first("scale"), (1.0, 1.0, 1.0)))
        faces = meshes.hull_faces(points) if faces is None else faces
        return solids.of_triangles((points * scale)[faces[:, :: -1 if scale.prod() < 0.0 else 1]])
    if solid.tag not in SDF_SIZES:
        raise ModelError(f"<{solid.tag}> on line {solid.line} has no inertia that is read; write the inertia out")
    size = _sizes(reader, solid)
    if min(size) <= 0.0:
        raise ModelError(f"<{solid.tag}> on line {solid.line} has a size that is not positive; correct it")
    halved = SDF_HALVED.get(solid.tag, ())
    return solids.solid(solid.tag, tuple(x / 2 if k in halved else x for k, x in enumerate(size)))


def _sizes(reader: Reader, solid: Element) -> tuple[float, ...]:
    none = {tag: (0.0, 0.0, 0.0) if tag in TRIPLES else (0.0,) for tag in SDF_SIZES[solid.tag]}
    return tuple(x for tag, zero in none.items() for x in read_numbers(reader, solid.first(tag), zero))


def _shapes(scene: Scene, link: Element, name: str) -> tuple[Shape, ...]:
    """The visual and collision shapes of a link; notes the friction coefficients of those that collide."""
    shapes: list[Shape] = []
    for child in link.children:
        shape = _shape(child)
        if shape is None:
            continue
        for path in FRICTION_PATHS if shape.role == "collision" else ():
            friction_element: Element | None = child
            for tag in path:
                friction_element = friction_element and friction_element.first(tag)
            mu = read_numbers(Reader(lambda fault: None, ""), friction_element, (-1.0,))[0]
            if mu >= 0.0:
                scene.friction[f"{name}_collision{len(shapes)}"] = mu
        shapes.append(shape)
    return tuple(shapes)


def _shape(element: Element) -> Shape | None:
    """A plain solid or a mesh; None for the rest, and for what cannot be read: nothing is computed from it."""
    geometry = element.first("geometry") if element.tag in ("visual", "collision") else None
    if geometry is None:
        return None
    faults: list[str] = []
    reader = Reader(faults.append, element.tag)
    place = read_pose(reader, element.first("pose"))
    for solid in geometry.children:
        if solid.tag == "mesh":
            scale = read_numbers(reader, solid.first("scale"), (1.0, 1.0, 1.0))
            shape = Shape("mesh", scale, *place, child_text(solid, "uri"), element.tag)
        elif solid.tag in SHAPE_SIZES:
            shape = Shape(solid.tag, _sizes(reader, solid), *place, "", element.tag)
        else:
            continue
        return None if faults else shape
    return None
