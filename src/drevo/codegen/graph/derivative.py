"""Derivatives of a graph within the graph: forward mode, one sweep over the nodes per input, no recursion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import TraceError
from .node import Expr, FloatOrExpr, Graph
from .ops import CHOICE, OPS


def partial(outputs: Sequence[FloatOrExpr], inputs: Sequence[FloatOrExpr]) -> list[list[FloatOrExpr]]:
    """d output / d input as scalars of the same graph: rows by outputs, columns by inputs."""
    if not all(isinstance(x, Expr) for x in inputs):
        raise TraceError("derivatives are written out of traced equations: the inputs must be graph nodes")
    columns = [_column(outputs, x) for x in inputs if isinstance(x, Expr)]
    return [[column[r] for column in columns] for r in range(len(outputs))]


def _column(outputs: Sequence[FloatOrExpr], x: Expr) -> list[FloatOrExpr]:
    graph = x.graph
    edges = [o.edge for o in outputs if isinstance(o, Expr)]
    rate: dict[int, FloatOrExpr] = {x.edge >> 1: -1.0 if x.edge & 1 else 1.0}  # absent: zero
    for n in graph.live(edges):
        if n not in rate and any(e >> 1 in rate for e in graph.operands(n)):
            d = _rate(graph, n, rate)
            if not (isinstance(d, float) and d == 0.0):
                rate[n] = d
    return [_signed(rate, o.edge) if isinstance(o, Expr) else 0.0 for o in outputs]


def _signed(rate: dict[int, FloatOrExpr], edge: int) -> FloatOrExpr:
    d = rate.get(edge >> 1, 0.0)
    return -d if edge & 1 else d


def _rate(graph: Graph, n: int, rate: dict[int, FloatOrExpr]) -> Any:
    """The rate of one operation from the rates of its operands."""
    op, operands = graph.op[n], graph.operands(n)
    rates = [_signed(rate, e) for e in operands]
    if op in CHOICE:
        d = graph.choice(op, operands[0], graph.edge(rates[1]))
        return d if isinstance(d, float) else graph.expr(d)
    return OPS[op].rate(*map(graph.expr, operands), graph.expr(2 * n), *rates)  # type: ignore[misc]
