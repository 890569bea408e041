"""Changes of a description as edits of its XML: attributes of URDF and MJCF, texts of elements of SDF."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from ..io.xml import Edit, Element, Line, Reader, insert_child, remove, set_attribute, set_text
from ..model.description import Inertial, Mat3
from ..model.loaders.schema import true
from ..model.loaders.sdf.frames import child_text, read_pose
from ..model.rotations import from_rpy, matrix_of_quaternion, transpose, turn_tensor
from .findings import Change, Subject

ROTATION_NAMES = ("quat", "axisangle", "euler", "xyaxes", "zaxis")  # of MJCF
TENSOR = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
MJCF_TENSOR_ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
Told = tuple[Edit, str]


class MendedText:
    """The text of a file of any kind: the changes that all say alike."""

    s: Subject
    writers: Mapping[str, Callable[[Any, Change], Iterator[Told]]]  # see `writers`

    def edits(self, change: Change) -> list[Told]:
        """The edits that make a change, each with its sentence; none where this file cannot say it."""
        return list(self.writers[change.what](self, change))

    def inertial(self, k: int, new: Inertial) -> Iterator[Told]:
        """The mass, centre and tensor of a link, each where it differs."""
        raise NotImplementedError


def writers(
    *of_format: Callable[[Any, Change], Iterator[Told]],
) -> Mapping[str, Callable[[Any, Change], Iterator[Told]]]:
    """The functions that write each kind of change (`Change.what`); of_format: where the formats differ."""
    kinds = ("limits", "continuous", "mimic-cycle", "joint name", "link name", "mesh")
    return {"inertial": one_inertial, "twins": mirrored_pair, **dict(zip(kinds, of_format))}


class FileText(MendedText):
    """The text of a file with its elements: makes edits, and says each in a sentence."""

    def __init__(self, s: Subject) -> None:
        assert s.root is not None
        self.s, self.root, self.data = s, s.root, s.data

    def set(self, owner: str, element: Element, name: str, value: str | None) -> Iterator[Told]:
        """One attribute; nothing where it has that value already."""
        old = element.attributes.get(name)
        if old == value or (value is None and old is None):
            return
        sentence = f"{owner}: {name} of <{element.tag}> on line {element.line}, "
        how = (
            f"{old} is taken away" if value is None else f"{value} is new" if old is None else f"{old} -> {value}"
        )
        yield set_attribute(self.data, element, name, value), sentence + how

    def put(self, owner: str, parent: Element, tag: str, value: str | None) -> Iterator[Told]:
        """The text of one child; nothing where it says that already."""
        child = parent.first(tag)
        sentence = f"{owner}: <{tag}> of <{parent.tag}> on line {(child or parent).line}, "
        if child is None and value is not None:
            yield insert_child(self.data, parent, f"<{tag}>{value}</{tag}>"), f"{sentence}{value} is new"
        elif child is not None and value is None:
            yield remove(self.data, child), f"{sentence}{child.text} is taken away"
        elif child is not None and value is not None and child.text != value:
            yield set_text(self.data, child, value), f"{sentence}{child.text} -> {value}"

    def say(self, owner: str, element: Element, name: str, value: str | None) -> Iterator[Told]:
        """An attribute, or of SDF a child."""
        yield from (self.put if self.root.tag == "sdf" else self.set)(owner, element, name, value)

    def link(self, k: int) -> Element | None:
        """The element of a link; None where it stands in another file, or is none of the file's."""
        tag = "body" if self.root.tag == "mujoco" else "link"
        return self._element(tag, self.s.draft.links, k)

    def joint(self, k: int) -> Element | None:
        """The element of a joint."""
        return self._element("joint", self.s.draft.joints, k)

    def axis(self, joint: Element) -> Element:
        """The element that holds the limits of a joint and the joint that it follows (mimic)."""
        return (joint.first("axis") or joint) if self.root.tag == "sdf" else joint

    def inertial(self, k: int, new: Inertial) -> Iterator[Told]:
        """The mass, centre and tensor of a link, each where it differs."""
        link, element = self.s.draft.links[k], self.link(k)
        inertial = element.first("inertial") if element else None
        if inertial is not None and link.inertial is not None:
            yield from INERTIAL[self.root.tag](self, self.s.draft.at(link), inertial, link.inertial, new)

    def _element(self, tag: str, things: list[Any], k: int) -> Element | None:
        thing = things[k]
        if isinstance(thing.line, Line):
            return None
        same = [i for i, x in enumerate(things) if x.line == thing.line and not isinstance(x.line, Line)]
        same_line = [e for e in self.root.walk() if e.tag == tag and e.line == thing.line]
        named = [e for e in same_line if e.get("name") == thing.name]
        if len(named) == 1:
            return named[0]
        return same_line[same.index(k)] if len(same_line) == len(same) else None


