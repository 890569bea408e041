"""Inertias of bodies as the settings of an MJCF file have them: from <inertial> or geoms, bounded, scaled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....io import xml
from ....io.xml import Element, Reader
from ...description import ORIGIN, Inertial, Vec3
from ...rotations import matmul, turn_tensor
from .. import solids
from .file import IDENTITY_POSE, File, FramePose, placed_in, read_vector, rotation_of
from .geoms import Complaint, SolidGeom, in_groups, inertial_of_geoms

ZERO_ROWS = ((0.0, 0.0, 0.0),) * 3


def inertial_of(
    file: File, reader: Reader, element: Element | None, geoms: list[SolidGeom], lack: Complaint, place: Vec3
) -> Inertial | None:
    """From <inertial>, or from the geoms as `inertiafromgeom` says; then within the bounds of the file.

    lack: takes the sentence that the inertia of a geom cannot be read. place: `pos` of the body, where MuJoCo also
    puts the centre, in axes of the body, of one that weighs nothing by itself.
    """
    inertial = None
    if chosen := _weighing(file, reader, element, geoms):
        inertial = inertial_of_geoms(
            reader, chosen, reader.report if _setting(file, "settotalmass") > 0.0 else lack
        )
    elif element is not None:
        inertial = _explicit(file, reader, element)
    return _within(file, inertial, place)


def _weighing(file: File, reader: Reader, element: Element | None, geoms: list[SolidGeom]) -> list[SolidGeom]:
    """The geoms that make the inertia of a body; none where its <inertial> does."""
    rule = file.compiler.get("inertiafromgeom", "auto")
    if rule == "false" or (rule != "true" and element is not None):
        return []
    return [geom for geom in geoms if in_groups(reader, geom)]


def inertial_frame(
    file: File, reader: Reader, element: Element | None, geoms: list[SolidGeom], body: Inertial
) -> FramePose:
    """Centre of mass and axes: those of <inertial> or of the one geom that weighs, else principal ones."""
    silent = Reader(lambda fault: None, reader.owner)
    heavy = [x for x in _weighing(file, silent, element, geoms) if inertial_of_geoms(silent, [x], silent.report)]
    if not heavy and element is not None and "fullinertia" not in element.attributes:
        return body.com, rotation_of(file, reader, element)
    if len(heavy) != 1:
        return body.com, solids.principal_axes(body.tensor)
    (geom,) = heavy
    if geom.kind != "mesh":
        return body.com, geom.turn
    return body.com, matmul(geom.turn, solids.principal_axes(file.meshes.solid(geom.element.get("mesh")).tensor))


def _explicit(file: File, reader: Reader, element: Element, frame: FramePose = IDENTITY_POSE) -> Inertial:
    """The inertial that an element gives by numbers, in axes of the body."""
    if "pos" not in element.attributes:
        reader.report(f"{reader.owner}: <inertial> on line {element.line} has no pos; add it")
    mass = reader.needed(element, element, "inertial", "mass", xml.MAX_MASS)
    com, turn = placed_in(frame, (read_vector(reader, element, "pos", ORIGIN), rotation_of(file, reader, element)))
    if "fullinertia" in element.attributes:
        xx, yy, zz, xy, xz, yz = reader.vector(element, "fullinertia", (0.0,) * 6, xml.MAX_INERTIA)
        return Inertial(mass, com, turn_tensor(turn, ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))))
    if "diaginertia" not in element.attributes and not _setting(file, "boundinertia"):
        reader.report(
            f"{reader.owner}: <inertial> on line {element.line} has no diaginertia or fullinertia; add one"
        )
    x, y, z = reader.vector(element, "diaginertia", ORIGIN, xml.MAX_INERTIA)
    return Inertial(mass, com, turn_tensor(turn, solids.diagonal((x, y, z))))


def _within(file: File, body: Inertial | None, place: Vec3) -> Inertial | None:
    """At least boundmass and, about every principal axis, boundinertia; balanced where the file asks for that."""
    mass, least = _setting(file, "boundmass"), _setting(file, "boundinertia")
    balance = file.compiler.get("balanceinertia") == "true"
    if mass <= 0.0 and least <= 0.0 and not balance:
        return body
    body = body or Inertial(com=place)
    body = replace(body, mass=max(body.mass, mass))
    moments, axes = np.linalg.eigh(np.array(body.tensor))
    bounded = np.maximum(moments, least)
    if balance and 2.0 * bounded.max() > bounded.sum():
        bounded[:] = bounded.mean()
    if (bounded != moments).any():
        a, b, c = ((axes * bounded) @ axes.T).tolist()
        body = replace(body, tensor=(tuple(a), tuple(b), tuple(c)))
    return body if body.mass or body.tensor != ZERO_ROWS else None


def scale_to_total(file: File) -> None:
    """Scale all masses and inertias so that the robot weighs `settotalmass`, where that is positive."""
    wanted = _setting(file, "settotalmass")
    links = file.draft.links
    total = sum(link.inertial.mass for link in links if link.inertial)
    if wanted <= 0.0 or total <= 0.0:
        return
    k = wanted / total
    for i, link in enumerate(links):
        if body := link.inertial:
            a, b, c = ((k * x, k * y, k * z) for x, y, z in body.tensor)
            links[i] = replace(link, inertial=Inertial(k * body.mass, body.com, (a, b, c)))


def _setting(file: File, name: str) -> float:
    """A number of <compiler>; zero, which sets nothing, where there is none."""
    return Reader(file.draft.problems.append, "compiler").scalar(file.compiler, name, 0.0, xml.MAX_INERTIA)
