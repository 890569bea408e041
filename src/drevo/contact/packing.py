"""Blocks of values that one stage leaves to others: numbers stay numbers, equal values are one, signs are free."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..codegen.graph.node import Expr, Graph
from ..mechanics.scalar import Scalar

Packed = float | tuple[int, int]  # a number, or where it stands and its sign


class Pack:
    """A block in the making: `put` values of a graph, then read them back from the block's inputs by `of`."""

    def __init__(self) -> None:
        self.places: dict[int, int] = {}

    def put(self, x: Scalar) -> Packed:
        if not isinstance(x, Expr):
            return float(x)
        place = self.places.setdefault(x.edge >> 1, len(self.places))
        return place, x.edge & 1

    def put_all(self, values: Iterable[Scalar]) -> list[Packed]:
        return [self.put(x) for x in values]

    def __len__(self) -> int:
        return len(self.places)

    def edges(self) -> tuple[int, ...]:
        """The values that the block holds, as edges of the graph that made it."""
        return tuple(2 * n for n in self.places)

    def values(self, graph: Graph) -> list[Any]:
        """The values that the block holds, as scalars of the graph."""
        return [graph.expr(2 * n) for n in self.places]


def of(block: Sequence[Scalar], x: Packed) -> Scalar:
    """A packed value, read from its block."""
    if isinstance(x, float):
        return x
    return -block[x[0]] if x[1] else block[x[0]]
