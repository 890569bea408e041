"""Mass and inertia of the plain solids that bodies are modelled with, about their own centres and axes."""

from __future__ import annotations

from collections.abc import Iterable
from math import pi

from drevo.model.description import ORIGIN, Inertial, Mat3, Vec3
from drevo.model.rotations import add_vectors, shift_tensor, turn_tensor

ZERO: Mat3 = (ORIGIN, ORIGIN, ORIGIN)


def volume(kind: str, size: tuple[float, ...]) -> float:
    """Volume of a sphere (r), capsule or cylinder (r, half length), box or ellipsoid (half sizes)."""
    if kind == "sphere":
        return 4 / 3 * pi * size[0] ** 3
    if kind == "capsule":
        return pi * size[0] ** 2 * (2 * size[1] + 4 / 3 * size[0])
    if kind == "cylinder":
        return 2 * pi * size[0] ** 2 * size[1]
    return (8 if kind == "box" else 4 / 3 * pi) * size[0] * size[1] * size[2]


def moments(kind: str, size: tuple[float, ...], mass: float) -> Vec3:
    """Principal moments of a homogeneous solid; round ones stand along z."""
    if kind == "sphere":
        i = 2 / 5 * mass * size[0] ** 2
        return (i, i, i)
    if kind in ("capsule", "cylinder"):
        return _round_moments(kind, size[0], size[1], mass)
    a, b, c = (x * x for x in size[:3])
    k = mass / (3 if kind == "box" else 5)
    return (k * (b + c), k * (a + c), k * (a + b))


def _round_moments(kind: str, r: float, half: float, mass: float) -> Vec3:
    ends = mass * 2 * r / (2 * r + 3 * half) if kind == "capsule" and r > 0.0 else 0.0  # the two half spheres
    middle = mass - ends
    across = middle * (r * r / 4 + half * half / 3) + ends * (2 / 5 * r * r + half * half + 3 / 4 * r * half)
    along = middle * r * r / 2 + ends * 2 / 5 * r * r
    return (across, across, along)


def diagonal(values: Vec3) -> Mat3:
    """The tensor with these moments on its own axes."""
    x, y, z = values
    return ((x, 0.0, 0.0), (0.0, y, 0.0), (0.0, 0.0, z))


def together(parts: Iterable[tuple[float, Vec3, Mat3, Vec3]]) -> Inertial:
    """One body of several (mass, centre, turn, principal moments)."""
    parts = list(parts)
    mass = sum(m for m, _, _, _ in parts)
    if mass == 0.0:
        return Inertial()
    cx, cy, cz = (sum(m * c[k] for m, c, _, _ in parts) / mass for k in range(3))
    total = ZERO
    for m, c, turn, own in parts:
        away = shift_tensor(turn_tensor(turn, diagonal(own)), m, (c[0] - cx, c[1] - cy, c[2] - cz))
        total = (add_vectors(total[0], away[0]), add_vectors(total[1], away[1]), add_vectors(total[2], away[2]))
    return Inertial(mass, (cx, cy, cz), total)
