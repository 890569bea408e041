"""Invariants of a program, checked as far as DREVO_VERIFY says: 0 nothing, 1 structure, 2 numbers too."""

from __future__ import annotations

import math
import os

import numpy as np

from ...errors import TraceError
from .evaluate import evaluate
from .ops import ADD, CONST, INPUT
from .program import Program

STATES = 16
TOLERANCE = 1e-11  # of the largest value of an output: what regrouping of parameters may cost


def level() -> int:
    """The one setting."""
    text = os.environ.get("DREVO_VERIFY", "0")
    return int(text) if text.isdigit() else 0


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


def twins(program: Program, plain: Program, seed: int = 0) -> float:
    """The worst difference of two programs of one quantity over random states, relative to the largest value."""
    rng = np.random.default_rng(seed)
    state = {}
    for port in program.inputs:
        x = rng.uniform(-1.0, 1.0, (STATES, *port.shape))
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


def require_twins(program: Program, plain: Program) -> None:
    """Raises TraceError where a reduced program is not its unreduced twin."""
    worst = twins(program, plain)
    if not worst <= TOLERANCE:
        raise TraceError(
            f"{program.name} by {program.meta.get('formalism')} differs from the plain recursion by {worst:.1e} "
            f"of the largest value, {TOLERANCE:.0e} allowed; report the robot, and use formalism='newton_euler'"
        )
