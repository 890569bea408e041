"""Constraint rows of joints, couplings, tendons and loops: the residual and the Jacobian of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ....mechanics.algorithms.constraints import Kinematics
from ....mechanics.algorithms.kinematics import Poses
from ....mechanics.algorithms.passive import tendon_coupling, tendon_length
from ....mechanics.joints import Motion
from ....mechanics.rotation import angle_and_axis, from_quaternion, unit_quaternion
from ....mechanics.scalar import Scalar, is_zero, where
from ....mechanics.spatial import Mat, Vec
from ....mechanics.tree import Tree
from ....mechanics.tree_indices import ancestors
from ....model.description import Loop, Tendon
from .law import Equality, RowGroup, Softness

Moves = dict[int, Scalar]  # by rate, how it moves a row
EQUALITY = Equality()


class JointRow(NamedTuple):
    """A row of a joint: a limit, whose distance is sign (q - at), or dry friction, which has a rate alone. Of a
    ball q is the angle by which it turns, and it has three rates."""

    rate: int
    q: int
    group: RowGroup
    soft: Softness
    weight: Scalar
    sign: float = 1.0
    at: float = 0.0
    ball: bool = False
    axis: int | None = None  # of the world, of a free joint

    def place(self, k: Kinematics) -> tuple[Scalar, Moves]:
        """The distance of the row from its margin, and what moves it."""
        if self.group.at_rates:
            return 0.0, self._along_world(k)
        here, moves = k.q[self.q], {self.rate: self.sign}
        if self.ball:
            here, axis = angle_and_axis(k.q[self.q : self.q + 4])
            moves = {self.rate + i: self.sign * x for i, x in enumerate(axis)}
        return self.sign * (here - self.at) - self.soft.margin, moves

    def _along_world(self, k: Kinematics) -> Moves:
        """The rate; of a free joint, which moves along the axes of its body, a rate along an axis of the world."""
        if self.axis is None:
            return {self.rate: 1.0}
        R = from_quaternion(*k.q[self.q + 3 : self.q + 7])
        return {self.rate + i: R[self.axis][i] for i in range(3)}


class CouplingRow(NamedTuple):
    """q1 = c0 + c1 q2 + c2 q2^2 + ..; places of both coordinates and rates, the second -1 where it is c0 alone."""

    q: tuple[int, int]
    rates: tuple[int, int]
    coefficients: tuple[float, ...]
    soft: Softness
    weight: Scalar
    group: RowGroup = EQUALITY

    def place(self, k: Kinematics) -> tuple[Scalar, Moves]:
        """The law leaves out how the slope turns, as MuJoCo does."""
        x: Scalar = k.q[self.q[1]] if self.q[1] >= 0 else 0.0
        value: Scalar = 0.0
        slope: Scalar = 0.0
        for c in reversed(self.coefficients):
            value, slope = c + x * value, value + x * slope
        moves: Moves = {self.rates[0]: 1.0}
        return k.q[self.q[0]] - value, moves | ({self.rates[1]: -slope} if self.q[1] >= 0 else {})


class TendonRow(NamedTuple):
    """A row of a tendon of length L: a limit, whose distance is sign (L - at), dry friction, which has a rate
    alone, or a coupling, which holds L to a polynomial of another tendon's length, or to its first coefficient."""

    tendon: Tendon
    group: RowGroup
    soft: Softness
    weight: Scalar
    coupling: tuple[Tendon | None, tuple[float, ...]] | None = None
    sign: float = 1.0
    at: float = 0.0

    def place(self, k: Kinematics) -> tuple[Scalar, Moves]:
        """The distance from its margin, and what moves it; how a straight part turns is left out."""
        found = tendon_coupling(k, self.tendon, *self.coupling) if self.coupling else tendon_length(k, self.tendon)
        moves = {i: self.sign * x for i, x in enumerate(found.jacobian[0]) if not is_zero(x)}
        if self.group.at_rates:
            return 0.0, moves
        return self.sign * (found.value[0] - self.at) - self.soft.margin, moves


class LimitRow(NamedTuple):
    """The nearer one of a lower and an upper limit, which are so far apart that never both hold."""

    lower: JointRow | TendonRow
    upper: JointRow | TendonRow
    group: RowGroup
    soft: Softness
    weight: Scalar

    def place(self, k: Kinematics) -> tuple[Scalar, Moves]:
        """The distance of the nearer limit from its margin, and what moves it."""
        (below, moves), (above, _) = self.lower.place(k), self.upper.place(k)
        side = where(above < below, -1.0, 1.0)
        return where(above < below, above, below), {r: side * x for r, x in moves.items()}


SoftRow = JointRow | CouplingRow | TendonRow | LimitRow


def with_limits_paired(rows: Sequence[Any]) -> list[SoftRow | LoopRow]:
    """Rows with the lower and the upper limit of a joint or a tendon as one."""
    out: list[Any] = []
    for r in rows:
        x: Any = out[-1] if out else None
        pair = isinstance(r, (JointRow, TendonRow)) and type(x) is type(r) and (x.sign, r.sign) == (1.0, -1.0)
        if pair and r == x._replace(sign=-1.0, at=r.at) and r.at - x.at > 2.0 * r.soft.margin:
            out[-1] = LimitRow(x, r, r.group, r.soft, r.weight)
        else:
            out.append(r)
    return out


class LoopRow(NamedTuple):
    """weight: inverse, of both links: of translations, of rotations."""

    loop: Loop
    soft: Softness
    weight: tuple[Scalar, Scalar]


class Closure(NamedTuple):
    """The rows of a loop closure: residuals, Jacobian, and J' v, their accelerations where rates have none."""

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


class Columns:
    """The Jacobians of points: by every rate the motion that it gives them, in world axes."""

    def __init__(self, tree: Tree, poses: Poses) -> None:
        self.tree = tree
        self.parts: list[list[tuple[int, Motion, Vec]]] = []
        for i, b in enumerate(tree.bodies):
            R, p = poses[i]
            subspace = enumerate(tree.motion_subspace(b), b.v)
            self.parts.append([(k, Motion(R @ (s.w * b.factor), R @ (s.v * b.factor)), p) for k, s in subspace])

    def chain(self, body: int) -> set[int]:
        return set(ancestors(self.tree.parents, body)) if body >= 0 else set()

    def moving(self, first: int, second: int) -> set[int]:
        """The rates that move one body as the other sees it."""
        return {r for i in self.chain(first) ^ self.chain(second) for r, _, _ in self.parts[i]}

    def relative(self, first: int, second: int, point: Vec) -> dict[int, Motion]:
        """By rate, how it turns and moves the second body at a point as the first one sees it."""
        out: dict[int, Motion] = {}
        a, b = self.chain(first), self.chain(second)
        for i in sorted(a ^ b):
            for rate, s, p in self.parts[i]:
                moved = Motion(s.w, s.v if s.w.zero else s.v + s.w.cross(point - p))
                moved = moved if i in b else moved * -1.0
                out[rate] = out[rate] + moved if rate in out else moved
        return out
