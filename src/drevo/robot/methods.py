"""The quantities as typed methods. Written by tools/methods.py from the catalogue: do not edit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.call.method import compiled

Array = np.ndarray[Any, Any]
Out = Array | None
Outs = tuple[Array, Array, Array] | None
Loads = Mapping[str, ArrayLike] | None

if TYPE_CHECKING:

    class PowerBalance(NamedTuple):
        P: Array
        Wk: Array
        Wp: Array

    class InverseDynamicsDerivatives(NamedTuple):
        dtau_dq: Array
        dtau_dv: Array
        M: Array

    class ForwardDynamicsDerivatives(NamedTuple):
        da_dq: Array
        da_dv: Array
        Minv: Array


class Methods:
    """One method for each quantity that needs only the state; `compiled` makes it, no body runs."""

    _compiled: Callable[[str], Callable[..., Any]]

    @compiled
    def inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        out: Out = None,
        threads: int = 1,
        *,
        f_ext: Loads = None,
        passive: bool = False,
    ) -> Array:
        """tau = M a + h, N m or N; gravity is in."""
        raise NotImplementedError

    @compiled
    def forward_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        out: Out = None,
        threads: int = 1,
        *,
        f_ext: Loads = None,
        passive: bool = False,
    ) -> Array:
        """a = M^-1 (tau - h), rad/s^2 or m/s^2."""
        raise NotImplementedError

    @compiled
    def mass_matrix(self, q: ArrayLike, out: Out = None, threads: int = 1) -> Array:
        """M(q), kg m^2, kg m or kg; symmetric, entries across branches exactly 0."""
        raise NotImplementedError

    @compiled
    def inertia_product(self, q: ArrayLike, x: ArrayLike, out: Out = None, threads: int = 1) -> Array:
        """y = M(q) x in O(n), N m or N for x in rad/s^2 or m/s^2; no matrix is formed."""
        raise NotImplementedError

    @compiled
    def inverse_mass_matrix(self, q: ArrayLike, out: Out = None, threads: int = 1) -> Array:
        """M(q)^-1, 1/(kg m^2), 1/(kg m) or 1/kg."""
        raise NotImplementedError

    @compiled
    def bias(
        self,
        q: ArrayLike,
        v: ArrayLike,
        out: Out = None,
        threads: int = 1,
        *,
        f_ext: Loads = None,
        passive: bool = False,
    ) -> Array:
        """h = C v + g, N m or N."""
        raise NotImplementedError

    @compiled
    def gravity(self, q: ArrayLike, out: Out = None, threads: int = 1) -> Array:
        """g(q), N m or N: what holds the robot at rest."""
        raise NotImplementedError

    @compiled
    def passive(self, q: ArrayLike, v: ArrayLike, out: Out = None, threads: int = 1) -> Array:
        """p(q, v), N m or N: what dampers, dry friction and springs exert on the joints."""
        raise NotImplementedError

    @compiled
    def coriolis_matrix(self, q: ArrayLike, v: ArrayLike, out: Out = None, threads: int = 1) -> Array:
        """C(q, v) from the Christoffel symbols, N m s or N s: C v = h - g, dM/dt - 2 C is skew."""
        raise NotImplementedError

    @compiled
    def kinetic_energy(self, q: ArrayLike, v: ArrayLike, out: Out = None, threads: int = 1) -> Array:
        """T, J."""
        raise NotImplementedError

    @compiled
    def potential_energy(self, q: ArrayLike, out: Out = None, threads: int = 1) -> Array:
        """V, J; zero at the world origin, moving bodies only."""
        raise NotImplementedError

    @compiled
    def center_of_mass(self, q: ArrayLike, out: Out = None, threads: int = 1) -> Array:
        """centre of mass of the moving bodies, m, world axes."""
        raise NotImplementedError

    @compiled
    def momentum(self, q: ArrayLike, v: ArrayLike, out: Out = None, threads: int = 1) -> Array:
        """linear momentum, kg m/s, then angular momentum about the centre of mass, kg m^2/s, world axes."""
        raise NotImplementedError

    @compiled
    def poses(self, q: ArrayLike, out: Out = None, threads: int = 1) -> Array:
        """homogeneous pose of every moving link, world from link, rows as in robot.moving_links."""
        raise NotImplementedError

    @compiled
    def center_of_mass_jacobian(self, q: ArrayLike, out: Out = None, threads: int = 1) -> Array:
        """J v = velocity of the centre of mass of the moving bodies, world axes."""
        raise NotImplementedError

    @compiled
    def centroidal_momentum_matrix(self, q: ArrayLike, out: Out = None, threads: int = 1) -> Array:
        """A v = momentum: linear, then angular about the centre of mass, world axes."""
        raise NotImplementedError

    @compiled
    def centroidal_momentum_bias(self, q: ArrayLike, v: ArrayLike, out: Out = None, threads: int = 1) -> Array:
        """(dA/dt) v, N and N m: rate of the momentum where accelerations are zero, world axes."""
        raise NotImplementedError

    @compiled
    def regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Out = None, threads: int = 1) -> Array:
        """tau = Y pi, pi = robot.inertial_parameters, ten of every moving link; rotors are not in."""
        raise NotImplementedError

    @compiled
    def power_balance(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Outs = None, threads: int = 1
    ) -> PowerBalance:
        """power of every drive, rates of kinetic and potential energy of every moving link, W."""
        raise NotImplementedError

    @compiled
    def joint_power(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Out = None, threads: int = 1) -> Array:
        """power of the parent's wrench on every moving link, W."""
        raise NotImplementedError

    @compiled
    def inverse_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Outs = None, threads: int = 1
    ) -> InverseDynamicsDerivatives:
        """dtau/dq, dtau/dv and dtau/da = M of inverse dynamics, on the tangent space."""
        raise NotImplementedError

    @compiled
    def forward_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, out: Outs = None, threads: int = 1
    ) -> ForwardDynamicsDerivatives:
        """da/dq, da/dv and da/dtau = M^-1 of forward dynamics, on the tangent space."""
        raise NotImplementedError

    @compiled
    def rnea(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        out: Out = None,
        threads: int = 1,
        *,
        f_ext: Loads = None,
        passive: bool = False,
    ) -> Array:
        """inverse_dynamics: the same."""
        raise NotImplementedError

    @compiled
    def aba(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        out: Out = None,
        threads: int = 1,
        *,
        f_ext: Loads = None,
        passive: bool = False,
    ) -> Array:
        """forward_dynamics: the same."""
        raise NotImplementedError

    @compiled
    def crba(self, q: ArrayLike, out: Out = None, threads: int = 1) -> Array:
        """mass_matrix: the same."""
        raise NotImplementedError
