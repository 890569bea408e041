"""Products of the derivatives of a step under the soft law with a vector, as one compiled function of a tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ...codegen.emit.ir import I1, Value
from ...codegen.emit.llvm_stages import StageCalls, Stages
from ...codegen.graph.program import Program
from ...compiler.tracer import Tracer
from .implicit import Linear
from .kernel import STATE, VALUES, Loops, declare, evaluation
from .reference import fill_results
from .stages import Evaluation, SoftProblem


def step_product_program(problem: SoftProblem, kind: str) -> Program:
    """(q, v, tau, [parameters], *w) -> products, after the results of the step where kind is "value_and_..".

    "jvp": from tangents of the arguments those of q1 and v1; "vjp": from cotangents of q1 and v1 those of the
    arguments. Of q and q1 they are of size nv.
    """
    e = evaluation(problem)
    linear = Linear(e, kind[-3:])
    arguments = [*STATE, "parameters"] if e.symbols else list(STATE)
    ends = [linear.marked(x) for x in arguments], [linear.marked(x) for x in ("q1", "v1")]
    given, made = ends if linear.mark == "dot" else ends[::-1]
    results = [*(VALUES if kind.startswith("value") else ()), *made]
    t = Tracer(f"step_{kind}", problem.model)
    t.state(*STATE)
    e.sizes["parameters"] = len(e.symbols)
    for name in (*arguments[3:], *given):
        t.input(name, e.sizes[name])
    declare(t, e, results)
    names = [x.name for x in t.inputs]
    symbols = [x for port in t.inputs if port.name == "parameters" for x in port.nodes]
    blocks = {name: size for name, size in e.sizes.items() if name not in (*names, *results)}
    stages = Stages(
        blocks,
        e.parts,
        ProductLoops(e, linear.mark).write,
        partial(fill_results, e, names, results, mark=linear.mark),
    )
    return replace(
        t.program(), parameters=tuple(x._replace(node=n) for x, n in zip(e.symbols, symbols)), stages=stages
    )


class ProductLoops(Loops):
    """The calls of a tile: a step, then what `implicit` adds to it."""

    def __init__(self, e: Evaluation, mark: str) -> None:
        super().__init__(e)
        self.mark = mark

    def write(self, c: StageCalls) -> None:
        for name in ("residual", "warm"):
            c.fill(0.0, name, 0, 1)
        c.call("begin")
        c.call("again")
        touching = self.solved(c)
        self.forces(c, touching)
        c.call("judge")
        c.call("end")
        crossed = self.crossed(c, touching)
        if self.mark == "dot":
            c.call("dynamics_dot")
            self.every(c, touching)
            self.solve(c, touching, crossed)
            c.call("end_dot")
            return
        for name in ("handed_bar", *(["parameters_bar"] if self.e.symbols else [])):
            c.fill(0.0, name, 0, self.e.sizes[name])
        c.call("end_bar")
        self.solve(c, touching, crossed)
        self.every(c, touching)
        c.call("dynamics_bar")

    def every(self, c: StageCalls, touching: Sequence[Value]) -> None:
        """What each slot that touches adds."""
        for k, flag in enumerate(touching):
            with c.f.when(flag.load(I1)):
                c.call(f"slot_{self.mark}_{k}", f"slot_{k}")
