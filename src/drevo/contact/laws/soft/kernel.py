"""A step under the soft law as one compiled function of a tile: the loops that call the stages.

The residual of a step under the soft law, as sweeps, by which the derivatives of the step go.

At the accelerations a of a step R(x, a) = rhs(x) - M(x) a + B(x)^T f(y, D(x)) = 0, with y = B(x) a - ref(x). Its
derivative by a is -H, the Hessian of Newton's method. On one piece of the law forces follow y by its Hessian S:
f(y0, D) - S (y - y0).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ....codegen.graph.node import Expr, Graph
from ....codegen.graph.program import Input
from ....codegen.llvm.ir import I1, I8, I64, Value
from ....codegen.llvm.stages import StageCalls
from ....codegen.lower.loops import CHOSEN_BLOCK, Place
from ....compiler.differentiate import put
from ....compiler.tracer import Tracer, nodes_of, unknowns
from ....mechanics.scalar import Scalar, Vector, dot, where
from ...convex.clipping import PLACE_NUMBERS
from ...convex.solids import PairSearch
from ...noslip import NoSlip, SlipCalls
from ...packing import Pack, of
from ...signals import EVALUATION_INPUTS, TOUCH_NUMBERS, SensorStages
from ...sweeps import StepSweep, argument_chart, result_chart
from .integrate import Steps
from .layout import PackedRows, SlotLayout
from .newton import MAX_NEWTON_STEPS, MAX_SEARCH_STEPS, Newton, symmetric_of
from .stages import FOUND_BLOCK, PLACE_INPUT, Evaluation, SoftProblem, StageTracer, carried_rates

STEP_ARGUMENTS, STEP_RESULTS = ("q", "v", "tau"), ("q1", "v1", "forces", "residual")
LAST_EVALUATION = ("Q", "V", "r")  # blocks that tell of the last evaluation


def declare(t: Tracer, sizes: Mapping[str, int], results: Sequence[str]) -> None:
    """Results of a step, from blocks of these names."""
    for name in results:
        shapes: dict[str, Any] = {"forces": (sizes["forces"] // 3, 3), "residual": ()}
        t.output(name, [0.0] * sizes[name], shapes.get(name))


def evaluation(problem: SoftProblem, kind: type[Evaluation] = Evaluation) -> Evaluation:
    """All stages of a step."""
    e = kind(problem)
    e.sizes["forces"] = 3 * e.places[-1]
    e.sizes |= {"touches": TOUCH_NUMBERS * e.places[-1]} if problem.touches else {}
    e.newton = Newton(e)
    Steps(e)
    e.noslip = NoSlip(e) if problem.model.stepping.noslip else None
    s = StageTracer("move", e.sizes)
    alpha = s.number("alpha")
    s.write(a=[where(alpha > 0.0, x + alpha * y, x) for x, y in zip(s.read("a"), s.read("p"))])
    e.parts["move"] = s.t.program()
    if problem.sensors:
        _add_sensors(e)
    e.strides = [e.sizes[f"slot_{k}"] for k in range(len(e.contacts))]
    e.sizes |= {f"slot_{k}": n * x.most for k, (n, x) in enumerate(zip(e.strides, problem.slots))}
    return e


def _add_sensors(e: Evaluation) -> None:
    """The stages that read the sensors of a problem."""
    q, v, *given = ([e.t.graph.expr(2 * n) for n in x.nodes] for x in e.t.inputs if x.name in EVALUATION_INPUTS)
    a = unknowns(e.t.graph, "a", e.nv)
    along = [x - y for x, y in zip(a, carried_rates(e.tree, v))]
    ends = [x.links for x in e.problem.slots for _ in range(x.most)]
    efforts = e.drives.efforts if e.drives else given[0]
    e.sensing = SensorStages(
        e.t, e.sized, e.problem.sensors, e.sizes, e.parts, ends, (q, v, along),
        [Input("a", (e.nv,), nodes_of(a))], efforts, e.symbols,
    )  # fmt: skip


class Loops:
    """The calls of a tile."""

    def __init__(self, e: Evaluation) -> None:
        self.e, self.slots = e, range(len(e.contacts))
        pairs = [(k, s) for k, s in enumerate(e.problem.slots) if s.solids and not s.place]
        self.pair_of = {k: i for i, (k, _) in enumerate(pairs)}
        margins = [s.soft.margin for _, s in pairs]
        self.search = PairSearch([(s.solids[0].geom, s.solids[1].geom) for _, s in pairs if s.solids], margins)

    def write(self, c: StageCalls) -> None:
        c.routine("forward", self.forward)
        c.fill(0.0, "residual", 0, 1)
        c.fill(0.0, "warm", 0, 1)
        c.call("begin")
        with c.f.loop(self.e.problem.repeat, some=True) as steps:
            for stage in ("again", *self.e.opening):
                c.call(stage)
            for stage in self.e.stages:
                c.run("forward")
                if self.e.sensing and stage == self.e.stages[0]:
                    with c.f.when(steps.i.equals(self.e.problem.repeat - 1)):
                        self.e.sensing.write(c)
                self.finish(c, stage)
                c.fill(1.0, "warm", 0, 1)

    def forward(self, c: StageCalls) -> None:
        """Accelerations at Q, V."""
        touching = self.solved(c)
        self.forces(c, touching)

    def judge(self, c: StageCalls, touching: list[Value]) -> None:
        """By how much velocities may be off."""
        c.call("judge")
        with c.f.when(c.some_above("doubt")):
            self.solve(c, touching, "doubt")
            c.call("weigh")

    def solved(self, c: StageCalls) -> list[Value]:
        """Solves for the accelerations at Q, V by Newton steps; returns which slots touch."""
        touching = self.begun(c)
        self.newton(c, touching)
        self.judge(c, touching)
        if self.e.noslip:
            self.mass(c)
            self.tangents(c, touching)
            SlipCalls(c, self.e, partial(self.each_in_order, c, touching)).write()
        return touching

    def begun(self, c: StageCalls) -> list[Value]:
        """From where Newton's method begins; returns which slots touch."""
        f = c.f
        c.call("dynamics")
        touching = self.all_touching(c)
        c.fill(0.0, "alpha", 0, 1)
        with f.when(~c.some_above("warm")):  # else one step at least, for nothing may hold
            self.start(c)
            c.fill(1.0, "alpha", 0, 1)
        c.fill(-1.0, "pieces", 0, self.e.sizes["pieces"])
        c.fill(1.0, "live", 0, 1)
        return touching

    def start(self, c: StageCalls) -> None:
        c.call("start")

    def finish(self, c: StageCalls, stage: str) -> None:
        """A stage that follows an evaluation."""
        c.call(stage)

    def tangents(self, c: StageCalls, touching: list[Value]) -> None:
        """Writes the tangents of all that touches for the pass after the law, unless stages do."""

    def mass(self, c: StageCalls) -> None:
        """H = M."""
        c.fill(0.0, "stiff", 0, self.e.sizes["stiff"])
        c.call("inertia")

    def all_touching(self, c: StageCalls) -> list[Value]:
        return [self.touching(c, k) for k in self.slots]

    def touching(self, c: StageCalls, k: int) -> Value:
        """Room for whether a slot touches in some lane, of what is searched for at how many places; where it may,
        its rows are made."""
        if k in self.pair_of:
            return self.searched(c, k)
        f, at, near = c.f, self.e.records[k], self.e.problem.slots[k].near
        flag = f.alloca(I1)
        some = c.some_below("gap", k)
        flag.store(some)
        with f.when(some):
            c.call(f"slot_{k}", f"slot_{k}")
            c.fill(-1.0, f"slot_{k}", at.piece, 1)
            if near is not None:
                flag.store(c.some_below(f"slot_{k}", at.gap))
        return flag

    def searched(self, c: StageCalls, k: int) -> Value:
        f, at, bytes_ = c.f, self.e.records[k], c.l.bytes
        count = f.alloca(I64)
        count.store(f.const(I64, 0))
        with f.when(c.some_below("gap", k)):
            out = c.at(f"slot_{k}", at.place)
            count.store(self._found(c, k, self.pair_of[k], out, self.e.strides[k] * bytes_))
            with f.loop(count.load(I64)) as place:
                block = self.place(c, k, place.i)
                c.call(f"slot_{k}", block)
                block.at(at.piece * bytes_, I8).store(f.const(c.l.type, -1.0), bytes_)
        return count

    def _found(self, c: StageCalls, k: int, pair: int, out: Value, stride: int) -> Value:
        """Searches for the places of a pair that begins at slot k, and tells how many there are."""
        a, b = (
            c.at("placed", self.e.geom_numbers * self.e.placed[x]) for x in self.e.problem.slots[k].solids or ()
        )
        return self.search.places(c, pair, a, b, c.at("gap", k), out, stride)

    def place(self, c: StageCalls, k: int, i: Value) -> Value:
        """The address of the block of place i of a slot."""
        return c.at(f"slot_{k}").at(i * (self.e.strides[k] * c.l.bytes), I8)

    def where_touching(
        self, c: StageCalls, touching: Sequence[Value], k: int, write: Callable[[Value, Value | int], None]
    ) -> None:
        """Writes calls for each place of a slot that touches: by the address of its block, and its number."""
        if k in self.pair_of:
            with c.f.loop(touching[k].load(I64)) as place:
                write(self.place(c, k, place.i), place.i)
        else:
            with c.f.when(touching[k].load(I1)):
                write(c.at(f"slot_{k}"), 0)

    def each(self, c: StageCalls, stage: str, touching: list[Value]) -> None:
        """Writes calls of a stage for every slot that touches."""
        for k in self.slots:
            name = f"{stage}_{self.e.records[k].kind}"
            self.where_touching(c, touching, k, lambda block, _, name=name: c.call(name, block))  # type: ignore[misc]

    def newton(self, c: StageCalls, touching: list[Value]) -> None:
        f, living = c.f, self.room(c)
        self.crosses(c, touching)
        with f.loop(MAX_NEWTON_STEPS, some=True) as loop:
            c.call("gradient")
            self.each(c, "touch", touching)
            c.call("finish")
            loop.leave(~c.some_above("live"))
            self.keep(c, touching, living)
            self.solve(c, living, "live")
            c.call("aim")
            self.each(c, "along", living)
            with f.loop(MAX_SEARCH_STEPS, some=True) as search:
                c.call("slope")
                self.each(c, "bend", living)
                c.call("trial")
                search.leave(~c.some_above("open"))
            c.call("move")

    def room(self, c: StageCalls) -> list[Value]:
        """Room for which slots touch in lanes that are live."""
        return [c.f.alloca(I64 if k in self.pair_of else I1) for k in self.slots]

    def keep(self, c: StageCalls, touching: list[Value], living: list[Value]) -> None:
        """Lists the slots that touch in a lane that is live."""
        for k, (flag, kept) in enumerate(zip(touching, living)):
            if k in self.pair_of:
                kept.store(flag.load(I64))
                continue
            kept.store(c.f.const(I1, 0))
            with c.f.when(flag.load(I1)):
                kept.store(c.any(self.touches(c, c.at(f"slot_{k}"), self.e.records[k]) & (c.load("live") > 0.0)))

    def touches(self, c: StageCalls, block: Value, at: SlotLayout) -> Value:
        """Lanes in which a place touches."""
        return block.at(at.gap * c.l.bytes, I8).load(c.l.type, c.l.bytes) < 0.0

    def each_in_order(self, c: StageCalls, touching: list[Value], write: Callable[[int, Value], None]) -> None:
        """Writes calls for the slots that touch, in the order of the pass after the law."""
        for k in self.e.noslip.order:
            kind = self.e.records[k].kind
            self.where_touching(c, touching, k, lambda block, _, kind=kind: write(kind, block))  # type: ignore[misc]

    def crosses(self, c: StageCalls, touching: list[Value]) -> None:
        """By lane, positive where a slot that touches joins rates that M does not."""
        c.fill(-1.0, "crosses", 0, 1)
        one = c.f.const(c.l.type, 1.0)
        for k in self.slots:
            if self.e.crossing[k]:

                def crossing(block: Value, _: Value | int, at: SlotLayout = self.e.records[k]) -> None:
                    crosses = c.f.select(self.touches(c, block, at), one, c.load("crosses"))
                    c.at("crosses").store(crosses, c.l.bytes)

                self.where_touching(c, touching, k, crossing)

    def solve(self, c: StageCalls, touching: list[Value], lanes: str) -> None:
        """p = -H^-1 g in lanes where a block is positive, by few entries of H in those that need no more, whatever
        the others need.

        Loops pass over what is zero and round as straight lines do: there all entries give what few give."""
        c.call("inertia")
        self.each(c, "hessian", touching)
        if not any(self.e.crossing):
            self.solve_once(c, "solve")
            return
        going, crosses = c.load(lanes) > 0.0, c.load("crosses")
        crossing = c.any(going & (crosses > 0.0))
        with c.f.when(~crossing if self.e.looped else c.any(going & (crosses < 0.0))):
            self.solve_once(c, "solve")
        with c.f.when(crossing):
            self.solve_once(c, "solve_crossing")

    def solve_once(self, c: StageCalls, stage: str) -> None:
        c.call(stage)

    def forces(self, c: StageCalls, touching: list[Value]) -> None:
        f, l, none = c.f, c.l, c.f.zero(c.l.type)
        for k in self.slots:
            at, first, count = self.e.records[k], self.e.places[k], self.e.problem.slots[k].most
            if self.e.problem.touches:
                c.fill(0.0, "touches", TOUCH_NUMBERS * first, TOUCH_NUMBERS * count)
            if k in self.pair_of:
                c.fill(0.0, "forces", 3 * first, 3 * count)
            else:
                with f.when(~touching[k].load(I1)):
                    c.fill(0.0, "forces", 3 * first, 3)

            def tell(block: Value, i: Value | int, at: SlotLayout = at, first: int = first) -> None:
                c.call(f"force_{at.kind}", block)
                touches = self.touches(c, block, at)
                out = c.at("forces", 3 * first).at(i * (3 * l.bytes), I8)
                for j in range(3):  # what does not touch has +0, whatever the lanes beside it do
                    force = block.at((at.size + j) * l.bytes, I8).load(l.type, l.bytes)
                    out.at(j * l.bytes, I8).store(f.select(touches, force, none), l.bytes)
                if self.e.problem.touches:
                    out = c.at("touches", TOUCH_NUMBERS * first).at(i * (TOUCH_NUMBERS * l.bytes), I8)
                    for j in range(TOUCH_NUMBERS):
                        given = block.at((at.place + 1 + j) * l.bytes, I8).load(l.type, l.bytes)
                        out.at(j * l.bytes, I8).store(given, l.bytes)

            self.where_touching(c, touching, k, tell)


