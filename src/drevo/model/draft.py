"""A description as it was read, right or wrong: what loaders and builders fill.

Messages about a model's faults: the element of each, and all of them in one error.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import InputError, ModelError, nearest, shown
from .contact import USUAL_STEPPING, Actuator, ContactPair, Geom, JointSoftness, Sensor, Stepping
from .description import (
    ContactExclusion,
    ContactPoint,
    Joint,
    JointCoupling,
    Keyframe,
    Link,
    Loop,
    Model,
    Tendon,
    TendonCoupling,
    Vec3,
)
from .rotations import FramePose

PROBLEM_INDENT = "\n  - "
MOST_PROBLEMS = 10  # that a message spells out; `problems` of the error holds all


def at(thing: Link | Joint, noun: str = "") -> str:
    """The label of an element in a sentence: its kind, name and line."""
    noun = noun or ("link" if isinstance(thing, Link) else "joint")
    return f"{noun} {thing.name!r}" + (f" (line {thing.line})" if thing.line else "")


def unused(name: str, taken: Container[str]) -> str:
    """A name that is not taken, with as many underscores as it needs."""
    while name in taken:
        name += "_"
    return name


def listed(names: Iterable[str], most: int = 6) -> str:
    """Names in quotes, a long list cut short."""
    return shorten([repr(name) for name in names], most)


def shorten(parts: Sequence[str], most: int = 6, glue: str = ", ", last: str = " ") -> str:
    """The parts in a row, a long row cut short."""
    more = f"{last}and {len(parts) - most} more" if len(parts) > most else ""
    return glue.join(parts[:most]) + more


def list_counts(tags: Mapping[str, int], most: int = 40) -> str:
    """Names with how often they occur, a long list cut short."""
    return shorten([f"{tag} ({count})" for tag, count in tags.items()], most)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint at the name that was probably meant, or nothing; bounded, since the search is quadratic."""
    known = [other for other in known if len(other) <= 64]
    close = nearest(name, known) if len(known) <= 200 and len(name) <= 64 else ""
    return f" (did you mean {close!r}?)" if close else ""


def model_of(robot: object, caller: str) -> Model:
    """The Model of a Robot, or the Model itself; InputError where `caller` was given something else."""
    model = robot if isinstance(robot, Model) else getattr(robot, "model", None)
    if not isinstance(model, Model):
        raise InputError(f"{caller} takes a robot, as drevo.load gives it, not {shown(robot)}")
    return model


def expect_robot(robot: object, caller: str) -> None:
    """InputError where `caller` was given neither a Robot nor a stand-in: a Model has nothing to compute with."""
    if isinstance(robot, Model) or not hasattr(robot, "integrate"):
        raise InputError(f"{caller} takes a robot, as drevo.load gives it, not {shown(robot)}")
    model_of(robot, caller)


def names_in(given: object, argument: str) -> tuple[str, ...]:
    """One name or several, those of a set sorted; InputError where `argument` was given something else."""
    many = [given] if isinstance(given, str) else given
    if not isinstance(many, (list, tuple, set, frozenset)) or not all(isinstance(s, str) for s in many):
        raise InputError(f"{argument} must be a name or a list of names, not {shown(given)}")
    return tuple(sorted(many) if isinstance(many, (set, frozenset)) else many)


def axes_in(wrt: object, argument: str) -> tuple[str, ...]:
    """Names of what a derivative is taken by, an axis each; "q,v" is ("q", "v"), as at the command line."""
    return names_in(wrt.replace(" ", "").split(",") if isinstance(wrt, str) and "," in wrt else wrt, argument)


def refuse(where: str, problems: Sequence[str]) -> None:
    """Raise one ModelError for all problems, the first of them spelt out; nothing where there is none."""
    if not problems:
        return
    several = f"{len(problems)} problems:{PROBLEM_INDENT}" if len(problems) > 1 else ""
    error = ModelError(f"{where}: {several}{shorten(problems, MOST_PROBLEMS, PROBLEM_INDENT, PROBLEM_INDENT)}")
    error.problems = tuple(problems)
    raise error


