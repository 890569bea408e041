"""Joint properties of a model, as arrays over the rates or the coordinates.

Coordinates and rates by the names of joints, and back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, one_of, shown
from ..io.given import Array, asked_methods, finite
from ..mechanics import configuration
from ..model.description import Joint, JointDynamics, Limit, Model

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
    def total_mass(self) -> float:
        """Mass of all links, kg."""
        return self.model.total_mass

    @property
    def inertial_parameters(self) -> Array:
        """Parameters pi in which torques are linear, (moving links, 10): tau = Y pi with Y of `regressor`.

        Mass m, kg, first moment m c, kg m, and J_xx, J_xy, J_yy, J_xz, J_yz, J_zz, kg m^2, of a moving link with
        all that is welded to it, about its origin and in its axes.
        """
        from ..mechanics.algorithms.regressor import inertial_parameters
        from ..mechanics.tree import build_tree

        return np.array(inertial_parameters(build_tree(self.model)), float)

    @property
    def initial(self) -> Array:
        """The configuration in which the file starts, (nq,): an MJCF's qpos0; else the neutral one."""
        return np.array(self.model.initial) if self.model.initial else configuration.neutral(self.model)

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


@asked_methods
class ByName:
    """Conversion of values by names of joints to a robot's vectors q, v, a and tau, and back."""

    model: Model

    def q_of(self, given: Mapping[str, ArrayLike] | None = None, /, **joints: ArrayLike) -> Array:
        """Coordinates q, (..., nq), from values by joint: rad, m, or (..., n) of a joint with n coordinates.

        robot.q_of(shoulder=0.3, elbow=1.2); names that are no words of Python stand in a dict. Joints that are
        not given are neutral; leading dimensions broadcast. Raises InputError: a name that no joint with
        coordinates has, a value of another shape or not finite.
        """
        return self._placed("q_of", configuration.neutral(self.model), self._parts("q"), given, joints)

    def v_of(self, given: Mapping[str, ArrayLike] | None = None, /, **joints: ArrayLike) -> Array:
        """Rates v, accelerations a or efforts tau, (..., nv), from values by joint; zero where none is given.

        As `q_of`, with (..., n) of a joint with n rates: rad/s, m/s, N m, N, ...
        """
        return self._placed("v_of", np.zeros(self.model.nv), self._parts("v"), given, joints)

    def names_of(self, x: ArrayLike) -> dict[str, Any]:
        """Joint -> its part of q, (..., nq), or of v, a, tau, (..., nv): a number, or an array (..., n).

        Where nq and nv differ, the size of x tells which it is. The inverse of `q_of` and `v_of`.
        """
        array, nq, nv = finite("names_of", x), self.model.nq, self.model.nv
        if not array.ndim or array.shape[-1] not in (nq, nv):
            raise InputError(f"names_of takes (..., {nq}) or (..., {nv}), not {array.shape}")
        places = self._parts("q" if array.shape[-1] == nq else "v")
        parts = {name: array[..., place] for name, place in places.items()}
        single = {name: part[..., 0] for name, part in parts.items() if part.shape[-1] == 1}
        return parts | {name: x if x.ndim else float(x) for name, x in single.items()}

    def _parts(self, kind: str) -> dict[str, slice]:
        return {joint.name: q if kind == "q" else v for joint, q, v in self.model.slices()}

    @staticmethod
    def _placed(
        title: str,
        start: Array,
        slices: dict[str, slice],
        given: Mapping[str, ArrayLike] | None,
        joints: dict[str, ArrayLike],
    ) -> Array:
        """Values in the places of their joints, over `start`."""
        if given is not None and not isinstance(given, Mapping):
            raise InputError(
                f"{title} takes values by joint, as {title}(shoulder=0.3) or a dict, not {shown(given)}"
            )
        values: dict[str, Array] = {}
        for name, value in {**(given or {}), **joints}.items():
            known = one_of(f"{title}: the joint", name, slices, InputError)
            size = slices[known].stop - slices[known].start
            x = finite(f"{title}: {known}", value)
            x = x[..., None] if size == 1 else x
            if not x.ndim or x.shape[-1] != size:
                raise InputError(f"{title}: {known} has {size} values, (..., {size}), not {x.shape}")
            values[known] = x
        try:
            lead = np.broadcast_shapes(*(x.shape[:-1] for x in values.values()))
        except ValueError:
            shapes = ", ".join(f"{name} {x.shape[:-1]}" for name, x in values.items())
            raise InputError(f"{title}: leading dimensions do not broadcast: {shapes}") from None
        out = np.tile(start, (*lead, 1)) if lead else start.copy()
        for name, x in values.items():
            out[..., slices[name]] = x
        return out
