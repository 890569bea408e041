"""The least coefficient of friction with which forces at the corners of a sole can make a wrench.

At each corner |shear| <= mu * normal. By the duality of minimax, mu is the largest ratio, over all slips y (planar
twists of the sole), of the power b.y of the shear force and of the moment about the normal, to the most that
normal forces p, which push and have the right centre, lose to a unit of friction: max_y b.y / max_p sum p_i |v_i|.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from ..io.given import Array

FINE = 32  # thirds taken off each way of the search: (2/3)^32 of the range is left
INSIDE = -1e-9  # of the weight: a corner that just carries nothing


def least_friction(reactions: Array, corners: Array) -> Array:
    """(n,) of reactions (n, 6) about the origin of corners (n, k, 2), k >= 3, on level ground.

    The normal forces push: where the centre of pressure is outside the sole no coefficient is enough, inf.
    """
    size = np.abs(corners).max()
    b = np.concatenate([reactions[:, :2], reactions[:, 5:] / size], -1)
    norm = np.linalg.norm(b, axis=-1)
    out = np.where(_loads(reactions, corners).any(axis=(-1, -2)), 0.0, np.inf)
    busy = np.flatnonzero((norm > 1e-12 * np.abs(reactions[:, 2])) & np.isfinite(out))
    if busy.size:
        out[busy] = _ratio(b[busy], norm[busy], _loads(reactions[busy], corners[busy]), corners[busy] / size)
    return out


def most_friction(reactions: Array, corners: Array) -> float:
    """The largest of them. Those for which shear along one slip does with less than another asks are left out."""
    loads = _loads(reactions, corners)
    p = loads.sum(axis=1) / np.maximum(loads.any(axis=-1).sum(axis=-1), 1)[:, None]
    weight = np.maximum(p.sum(axis=-1), 1e-300)
    centre = np.einsum("nk,nki->ni", p, corners) / weight[:, None]
    arm = corners - centre[:, None]
    moment = reactions[:, 5] - (centre[:, 0] * reactions[:, 1] - centre[:, 1] * reactions[:, 0])
    turn = moment / np.maximum(np.einsum("nk,nki->n", p, arm**2), 1e-300)
    shear = reactions[:, None, :2] / weight[:, None, None]
    shear = shear + turn[:, None, None] * np.stack([-arm[..., 1], arm[..., 0]], -1)
    enough = np.where(p.any(axis=-1), np.linalg.norm(shear, axis=-1).max(axis=-1), np.inf)
    least = np.linalg.norm(reactions[:, :2], axis=-1) / reactions[:, 2]
    open_ = enough >= least.max(initial=0.0)
    return float(np.max(least_friction(reactions[open_], corners[open_]), initial=0.0))


def _ratio(b: Array, norm: Array, loads: Array, corners: Array) -> Array:
    """1 / min of the friction lost in slips y with b.y = 1: convex, a plane of them, searched by thirds."""
    first = b / norm[:, None]
    aside = np.cross(first, np.eye(3)[np.argmin(np.abs(first), axis=-1)])
    aside /= np.linalg.norm(aside, axis=-1, keepdims=True)
    across = np.cross(first, aside)

    def lost(s: Array, t: Array) -> Array:
        y = first + np.tan(s)[:, None] * aside + np.tan(t)[:, None] * across
        vx = y[:, None, 0] - y[:, None, 2] * corners[..., 1]
        vy = y[:, None, 1] + y[:, None, 2] * corners[..., 0]
        return np.asarray(np.einsum("nek,nk->ne", loads, np.hypot(vx, vy)).max(axis=-1))

    best = _lowest(lambda s: _lowest(lambda t: lost(s, t), len(b)), len(b))
    return np.asarray(norm / np.maximum(best, 1e-300))


def _lowest(f: Callable[[Array], Array], n: int) -> Array:
    """The least of n functions that fall and then rise, over (-pi/2, pi/2)."""
    low, high = np.full(n, -np.pi / 2), np.full(n, np.pi / 2)
    for _ in range(FINE):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        left = f(a) < f(b)
        low, high = np.where(left, low, a), np.where(left, b, high)
    return f((low + high) / 2)


def _loads(reactions: Array, corners: Array) -> Array:
    """(n, e, k): normal forces on three corners each that make the force and its centre; 0 where one pulls."""
    n, k = corners.shape[:2]
    triples = list(combinations(range(k), 3))
    out = np.zeros((n, len(triples), k))
    for e, three in enumerate(map(list, triples)):
        at = corners[:, three]
        A = np.stack([np.ones((n, 3)), at[..., 1], -at[..., 0]], axis=1)
        flat = np.abs(np.linalg.det(A)) <= 1e-9 * np.abs(corners).max() ** 2
        A[flat] = np.eye(3)
        p = np.linalg.solve(A, reactions[:, [2, 3, 4], None])[..., 0]
        pushing = (p.min(axis=-1) >= INSIDE * reactions[:, 2]) & ~flat
        for corner, load in zip(three, np.maximum(p, 0.0).T):
            out[:, e, corner] = np.where(pushing, load, 0.0)
    return out
