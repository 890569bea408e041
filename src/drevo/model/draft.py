"""A description as it was read, right or wrong: what loaders and builders fill."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .contact import USUAL_STEPPING, Actuator, ContactPair, Geom, JointSoftness, Sensor, Stepping
from .description import (
    ContactExclusion,
    ContactPoint,
    Joint,
    JointCoupling,
    Keyframe,
    Link,
    Loop,
    Tendon,
    TendonCoupling,
    Vec3,
)
from .messages import at, did_you_mean
from .rotations import FramePose

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

    def ignore(self, what: str, label: str) -> None:
        """Enter something that acts on the motion and is not read."""
        self.unread.setdefault(what, []).append(label)

    def leave_out(self, what: str, label: str) -> None:
        """Enter something that touches in the file and does not here."""
        self.left_out.setdefault(what, []).append(label)

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
