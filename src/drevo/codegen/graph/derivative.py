"""Derivatives of a graph within the graph, by one sweep over its nodes and no recursion.

Forward mode: from rates of the inputs to those of the outputs. Reverse mode: from cotangents of the outputs to
those of the inputs (Griewank and Walther 2008, chapters 3.1 and 3.2). Both read the one rule that the table of
operations has: a rate is linear in the rates of the arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import TraceError
from . import levers
from .node import Expr, FloatOrExpr, Graph
from .ops import CHOICE, OPS
from .plane import PlaneSum, partners, plane_sums


def partial(outputs: Sequence[FloatOrExpr], inputs: Sequence[FloatOrExpr]) -> list[list[FloatOrExpr]]:
    """d output / d input as scalars of the same graph: rows by outputs, columns by inputs."""
    if not all(isinstance(x, Expr) for x in inputs):
        raise TraceError("derivatives are written out of traced equations: the inputs must be graph nodes")
    columns = [tangents(outputs, {x.edge: 1.0}) for x in inputs if isinstance(x, Expr)]
    return [[column[r] for column in columns] for r in range(len(outputs))]


def tangents(outputs: Sequence[FloatOrExpr], rates: Mapping[int, FloatOrExpr]) -> list[FloatOrExpr]:
    """The rates of the outputs, from those of edges on which they depend; all others stand still."""
    known = [o for o in outputs if isinstance(o, Expr)]
    if not known:
        return [0.0] * len(outputs)
    graph = known[0].graph
    rate = {e >> 1: -d if e & 1 else d for e, d in rates.items()}  # absent: zero
    nodes = graph.live([o.edge for o in known])
    sums, beside = _rotations(graph, nodes, [o.edge for o in known])
    for n in nodes:
        operands = graph.operands(n)
        if n not in rate and any(e >> 1 in rate for e in operands):
            if n in beside and (angle := graph.a[sums[n].c >> 1]) >> 1 in rate:
                c, s, x, y = sums[n]
                d = graph.expr(c) * _signed(rate, x) + graph.expr(s) * _signed(rate, y)
                d = d + graph.expr(beside[n]) * _signed(rate, angle)
            else:
                d = _rate(graph, n, [_signed(rate, e) for e in operands])
            if not _is_zero(d):
                rate[n] = d
    return [_signed(rate, o.edge) if isinstance(o, Expr) else 0.0 for o in outputs]


def cotangents(
    outputs: Sequence[FloatOrExpr],
    given: Sequence[FloatOrExpr],
    inputs: Sequence[Expr],
) -> list[FloatOrExpr]:
    """sum over the outputs of its cotangent times d output / d input, for every input."""
    if not inputs:
        return []
    graph = inputs[0].graph
    seeds = [(o.edge, w) for o, w in zip(outputs, given) if isinstance(o, Expr)]
    back = _Backward(graph, [e for e, _ in seeds], {x.edge >> 1 for x in inputs})
    for edge, w in seeds:
        back.give(edge, w)
    for n in reversed(back.nodes):
        back.hand_on(n)
    return [_signed(back.total, x.edge) for x in inputs]


class _Backward:
    """The sweep from the outputs back. total: cotangents by node. moved: the inputs and what depends on them."""

    def __init__(self, graph: Graph, ends: Sequence[int], moved: set[int]) -> None:
        self.graph, self.moved = graph, moved
        self.total: dict[int, FloatOrExpr] = {}
        self.nodes = graph.live(ends)
        for n in self.nodes:
            if any(e >> 1 in moved for e in graph.operands(n)):
                moved.add(n)
        self.sums, self.beside = _rotations(graph, self.nodes, ends)

    def give(self, edge: int, d: FloatOrExpr) -> None:
        """Adds d to the cotangent of an edge."""
        n = edge >> 1
        if n in self.moved and not _is_zero(d):
            self.total[n] = self.total.get(n, 0.0) + (-d if edge & 1 else d)

    def hand_on(self, n: int) -> None:
        """Gives the cotangent of a node to its operands."""
        if n not in self.total:
            return
        g, x, operands = self.graph, self.total[n], self.graph.operands(n)
        if n in self.beside and (angle := g.a[self.sums[n].c >> 1]) >> 1 in self.moved:
            turned = self.sums[n]
            self.give(angle, x * g.expr(self.beside[n]))
            self.give(turned.x, x * g.expr(turned.c))
            self.give(turned.y, x * g.expr(turned.s))
        else:
            for k, e in enumerate(operands):
                if e >> 1 in self.moved:
                    self.give(e, _rate(g, n, [x if i == k else 0.0 for i in range(len(operands))]))


def _rotations(
    graph: Graph, nodes: Sequence[int], ends: Sequence[int]
) -> tuple[dict[int, PlaneSum], dict[int, int]]:
    """Sums c x + s y, and the edges c y - s x of those that have it: their rates by the angle."""
    sums = {} if "rates" in levers.off() else plane_sums(graph, nodes, ends)
    return sums, partners(sums)


def _signed(rate: Mapping[int, FloatOrExpr], edge: int) -> FloatOrExpr:
    d = rate.get(edge >> 1, 0.0)
    return -d if edge & 1 else d


def _is_zero(d: FloatOrExpr) -> bool:
    return isinstance(d, float) and d == 0.0


def _rate(graph: Graph, n: int, rates: Sequence[FloatOrExpr]) -> Any:
    """The rate of one operation from the rates of its operands."""
    op, operands = graph.op[n], graph.operands(n)
    if op in CHOICE:
        d = graph.choice(op, operands[0], graph.edge(rates[1]))
        return d if isinstance(d, float) else graph.expr(d)
    return OPS[op].rate(*map(graph.expr, operands), graph.expr(2 * n), *rates)  # type: ignore[misc]
