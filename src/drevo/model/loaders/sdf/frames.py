"""Frames of an SDFormat model: poses as they are written, and where every named frame stands."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ....io import xml
from ....io.files import Files
from ....io.xml import Element, Reader
from ...description import IDENTITY, Vec3
from ...draft import Draft
from ...rotations import IDENTITY_POSE, FramePose, compose, from_rpy, inverse_pose, matrix_of_quaternion
from .. import primitives
from ..schema import true

MODEL = "__model__"
WORLD = "world"
PLACED = "placed"  # of a <frame> made here: the frame in the model that stands where its pose says
JOINTS = ("joint", primitives.JOINT)  # free ones among them, which SDFormat does not have


@dataclass(slots=True)
class Scene:
    """The draft that grows, what it may read, and where every named frame stands in the model."""

    draft: Draft
    files: Files
    old_axes: bool = False  # before 1.5, axes were given in the frame of the model
    frames: dict[str, tuple[str, FramePose]] = field(default_factory=dict)  # name -> what it is relative to
    held: dict[str, str] = field(default_factory=dict)  # name -> what it is attached to
    placed: dict[str, FramePose] = field(default_factory=lambda: {MODEL: IDENTITY_POSE})
    gearboxes: list[Element] = field(default_factory=list)
    friction: dict[str, float] = field(default_factory=dict)  # of sliding, by the names of geoms

    def where(self, name: str) -> FramePose:
        """The pose of a frame in the model: up the chain of frames it is relative to, without recursion."""
        chain: dict[str, None] = {}
        while name not in self.placed and name in self.frames and name not in chain:
            chain[name] = None
            name = self.frames[name][0]
        if name not in self.placed:
            why = "refers to itself" if name in chain else "does not exist"
            self.draft.problems.append(
                f"the frame {name!r}, to which a pose is relative, {why}; correct relative_to"
            )
            self.placed[name] = IDENTITY_POSE
        for link in reversed(chain):
            self.placed[link] = compose(self.placed[self.frames[link][0]], self.frames[link][1])
        return self.placed[next(iter(chain), name)]

    def link_of(self, name: str) -> str:
        """The link that a frame moves with; the name itself where there is none."""
        seen = {name}
        while name in self.held:
            name = self.held[name]
            if name in seen:
                break
            seen.add(name)
        return name

    @property
    def world(self) -> FramePose:
        """The pose of the model in the world."""
        return inverse_pose(self.placed[WORLD])


def enter_frames(scene: Scene, model: Element, world: Element | None) -> None:
    """Enter every frame with what it is relative to and attached to, then where the model stands."""
    links = model.all("link")
    for element in model.children:
        if element.tag not in ("link", "frame", *JOINTS):
            continue
        name, pose = key_of(element), element.first("pose")
        reader = Reader(
            scene.draft.problems.append, f"{element.tag} {element.get('name')!r} (line {element.line})"
        )
        to = {"link": "", "frame": element.get("attached_to")}.get(element.tag, child_text(element, "child"))
        relative = (pose.get("relative_to") or pose.get("frame") if pose else "") or to or MODEL
        scene.frames[name] = (relative, read_pose(reader, pose))
        if element.tag != "link":
            scene.held[name] = to or MODEL
    if links:
        scene.held[MODEL] = model.get("canonical_link") or key_of(links[0])
    for element in reversed(model.all("frame")):  # inner models first
        if held := element.get(PLACED):
            relative, stood = scene.frames[key_of(element)]
            scene.frames[key_of(element)] = (
                relative,
                compose(stood, inverse_pose(_within(scene, held, key_of(element)))),
            )
    if any(link.get("name") == WORLD for link in links):
        line = next(link.line for link in links if link.get("name") == WORLD)
        scene.draft.doubts.append(
            f"link 'world' (line {line}) has the name that SDFormat keeps for the world, and is taken as a link; "
            "rename it"
        )
        scene.held.pop(WORLD, None)
        return
    stands = _in_world(scene, model, world)
    if held := model.get("placement_frame"):
        stands = compose(stands, inverse_pose(scene.where(held)))
    scene.placed[WORLD] = inverse_pose(stands)


def _within(scene: Scene, name: str, model: str) -> FramePose:
    """The pose of a frame in the nested model that holds it."""
    pose, seen = IDENTITY_POSE, {model}
    while name not in seen and name in scene.frames:
        seen.add(name)
        relative, own_pose = scene.frames[name]
        pose, name = compose(own_pose, pose), relative
    if name != model:
        scene.draft.problems.append(f"the placement_frame of {model!r} is no frame in it; correct its name")
        return IDENTITY_POSE
    return pose


def _in_world(scene: Scene, model: Element, world: Element | None) -> FramePose:
    """<pose> of the model, which may be relative to a frame of the world or to a model beside it."""
    pose = model.first("pose")
    reader = Reader(scene.draft.problems.append, f"model {model.get('name')!r} (line {model.line})")
    own_pose = read_pose(reader, pose)
    relative = (pose.get("relative_to") or pose.get("frame")) if pose else ""
    if not relative or relative == WORLD:
        return own_pose
    world_scene = Scene(scene.draft, scene.files, placed={MODEL: IDENTITY_POSE, WORLD: IDENTITY_POSE})
    for element in world.children if world else ():
        if element.tag in ("frame", "model"):
            pose_element = element.first("pose")
            to = (pose_element.get("relative_to") if pose_element else "") or element.get("attached_to") or MODEL
            world_scene.frames[key_of(element)] = to, read_pose(reader, pose_element)
    return compose(world_scene.where(relative), own_pose)


# --- values ------------------------------------------------------------------------------------------------------


def key_of(element: Element) -> str:
    """The name, or what stands for one."""
    return element.get("name") or f"<{element.tag} on line {element.line}>"


def given_name(scene: Scene, element: Element) -> str:
    """The name, which must be there."""
    if not element.get("name").strip():
        scene.draft.problems.append(f"<{element.tag}> on line {element.line} has no name; give it one")
    return key_of(element)


def child_text(element: Element | None, tag: str) -> str:
    """The text of a child, empty where it is absent."""
    child = element.first(tag) if element else None
    return child.text if child else ""


def read_numbers(
    reader: Reader, element: Element | None, default: tuple[float, ...], bound: float = xml.MAX_LENGTH
) -> tuple[float, ...]:
    """The numbers that stand inside an element; the default where it is absent or empty."""
    if element is None or not element.text:
        return default
    return reader.vector(Element(element.tag, {"value": element.text}, element.line), "value", default, bound)


def as_vec3(values: tuple[float, ...]) -> Vec3:
    return (values[0], values[1], values[2])


def read_pose(reader: Reader, element: Element | None) -> FramePose:
    """<pose>: a place, and roll pitch yaw or a quaternion."""
    if element is None or not element.text:
        return IDENTITY_POSE
    if element.get("rotation_format") == "quat_xyzw":
        v = read_numbers(reader, element, (0.0,) * 6 + (1.0,))
        if abs(math.hypot(*v[3:]) - 1.0) > 1e-3:
            reader.report(
                f"{reader.owner}: the quaternion on line {element.line} is not of length one; normalise it"
            )
            return IDENTITY_POSE
        return as_vec3(v), matrix_of_quaternion(*v[3:])
    v = read_numbers(reader, element, (0.0,) * 6)
    angles = [math.radians(x) for x in v[3:]] if true(element.get("degrees")) else v[3:]
    return as_vec3(v), from_rpy(*angles) if any(angles) else IDENTITY
