"""Joint properties of a model, as arrays over the rates or the coordinates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..model.description import Joint, JointDynamics, Limit, Model

Array = np.ndarray[Any, Any]
_BOUND, _FREE = Limit(), JointDynamics()


class JointArrays:
    """The numbers of the joints that own coordinates, in their order; made anew at every call."""

    model: Model

    @property
    def lower(self) -> Array:
        """Lower limits of the coordinates, (nq,) rad or m; -inf where there is none."""
        return self._of_limits("lower", 0, -math.inf)

    @property
    def upper(self) -> Array:
        """Upper limits of the coordinates, (nq,) rad or m; inf where there is none."""
        return self._of_limits("upper", 0, math.inf)

    @property
    def max_velocity(self) -> Array:
        """Greatest speeds, (nv,) rad/s or m/s; inf where there is no limit."""
        return self._of_limits("velocity", 1, math.inf)

    @property
    def max_effort(self) -> Array:
        """Greatest efforts, (nv,) N m or N; inf where there is no limit."""
        return self._of_limits("effort", 1, math.inf)

    @property
    def armature(self) -> Array:
        """Inertia of the rotors as the joints feel it, (nv,) kg m^2 or kg; it is part of M."""
        return self._of_dynamics("reflected")

    @property
    def damping(self) -> Array:
        """Viscous damping, (nv,) N m s or N s/m."""
        return self._of_dynamics("damping")

    @property
    def friction(self) -> Array:
        """Dry friction, (nv,) N m or N."""
        return self._of_dynamics("friction")

    @property
    def stiffness(self) -> Array:
        """Stiffness of the springs, (nv,) N m/rad or N/m."""
        return self._of_dynamics("stiffness")

    @property
    def reference(self) -> Array:
        """The rest positions of the springs, (nv,) rad or m."""
        return self._of_dynamics("reference")

    @property
    def keyframes(self) -> dict[str, Array]:
        """Configurations that the description names, each (nq,)."""
        return {key.name: np.array(key.q) for key in self.model.keyframes}

    def _of_limits(self, name: str, size: int, none: float) -> Array:
        def value(joint: Joint) -> float:
            bound = getattr(joint.limit or _BOUND, name)
            return none if bound is None else bound

        return self._array([(value(j), j.sizes[size]) for j in self.model.moving_joints])

    def _of_dynamics(self, name: str) -> Array:
        return self._array([(getattr(j.dynamics or _FREE, name), j.nv) for j in self.model.moving_joints])

    @staticmethod
    def _array(parts: list[tuple[float, int]]) -> Array:
        return np.array([x for x, count in parts for _ in range(count)], float)
