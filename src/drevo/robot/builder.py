"""Robots made by hand, body by body; judged by the same rules as robots from files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from drevo.errors import ModelError, one_of, shown
from drevo.io.xml import ANY, MAX_MASS
from drevo.model import values
from drevo.model.description import (
    IDENTITY,
    JOINT_SIZES,
    LOOPS,
    ORIGIN,
    ContactPoint,
    Inertial,
    Joint,
    JointCoupling,
    JointDynamics,
    Limit,
    Link,
    Loop,
    Mat3,
    Mimic,
    Model,
    Shape,
    Tendon,
    TendonCoupling,
    TendonJoint,
    Vec3,
)
from drevo.model.draft import GRAVITY, Draft
from drevo.model.messages import did_you_mean
from drevo.model.rotations import from_rpy, shift_tensor
from drevo.model.tendons import Waypoint, segments_along
from drevo.model.validation import KINDS, finish
from drevo.robot.face import Robot
from drevo.robot.formula import GivenPose, formula_of

_checked = partial(values.checked, ModelError)
Numbers = Any  # anything that holds numbers: tuples, lists, numpy arrays

WORLD = "world"
TENDON_ACTS = (
    *("stiffness", "damping", "quadratic", "friction", "lower", "upper", "limit_stiffness", "limit_damping"),
)
ZERO: Mat3 = (ORIGIN, ORIGIN, ORIGIN)


class Builder:
    """A robot in the making: bodies are added to a link "world", each with the joint that carries it.

    >>> b = Builder("pendulum")
    >>> b.body("rod", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0, 0, -0.5))  # doctest: +SKIP
    >>> robot = b.robot()  # doctest: +SKIP
    """

    def __init__(self, name: str = "robot", gravity: Numbers = GRAVITY, root: str = WORLD) -> None:
        """root: the name of the link that is the ground."""
        self.name = _checked("the robot", "name", values.name, name)
        self._gravity = values.gravity_vector(gravity)
        self._links = {root: Link(_checked("the robot", "root", values.name, root))}
        self._joints: dict[str, Joint] = {}
        self._loops: list[Loop] = []
        self._couplings: list[JointCoupling] = []
        self._contacts: list[ContactPoint] = []
        self._tendons: dict[str, Tendon] = {}
        self._tendon_couplings: list[TendonCoupling] = []

    def __repr__(self) -> str:
        return f"<Builder {self.name!r}: {len(self._links) - 1} bodies>"

    def body(
        self,
        name: str,
        parent: str | None = None,
        joint: str = "revolute",
        axis: Numbers = (0.0, 0.0, 1.0),
        origin: Numbers = ORIGIN,
        rotation: Numbers = None,
        *,
        rpy: Numbers = None,
        mass: float = 0.0,
        com: Numbers = ORIGIN,
        inertia: Numbers = None,
        inertia_at: str = "com",
        lead: float | None = None,
        axis2: Numbers = None,
        limit: Limit | Sequence[float] | None = None,
        mimic: Mimic | Sequence[Any] | str | None = None,
        joint_name: str | None = None,
        armature: float = 0.0,
        damping: float = 0.0,
        friction: float = 0.0,
        stiffness: float = 0.0,
        reference: float = 0.0,
        dynamics: JointDynamics | None = None,
        elastic: Sequence[float] | None = None,
        child_origin: Numbers = ORIGIN,
        child_rotation: Numbers = None,
        pose: GivenPose | None = None,
        coordinates: int = 1,
        gravcomp: float = 0.0,
        rotor: Sequence[Any] | None = None,
    ) -> Builder:
        """Add a body; q is in the order of these calls.

        Its frame is that of its joint after the motion, or stands in that by `child_origin` and `child_rotation`
        (3x3): mass, contacts, wrenches and further bodies are then given in it. parent: by default the ground.

        The joint is placed in the parent by `origin` and `rotation` (3x3) or `rpy`, and moves about or along
        `axis` (`axis2` too for a universal one; `lead`, metres per revolution, for a helical one and
        otherwise unused). `inertia` is the 3x3 tensor about the centre of mass, or with inertia_at="joint"
        about the origin of the body's frame, in body axes; no tensor means a point mass. `limit` is (lower,
        upper); `mimic` the name of the joint that drives this one, or (name, multiplier, offset). The joint
        is called NAME_joint by default.

        armature: inertia of its rotor as the joint feels it, kg m^2 (kg along a slide); damping, N m s (N s/m);
        friction: dry, N m (N); stiffness, N m/rad (N/m), of a spring at rest at `reference`, rad (m). They hold
        for each rate of the joint; `dynamics`, a JointDynamics, gives them and rarer ones in one. rotor: (inertia,
        gear ratio), which is armature, or (inertia, gear ratio, axis), a body on the parent that turns that much
        faster about this axis of the parent's, whose inertia has it at rest. `gravcomp`: the part of the body's
        weight that a passive force takes away.

        pose: of a "custom" joint, by formulas of its 1 to 6 `coordinates`, called q, or q1, q2, ..: a mapping with
        any of x, y, z (m) and roll, pitch, yaw (rad, as in URDF), each text or a number, and names of your own for
        what comes again; or a function of the list of coordinates that returns such a mapping of scalars.

        elastic: (stiffness, damping) of a joint of one freedom whose gear or series spring gives way. Its motor
        comes before it in q, as joint NAME_motor with the armature and what else acts there; the joint itself is
        the deflection. Of the motor's motion only its own turning counts: Spong 1987, Modeling and control of
        elastic joint robots.
        """
        who = f"body {name!r}"
        parent, joint_name = self._new_names(who, name, parent, joint_name)
        self._links[name] = _link(who, name, mass, com, inertia, inertia_at, gravcomp)
        made = Joint(
            joint_name, _kind(who, joint), parent, name, *_placed(who, origin, rotation, rpy, axis, axis2),
            _lead(who, joint, lead), _limit(who, limit), _mimic(who, mimic),
            formula=formula_of(who, pose, coordinates), child_rotation=_rotation(who, child_rotation, None),
            dynamics=_dynamics(who, dynamics, rotor, armature, damping, friction, stiffness, reference),
            child_origin=_checked(who, "child_origin", values.vector, child_origin),
        )  # fmt: skip
        self._joints[joint_name] = made if elastic is None else self._after_motor(who, made, elastic)
        return self

    def _after_motor(self, who: str, joint: Joint, elastic: Sequence[float]) -> Joint:
        """The deflection of an elastic joint; its motor, with a link that weighs nothing, is put before it."""
        given = _checked(who, "elastic", lambda x: values.sequence(x, ANY), elastic)
        if len(given) != 2 or min(given) < 0.0 or given[0] == 0.0:
            raise ModelError(f"{who}: elastic is (stiffness, damping), the first above zero, the second not below")
        if joint.nv != 1 or joint.dynamics is None or joint.dynamics.reflected <= 0.0:
            raise ModelError(f"{who}: an elastic joint has one freedom and a motor; give armature= or rotor=")
        motor = f"{joint.child}_motor"
        self._check_new(motor, motor)
        self._links[motor] = Link(motor)
        self._links[joint.child] = self._links.pop(joint.child)  # after its motor
        self._joints[motor] = replace(joint, name=motor, child=motor, child_origin=ORIGIN, child_rotation=IDENTITY)
        spring = JointDynamics(stiffness=given[0], damping=given[1])
        return replace(
            joint, parent=motor, origin=ORIGIN, rotation=IDENTITY, limit=None, mimic=None, dynamics=spring
        )

    def loop(
        self,
        kind: str,
        link_a: str,
        point_a: Numbers,
        link_b: str,
        point_b: Numbers,
        rotation: Numbers = None,
        axis_a: Numbers = None,
        axis_b: Numbers = None,
        length: float = 0.0,
    ) -> Builder:
        """Close a loop between two points: of `drevo.constraint` the one that its kind names.

        "point" holds them together, "weld" also the turn of b in a (`rotation`), "rod" at a `length`; "revolute",
        "prismatic", "cylindrical" and "universal" are joints with the axes `axis_a` and `axis_b`, in the bodies'
        own axes; a prismatic one keeps a `rotation` too.
        """
        who = f"loop between {link_a!r} and {link_b!r}"
        one_of(f"{who}: the kind", kind, LOOPS, ModelError)
        points = [_checked(who, "point", values.vector, point) for point in (point_a, point_b)]
        turn = None if rotation is None else _checked(who, "rotation", values.rotation, rotation)
        one, other = (None if axis is None else _checked(who, "axis", values.vector, axis)
                      for axis in (axis_a, axis_a if axis_b is None else axis_b))  # fmt: skip
        size = _checked(who, "length", values.scalar, length)
        ends = self._known(link_a), points[0], self._known(link_b), points[1]
        self._loops.append(Loop(kind, *ends, turn, one, other, size))
        return self

    def couple(self, joint: str, driver: str, coefficients: Numbers) -> Builder:
        """Hold q of a joint at c0 + c1 x + c2 x^2 + ..., x the q of its driver; a constraint, unlike `mimic`.

        Of a tendon its length, x the length of another (driver "": c0 alone, a cable that does not stretch).
        """
        found = _checked(f"coupling of {joint!r}", "coefficients", values.sequence, coefficients)
        if joint in self._tendons and joint not in self._joints:
            self._tendon_couplings.append(TendonCoupling(joint, driver, found))
            return self
        self._couplings.append(JointCoupling(joint, driver, found))
        return self

    def tendon(
        self,
        name: str,
        path: Sequence[tuple[str, Numbers] | float] = (),
        joints: Mapping[str, float] | None = None,
        *,
        rest: float | tuple[float, float] = 0.0,
        **acts: Any,
    ) -> Builder:
        """A tendon along straight segments between points of bodies, or of a length that joints add up.

        path: (body, point) after (body, point); a number is a pulley, behind which a branch begins whose length
        counts divided by it. joints: metres a radian (metre) of a joint. acts: `stiffness` beyond `rest` (one
        length, or two between which it is slack), `damping`, `quadratic`, `friction`, and where the length is
        below `lower` or above `upper` `limit_stiffness` and `limit_damping`; N, m, s of a path.
        """
        who = f"tendon {name!r}"
        _checked(who, "name", values.name, name)
        if name in self._tendons:
            raise ModelError(f"{who} already exists; names must be unique")
        places: list[Waypoint | float] = []
        for step in path:
            if isinstance(step, tuple) and len(step) == 2:
                places.append((self._known(step[0]), _checked(who, "point", values.vector, step[1])))
            elif (divisor := _checked(who, "pulley", values.scalar, step)) > 0.0:
                places.append(divisor)
            else:
                raise ModelError(f"{who}: a pulley divides the length by {divisor:g}; give a positive number")
        for what, given in acts.items():
            one_of(who, what, TENDON_ACTS, ModelError)
            acts[what] = None if given is None else _checked(who, what, values.scalar, given)
        ends = [TendonJoint(j, _checked(who, "coefficient", values.scalar, c)) for j, c in (joints or {}).items()]
        slack = (rest, rest) if np.ndim(rest) == 0 else rest
        self._tendons[name] = Tendon(
            name, tuple(ends), segments_along(places), rest=_checked(who, "rest", values.pair, slack), **acts
        )
        return self

    def shaped(self, link: str, shapes: Sequence[Shape]) -> Builder:
        """What a body looks like; nothing is computed from it."""
        self._links[self._known(link)] = replace(self._links[link], shapes=tuple(shapes))
        return self

    def contact(self, link: str, point: Numbers) -> Builder:
        """Name a point of a body, in its frame, that may touch the ground."""
        point = _checked(f"contact of {link!r}", "point", values.vector, point)
        self._contacts.append(ContactPoint(self._known(link), point))
        return self

    def model(self, strict: bool = False) -> Model:
        """The Model; ModelError with every problem, DrevoWarning for what is doubtful."""
        draft = Draft(
            self.name,
            list(self._links.values()),
            list(self._joints.values()),
            self._gravity,
            list(self._loops),
            list(self._couplings),
            list(self._contacts),
            tendons=list(self._tendons.values()),
            tendon_couplings=self._tendon_couplings.copy(),
            noun="body",
            ordered=True,
        )
        return finish(draft, strict=strict)

    def robot(self, strict: bool = False) -> Robot:
        """The Robot, ready to compute."""
        return Robot(self.model(strict))

    def _known(self, name: str) -> str:
        if not isinstance(name, str) or name not in self._links:
            raise ModelError(f"body {name!r} does not exist{did_you_mean(str(name), self._links)}; add it first")
        return name

    def _new_names(self, who: str, name: str, parent: str | None, joint: str | None) -> tuple[str, str]:
        """The parent, and a name for the joint, once all three are known to be right."""
        parent = next(iter(self._links)) if parent is None else parent
        _checked(who, "name", values.name, name)
        joint = _checked(who, "joint_name", values.name, f"{name}_joint" if joint is None else joint)
        self._check_new(name, joint)
        if not isinstance(parent, str) or parent not in self._links:
            hint = did_you_mean(str(parent), self._links)
            raise ModelError(f"body {name!r} has the parent {parent!r}, which does not exist{hint}; add it first")
        return parent, joint

    def _check_new(self, name: str, joint: str) -> None:
        if name in self._links:
            raise ModelError(f"body {name!r} already exists; names must be unique")
        if joint in self._joints:
            owner = self._joints[joint].child
            raise ModelError(f"body {name!r}: a joint {joint!r} already carries {owner!r}; give joint_name=...")


def _kind(who: str, kind: str) -> str:
    if not isinstance(kind, str) or kind not in KINDS:
        raise ModelError(
            f"{who}: the joint is of unknown type {kind!r}{did_you_mean(str(kind), KINDS)}; known are {_kinds()}"
        )
    return KINDS[kind]


def _kinds() -> str:
    return ", ".join(JOINT_SIZES)


def _inertial(who: str, mass: float, com: Numbers, inertia: Numbers, inertia_at: str) -> Inertial | None:
    one_of(f"{who}: inertia_at", inertia_at, ("com", "joint"), ModelError)
    m = _checked(who, "mass", lambda value: values.scalar(value, MAX_MASS), mass)
    c = _checked(who, "com", values.vector, com)
    tensor = ZERO if inertia is None else _checked(who, "inertia", values.tensor, inertia)
    if inertia_at == "joint" and inertia is not None:
        tensor = shift_tensor(tensor, -m, c)
    return Inertial(m, c, tensor) if m or any(map(any, tensor)) else None


def _link(who: str, name: str, *given: Any) -> Link:
    """mass, com, inertia, inertia_at, gravcomp."""
    *body, gravcomp = given
    part = _checked(who, "gravcomp", lambda x: values.scalar(x, ANY), gravcomp)
    return Link(name, _inertial(who, *body), gravcomp=part)


def _rotation(who: str, rotation: Numbers, rpy: Numbers) -> Mat3:
    if rotation is not None and rpy is not None:
        raise ModelError(f"{who}: both rotation and rpy are given; give one of them")
    if rpy is not None:
        angles: Vec3 = _checked(who, "rpy", values.vector, rpy)
        return from_rpy(*angles) if any(angles) else IDENTITY
    return IDENTITY if rotation is None else _checked(who, "rotation", values.rotation, rotation)


def _placed(
    who: str, origin: Numbers, rotation: Numbers, rpy: Numbers, axis: Numbers, axis2: Numbers
) -> tuple[Vec3, Mat3, Vec3, Vec3 | None]:
    return (
        _checked(who, "origin", values.vector, origin),
        _rotation(who, rotation, rpy),
        _checked(who, "axis", values.vector, axis),
        None if axis2 is None else _checked(who, "axis2", values.vector, axis2),
    )


def _lead(who: str, kind: str, lead: float | None) -> float:
    if KINDS[kind] != "helical":
        return 0.0
    if lead is None:
        raise ModelError(
            f"{who}: a helical joint needs its lead, the advance in metres per revolution: give lead=..."
        )
    return _checked(who, "lead", values.scalar, lead)


def _limit(who: str, limit: Limit | Sequence[float] | None) -> Limit | None:
    """Bounds; an infinite one is none."""
    if limit is None:
        return None
    if isinstance(limit, Limit):
        return Limit(*(_bound(who, x) for x in (limit.lower, limit.upper, limit.velocity, limit.effort)))
    bounds = limit.tolist() if hasattr(limit, "tolist") else limit
    if not isinstance(bounds, (tuple, list)):
        raise ModelError(f"{who}: limit {shown(limit)} is not a list of numbers; give (lower, upper), or a Limit")
    if len(bounds) != 2:
        raise ModelError(f"{who}: limit has {len(bounds)} numbers; give (lower, upper), or a Limit")
    return Limit(_bound(who, bounds[0]), _bound(who, bounds[1]))


def _bound(who: str, value: object) -> float | None:
    if value is None or (isinstance(value, float) and math.isinf(value)):
        return None
    return _checked(who, "limit", lambda x: values.scalar(x, ANY), value)


def _dynamics(who: str, whole: JointDynamics | None, rotor: Any, *given: float) -> JointDynamics | None:
    """What acts in the joint; None for nothing."""
    names = ("armature", "damping", "friction", "stiffness", "reference")
    parts: dict[str, Any] = {n: _checked(who, n, lambda x: values.scalar(x, ANY), x) for n, x in zip(names, given)}
    if rotor is not None:
        parts |= _rotor(who, rotor)
    if whole is not None and any(parts.values()):
        raise ModelError(f"{who}: both dynamics and {', '.join(n for n in parts if parts[n])} are given; give one")
    found = JointDynamics(**parts) if whole is None else whole
    return None if found == JointDynamics() else found


def _rotor(who: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
        raise ModelError(f"{who}: rotor is (inertia, gear ratio), or with an axis besides, not {shown(given)}")
    numbers = [_checked(who, "rotor", lambda x: values.scalar(x, ANY), x) for x in given[:2]]
    axis = _checked(who, "the rotor's axis", values.vector, given[2]) if len(given) == 3 else None
    return {"rotor": numbers[0], "gear": numbers[1], "rotor_axis": axis}


def _mimic(who: str, mimic: Mimic | Sequence[Any] | str | None) -> Mimic | None:
    if mimic is None or isinstance(mimic, Mimic):
        return mimic
    given = (mimic,) if isinstance(mimic, str) else tuple(mimic) if isinstance(mimic, (tuple, list)) else ()
    joint, *ratio = given or ("",)
    if not given or len(ratio) > 2:
        raise ModelError(f"{who}: mimic is a joint's name, or (name, multiplier, offset)")
    numbers = [_checked(who, "mimic", values.scalar, part) for part in ratio]
    return Mimic(_checked(who, "mimic", values.name, joint), *numbers)
