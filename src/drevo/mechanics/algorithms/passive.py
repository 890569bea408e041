"""Dynamics with the passive forces in: M a + h = tau + p(q, v), p what dampers, friction and springs exert."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ...model.description import Model
from ..acting import passive_forces, slopes
from ..scalar import Scalar, Vector
from ..tree import Tree, build_tree
from .tendons import tendon_forces, tendon_slopes, with_tendons

Array = np.ndarray[Any, Any]
Compute = Callable[..., Any]


def passive(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """p(q, v), (nv,) N m or N."""
    joints = passive_forces(tree.acting, tree.nv, q, v)
    return [x + y for x, y in zip(joints, tendon_forces(tree, q, v))] if tree.tendons else joints


def passive_slopes(tree: Tree, q: Vector, v: Vector) -> Iterator[tuple[int, int, Scalar, Scalar]]:
    """Row, column and the derivatives of p of the row by the coordinate and the rate of the column."""
    yield from ((k, k, by_q, by_v) for k, by_q, by_v in slopes(tree.acting, v))
    yield from tendon_slopes(tree, q, v)


def passive_tree(model: Model) -> Tree:
    """The tree of a model with all that acts on it."""
    return with_tendons(build_tree(model, forces=True), model)


def passive_on_arrays(model: Model) -> Callable[[Array, Array], Array]:
    """p of states (..., nq) and (..., nv) as (..., nv)."""
    tree = passive_tree(model)

    def of(q: Array, v: Array) -> Array:
        parts = passive(tree, list(np.moveaxis(q, -1, 0)), list(np.moveaxis(v, -1, 0)))
        return np.stack([np.broadcast_to(x, v.shape[:-1]) for x in parts], -1)

    return of


def with_passive(name: str, compute: Compute) -> Compute:
    """The algorithm of a quantity with the passive forces in."""
    return partial(_WITH[name], compute)


def _efforts(compute: Compute, tree: Tree, q: Vector, v: Vector, *a: Vector, **extra: Any) -> list[Scalar]:
    return [x - p for x, p in zip(compute(tree, q, v, *a, **extra), passive(tree, q, v))]


def _accelerations(compute: Compute, tree: Tree, q: Vector, v: Vector, tau: Vector, **extra: Any) -> Any:
    return compute(tree, q, v, [t + p for t, p in zip(tau, passive(tree, q, v))], **extra)


def _effort_derivatives(compute: Compute, tree: Tree, q: Vector, v: Vector, a: Vector) -> Any:
    """Less dp/dq and dp/dv."""
    found = compute(tree, q, v, a)
    for i, k, *by in passive_slopes(tree, q, v):
        for rows, x in zip(found, by):
            rows[i][k] = rows[i][k] - x
    return found


def _acceleration_derivatives(compute: Compute, tree: Tree, q: Vector, v: Vector, tau: Vector) -> Any:
    """da/dq + M^-1 dp/dq, da/dv + M^-1 dp/dv."""
    found = _accelerations(compute, tree, q, v, tau)
    for i, k, *by in passive_slopes(tree, q, v):
        for rows, x in zip(found, by):
            for row, inverse in zip(rows, found[-1]):
                row[k] = row[k] + inverse[i] * x
    return found


_WITH: dict[str, Compute] = {
    "inverse_dynamics": _efforts,
    "bias": _efforts,
    "forward_dynamics": _accelerations,
    "inverse_dynamics_derivatives": _effort_derivatives,
    "forward_dynamics_derivatives": _acceleration_derivatives,
}
