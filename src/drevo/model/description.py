"""The description of a robot: links, joints, inertias. Frozen data in SI units and radians, no mathematics."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from ..io.reprs import brief, concise
from .contact import (
    SOLIMP,
    SOLREF,
    USUAL_STEPPING,
    Actuator,
    ContactPair,
    Geom,
    JointSoftness,
    Sensor,
    Solimp,
    Solref,
    Stepping,
)
from .vectors import IDENTITY as IDENTITY
from .vectors import ORIGIN as ORIGIN
from .vectors import Mat3 as Mat3
from .vectors import Vec3 as Vec3
from .wrapping import TendonSegment as TendonSegment
from .wrapping import TendonWrap as TendonWrap

# kind -> (nq, nv)
JOINT_SIZES: dict[str, tuple[int, int]] = {
    "fixed": (0, 0),
    "revolute": (1, 1),
    "continuous": (1, 1),
    "prismatic": (1, 1),
    "helical": (1, 1),
    "cylindrical": (2, 2),
    "universal": (2, 2),
    "planar": (3, 3),
    "spherical": (4, 3),
    "free": (7, 6),
    "custom": (1, 1),  # as many as its formula has
}
QUATERNIONS = ("spherical", "free")


@concise
@dataclass(frozen=True, slots=True)
class Inertial:
    """Mass [kg], centre of mass [m] and inertia tensor about it [kg m^2], both in link axes."""

    mass: float = 0.0
    com: Vec3 = ORIGIN
    tensor: Mat3 = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


@concise
@dataclass(frozen=True, slots=True)
class Limit:
    """Bounds of a joint coordinate; None where the file says nothing."""

    lower: float | None = None
    upper: float | None = None
    velocity: float | None = None
    effort: float | None = None


@concise
@dataclass(frozen=True, slots=True)
class JointDynamics:
    """The inertia and forces in a joint, alike on each rate v; x is its coordinate. In N m and rad, or N and m.

    armature: inertia of the rotor as the joint feels it, its own times the gear ratio squared, kg m^2 (kg).
    rotor: inertia of one, kg m^2, that turns `gear` times as fast about `rotor_axis` of the parent link, whose
    inertia has it at rest; without an axis it is armature.
    The force is -(damping + quadratic |v| + cubic v^2) v - friction sign(v)
    - (stiffness + stiffness2 y + stiffness3 y^2) y + offset, where y = x - reference. Of a ball joint y is the
    rotation vector from the quaternion `rest` (at first none) in body axes, of a free joint also the way from its
    position, and |y| stands in the bracket; a free joint's dampers but linear ones act along the world's axes.
    """

    armature: float = 0.0
    damping: float = 0.0
    quadratic: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    reference: float = 0.0
    offset: float = 0.0
    cubic: float = 0.0
    stiffness2: float = 0.0
    stiffness3: float = 0.0
    rest: tuple[float, ...] = ()
    rotor: float = 0.0
    gear: float = 1.0
    rotor_axis: Vec3 | None = None

    @property
    def passive(self) -> bool:
        """Something acts beside the rotor."""
        return any((self.damping, self.quadratic, self.cubic, self.friction, self.springy, self.offset))

    @property
    def reflected(self) -> float:
        """All rotors as the joint feels them, kg m^2 (kg)."""
        return self.armature + self.gear * self.gear * self.rotor

    @property
    def rotors(self) -> JointDynamics:
        """Armature, rotor, gear and rotor axis alone, without what is passive."""
        return JointDynamics(self.armature, rotor=self.rotor, gear=self.gear, rotor_axis=self.rotor_axis)

    @property
    def springy(self) -> bool:
        """There is a spring."""
        return any((self.stiffness, self.stiffness2, self.stiffness3))


@concise
@dataclass(frozen=True, slots=True)
class Mimic:
    """q of the joint = multiplier * q of `joint` + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@concise
@dataclass(frozen=True, slots=True)
class PoseFormula:
    """The pose of a joint as functions of its coordinates q, or q1, q2, ..: name -> expression, in their order.

    x, y, z are metres along the axes of the joint, roll, pitch, yaw radians about them, R = Rz Ry Rx as in URDF;
    of them what is not given is zero. Any other name stands for its expression in those that follow.
    """

    coordinates: int
    pose: tuple[tuple[str, str], ...]


