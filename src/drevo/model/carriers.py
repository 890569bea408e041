"""A robot told to those who know fewer kinds of joints, or only links in the frames of their joints."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from ..errors import ModelError
from .description import (
    IDENTITY,
    JOINT_SIZES,
    ORIGIN,
    ContactExclusion,
    Joint,
    Link,
    Loop,
    Mimic,
    Model,
    TendonSegment,
    Vec3,
)
from .draft import unused
from .formula import POSE_STEPS, steps_of
from .rotations import plane_axes

WORLD = "world"
Ends = TypeVar("Ends", Loop, TendonSegment, ContactExclusion)


def elementary(joint: Joint) -> list[tuple[str, Vec3]]:
    """The joints of one coordinate, or of one kind, that make a joint: kind and axis, parent side first."""
    axis = joint.axis
    if joint.kind == "cylindrical":
        return [("prismatic", axis), ("revolute", axis)]
    if joint.kind == "universal":
        assert joint.axis2 is not None  # validation refuses a universal joint without it
        return [("revolute", axis), ("revolute", joint.axis2)]
    if joint.kind == "planar":
        x, y = plane_axes(axis)
        return [("prismatic", x), ("prismatic", y), ("revolute", axis)]
    if joint.formula:
        return [POSE_STEPS[step] for step in steps_of(joint.formula)]
    return [("revolute" if joint.kind == "continuous" else joint.kind, axis)]


def with_carriers(model: Model, kinds: Collection[str] = tuple(JOINT_SIZES)) -> Model:
    """Adds a massless link in the frame of every joint of these kinds whose child stands apart."""

    def parts(joint: Joint) -> list[Joint]:
        weld = Joint(f"{joint.name}_fixed", "fixed", "", "", joint.child_origin, joint.child_rotation)
        return (
            [replace(joint, child_origin=ORIGIN, child_rotation=IDENTITY), weld]
            if joint.apart and joint.kind in kinds
            else [joint]
        )

    return _split(model, [parts(joint) for joint in model.joints], "carrier")


def with_chains(model: Model, kinds: Collection[str]) -> Model:
    """Replaces joints not of these kinds by chains over massless links; the coordinates stay the same.

    A screw becomes a hinge of its name and a slide that follows it; what acts in a joint acts on every coordinate.
    ModelError where a joint is by formula, which no chain is.
    """
    if by_formula := [joint.name for joint in model.joints if joint.formula]:
        raise ModelError(
            f"robot {model.name!r}: joint {by_formula[0]!r} is by formula, which TOML and JSON hold and no "
            "other format"
        )

    def parts(joint: Joint) -> list[Joint]:
        if joint.kind in kinds:
            return [joint]
        place = joint.origin, joint.rotation
        if joint.kind == "helical":
            return [_at(replace(joint, kind="revolute", lead=0.0), *place), _slide(joint)]
        steps = elementary(joint)
        if len(steps) == 1:
            return [replace(joint, kind=steps[0][0])]
        held = [replace(joint, name=f"{joint.name}_{k}", kind=kind, axis=axis, axis2=None)
                for k, (kind, axis) in enumerate(steps, 1)]  # fmt: skip
        last = replace(_at(held[-1]), child_origin=joint.child_origin, child_rotation=joint.child_rotation)
        return [_at(held[0], *place), *map(_at, held[1:-1]), last]

    return _split(model, [parts(joint) for joint in model.joints], "step")


def with_world(model: Model) -> Model:
    """Hangs the robot from a link "world": its root, or one without mass; any other gets another name."""
    root = model.links[0]
    if root.name == WORLD:
        return model
    names = {link.name for link in model.links}
    model = renamed(model, {WORLD: _new(f"{WORLD}_link", names)} if WORLD in names else {})
    weld = Joint(_new(f"{root.name}_fixed", {j.name for j in model.joints}), "fixed", WORLD, root.name)
    return replace(model, links=(Link(WORLD), *model.links), joints=(weld, *model.joints))


def renamed(model: Model, names: Mapping[str, str]) -> Model:
    """Gives some links of the robot other names."""
    if not names:
        return model

    def name(link: str) -> str:
        return names.get(link, link)

    return replace(
        model,
        links=tuple(replace(link, name=name(link.name)) for link in model.links),
        joints=tuple(replace(j, parent=name(j.parent), child=name(j.child)) for j in model.joints),
        contacts=tuple(replace(point, link=name(point.link)) for point in model.contacts),
        loops=_renamed(model.loops, name),
        tendons=tuple(replace(t, segments=_around(_renamed(t.segments, name), name)) for t in model.tendons),
        exclusions=_renamed(model.exclusions, name),
        geoms=tuple(replace(geom, link=name(geom.link)) for geom in model.geoms),
        sensors=tuple(replace(sensor, link=name(sensor.link)) for sensor in model.sensors),
    )


def _renamed(ends: tuple[Ends, ...], name: Callable[[str], str]) -> tuple[Ends, ...]:
    """Ends of loops or contacts with their links under other names."""
    return tuple(replace(x, link_a=name(x.link_a), link_b=name(x.link_b)) for x in ends)


def _around(segments: tuple[TendonSegment, ...], name: Callable[[str], str]) -> tuple[TendonSegment, ...]:
    return tuple(
        replace(x, around=replace(x.around, link=name(x.around.link))) if x.around else x for x in segments
    )


def _at(joint: Joint, origin: Vec3 = ORIGIN, rotation: tuple[Vec3, Vec3, Vec3] = IDENTITY) -> Joint:
    """The joint there, its child in its frame."""
    return replace(joint, origin=origin, rotation=rotation, child_origin=ORIGIN, child_rotation=IDENTITY)


def _slide(joint: Joint) -> Joint:
    """The slide of a screw: a prismatic joint that moves along the screw's axis while it turns."""
    pitch, mimic = joint.lead / (2.0 * math.pi), joint.mimic
    follows = Mimic(joint.name, pitch)
    if mimic:
        follows = Mimic(mimic.joint, pitch * mimic.multiplier, pitch * mimic.offset)
    return replace(
        joint, name=f"{joint.name}_slide", kind="prismatic", lead=0.0, origin=ORIGIN, rotation=IDENTITY,
        limit=None, dynamics=None, mimic=follows,
    )  # fmt: skip


