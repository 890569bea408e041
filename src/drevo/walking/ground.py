"""Ground reactions on the soles: the wrench that a motion needs, its zero-moment point, each foot's share.

The least coefficient of friction with which forces at the corners of a sole can make a wrench.

At each corner |shear| <= mu * normal. By the duality of minimax, mu is the largest ratio, over all slips y (planar
twists of the sole), of the power b.y of the shear force and of the moment about the normal, to the most that
normal forces p, which push and have the right centre, lose to a unit of friction: max_y b.y / max_p sum p_i |v_i|.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from ..errors import NumericsError
from ..io.given import Array
from ..io.reprs import result
from ..robot.face import Robot
from .feet import Leg, cross, hull, margin

PULL = 1e-6  # N: a foot that is just being lifted carries nothing to this


def needed(robot: Robot, q: Array, tau: Array) -> Array:
    """Force and moment about the world's origin, (..., 6), that act on the robot besides gravity.

    tau (..., nv): M a + h; its first six are the wrench on the free base in its axes.
    """
    R = robot.pose(q, robot.model.joints[0].child)[..., :3, :3]
    force, moment = (np.asarray(R @ tau[..., s, None])[..., 0] for s in (slice(0, 3), slice(3, 6)))
    return np.concatenate([force, moment + cross(q[..., :3], force)], -1)


def zero_moment_point(wrench: Array, height: Array | float = 0.0) -> Array:
    """The point at a height where a wrench about the world's origin has no moment about x and y, (..., 2)."""
    level = np.stack([-wrench[..., 4], wrench[..., 3]], -1) + np.asarray(height)[..., None] * wrench[..., :2]
    return np.asarray(level / wrench[..., 2, None])


def standing_point(wrench: Array, middles: Array) -> tuple[Array, Array]:
    """The zero-moment point (..., 2) in the ground between the middles (..., feet, 3), and the feet's parts.

    The part of the second of two feet is how far along the line between them the nearest point to it is. Where
    they stand at two heights, so does the point: linear between them along that line.
    """
    first, line = middles[..., 0, :], middles[..., -1, :] - middles[..., 0, :]
    p = zero_moment_point(wrench, first[..., 2])
    if middles.shape[-2] == 1:
        return p, np.ones((*wrench.shape[:-1], 1))
    slant = line[..., 2, None] * wrench[..., :2] / wrench[..., 2, None]  # of p, along the line
    l = line[..., :2]
    second = np.sum((p - first[..., :2]) * l, axis=-1) / np.sum((l - slant) * l, axis=-1)
    second = np.clip(second, 0.0, 1.0)
    return p + second[..., None] * slant, np.stack([1.0 - second, second], -1)


def share(wrench: Array, middles: Array) -> Array:
    """Reactions (..., feet, 6) about the middles (..., feet, 3) that add up to a wrench about the origin.

    Each foot takes a part of the force and the same part of the moment about the point where the parts balance:
    the one on the line between the feet that is nearest to the zero-moment point. So no part is negative.
    """
    part = standing_point(wrench, middles)[1]
    force = wrench[..., None, :3]
    centre = np.sum(part[..., None] * middles, axis=-2)
    moment = wrench[..., None, 3:] - cross(centre[..., None, :], force)
    return np.asarray(part[..., None] * np.concatenate([force, moment], -1))


def total_wrench(reactions: Array, middles: Array) -> Array:
    """The wrench about the world's origin of reactions (..., feet, 6) about the middles."""
    moments = reactions[..., 3:] + cross(middles, reactions[..., :3])
    return np.asarray(np.concatenate([reactions[..., :3], moments], -1).sum(axis=-2))


@result
class Support:
    """The feet on the ground, their middles (feet, 3), and the polygon that their corners span (k, 2)."""

    legs: tuple[Leg, ...]
    middles: Array
    polygon: Array

    @staticmethod
    def of(robot: Robot, standing: Sequence[Leg], q: Array) -> Support:
        """As the feet stand at q (nq,)."""
        corners = [leg.sole(robot.pose(q, leg.link)) for leg in standing]
        polygon = hull(np.concatenate(corners)[:, :2]) if corners else np.zeros((0, 2))
        middles = np.array([x.mean(axis=0) for x in corners])
        return Support(tuple(standing), middles.reshape(-1, 3), polygon)

    def point(self, reactions: Array) -> Array:
        """The zero-moment point, (..., 2); reactions (..., feet, 6)."""
        return standing_point(total_wrench(reactions, self.middles), self.middles)[0]

    def margin(self, reactions: Array) -> Array:
        """Distance of the zero-moment point from the edges of the polygon, (...,) m, positive inside."""
        return margin(self.polygon, self.point(reactions))

    def refuse(self, t: Array, reactions: Array, title: str) -> None:
        """NumericsError where a foot pulls or the zero-moment point leaves the polygon; reactions (n, feet, 6)."""
        self.refuse_pull(t, reactions, title)
        inside = self.margin(reactions) if self.legs else np.zeros(1)
        k = int(np.argmin(inside))
        if inside[k] < 0.0:
            raise NumericsError(
                f"{title}: the zero-moment point is {-inside[k]:.3g} m outside the soles at t = {t[k]:.4g} s "
                f"(sample {k} of {len(t)}), so the robot tips over; move slower or take shorter steps"
            )

    def refuse_pull(self, t: Array, reactions: Array, title: str) -> None:
        """NumericsError where a foot pulls."""
        for i, leg in enumerate(self.legs):
            k = int(np.argmin(reactions[:, i, 2]))
            if reactions[k, i, 2] < -PULL:
                raise NumericsError(
                    f"{title}: foot {leg.link!r} would pull the ground with {-reactions[k, i, 2]:.3g} N at "
                    f"t = {t[k]:.4g} s (sample {k} of {len(t)}), and it can only push; move slower or lift less"
                )


SEARCH_ROUNDS = 32  # thirds taken off each way of the search: (2/3)^32 of the range is left
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
    for _ in range(SEARCH_ROUNDS):
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
