"""What holds of every program: its structure, and that rewriting changes no number beyond rounding."""

from __future__ import annotations

import math

import numpy as np

from drevo.codegen.graph.evaluate import evaluate
from drevo.codegen.graph.ops import ADD, CONST, INPUT
from drevo.codegen.graph.program import Program
from drevo.errors import TraceError

EVALUATED_STATES = 16
REGROUPING_TOLERANCE = 1e-11  # of the largest value of an output: what regrouping of parameters may cost


def legal(program: Program) -> None:
    """Operands stand before their users, sums lead with a positive term, levels rise, constants are finite."""
    g = program.graph
    for n in program.order():
        operands = g.operands(n)
        if any(e >> 1 >= n for e in operands):
            raise TraceError(f"{program.name}: node {n} uses one that is made after it")
        if g.op[n] == ADD and operands[0] & 1:
            raise TraceError(f"{program.name}: the sum {n} leads with a negative term")
        if g.op[n] > INPUT and g.level[n] != max(g.level[e >> 1] for e in operands):
            raise TraceError(f"{program.name}: node {n} has level {g.level[n]}, not that of its operands")
        if g.op[n] == CONST and not math.isfinite(g.constants[g.a[n]]):
            raise TraceError(f"{program.name}: constant {n} is not finite")


def twins(program: Program, plain: Program) -> float:
    """The worst difference of two programs of one quantity over random states, relative to the largest value."""
    rng = np.random.default_rng(0)
    state = {}
    for port in program.inputs:
        x = rng.uniform(-1.0, 1.0, (EVALUATED_STATES, *port.shape))
        for unit in program.units:
            at = [port.nodes.index(n) for n in unit if n in port.nodes]
            if at:
                x[:, at] /= np.linalg.norm(x[:, at], axis=-1, keepdims=True)
        state[port.name] = x
    worst = 0.0
    for a, b in zip(evaluate(program, state).values(), evaluate(plain, state).values()):
        scale = float(np.max(np.abs(b), initial=0.0)) or 1.0
        worst = max(worst, float(np.max(np.abs(a - b), initial=0.0)) / scale)
    return worst
