"""Worked examples of the papers: hinged bodies, a hanging chain, an arm with a screw, a biped.

Embedded robots with closed loops: a four-bar linkage, a Stewart platform, two arms that hold one object.

Every one is closed where all its coordinates are neutral. The sizes are round numbers chosen here.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, hypot, pi, radians, sin

import numpy as np

from ..dh import building as dh
from ..errors import ModelError, shown
from ..model.description import IDENTITY, ORIGIN, ContactPoint, Inertial, Joint, Link, Mat3, Model, Vec3
from ..model.draft import Draft
from ..model.rotations import add_vectors, apply, from_rpy, matmul, turn_tensor
from ..model.validation import finish
from ..robot.builder import WORLD, Builder
from .data import (
    BIPED,
    DOWN_Y,
    GRAVITY_DOWN,
    THREE_LINK,
    TWO_ARM_PLANAR,
    TWO_ARM_SPATIAL,
    Hinged,
    quarter,
    tensor_of,
)

MAX_RODS = 100_000  # rods of a chain


def three_link() -> Model:
    """Telegin 2025, example 1: three links in the vertical plane x, y; gravity along -y.

    The paper leaves its symbols open; the numbers are of the first case that this project verified it with.
    """
    return _hinged("three-link", THREE_LINK, DOWN_Y)


def two_arm_planar() -> Model:
    """Telegin 2025, example 2: a column with two planar arms of two links, in a horizontal plane; gravity -z.

    The paper leaves its symbols open; the numbers are of the first case that this project verified it with.
    """
    return _hinged("two-arm-planar", TWO_ARM_PLANAR, GRAVITY_DOWN)


def two_arm_spatial() -> Model:
    """Telegin 2025, example 3: a column with two spatial arms of three links, seven joints; y up, gravity -y.

    The paper leaves its symbols open; the numbers are of the first case that this project verified it with
    ("general": no condition for a constant inertia matrix holds).
    """
    return _hinged("two-arm-spatial", TWO_ARM_SPATIAL, DOWN_Y)


def _hinged(name: str, bodies: Sequence[Hinged], gravity: Vec3) -> Model:
    b = Builder(name, gravity)
    for k, (parent, offset, axis, mass, com, six) in enumerate(bodies, 1):
        b.body(
            f"link{k}",
            f"link{parent}" if parent else WORLD,
            axis=axis,
            origin=offset,
            mass=mass,
            com=com,
            inertia=tensor_of(six),
            inertia_at="joint",
            joint_name=f"joint{k}",
        )
    return b.model()


def rod_chain(n: int = 10) -> Model:
    """Yudintsev's slides on Vereshchagin's method: a hanging chain of n uniform thin rods in the plane x, y.

    1 m and 10 kg in all, gravity along -y, the first hinge at the origin, rods along x at q = 0, relative
    angles.
    """
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or not 1 <= n <= MAX_RODS:
        raise ModelError(f"a rod chain has one rod or more, and at most {MAX_RODS}, not {shown(n)}")
    b, length, mass = Builder("rod-chain", DOWN_Y), 1.0 / n, 10.0 / n
    moment = mass * length**2 / 12
    for k in range(1, n + 1):
        b.body(
            f"link{k}",
            f"link{k - 1}" if k > 1 else WORLD,
            origin=(length if k > 1 else 0.0, 0.0, 0.0),
            mass=mass,
            com=(length / 2, 0.0, 0.0),
            inertia=tensor_of((0.0, moment, moment, 0.0, 0.0, 0.0)),
            joint_name=f"joint{k}",
        )
    return b.model()


def screw_arm() -> Model:
    """Alyushin 2022: a column (about z), an arm (about y) and a screw (about and along x, 0.1 m a turn).

    Axes of the bodies are those of the observer at q = 0; the load is clamped to link 3.
    """
    b = Builder("screw-arm", GRAVITY_DOWN)
    height, arm = 0.6, 0.5
    for name, parent, joint, axis, origin, mass, com, six in (
        ("link1", WORLD, "revolute", (0, 0, 1), ORIGIN, 12.0, (0.0, 0.0, 0.3), (0.36, 0.36, 0.0375, 0, 0, 0)),
        ("link2", "link1", "revolute", (0, 1, 0), (0.0, 0.0, height), 6.0, (0.24, 0.01, 0.005),
         (0.012, 0.135, 0.14, 0.001, -0.002, 0.0005)),
        ("link3", "link2", "helical", (1, 0, 0), (arm, 0.0, 0.0), 3.0, (0.2, 0.008, -0.005),
         (0.006, 0.042, 0.043, -0.0004, 0.0003, 0.0002)),
        ("load", "link3", "fixed", (0, 0, 1), ORIGIN, 5.0, (0.45, 0.03, -0.03), (0.02, 0.03, 0.025, 0, 0, 0)),
    ):  # fmt: skip
        b.body(
            name,
            parent,
            joint,
            axis,
            origin,
            mass=mass,
            com=com,
            inertia=tensor_of(six),
            lead=0.1 if joint == "helical" else None,
            joint_name=name.replace("link", "joint"),
        )
    return b.model()


def biped() -> Model:
    """Kovalchuk, Kulakov, Semenov: a pelvis, two legs of six joints and a torso; z up, x forward, gravity -z.

    Lengths and masses are those of the first biped that this project verified the paper with. The pelvis is
    the root: `drevo.load("biped", base="trunk")` gives the paper's nineteen coordinates. At q = 0 it stands
    upright. The corners of the soles (0.22 x 0.10 m, level at q = 0, centred below the ankles) are the
    contact points.
    Rows of the paper's table; the DH frame of the pelvis is fixed in the frame that its trunk carries.
    """
    turn, at = dh.rz(-pi / 2), (0.0, -BIPED[0][3][2], 0.0)
    constants = {"pelvis": dh.Constants()}
    links: list[Link] = []
    joints: list[Joint] = []
    for name, joint, parent, (theta, d, a, alpha), (xyz, rpy), mass, com, six in BIPED:
        if not parent:
            pelvis = Inertial(mass, add_vectors(at, apply(turn, com)), turn_tensor(turn, tensor_of(six)))
            links.append(Link(name, pelvis))
            continue
        row = constants[name] = dh.Constants(quarter(theta), d, a, quarter(alpha))
        frame: dh.Frame = (_clean(from_rpy(*map(quarter, rpy))), xyz)
        if parent == "pelvis":
            frame = (matmul(turn, frame[0]), add_vectors(at, apply(turn, xyz)))
        rotation, origin = dh.place_standard(row, constants[parent], frame)
        links.append(Link(name, Inertial(mass, *dh.body_standard(row, com, tensor_of(six)))))
        joints.append(Joint(joint, "revolute", parent, name, origin, rotation, (0.0, 0.0, 1.0)))
    sole = constants["right_foot"].a
    contacts = [
        ContactPoint(f"{side}_foot", (sole, y, z)) for side in ("right", "left") for y, z in _rectangle(0.05, 0.11)
    ]
    return finish(Draft("biped", links, joints, GRAVITY_DOWN, contacts=contacts, noun="body", ordered=True))


def _rectangle(y: float, z: float) -> tuple[tuple[float, float], ...]:
    return ((-y, -z), (-y, z), (y, z), (y, -z))


def _clean(r: Mat3) -> Mat3:
    """A rotation by quarter turns without the rounding of cos(pi / 2)."""
    return tuple(tuple(float(round(x)) for x in row) for row in r)  # type: ignore[return-value]


def four_bar() -> Model:
    """A four-bar linkage: crank 0.2 m, coupler 0.583 m, rocker 0.510 m, ground 0.6 m; the crank can turn round.

    In the plane x, z, uniform rods of 1, 2 and 2 kg, gravity -z. At q = 0 it is closed, with the crank up;
    the loop's row along y follows from the other two.
    """
    b = Builder("four-bar", GRAVITY_DOWN)
    ground, crank, coupler, rocker = (0.6, 0.0, 0.0), (0.0, 0.0, 0.2), (0.5, 0.0, 0.3), (-0.1, 0.0, 0.5)
    _rod(b, "crank", WORLD, ORIGIN, crank, 1.0)
    _rod(b, "coupler", "crank", crank, coupler, 2.0)
    _rod(b, "rocker", WORLD, ground, rocker, 2.0)
    b.loop("point", "coupler", coupler, "rocker", rocker)
    return b.model()


def _rod(
    b: Builder, name: str, parent: str, origin: Vec3, to: Vec3, mass: float, axis: Vec3 = (0.0, 1.0, 0.0)
) -> None:
    """A slender rod from its joint to a point, in axes parallel to the world's."""
    half: Vec3 = (to[0] / 2, to[1] / 2, to[2] / 2)
    b.body(name, parent, "revolute", axis, origin, mass=mass, com=half, inertia=_slender(mass, to))


