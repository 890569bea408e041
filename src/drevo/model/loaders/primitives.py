"""Collision shapes of URDF and SDF as geoms: they touch the ground and other bodies, not one another.

Neither format says which links of a robot may touch each other; SDF's self_collide is off by default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from drevo.model.contact import FRICTION, GEOM_SIZES, Geom
from drevo.model.description import Link, Shape
from drevo.model.draft import Draft

HALVED = {"box": 0, "sphere": 1, "capsule": 1, "cylinder": 1}  # how many sizes are radii


def enter_geoms(draft: Draft, friction: Mapping[str, float]) -> None:
    """The geoms of a file that has none of Drevo's own; friction: of links, or of geoms by their names."""
    if draft.geoms:
        return
    draft.geoms = geoms_of_shapes(draft.links, friction)
    for link in draft.links:
        for shape in link.shapes:
            if shape.role == "collision" and not _touches(shape):
                draft.leave_out(f"{shape.kind} shapes of", link.name)


def geoms_of_shapes(links: Iterable[Link], friction: Mapping[str, float]) -> list[Geom]:
    """A geom for every collision shape of plain kinds."""
    found = []
    for link in links:
        for k, shape in enumerate(link.shapes):
            if shape.role == "collision" and _touches(shape):
                name = f"{link.name}_collision{k}"
                sliding = friction.get(name, friction.get(link.name, FRICTION[0]))
                found.append(
                    Geom(
                        name, link.name, shape.kind, half_lengths(shape), shape.origin, shape.rotation,
                        (sliding, *FRICTION[1:]), conaffinity=0,
                    )
                )  # fmt: skip
    return found


def _touches(shape: Shape) -> bool:
    return shape.kind in GEOM_SIZES and min(shape.size) > 0.0


def half_lengths(shape: Shape) -> tuple[float, ...]:
    """Its sizes with half lengths for whole ones."""
    radii = HALVED[shape.kind]
    return tuple(x if k < radii else x / 2 for k, x in enumerate(shape.size))
