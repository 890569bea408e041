"""The reference evaluator: one operation per node, on floats, fractions or whole arrays.

Invariants of a program, checked as far as DREVO_VERIFY says: 0 nothing, 1 structure, 2 numbers too.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ...errors import TraceError
from .node import Graph
from .ops import ADD, CONST, INPUT, OPS
from .program import Program


def evaluate_edges(
    graph: Graph,
    edges: Sequence[int],
    leaves: Mapping[int, Any],
    number: Any = float,
    meaning: Mapping[int, Callable[..., Any]] | None = None,
) -> list[Any]:
    """Values of edges, given those of INPUT and PARAMETER nodes, or of any others; `number` converts constants.

    meaning: of operations on values for which the table's own does not do.
    """
    apply = {op: row.apply for op, row in enumerate(OPS)} | dict(meaning or {})
    value: dict[int, Any] = dict(leaves)

    def at(e: int) -> Any:
        return -value[e >> 1] if e & 1 else value[e >> 1]

    for n in graph.live(edges):
        op = graph.op[n]
        if op == CONST:
            value[n] = number(graph.constants[graph.a[n]])
        elif op > INPUT and n not in value:
            value[n] = apply[op](*(at(e) for e in graph.operands(n)))  # type: ignore[misc]
    return [at(e) for e in edges]


def evaluate(
    program: Program,
    arguments: Mapping[str, Any],
    parameters: Mapping[str, float] | None = None,
    dtype: Any = np.float64,
) -> dict[str, np.ndarray[Any, Any]]:
    """Outputs by name. arguments: arrays (..., *shape), leading dimensions broadcast."""
    given = parameters or {}
    leaves: dict[int, Any] = {p.node: dtype(given.get(p.name, p.value)) for p in program.parameters}
    batch: tuple[int, ...] = ()
    for port in program.inputs:
        x = np.asarray(arguments[port.name], dtype)
        lead = x.shape[: x.ndim - len(port.shape)]
        batch = np.broadcast_shapes(batch, lead)
        flat = x.reshape((*lead, port.size))
        leaves.update((n, flat[..., k]) for k, n in enumerate(port.nodes))
    values = evaluate_edges(program.graph, program.output_edges, leaves, dtype)
    out, at = {}, 0
    for o in program.outputs:
        stacked = [np.broadcast_to(v, batch) for v in values[at : at + len(o.edges)]]
        at += len(o.edges)
        flat = np.zeros((*batch, prod(o.shape)), dtype if not stacked else np.result_type(*stacked))
        if stacked:
            flat[..., [o.place(k) for k in range(len(stacked))]] = np.stack(stacked, -1)
        out[o.name] = flat.reshape(batch + o.shape)
    return out


EVALUATED_STATES = 16
REGROUPING_TOLERANCE = 1e-11  # of the largest value of an output: what regrouping of parameters may cost


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


def require_twins(program: Program, plain: Program) -> None:
    """Raises TraceError where a reduced program is not its unreduced twin."""
    worst = twins(program, plain)
    if not worst <= REGROUPING_TOLERANCE:
        raise TraceError(
            f"{program.name} by {program.meta.get('formalism')} differs from the plain recursion by {worst:.1e} "
            f"of the largest value, {REGROUPING_TOLERANCE:.0e} allowed; report the robot, and use "
            "formalism='newton_euler'"
        )
