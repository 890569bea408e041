"""The quantities as typed methods. Written by tools/methods.py from the catalogue: do not edit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.runtime.method import compiled

Array = np.ndarray[Any, Any]
Forces = Mapping[str, ArrayLike]

if TYPE_CHECKING:

    class InverseDynamicsDerivatives(NamedTuple):
        dtau_dq: Array
        dtau_dv: Array
        M: Array

    class ForwardDynamicsDerivatives(NamedTuple):
        da_dq: Array
        da_dv: Array
        Minv: Array


class Methods:
    """One method for each quantity that needs no more than the state."""

    _compiled: Callable[[str], Callable[..., Any]]

    def _call(self, name: str, state: tuple[ArrayLike, ...], out: Any, threads: int, f_ext: Any = None) -> Any:
        """The quantity where the method is called on the class: `Robot.gravity(robot, q)`."""
        given = {k: x for k, x in (("out", out), ("f_ext", f_ext)) if x is not None}
        return self._compiled(name)(*state, threads=threads, **given)

    @compiled
    def inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        out: Array | None = None,
        threads: int = 1,
        *,
        f_ext: Forces | None = None,
    ) -> Array:
        """tau = M a + h, N m or N; gravity is in.

        q: coordinates, (..., nq), rad or m; quaternions x y z w of unit length
        v: velocities, (..., nv), rad/s or m/s
        a: accelerations, (..., nv), rad/s^2 or m/s^2
        f_ext: {link: (..., 6)}, force (N) and moment (N m) on the link at its origin, world axes
        out: an array for the result, which is then returned
        threads: how many share a large batch

        Gives tau (..., nv). Leading dimensions are batches and broadcast.
        Raises InputError (shapes, types), NumericsError (the row that is not finite).
        """
        found: Array = self._call("inverse_dynamics", (q, v, a), out, threads, f_ext)
        return found

    @compiled
    def forward_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        out: Array | None = None,
        threads: int = 1,
        *,
        f_ext: Forces | None = None,
    ) -> Array:
        """a = M^-1 (tau - h), rad/s^2 or m/s^2.

        q: coordinates, (..., nq), rad or m; quaternions x y z w of unit length
        v: velocities, (..., nv), rad/s or m/s
        tau: efforts of the joints, (..., nv), N m or N
        f_ext: {link: (..., 6)}, force (N) and moment (N m) on the link at its origin, world axes
        out: an array for the result, which is then returned
        threads: how many share a large batch

        Gives a (..., nv). Leading dimensions are batches and broadcast.
        Raises InputError (shapes, types), NumericsError (the row that is not finite).
        """
        found: Array = self._call("forward_dynamics", (q, v, tau), out, threads, f_ext)
        return found

    @compiled
    def mass_matrix(self, q: ArrayLike, out: Array | None = None, threads: int = 1) -> Array:
        """M(q), kg m^2, kg m or kg; symmetric, entries across branches exactly 0.

        q: coordinates, (..., nq), rad or m; quaternions x y z w of unit length
        out: an array for the result, which is then returned
        threads: how many share a large batch

        Gives M (..., nv, nv). Leading dimensions are batches and broadcast.
        Raises InputError (shapes, types), NumericsError (the row that is not finite).
        """
        found: Array = self._call("mass_matrix", (q,), out, threads)
        return found

    @compiled
    def inertia_product(self, q: ArrayLike, x: ArrayLike, out: Array | None = None, threads: int = 1) -> Array:
        """y = M(q) x in O(n), N m or N for x in rad/s^2 or m/s^2; no matrix is formed.

        q: coordinates, (..., nq), rad or m; quaternions x y z w of unit length
        x: any vector of the joints, (..., nv)
        out: an array for the result, which is then returned
        threads: how many share a large batch

        Gives y (..., nv). Leading dimensions are batches and broadcast.
        Raises InputError (shapes, types), NumericsError (the row that is not finite).
        """
        found: Array = self._call("inertia_product", (q, x), out, threads)
        return found

    @compiled
    def inverse_mass_matrix(self, q: ArrayLike, out: Array | None = None, threads: int = 1) -> Array:
        """M(q)^-1, 1/(kg m^2), 1/(kg m) or 1/kg.

        q: coordinates, (..., nq), rad or m; quaternions x y z w of unit length
        out: an array for the result, which is then returned
        threads: how many share a large batch

        Gives Minv (..., nv, nv). Leading dimensions are batches and broadcast.
        Raises InputError (shapes, types), NumericsError (the row that is not finite).
        """
        found: Array = self._call("inverse_mass_matrix", (q,), out, threads)
        return found

    @compiled
    def bias(
        self,
        q: ArrayLike,
        v: ArrayLike,
        out: Array | None = None,
        threads: int = 1,
        *,
        f_ext: Forces | None = None,
    ) -> Array:
        """h = C v + g, N m or N.

        q: coordinates, (..., nq), rad or m; quaternions x y z w of unit length
        v: velocities, (..., nv), rad/s or m/s
        f_ext: {link: (..., 6)}, force (N) and moment (N m) on the link at its origin, world axes
        out: an array for the result, which is then returned
        threads: how many share a large batch

        Gives h (..., nv). Leading dimensions are batches and broadcast.
        Raises InputError (shapes, types), NumericsError (the row that is not finite).
        """
        found: Array = self._call("bias", (q, v), out, threads, f_ext)
        return found

    @compiled
    def gravity(self, q: ArrayLike, out: Array | None = None, threads: int = 1) -> Array:
        """g(q), N m or N: what holds the robot at rest.

        q: coordinates, (..., nq), rad or m; quaternions x y z w of unit length
        out: an array for the result, which is then returned
        threads: how many share a large batch

        Gives g (..., nv). Leading dimensions are batches and broadcast.
        Raises InputError (shapes, types), NumericsError (the row that is not finite).
        """
        found: Array = self._call("gravity", (q,), out, threads)
        return found

    @compiled
    def coriolis_matrix(self, q: ArrayLike, v: ArrayLike, out: Array | None = None, threads: int = 1) -> Array:
        """C(q, v) from the Christoffel symbols, N m s or N s: C v = h - g, dM/dt - 2 C is skew.

        q: coordinates, (..., nq), rad or m; quaternions x y z w of unit length
        v: velocities, (..., nv), rad/s or m/s
        out: an array for the result, which is then returned
        threads: how many share a large batch

        Gives C (..., nv, nv). Leading dimensions are batches and broadcast.
        Raises InputError (shapes, types), NumericsError (the row that is not finite).
        """
        found: Array = self._call("coriolis_matrix", (q, v), out, threads)
        return found

    @compiled
    def kinetic_energy(self, q: ArrayLike, v: ArrayLike, out: Array | None = None, threads: int = 1) -> Array:
        """T, J.

        q: coordinates, (..., nq), rad or m; quaternions x y z w of unit length
        v: velocities, (..., nv), rad/s or m/s
        out: an array for the result, which is then returned
        threads: how many share a large batch

        Gives T (...). Leading dimensions are batches and broadcast.
        Raises InputError (shapes, types), NumericsError (the row that is not finite).
        """
        found: Array = self._call("kinetic_energy", (q, v), out, threads)
        return found

    @compiled
    def potential_energy(self, q: ArrayLike, out: Array | None = None, threads: int = 1) -> Array:
        """V, J; zero at the world origin, moving bodies only.

        q: coordinates, (..., nq), rad or m; quaternions x y z w of unit length
        out: an array for the result, which is then returned
        threads: how many share a large batch

        Gives V (...). Leading dimensions are batches and broadcast.
        Raises InputError (shapes, types), NumericsError (the row that is not finite).
        """
        found: Array = self._call("potential_energy", (q,), out, threads)
        return found

    @compiled
    def center_of_mass(self, q: ArrayLike, out: Array | None = None, threads: int = 1) -> Array:
        """centre of mass of the moving bodies, m, world axes.

        q: coordinates, (..., nq), rad or m; quaternions x y z w of unit length
        out: an array for the result, which is then returned
        threads: how many share a large batch

        Gives c (..., 3). Leading dimensions are batches and broadcast.
        Raises InputError (shapes, types), NumericsError (the row that is not finite).
        """
        found: Array = self._call("center_of_mass", (q,), out, threads)
        return found

    @compiled
    def momentum(self, q: ArrayLike, v: ArrayLike, out: Array | None = None, threads: int = 1) -> Array:
        """linear momentum, kg m/s, then angular momentum about the centre of mass, kg m^2/s, world axes.

        q: coordinates, (..., nq), rad or m; quaternions x y z w of unit length
        v: velocities, (..., nv), rad/s or m/s
        out: an array for the result, which is then returned
        threads: how many share a large batch

        Gives l (..., 6). Leading dimensions are batches and broadcast.
        Raises InputError (shapes, types), NumericsError (the row that is not finite).
        """
        found: Array = self._call("momentum", (q, v), out, threads)
        return found

    @compiled
    def poses(self, q: ArrayLike, out: Array | None = None, threads: int = 1) -> Array:
        """R | p (m) of every moving link, world from link, rows as in robot.moving_links.

        q: coordinates, (..., nq), rad or m; quaternions x y z w of unit length
        out: an array for the result, which is then returned
        threads: how many share a large batch

        Gives T (..., links, 3, 4). Leading dimensions are batches and broadcast.
        Raises InputError (shapes, types), NumericsError (the row that is not finite).
        """
        found: Array = self._call("poses", (q,), out, threads)
        return found

    @compiled
    def inverse_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        out: tuple[Array, Array, Array] | None = None,
        threads: int = 1,
    ) -> InverseDynamicsDerivatives:
        """dtau/dq, dtau/dv and dtau/da = M of inverse dynamics, on the tangent space.

        q: coordinates, (..., nq), rad or m; quaternions x y z w of unit length
        v: velocities, (..., nv), rad/s or m/s
        a: accelerations, (..., nv), rad/s^2 or m/s^2
        out: a tuple of arrays for the result, which is then returned
        threads: how many share a large batch

        Gives dtau_dq (..., nv, nv), dtau_dv (..., nv, nv), M (..., nv, nv). Leading dimensions are batches and
        broadcast.
        Raises InputError (shapes, types), NumericsError (the row that is not finite).
        """
        found: InverseDynamicsDerivatives = self._call("inverse_dynamics_derivatives", (q, v, a), out, threads)
        return found

    @compiled
    def forward_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        out: tuple[Array, Array, Array] | None = None,
        threads: int = 1,
    ) -> ForwardDynamicsDerivatives:
        """da/dq, da/dv and da/dtau = M^-1 of forward dynamics, on the tangent space.

        q: coordinates, (..., nq), rad or m; quaternions x y z w of unit length
        v: velocities, (..., nv), rad/s or m/s
        tau: efforts of the joints, (..., nv), N m or N
        out: a tuple of arrays for the result, which is then returned
        threads: how many share a large batch

        Gives da_dq (..., nv, nv), da_dv (..., nv, nv), Minv (..., nv, nv). Leading dimensions are batches and
        broadcast.
        Raises InputError (shapes, types), NumericsError (the row that is not finite).
        """
        found: ForwardDynamicsDerivatives = self._call("forward_dynamics_derivatives", (q, v, tau), out, threads)
        return found

    @compiled
    def rnea(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        out: Array | None = None,
        threads: int = 1,
        *,
        f_ext: Forces | None = None,
    ) -> Array:
        """inverse_dynamics: the same."""
        found: Array = self._call("rnea", (q, v, a), out, threads, f_ext)
        return found

    @compiled
    def aba(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        out: Array | None = None,
        threads: int = 1,
        *,
        f_ext: Forces | None = None,
    ) -> Array:
        """forward_dynamics: the same."""
        found: Array = self._call("aba", (q, v, tau), out, threads, f_ext)
        return found

    @compiled
    def crba(self, q: ArrayLike, out: Array | None = None, threads: int = 1) -> Array:
        """mass_matrix: the same."""
        found: Array = self._call("crba", (q,), out, threads)
        return found
