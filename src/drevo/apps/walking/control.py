"""Computed torque on the feet and in the air: the motion wished for, as far as it may be, and its drives.

a = w - Gamma^+ (gamma + Gamma w),  w = a_p + 2 G (v_p - v) + G^2 (q_p - q)           Zaremba (3.3), corrected
tau = M a + h - Gamma^T N,  tau_I = 0                      Kovalchuk, Kulakov, Semenov: the block equations
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...constrained import RANK, constraint_terms, matvec
from ...io.given import Array
from ...robot.face import Robot
from .feet import BASE, Leg, gap
from .ground import Support, needed, share
from .phase import Phase

DriveLaw = Callable[[Array, Array, Array], Array]


def computed_torque(robot: Robot, support: Support, phase: Phase, gain: float) -> DriveLaw:
    """tau = law(t, q, v) along a phase on the ground, t since its start; leading batch dimensions allowed.

    gain: G, 1/s; errors die out like exp(-G t), critically damped. The feet share N by `ground.share`.
    """
    held = tuple(leg.held for leg in support.legs)

    def law(t: Array, q: Array, v: Array) -> Array:
        near, displacement, rate, planned = phase.at(t)
        error = displacement - robot.difference(near, q)  # both on the tangent space of one tick
        w = planned + 2.0 * gain * (rate - v) + gain**2 * error
        terms = constraint_terms(robot, held, q, v)
        back = np.linalg.pinv(terms.jacobian, rcond=RANK)
        a = w - matvec(back, terms.gamma + matvec(terms.jacobian, w))
        effort = robot.inverse_dynamics(q, v, a)
        N = share(needed(robot, q, effort), support.middles)
        tau = effort - matvec(np.swapaxes(terms.jacobian, -1, -2), N.reshape(*N.shape[:-2], -1))
        tau[..., BASE] = 0.0  # to rounding it is
        return np.asarray(tau)

    return law


def leaning(robot: Robot, legs: Sequence[Leg], support: Support, phase: Phase, gain: float) -> DriveLaw:
    """tau = law(t, q, v) of a push, a flight or a landing: soles, centre of mass and other joints go their ways.

    The pelvis leans as it must for the angular momentum about the centre of mass to die out. The base's rows,
    I_II q_I'' + I_IR q_R'' + H_I = what the ground gives, make the system square. In flight that is nothing: the
    centre of mass falls and the angular momentum is what it was.
    """
    held = tuple(leg.held for leg in legs)
    rest = np.setdiff1d(np.arange(6, robot.nv), np.concatenate([leg.joints for leg in legs]))
    base = robot.model.joints[0].child

    def law(t: Array, q: Array, v: Array) -> Array:
        near, displacement, rate, planned = phase.at(t)
        goal = robot.integrate(near, displacement)
        wrench = np.zeros((*v.shape[:-1], 6))
        if phase.stands:
            wrench = _push(robot, (goal, rate, planned), (q, v), gain)
        R = robot.pose(q, base)[..., :3, :3]
        moment = wrench[..., 3:] - np.cross(q[..., :3], wrench[..., :3])
        given = np.concatenate([matvec(np.swapaxes(R, -1, -2), x) for x in (wrench[..., :3], moment)], -1)
        here, there = (constraint_terms(robot, held, x, u) for x, u in ((q, v), (goal, rate)))
        soles = matvec(there.jacobian, planned) + there.gamma - here.gamma
        soles += 2.0 * gain * (there.rate - here.rate) + gain**2 * _gaps(robot, legs, q, goal)
        joints = (planned + 2.0 * gain * (rate - v) + gain**2 * (displacement - robot.difference(near, q)))[
            ..., rest
        ]
        M, h = robot.mass_matrix(q), robot.bias(q, v)
        unit = np.broadcast_to(np.eye(robot.nv)[rest], (*M.shape[:-2], len(rest), robot.nv))
        rows = np.concatenate([M[..., BASE, :], here.jacobian, unit], axis=-2)
        right = np.concatenate([given - h[..., BASE], soles, joints], -1)
        tau = matvec(M, np.linalg.solve(rows, right[..., None])[..., 0]) + h
        if phase.stands:
            N = share(wrench, support.middles)
            tau = tau - matvec(np.swapaxes(here.jacobian, -1, -2), N.reshape(*N.shape[:-2], -1))
        tau[..., BASE] = 0.0
        return np.asarray(tau)

    return law


def _push(robot: Robot, goal: tuple[Array, Array, Array], state: tuple[Array, Array], gain: float) -> Array:
    """The wrench about the world's origin that brings the centre of mass to its way and the momentum to rest."""
    mass = sum(l.inertial.mass for l in robot.model.links if l.inertial)
    q, v, a = goal
    c, p = robot.center_of_mass(state[0]), robot.momentum(*state)
    there = needed(robot, q, robot.inverse_dynamics(q, v, a))[..., :3]  # m c'' and the weight
    speed = robot.momentum(q, v)[..., :3] - p[..., :3]
    force = there + 2.0 * gain * speed + gain**2 * mass * (robot.center_of_mass(q) - c)
    return np.concatenate([force, np.cross(c, force) - gain * p[..., 3:]], -1)


def _gaps(robot: Robot, legs: Sequence[Leg], q: Array, goal: Array) -> Array:
    """From the soles to where they are at the goal, (..., 6 legs)."""
    poses = [robot.pose(goal, leg.link) for leg in legs]
    places = [matvec(x[..., :3, :3], leg.middle) + x[..., :3, 3] for leg, x in zip(legs, poses)]
    return np.concatenate([gap(robot, leg, q, p, x[..., :3, :3]) for leg, p, x in zip(legs, places, poses)], -1)
