"""Derivatives of a contact's wrench on its body: by the body's place, and by motions of the body.

All along the world's axes and about the pole of the body, the origin of its frame. Changes are those that the body
sees, whose axes go along: dW of a wrench W that stays as it is in the world is -S x* W.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..codegen.graph.derivative import tangents
from ..codegen.graph.node import Graph
from ..codegen.graph.program import Input
from ..compiler.tracer import nodes_of, unknowns
from ..mechanics.algorithms.kinematics import WORLD_POSE, Pose
from ..mechanics.algorithms.proximity import Proximity
from ..mechanics.joints import NO_MOTION, Force, Motion
from ..mechanics.scalar import Scalar, Vector
from ..mechanics.spatial import UNIT_VECS, ZERO, Mat, Vec, skew
from ..mechanics.tree import Tree
from ..mechanics.tree_indices import ancestors

UNITS = [Motion(e, ZERO) for e in UNIT_VECS] + [Motion(ZERO, e) for e in UNIT_VECS]
Poses = Mapping[int, Pose]


def six_numbers(x: Motion | Force) -> list[Scalar]:
    """Six numbers, angular first."""
    return [*x[0], *x[1]]


class Pole(NamedTuple):
    """A body's pose and motions about its pole, as inputs of a graph of their own."""

    port: Input
    pose: Pose
    motions: tuple[Motion, ...]

    @classmethod
    def of(cls, graph: Graph, name: str, count: int) -> Pole:
        x = unknowns(graph, name, 12 + 6 * count)
        at = [Motion(Vec(*x[k : k + 3]), Vec(*x[k + 3 : k + 6])) for k in range(12, len(x), 6)]
        R = Mat.of([x[k : k + 3] for k in (0, 3, 6)])
        return cls(Input(name, (len(x),), nodes_of(x)), Pose(R, Vec(*x[9:12])), tuple(at))

    def moved(self, k: int) -> dict[int, Scalar]:
        """Rates of all its numbers as the body moves by UNITS[k]; its motions go along with its axes."""
        way = UNITS[k]
        pairs: list[tuple[Any, Scalar]] = list(zip(self.pose.p, way.v))
        if k < 3:
            pairs += zip(
                (x for row in self.pose.R for x in row), (x for row in skew(way.w).mul(self.pose.R) for x in row)
            )
            for m in self.motions:
                pairs += zip(six_numbers(m), (*way.w.cross(m.w), *way.w.cross(m.v)))
        return {x.edge: d for x, d in pairs if not (isinstance(d, float) and d == 0.0)}


def pole_values(pose: Pose, motions: Sequence[Motion]) -> list[Scalar]:
    """The numbers of a Pole: its rotation, its position, its motions."""
    return [*(x for row in pose.R for x in row), *pose.p, *(x for m in motions for x in six_numbers(m))]


def unit_wrenches(touch: Proximity, pole: Pose, size: int, sign: float) -> list[Force]:
    """By row of a contact the wrench on the body of a unit force there: normal, tangents, spin, rolling."""
    axes = [f * sign for f in touch.frame]
    arm = touch.point - pole.p
    linear = [Force(arm.cross(f), f) for f in axes]
    return [*linear, *(Force(f, ZERO) for f in axes)][:size]


def wrench_slopes(pole: Pole, W: Force, more: Sequence[Scalar] = ()) -> tuple[list[Force], list[list[Any]]]:
    """By UNITS[k] the change of a wrench as the body sees it, and of other numbers."""
    wrenches, others = [], []
    for k, way in enumerate(UNITS):
        found = tangents([*W.n, *W.f, *more], pole.moved(k))
        n, f = Vec(*found[:3]), Vec(*found[3:6])
        wrenches.append(Force(n - way.w.cross(W.n), f - way.w.cross(W.f)))
        others.append(found[6:])
    return wrenches, others


class ChainColumn(NamedTuple):
    """The motion that a rate gives to a body, about its pole, and how motions of the body change with the rate's
    coordinate, as the body sees them: m x S, m that of what carries the joint."""

    S: Motion
    carried: tuple[Motion, ...]

    def added(self, o: ChainColumn) -> ChainColumn:
        """The sum of two columns, where one rate moves two bodies."""
        return ChainColumn(self.S + o.S, tuple(x + y for x, y in zip(self.carried, o.carried)))


class Chain(NamedTuple):
    """A body and the rates that move it."""

    columns: dict[int, ChainColumn]
    motions: tuple[Motion, ...]


def chain_of(tree: Tree, poses: Poses, body: int, rates: Sequence[Vector]) -> Chain:
    """The chain of rates that move a body, with one motion of the body for each vector of rates."""
    motions, pole = [NO_MOTION for _ in rates], poses[body].p
    out: dict[int, ChainColumn] = {}
    for i in sorted(ancestors(tree.parents, body)):
        b, (R, p), before = tree.bodies[i], poses[i], tuple(motions)
        for k, s in enumerate(tree.motion_subspace(b), b.v):
            w = R @ (s.w * b.factor)
            S = Motion(w, R @ (s.v * b.factor) + w.cross(pole - p))
            motions = [m + S * x[k] for m, x in zip(motions, rates)]
            found = ChainColumn(S, tuple(m.cross(S) for m in before))
            out[k] = found.added(out[k]) if k in out else found
    return Chain(out, tuple(motions))


def times(rows: Sequence[Vector], x: Vector) -> list[Scalar]:
    """A matrix given by columns times a vector."""
    return [sum((row[i] * y for row, y in zip(rows, x)), 0.0) for i in range(len(rows[0]))]


def squared_by(left: Sequence[Force], S: Sequence[Vector], right: Sequence[Force]) -> list[list[Scalar]]:
    """sum_ij left_i S_ij right_j^T by columns."""
    a, b = ([six_numbers(x) for x in side] for side in (left, right))
    half = [[sum((row[j] * b[j][c] for j in range(len(b))), 0.0) for row in S] for c in range(6)]
    return [[sum((h[i] * a[i][r] for i in range(len(a))), 0.0) for r in range(6)] for h in half]


def ground_body(bodies: tuple[int, int]) -> tuple[int, float]:
    """The one that is not the ground, and the sign of its motion in that of the contact."""
    return (bodies[1], 1.0) if bodies[0] < 0 else (bodies[0], -1.0)


def touch_of(touch: Callable[[Poses], Proximity], body: int, pole: Pole) -> Proximity:
    """A contact of a body with the ground."""
    return touch({-1: WORLD_POSE, body: pole.pose})
