"""Contacts beside the columns of derivatives: their reactions as wrenches of bodies, and how their rows change.

When a joint turns a contact's body, then in axes that turn along the contact's acceleration changes by

    psi2 + psi2.w x r + 2 psi1.w x u,

r and u being its place and its velocity past the pole of the joint's body, for the observer of that body; and by
S.w x a once more in axes that stand. With S for psi1 and (v_p + v_i) x S for psi2 it is the change by the rate.
A force that stays as it is in the world, seen from the body that turns, is the flow of a mass that it moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..algorithms.inertia_matrix import Factors, factorised
from ..algorithms.kinematics import Pose, body_poses
from ..joints import Force, Motion
from ..scalar import Matrix, Scalar, Vector
from ..spatial import ZERO, Vec, outer, skew
from ..tree import Tree
from .khalil_derivatives import BodySweep, Flow, body_sweep, columnwise, empty, slip_of


class HeldPoint(NamedTuple):
    """A point of a link that stands, and with 6 rows the link; at: of its body, in the body's axes."""

    body: int
    at: Vec
    rows: int


class HeldSlopes(NamedTuple):
    """dq, dv: of ID(q, v, a) - Gamma^T N; M's factors; Gamma; slopes: of Gamma a + gamma by dq and dv.

    sizes: by row no less than the squares of its entries and of those of its derivatives by q.
    """

    dq: Matrix
    dv: Matrix
    factors: Factors
    jacobian: Matrix
    slopes: tuple[Matrix, Matrix]
    sizes: list[Scalar]


def held_slopes(tree: Tree, q: Vector, v: Vector, a: Vector, points: Sequence[HeldPoint], N: Vector) -> HeldSlopes:
    """About a state with accelerations a and reactions N, along the world's axes."""
    poses, first = body_poses(tree, q), 0
    wrenches, flows = dict[int, Force](), dict[int, Flow]()
    for x in points:
        f, n = (poses[x.body].R.T @ Vec(*N[k : k + 3]) for k in (first, first + x.rows - 3))
        n = n if x.rows == 6 else ZERO
        flow, wrench = Flow(outer(f, x.at) + skew(n), f), Force(x.at.cross(f) + n, f)
        flows[x.body] = flows[x.body] + flow if x.body in flows else flow
        wrenches[x.body] = wrenches[x.body] + wrench if x.body in wrenches else wrench
        first += x.rows
    s, out = body_sweep(tree, q, v, a, wrenches, flows), empty(tree)
    rows, sizes = [list[list[Scalar]]() for _ in range(3)], list[Scalar]()
    for x in points:
        mine = _Rows(s, poses, x)
        for part, found in zip(rows, (mine.jacobian, mine.by_q, mine.by_v)):
            part += found
        sizes += mine.sizes()
    for _ in columnwise(s, out):
        pass
    return HeldSlopes(out.dq, out.dv, factorised(tree, out.M), rows[0], (rows[1], rows[2]), sizes)


class _Seen(NamedTuple):
    """A held point as the observer of a body sees it, in the axes of that body: its place and velocity past the
    pole, its acceleration less gravity, the rates of its own body."""

    r: Vec
    u: Vec
    a: Vec
    w: Vec
    dw: Vec

    def changes(self, psi2: Motion, psi1: Motion, turning: bool) -> list[Vec]:
        """Changes of the accelerations of the point and, where they are rows too, of its body."""
        linear = psi2.v + psi2.w.cross(self.r) + 2.0 * psi1.w.cross(self.u)
        return [linear, psi2.w - self.w.cross(psi1.w)] if turning else [linear]


class _Rows:
    """The rows of one point, filled from its body down to the ground."""

    def __init__(self, s: BodySweep, poses: Sequence[Pose], x: HeldPoint) -> None:
        self.s, self.turning, tree = s, x.rows == 6, s.tree
        self.jacobian, self.by_q, self.by_v = ([[0.0] * tree.nv for _ in range(x.rows)] for _ in range(3))
        self.columns: list[
            tuple[Scalar, list[list[Vec]]]
        ] = []  # by body: what turns it, squared; columns of Gamma
        r, i = s.r.rates[x.body], x.body
        seen = _Seen(x.at, r.w.cross(x.at), r.a + r.U @ x.at, r.w, r.dw)
        while i >= 0:
            self._meet(i, poses[i], seen)
            X = s.r.X[i]
            seen = _Seen(*map(X.to_parent, seen))
            seen = seen._replace(r=seen.r + X.p, u=seen.u + slip_of(s.r, i))
            i = tree.bodies[i].parent

    def _meet(self, i: int, pose: Pose, seen: _Seen) -> None:
        b, angular, columns = self.s.tree.bodies[i], 0.0, []
        for k, c in enumerate(self.s.columns[i]):
            moved = [c.S.v + c.S.w.cross(seen.r), c.S.w][: 1 + self.turning]
            by_q = seen.changes(c.psi2, c.psi1, self.turning)
            by_q = [x + c.S.w.cross(y) for x, y in zip(by_q, (seen.a, seen.dw))]
            by_v = seen.changes(c.both, c.S, self.turning)
            angular = angular + c.S.w.dot(c.S.w) * (b.factor * b.factor)
            columns.append([x * b.factor for x in moved])
            for rows, found in ((self.jacobian, moved), (self.by_q, by_q), (self.by_v, by_v)):
                for r, x in enumerate(x for y in found for x in pose.R @ y):
                    rows[r][b.v + k] = rows[r][b.v + k] + x * b.factor
        self.columns.append((angular, columns))

    def sizes(self) -> list[Scalar]:
        """By row. A column of Gamma changes by no more than itself times what turns it, a rate of its own body or
        of one before, and that is as much as its rate changes the column of the other."""
        bodies, out = self.s.tree.bodies, list[Scalar]()
        shared = max(sum(x.v == b.v for x in bodies) for b in bodies)  # bodies that one rate moves
        for part in range(1 + self.turning):
            total, turned = 0.0, 0.0
            for angular, columns in reversed(self.columns):
                turned = turned + angular
                for column in columns:
                    total = total + column[part].dot(column[part]) * (1.0 + 2.0 * turned)
            out += [total * float(shared * shared)] * 3
        return out
