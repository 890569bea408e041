"""Computed torque along a plan; balance is held by where the ground pushes.

A mass at one height z falls away from the zero-moment point p: with w^2 = g / z its capture point x = c + c' / w
goes like x' = w (x - p). So p is put beyond the error of x and kept in the soles that stand,

    p = p_plan + (1 + k) (x - x_plan),        c'' = c''_plan + w^2 ((c - c_plan) - (p - p_plan)),

which makes the error die out like exp(-k w t) while p is inside. Pelvis, soles and other joints follow the plan as
damped springs; accelerations of all come from one square system, and efforts from

    tau = M a + h - J^T N,   tau = 0 on the base                Kovalchuk, Kulakov, Semenov: the block equations

  Pratt, Carff, Drakunov, Goswami 2006, "Capture point: a step toward humanoid push recovery"; Englsberger, Ott,
  Albu-Schaeffer 2015, "Three-dimensional bipedal walking control based on divergent component of motion".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..constraint.solve import matvec
from ..io.given import Array
from .feet import BASE, Soles, cross, gaps, inside, soles_at, turn_between
from .ground import needed, share, standing_point
from .phase import GaitPlan, Phase

CAPTURE = 1.5  # k: how fast errors of the capture point die out, in how fast they would grow
PELVIS_RATE = 10.0  # 1/s: of the pelvis, critically damped
EDGE = 0.01  # m: so far inside the soles the zero-moment point is kept
LIFTED, TIPPED = 1e-3, 3e-3  # m: soles that are wholly higher do not stand, nor corners so far above others
STRONG = 2.0  # times the plan's strongest drive: what any drive can give, where the file has no limit


class WalkState(NamedTuple):
    """States (..., nq), (..., nv) and what the law looks at: world from base R, its rate (..., 6) in world axes,
    the soles, the centre of mass; momentum: linear, and angular about it."""

    q: Array
    v: Array
    R: Array
    rate: Array
    soles: Soles
    com: Array
    momentum: Array


class PlannedState(NamedTuple):
    """The state that a plan asks for: the motion; accelerations of joints a, and of base (..., 6) and soles
    (..., legs, 6) in world axes; the force of the ground; the zero-moment point (..., 2), 0 in the air."""

    motion: WalkState
    a: Array
    base: Array
    soles: Array
    force: Array
    zmp: Array


class Follower:
    """tau = efforts(k, q, v) at the times k * hold of a plan, and for `rest` seconds after it.

    gain: 1/s, of soles and joints. Efforts are those of the drives: what acts in the joints by itself is taken
    off.
    """

    edge = EDGE

    def __init__(self, plan: GaitPlan, gain: float, hold: float, rest: float) -> None:
        self.robot, self.legs, self.gain = plan.robot, plan.legs, gain
        self.base = plan.robot.model.joints[0].child
        driven = np.concatenate([leg.joints for leg in plan.legs])
        self.others = np.setdiff1d(np.arange(6, self.robot.nv), driven)
        self.mass = self.robot.total_mass
        self.wishes, self.phases = list[PlannedState](), list[Phase]()
        for phase in plan.phases:
            wished = self._wishes(phase, hold, rest if phase is plan.phases[-1] else 0.0)
            self.wishes += [_row(wished, k) for k in range(len(wished.a))]
            self.phases += [phase] * len(wished.a)
        first = self.wishes[0].motion
        height = first.com[2] - first.soles.places[:, 2].mean()
        self.pole = float(np.sqrt(-self.robot.model.gravity[2] / height))
        self.most = np.full(self.robot.nv, STRONG * plan.strongest[1])
        for joint, _, sv in self.robot.model.slices():
            if joint.limit and joint.limit.effort:
                self.most[sv] = joint.limit.effort

    def motion(self, q: Array, v: Array) -> WalkState:
        """The state that the control law reads, at q and v; leading dimensions are a batch."""
        r = self.robot
        R = r.pose(q, self.base)[..., :3, :3]
        soles = soles_at(r, self.legs, q, v)
        return WalkState(q, v, R, _along(R, v[..., BASE]), soles, r.center_of_mass(q), r.momentum(q, v))

    def _wishes(self, phase: Phase, hold: float, rest: float) -> PlannedState:
        """At all holds of a phase."""
        r, t = self.robot, hold * np.arange(round((phase.duration + rest) / hold))
        near, way, rate, a = phase.at(np.minimum(t, phase.duration))
        moves = (t <= phase.duration)[:, None]
        q, v, a = r.integrate(near, way), rate * moves, a * moves
        m = self.motion(q, v)
        turning = np.concatenate([cross(v[:, 3:6], v[:, :3]), np.zeros((len(t), 3))], -1)
        wrench = needed(r, q, r.inverse_dynamics(q, v, a))
        zmp = np.zeros((len(t), 2))
        if phase.stands:
            zmp = standing_point(wrench, m.soles.places[:, list(phase.stands)])[0]
        soles = matvec(m.soles.J, a[:, None]) + m.soles.gamma
        return PlannedState(m, a, _along(m.R, a[:, BASE] + turning), soles, wrench[:, :3], zmp)

    # -- the law --------------------------------------------------------------------------------------------

    def efforts(self, k: int, q: Array, v: Array) -> Array:
        """(..., nv) of states (..., nq), (..., nv), nothing on the base."""
        wish, phase, m = self.wishes[k], self.phases[k], self.motion(q, v)
        stands = [i for i in phase.stands if self._near(wish, m, i)]
        return self._drives(wish, m, stands, phase.leans or not stands)

    def _drives(self, wish: PlannedState, m: WalkState, stands: list[int], leans: bool) -> Array:
        """Efforts with so many feet on the ground; leans: the base goes as the momenta ask for."""
        r, q, v, J = self.robot, m.q, m.v, m.soles.J
        lead = q.shape[:-1]
        system = np.zeros((*lead, r.nv, r.nv))
        right = np.zeros((*lead, r.nv))
        if leans:
            system[..., BASE, :] = r.mass_matrix(q)[..., BASE, :]
            right[..., BASE] = self._push(wish, m, bool(stands)) - r.bias(q, v)[..., BASE]
        else:
            system[..., range(6), range(6)] = 1.0
            right[..., BASE] = self._base(wish, m, stands)
        feet = slice(6, 6 + 6 * len(self.legs))
        system[..., feet, :] = J.reshape(*lead, -1, r.nv)
        right[..., feet] = (self._soles(wish, m, stands) - m.soles.gamma).reshape(*lead, -1)
        rest = range(feet.stop, r.nv)
        system[..., rest, self.others] = 1.0
        error = r.difference(q, wish.motion.q), wish.motion.v - v
        right[..., rest] = (wish.a + self.gain**2 * error[0] + 2.0 * self.gain * error[1])[..., self.others]
        a = np.linalg.solve(system, right[..., None])[..., 0]
        tau = r.inverse_dynamics(q, v, a)
        if stands:
            N = share(needed(r, q, tau), m.soles.places[..., stands, :])
            for n, i in enumerate(stands):
                self._tip(N[..., n, :], m, i)
            tau = tau - np.einsum("...lij,...li->...j", J[..., stands, :, :], N)
        tau = tau - r.passive(q, v)
        tau[..., BASE] = 0.0
        return np.asarray(np.clip(tau, -self.most, self.most))

    def _base(self, wish: PlannedState, m: WalkState, stands: list[int]) -> Array:
        """Accelerations of the base in its axes: over the ground by the capture point, else as damped springs."""
        w, planned, G = self.pole, wish.motion, PELVIS_RATE
        away = (m.com - planned.com)[..., :2]
        p = (1.0 + CAPTURE) * (away + (m.momentum - planned.momentum)[..., :2] / (self.mass * w))
        p = self._kept(wish.zmp + p, m, stands) - wish.zmp
        place = np.concatenate([planned.q[..., :3] - m.q[..., :3], turn_between(m.R, planned.R)], -1)
        a = wish.base + 2.0 * G * (planned.rate - m.rate) + G**2 * place
        a[..., :2] = wish.base[..., :2] + w**2 * (away - p)
        body = _along(np.swapaxes(m.R, -1, -2), a)
        body[..., :3] -= cross(m.v[..., 3:6], m.v[..., :3])
        return body

    def _kept(self, p: Array, m: WalkState, stands: list[int]) -> Array:
        """A zero-moment point in the soles that stand: about the nearest point of the line between their middles
        within each of them."""
        middles = m.soles.places[..., stands, :2]
        first, line = middles[..., 0, :], middles[..., -1, :] - middles[..., 0, :]
        long = np.maximum(np.sum(line**2, axis=-1), 1e-300)
        s = np.clip(np.sum((p - first) * line, axis=-1) / long, 0.0, 1.0)
        near = first + s[..., None] * line
        arm = p - near
        for i in stands:
            arm = inside(self._corners(m, i)[..., self.legs[i].edge, :2], arm, self.edge)
        return np.asarray(near + arm)

    def _corners(self, m: WalkState, i: int) -> Array:
        """Corners of a sole, about its middle, (..., k, 3), world axes."""
        leg = self.legs[i]
        return np.swapaxes(m.soles.R[..., i, :, :] @ (leg.corners - leg.middle).T, -1, -2)

    def _near(self, wish: PlannedState, m: WalkState, i: int) -> bool:
        """True if a foot that shall stand touches the ground."""
        lowest = m.soles.places[..., i, 2] + self._corners(m, i)[..., 2].min(axis=-1)
        return bool(np.all(lowest < wish.motion.soles.places[i, 2] + LIFTED))

    def _tip(self, N: Array, m: WalkState, i: int) -> None:
        """A reaction (..., 6) about the middle of a sole that stands on an edge or a corner goes through it."""
        corners = self._corners(m, i)
        height = corners[..., 2] - corners[..., 2].min(axis=-1, keepdims=True)
        on = height < TIPPED
        at = np.sum(on[..., None] * corners, axis=-2) / np.sum(on, axis=-1)[..., None]
        N[..., 3:] = np.where(np.all(on, axis=-1)[..., None], N[..., 3:], cross(at, N[..., :3]))

    def _soles(self, wish: PlannedState, m: WalkState, stands: list[int]) -> Array:
        """Accelerations of the soles; those that stand shall stay where they are, level."""
        planned, G = wish.motion.soles, self.gain
        left = gaps(planned.places, planned.R, m.soles)
        left[..., stands, :3] = 0.0
        return wish.soles + 2.0 * G * (planned.rate - m.soles.rate) + G**2 * left

    def _push(self, wish: PlannedState, m: WalkState, ground: bool) -> Array:
        """On the base, in its axes: what brings the centre of mass to its way and the angular momentum to rest."""
        if not ground:
            return np.zeros_like(m.rate)
        planned, G = wish.motion, self.gain
        force = wish.force + 2.0 * G * (planned.momentum - m.momentum)[..., :3]
        force = force + G**2 * self.mass * (planned.com - m.com)
        moment = cross(m.com - m.q[..., :3], force) - G * m.momentum[..., 3:]
        return _along(np.swapaxes(m.R, -1, -2), np.concatenate([force, moment], -1))


def _row(x: Any, k: int) -> Any:
    return type(x)(*(_row(y, k) if isinstance(y, tuple) else y[k] for y in x))


def _along(R: Array, x: Array) -> Array:
    """Both halves of x (..., 6) turned by R."""
    return np.concatenate([matvec(R, x[..., :3]), matvec(R, x[..., 3:])], -1)
