"""Derivatives of a graph within the graph: forward mode, one sweep over the nodes per input, no recursion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import TraceError
from .node import Expr, FloatOrExpr, Graph
from .ops import ADD, CHOICE, DIV, MUL, OPS


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
    op = graph.op[n]
    operands = graph.operands(n)
    u, du = graph.expr(operands[0]), _signed(rate, operands[0])
    rate_of = OPS[op].rate
    if rate_of is not None:
        return rate_of(u, graph.expr(2 * n), du)
    w, dw = graph.expr(operands[1]), _signed(rate, operands[1])
    if op == ADD:
        return du + dw
    if op == MUL:
        return du * w + u * dw
    if op in CHOICE:
        d = graph.choice(op, operands[0], graph.edge(dw))
        return d if isinstance(d, float) else graph.expr(d)
    if op == DIV:
        return (du - graph.expr(2 * n) * dw) / w
    square = u * u + w * w  # atan2(u, w)
    return (w * du - u * dw) / square
