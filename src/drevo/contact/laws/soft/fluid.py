"""Forces of a medium on the links, as MuJoCo has them: on the box that has a link's mass and inertia, or on
ellipsoids about its geoms.

MuJoCo's documentation, "Computation: passive forces", of its model of inertia boxes: Stokes' drag of a sphere as
wide as the box is on average, and that of its faces, square in the speed. Ellipsoids have drag by the area across
their way, Kutta's and Magnus' lift and added mass, without its accelerations: "Fluid forces", there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import dist, pi

import numpy as np

from ....mechanics.algorithms.kinematics import Poses
from ....mechanics.joints import Force, Motion
from ....mechanics.scalar import Scalar, Vector, maximum, sqrt
from ....mechanics.spatial import ZERO, Mat, Vec
from ....model.contact import Geom
from ....model.description import Inertial, Mat3, Model
from .couplings import Columns

TENSOR_ROUNDING = 1e-12  # of a tensor: beyond its diagonal that much is rounding
LEAST_OFFSET = 1e-12  # m, of a geom from the centre of mass: what is less is rounding
LEAST_FLOW = 1e-300  # of a speed, so that its root has a slope, and of what divides
# Kronrod's 15 nodes and weights on (0, 1), to the eight digits that MuJoCo has: the half below 1/2, and that
KRONROD_NODES = np.array([0.00427231, 0.02544604, 0.06756779, 0.12923441, 0.20695638, 0.29707742, 0.39610752, 0.5])
KRONROD_WEIGHTS = np.array(
    [0.01146766, 0.03154605, 0.05239501, 0.07032663, 0.08450236, 0.09517529, 0.10221647, 0.10474107]
)


def box_of(
    body: Inertial, number: Callable[[str, float], Scalar], frames: Sequence[Mat3] = ()
) -> tuple[Mat, list[Scalar]]:
    """The axes of a body's inertia, as columns, and the lengths of its box. frames: those of geoms about its
    centre of mass, of which one that is such axes is preferred, for of rods and balls others would do too. number:
    tells symbols; moments are then about the axes of the numbers alone."""
    tensor = np.array(body.tensor)
    for axes in (*map(np.array, frames), np.eye(3), np.linalg.eigh(tensor)[1]):
        turned = axes.T @ tensor @ axes
        moments = turned.diagonal()
        if np.abs(turned - np.diag(moments)).max() <= TENSOR_ROUNDING * np.abs(moments).max():
            break
    R = Mat.of((axes * np.linalg.det(axes)).tolist())
    names = [[f"inertia.{''.join(sorted(i + j))}" for j in "xyz"] for i in "xyz"]
    T = Mat.of([[number(*x) for x in zip(*row)] for row in zip(names, tensor.tolist())])
    about = [a.dot(T @ a) for a in R.T]
    squares = [6.0 / number("mass", body.mass) * (sum(about, 0.0) - 2.0 * x) for x in about]
    return R, [sqrt(maximum(x, 0.0 if isinstance(x, float) else LEAST_FLOW)) for x in squares]


def fluid_efforts(
    model: Model, columns: Columns, poses: Poses, v: Vector, number: Callable[[str, float], Scalar]
) -> list[Scalar]:
    """On every rate. number: gives what is a symbol, by the name of a number of the model."""
    tree, tau = columns.tree, list[Scalar]([0.0] * columns.tree.nv)
    for link in model.links:
        body, at = link.inertial, tree.frames[link.name]
        if not body or not body.mass or at.body < 0:
            continue

        def of_link(name: str, x: float, link: str = link.name) -> Scalar:
            return number(f"{link}.{name}", x)

        touching = [x for x in model.geoms if x.link == link.name]
        frames = [(x.origin, x.rotation) for x in touching] + [(x.origin, x.rotation) for x in link.shapes]
        axes, box = box_of(body, of_link, [R for p, R in frames if dist(p, body.com) < LEAST_OFFSET])
        com: tuple[Scalar, ...] = tuple(of_link(f"com.{a}", x) for a, x in zip("xyz", body.com))
        here = poses[at.body].compose(at.R, at.p)
        shapes = [(Mat.of(x.rotation), x.origin, partial(_ellipsoid_drag, x)) for x in touching if x.fluid]
        for own, centre, drag in shapes or [(axes, com, partial(_box_drag, box))]:
            turned, moved = here.R.mul(own), columns.relative(-1, at.body, here.p + here.R @ Vec(*centre))
            motion = Motion(ZERO, ZERO)
            for rate, s in moved.items():
                motion = motion + s * v[rate]
            w, u = turned.T @ motion.w, turned.T @ (motion.v - Vec(*model.stepping.wind))
            n, f = drag(w, u, model.stepping.density, model.stepping.viscosity)
            push = Force(turned @ n, turned @ f)
            for rate, s in moved.items():
                tau[rate] = tau[rate] + s.dot(push)
    return tau


def _ellipsoid_drag(geom: Geom, w: Vec, u: Vec, density: float, viscosity: float) -> tuple[Vec, Vec]:
    """Moment and force at the centre of a geom, along its axes."""
    a, (blunt, slender, angular, kutta, magnus) = _half_axes(geom), geom.fluid
    across = [(a[i - 2] * a[i - 1]) ** 2 for i in range(3)]
    spun = [8.0 / 15.0 * pi * a[i] * max(a[i - 2], a[i - 1]) ** 4 for i in range(3)]
    (_, middle, largest), d, volume = sorted(a), 2.0 / 3.0 * sum(a), 4.0 / 3.0 * pi * float(np.prod(a))
    mass, inertia = added_by_medium(a)
    p, L = (Vec(*(density * x * y for x, y in zip(m, z))) for m, z in ((mass, u), (inertia, w)))
    speed, normal = _speed_of(u), Vec(*(b * x for b, x in zip(across, u)))
    shadow, square = normal.dot(u), normal.dot(normal)
    area = pi * _speed_of(normal * (1.0 / sqrt(maximum(shadow, LEAST_FLOW))))
    cosine = shadow / maximum(speed * square, LEAST_FLOW)
    lift = (normal.cross(u) * (kutta * density * cosine * area)).cross(u) + w.cross(u) * (
        magnus * density * volume
    )
    slow = 3.0 * pi * d * viscosity + density * speed * (area * blunt + slender * (pi * largest * middle - area))
    most = 8.0 / 15.0 * pi * middle * largest**4
    turn = Vec(*(x * (angular * y + slender * (most - y)) for x, y in zip(w, spun)))
    still = pi * d**3 * viscosity + density * _speed_of(turn)
    return p.cross(u) + L.cross(w) - w * still, p.cross(w) + lift - u * slow


def _speed_of(x: Vec) -> Scalar:
    """At rest without a slope."""
    return sqrt(maximum(x.dot(x), LEAST_FLOW))


def _half_axes(geom: Geom) -> tuple[float, float, float]:
    r, *more = geom.size
    long = {"sphere": r, "capsule": r + (more or [0.0])[0], "cylinder": (more or [0.0])[0]}.get(geom.kind)
    return geom.size if long is None else (r, r, long)  # type: ignore[return-value]


def added_by_medium(a: tuple[float, float, float]) -> tuple[list[float], list[float]]:
    """Mass and moments that an ellipsoid's medium adds at density one, by Green's integrals of its half axes."""
    x, weights = (
        np.append(KRONROD_NODES, 1.0 - KRONROD_NODES[-2::-1]),
        np.append(KRONROD_WEIGHTS, KRONROD_WEIGHTS[-2::-1]),
    )
    far, rate = x**3 / (1.0 - x) ** 2, x * x * (3.0 - x) / (1.0 - x) ** 3
    k, squares, volume = list[float](), np.square(a), 4.0 / 3.0 * pi * float(np.prod(a))
    for i in range(3):
        scale = (a[i] ** 2 * float(np.prod(a))) ** 0.4
        shares = 1.0 + scale * far / squares[:, None]
        k.append(float((scale * rate * weights / (shares[i] * np.sqrt(shares.prod(0)))).sum()) / squares[i])
    moments = list[float]()
    for j, m in ((1, 2), (2, 0), (0, 1)):
        less, more = squares[j] - squares[m], squares[j] + squares[m]
        over = max(LEAST_FLOW, abs(2.0 * less + more * (k[j] - k[m])))
        moments.append(volume / 5.0 * less * less * abs(k[m] - k[j]) / over)
    return [volume * x / (2.0 - x) for x in k], moments


def _box_drag(box: list[float], w: Vec, u: Vec, density: float, viscosity: float) -> tuple[Vec, Vec]:
    """Moment and force at the centre of mass, along the axes of the box."""
    d, n, f = sum(box) / 3.0, list[Scalar](), list[Scalar]()
    for i in range(3):
        a, b, c = box[i], box[i - 2], box[i - 1]
        f.append(-(3.0 * pi * d * viscosity) * u[i] - (0.5 * density * b * c) * (abs(u[i]) * u[i]))
        n.append(-(pi * d**3 * viscosity) * w[i] - (density / 64.0 * a * (b**4 + c**4)) * (abs(w[i]) * w[i]))
    return Vec(*n), Vec(*f)
