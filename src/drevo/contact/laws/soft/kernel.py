"""A step under the soft law as one compiled function of a tile: the loops that call the stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ....codegen.graph.program import Input
from ....codegen.llvm.ir import I1, I8, I64, Value
from ....codegen.llvm.stages import StageCalls
from ....compiler.tracer import Tracer, nodes_of, unknowns
from ....mechanics.scalar import where
from ...convex.solids import PairSearch
from ...noslip import NoSlip, SlipCalls
from ...signals import EVALUATION_INPUTS, TOUCH_NUMBERS, SensorStages
from .integrate import Steps
from .layout import SlotLayout
from .newton import MAX_NEWTON_STEPS, MAX_SEARCH_STEPS, Newton
from .stages import Evaluation, SoftProblem, StageTracer, carried_rates

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
