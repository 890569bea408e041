"""Box-FDDP: sweeps, steps that close gaps, regularisation, and multipliers for limits of the state.

Mastalli et al. 2020, "Crocoddyl", and 2022, "A feasibility-driven approach to control-limited DDP": the control
limits by a quadratic program in a box at every knot, the gaps of multiple shooting closed with the length of the
step. Lengths 1, 1/2, .. are tried side by side, and the best of those with enough descent of the merit, the cost
and the gaps' absolute sum, is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...errors import NumericsError
from ...io.given import Array
from .problem import Shooting

FIRST, LEAST, MOST = 1e-9, 1e-12, 1e8  # of the regularisation
UP, DOWN = 10.0, 0.1
ENOUGH = 1e-3  # of what the model promises
CLOSED = 1e-9  # m, rad and their rates: the sum of gaps that counts as none
SHARE = 0.5  # of the merit's descent that comes from closing gaps, at least
WEIGHT, HEAVIER, HEAVIEST = 1e2, 10.0, 1e7  # of the limits


@dataclass
class Progress:
    """What a solver has done: cost and gaps after every step; why it ended."""

    cost: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    lengths: list[float] = field(default_factory=list)
    reason: str = ""
    converged: bool = False


class Solver:
    """Steps on one trajectory."""

    def __init__(self, s: Shooting, tolerance: float) -> None:
        self.s, self.tolerance, self.reg, self.weight = s, tolerance, FIRST, 0.0
        self.cost, self.progress = np.inf, Progress()

    def start(self) -> None:
        """From the trajectory as it stands."""
        self.s.x.refer()
        self.cost = self.s.shoot()
        if self.open <= CLOSED:
            self.s.x.close()
        self.reg, self.weight = FIRST, 0.0

    @property
    def open(self) -> float:
        """The sum of all gaps."""
        return float(np.abs(self.s.x.gap).sum())

    def run(self, iterations: int) -> Progress:
        """At most so many steps."""
        self.progress = p = Progress([self.cost], [self.open])
        if not np.isfinite(self.cost):
            p.reason = "diverged: the first guess has no finite cost"
            return p
        for _ in range(iterations):
            try:
                self.s.derive()
            except NumericsError as error:
                p.reason = f"diverged: {error}"
                return p
            if self.step():
                return p
        p.reason = f"stopped after {iterations} iterations"
        return p

    def step(self) -> bool:
        """One iteration; True where it was the last."""
        s, p = self.s, self.progress
        while True:
            gaps = self.open
            knot = s.backward(self.reg, gaps > 0.0)
            if knot < 0:
                slope, bend = self._promise(gaps)
                if -slope <= self.tolerance * (1.0 + abs(self.cost)) and gaps <= CLOSED:
                    p.converged, p.reason = True, "converged"
                    return True
                lane = self._accepted(slope, bend, gaps)
                if lane >= 0:
                    return False
            self.reg *= UP
            if self.reg > MOST:
                how = f"the Hessian at knot {knot} is not positive" if knot >= 0 else "no step descends"
                p.reason = f"stuck: {how} at the largest regularisation"
                return True

    def _promise(self, gaps: float) -> tuple[float, float]:
        """The slope of the cost along the step, and its second derivative."""
        gain, bend = self.s.promised
        if gaps == 0.0:
            return gain, bend - gain
        slope = self.s.predicted()
        return slope, abs(slope)

    def _accepted(self, slope: float, bend: float, gaps: float) -> int:
        """The lane that was taken, or -1."""
        s, p = self.s, self.progress
        if gaps > 0.0:
            self.weight = max(self.weight, (slope + 0.5 * max(bend, 0.0)) / ((1.0 - SHARE) * gaps))
        with np.errstate(all="ignore"):
            cost = s.rollout()
            alpha = s.x.alpha[:, 0]
            merit = cost + self.weight * (1.0 - alpha) * gaps
            before = self.cost + self.weight * gaps
            promised = alpha * (slope - self.weight * gaps)
            fine = (merit - before <= ENOUGH * promised + 1e-14 * abs(before)) & np.isfinite(cost)
        if not fine.any():
            return -1
        lane = int(np.argmin(np.where(fine, merit, np.inf)))
        length = float(alpha[lane])
        s.x.take(lane)
        self.cost = float(cost[lane])
        if length == 1.0:
            s.x.close()
        elif gaps > 0.0:
            s.x.gap *= 1.0 - length
            s.x.part("gap")[...] = s.x.gap
        self.reg = max(LEAST, self.reg * DOWN) if length >= 0.25 else self.reg * UP if length < 0.02 else self.reg
        p.cost.append(self.cost)
        p.gaps.append(float(np.abs(s.x.gap).sum()))
        p.lengths.append(length)
        return lane


def limit_excess(s: Shooting) -> Array:
    """By how much every limited number is out of its limits, (N + 1, 2 c): below, then above."""
    limited, x = s.task.shape.limited, s.x
    at = np.concatenate([x.q[:, list(limited.q)], x.v[:, list(limited.v)]], 1)
    n = limited.size
    return np.concatenate([x.limits[:, :n] - at, at - x.limits[:, n : 2 * n]], 1)


def raise_multipliers(s: Shooting, worst: float) -> float:
    """New multipliers of the limits, and a weight that grows where that does not help; the worst excess."""
    n, limits = s.task.shape.limited.size, s.x.limits
    over = limit_excess(s)
    now = float(max(0.0, over.max()))
    limits[:, 2 * n : 4 * n] = np.maximum(0.0, limits[:, 2 * n : 4 * n] + limits[:, -1:] * over)
    if now > 0.25 * worst:
        limits[:, -1] = np.minimum(HEAVIEST, limits[:, -1] * HEAVIER)
    return now
