"""Sizes to test the pivots of M against: what a body carries; and where digits that they lose can multiply.

A pivot of M is at least what the body itself resists with, whatever hangs on it. Behind a body that resists in
all directions an error is, relative to what it is part of, no larger than it was. So losses multiply along runs
of bodies that do not, such as those without mass, and there from three such joints on: of two the outer one is
held by the body behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .body_table import BODY_KINDS, BODY_NUMBERS, SYM_PLACES, BodyTable
from .scalar import Scalar, Vector
from .tree import Loose, Tree

Array = np.ndarray[Any, Any]
MIN_CARRIED_SHARE = (
    1e-6  # of what a body carries: pivots are tested to 1e-13, which two above this do not reach together
)
GOLDEN_FRACTION = 0.618033988749895  # its multiples, less whole numbers, are far apart


def carried_inertia(tree: Tree) -> list[Scalar]:
    """By rate, the size of what a body carries, kg or kg m^2. The same in every configuration, to be kept before
    inertias are regrouped."""
    sizes = carried_by_bodies(
        tree.parents,
        [b.inertia.m for b in tree.bodies],
        [2.0 * b.inertia.S.trace for b in tree.bodies],
        [b.p.dot(b.p) for b in tree.bodies],
    )
    out: list[Scalar] = [0.0] * tree.nv
    for b, (mass, turned) in zip(tree.bodies, sizes):
        for k, s in enumerate(tree.motion_subspace(b)):
            out[b.v + k] = mass if s.w.zero else turned
    return out


def carried_by_bodies(
    parents: Sequence[int], mass: list[Scalar], turned: list[Scalar], squares: Vector
) -> list[tuple[Scalar, Scalar]]:
    """kg, kg m^2: the body's own and half of what each of its children carries, `squares` m^2 away.

    Halves, since the whole of a long chain would hide a pivot that is sound.
    """
    for i, p in reversed(list(enumerate(parents))):
        if p >= 0:
            mass[p] = mass[p] + 0.5 * mass[i]
            turned[p] = turned[p] + 0.5 * turned[i] + mass[i] * squares[i]
    return list(zip(mass, turned))


def loose_rates(c: BodyTable) -> dict[int, Loose]:
    """The rates of such runs. A weight is the root of what the joint moves, times one of its own in [1, 2)."""
    own, whole, sizes = _own_shares(c)
    n, parents = len(c), c.parent.tolist()
    weak = (~whole).tolist()
    count = ((own < MIN_CARRIED_SHARE) * c.widths[1] + (~np.isin(np.arange(n), parents) & ~whole)).tolist()
    above, below, run = list(count), list(count), list(range(n))
    for i, p in enumerate(parents):
        if p >= 0 and weak[p] and weak[i]:
            above[i], run[i] = above[i] + above[p], run[p]
    for i, p in reversed(list(enumerate(parents))):
        if p >= 0 and weak[p] and weak[i]:
            below[p] = max(below[p], count[p] + below[i])
    out: dict[int, Loose] = {}
    for i in range(n):
        if weak[i] and above[i] + below[i] - count[i] > 2:
            for v in range(c.v[i], c.v[i] + c.widths[1][i]):
                weight = sizes[i] * (1.0 + GOLDEN_FRACTION * len(out) % 1.0)
                out[v] = Loose(run[i], weight if own[i] < MIN_CARRIED_SHARE else 0.0)
    return out


def _own_shares(c: BodyTable) -> tuple[Array, Array, Array]:
    """The least share of what each body carries that it resists with itself along its joint; whether it resists in
    every direction; and the root of what the joint moves."""
    m, h, S = c.numbers[:, 12], c.numbers[:, 13:16], c.numbers[:, 16:22][:, SYM_PLACES]
    squares = (c.numbers[:, 9:12] ** 2).sum(1)
    trace = np.trace(S, axis1=1, axis2=2)
    carried = carried_by_bodies(c.parent.tolist(), m.tolist(), (2.0 * trace).tolist(), squares.tolist())
    sizes: Array = np.array(carried, float).reshape(-1, 2)
    mass, turned = np.where(sizes > 0.0, sizes, 1.0).T
    J = (trace[:, None, None] * np.eye(3) - S) / turned[:, None, None]
    whole = np.zeros((len(c), 6, 6))
    whole[:, :3, :3], whole[:, 3:, 3:] = J, (m / mass)[:, None, None] * np.eye(3)
    cross = np.cross((h / np.sqrt(mass)[:, None])[:, None], np.eye(3)) / np.sqrt(turned)[:, None, None]
    whole[:, :3, 3:], whole[:, 3:, :3] = cross, -cross
    least, slides = np.linalg.eigvalsh(whole)[:, 0], c.kind == BODY_KINDS.index("prismatic")
    along = np.where(slides, m / mass, J[np.arange(len(c)), c.axis, c.axis])
    along = np.where(c.kind == BODY_KINDS.index("spherical"), np.linalg.eigvalsh(J)[:, 0], along)
    along = np.where(c.kind == BODY_KINDS.index("free"), least, along)
    moved = np.where(slides, mass, turned)
    rotor = c.numbers[:, BODY_NUMBERS] if c.geared else 0.0
    return along + rotor / moved, least > MIN_CARRIED_SHARE, np.sqrt(moved) * np.abs(c.numbers[:, 23])