def _split(model: Model, parts: list[list[Joint]], noun: str) -> Model:
    """Every joint in its parts, with massless links between them; the last part carries the child."""
    if all(len(part) == 1 for part in parts):
        return replace(model, joints=tuple(part for (part,) in parts))
    links = {link.name: link for link in model.links}
    names, taken = set(links), {joint.name for joint in model.joints}
    carried = [model.links[0]]
    joints: list[Joint] = []
    for joint, steps in zip(model.joints, parts, strict=True):
        parent = joint.parent
        for step in steps:
            child = joint.child if step is steps[-1] else _new(f"{joint.child}_{noun}", names)
            name = step.name if step.name == joint.name else _new(step.name, taken)
            joints.append(replace(step, name=name, parent=parent, child=child))
            carried.append(links.get(child, Link(child)))
            parent = child
    return replace(model, links=tuple(carried), joints=tuple(joints))


def _new(name: str, taken: set[str]) -> str:
    taken.add(name := unused(name, taken))
    return name


def moving_without_mass(model: Model) -> Iterator[Link]:
    """Links that a joint moves and that neither weigh anything nor have a welded link that does."""
    weighs = {link.name: bool(link.inertial and link.inertial.mass) for link in model.links}
    for joint in reversed(model.joints):
        if joint.kind == "fixed":
            weighs[joint.parent] |= weighs[joint.child]
    links = {link.name: link for link in model.links}
    yield from (links[joint.child] for joint in model.joints if joint.kind != "fixed" and not weighs[joint.child])
