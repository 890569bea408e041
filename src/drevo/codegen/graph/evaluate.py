"""The reference evaluator: one operation per node, on floats, fractions or whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from .node import Graph
from .ops import CONST, INPUT, OPS
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
