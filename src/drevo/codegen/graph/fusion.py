"""Fusion of products into a sum as one multiply-add: one fixed rule, before anything depends on an order."""

from __future__ import annotations

from collections.abc import Sequence

from .node import Graph
from .ops import ADD, MUL


def fused_products(g: Graph, nodes: Sequence[int], roots: Sequence[int]) -> dict[int, int]:
    """Sum -> the edge to the product that disappears in it: left operand first, a product goes once."""
    uses, op = g.uses(nodes, roots), g.op
    free = {n for n in nodes if op[n] == MUL and uses[n] == 1}
    fused: dict[int, int] = {}
    for n in nodes:
        for edge in (g.a[n], g.b[n]) if op[n] == ADD else ():
            if edge >> 1 in free:
                free.remove(edge >> 1)
                fused[n] = edge
                break
    return fused
