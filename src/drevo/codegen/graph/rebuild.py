"""A program over a new graph, some of its sums and products made otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from .node import FloatOrExpr, Graph
from .ops import ADD, ATAN2, CHOICE, CONST, DIV, INPUT, MUL
from .program import Input, Output, Parameter, Program

Labels = tuple[tuple[str, int], ...]


def rebuilt(
    program: Program,
    sums: Mapping[int, Sequence[int]],
    products: Mapping[int, tuple[int, ...]],
    early: bool = False,
) -> Program:
    """The program with these nodes made from these edges; nodes keep their order and their sections.

    New nodes, with numbers beyond those of the graph, are made at their first use. early: every term is added as
    soon as it is made, so that a sum never keeps more than itself alive; its parts may then stand in the section
    of another.
    """
    copy = (_EagerCopy if early else _Copy)(program, sums, products)
    copy.run()
    new = copy.new
    return replace(
        program,
        graph=copy.graph,
        inputs=tuple(p._replace(nodes=tuple(new[n] >> 1 for n in p.nodes)) for p in program.inputs),
        parameters=tuple(p._replace(node=new[p.node] >> 1) for p in program.parameters),
        outputs=tuple(o._replace(edges=tuple(new[e >> 1] ^ (e & 1) for e in o.edges)) for o in program.outputs),
        labels=copy.labels(),
        sections=tuple((copy.starts[at], title) for at, title in program.sections),
        units=tuple(tuple(new[n] >> 1 for n in unit) for unit in program.units),
        guards=tuple(g._replace(pivot=copy.edge(g.pivot), scale=copy.edge(g.scale)) for g in copy.guards),
    )


def part_of_graph(
    name: str,
    graph: Graph,
    inputs: tuple[Input, ...],
    results: Mapping[str, Iterable[int]],
    parameters: tuple[Parameter, ...],
) -> Program:
    """A program over a graph that others share: what is read of it, and what of it is a result."""
    outputs = tuple(Output(block, (len(tuple(edges)),), tuple(edges)) for block, edges in results.items())
    return Program(name, graph, inputs, parameters, outputs)


def rebuilt_on(
    graph: Graph, program: Program, given: Mapping[str, Sequence[FloatOrExpr]]
) -> list[list[FloatOrExpr]]:
    """The results of a program on values of another graph, which goes on with them; inputs by their names."""
    leaves = {n: graph.edge(x) for p in program.inputs for n, x in zip(p.nodes, given[p.name], strict=True)}
    leaves |= {p.node: graph.edge(x) for p, x in zip(program.parameters, given.get("parameters", ()))}
    copy = _Copy(program, {}, {}, graph, leaves)
    return [[graph.expr(copy.edge(e)) for e in output.edges] for output in program.outputs]


class _Copy:
    """new: old node -> its edge in the new graph. starts: where the sections open there."""

    def __init__(
        self,
        program: Program,
        sums: Mapping[int, Sequence[int]],
        products: Mapping[int, tuple[int, ...]],
        graph: Graph | None = None,
        leaves: Mapping[int, int] | None = None,
    ) -> None:
        self.program, self.old, self.sums, self.products = program, program.graph, sums, products
        g = self.graph = Graph() if graph is None else graph
        self.rules = {ADD: g.add, MUL: g.mul, DIV: g.div, ATAN2: g.atan2}
        self.new: dict[int, int] = dict(leaves or {})
        self.starts: dict[int, int] = {}

    def run(self) -> None:
        leaves = {n for p in self.program.inputs for n in p.nodes} | {p.node for p in self.program.parameters}
        opens = sorted({at for at, _ in self.program.sections}, reverse=True)
        for n in sorted({n for n in self.needed() if n < len(self.old)} | leaves):
            while opens and opens[-1] <= n:
                self.starts[opens.pop()] = len(self.graph)
            self.edge(2 * n)
        self.starts.update(dict.fromkeys(opens, len(self.graph)))

    def needed(self) -> Iterator[int]:
        """Yields the nodes that the outputs reach by the new sums and products."""
        seen: set[int] = set()
        stack = [e >> 1 for e in self.program.output_edges]
        self.guards = list(self.program.guards)
        while stack:
            n = stack.pop()
            if n not in seen:
                seen.add(n)
                yield n
                parts = self.sums.get(n) or self.products.get(n) or self.old.operands(n)
                stack += [e >> 1 for e in parts]
            if not stack:
                self.guards = [g for g in self.guards if g.pivot >> 1 in seen]
                stack = [g.scale >> 1 for g in self.guards if g.scale >> 1 not in seen]

    def edge(self, e: int) -> int:
        n = e >> 1
        if n not in self.new:
            self.new[n] = self.made(n)
        return self.new[n] ^ (e & 1)

    def made(self, n: int) -> int:
        for parts, rule in ((self.sums, self.graph.add), (self.products, self.graph.mul)):
            if n in parts:
                first, *rest = [self.edge(e) for e in parts[n]]
                for e in rest:
                    first = self.whole(rule(first, e))
                return first
        return self.copied(n)

    def copied(self, n: int) -> int:
        g, old, op = self.graph, self.old, self.old.op[n]
        if op == CONST:
            return g.edge(old.constants[old.a[n]])
        if op <= INPUT:
            return (g.input if op == INPUT else g.parameter)(old.names[old.a[n]]).edge
        rule = self.rules.get(op) or partial(g.choice if op in CHOICE else g.unary, op)
        return self.whole(rule(*[self.edge(e) for e in old.operands(n)]))

    def whole(self, x: int | float) -> int:
        """An edge even of what folded to a number."""
        return self.graph.edge(x) if isinstance(x, float) else x

    def labels(self) -> dict[int, Labels]:
        out: dict[int, Labels] = {}
        for n, names in self.program.labels.items():
            if n in self.new:
                e = self.new[n]
                out[e >> 1] = out.get(e >> 1, ()) + tuple((name, sign ^ (e & 1)) for name, sign in names)
        return out


class _EagerCopy(_Copy):
    """Sums grow as their terms are made."""

    def run(self) -> None:
        self.users: dict[int, list[tuple[int, int]]] = {}
        self.missing: dict[int, int] = {}
        self.total: dict[int, int] = {}
        reached = set(self.needed())
        for n in sorted(reached & (self.sums.keys() | self.products.keys())):
            terms = self.sums.get(n) or self.products[n]
            self.missing[n] = len(terms)
            for e in terms:
                self.users.setdefault(e >> 1, []).append((n, e))
        for n in sorted(self.users):  # a sum must be whole before it is read, and these may be the youngest nodes
            if n < len(self.old) and self.old.level[n] < 2:
                self.edge(2 * n)
        super().run()

    def edge(self, e: int) -> int:
        n = e >> 1
        if n not in self.new:
            self.put(n, self.copied(n))
        return self.new[n] ^ (e & 1)

    def put(self, n: int, edge: int) -> None:
        """A node is made: all that waited for it goes on."""
        done = [(n, edge)]
        while done:
            n, edge = done.pop()
            self.new[n] = edge
            for user, e in self.users.get(n, ()):
                self.missing[user] -= 1
                if user in self.sums:
                    mine, before = edge ^ (e & 1), self.total.get(user)
                    self.total[user] = mine if before is None else self.whole(self.graph.add(before, mine))
                if not self.missing[user]:
                    done.append((user, self.total[user] if user in self.sums else self.made(user)))
