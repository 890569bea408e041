"""Robots made by hand, body by body; judged by the same rules as robots from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from ..errors import ModelError, one_of, shown
from ..io.given import asked_methods, spelled_out
from ..io.xml import ANY
from ..model import values
from ..model.description import (
    IDENTITY,
    LOOP_KINDS,
    ORIGIN,
    ContactPoint,
    Joint,
    JointCoupling,
    JointDynamics,
    Limit,
    Link,
    Loop,
    Mimic,
    Model,
    Shape,
    Tendon,
    TendonCoupling,
    TendonWrap,
)
from ..model.draft import STANDARD_GRAVITY, Draft, did_you_mean
from ..model.touching import Waypoint, segments_along
from ..model.validation import finish
from .face import Robot
from .parts import (
    GivenPose,
    Numbers,
    check_shape,
    formula_of,
    given_dynamics,
    given_kind,
    given_lead,
    given_limit,
    given_link,
    given_mimic,
    given_placement,
    given_rotation,
    given_shares,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

_checked = partial(values.checked, ModelError)

WORLD = "world"


class TendonForces(TypedDict, total=False):
    """Numbers of the forces along a tendon, in N, m and s of its length."""

    stiffness: float
    damping: float
    quadratic: float
    friction: float
    lower: float
    upper: float
    limit_stiffness: float
    limit_damping: float


@asked_methods
class Builder:
    """A robot in the making: bodies are added to a link "world", each with the joint that carries it.

    >>> b = Builder("pendulum")
    >>> b.body("rod", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0, 0, -0.5))  # doctest: +SKIP
    >>> robot = b.robot()  # doctest: +SKIP
    """

    def __init__(self, name: str = "robot", gravity: Numbers = STANDARD_GRAVITY, root: str = WORLD) -> None:
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
        body, parent, joint_name = self._new_names(name, parent, joint_name)
        place = given_placement(body, origin, rotation, rpy, axis, axis2)
        built = Joint(
            joint_name, given_kind(body, joint), parent, name, *place,
            given_lead(body, joint, lead), given_limit(body, limit), given_mimic(body, mimic),
            formula=formula_of(body, pose, coordinates), child_rotation=given_rotation(body, child_rotation, None),
            dynamics=given_dynamics(body, dynamics, rotor, armature, damping, friction, stiffness, reference),
            child_origin=_checked(body, "child_origin", values.vector, child_origin),
        )  # fmt: skip
        self._links[name] = given_link(body, name, mass, com, inertia, inertia_at, gravcomp)
        self._joints[joint_name] = built if elastic is None else self._after_motor(body, built, elastic)
        return self

    def _after_motor(self, label: str, joint: Joint, elastic: Sequence[float]) -> Joint:
        """The deflection of an elastic joint; its motor, with a link that weighs nothing, is put before it."""
        given = _checked(label, "elastic", lambda x: values.sequence(x, ANY), elastic)
        if len(given) != 2 or min(given) < 0.0 or given[0] == 0.0:
            raise ModelError(
                f"{label}: elastic is (stiffness, damping), the first above zero, the second not below"
            )
        if joint.nv != 1 or joint.dynamics is None or joint.dynamics.reflected <= 0.0:
            raise ModelError(f"{label}: an elastic joint has one freedom and a motor; give armature= or rotor=")
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
        """Close a loop by a constraint of this kind between a point of link_a and one of link_b.

        "point" holds them together, "weld" also the turn of b in a (`rotation`), "rod" at a `length`; "revolute",
        "prismatic", "cylindrical" and "universal" are joints with the axes `axis_a` and `axis_b`, in the bodies'
        own axes; a prismatic one keeps a `rotation` too.
        """
        label = f"loop between {link_a!r} and {link_b!r}"
        one_of(f"{label}: the kind", kind, LOOP_KINDS, ModelError)
        points = [_checked(label, "point", values.vector, point) for point in (point_a, point_b)]
        turn = None if rotation is None else _checked(label, "rotation", values.rotation, rotation)
        one, other = (None if axis is None else _checked(label, "axis", values.vector, axis)
                      for axis in (axis_a, axis_a if axis_b is None else axis_b))  # fmt: skip
        size = _checked(label, "length", values.scalar, length)
        ends = self._known(link_a), points[0], self._known(link_b), points[1]
        self._loops.append(Loop(kind, *ends, turn, one, other, size))
        return self

    def couple(self, joint: str, driver: str, coefficients: Numbers) -> Builder:
        """Hold q of a joint at c0 + c1 x + c2 x^2 + ..., x the q of its driver; a constraint, unlike `mimic`.

        Of a tendon its length, x the length of another (driver "": c0 alone, a cable that does not stretch).
        """
        label = f"coupling of {shown(joint)}"
        polynomial = _checked(label, "coefficients", values.sequence, coefficients)
        _checked(label, "name", values.name, joint)
        if not isinstance(driver, str) or driver:
            _checked(label, "driver", values.name, driver)
        if joint in self._tendons and joint not in self._joints:
            self._tendon_couplings.append(TendonCoupling(joint, driver, polynomial))
            return self
        self._couplings.append(JointCoupling(joint, driver, polynomial))
        return self

    @spelled_out(TendonForces)
    def tendon(
        self,
        name: str,
        path: Sequence[tuple[str, Numbers] | TendonWrap | float] = (),
        joints: Mapping[str, float] | None = None,
        *,
        rest: float | tuple[float, float] = 0.0,
        **acts: Unpack[TendonForces],
    ) -> Builder:
        """A tendon along straight segments between points of bodies, or of a length that joints add up.

        path: (body, point) after (body, point), with a `TendonWrap` between two where it lies around a sphere or a
        cylinder; a number is a pulley, behind which a branch begins whose length
        counts divided by it. joints: metres a radian (metre) of a joint. acts: `stiffness` beyond `rest` (one
        length, or two between which it is slack), `damping`, `quadratic`, `friction`, and where the length is
        below `lower` or above `upper` `limit_stiffness` and `limit_damping`; N, m, s of a path.
        """
        label = f"tendon {shown(name)}"
        _checked(label, "name", values.name, name)
        if name in self._tendons:
            raise ModelError(f"{label} already exists; names must be unique")
        forces: dict[str, Any] = {}
        for term, given in acts.items():
            one_of(label, term, TendonForces.__annotations__, ModelError)
            if given is not None or term not in ("lower", "upper"):
                forces[term] = _checked(label, term, values.scalar, given)
        slack = rest if isinstance(rest, (Sequence, np.ndarray)) else (rest, rest)
        self._tendons[name] = Tendon(
            name, given_shares(label, joints), segments_along(self._waypoints(label, path)),
            rest=_checked(label, "rest", values.pair, slack), **forces,
        )  # fmt: skip
        return self

    def _waypoints(
        self, label: str, path: Sequence[tuple[str, Numbers] | TendonWrap | float]
    ) -> list[Waypoint | TendonWrap | float]:
        if not isinstance(path, (tuple, list)):
            raise ModelError(f"{label}: path is a list of (body, point) and numbers, not {shown(path)}")
        places: list[Waypoint | TendonWrap | float] = []
        for step in path:
            if isinstance(step, TendonWrap):
                places.append(replace(step, link=self._known(step.link)))
            elif isinstance(step, (tuple, list)) and len(step) == 2:
                places.append((self._known(step[0]), _checked(label, "point", values.vector, step[1])))
            elif (divisor := _checked(label, "pulley", values.scalar, step)) > 0.0:
                places.append(divisor)
            else:
                raise ModelError(f"{label}: a pulley divides the length by {divisor:g}; give a positive number")
        return places

    def shaped(self, link: str, shapes: Sequence[Shape]) -> Builder:
        """Sets the shapes of a body, its looks; nothing is computed from them."""
        name = self._known(link)
        if not isinstance(shapes, (tuple, list)):
            raise ModelError(f"body {name!r}: shapes is a list of Shape, not {shown(shapes)}")
        for shape in shapes:
            check_shape(f"body {name!r}", shape)
        self._links[name] = replace(self._links[name], shapes=tuple(shapes))
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
            hint = did_you_mean(str(name), self._links)
            raise ModelError(f"body {shown(name)} does not exist{hint}; add it first")
        return name

    def _new_names(self, name: str, parent: str | None, joint: str | None) -> tuple[str, str, str]:
        """The label of the body in messages, its parent, and the name of its joint, once all are checked."""
        label = f"body {name!r}"
        parent = next(iter(self._links)) if parent is None else parent
        _checked(label, "name", values.name, name)
        joint = _checked(label, "joint_name", values.name, f"{name}_joint" if joint is None else joint)
        self._check_new(name, joint)
        if not isinstance(parent, str) or parent not in self._links:
            hint = did_you_mean(str(parent), self._links)
            raise ModelError(f"body {name!r} has the parent {parent!r}, which does not exist{hint}; add it first")
        return label, parent, joint

    def _check_new(self, name: str, joint: str) -> None:
        if name in self._links:
            raise ModelError(f"body {name!r} already exists; names must be unique")
        if joint in self._joints:
            owner = self._joints[joint].child
            raise ModelError(f"body {name!r}: a joint {joint!r} already carries {owner!r}; give joint_name=...")
