"""Calls of compiled functions on values of a graph, as in a control law that is being traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import InputError
from ..graph.node import Expr, Graph
from ..graph.program import Program
from ..graph.rebuild import rebuilt_on
from .arguments import NamedShape


def graph_among(values: Sequence[Any]) -> Graph | None:
    """The graph of the first traced value among arguments; None where all are numbers."""
    for x in values:
        listed = x.ravel().tolist() if isinstance(x, np.ndarray) and x.dtype == object else x
        for y in listed if isinstance(listed, (list, tuple)) else ():
            if isinstance(y, Expr):
                return y.graph
    return None


def on_graph(
    graph: Graph,
    name: str,
    inputs: Sequence[NamedShape],
    outputs: Sequence[NamedShape],
    program: Callable[[], Any] | None,
    values: Sequence[Any],
) -> list[Any]:
    """The results of a function's program for one state of traced values, as arrays of them; InputError."""
    given: dict[str, list[Any]] = {}
    for (port, shape), x in zip(inputs, values):
        array = np.asarray(x, object)
        if array.shape != tuple(shape):
            raise InputError(f"{name}: {port} of traced values has shape {array.shape}; it is {tuple(shape)}")
        given[port] = array.ravel().tolist()
    made = program and program()
    if not isinstance(made, Program):
        raise InputError(f"{name}: this function cannot be traced; call it in a plain function of arrays")
    results = rebuilt_on(graph, made, given)
    return [np.array(x, object).reshape(shape)[()] for x, (_, shape) in zip(results, outputs)]
