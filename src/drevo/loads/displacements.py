"""Displacements in full, not to first order: poses of twists, rotation vectors of turns."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def cross_matrix(x: Array) -> Array:
    """[x]x, (..., 3, 3), of vectors (..., 3)."""
    out = np.zeros((*x.shape[:-1], 3, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        out[..., k, j], out[..., j, k] = x[..., i], -x[..., i]
    return out


def pose_of_twist(twist: Array) -> Array:
    """Poses (n, 4, 4) of a move by twist[:3] after a turn by the rotation vector twist[3:] (Rodrigues)."""
    w = twist[:, 3:]
    angle = np.linalg.norm(w, axis=-1)[:, None, None]
    K = cross_matrix(w)
    T = np.zeros((len(w), 4, 4))
    T[:, :3, :3] = np.eye(3) + np.sinc(angle / np.pi) * K + 0.5 * np.sinc(angle / (2 * np.pi)) ** 2 * (K @ K)
    T[:, :3, 3], T[:, 3, 3] = twist[:, :3], 1.0
    return T


def rotation_vector(R: Array) -> Array:
    """Rotation vectors (n, 3) of turns far from half a revolution."""
    skew = np.stack([R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]], axis=-1) / 2
    sine = np.linalg.norm(skew, axis=-1, keepdims=True)
    angle = np.arctan2(sine, (np.trace(R, axis1=1, axis2=2)[:, None] - 1.0) / 2)
    return np.asarray(skew * np.divide(angle, sine, out=np.ones_like(sine), where=sine > 1e-12))
