"""What acts on a robot's motion in a file and is not read: one table a format.

A loader that learns to read an entry deletes its row here, and no more. What stands in a file with a value that
changes nothing is passed over; the rest goes to `Draft.unread`, and from there into one DrevoWarning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from drevo.io import xml
from drevo.io.xml import Element
from drevo.model.draft import Draft

Acts = Callable[[str], bool]


def nonzero(text: str) -> bool:
    """Some number in the text is not 0; text that is no number counts as one."""
    try:
        return any(xml.parse_number(part) for part in text.split())
    except ValueError:
        return True


def true(text: str) -> bool:
    """A switch that is on."""
    return text.strip().lower() in ("true", "1")


def false(text: str) -> bool:
    """A switch that is off."""
    return text.strip().lower() in ("false", "0")


def always(text: str) -> bool:
    """Anything at all."""
    return True


# --- MJCF: kind of element -> attribute -> (what makes it act, the flag that switches it off) ----------------

UnreadField = tuple[Acts, str]
MJCF: dict[str, dict[str, UnreadField]] = {
    "option": {"density": (nonzero, ""), "viscosity": (nonzero, "")},
    "medium": {"wind": (nonzero, "")},  # of <option>; acts only in a medium, that is with density or viscosity
    "geom in a medium": {"fluidshape": (lambda text: text.strip() != "none", "")},
    "tendon": {"armature": (nonzero, "")},
    "actuator": {"armature": (nonzero, ""), "damping": (nonzero, "damper")},
}
EQUALITIES = ("connect", "weld", "joint", "tendon", "flex", "flexvert", "flexstrain")  # unless active="false"
ELASTIC = ("flex",)  # of <deformable>
IDLE = ("motor", "damper", "adhesion")  # actuators that exert nothing without control
GAINS = {"position": ("kp", "kv", "dampratio"), "velocity": ("kv",), "intvelocity": ("kp", "kv", "dampratio")}
ACTUATORS = ("general", "cylinder", "muscle", *IDLE, *GAINS)
# what the tables look at of an element that has defaults: tag -> attributes
DEFAULTED: dict[str, tuple[str, ...]] = {
    "joint": ("springdamper",),
    "geom": tuple(MJCF["geom in a medium"]),
    "tendon": (*MJCF["tendon"], "damping", "frictionloss", "stiffness", "range", "limited"),
    "equality": ("active",),
    **{
        tag: (
            *MJCF["actuator"],
            "biastype",
            "biasprm",
            "bias",
            "gear",
            "ctrlrange",
            "ctrllimited",
            *GAINS.get(tag, ()),
        )
        for tag in ACTUATORS
    },
}


class Flags:
    """The <flag> settings of an MJCF file: what they switch off and on."""

    def __init__(self, options: Iterable[Element]) -> None:
        flags = [item for option in options for flag in option.all("flag") for item in flag.attributes.items()]
        self.off, self.on = ({name for name, value in flags if value == word} for word in ("disable", "enable"))
        if "constraint" in self.off:
            self.off |= {"contact", "equality", "frictionloss", "limit"}
        if "passive" in self.off:  # older files: springs and dampers at once
            self.off |= {"spring", "damper"}
        self.passive = not {"spring", "damper"} <= self.off  # else no passive force of any kind

    def note(self, draft: Draft, kind: str, attributes: Mapping[str, str], label: str) -> None:
        """Enter what acts of an element's attributes."""
        for attribute, (acts, flag) in MJCF[kind].items():
            text = attributes.get(attribute)
            if text is not None and flag not in self.off and acts(text):
                draft.ignore(attribute, label)


def acts_alone(actuator: Element) -> bool:
    """Whether an actuator exerts a force while its control is 0."""
    tag, get = actuator.tag, actuator.get
    if not nonzero(get("gear", "1")):
        return False
    if get("ctrllimited", "auto") != "false" and _excludes_zero(get("ctrlrange", "0 0")):
        return True
    if tag in IDLE:
        return False
    if tag in GAINS:
        return any(nonzero(get(gain, "1" if gain == GAINS[tag][0] else "0")) for gain in GAINS[tag])
    if tag == "general":
        kind = get("biastype", "none")
        return kind != "none" and (kind != "affine" or nonzero(get("biasprm", "0")))
    return tag != "cylinder" or nonzero(get("bias", "0"))


def _excludes_zero(text: str) -> bool:
    try:
        low, high = xml.parse_numbers(text, 2)
    except ValueError:
        return False
    return low < high and (low > 0.0 or high < 0.0)


# --- SDF: kind of element -> path of child tags -> what makes its text act -----------------------------------

SDF: dict[str, dict[str, Acts]] = {
    "link": {
        "gravity": false,
        "kinematic": true,
        "enable_wind": true,
        "velocity_decay": nonzero,
        "inertial/fluid_added_mass": nonzero,
    },
    "model": {"enable_wind": true},
}

# --- URDF: the same, with attributes at the end; <gazebo> and other extensions by what they refer to ---------

URDF: dict[str, dict[str, Acts]] = {
    "joint": {f"dynamics@{attribute}": nonzero for attribute in ("stiffness", "rotor_inertia")},
    "gazebo": {
        "springStiffness": nonzero,
        "dampingFactor": nonzero,
        "turnGravityOff": true,
        "gravity": false,
        "kinematic": true,
        "static": true,
    },
    **{
        tag: {"": always}
        for tag in (
            "drake:linear_spring_damper",
            "drake:prismatic_spring",
            "drake:revolute_spring",
        )
    },
}


def note(draft: Draft, table: Mapping[str, Acts], element: Element, label: str) -> None:
    """Enter what acts of what stands inside an SDF or URDF element."""
    for path, acts in table.items():
        text = _at(element, path)
        if text is not None and acts(text):
            draft.ignore(path.replace("@", "/").rsplit("/", 1)[-1] or element.tag, label)


def _at(element: Element, path: str) -> str | None:
    """All text (or after @ the attribute) at the end of a path of first children; None where there is none."""
    tags, _, attribute = path.partition("@")
    for tag in tags.split("/") if tags else ():
        child = element.first(tag)
        if child is None:
            return None
        element = child
    if attribute:
        return element.attributes.get(attribute)
    return " ".join([found.text for found in element.walk()]) if element.children else element.text