class SoftDerivative(Loops):
    """The sweeps of a step under the soft law, its calls, and what solves for the accelerations."""

    solid: tuple[str, ...] = ()
    undefined = ""

    def __init__(self, problem: SoftProblem, mark: str, numbers: bool) -> None:
        e = evaluation(problem)
        super().__init__(e)
        self.model, self.sizes, self.parts, self.symbols = problem.model, e.sizes, e.parts, e.symbols
        self.graph, self.numbers = e.t.graph, numbers
        self.sizes |= {"R": e.nv, "parameters": len(e.symbols)}
        self.pairs, self.pair_of = self.pair_of, {}  # every place is a slot
        self.slot_blocks, self.solvers = [f"slot_{k}" for k in self.slots], [f"solve_{mark}"]
        self.sweeps = [self._dynamics(), *map(self._slot, self.slots)]
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
                self._found(c, k, self.pairs[k], c.at(FOUND_BLOCK, PLACE_NUMBERS * k), PLACE_NUMBERS * c.l.bytes)
        return super().touching(c, k)

    def solution(self, c: StageCalls, mark: str) -> None:
        c.call(f"solve_{mark}")

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

    def _block(self, name: str, graph: Graph | None = None) -> tuple[Input, list[Expr]]:
        """A block as an input of a sweep."""
        x = unknowns(graph or self.graph, name, self.sizes[name])
        return Input(name, (len(x),), nodes_of(x)), x

    def _leaves(self) -> dict[str, list[Expr]]:
        """Q, V, tau and the parameters."""
        ports = {p.name: p.nodes for p in self.e.t.inputs if p.name != PLACE_INPUT}
        ports |= {"parameters": tuple(x.node for x in self.symbols)} if self.symbols else {}
        return {name: [Expr(self.graph, 2 * n) for n in nodes] for name, nodes in ports.items()}

    def _dynamics(self) -> StepSweep:
        """R without contacts; what slots and the end of a step are handed."""
        e, g, leaves = self.e, self.graph, self._leaves()
        port, a = self._block("a")
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
        ends = {name: dict(enumerate(x)) for name, x in values.items()}
        charts = {"q": argument_chart(e.tree, leaves["Q"], self.numbers)}
        given = {{"Q": "q", "V": "v"}.get(name, name): x for name, x in leaves.items()}
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
        ports = {name: self._block(name) for name in ("handed", "a")}
        handed = next(p for p in part.inputs if p.name == "handed")
        cut = {n: y for n, y in zip(handed.nodes, ports["handed"][1])}
        pack = part.outputs[0].edges
        found = put(g, dict(enumerate(g.expr(n) for n in pack)), cut)
        values = [found.get(i, 0.0) for i in range(len(pack))]
        y0, packed = unknowns(g, "y", m), unknowns(g, "S", m * (m + 1) // 2)
        slot = [Input(Place(CHOSEN_BLOCK, i), (len(z),), nodes_of(z)) for i, z in ((at.y, y0), (at.S, packed))]
        left = self._left(x, values, ports["a"][1], y0, symmetric_of(x, iter(packed)))
        leaves = {name: y for name, y in self._leaves().items() if name != "tau"} | {"handed": ports["handed"][1]}
        state = (p for p in part.inputs if p.name in ("Q", "V", "tau") or p.name.startswith(FOUND_BLOCK))
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
        ends = {o.name: dict(enumerate(map(s.t.graph.expr, o.edges))) for o in s.t.outputs}
        chart = result_chart(self.e.tree, [*ends["q1"].values()], self.numbers)
        reads = [x for x in s.t.inputs if x.name in leaves]
        return StepSweep("end", s.t.graph, reads, leaves, ends, {"q1": chart})
