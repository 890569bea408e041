"""Limits of q and v as constraints, by a primal-dual interior point in the sweeps of a trajectory.

    d(x) = s > 0,   s z = mu,   mu -> 0

s and z are eliminated at every knot: a sweep sees the Hessian J^T (z / s) J and the slope
-J^T (mu / s - (z / s) r), r = d - s, beside those of the cost. Waechter and Biegler 2006, "On the implementation
of an interior-point filter line-search algorithm"; Vanroye and others 2023, "FATROP".
"""

from __future__ import annotations

import numpy as np

from ...io.given import Array
from ...mechanics.rotation import from_quaternion
from .given import UNBOUND, MotionLimits
from .problem import KnotArrays

FIRST, WARM, LAST, LOWER = (
    1e-2,
    1e-4,
    1e-8,
    0.1,
)  # mu times the number of limits, of 1 + |cost|: cold, beside a solution, at the end; how it falls
NEAR = 10.0  # times mu: complementarity and slope that are good enough to lower it
KEPT = 0.995  # of a slack may go in one step
INSIDE = 1e-2  # rad, m or their rates: slacks begin no smaller
BAND = 1e10  # within which s z / mu is kept


class StateLimits:
    """The barriers of a trajectory. sides: of every limited number the lower one, then the upper ones."""

    def __init__(self, x: KnotArrays, limits: MotionLimits) -> None:
        self.x, model = x, x.task.robot.model
        nq, n, N = model.nq, model.nv, len(x.u)
        rate_of, self.free = {nq + i: n + i for i in range(n)}, dict[int, tuple[int, int, int]]()
        for j, sq, sv in model.slices():
            for i in range(3 if j.nq == 7 else 0 if j.turns else j.nq):
                rate_of[sq.start + i] = sv.start + i
                if j.nq == 7:  # its place is in world axes, its displacement in the body's
                    self.free[sq.start + i] = sq.start + 3, sv.start, i
        sides = [np.concatenate([q, v]) for q, v in zip(limits.q, limits.v)]
        found = [np.flatnonzero(np.abs(side) < UNBOUND) for side in sides]
        self.source = np.concatenate(found)
        self.bound = np.concatenate([side[i] for side, i in zip(sides, found)])
        self.sign = np.repeat([1.0, -1.0], [len(i) for i in found])
        self.rate = np.array([rate_of[i] for i in self.source.tolist()], np.intp)
        self.size = len(self.source)
        turned = np.isin(self.source, list(self.free))
        self.turned: list[int] = np.flatnonzero(turned).tolist()
        every = np.arange(self.size)
        self.plain = [every[(self.sign == x) & ~turned] for x in (1.0, -1.0)]  # no rate is in one of them twice
        self.s, self.z, self.d, self.step = (np.ones((N, self.size)) for _ in range(4))
        self.mu, self.least = 1.0, 0.0

    # -- where it stands --------------------------------------------------------------------------------------

    def distance(self, q: Array, v: Array) -> Array:
        """d: how far the numbers are within their limits, (..., sides)."""
        found: Array = self.sign * (np.concatenate([q, v], -1)[..., self.source] - self.bound)
        return found

    @property
    def open(self) -> float:
        """The sum of |r|."""
        return float(np.abs(self.d - self.s).sum())

    def begin(self, cost: float, kept: Array | None = None) -> None:
        """At the trajectory of now, of this cost; kept: the multipliers of a solution nearby."""
        size = (1.0 + abs(cost)) / (len(self.s) * self.size)
        self.mu, self.least = FIRST * size, LAST * size
        self.d = self.distance(self.x.q[1:], self.x.v[1:])
        self.s = np.maximum(self.d, INSIDE)
        self.z = self.mu / self.s
        if kept is not None:
            self.mu, self.z = WARM * size, kept[1:].copy()
            self.s = np.maximum(self.d, self.mu / self.z)  # away from the edge, or no step is long
        self._banded()

    @property
    def multipliers(self) -> Array:
        """z at every knot, (N + 1, sides); the first row is nobody's."""
        return np.concatenate([np.ones((1, self.size)), self.z])

    # -- a sweep ----------------------------------------------------------------------------------------------

    def add(self) -> None:
        """The barriers go into the expansions of the cost."""
        weight = self.z / self.s
        push = self.sign * (self.mu / self.s - weight * (self.d - self.s))
        last = 2 * self.x.v.shape[1]
        for plain in self.plain:
            at = self.rate[plain]
            self.x.xx[1:, at, at] += weight[:-1, plain]
            self.x.final[at, at] += weight[-1, plain]
            self.x.xx[1:, at, last] -= push[:-1, plain]
            self.x.final[at, last] -= push[-1, plain]
        for i, first, row in self._turned():
            square, slope = weight[:, i, None, None] * row[:, :, None] * row[:, None], push[:, i, None] * row
            at3 = slice(first, first + 3)
            self.x.xx[1:, at3, at3] += square[:-1]
            self.x.final[at3, at3] += square[-1]
            self.x.xx[1:, at3, last] -= slope[:-1]
            self.x.final[at3, last] -= slope[-1]

    def _turned(self) -> list[tuple[int, int, Array]]:
        """Limited positions of free joints: side, first rate, the position's derivative by the rates (N, 3)."""
        out = []
        for i in self.turned:
            at, first, axis = self.free[int(self.source[i])]
            rows = from_quaternion(*self.x.q[1:, at : at + 4].T)
            out.append((i, first, np.stack([np.asarray(y) for y in (rows.x, rows.y, rows.z)[axis]], -1)))
        return out

    def predict(self, path: Array) -> float:
        """The slacks' step along a predicted one (N, 2 nv); what the slope of cost and barriers has beyond that of
        the expansions."""
        moved, r = self.sign * path[:, self.rate], self.d - self.s
        for i, first, row in self._turned():
            moved[:, i] = self.sign[i] * (row * path[:, first : first + 3]).sum(-1)
        self.step = moved + r
        return -float((r * (self.z * moved + self.mu) / self.s).sum())

    @property
    def length(self) -> float:
        """The longest step that leaves the slacks positive, at most 1."""
        return _longest(self.s, self.step)

    def tried(self, q: Array, v: Array, alpha: Array) -> tuple[Array, Array, Array, Array]:
        """Slacks and d of trajectories in lanes (N, lanes, ..), then barriers and |r| by lane."""
        d = self.distance(q, v)
        # what is inside has d for its slack
        s = np.where(d > (1.0 - KEPT) * self.s[:, None], d, self.s[:, None] + alpha[:, None] * self.step[:, None])
        return s, d, -self.mu * np.einsum("nls->l", np.log(s)), np.einsum("nls->l", np.abs(d - s))

    @property
    def steepest(self) -> float:
        """The weight of |r| beside cost and barriers: above every multiplier."""
        return 2.0 * float(self.z.max())

    @property
    def barrier(self) -> float:
        return -self.mu * float(np.log(self.s).sum())

    def take(self, s: Array, d: Array) -> None:
        """Slacks and d of the step that was taken; the multipliers move on."""
        change = self.mu / self.s - self.z - self.z / self.s * self.step
        self.z = self.z + _longest(self.z, change) * change
        self.s, self.d = s, d
        self._banded()

    def _banded(self) -> None:
        self.z = np.clip(self.z, self.mu / (BAND * self.s), BAND * self.mu / self.s)

    # -- how hard it pushes -----------------------------------------------------------------------------------

    def off(self) -> float:
        """The largest distance of s z from mu."""
        return float(np.abs(self.s * self.z - self.mu).max())

    @property
    def settled(self) -> bool:
        """True if the barrier parameter mu has reached its least value."""
        return self.mu <= self.least

    def harden(self) -> None:
        """The next mu, at a trajectory that has nothing left to gain with this one."""
        self.step = np.zeros_like(self.s)
        self.take(self.s, self.d)
        self.mu = max(self.least, self.mu * LOWER)

    def lower(self, slope: float) -> None:
        """The next mu, where this one has done its work. slope: what was left of it after the last step."""
        while not self.settled and max(self.off(), slope) <= NEAR * self.mu:
            self.mu = max(self.least, self.mu * LOWER)


def _longest(x: Array, step: Array) -> float:
    """The share of a step, at most 1, that positive numbers may go along it."""
    return min(1.0, KEPT / max(float((-step / x).max()), KEPT))
