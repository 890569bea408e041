"""Phases of a motion on feet: between changes of structure, a configuration wished for at every tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...constrained import constraint_terms
from ...io.given import Array
from ...io.reprs import result
from ...robot.face import Robot
from .feet import Leg, stand
from .ground import Support, needed, share
from .limits import refuse_limits


@result
class Phase:
    """A time without change of structure: which feet stand, and the motion wished for at every tick.

    stands: indices of the feet. start: s. q (n + 1, nq), v and a (n + 1, nv), step (n, nv): from tick to tick on
    the tangent space. leans: the pelvis need not keep upright.
    """

    stands: tuple[int, ...]
    start: float
    tick: float
    q: Array
    v: Array
    a: Array
    step: Array
    leans: bool = False

    @property
    def duration(self) -> float:
        return self.tick * len(self.step)

    @property
    def t(self) -> Array:
        """Of the ticks, (n + 1,) s."""
        return self.start + self.tick * np.arange(len(self.q))

    def at(self, t: Array) -> tuple[Array, Array, Array, Array]:
        """A configuration, and d, d', d'' on its tangent space, at times after the start; past the end d'' stays.

        Quintic polynomials between the ticks.
        """
        t = np.asarray(t, float)
        k = np.clip((t / self.tick).astype(int), 0, len(self.step) - 1)
        h, s = self.tick, (np.minimum(t, self.duration) - k * self.tick)[..., None]
        v0, a0, v1, a1 = self.v[k], self.a[k], self.v[k + 1], self.a[k + 1]
        left = self.step[k] - h * v0 - h * h / 2 * a0
        dv, da = h * (v1 - v0 - h * a0), h * h * (a1 - a0)
        c3, c4, c5 = 10 * left - 4 * dv + da / 2, -15 * left + 7 * dv - da, 6 * left - 3 * dv + da / 2
        x = s / h
        d = s * v0 + s * s / 2 * a0 + x**3 * (c3 + x * (c4 + x * c5))
        rate = v0 + s * a0 + x * x / h * (3 * c3 + x * (4 * c4 + x * 5 * c5))
        acceleration = a0 + x / h**2 * (6 * c3 + x * (12 * c4 + x * 20 * c5))
        over = np.maximum(t - self.duration, 0.0)[..., None]
        return self.q[k], d + over * (rate + over * acceleration / 2), rate + over * acceleration, acceleration


@result
class GaitPlan:
    """Phases one after the other; the name is for messages."""

    robot: Robot
    legs: tuple[Leg, ...]
    name: str
    phases: tuple[Phase, ...]

    def support(self, phase: Phase) -> Support:
        """The feet that stand in a phase, and their polygon."""
        return Support.of(self.robot, [self.legs[i] for i in phase.stands], phase.q[0])

    def reactions(self, phase: Phase) -> Array:
        """What the planned motion asks of the ground, (n + 1, feet, 6) about the middles of the soles."""
        tau = self.robot.inverse_dynamics(phase.q, phase.v, phase.a)
        return share(needed(self.robot, phase.q, tau), self.support(phase).middles)

    def refuse(self) -> None:
        """NumericsError where a foot would have to pull, the robot would tip, or a joint would leave its range or
        move too fast: which phase, tick, by how much."""
        for phase in self.phases:
            refuse_limits(self.robot, phase.t, self.name, phase.q, phase.v)
            if phase.stands:
                self.support(phase).refuse(phase.t, self.reactions(phase), self.name)


@dataclass(frozen=True)
class Stretch:
    """A phase before its pelvis is known: first tick, feet (3, n + 1, legs, 3) with their derivatives."""

    stands: tuple[int, ...]
    first: int
    feet: Array

    @property
    def ticks(self) -> slice:
        return slice(self.first, self.first + self.feet.shape[1])

    def phase(self, robot: Robot, legs: Sequence[Leg], tick: float, pelvis: Array) -> Phase:
        """With an upright pelvis at (3, ticks, 3) and level soles: J v = feet', J a + gamma = feet''."""
        x, rate, acceleration = pelvis[:, self.ticks]
        q = stand(robot, legs, x, self.feet[0])
        v = _rates(robot, legs, q, np.zeros((len(x), robot.nv)), rate, self.feet[1])
        a = _rates(robot, legs, q, v, acceleration, self.feet[2])
        return Phase(self.stands, self.first * tick, tick, q, v, a, robot.difference(q[:-1], q[1:]))


def _rates(robot: Robot, legs: Sequence[Leg], q: Array, v: Array, base: Array, feet: Array) -> Array:
    """u with J u + gamma = feet and no turning, for the base's own part; gamma is 0 of v = 0."""
    terms = constraint_terms(robot, tuple(leg.held for leg in legs), q, v)
    columns = np.concatenate([leg.joints for leg in legs])
    u = np.zeros_like(v)
    u[:, :3] = base  # the pelvis does not turn, so its axes are the world's
    twist = np.concatenate([feet, np.zeros_like(feet)], -1).reshape(len(q), -1)
    left = twist - terms.gamma - (terms.jacobian @ u[..., None])[..., 0]
    u[:, columns] = np.linalg.solve(terms.jacobian[..., columns], left[..., None])[..., 0]
    return u


def resting(places: Array, n: int) -> Array:
    """(3, n + 1, legs, 3): feet that stay where they are."""
    out = np.zeros((3, n + 1, *places.shape))
    out[0] = places
    return out
