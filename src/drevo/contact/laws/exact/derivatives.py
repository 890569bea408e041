"""Derivatives of a step under the exact law, by the implicit function of its active set.

Each contact is open, sticks or slides, each joint is free, held by friction or at a bound; of what holds then the
impulses follow from the state. Where a contact is just between two of these the derivative is one-sided, that of
the side found here: lam_n = 0 counts as open, u_t = 0 as sticking. Where impulses are not unique the least change
of them is taken; velocities do not depend on that. Where a step has not converged, or has parted what friction
holds, derivatives are NaN.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....mechanics.algorithms.coulomb import ContactLaw, ImpulseProblem, JointLaw
from ....mechanics.algorithms.delassus import FreeMotion, free_motion, moved
from ....mechanics.algorithms.passive import passive_tree
from ....mechanics.jet import Jet, jet, jet_along
from ....mechanics.manifold import logarithm
from ....mechanics.scalar import Scalar
from .moreau import TouchingRobot, step_problem
from .solve import TOLERANCE, Impulses, impulses

Array = np.ndarray[Any, Any]
NOTHING = 1e-9  # of the largest impulse: below it a contact is open
STILL_SPEED = 1e-8  # m/s: below it a contact sticks
LEAST_RANK = 1e-11  # of the largest singular value of the active rows


class StepDerivatives(NamedTuple):
    """Derivatives of (q1, v1) by q, v and tau, (B, 2 nv, nv) each, on the tangent space; the step's impulses."""

    by_q: Array
    by_v: Array
    by_tau: Array
    impulses: Impulses


def step_derivatives(
    m: TouchingRobot, q: Array, v: Array, tau: Array, tolerance: float = TOLERANCE
) -> StepDerivatives:
    """At states (B, nq), (B, nv) under efforts (B, nv)."""
    found = impulses(step_problem(m, q, v, tau).problem, tolerance)
    count, nv = v.shape
    many = 3 * nv
    lam = [np.repeat(x, many) for x in found.lam]
    free = _along_all(m, q, v, tau)
    rates = _impulse_rates(free.problem, lam, count, many)
    after = [jet(x) for x in free.pushed(lam)]
    change = [x.d + y for x, y in zip(after, _pushed_rates(free, rates))]
    tree, runs = passive_tree(m.model), m.model.runs
    q1, v1 = moved(tree, _paths(m, q, _directions(count, nv)), [Jet(x.x, d) for x, d in zip(after, change)],
                   m.stepping.h)  # fmt: skip
    turned = logarithm(runs, [jet(x).x for x in q1], q1)
    rows = np.stack([_wide(jet(x).d, count * many) for x in (*turned, *v1)])
    parts = rows.reshape(2 * nv, count, 3, nv).transpose(2, 1, 0, 3)
    parts[:, found.eased | (found.residual > tolerance)] = np.nan
    return StepDerivatives(parts[0], parts[1], parts[2], found)


def _wide(x: Scalar, count: int) -> Array:
    return np.broadcast_to(np.asarray(x, float), (count,))


def _directions(count: int, nv: int) -> Array:
    """(3 nv, count * 3 nv): every unit change of q, v and tau, at every state."""
    return np.tile(np.eye(3 * nv), count)


def _paths(m: TouchingRobot, q: Array, directions: Array) -> list[Jet]:
    """q along all directions."""
    wide = list(np.repeat(q, len(directions), axis=0).T)
    out: list[Jet] = []
    for joint, sq, sv in m.model.slices():
        out += jet_along(wide[sq], joint.kind, list(directions[sv]))
    return out


def _along_all(m: TouchingRobot, q: Array, v: Array, tau: Array) -> FreeMotion:
    """The problem with its rates along every direction."""
    count, nv = v.shape
    d = _directions(count, nv)
    rates, efforts = (np.repeat(x, 3 * nv, axis=0).T for x in (v, tau))
    at_v = [Jet(x, y) for x, y in zip(rates, d[nv : 2 * nv])]
    at_tau = [Jet(x, y) for x, y in zip(efforts, d[2 * nv :])]
    tree = passive_tree(m.model)
    return free_motion(tree, _paths(m, q, d), at_v, at_tau, m.slots, m.joints, m.stepping)


def _pushed_rates(free: FreeMotion, rates: Array) -> list[Scalar]:
    """M^-1 J' of rates of the impulses (n, ...), at a mass matrix without rates."""
    plain = free.factors.mapped(lambda x: jet(x).x)
    weights = [sum((jet(row[k]).x * x for row, x in zip(free.rows, rates)), 0.0) for k in range(len(free.vf))]
    return plain.solve_lower(weights)


