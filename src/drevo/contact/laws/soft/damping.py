"""Derivatives of passive forces by rates, for steps that are implicit in these."""

from __future__ import annotations

from ....mechanics.acting import resistance
from ....mechanics.algorithms.passive import passive_slopes
from ....mechanics.rotation import from_quaternion
from ....mechanics.scalar import Scalar, Vector, accumulate
from ....mechanics.spatial import Vec
from ....mechanics.tree import Tree
from ....mechanics.tree_indices import ancestors

LOWER_TRIANGLE_3 = ((0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2))  # entries of a triangle of three
DampingSlopes = dict[tuple[int, int], Scalar]  # of the lower triangle


def dampers(tree: Tree, q: Vector, v: Vector) -> DampingSlopes:
    """Derivatives by the rates of what dampers in joints take, -dp/dv."""
    out: DampingSlopes = {}
    for f in tree.acting:
        slopes = [f.ratio * f.ratio * resistance(f, f.ratio * x) for x in f.rates(v)]
        if f.kind == "free" and f.along_axes:  # the first three act along the world's axes
            R = from_quaternion(*q[f.q + 3 : f.q + 7])
            world = [resistance(f, x) for x in R @ Vec(*v[f.v : f.v + 3])]
            for i, j in LOWER_TRIANGLE_3:
                out[f.v + i, f.v + j] = sum((R[k][i] * world[k] * R[k][j] for k in range(3)), 0.0)
            slopes[:3] = [0.0] * 3
        for k, slope in enumerate(slopes, f.v):
            accumulate(out, (k, k), slope)
    return out


def damping_slopes(tree: Tree, q: Vector, v: Vector, driven: DampingSlopes) -> DampingSlopes:
    """The symmetric part of -dp/dv of the passive forces p, and of what is driven, where M may have entries: none
    across branches."""
    out: DampingSlopes = {}
    joined = _rates_of_chains(tree) if tree.tendons or driven else set()
    for r, c, _, slope in passive_slopes(tree, q, v):
        if (at := (max(r, c), min(r, c))) in joined or not tree.tendons:
            accumulate(out, at, -slope if r == c else -0.5 * slope)
    for at, slope in driven.items():
        if at in joined:
            accumulate(out, at, slope)
    return out


def _rates_of_chains(tree: Tree) -> set[tuple[int, int]]:
    """Rates that move one body together, the larger first."""
    rates = [range(b.v, b.v + b.nv) for b in tree.bodies]
    pairs = [
        (r, c)
        for i, own in enumerate(rates)
        for r in own
        for j in (i, *ancestors(tree.parents, i))
        for c in rates[j]
    ]
    return {(max(pair), min(pair)) for pair in pairs}