# kind of a solid -> the names of its sizes in URDF and SDF
SHAPE_SIZES: dict[str, tuple[str, ...]] = {
    "box": ("size",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "sphere": ("radius",),
}


@concise
@dataclass(frozen=True, slots=True)
class Shape:
    """A primitive that a link shows or collides with; for drawings and for loads in a section."""

    kind: str  # box, cylinder, sphere, capsule, mesh
    size: tuple[float, ...]  # box: x y z; cylinder, capsule: radius length; sphere: radius; mesh: scale
    origin: Vec3 = ORIGIN
    rotation: Mat3 = IDENTITY
    uri: str = ""
    role: str = "visual"  # or collision


@concise
@dataclass(frozen=True, slots=True)
class Link:
    """A rigid body; its frame is that of its joint after the motion, or stands in it as the joint says."""

    name: str
    inertial: Inertial | None = None
    shapes: tuple[Shape, ...] = ()
    line: int = 0
    gravcomp: float = 0.0  # the part of its weight that a passive force at its centre of mass takes away
    mocap: bool = (
        False  # stands on the base where the caller of a compiled function says: "LINK.pose" of parameters
    )


@concise
@dataclass(frozen=True, slots=True)
class Joint:
    """A joint between two links, placed in the parent by origin and rotation, then moved along or about axis.

    The child's frame stands in the moved frame as child_origin and child_rotation say; a weld has none of these.
    """

    name: str
    kind: str
    parent: str
    child: str
    origin: Vec3 = ORIGIN
    rotation: Mat3 = IDENTITY  # columns: axes of the joint at q = 0 in parent axes
    axis: Vec3 = (1.0, 0.0, 0.0)  # unit, in the frame of the joint
    axis2: Vec3 | None = None  # universal: the second axis, carried by the first
    lead: float = 0.0  # helical: metres per revolution
    limit: Limit | None = None
    mimic: Mimic | None = None
    line: int = 0
    dynamics: JointDynamics | None = None
    child_origin: Vec3 = ORIGIN
    child_rotation: Mat3 = IDENTITY  # columns: child axes in axes of the moved joint
    formula: PoseFormula | None = None  # custom: its pose

    @property
    def apart(self) -> bool:
        """The child's frame is not that of the joint."""
        return self.child_origin != ORIGIN or self.child_rotation != IDENTITY

    @property
    def sizes(self) -> tuple[int, int]:
        """nq and nv of its kind, whether they are its own or those of the joint that drives it."""
        return (self.formula.coordinates,) * 2 if self.formula else JOINT_SIZES[self.kind]

    @property
    def turns(self) -> bool:
        """The last four coordinates are a quaternion."""
        return self.kind in QUATERNIONS

    @property
    def nq(self) -> int:
        return 0 if self.mimic else self.sizes[0]

    @property
    def nv(self) -> int:
        return 0 if self.mimic else self.sizes[1]


@dataclass(frozen=True, slots=True)
class ContactPoint:
    """A named point of a link that may touch the ground."""

    link: str
    point: Vec3


@dataclass(frozen=True, slots=True)
class ContactExclusion:
    """Two links that never touch each other, for a contact model."""

    link_a: str
    link_b: str


@dataclass(frozen=True, slots=True)
class Keyframe:
    """A configuration that has a name: coordinates q, (nq,)."""

    name: str
    q: tuple[float, ...]


JOINT_LOOPS = ("revolute", "prismatic", "cylindrical", "universal")
LOOP_KINDS = ("point", "weld", "rod", *JOINT_LOOPS)  # kinds of closures


@dataclass(frozen=True, slots=True)
class Loop:
    """A closure between two links that the tree does not hold; axes in those of their links."""

    kind: str  # of LOOPS
    link_a: str
    point_a: Vec3
    link_b: str
    point_b: Vec3
    rotation: Mat3 | None = None  # the axes of b in those of a, of a universal joint in any closed position
    axis_a: Vec3 | None = None  # of a joint
    axis_b: Vec3 | None = None
    length: float = 0.0  # rod: between the points, m
    solref: Solref = SOLREF  # how softly it holds under the soft law
    solimp: Solimp = SOLIMP
    torquescale: float = 1.0  # weld: metres that a radian counts for there


@dataclass(frozen=True, slots=True)
class JointCoupling:
    """q of the joint = c0 + c1 x + c2 x^2 + ..., x the driver's q; without a driver c0 alone. A constraint."""

    joint: str
    driver: str
    coefficients: tuple[float, ...]
    solref: Solref = SOLREF
    solimp: Solimp = SOLIMP


@dataclass(frozen=True, slots=True)
class TendonJoint:
    """A coordinate, which a tendon counts so many metres (or other units) a radian or metre."""

    joint: str
    coefficient: float


@dataclass(frozen=True, slots=True)
class Tendon:
    """A length L = offset + sum c x + sum of segments, and what acts along it.

    The force is -damping L' - quadratic |L'| L' - friction sign(L') - stiffness (L beyond `rest`). Below `lower`
    and above `upper` a spring and a damper of the limit act besides, which never push it further. Under the soft
    law dry friction is a row, and a limit one that has a solref.
    """

    name: str
    joints: tuple[TendonJoint, ...] = ()
    segments: tuple[TendonSegment, ...] = ()
    offset: float = 0.0
    stiffness: float = 0.0
    rest: tuple[float, float] = (0.0, 0.0)
    damping: float = 0.0
    quadratic: float = 0.0
    friction: float = 0.0
    lower: float | None = None
    upper: float | None = None
    limit_stiffness: float = 0.0
    limit_damping: float = 0.0
    limit_solref: Solref | None = None
    limit_solimp: Solimp = SOLIMP
    limit_margin: float = 0.0
    friction_solref: Solref = SOLREF
    friction_solimp: Solimp = SOLIMP

    @property
    def pulls(self) -> bool:
        """Something acts along it."""
        limited = self.lower is not None or self.upper is not None
        acts = (self.stiffness, self.damping, self.quadratic, self.friction)
        return any(acts) or (limited and any((self.limit_stiffness, self.limit_damping)))


@dataclass(frozen=True, slots=True)
class TendonCoupling:
    """L of the tendon = c0 + c1 x + c2 x^2 + ..., x the driver's L; without a driver c0 alone. A constraint."""

    tendon: str
    driver: str
    coefficients: tuple[float, ...]
    solref: Solref = SOLREF
    solimp: Solimp = SOLIMP


@brief
@dataclass(frozen=True)
class Model:
    """A valid robot: one root (links[0]), every other link the child of exactly one joint, unique names.

    `joints` are in the order of the coordinates q (a file's: depth first, children in file order);
    a child's joint may only come after its parent's. Mimic joints stand in the list but own no coordinate.
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    gravity: Vec3 = (0.0, 0.0, -9.81)
    loops: tuple[Loop, ...] = ()
    couplings: tuple[JointCoupling, ...] = ()
    contacts: tuple[ContactPoint, ...] = ()
    notes: tuple[str, ...] = ()
    source: str = ""
    about: str = field(default="", compare=False)
    keyframes: tuple[Keyframe, ...] = ()
    tendons: tuple[Tendon, ...] = ()
    tendon_couplings: tuple[TendonCoupling, ...] = ()
    exclusions: tuple[ContactExclusion, ...] = ()
    geoms: tuple[Geom, ...] = ()
    pairs: tuple[ContactPair, ...] = ()
    softness: tuple[JointSoftness, ...] = ()
    actuators: tuple[Actuator, ...] = ()
    sensors: tuple[Sensor, ...] = ()
    stepping: Stepping = USUAL_STEPPING
    initial: tuple[float, ...] = ()  # q as the file puts the robot, (nq,); empty: its neutral q

    @property
    def closed(self) -> bool:
        """Something holds besides the tree of joints."""
        return self.closures > 0

    @property
    def closures(self) -> int:
        """The number of loops and couplings that hold besides the tree of joints."""
        return len(self.loops) + len(self.couplings) + len(self.tendon_couplings)

    @property
    def total_mass(self) -> float:
        """Mass of all links, kg."""
        return sum(link.inertial.mass for link in self.links if link.inertial)

    @property
    def root(self) -> str:
        return self.links[0].name

    @cached_property
    def moving_joints(self) -> tuple[Joint, ...]:
        """The joints that own coordinates, in the order of q."""
        return tuple(j for j in self.joints if j.nq)

    @cached_property
    def _slices(self) -> tuple[tuple[Joint, slice, slice], ...]:
        out, iq, iv = [], 0, 0
        for j in self.moving_joints:
            out.append((j, slice(iq, iq := iq + j.nq), slice(iv, iv := iv + j.nv)))
        return tuple(out)

    def slices(self) -> tuple[tuple[Joint, slice, slice], ...]:
        """Every joint that owns coordinates, with its part of q and of v."""
        return self._slices

    @cached_property
    def runs(self) -> tuple[tuple[int, slice, slice], ...]:
        """Parts of q and v by the rule that moves them: 7 a free joint, 4 a ball, 0 sums, neighbours in one."""
        out: list[tuple[int, slice, slice]] = []
        for j, sq, sv in self._slices:
            rule = j.nq if j.turns else 0
            if out and out[-1][0] == rule == 0:
                _, q, v = out.pop()
                sq, sv = slice(q.start, sq.stop), slice(v.start, sv.stop)
            out.append((rule, sq, sv))
        return tuple(out)

    def freedoms(self, kind: str = "v") -> list[tuple[str, str]]:
        """The joint of each rate ("v") or coordinate ("q"), and its index there where the joint has several."""
        sizes = [(j.name, j.nq if kind == "q" else j.nv) for j in self.moving_joints]
        return [(name, f"[{k}]" if n > 1 else "") for name, n in sizes for k in range(n)]

    def units_of(self, rotary: str, linear: str, kind: str = "v") -> list[str]:
        """A unit for each rate ("v") or coordinate ("q"): that of what slides, "" of quaternions, or `rotary`."""
        q, slides = kind == "q", {"prismatic": 1, "cylindrical": 1, "planar": 2, "free": 3}
        sizes = [(slides.get(j.kind, 0), 4 * j.turns * q, j.nq if q else j.nv) for j in self.moving_joints]
        return [x for k, rest, n in sizes for x in [linear] * k + [rotary] * (n - k - rest) + [""] * rest]

    @cached_property
    def nq(self) -> int:
        return sum(j.nq for j in self.joints)

    @cached_property
    def nv(self) -> int:
        return sum(j.nv for j in self.joints)

    def same_as(self, other: Model) -> bool:
        """All names, numbers and orders are equal; the lines, the source and the notes need not be."""
        return self is other or self._placeless() == other._placeless()

    def _placeless(self) -> Model:
        parts = {k: tuple(replace(x, line=0) for x in getattr(self, k)) for k in ("links", "joints")}
        return replace(self, **parts, source="", notes=())  # type: ignore[arg-type]
