"""A step under the soft law as a program: with few places of contact in straight lines, with many in loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....codegen.graph.program import Program
from ....codegen.llvm.stages import Stages
from ....compiler.tracer import Tracer
from ...parameters import is_friction
from ...signals import drives_of
from .kernel import LAST_EVALUATION, STEP_ARGUMENTS, STEP_RESULTS, Loops, declare, evaluation
from .pair_loops import PairLoops
from .pair_rows import LoopedEvaluation
from .stages import Evaluation, SoftProblem

MAX_STRAIGHT_PAIRS = 48  # of places of contact; more are looped over
DRIVEN_RESULTS = "act1", "sensordata"  # where there are any


def declare_arguments(t: Tracer, sizes: Mapping[str, int], drives: Sequence[str]) -> None:
    """Declares q, v and what drives: efforts, or controls and activations."""
    t.state(*(name for name in STEP_ARGUMENTS if name in ("q", "v", *drives)))
    for name in drives:
        if name not in STEP_ARGUMENTS:
            t.input(name, sizes[name])


def step_ports(t: Tracer, sizes: Mapping[str, int], results: Sequence[str], controls: bool) -> set[str]:
    """Declares a step of blocks of these names; controls: in the place of efforts. Gives all names."""
    declare_arguments(t, sizes, drives_of(controls, sizes))
    declare(t, sizes, results := (*results, *(name for name in DRIVEN_RESULTS if sizes.get(name))))
    return {port.name for port in t.inputs} | {*results}


def step_program(
    problem: SoftProblem, stages: type[LoopedEvaluation] = LoopedEvaluation, calls: type[PairLoops] | None = None
) -> Program:
    """(q, v, tau) -> (q1, v1, forces, residual), and on request of the last evaluation Q, V and r, what holds."""
    loops = calls(evaluation(problem, stages)) if calls else step_loops(problem)
    e = loops.e
    t = Tracer("step", problem.model)
    results = (*STEP_RESULTS, *(LAST_EVALUATION if problem.last else ()))
    ports = step_ports(t, e.sizes, results, problem.controls)
    symbols = (x._replace(node=t.graph.parameter(x.name).edge >> 1) for x in e.symbols)
    blocks = {name: size for name, size in e.sizes.items() if name not in ports}
    return replace(t.program(), parameters=tuple(symbols), stages=Stages(blocks, e.parts, loops.write))


def step_loops(problem: SoftProblem) -> Loops:
    """The calls of a step: over pairs of a kind where it has many places, else one after another."""
    if takes_loops(problem):
        return PairLoops(evaluation(problem, LoopedEvaluation))
    return Loops(evaluation(problem, Evaluation))


def takes_loops(problem: SoftProblem) -> bool:
    """True where a step has many places of contact, and may loop over them."""
    return len(problem.slots) > MAX_STRAIGHT_PAIRS and may_loop(problem)


def may_loop(problem: SoftProblem) -> bool:
    """True where places of contact need nothing that only straight lines know."""
    stepping = problem.model.stepping
    plain = not (any(map(is_friction, problem.parameters)) or "diagexact" in stepping.enabled)
    still = all(s.held and not any(any(x.geom.surface) for x in s.held) for s in problem.slots)
    return plain and still
