"""Program: named, shaped inputs and outputs over one expression graph, with the names a person would use."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

from .node import Graph
from .ops import ADD, ATAN2, CHOICE, COS, DIV, FUNCTIONS, INPUT, MUL, SIN

CONVENTION = (
    "mul: products (a square is one); add: sums and differences (2x = x + x is one); div; trig: sin or cos calls; "
    "angle_sums: additions whose result is used inside sin and cos only; hoisted: work on parameters alone, "
    "done once per parameter set. Signs, copies, products by 1 or -1 and whole turns off large angles are free."
)


class Input(NamedTuple):
    """A state argument: its scalars are INPUT nodes, row-major."""

    name: str
    shape: tuple[int, ...]
    nodes: tuple[int, ...]

    @property
    def size(self) -> int:
        return prod(self.shape)


class Parameter(NamedTuple):
    """A scalar of the model left symbolic, with the robot's own value."""

    name: str
    node: int
    value: float
    meaning: str = ""


class Output(NamedTuple):
    """A result: one edge per entry, row-major.

    places: where the entries stand, if it has but a few, which only packed code takes; all others are zero, or
    equal to one of these by a symmetry.
    """

    name: str
    shape: tuple[int, ...]
    edges: tuple[int, ...]
    places: tuple[int, ...] | None = None

    def place(self, k: int) -> int:
        """Row-major position of the k-th entry."""
        return k if self.places is None else self.places[k]


PIVOT_FLOOR = {8: 1e-13, 4: 1e-6}  # of its scale, by bytes of a scalar: below it a pivot is what rounding left


class Guard(NamedTuple):
    """A pivot and the scale of what it is left of, as edges: where rounding is all that is left, none of the
    outputs means anything. joint: where, for people."""

    pivot: int
    scale: int
    joint: str


@dataclass(frozen=True, eq=False)
class Program:
    """Traced program that emitters and evaluators read.

    `labels`: node -> names, each with the sign it was given with.
    `sections`: (node count when opened, title), in order: nodes made after it belong to it.
    `units`: quadruples of INPUT nodes that must be unit quaternions (x, y, z, w). `guards`: what machine code
    tests beside its outputs; they are no operations of the quantity.
    `meta`: robot, quantity, formalism, units and whatever an artifact should say about itself; "doubling": "mul"
    where a sequence writes 2x as a product and counts it so; "partial": outputs that may be NaN in places;
    "guard": the sentence of a guard that fails and is no pivot. `stages`: how machine code computes what has
    loops, see `llvm.stages`; the outputs are then but names.
    """

    name: str
    graph: Graph
    inputs: tuple[Input, ...]
    parameters: tuple[Parameter, ...]
    outputs: tuple[Output, ...]
    labels: Mapping[int, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    sections: tuple[tuple[int, str], ...] = ()
    units: tuple[tuple[int, ...], ...] = ()
    guards: tuple[Guard, ...] = ()
    meta: Mapping[str, object] = field(default_factory=dict)
    tail: Any = None  # of machine code, what goes on where the steps end: see `codegen.llvm.tail`
    stages: Any = None

    def __repr__(self) -> str:
        sizes = [", ".join(f"{p.name}{list(p.shape)}" for p in ports[:4]) for ports in (self.inputs, self.outputs)]
        return f"<Program {self.name!r}: {sizes[0]} -> {sizes[1]}, {len(self.order())} nodes>"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that its graph computes, and of the names of what it takes and gives."""
        g = self.graph
        ports = self.name, self.inputs, self.parameters, self.outputs, self.units, self.guards
        return hashlib.sha256(repr((ports, g.op, g.a, g.b, g.constants, g.names)).encode()).hexdigest()

    @property
    def output_edges(self) -> list[int]:
        return [e for o in self.outputs for e in o.edges]

    @property
    def ends(self) -> list[int]:
        """All that machine code computes: outputs and guards."""
        return [*self.output_edges, *(e for g in self.guards for e in g[:2])]

    def order(self) -> list[int]:
        """Live nodes in the order of their making (the algorithm's own order: limb by limb)."""
        return list(self._order)

    @cached_property
    def _order(self) -> list[int]:
        return self.graph.live(self.output_edges)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Operations in the convention of `CONVENTION`."""
        g, order = self.graph, self.order()
        op, level = g.op, g.level
        work = [n for n in order if op[n] > INPUT]
        moving = [n for n in work if level[n] == 2]
        of = Counter(op[n] for n in moving)
        angles = self.angle_sums
        doubled = self._doubled(moving)
        sums = sum(op[n] == ADD or n in doubled for n in moving if n in angles)
        total = {
            "add": of[ADD] + len(doubled) - sums,
            "mul": of[MUL] - len(doubled),
            "div": of[DIV],
            "trig": of[SIN] + of[COS],
            "angle_sums": sums,
            "hoisted": len(work) - len(moving),
        }
        rare = {name: of[k] for k, name in (FUNCTIONS | {ATAN2: "atan2"}).items()}
        rare["choices"] = sum(of[k] for k in CHOICE)
        return total | {name: n for name, n in rare.items() if n}

    @property
    def instructions(self) -> int:
        """Sums, products and quotients where a product that one sum reads is one multiply-add with it."""
        counts, moving = self.counts, [n for n in self.order() if self.graph.level[n] == 2]
        fused = fused_products(self.graph, moving, self.output_edges)
        return counts["add"] + counts["mul"] + counts["div"] - len(fused.keys() - self.angle_sums)

    def _doubled(self, nodes: Sequence[int]) -> set[int]:
        """Products 2 x that are written as x + x."""
        g = self.graph
        two = None if self.doubling_is_mul else g.known(2.0)
        return {n for n in nodes if g.op[n] == MUL and two in (g.a[n], g.b[n])}

    @cached_property
    def angle_sums(self) -> set[int]:
        """Nodes whose only users are sines, cosines and other such sums."""
        g, order = self.graph, self.order()
        op, a = g.op, g.a
        found = self._angles([a[n] >> 1 for n in order if op[n] in (SIN, COS)])
        found.difference_update(e >> 1 for e in self.output_edges)
        for n in reversed(order) if found else ():  # users before what they use
            if op[n] > INPUT and op[n] not in (SIN, COS) and not (op[n] == ADD and n in found):
                found.difference_update(e >> 1 for e in g.operands(n))
        return found

    def _angles(self, stack: list[int]) -> set[int]:
        """The sums, and products, that these nodes are or add."""
        op, a, b = self.graph.op, self.graph.a, self.graph.b
        found: set[int] = set()
        while stack:
            n = stack.pop()
            if n not in found and op[n] in (ADD, MUL):
                found.add(n)
                stack += (a[n] >> 1, b[n] >> 1) if op[n] == ADD else ()
        return found

    @property
    def doubling_is_mul(self) -> bool:
        """2 x counts and is written as a product, not as x + x."""
        return self.meta.get("doubling") == "mul"


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
