"""Sections beside the bodies of an MJCF file: noted, and warned about where they act on the motion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import accumulate

from ....io.xml import ANY, Element, Reader
from ...description import JOINT_SIZES, ContactExclusion, Keyframe
from ...draft import list_counts
from ..schema import label_of
from .actuators import acts_alone, read_actuator, read_sensor
from .defaults import PARAMETERS, SHARED_DEFAULTS
from .equality import LOOP_ELEMENTS, TENDONS, Layout, read_equality, read_tendon_equality, read_tendons
from .file import File, in_section
from .posture import Posture
from .touching import read_pair

NOTED = ("equality", "tendon", "actuator", "contact", "sensor", "deformable", "plugin")
READ = {"equality": (*LOOP_ELEMENTS, "tendon"), "tendon": TENDONS, "contact": ("exclude", "pair")}
LATE_SECTIONS = ("actuator", "sensor")  # sections of which some elements of a kind are read and others are not
ELASTIC = ("flex",)  # of <deformable>


def read_sections(file: File, layout: Layout, stands: Posture) -> None:
    """Reads what stands beside the bodies, or lists it in the notes and warns where it acts on the motion."""
    lengths = read_tendons(file, layout, stands)
    for section in NOTED:
        left: Counter[str] = Counter()
        for of_child, child in in_section(file, section):
            attributes = of_child.attributes(child, "", SHARED_DEFAULTS.get(section, ""))
            _read(of_child, section, attributes, layout, lengths)
            read = child.tag in READ.get(section, ())
            if section in LATE_SECTIONS:
                read = _driven(of_child, attributes, layout, stands)
            if section == "actuator" and not read and "actuation" not in file.flags.off and acts_alone(attributes):
                file.draft.ignore("the force without control", label_of(attributes))
            left[child.tag] += not read
        if left := +left:
            file.draft.notes.append(f"{section} not read: {list_counts(left)}")


def _driven(file: File, element: Element, layout: Layout, stands: Posture) -> bool:
    """An actuator or a sensor is read."""
    if element.tag in PARAMETERS:
        return read_actuator(file, element, label_of(element), stands)
    return read_sensor(file, element, layout)


def _read(file: File, section: str, element: Element, layout: Layout, lengths: Mapping[str, float]) -> None:
    """One element beside the bodies."""
    draft, flags, label = file.draft, file.flags, label_of(element)
    if section == "equality" and element.get("active", "true") != "false" and "equality" not in flags.off:
        if element.tag == "tendon":
            read_tendon_equality(file, Reader(draft.problems.append, label), element, lengths)
        elif element.tag in LOOP_ELEMENTS:
            read_equality(file, element, label, layout)
        else:
            draft.ignore(f"equality {element.tag}", label)
    elif section == "contact" and element.tag == "exclude":
        draft.exclusions.append(ContactExclusion(element.get("body1"), element.get("body2")))
    elif section == "contact" and element.tag == "pair":
        read_pair(file, element, label)
    elif section == "deformable" and element.tag in ELASTIC and flags.passive:
        draft.ignore(element.tag, label)


def read_keyframes(file: File) -> None:
    """<key qpos>, with quaternions x y z w; a key without qpos says nothing of q."""
    sizes = [JOINT_SIZES.get(joint.kind, (0, 0))[0] for joint in file.draft.joints]
    keys = [key for section in file.root.all("keyframe") for key in section.all("key") if key.get("qpos")]
    for number, key in enumerate(keys):
        name = key.get("name") or f"key {number}"
        reader = Reader(file.draft.problems.append, f"keyframe {name!r}")
        q = list(reader.vector(key, "qpos", (0.0,) * len(key.get("qpos").split()), ANY))
        for end, size in zip(accumulate(sizes), sizes):
            if size >= 4 and end <= len(q):
                q[end - 4 : end] = [*q[end - 3 : end], q[end - 4]]
        file.draft.keyframes.append(Keyframe(name, tuple(q)))
