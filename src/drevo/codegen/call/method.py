"""A quantity as a method: the first access compiles it, later ones find its entry point in the instance itself.

Calls of compiled functions on values of a graph, as in a control law that is being traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from ...errors import InputError
from ...model.quantities import CATALOGUE, explained
from ..graph.node import Expr, Graph
from ..graph.program import Program
from ..graph.rebuild import rebuilt_on
from .arguments import NamedShape

Method = TypeVar("Method", bound=Callable[..., Any])


class _Compiled:
    """In an instance the entry point of compiled code; in the class what calls it, and says what it takes."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.name = name = method.__name__

        @wraps(method)
        def on_class(robot: Any, *state: Any, **given: Any) -> Any:
            return robot._compiled(name)(*state, **given)

        if name in CATALOGUE and not CATALOGUE[name].options:
            on_class.__doc__ = explained(CATALOGUE[name])
        self.on_class, self.__doc__ = on_class, on_class.__doc__

    def __get__(self, robot: Any, owner: type) -> Callable[..., Any]:
        found: Callable[..., Any] = self.on_class if robot is None else robot._compiled(self.name)
        return found


def compiled(method: Method) -> Method:
    """The quantity of the method's name; for type checkers the method itself, whose body nobody runs."""
    return cast(Method, _Compiled(method))


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
