"""A step under the soft law as one compiled function of a tile: the loops that call the stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....codegen.graph.program import Program
from ....codegen.llvm.ir import I1, Value
from ....codegen.llvm.stages import StageCalls, Stages
from ....compiler.tracer import Tracer
from ....mechanics.scalar import where
from ...noslip import NoSlip
from .integrate import Steps
from .newton import MAX_NEWTON_STEPS, MAX_SEARCH_STEPS, Newton
from .stages import Evaluation, SoftProblem, StageTracer

STEP_ARGUMENTS, STEP_RESULTS = ("q", "v", "tau"), ("q1", "v1", "forces", "residual")
LAST_EVALUATION = ("Q", "V", "r")  # blocks that tell of the last evaluation


def step_program(problem: SoftProblem) -> Program:
    """(q, v, tau) -> (q1, v1, forces, residual), and on request of the last evaluation Q, V and r, what holds."""
    e = evaluation(problem)
    t = Tracer("step", problem.model)
    t.state(*STEP_ARGUMENTS)
    declare(t, e.sizes, results := (*STEP_RESULTS, *(LAST_EVALUATION if problem.last else ())))
    symbols = (x._replace(node=t.graph.parameter(x.name).edge >> 1) for x in e.symbols)
    blocks = {name: size for name, size in e.sizes.items() if name not in (*STEP_ARGUMENTS, *results)}
    return replace(t.program(), parameters=tuple(symbols), stages=Stages(blocks, e.parts, Loops(e).write))


def declare(t: Tracer, sizes: Mapping[str, int], results: Sequence[str]) -> None:
    """Results of a step, from blocks of these names."""
    for name in results:
        shapes: dict[str, Any] = {"forces": (sizes["forces"] // 3, 3), "residual": ()}
        t.output(name, [0.0] * sizes[name], shapes.get(name))


def evaluation(problem: SoftProblem) -> Evaluation:
    """All stages of a step."""
    e = Evaluation(problem)
    e.sizes["forces"] = 3 * len(e.contacts)
    e.newton = Newton(e)
    Steps(e)
    e.noslip = NoSlip(e) if problem.model.stepping.noslip else None
    s = StageTracer("move", e.sizes)
    alpha = s.number("alpha")
    s.write(a=[where(alpha > 0.0, x + alpha * y, x) for x, y in zip(s.read("a"), s.read("p"))])
    e.parts["move"] = s.t.program()
    return e


class Loops:
    """The calls of a tile."""

    def __init__(self, e: Evaluation) -> None:
        self.e, self.slots = e, range(len(e.contacts))

    def write(self, c: StageCalls) -> None:
        c.routine("forward", self.forward)
        c.fill(0.0, "residual", 0, 1)
        c.fill(0.0, "warm", 0, 1)
        c.call("begin")
        with c.f.loop(self.e.problem.repeat, some=True):
            for stage in ("again", *self.e.opening):
                c.call(stage)
            for stage in self.e.stages:
                c.run("forward")
                c.call(stage)
                c.fill(1.0, "warm", 0, 1)

    def forward(self, c: StageCalls) -> None:
        """Accelerations at Q, V."""
        touching = self.solved(c)
        self.forces(c, touching)
        c.call("judge")

    def solved(self, c: StageCalls) -> list[Value]:
        """Solves for the accelerations at Q, V by Newton steps; returns which slots touch."""
        f = c.f
        c.call("dynamics")
        touching = [self.touching(c, k) for k in self.slots]
        c.fill(0.0, "alpha", 0, 1)
        with f.when(~c.some_above("warm")):  # else one step at least, for nothing may hold
            c.call("start")
            c.fill(1.0, "alpha", 0, 1)
        c.fill(-1.0, "pieces", 0, self.e.sizes["pieces"])
        c.fill(1.0, "live", 0, 1)
        self.newton(c, touching)
        if self.e.noslip:
            self.noslip(c, touching)
        return touching

    def touching(self, c: StageCalls, k: int) -> Value:
        """Room for whether a slot touches in some lane; where it may, its rows are made."""
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

    def each(self, c: StageCalls, stage: str, touching: list[Value], order: Sequence[int] = ()) -> None:
        for k in order or self.slots:
            with c.f.when(touching[k].load(I1)):
                c.call(f"{stage}_{self.e.records[k].kind}", f"slot_{k}")

    def newton(self, c: StageCalls, touching: list[Value]) -> None:
        f = c.f
        self.crosses(c, touching)
        with f.loop(MAX_NEWTON_STEPS, some=True) as loop:
            c.call("gradient")
            self.each(c, "touch", touching)
            c.call("finish")
            loop.leave(~c.some_above("live"))
            self.solve(c, touching)
            c.call("aim")
            self.each(c, "along", touching)
            with f.loop(MAX_SEARCH_STEPS, some=True) as search:
                c.call("slope")
                self.each(c, "bend", touching)
                c.call("trial")
                search.leave(~c.some_above("open"))
            c.call("move")

    def noslip(self, c: StageCalls, touching: list[Value]) -> None:
        """The pass after the law."""
        order = self.e.noslip.order
        c.call("slip_begin")
        self.each(c, "ready", touching, order)
        with c.f.loop(self.e.problem.model.stepping.noslip, some=True) as loop:
            c.call("slip_rows")
            self.each(c, "slip", touching, order)
            c.call("slip_end")
            loop.leave(~c.some_above("slipping"))

    def crosses(self, c: StageCalls, touching: list[Value]) -> None:
        """By lane, positive where a slot that touches joins rates that M does not."""
        c.fill(-1.0, "crosses", 0, 1)
        one = c.f.const(c.l.type, 1.0)
        for k in self.slots:
            if self.e.crossing[k]:
                with c.f.when(touching[k].load(I1)):
                    here = c.load(f"slot_{k}", self.e.records[k].gap) < 0.0
                    c.at("crosses").store(c.f.select(here, one, c.load("crosses")), c.l.bytes)

    def solve(self, c: StageCalls, touching: list[Value]) -> None:
        """p = -H^-1 g, by few entries of H in lanes that need no more, whatever the others need."""
        c.call("inertia")
        self.each(c, "hessian", touching)
        if not any(self.e.crossing):
            c.call("solve")
            return
        with c.f.when(c.some_below("crosses")):
            c.call("solve")
        with c.f.when(c.some_above("crosses")):
            c.call("solve_crossing")

    def forces(self, c: StageCalls, touching: list[Value]) -> None:
        none = c.f.zero(c.l.type)
        for k, flag in enumerate(touching):
            here, block, at = flag.load(I1), f"slot_{k}", self.e.records[k]
            with c.f.when(here):
                c.call(f"force_{at.kind}", block)
                touches = c.load(block, at.gap) < 0.0
                for j in range(3):  # what does not touch has +0, whatever the lanes beside it do
                    force = c.f.select(touches, c.load(block, at.size + j), none)
                    c.at("forces", 3 * k + j).store(force, c.l.bytes)
            with c.f.when(~here):
                c.fill(0.0, "forces", 3 * k, 3)
