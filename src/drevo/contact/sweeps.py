"""Derivatives of a step times a vector, by the implicit function theorem, in stages: one way for every law.

A step solves R(x, a) = 0 for its unknowns a, with x = q, v, tau and parameters, and ends at q1, v1 of x and a. So
a changes by -R_a^-1 R_x dx. "jvp" sweeps forward over R, solves, and sweeps forward over the end; "vjp" goes the
other way, with the transpose of the same solution. What holds, and on which piece of the law, stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..codegen.graph.derivative import cotangents, tangents
from ..codegen.graph.node import Expr, Graph
from ..codegen.graph.ops import CONST
from ..codegen.graph.program import Input, Parameter, Program
from ..codegen.graph.rebuild import part_of_graph
from ..codegen.lower.loops import Place
from ..compiler.products import number_rates, tangent_size
from ..compiler.tracer import nodes_of, unknowns
from ..mechanics.scalar import Scalar, Vector, is_zero
from ..mechanics.tree import Tree


class Chart(NamedTuple):
    """A linear map from the tangents that callers know to those of a block's numbers, or back; its transpose."""

    size: int
    forward: Callable[[Vector], Sequence[Scalar]]
    backward: Callable[[Vector], Sequence[Scalar]]


def argument_chart(tree: Tree, q: Sequence[Expr], numbers: bool) -> Chart:
    """From tangents of q, of size nq if `numbers`, to rates of its numbers."""
    size = tangent_size(tree, numbers)

    def backward(bars: Vector) -> list[Scalar]:
        d = unknowns(q[0].graph, "d", size) if size else []
        return cotangents(number_rates(tree, q, d, numbers), bars, d)

    return Chart(size, lambda d: number_rates(tree, q, d, numbers), backward)


def result_chart(tree: Tree, q: Sequence[Any], numbers: bool) -> Chart:
    """From rates of the numbers of q, which leave quaternions unit, to its tangents, with A of `number_rates`:
    4 A^T or A^T times them; with `numbers` these rates."""

    def forward(rates: Vector) -> Sequence[Scalar]:
        if numbers:
            return rates
        d = unknowns(q[0].graph, "d", tree.nv) if tree.nv else []
        return _quadrupled(tree, cotangents(number_rates(tree, q, d), rates, d))

    def backward(bar: Vector) -> Sequence[Scalar]:
        return bar if numbers else number_rates(tree, q, _quadrupled(tree, bar))

    return Chart(tangent_size(tree, numbers), forward, backward)


def _quadrupled(tree: Tree, d: Vector) -> list[Scalar]:
    """Four times those that turn: A^T A, A of `number_rates`, is the unit matrix, of quaternions a quarter."""
    out = list(d)
    for o in tree.owners():
        if o.nq > o.nv:
            at = slice(o.v + o.nv - 3, o.v + o.nv)
            out[at] = [4.0 * x for x in out[at]]
    return out


class StepSweep(NamedTuple):
    """A part of R, or the end of a step: its ends, by block and place, as functions of its leaves.

    reads: the blocks that hold its values. charts: of blocks among leaves and ends. slot: the contact for which it
    is swept, where that touches.
    """

    name: str
    graph: Graph
    reads: Sequence[Input]
    leaves: Mapping[str, Sequence[Expr]]
    ends: Mapping[str, Mapping[int, Scalar]]
    charts: Mapping[str, Chart] = {}
    symbols: tuple[Parameter, ...] = ()
    slot: int | None = None


UNKNOWNS = ("a", "ended", "pushed_ended")  # leaves that the solution writes: accelerations, rates after the step
SOLVED = ("R", "w", "pushed_R", "pushed_w")  # ends that the solution reads, zero or not
Called = tuple[str, int | None]  # a stage, and the slot for which it is called


