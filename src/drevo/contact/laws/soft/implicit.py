"""Derivatives of a step under the soft law times a vector, by the implicit function theorem, in stages.

At the accelerations a of a step what is left of the efforts is zero,

    R(x, a) = rhs(x) - M(x) a + B(x)^T f(y, D(x)) = 0,      y = B(x) a - ref(x),      x = q, v, tau, parameters

and its derivative by a is -H, the Hessian of Newton's method: a changes by H^-1 (dR/dx) dx. "jvp" takes one
forward sweep over R and one solution, "vjp" one solution and one reverse sweep over p^T R. Which contacts hold and
on which piece of the law stays as it is: forces follow y by its Hessian S, f(y0, D) - S (y - y0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....codegen.graph.derivative import cotangents, tangents
from ....codegen.graph.node import Expr, Graph
from ....codegen.graph.program import Input
from ....codegen.graph.rebuild import part_of_graph
from ....compiler.differentiate import put
from ....compiler.products import number_rates, tangent_size
from ....compiler.tracer import nodes_of, unknowns
from ....mechanics.scalar import Scalar, Vector, dot
from ....mechanics.tree import Tree
from ...packing import of
from .newton import symmetric_of
from .stages import HERE, Evaluation, PackedRows, StageTracer

STATE = ("Q", "V", "tau")


def quadrupled(tree: Tree, d: Vector) -> list[Scalar]:
    """Four times those that turn: A^T A, A of `number_rates`, is the unit matrix, of quaternions a quarter."""
    out = list(d)
    for o in tree.owners():
        if o.nq > o.nv:
            at = slice(o.v + o.nv - 3, o.v + o.nv)
            out[at] = [4.0 * x for x in out[at]]
    return out


def tangents_of(tree: Tree, q: Sequence[Any], rates: Vector, numbers: bool = False) -> list[Scalar]:
    """Tangents at q from rates of coordinates that leave quaternions unit: 4 A^T or A^T times them, or with
    `numbers` these rates."""
    if numbers:
        return list(rates)
    d = unknowns(q[0].graph, "d", tree.nv) if tree.nv else []
    return quadrupled(tree, cotangents(number_rates(tree, q, d), rates, d))


def cotangents_of(tree: Tree, q: Vector, bar: Vector, numbers: bool) -> list[Scalar]:
    """Cotangents of coordinates at q from those of its tangents: the transpose of `tangents_of`."""
    return list(bar) if numbers else number_rates(tree, q, quadrupled(tree, bar))


class Linear:
    """Adds to an evaluation the stages of a product; mark: "dot" of "jvp", "bar" of "vjp", by which blocks end.

    numbers: tangents of q and q1 are of size nq, as those of `products.number_rates`.
    """

    def __init__(self, e: Evaluation, mark: str, numbers: bool = False) -> None:
        self.numbers, size = numbers, tangent_size(e.tree, numbers)
        self.e, self.tree, self.nv, self.graph = e, e.tree, e.nv, e.t.graph
        self.mark = mark
        sizes = {"Q": e.tree.nq, "V": e.nv, "main": e.sizes["main"], "handed": e.sizes["handed"]}
        own = {"q": size, "v": e.nv, "q1": size, "v1": e.nv, "tau": e.nv, "parameters": len(e.symbols)}
        e.sizes |= {f"{k}_{self.mark}": max(1, n) for k, n in (sizes | own).items()}
        self._end()
        for k in range(len(e.contacts)):
            self._slot(k)
        (self._dynamics_dot if mark == "dot" else self._dynamics_bar)()

    # -- programs -------------------------------------------------------------------------------------------

    def block(self, name: str, graph: Graph | None = None) -> tuple[Input, list[Expr]]:
        """A block as an input of a program."""
        block = name.partition("[")[0]
        x = unknowns(graph or self.graph, name, self.e.sizes[block])
        return Input(name, (len(x),), nodes_of(x)), x

    def put(
        self, name: str, graph: Graph, inputs: Sequence[Input], outputs: Mapping[str, Sequence[Scalar]]
    ) -> None:
        results = {k: tuple(map(graph.edge, x)) for k, x in outputs.items()}
        symbols = tuple(self.e.symbols) if graph is self.graph else ()
        self.e.parts[name] = part_of_graph(name, graph, tuple(inputs), results, symbols)

    # -- the end --------------------------------------------------------------------------------------------

    def _end(self) -> None:
        """From Q, V, main and a to the tangents of q1 and v1, or back; efforts are those that a has, M a."""
        s = StageTracer("end", self.e.sizes)
        a, main = s.read("a"), s.read("main")
        M = self.e.inertia(s)
        s.blocks["r"] = [x - y for x, y in zip(self.e.times(M, a), self.e.efforts(s))]
        s.blocks["g"] = [0.0] * self.nv  # type: ignore[list-item]
        assert self.e.end is not None
        self.e.end(s)
        q, v, graph = s.read("Q"), s.read("V"), s.t.graph
        made = {o.name: [graph.expr(x) for x in o.edges] for o in s.t.outputs}
        inputs = [x for x in s.t.inputs if x.name in ("Q", "V", "main", "a")]
        if self.mark == "dot":
            ports = {name: self.block(name, graph) for name in ("Q_dot", "v_dot", "main_dot", "p")}
            given = [x for name in ports for x in ports[name][1]]
            rates = {x.edge: d for x, d in zip([*q, *v, *main, *a], given)}
            moved = tangents(made["q1"] + made["v1"], rates)
            nq = self.tree.nq
            out = {"q1_dot": tangents_of(self.tree, made["q1"], moved[:nq], self.numbers), "v1_dot": moved[nq:]}
        else:
            ports = {name: self.block(name, graph) for name in ("q1_bar", "v1_bar")}
            bar = cotangents_of(self.tree, made["q1"], ports["q1_bar"][1], self.numbers)
            flat = cotangents(made["q1"] + made["v1"], [*bar, *ports["v1_bar"][1]], [*q, *v, *main, *a])
            parts = iter(flat)
            out = {f"{name}_bar": [next(parts) for _ in x] for name, x in (("Q", q), ("V", v), ("main", main))}
            out["g"] = [-x for x in parts]
        self.put(f"end_{self.mark}", graph, [*inputs, *(port for port, _ in ports.values())], out)

    # -- what is left of the efforts ------------------------------------------------------------------------

    def _left(self, x: PackedRows, values: Vector, a: Vector, y0: Vector, S: Sequence[Vector]) -> list[Scalar]:
        """B^T f of a group, by its rates."""
        B = [[of(values, b) for b in row] for row in x.B]
        far = [dot(row, [a[r] for r in x.rates]) - of(values, z) - y for row, z, y in zip(B, x.ref, y0)]
        held = x.law(values).answer(y0, [of(values, d) for d in x.D]).force
        f = [h - dot(row, far) for h, row in zip(held, S)]
        return [dot([row[i] for row in B], f) for i in range(len(x.rates))]

    def _slot(self, k: int) -> None:
        """The part of a slot in the rates of R, or in the cotangents of what it is made of."""
        e, g, x, at = self.e, self.graph, self.e.contacts[k], self.e.records[k]
        part, m = e.parts[f"slot_{k}"], x.group.size
        ports = {name: self.block(name) for name in ("handed", "a")}
        cut = {n: y for n, y in zip(part.inputs[-1].nodes, ports["handed"][1])}
        pack = part.outputs[0].edges
        found = put(g, dict(enumerate(g.expr(n) for n in pack)), cut)
        values = [found.get(i, 0.0) for i in range(len(pack))]
        y0, packed = unknowns(g, "y", m), unknowns(g, "S", m * (m + 1) // 2)
        here = [Input(f"{HERE}[{i}]", (len(z),), nodes_of(z)) for i, z in ((at.y, y0), (at.S, packed))]
        S = symmetric_of(x, iter(packed))
        left = self._left(x, values, ports["a"][1], y0, S)
        given = self._leaves()
        leaves = {"Q": given["Q"], "V": given["V"], "handed": ports["handed"][1]}
        leaves |= {"parameters": given["parameters"]} if e.symbols else {}
        inputs = [p for p in part.inputs if p.name in STATE] + [p for p, _ in ports.values()] + here
        self._swept(f"slot_{self.mark}_{k}", inputs, dict(zip(x.rates, left)), leaves)

    def _swept(
        self, name: str, inputs: list[Input], left: Mapping[int, Scalar], leaves: Mapping[str, Sequence[Expr]]
    ) -> None:
        """Adds the rates of some of R to -g, or the cotangents of p^T R to those of the leaves."""
        flat = [x for own in leaves.values() for x in own]
        if self.mark == "dot":
            ports = {k: self.block("v_dot" if k == "V" else f"{k}_dot") for k in leaves}
            rates = {x.edge: d for x, d in zip(flat, (d for _, own in ports.values() for d in own))}
            before = self.block("g")
            moved = tangents(list(left.values()), rates)
            out = {f"g[{r}]": [before[1][r] - d] for r, d in zip(left, moved)}
            self.put(name, self.graph, [*inputs, *(p for p, _ in ports.values()), before[0]], out)
            return
        ports = {k: self.block(f"{k}_bar") for k in leaves}
        p = self.block("p")
        bars = cotangents(list(left.values()), [p[1][r] for r in left], flat)
        old = [(f"{k}_bar", i, x) for k, (_, own) in ports.items() for i, x in enumerate(own)]
        out = {f"{k}[{i}]": [x + d] for (k, i, x), d in zip(old, bars) if not (isinstance(d, float) and d == 0.0)}
        self.put(name, self.graph, [*inputs, *(port for port, _ in ports.values()), p[0]], out)

    # -- the dynamics ---------------------------------------------------------------------------------------

    def _own(self, a: Vector) -> tuple[list[Expr], list[Scalar]]:
        """main, and R of it: rhs - M a and the rows of joints."""
        main = self.e.main.values(self.graph)
        M = [{c: of(main, x) for c, x in row.items()} for row in self.e.M]
        left = [of(main, x) - y for x, y in zip(self.e.rhs, self.e.times(M, a))]
        for x in self.e.rows:
            y = [
                dot([of(main, b) for b in row], [a[r] for r in x.rates]) - of(main, z)
                for row, z in zip(x.B, x.ref)
            ]
            f = x.group.answer(y, [of(main, d) for d in x.D]).force
            for i, r in enumerate(x.rates):
                left[r] = left[r] + dot([of(main, row[i]) for row in x.B], f)
        return main, left

    def _handed(self) -> list[Scalar]:
        part = self.e.parts["dynamics"]
        return [self.graph.expr(x) for x in next(o.edges for o in part.outputs if o.name == "handed")]

    def _leaves(self) -> dict[str, list[Expr]]:
        """Q, V, tau and the parameters."""
        ports = {p.name: p.nodes for p in self.e.t.inputs} | {"parameters": tuple(x.node for x in self.e.symbols)}
        return {name: [Expr(self.graph, 2 * n) for n in nodes] for name, nodes in ports.items()}

    def _dynamics_dot(self) -> None:
        """Rates of main and of what slots are handed, of Q, and g = -dR."""
        g, given = self.graph, self._leaves()
        names = ["a", "q_dot", "v_dot", "tau_dot", *(["parameters_dot"] if self.e.symbols else [])]
        ports = {name: self.block(name) for name in names}
        main, left = self._own(ports["a"][1])
        moved = number_rates(self.tree, given["Q"], ports["q_dot"][1], self.numbers)
        rates = {x.edge: d for x, d in zip(given["Q"], moved)}
        for name, of_ in (("V", "v_dot"), ("tau", "tau_dot"), ("parameters", "parameters_dot")):
            if of_ in ports:
                rates |= {x.edge: d for x, d in zip(given[name], ports[of_][1])}
        handed = self._handed()
        found = tangents([*main, *handed, *left], rates)
        n, k = len(main), len(main) + len(handed)
        out = {"main_dot": found[:n], "handed_dot": found[n:k], "g": [-x for x in found[k:]], "Q_dot": moved}
        self.put("dynamics_dot", g, [*self.e.t.inputs, *(port for port, _ in ports.values())], out)

    def _dynamics_bar(self) -> None:
        """The cotangents of arguments, from p and those of main, of what slots were handed, and of Q and V."""
        g, given = self.graph, self._leaves()
        more = ["parameters_bar"] if self.e.symbols else []
        ports = {name: self.block(name) for name in ("a", "p", "main_bar", "handed_bar", "Q_bar", "V_bar", *more)}
        main, left = self._own(ports["a"][1])
        ends = [*left, *main, *self._handed()]
        bars = [x for name in ("p", "main_bar", "handed_bar") for x in ports[name][1]]
        leaves = [x for name in (*STATE, "parameters") for x in given[name]]
        parts = iter(cotangents(ends, bars, leaves))
        Q, V, tau, numbers = ([next(parts) for _ in given[name]] for name in (*STATE, "parameters"))
        rates = [x + y for x, y in zip(Q, ports["Q_bar"][1])]
        d = unknowns(g, "d", tangent_size(self.tree, self.numbers))
        moved = number_rates(self.tree, given["Q"], d, self.numbers)
        out = {"q_bar": cotangents(moved, rates, d), "tau_bar": tau}
        out |= {"v_bar": [x + y for x, y in zip(V, ports["V_bar"][1])]}
        out |= {name: [x + y for x, y in zip(numbers, ports[name][1])] for name in more}
        self.put("dynamics_bar", g, [*self.e.t.inputs, *(port for port, _ in ports.values())], out)