def _impulse_rates(p: ImpulseProblem, lam: list[Array], count: int, many: int) -> Array:
    """(n, count * many): how the impulses change along each direction."""
    n = len(lam)
    u = [jet(x) for x in p.velocity(lam, range(n))]
    by_lam, by_way = np.zeros((count, n, n)), np.zeros((count, n, many))
    wide = [[_wide(jet(x).x, count * many)[::many] for x in row] for row in p.G]
    values = _Values(
        np.array(wide).transpose(2, 0, 1), np.array(lam)[:, ::many].T,
        np.array([_wide(x.x, count * many)[::many] for x in u]).T,
        np.array([_wide(x.d, count * many) for x in u]).reshape(n, count, many).transpose(1, 0, 2),
    )  # fmt: skip
    for law in p.laws:
        rows = slice(law.at, law.rows.stop)
        if isinstance(law, ContactLaw):
            found = _contact_rates(values, law, count * many)
        else:
            found = _joint_rates(values, law, count * many)
        by_lam[:, rows], by_way[:, rows] = found
    rates = -np.linalg.pinv(by_lam, rcond=LEAST_RANK) @ by_way
    return rates.transpose(1, 0, 2).reshape(n, count * many)


class _Values(NamedTuple):
    """G (B, n, n), lam (B, n), u (B, n) and du (B, n, directions)."""

    G: Array
    lam: Array
    u: Array
    du: Array


def _contact_rates(x: _Values, law: ContactLaw, size: int) -> tuple[Array, Array]:
    """The derivatives of a contact's active conditions, by the impulses and along the directions."""
    at, (count, n) = law.at, x.lam.shape
    mu = _wide(jet(law.bound).x, size)[:: size // count][:, None, None]
    unit = np.broadcast_to(np.eye(n)[at : at + 3], (count, 3, n))
    G, du = x.G[:, at : at + 3], x.du[:, at : at + 3]
    speed = np.linalg.norm(x.u[:, at + 1 : at + 3], axis=1)
    s = x.u[:, at + 1 : at + 3] / np.maximum(speed, STILL_SPEED)[:, None]
    across = np.eye(2) - s[:, :, None] * s[:, None, :]
    lever = mu * x.lam[:, at, None, None] / np.maximum(speed, STILL_SPEED)[:, None, None] * across
    slide = np.concatenate([G[:, :1], unit[:, 1:] + mu * s[:, :, None] * unit[:, :1] + lever @ G[:, 1:]], 1)
    slide_way = np.concatenate([du[:, :1], lever @ du[:, 1:]], 1)
    is_open = (x.lam[:, at] <= NOTHING * np.abs(x.lam).max(1, initial=0.0))[:, None, None]
    sticks = (speed <= STILL_SPEED)[:, None, None]
    return (
        np.where(is_open, unit, np.where(sticks, G, slide)),
        np.where(is_open, 0.0, np.where(sticks, du, slide_way)),
    )


def _joint_rates(x: _Values, law: JointLaw, size: int) -> tuple[Array, Array]:
    """At a bound or held by friction u follows it, else the impulse stays as it is."""
    at, count = law.at, len(x.lam)
    many = size // count
    unit = np.broadcast_to(np.eye(x.lam.shape[1])[at : at + 1], (count, 1, x.lam.shape[1]))
    bounds = [jet(y) for y in (law.lower, law.upper)]
    on = [np.abs(x.u[:, at] - _wide(b.x, size)[::many]) <= STILL_SPEED for b in bounds]
    rates = [_wide(b.d, size).reshape(count, many) for b in bounds]
    eta = _wide(jet(law.bound).x, size)[::many]
    pushes = np.abs(x.lam[:, at]) > NOTHING * np.abs(x.lam).max(1, initial=0.0)
    held = (np.abs(x.lam[:, at]) < eta * (1.0 - NOTHING)) & (np.abs(x.u[:, at]) <= STILL_SPEED)
    low, high = on[0] & pushes & ~held, on[1] & pushes & ~held
    follows = (low | high | held)[:, None, None]
    target = np.where(low[:, None], rates[0], np.where(high[:, None], rates[1], 0.0))
    return (
        np.where(follows, x.G[:, at : at + 1], unit),
        np.where(follows, (x.du[:, at] - target)[:, None], 0.0),
    )