class ProductStages:
    """The stages of sweeps, added to `parts`. mark: "dot" of "jvp", "bar" of "vjp", by which blocks end.

    before, after: the stages on both sides of the solution; cleared: blocks that begin at zero. only: the argument
    that has rates, where the others have none; the names of its stages end with it.
    """

    def __init__(
        self, sizes: dict[str, int], parts: dict[str, Program], sweeps: Sequence[StepSweep], end: StepSweep,
        mark: str, only: str = "",
    ) -> None:  # fmt: skip
        self.sizes, self.parts, self.mark, self.only = sizes, parts, mark, only
        self.cleared: list[str] = []
        self.blocks: dict[tuple[Graph, str], tuple[Input, list[Expr]]] = {}
        self.written = set[str]()
        self.moving = {only, *UNKNOWNS} if only else set[str]()
        add = self._forward if mark == "dot" else self._backward
        order = [sweeps, [end]] if mark == "dot" else [[end], sweeps[::-1]]
        self.before, self.after = ([call for x in some if (call := add(x))] for some in order)

    def _block(self, x: StepSweep, block: str) -> tuple[Input, list[Expr]]:
        name, chart = f"{block}_{self.mark}", x.charts.get(block)
        self.sizes[name] = size = max(1, chart.size if chart else self.sizes[block])
        if (x.graph, name) not in self.blocks:
            values = unknowns(x.graph, name, size)
            self.blocks[x.graph, name] = Input(name, (size,), nodes_of(values)), values
        return self.blocks[x.graph, name]

    def _forward(self, x: StepSweep) -> Called | None:
        """Rates of the ends from those of the leaves."""
        given = {leaf: self._block(x, leaf) for leaf in x.leaves if not self.only or leaf in self.moving}
        rates = dict[int, Scalar]()
        for leaf, (_, d) in given.items():
            moved = x.charts[leaf].forward(d) if leaf in x.charts else d
            rates |= {y.edge: z for y, z in zip(x.leaves[leaf], moved)}
        flat = iter(tangents([y for values in x.ends.values() for y in values.values()], rates))
        found = {end: {k: next(flat) for k in values} for end, values in x.ends.items()}
        if self.only:
            zero = {end for end, values in found.items() if all(map(is_zero, values.values()))}
            found = {end: y for end, y in found.items() if end not in zero or (end in SOLVED and x.slot is None)}
            self.moving |= {*found} - zero
        return self._add(x, found, given) if found else None

    def _backward(self, x: StepSweep) -> Called:
        """Cotangents of the leaves from those of the ends."""
        given = {end: self._block(x, end) for end in x.ends}
        seeds = list[Scalar]()
        for end, values in x.ends.items():
            given_bars = given[end][1]
            bars = x.charts[end].backward(given_bars) if end in x.charts else given_bars
            seeds += [bars[k] for k in values]
        ends = [y for values in x.ends.values() for y in values.values()]
        flat = iter(cotangents(ends, seeds, [y for values in x.leaves.values() for y in values]))
        found = {leaf: dict(enumerate([next(flat) for _ in values])) for leaf, values in x.leaves.items()}
        return self._add(x, found, given)

    def _add(
        self,
        x: StepSweep,
        found: Mapping[str, Mapping[int, Scalar]],
        given: Mapping[str, tuple[Input, list[Expr]]],
    ) -> Called:
        """Declares the stage; to what an earlier one has written, and to what only contacts write, it adds."""
        inputs, outputs = [*x.reads, *(port for port, _ in given.values())], dict[str, list[int]]()
        for block, values in found.items():
            if block in x.charts:
                chart = x.charts[block]
                move = chart.forward if self.mark == "dot" else chart.backward
                values = dict(enumerate(move([*values.values()])))
            port, old = self._block(x, block)
            if port.name not in self.written and x.slot is None:
                outputs[port.name] = [x.graph.edge(y) for y in values.values()] or [x.graph.edge(0.0)]
            else:
                if port.name not in self.written:
                    self.cleared.append(port.name)
                inputs.append(port)
                more = {k: old[k] + y for k, y in values.items() if not is_zero(y)}
                outputs |= {Place(port.name, k): [x.graph.edge(y)] for k, y in more.items()}
            self.written.add(port.name)
        name = f"{x.name}_{self.mark}{self.only and '_'}{self.only}"
        self.parts[name] = part_of_graph(name, x.graph, tuple(inputs), outputs, x.symbols)
        return name, x.slot


def kept_apart(
    parts: Sequence[Program], name: str, moving: Callable[[str], bool]
) -> tuple[Program, list[Program]]:
    """A program that writes a block of this name, from what stands still, and the others as functions of that.

    parts: over one graph; moving: of the inputs that do not stand still.
    """
    graph, kept = parts[0].graph, dict[int, None]()
    for part in parts:
        known = {n for port in part.inputs if moving(port.name) for n in port.nodes}
        live = graph.live(part.output_edges)
        for n in live:
            operands = [e >> 1 for e in graph.operands(n)]
            if n in known or any(x in known for x in operands):
                kept.update(dict.fromkeys(x for x in operands if x not in known and graph.op[x] != CONST))
                known.add(n)
        ends = [e >> 1 for e in part.output_edges]
        kept.update(dict.fromkeys(x for x in ends if x not in known and graph.op[x] != CONST))
    still = {port.name: port for part in parts for port in part.inputs if not moving(port.name)}
    block = Input(name, (len(kept),), tuple(kept))
    first = part_of_graph(name, graph, tuple(still.values()), {name: [2 * n for n in kept]}, parts[0].parameters)
    rest = [replace(part, inputs=(*(port for port in part.inputs if moving(port.name)), block)) for part in parts]
    return first, rest
