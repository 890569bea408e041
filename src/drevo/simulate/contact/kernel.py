"""A step under the soft law as one compiled function of a tile: the loops that call the stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...codegen.emit.ir import I1, Value
from ...codegen.emit.llvm_stages import StageCalls, Stages
from ...codegen.graph.program import Program
from ...compiler.tracer import Tracer
from . import reference
from .integrate import Steps
from .newton import ITERATIONS, TRIALS, Newton
from .stages import Evaluation, SoftProblem, StageTracer

STATE, VALUES = ("q", "v", "tau"), ("q1", "v1", "forces", "residual")
LAST = ("Q", "V", "r")  # blocks that tell of the last evaluation


def step_program(problem: SoftProblem) -> Program:
    """(q, v, tau) -> (q1, v1, forces, residual), and on request of the last evaluation Q, V and r, what holds."""
    e = evaluation(problem)
    t = Tracer("step", problem.model)
    t.state(*STATE)
    declare(t, e.sizes, results := (*VALUES, *(LAST if problem.last else ())))
    symbols = (x._replace(node=t.graph.parameter(x.name).edge >> 1) for x in e.symbols)
    blocks = {name: size for name, size in e.sizes.items() if name not in (*STATE, *results)}
    fill = partial(reference.fill_results, e, (*STATE, "parameters"), results)
    return replace(t.program(), parameters=tuple(symbols), stages=Stages(blocks, e.parts, Loops(e).write, fill))


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
    s = StageTracer("move", e.sizes)
    s.write(a=[x + s.number("alpha") * y for x, y in zip(s.read("a"), s.read("p"))])
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
        """The same; which slots touch."""
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

    def each(self, c: StageCalls, stage: str, touching: list[Value]) -> None:
        for k, flag in enumerate(touching):
            with c.f.when(flag.load(I1)):
                c.call(f"{stage}_{self.e.records[k].kind}", f"slot_{k}")

    def newton(self, c: StageCalls, touching: list[Value]) -> None:
        f, crossed = c.f, self.crossed(c, touching)
        with f.loop(ITERATIONS, some=True) as loop:
            c.call("gradient")
            self.each(c, "touch", touching)
            c.call("finish")
            loop.leave(~c.some_above("live"))
            self.solve(c, touching, crossed)
            self.each(c, "along", touching)
            with f.loop(TRIALS, some=True) as search:
                c.call("slope")
                self.each(c, "bend", touching)
                c.call("trial")
                search.leave(~c.some_above("open"))
            c.call("move")

    def solve(self, c: StageCalls, touching: list[Value], crossed: Value) -> None:
        """p = -H^-1 g."""
        self.by_crossing(c, "inertia", crossed)
        self.each(c, "hessian", touching)
        self.by_crossing(c, "solve", crossed)

    def crossed(self, c: StageCalls, touching: list[Value]) -> Value:
        """Whether some slot that touches joins rates that M does not."""
        f = c.f
        crossed = f.alloca(I1)
        crossed.store(f.const(I1, "false"))
        for k in self.slots:
            if self.e.crossing[k]:
                with f.when(touching[k].load(I1)):
                    crossed.store(f.const(I1, "true"))
        return crossed

    def by_crossing(self, c: StageCalls, stage: str, crossed: Value) -> None:
        """The stage for few entries of H where no lane needs more."""
        if not any(self.e.crossing):
            c.call(stage)
            return
        found = crossed.load(I1)
        with c.f.when(found):
            c.call(f"{stage}_crossing")
        with c.f.when(~found):
            c.call(stage)

    def forces(self, c: StageCalls, touching: list[Value]) -> None:
        for k, flag in enumerate(touching):
            here = flag.load(I1)
            with c.f.when(here):
                c.call(f"force_{self.e.records[k].kind}", f"slot_{k}")
                for j in range(3):
                    c.at("forces", 3 * k + j).store(c.load(f"slot_{k}", self.e.records[k].size + j), c.l.bytes)
            with c.f.when(~here):
                c.fill(0.0, "forces", 3 * k, 3)
