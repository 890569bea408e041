"""The one table of operations: what a node may be, what it costs, what it means on numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

CONST, PARAMETER, INPUT, ADD, MUL, DIV, SIN, COS, SQRT, ATAN2, WHEN, UNLESS = range(12)
CHOICE = (WHEN, UNLESS)  # of c and x: x where c > 0, or where it is not, else 0; what is not taken may be anything
BINARY = (ADD, MUL, DIV, ATAN2, *CHOICE)  # ATAN2 stands on parameters only: the phase of a merged constant


class Op(NamedTuple):
    """arity, and the meaning on anything that has + - * / (floats, fractions, arrays).

    rate: of a function of one argument, from the argument, the value and the argument's rate. Such a function has
    its name in Python's math, in NumPy, C and MATLAB, and as an intrinsic of LLVM.
    """

    name: str
    arity: int
    apply: Callable[..., Any] | None = None
    rate: Callable[[Any, Any, Any], Any] | None = None


def _sin(x: Any) -> Any:
    return np.sin(x)


def _cos(x: Any) -> Any:
    return np.cos(x)


def _sqrt(x: Any) -> Any:
    return np.sqrt(x)


def _atan2(y: Any, x: Any) -> Any:
    return np.arctan2(y, x)


def _when(c: Any, x: Any) -> Any:
    return np.where(c > 0, x, 0.0) if np.ndim(c) else x if c > 0 else 0.0


def _unless(c: Any, x: Any) -> Any:
    return np.where(c > 0, 0.0, x) if np.ndim(c) else 0.0 if c > 0 else x


OPS: tuple[Op, ...] = (
    Op("const", 0),
    Op("parameter", 0),
    Op("input", 0),
    Op("add", 2, lambda x, y: x + y),
    Op("mul", 2, lambda x, y: x * y),
    Op("div", 2, lambda x, y: x / y),
    Op("sin", 1, _sin, lambda u, y, du: u.cos() * du),
    Op("cos", 1, _cos, lambda u, y, du: -(u.sin() * du)),
    Op("sqrt", 1, _sqrt, lambda u, y, du: 0.5 * du / y),
    Op("atan2", 2, _atan2),
    Op("when", 2, _when),
    Op("unless", 2, _unless),
)
BY_NAME = {row.name: op for op, row in enumerate(OPS)}
FUNCTIONS = {op: row.name for op, row in enumerate(OPS) if row.arity == 1 and op not in (SIN, COS)}
