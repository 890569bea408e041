"""A step under Signorini's and Coulomb's laws on arrays: what compiled steps are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from drevo.contact.laws.exact.problem import TouchingRobot
from drevo.contact.laws.exact.solve import RESIDUAL_TOLERANCE, Impulses, impulses
from drevo.mechanics.algorithms.delassus import FreeMotion, free_motion, moved
from drevo.mechanics.algorithms.passive import passive_tree
from drevo.mechanics.scalar import Scalar

Array = np.ndarray[Any, Any]


class StepResult(NamedTuple):
    """q1, v1; forces (B, slots, 3) N on the second body of each slot, in world axes; residual (B,) m/s; gaps."""

    q: Array
    v: Array
    forces: Array
    residual: Array
    gaps: Array
    solution: Impulses


def step(m: TouchingRobot, q: Array, v: Array, tau: Array, tolerance: float = RESIDUAL_TOLERANCE) -> StepResult:
    """One step of states (B, nq), (B, nv) under efforts (B, nv)."""
    count, h = len(q), m.stepping.h
    free = step_problem(m, q, v, tau)
    found = impulses(free.problem, tolerance, splits=m.stepping.splits)
    rates, kept = (free.pushed(list(x)) for x in (found.pushing, found.lam))
    q1, v1 = (_stacked(x, count) for x in moved(passive_tree(m.model), list(q.T), rates, h, kept))
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
