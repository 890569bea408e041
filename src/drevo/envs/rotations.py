"""Quaternions w x y z in rows of arrays, as goals of tasks have them."""

from __future__ import annotations

from itertools import product as pairs
from typing import Any

import numpy as np

from ..mechanics.rotation import unit_quaternion
from ..mechanics.spatial import Mat

Array = np.ndarray[Any, Any]
MIN_COSINE = 4.0 * np.finfo(float).eps  # of the second angle: below it the first is taken as 0


def product(a: Array, b: Array) -> Array:
    """The quaternions (..., 4) of turning by b, then by a."""
    w, x, y, z = np.moveaxis(a, -1, 0)
    s, i, j, k = np.moveaxis(b, -1, 0)
    parts = (w * s - x * i - y * j - z * k, w * i + x * s + y * k - z * j,
             w * j - x * k + y * s + z * i, w * k + x * j - y * i + z * s)  # fmt: skip
    return np.stack(parts, -1)


def of_axis(angle: Array, axis: Array) -> Array:
    """The quaternions of turning by angles (n,), rad, about axes (n, 3) of any length."""
    axis = axis / np.linalg.norm(axis, axis=-1, keepdims=True)
    return np.concatenate([np.cos(0.5 * angle)[:, None], np.sin(0.5 * angle)[:, None] * axis], 1)


def apart(a: Array, b: Array) -> Array:
    """Angles (...,) between orientations, rad: 0 to 2 pi, for a quaternion and its negative are taken as apart."""
    angle: Array = 2.0 * np.arccos(np.clip((a * b).sum(-1), -1.0, 1.0))
    return angle


def octahedral(index: Array) -> Array:
    """Those of the 24 turns that map a cube onto itself, (n, 4), of numbers from 0 to 23."""
    z, x = (of_axis(np.arange(4) * (np.pi / 2), np.array([axis] * 4, float)) for axis in ((0, 0, 1), (1, 0, 0)))
    y = of_axis(np.array([0.5, 1.5]) * np.pi, np.array([(0.0, 1.0, 0.0)] * 2))
    tops = [*x, *y]  # one for each face that comes to the top
    table = np.array([product(top, turn) for top, turn in pairs(tops, z)])
    return table[index]


def without_turn(a: Array, b: Array) -> Array:
    """The orientations a with the last of their angles about x, y, z (each about the turned axis) that of b."""
    x, y, _ = _angles(a)
    turns = ((x, (1.0, 0.0, 0.0)), (y, (0.0, 1.0, 0.0)), (_angles(b)[2], (0.0, 0.0, 1.0)))
    u, v, w = (of_axis(np.ravel(t), np.array([axis] * np.size(t))).reshape(*np.shape(t), 4) for t, axis in turns)
    return product(product(u, v), w)


def _angles(a: Array) -> tuple[Array, Array, Array]:
    """The angles of R = Rx(x) Ry(y) Rz(z)."""
    w, x, y, z = np.moveaxis(a / np.linalg.norm(a, axis=-1, keepdims=True), -1, 0)
    sine = np.clip(2.0 * (x * z + w * y), -1.0, 1.0)
    about_x = np.arctan2(2.0 * (w * x - y * z), 1.0 - 2.0 * (x * x + y * y))
    return about_x, np.arcsin(sine), np.arctan2(2.0 * (w * z - x * y), 1.0 - 2.0 * (y * y + z * z))


def cardan_angles(R: Array) -> Array:
    """The angles (..., 3) of rotations (..., 3, 3) about x, then y, then z, each about the turned axis."""
    cosine = np.hypot(R[..., 1, 2], R[..., 2, 2])
    plain = cosine > MIN_COSINE
    about_x = np.where(plain, np.arctan2(-R[..., 1, 2], R[..., 2, 2]), 0.0)
    about_z = np.where(plain, np.arctan2(-R[..., 0, 1], R[..., 0, 0]), np.arctan2(R[..., 1, 0], R[..., 1, 1]))
    return np.stack([about_x, np.arctan2(R[..., 0, 2], cosine), about_z], -1)


def rotation_quaternions(R: Array) -> Array:
    """The quaternions (n, 4) of rotations (n, 3, 3), up to their signs."""
    x, y, z, w = unit_quaternion(Mat.of([[R[:, i, j] for j in range(3)] for i in range(3)]))
    return np.stack([w, x, y, z], -1)
