"""The impact of new contacts at the first knot of a phase: the velocity is projected by M, all at once.

    M (v+ - v) = Gamma^T N,   Gamma v+ = 0                                     Zaremba (2.17), without restitution

and its derivatives, from the same equations: dv+ by v is the projection, by q it solves them for the changes.
"""

from __future__ import annotations

import numpy as np

from ...constraint.prepared import PreparedSet
from ...io.given import Array
from ..linear_kernels import derivatives_of_constraints


class StruckKnot:
    """The impact of a set of constraints at one state."""

    def __init__(self, given: PreparedSet) -> None:
        n, m, robot = given.robot.nv, given.size, given.robot
        self.given, self.curved = given, derivatives_of_constraints(robot, given.found)
        self.system, self.sides = np.zeros((n + m, n + m)), np.zeros((n + m, 2 * n))
        self.twice, self.still = np.zeros((2, n)), np.zeros(n)

    def slopes(self, q: Array, v: Array, t: Array) -> tuple[Array, Array, Array]:
        """v+ and its derivatives by q (on the tangent space) and by v."""
        given, robot, n = self.given, self.given.robot, self.given.robot.nv
        after, held = given.form.impact(q, v, t, *given.numbers, self.still[:1])
        hessian, _, _, rate = self.curved(q, after, self.still, held[: given.size], t)
        self.twice[0] = after - v  # with the weight, and below it the weight alone
        both, _, M = robot.inverse_dynamics_derivatives(q, self.still, self.twice)
        jacobian = given.terms(q, after, t).jacobian
        self.system[:n, :n], self.system[:n, n:], self.system[n:, :n] = M[0], -jacobian.T, jacobian
        self.sides[:n, :n], self.sides[:n, n:] = hessian - (both[0] - both[1]), M[0]
        self.sides[n:, :n] = -rate
        out = np.linalg.solve(self.system, self.sides)[:n]
        return after, out[:, :n], out[:, n:]


def through_impact(model: Array, n: int, dt: float, by_q: Array, by_v: Array) -> None:
    """A knot's linear model [A, B, ..], in place, by the state before an impact: v + dt a' comes out."""
    A = model[: 2 * n * n].reshape(n, 2 * n)
    a_v = A[:, n:].copy()
    A[:, :n] += by_q / dt + a_v @ by_q
    A[:, n:] = a_v @ by_v + by_v / dt
    A.reshape(-1)[n :: 2 * n + 1] -= 1.0 / dt
