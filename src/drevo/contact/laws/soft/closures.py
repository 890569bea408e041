"""Loops under the soft law: what connect and weld of MJCF hold, its rows and how they accelerate by themselves."""

from __future__ import annotations

from typing import NamedTuple

from ....mechanics.algorithms.constraints import Kinematics
from ....mechanics.rotation import unit_quaternion
from ....mechanics.scalar import Scalar
from ....mechanics.spatial import Mat, Vec
from ....model.description import Loop
from .law import Softness


class LoopRow(NamedTuple):
    """weight: inverse, of both links: of translations, of rotations."""

    loop: Loop
    soft: Softness
    weight: tuple[float, float]


class Closure(NamedTuple):
    """The rows of a loop closure: how far each is from zero, by all rates how that changes, and its acceleration
    where they have none."""

    place: list[Scalar]
    rows: list[list[Scalar]]
    bias: list[Scalar]


def closure(r: LoopRow, k: Kinematics) -> Closure:
    """The way between two points along the world's axes; of a weld then the vector of the quaternion from b to
    where it should be, in the axes of b and times the torque scale.

    With e = (u, w) this quaternion and d how a turns as b sees it, e' = (w d + d x u, -d . u) / 2.
    """
    loop, a, b = r.loop, r.loop.link_a, r.loop.link_b
    way = k.point(a, loop.point_a) - k.point(b, loop.point_b)
    found = Closure([*way.x], [list(row) for row in zip(*way.columns)], [*way.dd])
    if loop.rotation is None:
        return found
    R, turn, of_b, half = k.pose(b).R.T, k.turning(a) - k.turning(b), k.turning(b), 0.5 * loop.torquescale
    x, y, z, w = unit_quaternion(R.mul(k.pose(a).R).mul(Mat.of(loop.rotation)))
    u = Vec(x, y, z)

    def turned(d: Vec) -> Vec:
        d = R @ d
        out: Vec = (d * w + d.cross(u)) * half
        return out

    bias = turned(turn.dd + turn.d.cross(of_b.d)) - u * (0.5 * half * turn.d.dot(turn.d))
    rows = [list(row) for row in zip(*map(turned, turn.columns))]
    return Closure([*found.place, *(u * (2.0 * half))], [*found.rows, *rows], [*found.bias, *bias])
