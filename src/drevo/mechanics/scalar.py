"""The scalar contract: + - * / and the functions below, on floats, arrays and graph nodes alike.

This is the one bridge between algorithms and the graph.

The hooks by which an algorithm names what it computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeVar

import numpy as np

from ..codegen.graph.node import NO_FLOAT as NO_FLOAT
from ..codegen.graph.node import UNTRUE as UNTRUE
from ..codegen.graph.node import Condition, Expr
from ..codegen.graph.ops import BY_NAME, OPS
from ..errors import DrevoError, InputError, TraceError, shown

Scalar = Any  # float, numpy array or Expr: whatever has + - * /
Vector = Sequence[Scalar]  # of any length: coordinates, rates, efforts; a `Vec` has three parts
Matrix = list[list[Scalar]]  # rows
Key = TypeVar("Key")
EXP_DOUBLINGS, EXP_TERMS, EXP_LEAST = 8, 10, -40.0  # of exponentials; exp(-40) is below rounding beside 1


def sin(x: Scalar) -> Scalar:
    """Sine of a scalar, radians."""
    if isinstance(x, Expr):
        return x.sin()
    return _of("sin", x)


def cos(x: Scalar) -> Scalar:
    """Cosine of a scalar, radians."""
    if isinstance(x, Expr):
        return x.cos()
    return _of("cos", x)


def named_function(name: str) -> Callable[[Scalar], Scalar]:
    """A function of one argument by its name in the table of operations, on every kind of scalar."""
    row = OPS[BY_NAME[name]]

    def apply(x: Scalar) -> Scalar:
        return x.function(name) if hasattr(x, "function") else row.apply(x)  # type: ignore[misc]

    apply.__doc__ = f"The {name} of a scalar."
    return apply


def rate_of(name: str) -> Callable[..., Scalar]:
    """The rate of an operation, from its arguments, its value and the rates of its arguments."""
    rate = OPS[BY_NAME[name]].rate
    assert rate is not None  # choices alone have none
    return rate


def sqrt(x: Scalar) -> Scalar:
    """Square root of a scalar."""
    if isinstance(x, Expr):
        return x.sqrt()
    return _of("sqrt", x)


def _of(name: str, x: Scalar) -> Scalar:
    """A function of a number, or of what NumPy hands on: arrays, jets, series."""
    try:
        return getattr(math, name)(x) if isinstance(x, (float, int)) else getattr(np, name)(x)
    except DrevoError:
        raise
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} of {shown(x)} is no number; give one that it has a value for") from None


def where(condition: Any, a: Scalar, b: Scalar) -> Scalar:
    """a where a condition such as x > 0 holds, else b; what is not taken may be anything, even not finite."""
    for x in (a, b):
        if hasattr(x, "by_parts"):  # of a jet or a series every coefficient
            return x.by_parts(lambda u, w: where(condition, u, w), a, b)
    if isinstance(condition, Condition):
        return condition.choose(a, b)
    try:
        return np.where(condition, a, b) if np.ndim(condition) else a if condition else b
    except DrevoError:
        raise
    except (ValueError, TypeError) as error:
        raise InputError(f"where of {shown(condition)} cannot choose: {error}") from None


def _less(x: Scalar, y: Scalar) -> Any:
    """x < y of plain numbers; InputError where they cannot be compared."""
    try:
        return x < y
    except DrevoError:
        raise
    except (TypeError, ValueError) as error:
        if isinstance(x, Expr) or isinstance(y, Expr):
            raise
        raise InputError(f"{shown(x)} and {shown(y)} cannot be compared: {error}") from None


def minimum(x: Scalar, y: Scalar) -> Scalar:
    """The smaller of two scalars."""
    return where(_less(x, y), x, y)


def maximum(x: Scalar, y: Scalar) -> Scalar:
    """The larger of two scalars."""
    return where(_less(y, x), x, y)


def clip(x: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """x, but at least low and at most high."""
    return minimum(maximum(x, low), high)


def expm1(x: Scalar) -> Scalar:
    """exp(x) - 1 for x <= 0 to a few roundings: u of a small y, then u (2 + u) of 2 y."""
    y = maximum(x, EXP_LEAST) * 0.5**EXP_DOUBLINGS
    u = y * reduce(lambda rest, k: rest * y + 1.0 / math.factorial(k), range(EXP_TERMS, 0, -1), 0.0)
    for _ in range(EXP_DOUBLINGS):
        u = u * (2.0 + u)
    return u


def atan2(y: Scalar, x: Scalar) -> Scalar:
    """The angle of the vector (x, y), radians."""
    for z in (y, x):
        if hasattr(z, "by_angle"):  # a jet or a series
            return z.by_angle(y, x)
    if isinstance(y, Expr):
        return y.atan2(x)
    if isinstance(x, Expr):
        return x.angle_from(y)
    return np.arctan2(y, x) if np.ndim(y) or np.ndim(x) else math.atan2(y, x)


def is_constant(x: Scalar) -> bool:
    """A number or work on parameters alone: free where it multiplies another constant."""
    return x.level < 2 if isinstance(x, Expr) else isinstance(x, (float, int))


def is_negative(x: Scalar) -> bool:
    """A number below 0, a parameter whose own value is, or another node taken with the minus sign."""
    if isinstance(x, Expr):
        return bool(x.edge & 1) != (x.edge >> 1 in x.graph.below_zero)
    return isinstance(x, (float, int)) and x < 0


def partials(outputs: Vector, inputs: Vector) -> Matrix:
    """d output / d input, rows by outputs; of graph nodes only, and by inputs that no other determines."""
    from ..codegen.graph.derivative import partial
    from ..codegen.graph.ops import INPUT

    nodes = {x.edge >> 1 for x in inputs if isinstance(x, Expr) and x.graph.op[x.edge >> 1] == INPUT}
    if inputs and isinstance(inputs[0], Expr) and len(nodes) < len(inputs):
        raise TraceError(
            "this formalism differentiates by the coordinates, of which some follow here from others by formula; "
            "newton_euler and khalil cover that"
        )

    return partial(outputs, inputs)


def is_zero(x: Scalar) -> bool:
    """A structural zero: the number 0, never a value that happens to vanish."""
    return isinstance(x, (float, int)) and x == 0.0


def dot(x: Vector, y: Vector) -> Scalar:
    """The sum of products."""
    total: Scalar = 0.0
    for a, b in zip(x, y):
        total = total + a * b
    return total


def eliminated(A: Matrix, b: Vector) -> list[Scalar]:
    """x with A x = b, of a matrix near a positive one, so that no pivot is lost; A is overwritten."""
    n, x = len(A), list(b)
    for k in range(n):
        over = 1.0 / A[k][k]
        for i in range(k + 1, n):
            part = A[i][k] * over
            x[i] = x[i] - part * x[k]
            for j in range(k + 1, n):
                A[i][j] = A[i][j] - part * A[k][j]
        A[k][k] = over
    for k in reversed(range(n)):
        x[k] = (x[k] - dot(A[k][k + 1 :], x[k + 1 :])) * A[k][k]
    return x


def accumulate(out: dict[Key, Scalar], key: Key, x: Scalar) -> None:
    """Adds x to an entry; structural zeros make none."""
    if not is_zero(x):
        out[key] = out[key] + x if key in out else x


class Context:
    """The hooks of tracing in an algorithm: names, sections, guards, assumptions. On numbers they do nothing."""

    in_metres = False  # lengths keep their unit, for people read their symbols

    def name(self, label: str, x: Scalar) -> None: ...

    def section(self, title: str) -> None: ...

    def guard(self, pivot: Scalar, scale: Scalar, joint: str) -> None: ...

    def assume(self, sentence: str) -> None: ...

    def line(self, left: Sequence[str], right: Sequence[str], equation: str, meaning: str) -> None: ...

    def mark(self, x: Scalar) -> str:
        """@NAME of a parameter that stays a symbol, with its sign; empty for anything else."""
        return ""
