"""Dampers in joints, by which a step is implicit."""

from __future__ import annotations

from ....mechanics.acting import resistance
from ....mechanics.rotation import from_quaternion
from ....mechanics.scalar import Scalar, Vector, accumulate
from ....mechanics.spatial import Vec
from ....mechanics.tree import Tree

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
