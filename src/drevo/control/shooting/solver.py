"""Box-FDDP: sweeps, steps that close gaps, regularisation; limits of the state by an interior point.

Mastalli et al. 2020, "Crocoddyl", and 2022, "A feasibility-driven approach to control-limited DDP": the control
limits by a quadratic program in a box at every knot, the gaps of multiple shooting closed with the length of the
step. Lengths 1, 1/2, .. are tried side by side, and the best of those with enough descent of the merit, the cost
and the gaps' absolute sum, is taken. Limits of the state put barriers beside the cost, and what slacks are off
beside the gaps.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...errors import NumericsError
from ...io.given import Array
from .given import StateLimits
from .problem import LANES, Shooting

FIRST_REG, LEAST_REG, MOST_REG = 1e-9, 1e-12, 1e8  # of the regularisation
UP, DOWN = 10.0, 0.1
MODEL_SHARE = 1e-3  # of what the model promises
CLOSED_GAPS = 1e-9  # m, rad and their rates: the sum of gaps that counts as none
HALVES = 0.5 ** np.arange(LANES)  # lengths of a step
GAP_SHARE = 0.5  # of the merit's descent that comes from closing gaps, at least


@dataclass
class Progress:
    """The progress of a solver: cost and gaps after every step; why it ended."""

    cost: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    lengths: list[float] = field(default_factory=list)
    reason: str = ""
    converged: bool = False


class Solver:
    """Steps on one trajectory."""

    def __init__(self, s: Shooting, tolerance: float, limits: StateLimits | None = None) -> None:
        self.s, self.tolerance, self.limits, self.reg, self.weight = s, tolerance, limits, FIRST_REG, 0.0
        self.cost, self.progress = np.inf, Progress()

    def start(self, kept: Array | None = None) -> None:
        """From the trajectory as it stands; kept: multipliers of limits, of a solution nearby."""
        self.s.x.refer()
        self.cost = self.s.shoot()
        self._close()
        self.reg, self.weight = FIRST_REG, 0.0
        if self.limits and np.isfinite(self.cost):
            self.limits.begin(self.cost, kept)

    def _close(self) -> None:
        """Closes the gaps of the trajectory where they are rounding."""
        if self.open <= CLOSED_GAPS:
            self.s.x.close()

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
                self._derive()
                if self.step():
                    return p
            except NumericsError as error:
                p.reason = f"diverged: {error}"
                return p
        p.reason = f"stopped after {iterations} iterations"
        return p

    def _derive(self) -> None:
        self.s.derive()
        if self.limits:
            self.limits.add()

    def step(self) -> bool:
        """One iteration; True where it was the last."""
        s, p, limits = self.s, self.progress, self.limits
        while True:
            gaps = self.open
            knot = s.backward(self.reg, gaps > 0.0)
            if knot < 0:
                slope, bend = self._promise(gaps)
                off = gaps + (limits.open if limits else 0.0)
                if -slope <= self.tolerance * (1.0 + abs(self.cost)) and off <= CLOSED_GAPS:
                    if limits is None or limits.settled:
                        p.converged, p.reason = True, "converged"
                        return True
                    limits.harden()
                    self._derive()
                    continue
                if self._accepted(slope, bend, off) >= 0:
                    return False
            self.reg *= UP
            if self.reg > MOST_REG:
                how = f"the Hessian at knot {knot} is not positive" if knot >= 0 else "no step descends"
                p.reason = f"stuck: {how} at the largest regularisation"
                return True

    def _promise(self, gaps: float) -> tuple[float, float]:
        """The slope of the cost, barriers and all, along the step, and its second derivative."""
        gain, bend = self.s.promised
        if gaps == 0.0 and self.limits is None:
            return gain, bend - gain
        slope = self.s.predicted()
        if self.limits:
            slope += self.limits.predict(self.s.x.path[1:])
        return slope, abs(slope) if gaps > 0.0 else bend - gain

    def _accepted(self, slope: float, bend: float, off: float) -> int:
        """The lane that was taken, or -1. off: gaps, and what slacks are off."""
        s, p, limits = self.s, self.progress, self.limits
        if off > 0.0:
            self.weight = max(self.weight, (slope + 0.5 * max(bend, 0.0)) / ((1.0 - GAP_SHARE) * off))
        weight = max(self.weight, limits.steepest) if limits else self.weight
        s.x.alpha[:, 0] = HALVES * (limits.length if limits else 1.0)
        alpha = s.x.alpha[:, 0]
        inside = None
        with np.errstate(all="ignore"):
            cost = s.rollout()
            merit, before = cost + weight * (1.0 - alpha) * self.open, self.cost + weight * off
            if limits:
                *inside, barrier, left = limits.tried(s.x.tried[0][1:], s.x.tried[1][1:], alpha)
                merit, before = merit + barrier + weight * left, before + limits.barrier
            promised = alpha * (slope - weight * off)
            fine = (merit - before <= MODEL_SHARE * promised + 1e-14 * abs(before)) & np.isfinite(merit)
        if not fine.any():
            return -1
        lane = int(np.argmin(np.where(fine, merit, np.inf)))
        length = float(alpha[lane])
        s.x.take(lane)
        self.cost = float(cost[lane])
        s.x.gap *= 1.0 - length
        s.x.part("gap")[...] = s.x.gap
        self._close()
        if limits and inside:
            limits.take(*(x[:, lane].copy() for x in inside))
            limits.lower(abs(slope) * (1.0 - length))
        self.reg = (
            max(LEAST_REG, self.reg * DOWN) if length >= 0.25 else self.reg * UP if length < 0.02 else self.reg
        )
        p.cost.append(self.cost)
        p.gaps.append(self.open)
        p.lengths.append(length)
        return lane
