"""The Jacobian of a step by columns, as one compiled function of a tile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ....codegen.graph.program import Program
from ....codegen.llvm.ir import I1
from ....codegen.llvm.stages import StageCalls, Stages
from ....compiler.tracer import Tracer
from ...response import RESULTS
from .columns import MAP, StepColumns
from .couplings import TendonRow
from .kernel import STATE, Loops
from .stages import Evaluation

TESTED = ("response", "turns")  # stages whose ends are the last


def comes_by_columns(e: Evaluation) -> bool:
    """True if the Jacobian comes by columns: of Euler's method, without loops, rows of tendons, limits of balls
    and dampers that are not linear, of places on the ground alone, by the state alone."""
    problem = e.problem
    grounded = all(min(x.bodies) < 0 for x in problem.slots) and not any(e.crossing)
    plain = not (e.symbols or e.tree.formulas or problem.medium or problem.model.loops or e.factors)
    plain = plain and all(x.limit_angle is None for x in problem.model.softness)
    plain = plain and not any(isinstance(x, TendonRow) for x in problem.rows)
    plain = plain and not any(x.along_axes for x in e.tree.acting)
    return problem.method == "euler" and plain and grounded


def jacobian_program(e: Evaluation, fill: Callable[..., None]) -> Program:
    """(q, v, tau) -> (by_q, by_v, by_tau), (2 nv, nv) each. fill: the same on arrays."""
    loops = ColumnLoops(e, StepColumns(e))
    t = Tracer("step_jacobian", e.problem.model)
    t.state(*STATE)
    return with_rows(t, e.sizes, lambda blocks: Stages(blocks, e.parts, loops.write, fill, TESTED, RESULTS))


def with_rows(t: Tracer, sizes: Mapping[str, int], stages: Callable[[dict[str, int]], Stages]) -> Program:
    """The program whose results are all rows; stages: from the blocks."""
    nv = sizes["V"]
    for name in RESULTS:
        t.output(name, [0.0] * (2 * nv * nv), (2 * nv, nv))
    return replace(t.program(), stages=stages({name: n for name, n in sizes.items() if name not in STATE}))


class ColumnLoops(Loops):
    """The calls of a tile."""

    def __init__(self, e: Evaluation, columns: StepColumns) -> None:
        super().__init__(e)
        self.columns = columns

    def write(self, c: StageCalls) -> None:
        own = self.columns
        for name in ("residual", "warm"):
            c.fill(0.0, name, 0, 1)
        c.call("begin")
        c.call("again")
        touching = self.solved(c)
        c.call("inertia")
        self.each(c, "hessian", touching)
        for body in own.bodies:
            c.fill(0.0, f"map_{body}", 0, MAP)
        own.respond(c)
        if own.bodies:
            c.call("poles")
        for k, flag in enumerate(touching):
            with c.f.when(flag.load(I1)):
                c.call(f"slopes_{k}", f"slot_{k}")
        for stage in ("columns", "turns"):
            c.call(stage)
        own.rows.write(c)
