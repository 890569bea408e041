"""Which products go into a sum as one multiply-add: one fixed rule, before anything depends on an order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .node import Graph
from .ops import ADD, MUL


def fused_products(g: Graph, nodes: Sequence[int], roots: Sequence[int]) -> dict[int, int]:
    """Sum -> the edge to the product that disappears in it: left operand first, a product goes once."""
    uses = Counter(e >> 1 for n in nodes for e in g.operands(n)) + Counter(e >> 1 for e in roots)
    free = {n for n in nodes if g.op[n] == MUL and uses[n] == 1}
    fused: dict[int, int] = {}
    for n in nodes:
        edges = (g.a[n], g.b[n]) if g.op[n] == ADD else ()
        edge = next((e for e in edges if e >> 1 in free), None)
        if edge is not None:
            free.remove(edge >> 1)
            fused[n] = edge
    return fused
