"""Embedded robots with closed loops: a four-bar linkage, a Stewart platform, two arms that hold one object.

Every one is closed where all its coordinates are neutral. The sizes are round numbers chosen here.
"""

from __future__ import annotations

from math import cos, hypot, radians, sin

from ..model.description import IDENTITY, ORIGIN, Mat3, Model, Vec3
from ..robot.builder import WORLD, Builder
from .data import DOWN


def four_bar() -> Model:
    """A four-bar linkage: crank 0.2 m, coupler 0.583 m, rocker 0.510 m, ground 0.6 m; the crank can turn round.

    In the plane x, z, uniform rods of 1, 2 and 2 kg, gravity -z. At q = 0 it is closed, with the crank up;
    the loop's row along y follows from the other two.
    """
    b = Builder("four-bar", DOWN)
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

HEIGHT, GROUND_RING, PLATFORM_RING, APART = 1.0, 0.9, 0.5, 12.0  # m; degrees between a joint and its pair's middle


def stewart() -> Model:
    """A Stewart platform: a free disc of 12 kg on six legs, universal at the ground, prismatic, spherical at it.

    q: the platform's position and quaternion, then two angles and the extension of each leg. At
    `robot.neutral()` it is closed, level, 1 m high. Nothing drives the legs.
    """
    b = Builder("stewart", DOWN)
    disc, thick = 12.0 * PLATFORM_RING**2, 12.0 * 0.05**2
    moments = (disc / 4 + thick / 12, disc / 4 + thick / 12, disc / 2)
    b.body("platform", WORLD, "free", origin=(0.0, 0.0, HEIGHT), mass=12.0, inertia=_diagonal(moments))
    for k in range(6):
        middle, side = 120.0 * (k // 2), 1 - 2 * (k % 2)
        foot = _ring(GROUND_RING, middle + side * APART)
        head = _ring(PLATFORM_RING, middle + side * (60.0 - APART))
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
    b = Builder("two-arm", DOWN)
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