def one_inertial(text: MendedText, change: Change) -> Iterator[Told]:
    """The inertia of one link."""
    yield from text.inertial(change.index, change.value)


def mirrored_pair(text: MendedText, change: Change) -> Iterator[Told]:
    """The inertias of two links, or of neither."""
    both = [list(text.inertial(k, body)) for k, body in change.value]
    kept = [text.s.draft.links[k].inertial == body for k, body in change.value]
    if all(edits or same for edits, same in zip(both, kept)):
        for edits in both:
            yield from edits


def _urdf_inertial(text: FileText, owner: str, inertial: Element, old: Inertial, new: Inertial) -> Iterator[Told]:
    mass, origin, inertia = (inertial.first(tag) for tag in ("mass", "origin", "inertia"))
    if mass and new.mass != old.mass:
        yield from text.set(owner, mass, "value", _number(new.mass))
    if new.com != old.com:
        xyz = " ".join(map(_number, new.com))
        if origin:
            yield from text.set(owner, origin, "xyz", xyz)
        else:
            edit = insert_child(text.data, inertial, f'<origin xyz="{xyz}"/>')
            yield edit, f"{owner}: <origin> of <inertial> on line {inertial.line}, xyz {xyz} is new"
    if inertia and new.tensor != old.tensor:
        for name, value in _moments(_turn(origin), new.tensor, inertia.get):
            yield from text.set(owner, inertia, name, value)


