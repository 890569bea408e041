"""The one table of operations: what a node may be, what it costs, what it means on numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

CONST, PARAMETER, INPUT, ADD, MUL, DIV, SIN, COS, SQRT, ATAN2, WHEN, UNLESS = range(12)
CHOICE = (WHEN, UNLESS)  # of c and x: x where c > 0, or where it is not, else 0; what is not taken may be anything
BINARY = frozenset((ADD, MUL, DIV, ATAN2, *CHOICE))


class Op(NamedTuple):
    """arity, and the meaning on anything that has + - * / (floats, fractions, arrays).

    rate: from the arguments, the value and the rates of the arguments. A function of one argument has its name in
    Python's math, in NumPy, C and MATLAB, and as an intrinsic of LLVM.
    """

    name: str
    arity: int
    apply: Callable[..., Any] | None = None
    rate: Callable[..., Any] | None = None


def _when(c: Any, x: Any) -> Any:
    return np.where(c > 0, x, 0.0) if np.ndim(c) else x if c > 0 else 0.0


def _unless(c: Any, x: Any) -> Any:
    return np.where(c > 0, 0.0, x) if np.ndim(c) else 0.0 if c > 0 else x


def _turn(u: Any, w: Any, y: Any, du: Any, dw: Any) -> Any:
    square = u * u + w * w
    return (w * du - u * dw) / square


OPS: tuple[Op, ...] = (
    Op("const", 0),
    Op("parameter", 0),
    Op("input", 0),
    Op("add", 2, lambda x, y: x + y, lambda u, w, y, du, dw: du + dw),
    Op("mul", 2, lambda x, y: x * y, lambda u, w, y, du, dw: du * w + u * dw),
    Op("div", 2, lambda x, y: x / y, lambda u, w, y, du, dw: (du - y * dw) / w),
    Op("sin", 1, np.sin, lambda u, y, du: u.cos() * du),
    Op("cos", 1, np.cos, lambda u, y, du: -(u.sin() * du)),
    Op("sqrt", 1, np.sqrt, lambda u, y, du: 0.5 * du / y),
    Op("atan2", 2, np.arctan2, _turn),
    Op("when", 2, _when),
    Op("unless", 2, _unless),
)
BY_NAME = {row.name: op for op, row in enumerate(OPS)}
FUNCTIONS = {op: row.name for op, row in enumerate(OPS) if row.arity == 1 and op not in (SIN, COS)}
