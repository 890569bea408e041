"""Derivatives of a graph within the graph, by one sweep over its nodes and no recursion.

Forward mode: from rates of the inputs to those of the outputs. Reverse mode: from cotangents of the outputs to
those of the inputs (Griewank and Walther 2008, chapters 3.1 and 3.2). Both read the one rule that the table of
operations has: a rate is linear in the rates of the arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

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


class SideBySide(Protocol):
    """A graph in which a value may be one of each of several limbs."""

    @property
    def totals(self) -> Mapping[int, int]:
        """Nodes that are sums over the limbs, and the edges of what."""
        ...

    def wide(self, edge: int) -> bool:
        """Every limb has its own."""
        ...

    def total(self, x: FloatOrExpr) -> FloatOrExpr:
        """The sum over the limbs."""
        ...


def cotangents(
    outputs: Sequence[FloatOrExpr],
    given: Sequence[FloatOrExpr],
    inputs: Sequence[Expr],
    limbs: SideBySide | None = None,
) -> list[FloatOrExpr]:
    """sum over the outputs of its cotangent times d output / d input, for every input.

    limbs: a sum over them hands its cotangent to each, and what they all read has the sum of theirs.
    """
    if not inputs:
        return []
    graph = inputs[0].graph
    seeds = [(o.edge, w) for o, w in zip(outputs, given) if isinstance(o, Expr)]
    back = _Backward(graph, limbs, [e for e, _ in seeds], {x.edge >> 1 for x in inputs})
    for edge, w in seeds:
        back.give(edge, w, isinstance(w, Expr) and back.wide(w.edge))
    for n in reversed(back.nodes):
        back.hand_on(n)
    return [_signed(back.total, x.edge) for x in inputs]


class _Backward:
    """total: cotangents by node. late: what each limb gives to a node that all of them read. moved: the inputs and
    what depends on them."""

    def __init__(self, graph: Graph, limbs: SideBySide | None, ends: Sequence[int], moved: set[int]) -> None:
        self.graph, self.limbs, self.moved = graph, limbs, moved
        self.totals = dict(limbs.totals) if limbs else {}
        self.total: dict[int, FloatOrExpr] = {}
        self.late: dict[int, FloatOrExpr] = {}
        ends = [*ends, *self.totals.values()]
        self.nodes = graph.live([*ends, *(2 * n for n in self.totals)])
        for n in self.nodes:
            if any(e >> 1 in moved for e in (*graph.operands(n), self.totals.get(n, 2 * n))):
                moved.add(n)
        self.sums, self.beside = _rotations(graph, self.nodes, ends)

    def wide(self, edge: int) -> bool:
        return self.limbs is not None and self.limbs.wide(edge)

    def give(self, edge: int, d: FloatOrExpr, wide: bool) -> None:
        """wide: d is of each limb."""
        n = edge >> 1
        if n in self.moved and not _is_zero(d):
            to = self.late if wide and not self.wide(edge) else self.total
            to[n] = to.get(n, 0.0) + (-d if edge & 1 else d)

    def hand_on(self, n: int) -> None:
        """What a node has goes to its operands."""
        if self.limbs and n in self.late:
            self.total[n] = self.total.get(n, 0.0) + self.limbs.total(self.late[n])
        if n not in self.total:
            return
        g, x, wide, operands = self.graph, self.total[n], self.wide(2 * n), self.graph.operands(n)
        if n in self.totals:
            self.give(self.totals[n], x, True)
        elif n in self.beside and (angle := g.a[self.sums[n].c >> 1]) >> 1 in self.moved:
            turned = self.sums[n]
            self.give(angle, x * g.expr(self.beside[n]), wide)
            self.give(turned.x, x * g.expr(turned.c), wide)
            self.give(turned.y, x * g.expr(turned.s), wide)
        else:
            for k, e in enumerate(operands):
                if e >> 1 in self.moved:
                    self.give(e, _rate(g, n, [x if i == k else 0.0 for i in range(len(operands))]), wide)


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
