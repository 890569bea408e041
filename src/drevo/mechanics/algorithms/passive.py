"""Dynamics with the passive forces in: M a + h = tau + p(q, v), p what dampers, friction and springs exert."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..acting import passive_forces, slopes
from ..scalar import Scalar, Vector
from ..tree import Tree

Compute = Callable[..., Any]


def passive(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """p(q, v), (nv,) N m or N."""
    return passive_forces(tree.acting, tree.nv, q, v)


def with_passive(name: str, compute: Compute) -> Compute:
    """The algorithm of a quantity with the passive forces in."""
    return partial(_WITH[name], compute)


def _efforts(compute: Compute, tree: Tree, q: Vector, v: Vector, *a: Vector, **extra: Any) -> list[Scalar]:
    return [x - p for x, p in zip(compute(tree, q, v, *a, **extra), passive(tree, q, v))]


def _accelerations(compute: Compute, tree: Tree, q: Vector, v: Vector, tau: Vector, **extra: Any) -> Any:
    return compute(tree, q, v, [t + p for t, p in zip(tau, passive(tree, q, v))], **extra)


def _effort_derivatives(compute: Compute, tree: Tree, q: Vector, v: Vector, a: Vector) -> Any:
    """Less dp/dq and dp/dv, which are diagonal."""
    found = compute(tree, q, v, a)
    for k, *by in slopes(tree.acting, v):
        for rows, x in zip(found, by):
            rows[k][k] = rows[k][k] - x
    return found


def _acceleration_derivatives(compute: Compute, tree: Tree, q: Vector, v: Vector, tau: Vector) -> Any:
    """da/dq + M^-1 dp/dq, da/dv + M^-1 dp/dv."""
    found = _accelerations(compute, tree, q, v, tau)
    for k, *by in slopes(tree.acting, v):
        for rows, x in zip(found, by):
            for row, inverse in zip(rows, found[-1]):
                row[k] = row[k] + inverse[k] * x
    return found


_WITH: dict[str, Compute] = {
    "inverse_dynamics": _efforts,
    "bias": _efforts,
    "forward_dynamics": _accelerations,
    "inverse_dynamics_derivatives": _effort_derivatives,
    "forward_dynamics_derivatives": _acceleration_derivatives,
}
