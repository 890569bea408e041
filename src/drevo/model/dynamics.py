"""Protocols of what a consumer needs of a robot: a Robot has it, and so may an oracle that stands in its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from .description import Model

Array = np.ndarray[Any, Any]
Forces = Mapping[str, ArrayLike]
START_TIME = 0.0  # the time, s; this very object where a caller gives none


class IntegrateDerivatives(NamedTuple):
    """The Jacobians of integrate, between tangent vectors, (..., nv, nv)."""

    dq1_dq: Array
    dq1_ddv: Array


class DifferenceDerivatives(NamedTuple):
    """The Jacobians of difference, between tangent vectors, (..., nv, nv)."""

    ddv_dq0: Array
    ddv_dq1: Array


class Described(Protocol):
    """A thing that has a description: enough wherever programs are made from it."""

    @property
    def model(self) -> Model: ...


class Dynamics(Described, Protocol):
    """The numbers of a robot's motion; shapes, units and conventions are those of `drevo.Robot`.

    q (..., nq), v, a, tau and dv (..., nv), leading dimensions are batches. `model` is what constraints, laws
    and motions in one piece are compiled from: it must be the same robot. f_ext comes where a caller gave it.
    """

    @property
    def name(self) -> str: ...

    @property
    def nq(self) -> int: ...

    @property
    def nv(self) -> int: ...

    def without_passive(self) -> Dynamics: ...

    def mass_matrix(self, q: ArrayLike, /) -> Array: ...

    def bias(self, q: ArrayLike, v: ArrayLike, /, *, f_ext: Forces | None = None) -> Array: ...

    def inverse_dynamics(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, /, *, f_ext: Forces | None = None
    ) -> Array: ...

    def forward_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, /) -> Array: ...

    def inverse_dynamics_derivatives(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, /) -> tuple[Array, ...]:
        """By q and by v, then M: (..., nv, nv)."""
        ...

    def kinetic_energy(self, q: ArrayLike, v: ArrayLike, /) -> Array: ...

    def potential_energy(self, q: ArrayLike, /) -> Array: ...

    def integrate(self, q: ArrayLike, dv: ArrayLike, /) -> Array: ...

    def difference(self, q0: ArrayLike, q1: ArrayLike, /) -> Array: ...


def of_model(robot: Described) -> bool:
    """True if a robot's numbers are those of its model, so that code which is compiled from that may give them."""
    return bool(getattr(robot, "_of_model", False))
