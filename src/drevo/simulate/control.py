"""Laws of control that are compiled into the motion: written over scalars, traced once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError

Scalar = Any  # float, array or graph node
Law = Callable[[Scalar, Sequence[Scalar], Sequence[Scalar]], Sequence[Scalar]]


@dataclass(frozen=True)
class Control:
    """Joint efforts as a law(t, q, v) over scalars, nv of them, compiled together with the dynamics.

    The law may use + - * /, and `sin`, `cos`, `sqrt` of drevo.mechanics.scalar, and may not branch on the state.
    """

    law: Law

    def __call__(self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar]) -> Sequence[Scalar]:
        return self.law(t, q, v)


def damping(coefficients: float | Sequence[float]) -> Control:
    """tau = -d v, N m s/rad or N s/m: one number for all joints, or nv of them."""

    def law(t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar]) -> Sequence[Scalar]:
        return [-d * x for d, x in zip(_each("coefficients", coefficients, len(v)), v)]

    return Control(law)


def pd(
    stiffness: float | Sequence[float],
    coefficients: float | Sequence[float],
    target: float | Sequence[float] = 0.0,
) -> Control:
    """tau = k (target - q) - d v; for robots whose joints all have one coordinate a freedom."""

    def law(t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar]) -> Sequence[Scalar]:
        n = len(v)
        if len(q) != n:
            raise InputError("pd needs joints without quaternions: write a Control for this robot")
        gains = [_each(*x, n) for x in (("stiffness", stiffness), ("coefficients", coefficients))]
        return [k * (x - a) - d * b for k, d, x, a, b in zip(*gains, _each("target", target, n), q, v)]

    return Control(law)


def _each(name: str, value: float | Sequence[float], n: int) -> list[float]:
    if isinstance(value, (int, float)):
        return [float(value)] * n
    if len(value) != n:
        raise InputError(f"{name}: {len(value)} numbers for {n} freedoms; give one, or {n}")
    return [float(x) for x in value]


__all__ = ["Control", "Law", "damping", "pd"]
