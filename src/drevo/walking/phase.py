"""Phases of a motion on feet: between changes of structure, a configuration wished for at every tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..constraint.solve import matvec
from ..io.given import Array
from ..io.reprs import result
from ..robot.face import Robot
from .feet import BASE, Leg, cross, margin, refuse_limits, soles_at, stand
from .gait import Gait
from .ground import Support, most_friction, needed, share

LOADED = 1.0  # N: a foot that is just lifted or put down presses less


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
        """Times of the ticks, (n + 1,) s."""
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
    gait: Gait

    def support(self, phase: Phase) -> Support:
        """The feet that stand in a phase, and their polygon."""
        return Support.of(self.robot, [self.legs[i] for i in phase.stands], phase.q[0])

    def reactions(self, phase: Phase) -> Array:
        """Ground reactions that the planned motion needs, (n + 1, feet, 6) about the middles of the soles."""
        tau = self.robot.inverse_dynamics(phase.q, phase.v, phase.a)
        return share(needed(self.robot, phase.q, tau), self.support(phase).middles)

    def drives(self, phase: Phase) -> Array:
        """Drive efforts that the planned motion needs, (n + 1, nv), besides what acts in the joints by itself."""
        tau = self.robot.inverse_dynamics(phase.q, phase.v, phase.a) - self.robot.passive(phase.q, phase.v)
        if phase.stands:
            J = soles_at(self.robot, self.support(phase).legs, phase.q).J
            tau = tau - np.einsum("nlij,nli->nj", J, self.reactions(phase))
        tau[:, BASE] = 0.0
        return tau

    @property
    def middle(self) -> Phase:
        """The swing in the middle of a walk; of a hop what is in its middle."""
        swings = [phase for phase in self.phases if len(phase.stands) == 1] or self.phases
        return swings[len(swings) // 2]

    @property
    def grounded(self) -> list[tuple[Phase, Support, Array]]:
        """Phases in which feet stand, how they stand, and the reactions."""
        return [(x, self.support(x), self.reactions(x)) for x in self.phases if x.stands]

    @property
    def margin(self) -> float:
        """The least distance of the zero-moment point from the edge of the polygon of support, m."""
        return float(min(support.margin(N).min() for _, support, N in self.grounded))

    @property
    def balance(self) -> float:
        """The least distance from the edge of the polygon of support, m, of the point below the centre of mass,
        along gravity: positive of a static walk only."""
        g = np.array(self.robot.model.gravity)
        margins = []
        for phase, support, _ in self.grounded:
            com = self.robot.center_of_mass(phase.q)
            below = com[:, :2] - (com[:, 2, None] - support.middles[:, 2].mean()) * g[:2] / g[2]
            margins.append(margin(support.polygon, below).min())
        return float(min(margins))

    @property
    def friction(self) -> float:
        """The least coefficient of friction with which forces at the corners of the soles make the reactions."""
        return max(
            most_friction(N[loaded, i], leg.sole(self.robot.pose(phase.q[loaded], leg.link))[..., :2] - at[:2])
            for phase, support, N in self.grounded
            for i, (leg, at) in enumerate(zip(support.legs, support.middles))
            if (loaded := N[:, i, 2] > LOADED).any()
        )

    @property
    def strongest(self) -> tuple[str, float]:
        """The joint whose drive does most, and how much, N m."""
        return strongest(self.robot, np.concatenate([self.drives(x) for x in self.phases]))

    def refuse(self) -> None:
        """NumericsError where a foot would have to pull, the robot would tip, or a joint would leave its range,
        move too fast or need too much: which phase, tick, by how much."""
        for phase in self.phases:
            refuse_limits(self.robot, phase.t, self.name, phase.q, phase.v)
        for phase, support, N in self.grounded:
            support.refuse(phase.t, N, self.name)
        for phase in self.phases:
            refuse_limits(self.robot, phase.t, self.name, phase.q, phase.v, self.drives(phase))


def strongest(robot: Robot, tau: Array) -> tuple[str, float]:
    """The joint with the largest effort of tau (n, nv), and how much."""
    most = np.abs(tau).max(axis=0)
    k = int(np.argmax(most))
    return next(j.name for j, _, sv in robot.model.slices() if sv.start <= k < sv.stop), float(most[k])


@dataclass(frozen=True)
class Stretch:
    """A phase before its pelvis is known: first tick, feet (3, n + 1, legs, 4): x, y, z, heading, their
    derivatives."""

    stands: tuple[int, ...]
    first: int
    feet: Array

    @property
    def ticks(self) -> slice:
        return slice(self.first, self.first + self.feet.shape[1])

    def phase(self, robot: Robot, legs: Sequence[Leg], tick: float, pelvis: Array) -> Phase:
        """With an upright pelvis, (3, ticks, 4), and level soles: J v = feet', J a + gamma = feet''."""
        x, rate, acceleration = pelvis[:, self.ticks]
        q = stand(robot, legs, x, self.feet[0])
        v = _rates(robot, legs, q, np.zeros((len(x), robot.nv)), rate, self.feet[1])
        a = _rates(robot, legs, q, v, acceleration, self.feet[2])
        return Phase(self.stands, self.first * tick, tick, q, v, a, robot.difference(q[:-1], q[1:]))


def _rates(robot: Robot, legs: Sequence[Leg], q: Array, v: Array, base: Array, feet: Array) -> Array:
    """u with J u + gamma = feet, for the base's own part; gamma is 0 of v = 0."""
    soles_now = soles_at(robot, legs, q, v)
    columns = np.concatenate([leg.joints for leg in legs])
    u = np.zeros_like(v)
    R = robot.pose(q, robot.model.joints[0].child)[..., :3, :3]
    u[:, :3] = matvec(np.swapaxes(R, -1, -2), base[:, :3]) - cross(v[:, 3:6], v[:, :3])
    u[:, 5] = base[:, 3]
    twist = np.zeros(soles_now.rate.shape)
    twist[..., :3], twist[..., 5] = feet[..., :3], feet[..., 3]
    J = soles_now.J.reshape(len(q), -1, robot.nv)
    left = (twist - soles_now.gamma).reshape(len(q), -1) - matvec(J, u)
    u[:, columns] = np.linalg.solve(J[..., columns], left[..., None])[..., 0]
    return u


def resting(places: Array, n: int) -> Array:
    """(3, n + 1, legs, 4): feet that stay where they are."""
    out = np.zeros((3, n + 1, *places.shape))
    out[0] = places
    return out
