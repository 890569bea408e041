"""Program: named, shaped inputs and outputs over one expression graph, with the names a person would use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from .node import ADD, COS, DIV, INPUT, MUL, SIN, SQRT, Graph

CONVENTION = (
    "mul: products (x^2 is one); add: sums and differences (2x = x + x is one); div; trig: sin or cos calls; "
    "angle_sums: additions whose result is used inside sin and cos only; hoisted: work on parameters alone, "
    "done once per parameter set. Signs, copies and products by +-1 are free."
)


@dataclass(frozen=True, slots=True)
class Input:
    """A state argument: its scalars are INPUT nodes, row-major."""

    name: str
    shape: tuple[int, ...]
    nodes: tuple[int, ...]

    @property
    def size(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A scalar of the model left symbolic, with the robot's own value."""

    name: str
    node: int
    value: float
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Output:
    """A result: one edge per entry, row-major."""

    name: str
    shape: tuple[int, ...]
    edges: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """What every emitter and evaluator reads. `labels`: node -> names, each with the sign it was given with.

    `sections`: (node count when opened, title), in order: nodes made after it belong to it.
    `units`: quadruples of INPUT nodes that must be unit quaternions (x, y, z, w).
    `meta`: robot, quantity, formalism, units and whatever an artifact should say about itself; "doubling": "mul"
    where a sequence writes 2x as a product and counts it so.
    """

    name: str
    graph: Graph
    inputs: tuple[Input, ...]
    parameters: tuple[Parameter, ...]
    outputs: tuple[Output, ...]
    labels: Mapping[int, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    sections: tuple[tuple[int, str], ...] = ()
    units: tuple[tuple[int, ...], ...] = ()
    meta: Mapping[str, object] = field(default_factory=dict)

    @property
    def output_edges(self) -> list[int]:
        return [e for o in self.outputs for e in o.edges]

    def order(self) -> list[int]:
        """Live nodes in the order of their making (the algorithm's own order: limb by limb)."""
        return self.graph.live(self.output_edges)

    @property
    def counts(self) -> dict[str, int]:
        """Operations in the convention of `CONVENTION`."""
        g, order = self.graph, self.order()
        # a sum that feeds another angle sum only is itself an angle sum: settle from the users backwards
        plain: set[int] = set(e >> 1 for e in self.output_edges)
        for n in reversed(order):
            if g.op[n] in (SIN, COS) or (g.op[n] == ADD and n not in plain):
                continue
            plain.update(e >> 1 for e in g.operands(n))
        total = dict.fromkeys(("add", "mul", "div", "trig", "angle_sums", "hoisted"), 0)
        for n in order:
            op = g.op[n]
            if op <= INPUT:
                continue
            if g.level[n] < 2:
                total["hoisted"] += 1
            elif op == ADD:
                total["add" if n in plain else "angle_sums"] += 1
            elif op == MUL:
                sum_of = "add" if n in plain else "angle_sums"
                total[sum_of if self._doubles(n) and not self.doubling_is_mul else "mul"] += 1
            elif op == DIV:
                total["div"] += 1
            elif op in (SIN, COS):
                total["trig"] += 1
            elif op == SQRT:
                total["sqrt"] = total.get("sqrt", 0) + 1
        return total

    @property
    def doubling_is_mul(self) -> bool:
        """2 x counts and is written as a product, not as x + x."""
        return self.meta.get("doubling") == "mul"

    def _doubles(self, n: int) -> bool:
        """2 x, which is written x + x."""
        g = self.graph
        return any(g.level[e >> 1] == 0 and g.expr(e) == 2.0 for e in g.operands(n))
