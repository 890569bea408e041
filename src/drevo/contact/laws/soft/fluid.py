"""Forces of a medium on the links, as MuJoCo has them: on the box that has a link's mass and inertia.

MuJoCo's documentation, "Computation: passive forces", of its model of inertia boxes: Stokes' drag of a sphere as
wide as the box is on average, and that of its faces, square in the speed.
"""

from __future__ import annotations

from math import pi

import numpy as np

from ....mechanics.algorithms.kinematics import Poses
from ....mechanics.joints import Force, Motion
from ....mechanics.scalar import Scalar, Vector
from ....mechanics.spatial import ZERO, Mat, Vec
from ....model.description import Inertial, Model
from .stages import Columns

TENSOR_ROUNDING = 1e-12  # of a tensor: beyond its diagonal that much is rounding


def box_of(body: Inertial) -> tuple[Mat, list[float]]:
    """The axes of a body's inertia, as columns, and the lengths of its box."""
    tensor = np.array(body.tensor)
    axes, moments = np.eye(3), tensor.diagonal()
    if np.abs(tensor - np.diag(moments)).max() > TENSOR_ROUNDING * np.abs(moments).max():
        moments, axes = np.linalg.eigh(tensor)
        axes = axes * np.linalg.det(axes)
    squares = 6.0 / body.mass * (moments.sum() - 2.0 * moments)
    return Mat.of(axes.tolist()), np.sqrt(np.maximum(squares, 0.0)).tolist()


def fluid_efforts(model: Model, columns: Columns, poses: Poses, v: Vector) -> list[Scalar]:
    """On every rate."""
    tree, tau = columns.tree, list[Scalar]([0.0] * columns.tree.nv)
    for link in model.links:
        body, at = link.inertial, tree.frames[link.name]
        if not body or not body.mass or at.body < 0:
            continue
        axes, box = box_of(body)
        here = poses[at.body].compose(at.R, at.p)
        turned, moved = here.R.mul(axes), columns.relative(-1, at.body, here.p + here.R @ Vec(*body.com))
        motion = Motion(ZERO, ZERO)
        for rate, s in moved.items():
            motion = motion + s * v[rate]
        w, u = turned.T @ motion.w, turned.T @ (motion.v - Vec(*model.stepping.wind))
        n, f = _drag(box, w, u, model.stepping.density, model.stepping.viscosity)
        push = Force(turned @ n, turned @ f)
        for rate, s in moved.items():
            tau[rate] = tau[rate] + s.dot(push)
    return tau


def _drag(box: list[float], w: Vec, u: Vec, density: float, viscosity: float) -> tuple[Vec, Vec]:
    """Moment and force at the centre of mass, along the axes of the box."""
    d, n, f = sum(box) / 3.0, list[Scalar](), list[Scalar]()
    for i in range(3):
        a, b, c = box[i], box[i - 2], box[i - 1]
        f.append(-(3.0 * pi * d * viscosity) * u[i] - (0.5 * density * b * c) * (abs(u[i]) * u[i]))
        n.append(-(pi * d**3 * viscosity) * w[i] - (density / 64.0 * a * (b**4 + c**4)) * (abs(w[i]) * w[i]))
    return Vec(*n), Vec(*f)
