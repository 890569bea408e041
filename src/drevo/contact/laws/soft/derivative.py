"""The residual of a step under the soft law, as sweeps, by which the derivatives of the step go.

At the accelerations a of a step R(x, a) = rhs(x) - M(x) a + B(x)^T f(y, D(x)) = 0, with y = B(x) a - ref(x). Its
derivative by a is -H, the Hessian of Newton's method. On one piece of the law forces follow y by its Hessian S:
f(y0, D) - S (y - y0).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....codegen.graph.node import Expr
from ....codegen.graph.program import Input
from ....codegen.llvm.ir import Value
from ....codegen.llvm.stages import StageCalls
from ....codegen.lower.loops import CHOSEN_BLOCK, Place
from ....compiler.differentiate import put
from ....compiler.tracer import nodes_of, unknowns
from ....errors import InputError
from ....mechanics.scalar import Scalar, Vector, dot
from ...convex.clipping import PLACE_NUMBERS
from ...convex.solids import is_sized
from ...packing import Pack, of
from ...place_derivatives import derivatives_block, place_sweep
from ...signals import ACTIVATION, drives_of
from ...sweeps import StepSweep, argument_chart, result_chart
from .kernel import Loops, evaluation
from .layout import PackedRows
from .newton import symmetric_of
from .stages import PLACE_INPUT, SoftProblem, StageTracer


class SoftDerivative(Loops):
    """The sweeps of a step under the soft law, its calls, and what solves for the accelerations."""

    solid: tuple[str, ...] = ()
    undefined = ""

    def __init__(self, problem: SoftProblem, mark: str, numbers: bool) -> None:
        e = evaluation(problem)
        super().__init__(e)
        self.model, self.sizes, self.parts, self.symbols = problem.model, e.sizes, e.parts, e.symbols
        self.graph, self.numbers, self.drives = e.t.graph, numbers, drives_of(problem.controls, e.sizes)
        self.sizes |= {"R": e.nv, "parameters": len(e.symbols)}
        self.pairs, self.pair_of = self.pair_of, {}  # every place is a slot
        self.slot_blocks, self.solvers = [f"slot_{k}" for k in self.slots], [f"solve_{mark}"]
        self.found, self.ports = self._found_slots(), {name: self._block(name) for name in ("handed", "a")}
        self.sweeps = [self._dynamics(), *self._placing(), *map(self._slot, self.slots)]
        self.end = self._end()
        self._solver(mark)

    # -- what follows a step --------------------------------------------------------------------------------

    def step(self, c: StageCalls) -> list[Value]:
        """A step; which slots touch."""
        for name in ("residual", "warm"):
            c.fill(0.0, name, 0, 1)
        c.call("begin")
        c.call("again")
        touching = self.solved(c)
        self.forces(c, touching)
        c.call("end")
        c.call("inertia")
        self.each(c, "hessian", touching)
        c.call("factors")
        return touching

    def touching(self, c: StageCalls, k: int) -> Value:
        if k in self.pairs:
            with c.f.when(c.some_below("gap", k)):
                block = self.e.problem.slots[k].found(k).block
                self._found(c, k, self.pairs[k], c.at(block), PLACE_NUMBERS * c.l.bytes)
                if k in self.found:
                    a, b = (c.at("placed", at) for at in self.found[k])
                    out = c.at(derivatives_block(block))
                    self.search.derivatives(c, self.pairs[k], a, b, c.at("gap", k), out)
        return super().touching(c, k)

    def solution(self, c: StageCalls, mark: str) -> None:
        c.call(f"solve_{mark}")

    def _found_slots(self) -> dict[int, tuple[int, int]]:
        """By slot whose place moves beside its solids, where the numbers of these begin."""
        e, places = self.e, dict[int, tuple[int, int]]()
        for k, s in enumerate(e.problem.slots):
            if s.solids and s.solids[0].geom.kind != "plane":
                if sized := [x.geom.name for x in s.solids if is_sized(x.geom)]:
                    raise InputError(
                        f"step: robot {self.model.name!r} has no derivatives by the sizes of {', '.join(sized)}, "
                        "for the places where they touch are searched for; leave out these parameters"
                    )
                a, b = (e.geom_numbers * e.placed[x] for x in s.solids)
                places[k] = a, b
        return places

    def _placing(self) -> Iterator[StepSweep]:
        for k, solids in self.found.items():
            s = self.e.problem.slots[k]
            yield place_sweep(f"place_{k}", {s.place: solids}, s.found(k).block, self.sizes, k)

    def _solver(self, mark: str) -> None:
        """H a_dot = R_dot, and R_bar of a_bar: H is symmetric."""
        e, pack = self.e, Pack()
        s = StageTracer("factors", self.sizes)
        L = e.newton.factors(s, e.newton.every).mapped(pack.put)
        self.sizes["L"] = len(pack)
        s.write(L=pack.values(s.t.graph))
        self.parts["factors"] = s.t.program()
        given, found = ("R_dot", "a_dot") if mark == "dot" else ("a_bar", "R_bar")
        self.sizes |= {given: e.nv, found: e.nv}
        s = StageTracer(f"solve_{mark}", self.sizes)
        block = s.read("L")
        s.write(**{found: L.mapped(lambda x: of(block, x)).solve(s.read(given))})
        self.parts[f"solve_{mark}"] = s.t.program()

    # -- sweeps ---------------------------------------------------------------------------------------------

    def _block(self, name: str) -> tuple[Input, list[Expr]]:
        """A block as an input of a sweep."""
        x = unknowns(self.graph, name, self.sizes[name])
        return Input(name, (len(x),), nodes_of(x)), x

    def _leaves(self) -> dict[str, list[Expr]]:
        """Q, V, what drives, and the parameters."""
        ports = {p.name: p.nodes for p in self.e.t.inputs if p.name != PLACE_INPUT}
        ports |= {"parameters": tuple(x.node for x in self.symbols)} if self.symbols else {}
        return {name: [Expr(self.graph, 2 * n) for n in nodes] for name, nodes in ports.items()}

    def _dynamics(self) -> StepSweep:
        """R without contacts; what slots and the end of a step are handed."""
        e, g, leaves = self.e, self.graph, self._leaves()
        port, a = self.ports["a"]
        main = e.main.values(g)
        M = [{c: of(main, x) for c, x in row.items()} for row in e.M]
        left = [of(main, x) - y for x, y in zip(e.rhs, e.times(M, a))]
        for x in e.rows:
            B = [[of(main, b) for b in row] for row in x.B]
            y = [dot(row, [a[r] for r in x.rates]) - of(main, z) for row, z in zip(B, x.ref)]
            f = x.group.answer(y, [of(main, d) for d in x.D]).force
            for i, r in enumerate(x.rates):
                left[r] = left[r] + dot([row[i] for row in B], f)
        part = e.parts["dynamics"]
        handed = [g.expr(x) for x in next(o.edges for o in part.outputs if o.name == "handed")]
        values = {"R": left, "main": main, "handed": handed, "Q": leaves["Q"], "V": leaves["V"]}
        if self.found:
            values["placed"] = [g.expr(x) for o in part.outputs if o.name == "placed" for x in o.edges]
        ends = {name: dict(enumerate(x)) for name, x in values.items()}
        charts = {"q": argument_chart(e.tree, leaves["Q"], self.numbers)}
        given = {{"Q": "q", "V": "v", ACTIVATION: "act"}.get(name, name): x for name, x in leaves.items()}
        return StepSweep("dynamics", g, [*part.inputs, port], given, ends, charts, self.symbols)

    def _left(self, x: PackedRows, values: Vector, a: Vector, y0: Vector, S: Sequence[Vector]) -> list[Scalar]:
        """B^T f of a group, by its rates."""
        B = [[of(values, b) for b in row] for row in x.B]
        far = [dot(row, [a[r] for r in x.rates]) - of(values, z) - y for row, z, y in zip(B, x.ref, y0)]
        held = x.law(values).answer(y0, [of(values, d) for d in x.D]).force
        f = [h - dot(row, far) for h, row in zip(held, S)]
        return [dot([row[i] for row in B], f) for i in range(len(x.rates))]

    def _slot(self, k: int) -> StepSweep:
        """The part of a slot in R."""
        e, g, x, at = self.e, self.graph, self.e.contacts[k], self.e.records[k]
        part, m = e.parts[f"slot_{k}"], x.group.size
        ports = self.ports
        handed = next(p for p in part.inputs if p.name == "handed")
        cut = {n: y for n, y in zip(handed.nodes, ports["handed"][1])}
        pack = part.outputs[0].edges
        packed_values = put(g, dict(enumerate(g.expr(n) for n in pack)), cut)
        values = [packed_values.get(i, 0.0) for i in range(len(pack))]
        y0, packed = unknowns(g, "y", m), unknowns(g, "S", m * (m + 1) // 2)
        slot = [Input(Place(CHOSEN_BLOCK, i), (len(z),), nodes_of(z)) for i, z in ((at.y, y0), (at.S, packed))]
        left = self._left(x, values, ports["a"][1], y0, symmetric_of(x, iter(packed)))
        kept = ("Q", "V", "parameters")  # no slot reads what drives
        leaves = {name: y for name, y in self._leaves().items() if name in kept} | {"handed": ports["handed"][1]}
        if k in self.found:
            port, place = next((p, p.name) for p in part.inputs if isinstance(p.name, Place))
            leaves[place.block] = unknowns(g, place.block, self.sizes[place.block])
            leaves[place.block][place.first : place.first + PLACE_NUMBERS] = [Expr(g, 2 * n) for n in port.nodes]
        state = (p for p in part.inputs if p.name in ("Q", "V", "tau") or isinstance(p.name, Place))
        reads = [*state, *(p for p, _ in ports.values()), *slot]
        return StepSweep(f"slot_{k}", g, reads, leaves, {"R": dict(zip(x.rates, left))}, {}, self.symbols, k)

    def _end(self) -> StepSweep:
        """From Q, V, main and a to q1 and v1; efforts are those that a has, M a."""
        s = StageTracer("end", self.sizes)
        a = s.read("a")
        M = self.e.inertia(s)
        s.blocks["r"] = [x - y for x, y in zip(self.e.times(M, a), self.e.efforts(s))]
        assert self.e.end is not None
        self.e.end(s)
        leaves = {name: s.read(name) for name in ("Q", "V", "main", "a")}
        leaves |= {"act": s.read(ACTIVATION)} if "act" in self.drives else {}
        ends = {o.name: dict(enumerate(map(s.t.graph.expr, o.edges))) for o in s.t.outputs}
        chart = result_chart(self.e.tree, [*ends["q1"].values()], self.numbers)
        reads = [x for x in s.t.inputs if x.name in (*leaves, ACTIVATION)]
        return StepSweep("end", s.t.graph, reads, leaves, ends, {"q1": chart})
