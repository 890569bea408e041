"""Kinematics for the constraints of large trees: of the links that are asked for, by loops over the bodies.

Written out, terms grow by the path of every link, times the rates; here a link costs O(n) and nothing is compiled
but once for all links. The columns of a track are one, an array over the rates.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.store.build import Spec
from ..codegen.store.memo import memoised
from ..compiler.ways.rolled import is_large, rolled_function
from ..errors import EmitError
from ..mechanics.algorithms.constraints import Kinematics, Track
from ..mechanics.algorithms.kinematics import Pose
from ..mechanics.spatial import ZERO, Mat, Vec
from ..mechanics.tree import Tree, build_tree
from ..model.dynamics import Dynamics
from .kinds import Constraint

if TYPE_CHECKING:
    from ..codegen.call.function import Function

Array = np.ndarray[Any, Any]
MAX_TRACED_BODIES = 100  # bodies; up to here terms compile in a second or two and are computed in microseconds
_WORLD = "local_world_aligned"
_OPTIONS = {
    "pose": {}, "jacobian": {"frame": _WORLD}, "velocity": {"frame": _WORLD},
    "acceleration": {"frame": _WORLD, "kind": "classical"},
}  # fmt: skip


def by_loops(robot: Dynamics, found: tuple[Constraint, ...]) -> bool:
    """True if the terms are computed by loops over the bodies; functions of the user's own are traced."""
    return is_large(robot.model, MAX_TRACED_BODIES) and all(c.on_arrays for c in found)


class LinkKinematics(Kinematics):
    """At states q (n, nq), v (n, nv): vectors are arrays over n, columns over (nv, n)."""

    def __init__(self, robot: Dynamics, q: Array, v: Array) -> None:
        self.robot, self.states = robot, (q, v, np.zeros_like(v))
        self.q, self.v = list(q.T), list(v.T)

    @cached_property
    def tree(self) -> Tree:  # type: ignore[override]
        return build_tree(self.robot.model)

    def pose(self, link: str) -> Pose:
        T = np.moveaxis(self._asked("pose", link), 0, -1)
        return Pose(Mat.of(T[:3, :3]), Vec(*T[:3, 3]))

    def point(self, link: str, r: Any) -> Track:
        pose, (v, w), (a, e) = self.pose(link), self._halves("velocity", link), self._halves("acceleration", link)
        arm = pose.R @ Vec(*r)
        linear, angular = self._columns_of(link)
        dd = a + e.cross(arm) + w.cross(w.cross(arm))
        return Track(pose.p + arm, v + w.cross(arm), dd, [linear + angular.cross(arm)])

    def turning(self, link: str) -> Track:
        _, w = self._halves("velocity", link)
        _, e = self._halves("acceleration", link)
        return Track(ZERO, w, e, [self._columns_of(link)[1]])

    def _halves(self, quantity: str, link: str) -> tuple[Vec, Vec]:
        x = self._asked(quantity, link).T
        return Vec(*x[:3]), Vec(*x[3:])

    def _columns_of(self, link: str) -> tuple[Vec, Vec]:
        J = self._asked("jacobian", link).transpose(1, 2, 0)
        return Vec(*J[:3]), Vec(*J[3:])

    def _asked(self, quantity: str, link: str) -> Array:
        """A quantity of a link by its loop, (n, ...)."""
        model, options = self.robot.model, {"link": link, **_OPTIONS[quantity]}

        def make() -> Function:
            found = rolled_function(model, quantity, Spec(), options=options, smallest=MAX_TRACED_BODIES)
            if found is None:
                raise EmitError(f"LLVM is missing, without which constraints of {model.name!r} are not computed")
            return found

        f = memoised(self.robot, ("of a link", quantity, link), make)
        return np.asarray(f(*self.states[: len(f.inputs)]))