STANDARD_GRAVITY: Vec3 = (0.0, 0.0, -9.81)


@dataclass(slots=True)
class Draft:
    """A description as it was read, right or wrong; `finish` makes a Model of it.

    Loaders add to `problems` what they could not read (to `standing` where it matters only if the root moves), to
    `doubts` what they had to choose, and with `ignore` what acts on the motion and is not read. `ordered` says
    that the order of the joints is the order of q (hand-made robots); otherwise it becomes depth first.
    """

    name: str
    links: list[Link] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    gravity: Vec3 = STANDARD_GRAVITY
    loops: list[Loop] = field(default_factory=list)
    couplings: list[JointCoupling] = field(default_factory=list)
    contacts: list[ContactPoint] = field(default_factory=list)
    keyframes: list[Keyframe] = field(default_factory=list)
    tendons: list[Tendon] = field(default_factory=list)
    tendon_couplings: list[TendonCoupling] = field(default_factory=list)
    exclusions: list[ContactExclusion] = field(default_factory=list)
    geoms: list[Geom] = field(default_factory=list)
    pairs: list[ContactPair] = field(default_factory=list)
    softness: list[JointSoftness] = field(default_factory=list)
    actuators: list[Actuator] = field(default_factory=list)
    sensors: list[Sensor] = field(default_factory=list)
    stepping: Stepping = USUAL_STEPPING
    initial: tuple[float, ...] = ()
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    standing: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)  # of contact: what -> whose
    unread: dict[str, list[str]] = field(default_factory=dict)  # what -> where it stands
    missing_meshes: dict[str, list[str]] = field(default_factory=dict)  # file -> links that name it
    source: str = ""
    noun: str = "link"  # what the user calls a link
    ordered: bool = False
    stands: dict[str, FramePose] = field(
        default_factory=dict
    )  # where links that nothing carries are, on a fixed base
    kinematic: bool = False  # meant without any mass: M is not asked for

    def meant(self, name: str, known: Iterable[str]) -> str:
        """A hint at the name that was meant, for the first problems only: each costs a search."""
        return did_you_mean(name, known) if len(self.problems) < 20 else ""

    def ignore(self, effect: str, label: str) -> None:
        """Enter something that acts on the motion and is not read."""
        self.unread.setdefault(effect, []).append(label)

    def leave_out(self, kind: str, label: str) -> None:
        """Enter something that touches in the file and does not here."""
        self.left_out.setdefault(kind, []).append(label)

    def note_missing_meshes(self, file_of: Callable[[str], str | None]) -> None:
        """Enter the mesh files that are missing. file_of: of a mesh the name of its file if that is missing."""
        named = {shape.uri: None for link in self.links for shape in link.shapes if shape.uri}
        missing = {uri: file for uri in named if (file := file_of(uri)) is not None}
        for link in self.links:
            for file in dict.fromkeys(missing[s.uri] for s in link.shapes if s.uri in missing):
                self.missing_meshes.setdefault(file, []).append(link.name)

    def take_as_kinematic(self) -> None:
        """A robot without any inertia is one for kinematics, unless it is one bare joint, which is a slip."""
        moving = sum(joint.kind != "fixed" for joint in self.joints)
        if moving and not any(link.inertial for link in self.links):
            self.kinematic = moving > 1 or any(link.shapes for link in self.links)
        if self.kinematic:
            self.doubts.append(
                "no link has an <inertial>: there are poses, velocities and Jacobians but no dynamics; add them"
            )

    @property
    def where(self) -> str:
        """The file, or the robot where there is none."""
        return self.source or f"robot {self.name!r}"

    def at(self, thing: Link | Joint) -> str:
        """The label of an element in a sentence."""
        if isinstance(thing, Link):
            return at(thing, self.noun)
        body = f" of body {thing.child!r}" if self.noun == "body" else ""
        return at(thing) + body
