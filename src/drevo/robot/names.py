"""Coordinates and rates by the names of joints, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, one_of, shown
from ..io.asked import asked_methods
from ..io.given import Array, finite
from ..mechanics import configuration
from ..model.description import Model


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
        return {name: part[..., 0][()] if part.shape[-1] == 1 else part for name, part in parts.items()}

    def _parts(self, kind: str) -> dict[str, slice]:
        return {joint.name: q if kind == "q" else v for joint, q, v in self.model.slices()}

    @staticmethod
    def _placed(
        what: str,
        start: Array,
        slices: dict[str, slice],
        given: Mapping[str, ArrayLike] | None,
        joints: dict[str, ArrayLike],
    ) -> Array:
        """Values in the places of their joints, over `start`."""
        if given is not None and not isinstance(given, Mapping):
            raise InputError(
                f"{what} takes values by joint, as {what}(shoulder=0.3) or a dict, not {shown(given)}"
            )
        values: dict[str, Array] = {}
        for name, value in {**(given or {}), **joints}.items():
            known = one_of(f"{what}: the joint", name, slices, InputError)
            size = slices[known].stop - slices[known].start
            x = finite(f"{what}: {known}", value)
            x = x[..., None] if size == 1 else x
            if not x.ndim or x.shape[-1] != size:
                raise InputError(f"{what}: {known} has {size} values, (..., {size}), not {x.shape}")
            values[known] = x
        try:
            lead = np.broadcast_shapes(*(x.shape[:-1] for x in values.values()))
        except ValueError:
            shapes = ", ".join(f"{name} {x.shape[:-1]}" for name, x in values.items())
            raise InputError(f"{what}: leading dimensions do not broadcast: {shapes}") from None
        out = np.tile(start, (*lead, 1)) if lead else start.copy()
        for name, x in values.items():
            out[..., slices[name]] = x
        return out
