"""Ground reactions on the soles: the wrench that a motion needs, its zero-moment point, each foot's share."""

from __future__ import annotations

from collections.abc import Sequence

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

    def refuse(self, t: Array, reactions: Array, what: str) -> None:
        """NumericsError where a foot pulls or the zero-moment point leaves the polygon; reactions (n, feet, 6)."""
        self.refuse_pull(t, reactions, what)
        inside = self.margin(reactions) if self.legs else np.zeros(1)
        k = int(np.argmin(inside))
        if inside[k] < 0.0:
            raise NumericsError(
                f"{what}: the zero-moment point is {-inside[k]:.3g} m outside the soles at t = {t[k]:.4g} s "
                f"(sample {k} of {len(t)}), so the robot tips over; move slower or take shorter steps"
            )

    def refuse_pull(self, t: Array, reactions: Array, what: str) -> None:
        """NumericsError where a foot pulls."""
        for i, leg in enumerate(self.legs):
            k = int(np.argmin(reactions[:, i, 2]))
            if reactions[k, i, 2] < -PULL:
                raise NumericsError(
                    f"{what}: foot {leg.link!r} would pull the ground with {-reactions[k, i, 2]:.3g} N at "
                    f"t = {t[k]:.4g} s (sample {k} of {len(t)}), and it can only push; move slower or lift less"
                )
