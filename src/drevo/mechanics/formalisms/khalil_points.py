"""Points of links, for the rows of constraints, from the rates of Khalil's recursion: what the efforts of a motion
need is there already. A point p in a body moves with a_p = R (a + U p) + g, where a is the pole's less gravity.
"""

from __future__ import annotations

from ..algorithms.constraints import Kinematics, Track
from ..algorithms.kinematics import body_poses
from ..scalar import Vector, is_zero
from ..spatial import ZERO, Vec
from ..tree import Tree
from .khalil import recursion
from .khalil_forward import empty_entries


class RecursionKinematics(Kinematics):
    """Kinematics of a tree in metres: velocities are J v, accelerations those of the recursion."""

    def __init__(self, tree: Tree, q: Vector, v: Vector, start: bool = False, at_base: bool = False) -> None:
        """start: at the accelerations that `remaining_efforts` chooses, else at none.

        at_base: seen from where body 0, a free base, is now, by an observer at rest.
        """
        self.tree, self.q, self.v = tree, q, v
        self.parents, self.explicit = tree.parents, None
        self.poses, self.gravity = body_poses(tree, q), tree.gravity
        if at_base:
            self.gravity = self.poses[0].R.T @ tree.gravity
            self.poses = body_poses(tree, q, at_base=True)
        empty = empty_entries(tree) if start else ()
        self.rates = recursion(tree, q, v, [0.0] * tree.nv, parallel=False, empty=empty).rates

    def point(self, link: str, r: Vector) -> Track:
        frame = self.tree.frames[link]
        i = frame.body
        if i < 0:
            return super().point(link, r)
        at, arm = self.poses[i], frame.p + frame.R @ Vec(*r)
        x = at.p + at.R @ arm
        dd = at.R @ (self.rates[i].a + self.rates[i].U @ arm) + self.gravity
        columns = self._columns(i, lambda pose, s: pose.R @ s.v + (pose.R @ s.w).cross(x - pose.p))
        return Track(x, self._moved(columns), dd, columns)

    def turning(self, link: str) -> Track:
        i = self.tree.frames[link].body
        if i < 0:
            return super().turning(link)
        R = self.poses[i].R
        columns = self._columns(i, lambda pose, s: pose.R @ s.w)
        return Track(ZERO, self._moved(columns), R @ self.rates[i].dw, columns)

    def _moved(self, columns: list[Vec]) -> Vec:
        """J v."""
        total = ZERO
        for column, rate in zip(columns, self.v):
            total = total if column.zero or is_zero(rate) else total + column * rate
        return total
