"""What stands beside the bodies of an MJCF file: noted, and warned about where it acts on the motion."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate

from drevo.io.xml import ANY, Element, Reader
from drevo.model.description import JOINT_SIZES, Keyframe
from drevo.model.loaders import unread
from drevo.model.loaders.mjcf.equality import READ, Layout, read_equality
from drevo.model.loaders.mjcf.file import File, limited
from drevo.model.messages import list_counts

NOTED = ("equality", "tendon", "actuator", "contact", "deformable", "plugin")
DEFAULTS_OF = {"spatial": "tendon", "fixed": "tendon", **dict.fromkeys(unread.EQUALITIES, "equality")}


def read_sections(file: File, layout: Layout) -> None:
    """What stands beside the bodies: read, or listed in the notes and warned about where it acts on the motion."""
    draft, flags = file.draft, file.flags
    for section in NOTED:
        held = [child for element in file.root.all(section) for child in element.children]
        unread_here = [child for child in held if section != "equality" or child.tag not in READ]
        if unread_here:
            draft.notes.append(f"{section} not read: {list_counts(Counter(child.tag for child in unread_here))}")
        for child in held:
            found = file.attributes(child, "", DEFAULTS_OF.get(child.tag, "") if section != "actuator" else "")
            label = _label(child)
            if section == "equality" and found.get("active", "true") != "false" and "equality" not in flags.off:
                if child.tag in READ:
                    read_equality(file, found, label, layout)
                else:
                    draft.ignore(f"equality {child.tag}", label)
            elif section == "deformable" and child.tag in unread.ELASTIC and flags.passive:
                draft.ignore(child.tag, label)
            elif section == "tendon":
                _note_tendon(file, found, label)
            elif section == "actuator":
                flags.note(draft, "actuator", found.attributes, label)
                if "actuation" not in flags.off and unread.acts_alone(found):
                    draft.ignore("the force without control", label)


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


def _note_tendon(file: File, tendon: Element, label: str) -> None:
    attributes = dict(tendon.attributes)
    if not limited(file, tendon):
        attributes.pop("range", None)
    file.flags.note(file.draft, "tendon", attributes, label)


def _label(element: Element) -> str:
    """What a sentence calls an element that need not have a name."""
    name = element.get("name")
    return f"{element.tag} {name!r}" if name else f"{element.tag} on line {element.line}"
