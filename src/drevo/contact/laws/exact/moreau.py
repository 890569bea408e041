"""A step under Signorini's and Coulomb's laws, on arrays: the reference of compiled steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ....ground import LEVEL, Uneven
from ....mechanics.acting import offsets_of
from ....mechanics.algorithms.delassus import ContactSlot, FreeMotion, JointBounds, MoreauStep, free_motion, moved
from ....mechanics.algorithms.passive import passive_tree
from ....mechanics.scalar import Scalar
from ....model.description import Model
from .solve import TOLERANCE, Impulses, impulses

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class TouchingRobot:
    """A robot and its possible contacts, for which a step under the exact law is made.

    checked: joints whose bounds are looked at in the end, and have no rows. parameters: patterns of numbers of the
    model that stay symbols; "friction" is that of all slots with any."""

    model: Model
    slots: tuple[ContactSlot, ...]
    joints: tuple[JointBounds, ...]
    stepping: MoreauStep
    checked: tuple[JointBounds, ...] = ()
    parameters: tuple[str, ...] = ()
    floor: Uneven = LEVEL


class StepResult(NamedTuple):
    """q1, v1; forces (B, slots, 3) N on the second body of each slot, in world axes; residual (B,) m/s; gaps."""

    q: Array
    v: Array
    forces: Array
    residual: Array
    gaps: Array
    solution: Impulses


def joint_rows(model: Model, limits: bool = True) -> tuple[JointBounds, ...]:
    """Limits of joints of one coordinate each and of balls, and dry friction, of a mimic joint as its driver feels
    it.

    What the model's own steps leave out is left out.
    """
    offsets, out, off = offsets_of(model), dict[int, JointBounds](), model.stepping.disabled
    limits = limits and "limit" not in off
    for j in model.joints:
        (iq, iv), d, ratio = offsets[j.name], j.dynamics, abs(j.mimic.multiplier) if j.mimic else 1.0
        low, high = -math.inf, math.inf
        if limits and j.limit and not j.mimic and not j.turns and not j.formula:
            low = -math.inf if j.limit.lower is None else j.limit.lower
            high = math.inf if j.limit.upper is None else j.limit.upper
        eta = ratio * d.friction if d and "frictionloss" not in off else 0.0
        for k in range(j.sizes[1]):
            before = out.get(iv + k, JointBounds(iv + k, iq + k, -math.inf, math.inf, 0.0))
            out[iv + k] = before._replace(
                lower=max(low, before.lower), upper=min(high, before.upper), friction=before.friction + eta
            )
    balls = [
        JointBounds(offsets[x.joint][1], offsets[x.joint][0], -math.inf, x.limit_angle, 0.0, True)
        for x in model.softness
        if limits and x.limit_angle is not None
    ]
    found = (*out.values(), *balls)
    return tuple(x for x in found if x.friction or x.lower > -math.inf or x.upper < math.inf)


def step(m: TouchingRobot, q: Array, v: Array, tau: Array, tolerance: float = TOLERANCE) -> StepResult:
    """One step of states (B, nq), (B, nv) under efforts (B, nv)."""
    count, h = len(q), m.stepping.h
    free = step_problem(m, q, v, tau)
    found = impulses(free.problem, tolerance)
    q1, v1 = (_stacked(x, count) for x in moved(passive_tree(m.model), list(q.T), free.pushed(list(found.lam)), h))
    forces = np.zeros((count, len(m.slots), 3))
    for k, a in enumerate(free.touches):
        n, s, t = (found.lam[3 * k + i] / h for i in range(3))
        forces[:, k] = _stacked([n * x + s * y + t * z for x, y, z in zip(*a.frame)], count)
    gaps = _stacked([a.dist for a in free.touches], count)
    return StepResult(q1, v1, forces, found.residual, gaps, found)


def step_problem(m: TouchingRobot, q: Array, v: Array, tau: Array) -> FreeMotion:
    """The problem of a step, on arrays."""
    tree = passive_tree(m.model)
    return free_motion(tree, list(q.T), list(v.T), list(tau.T), m.slots, m.joints, m.stepping)


def _stacked(values: Sequence[Scalar], count: int) -> Array:
    """(count, n) of n scalars."""
    return np.stack([np.broadcast_to(x, (count,)) for x in values], -1) if values else np.zeros((count, 0))
