"""Functions of users over scalars as graphs: each is called once; its graph is what runs and what is keyed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from ..codegen.graph.evaluate import evaluate_edges
from ..codegen.graph.ops import BY_NAME, CHOICE, FUNCTIONS, WHEN
from ..codegen.graph.program import Program
from ..mechanics.scalar import Scalar, Vector, atan2, cos, named_function, sin, sqrt, where

_MEANING: dict[int, Any] = {op: named_function(name) for op, name in FUNCTIONS.items()}
_MEANING |= {BY_NAME["sin"]: sin, BY_NAME["cos"]: cos, BY_NAME["sqrt"]: sqrt, BY_NAME["atan2"]: atan2}
_MEANING |= {
    op: lambda c, x, op=op: where(c > 0.0, *((x, 0.0) if op == WHEN else (0.0, x))) for op in CHOICE
}  # fmt: skip


class TracedFunction:
    """A function over scalars as the graph of one call of it; it computes the same on scalars of every kind.

    What the function read beside its arguments is in the graph, and so in `digest`: equal graphs are equal.
    """

    def __init__(self, program: Program) -> None:
        self.program, self.digest, self.__name__ = program, program.digest, program.name

    def __call__(self, *given: Vector) -> list[Sequence[Scalar]]:
        """The scalars of each output, from those of each input."""
        p = self.program
        leaves = {n: x for port, values in zip(p.inputs, given) for n, x in zip(port.nodes, values, strict=True)}
        found = iter(evaluate_edges(p.graph, p.output_edges, leaves, float, _MEANING))
        return [list(islice(found, len(o.edges))) for o in p.outputs]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TracedFunction) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)