def _slender(mass: float, to: Vec3) -> Mat3:
    """m (|l|^2 1 - l l^T) / 12."""
    square = sum(x * x for x in to)
    return tuple(  # type: ignore[return-value]
        tuple(mass * ((square if i == j else 0.0) - to[i] * to[j]) / 12 for j in range(3)) for i in range(3)
    )


# --- Stewart platform -------------------------------------------------------------------------------------

HEIGHT, GROUND_RING, PLATFORM_RING, PAIR_ANGLE = (
    1.0,
    0.9,
    0.5,
    12.0,
)  # m; degrees between a joint and its pair's middle


def stewart() -> Model:
    """A Stewart platform: a free disc of 12 kg on six legs, universal at the ground, prismatic, spherical at it.

    q: the platform's position and quaternion, then two angles and the extension of each leg. At
    `robot.neutral()` it is closed, level, 1 m high. Nothing drives the legs.
    """
    b = Builder("stewart", GRAVITY_DOWN)
    disc, thick = 12.0 * PLATFORM_RING**2, 12.0 * 0.05**2
    moments = (disc / 4 + thick / 12, disc / 4 + thick / 12, disc / 2)
    b.body("platform", WORLD, "free", origin=(0.0, 0.0, HEIGHT), mass=12.0, inertia=_diagonal(moments))
    for k in range(6):
        middle, side = 120.0 * (k // 2), 1 - 2 * (k % 2)
        foot = _ring(GROUND_RING, middle + side * PAIR_ANGLE)
        head = _ring(PLATFORM_RING, middle + side * (60.0 - PAIR_ANGLE))
        _leg(b, f"leg{k + 1}", foot, head)
    return b.model()


def _leg(b: Builder, name: str, foot: Vec3, head: Vec3) -> None:
    """Two rods, one sliding in the other, whose z points from the foot to the head; level axis first: falling is
    free."""
    x, y, z = head[0] - foot[0], head[1] - foot[1], head[2] + HEIGHT - foot[2]
    across = hypot(x, y)
    length = hypot(across, z)
    turn = _aimed(x / across, y / across, across / length, z / length)
    rod = _diagonal((0.06, 0.06, 0.002))
    b.body(f"{name}_lower", WORLD, "universal", (0.0, 1.0, 0.0), foot, turn, axis2=(1.0, 0.0, 0.0), mass=2.0,
           com=(0.0, 0.0, 0.3), inertia=rod)  # fmt: skip
    b.body(f"{name}_upper", f"{name}_lower", "prismatic", origin=(0.0, 0.0, length), mass=1.0,
           com=(0.0, 0.0, -0.3), inertia=rod)  # fmt: skip
    b.loop("point", f"{name}_upper", ORIGIN, "platform", head)


def _aimed(c: float, s: float, sine: float, cosine: float) -> Mat3:
    """Columns: across the leg in its vertical plane, level, along it."""
    return ((c * cosine, -s, c * sine), (s * cosine, c, s * sine), (-sine, 0.0, cosine))


def _ring(radius: float, degrees: float) -> Vec3:
    return (radius * cos(radians(degrees)), radius * sin(radians(degrees)), 0.0)


def _diagonal(moments: Vec3) -> Mat3:
    x, y, z = moments
    return ((x, 0.0, 0.0), (0.0, y, 0.0), (0.0, 0.0, z))


# --- two arms, one object ---------------------------------------------------------------------------------


def two_arm() -> Model:
    """Two arms of six joints whose hands are welded to one free box of 3 kg; elbows bent, z up, gravity -z.

    The two welds are loops, so their reactions are the wrenches of the grips. At `robot.neutral()` it is closed.
    """
    b = Builder("two-arm", GRAVITY_DOWN)
    for side, s in (("left", 1.0), ("right", -1.0)):
        _arm(b, side, s)
    box = _diagonal((3.0 * (0.3**2 + 0.1**2) / 12, 3.0 * (0.2**2 + 0.1**2) / 12, 3.0 * (0.2**2 + 0.3**2) / 12))
    b.body("box", WORLD, "free", origin=(0.65, 0.0, 0.65), mass=3.0, inertia=box)
    for side, s in (("left", 1.0), ("right", -1.0)):
        b.loop("weld", f"{side}_hand", (0.1, -0.1 * s, 0.0), "box", (0.0, 0.15 * s, 0.0), IDENTITY)
    return b.model()


def _arm(b: Builder, side: str, s: float) -> None:
    """Shoulder (about z, then y), bent elbow (y), wrist (along the forearm, y, z)."""
    upper, fore, hand = (0.25, 0.0, -0.25), (0.3, 0.0, 0.1), (0.1, -0.1 * s, 0.0)
    small = _diagonal((0.002, 0.002, 0.002))
    b.body(f"{side}_shoulder", WORLD, axis=(0, 0, 1), origin=(0.0, 0.25 * s, 0.8), mass=1.5, inertia=small)
    _rod(b, f"{side}_upper_arm", f"{side}_shoulder", ORIGIN, upper, 2.5)
    _rod(b, f"{side}_forearm", f"{side}_upper_arm", upper, fore, 1.8)
    b.body(f"{side}_wrist_roll", f"{side}_forearm", axis=fore, origin=fore, mass=0.4, inertia=small)
    b.body(f"{side}_wrist_pitch", f"{side}_wrist_roll", axis=(0, 1, 0), mass=0.4, inertia=small)
    _rod(b, f"{side}_hand", f"{side}_wrist_pitch", ORIGIN, hand, 0.6, (0.0, 0.0, 1.0))
