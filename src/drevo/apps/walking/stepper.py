"""Steps in time of a robot whose feet stand: Runge and Kutta's fourth order, the soles put back after each.

Configurations move on their manifold by Munthe-Kaas's exponentials, so the order holds for a base that turns:

  Munthe-Kaas 1999, "High order Runge-Kutta methods on manifolds", Applied Numerical Mathematics 29.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...constrained import RANK, ConstrainedMotion, constraint_terms
from ...errors import NumericsError
from ...io.given import Array
from ...robot.face import Robot
from .control import DriveLaw
from .feet import BASE, CLOSED, Leg, gap

PUT_BACK = 8  # Newton steps
State = tuple[Array, Array]


@dataclass(frozen=True)
class Stepper:
    """Feet that stand where `put` (feet, 4, 4) has their links, and the law that drives the joints."""

    robot: Robot
    legs: tuple[Leg, ...]
    put: Array
    law: DriveLaw

    def motion(self, tau: Array, q: Array, v: Array) -> ConstrainedMotion:
        """Accelerations and reactions of the feet; leading batch dimensions."""
        return self.robot.constrained_dynamics(q, v, tau, contacts=[leg.held for leg in self.legs])

    def step(self, t: float, q: Array, v: Array, h: float) -> State:
        """The state a time h later."""

        def rates(after: float, turn: Array, gain: Array) -> tuple[Array, Array]:
            x, u = self.robot.integrate(q, turn), v + gain
            return h * u, h * self.motion(self.law(np.asarray(t + after), x, u), x, u).a

        none = np.zeros_like(v)
        k1, a1 = rates(0.0, none, none)
        k2, a2 = rates(h / 2, k1 / 2, a1 / 2)
        k3, a3 = rates(h / 2, k2 / 2 - bracket(k1, k2) / 8, a2 / 2)
        k4, a4 = rates(h, k3, a3)
        turn = (k1 + 2 * k2 + 2 * k3 + k4) / 6 - bracket(k1, k4) / 12
        return self.put_back(t + h, self.robot.integrate(q, turn), v + (a1 + 2 * a2 + 2 * a3 + a4) / 6)

    def put_back(self, t: float, q: Array, v: Array) -> State:
        """The soles back in their places, by the least move; the velocities by M."""
        if not self.legs:
            return q, v
        held = tuple(leg.held for leg in self.legs)
        for _ in range(PUT_BACK):
            left = np.concatenate(self.gaps(q))
            if np.abs(left).max() <= CLOSED:
                return q, self.robot.impact(q, v, contacts=held).v
            back = np.linalg.pinv(constraint_terms(self.robot, held, q, v).jacobian, rcond=RANK)
            q = self.robot.integrate(q, back @ left)
        raise NumericsError(
            f"at t = {t:.4g} s the feet left their places by {np.abs(left).max():.3g} m or rad within one step "
            "and cannot be put back: the motion is too violent; move slower, or lower the gain"
        )

    def gaps(self, q: Array) -> list[Array]:
        """From each sole to its place."""
        places = [pose[:3, :3] @ leg.middle + pose[:3, 3] for leg, pose in zip(self.legs, self.put)]
        return [gap(self.robot, leg, q, p, x[:3, :3]) for leg, p, x in zip(self.legs, places, self.put)]


def bracket(x: Array, y: Array) -> Array:
    """Of two tangent vectors: of twists (linear, angular) in the axes of the free base; joints commute."""
    (v, w), (u, z) = x[BASE].reshape(2, 3), y[BASE].reshape(2, 3)
    first, second, third = np.cross([w, z, w], [u, v, z])
    out = np.zeros_like(x)
    out[BASE] = *(first - second), *third
    return out