def _moments(turn: Mat3, tensor: Mat3, given: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """The six elements of a tensor in the axes of a file; zeros as they stand there."""
    turned = np.array(turn_tensor(transpose(turn), tensor))
    for name, at in zip(TENSOR, MJCF_TENSOR_ENTRIES):
        value = float(turned[at])
        if abs(value) > 1e-15 * np.abs(turned).max() or given(name).strip("0."):
            yield name, _number(value)


def _turn(origin: Element | None) -> Mat3:
    """The axes of a URDF inertia, as its <origin> turns them."""
    if origin is not None and origin.get("quat_xyzw"):
        x, y, z, w = map(float, origin.get("quat_xyzw").split())
        return matrix_of_quaternion(x, y, z, w)
    rpy = origin.get("rpy") if origin is not None else ""
    roll, pitch, yaw = map(float, rpy.split() or (0.0, 0.0, 0.0))
    return from_rpy(roll, pitch, yaw)


def _sdf_inertial(text: FileText, owner: str, inertial: Element, old: Inertial, new: Inertial) -> Iterator[Told]:
    """Edits that write a new inertial into an SDF file, unless shapes give it."""
    if true(inertial.get("auto")):
        return  # what stands in the file is computed from shapes
    pose = inertial.first("pose")
    if new.mass != old.mass:
        yield from text.put(owner, inertial, "mass", _number(new.mass))
    if new.com != old.com:
        turn = (pose.text.split()[3:] if pose else []) or ["0", "0", "0"]
        yield from text.put(owner, inertial, "pose", " ".join([*map(_number, new.com), *turn]))
    if new.tensor != old.tensor:
        held = inertial.first("inertia") or inertial
        for tag, value in _moments(read_pose(Reader(str, owner), pose)[1], new.tensor, partial(child_text, held)):
            yield from text.put(owner, held, tag, value)


def _mjcf_inertial(text: FileText, owner: str, inertial: Element, old: Inertial, new: Inertial) -> Iterator[Told]:
    compiler = {k: v for section in text.root.all("compiler") for k, v in section.attributes.items()}
    if "settotalmass" in compiler:
        return  # what stands in the file is scaled
    if new.mass != old.mass:
        yield from text.set(owner, inertial, "mass", _number(new.mass))
    if new.com != old.com:
        yield from text.set(owner, inertial, "pos", " ".join(map(_number, new.com)))
    if new.tensor != old.tensor:
        t = np.array(new.tensor)
        plain = (
            not any(inertial.get(name) for name in ROTATION_NAMES)
            and np.count_nonzero(t) <= 3
            and np.diag(t).all()
        )
        keep, drop = ("diaginertia", "fullinertia") if plain else ("fullinertia", "diaginertia")
        values = np.diag(t) if plain else [float(t[at]) for at in MJCF_TENSOR_ENTRIES]
        for name in (drop, *ROTATION_NAMES):
            yield from text.set(owner, inertial, name, None)
        yield from text.set(owner, inertial, keep, " ".join(_number(float(x)) for x in values))


def _limits(text: FileText, change: Change) -> Iterator[Told]:
    """Crossed limits exchanged."""
    joint, element = text.s.draft.joints[change.index], text.joint(change.index)
    owner = text.s.draft.at(joint)
    if element is None:
        return
    if text.root.tag == "mujoco":
        parts = element.get("range").split()
        if len(parts) == 2:
            yield from text.set(owner, element, "range", " ".join(reversed(parts)))
    elif limit := text.axis(element).first("limit"):
        urdf = text.root.tag == "robot"
        low, high = (limit.get(x) if urdf else child_text(limit, x) for x in ("lower", "upper"))
        yield from text.say(owner, limit, "lower", high)
        yield from text.say(owner, limit, "upper", low)


def _continuous(text: FileText, change: Change) -> Iterator[Told]:
    """A revolute joint whose limits are both zero turns without limits."""
    element = text.joint(change.index)
    limit = text.axis(element).first("limit") if element and text.root.tag != "mujoco" else None
    if element is None or limit is None:
        return
    owner = text.s.draft.at(text.s.draft.joints[change.index])
    yield from text.set(owner, element, "type", "continuous")
    for name in ("lower", "upper"):
        yield from text.say(owner, limit, name, None)


def _mimic(text: FileText, change: Change) -> Iterator[Told]:
    """The first joint of the circle becomes independent."""
    element = text.joint(change.index)
    if element is None:
        return
    owner = text.s.draft.at(text.s.draft.joints[change.index])
    for mimic in text.axis(element).all("mimic"):
        how = f"<mimic joint={mimic.get('joint')!r}> on line {mimic.line} is taken away"
        yield remove(text.data, mimic), f"{owner}: {how}"


def _joint_name(text: FileText, change: Change) -> Iterator[Told]:
    if element := text.joint(change.index):
        yield from text.set(text.s.draft.at(text.s.draft.joints[change.index]), element, "name", change.value)


def _link_name(text: FileText, change: Change) -> Iterator[Told]:
    """The second link of a name, and the second joint that carries one of that name."""
    link, element = text.s.draft.links[change.index], text.link(change.index)
    joints = [x for x in text.root.walk() if x.tag == "joint"]
    said = [(joint, x) for joint in joints for x in joint.all("child") if link.name in (x.get("link"), x.text)]
    if element and len(said) == 2:
        joint, child = said[1]
        yield from text.set(text.s.draft.at(link), element, "name", change.value)
        owner = f"joint {joint.get('name')!r} (line {joint.line})"
        if text.root.tag == "robot":
            yield from text.set(owner, child, "link", change.value)
        else:
            yield from text.put(owner, joint, "child", change.value)


def _mesh(text: FileText, change: Change) -> Iterator[Told]:
    """Edits that name another mesh file wherever the old one is named."""
    attribute, old, new = change.value
    for element in text.root.walk():
        if element.tag == "mesh" and element.get(attribute) == old:
            yield from text.set("a mesh", element, attribute, new)
        elif element.tag == "mesh" and child_text(element, attribute) == old:
            yield from text.put("a mesh", element, attribute, new)


def _number(x: float) -> str:
    return repr(float(x))


INERTIAL = {"robot": _urdf_inertial, "mujoco": _mjcf_inertial, "sdf": _sdf_inertial}
FileText.writers = writers(_limits, _continuous, _mimic, _joint_name, _link_name, _mesh)
