"""Poses of custom joints as a user gives them: text, numbers, or a function, which is traced into text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from numbers import Integral
from typing import Any

from ..codegen.graph.node import Expr, Graph
from ..codegen.graph.ops import ADD, CONST, DIV, INPUT, MUL, OPS, UNLESS, WHEN
from ..compiler.tracer import Tracer, nodes_of
from ..constraint.functions import call_traced
from ..errors import InputError, ModelError, shown
from ..model.description import PoseFormula
from ..model.formula import MAX_COORDINATES, POSE_STEPS, coordinate_names
from ..model.values import checked, scalar

GivenPose = Mapping[str, Any] | Callable[[list[Any]], Mapping[str, Any]]
LONG = 60  # characters: what is used once and is shorter stands where it is used


def formula_of(who: str, pose: GivenPose | None, coordinates: int) -> PoseFormula | None:
    """The formula of a custom joint, or None where no pose is given."""
    if pose is None:
        return None
    coordinates = checked(ModelError, who, "coordinates", _count, coordinates)
    if callable(pose):
        return _traced(who, pose, coordinates)
    if not isinstance(pose, Mapping):
        raise ModelError(f"{who}: pose is {{name: formula}} with names such as x and pitch, or a function of q")
    return PoseFormula(coordinates, tuple((str(name), _text(who, name, x)) for name, x in pose.items()))


def _count(given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, Integral) or not 1 <= int(given) <= MAX_COORDINATES:
        raise ValueError(f"is a whole number from 1 to {MAX_COORDINATES}, not {shown(given)}")
    return int(given)


def _text(who: str, name: Any, x: Any) -> str:
    if isinstance(x, str):
        return x
    try:
        return repr(scalar(x))
    except ValueError as error:
        raise ModelError(f"{who}: {name} of its pose {error}; give text or a number") from None


def _traced(who: str, pose: Callable[[list[Any]], Any], coordinates: int) -> PoseFormula:
    """Traces a function from a list of scalars to a pose, and gives its formulas as text."""
    t = Tracer("pose")
    q = t.input("q", coordinates)
    try:
        found = call_traced("its pose", lambda: pose(list(q)))
    except InputError as error:
        raise ModelError(f"{who}: {error}") from None
    if not isinstance(found, Mapping) or not set(found) <= set(POSE_STEPS):
        raise ModelError(
            f"{who}: the function of its pose gives {{name: value}} with names of {', '.join(POSE_STEPS)}"
        )
    for name, x in found.items():
        if not isinstance(x, Expr):
            _text(who, name, x)
    edges = {name: t.graph.edge(x) for name, x in found.items()}
    called = dict(zip(nodes_of(q), coordinate_names(coordinates)))
    return PoseFormula(coordinates, tuple(statements(t.graph, edges, called)))


def statements(graph: Graph, edges: Mapping[str, int], called: Mapping[int, str]) -> Iterator[tuple[str, str]]:
    """Name and formula of all that is used twice or is long, then of the steps. called: the coordinates' nodes."""
    live = graph.live(edges.values())
    uses = [e >> 1 for n in live if graph.op[n] > INPUT for e in graph.operands(n)] + [
        e >> 1 for e in edges.values()
    ]
    text = dict(called)
    count = 0

    def of(e: int) -> str:
        return f"(-{text[e >> 1]})" if e & 1 else text[e >> 1]

    for n in live:
        op = graph.op[n]
        if op == CONST:
            text[n] = repr(graph.constants[graph.a[n]])
        elif op > INPUT:
            made = _written(op, [of(e) for e in graph.operands(n)])
            if uses.count(n) > 1 or len(made) > LONG:
                count += 1
                yield f"t{count}", made
                made = f"t{count}"
            text[n] = made
    for name, e in edges.items():
        yield name, of(e)


def _written(op: int, x: list[str]) -> str:
    if op in (ADD, MUL, DIV):
        return f"({x[0]} {'+*/'[(ADD, MUL, DIV).index(op)]} {x[1]})"
    if op in (WHEN, UNLESS):
        return f"where({x[0]} > 0, {', '.join((x[1], '0') if op == WHEN else ('0', x[1]))})"
    return f"{OPS[op].name}({', '.join(x)})"
