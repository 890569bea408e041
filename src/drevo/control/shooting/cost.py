"""Costs given as functions over scalars: their value, gradient and Hessian in the graph.

A sum of squares c r^2, wherever in the sum they stand, gives 2 c J^T J, Gauss and Newton's part of the Hessian,
which no square makes indefinite; what is no square is differentiated twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...codegen.graph.derivative import cotangents
from ...codegen.graph.derivative import partial as derivatives
from ...codegen.graph.node import Expr, Graph
from ...codegen.graph.ops import ADD, DIV, MUL
from ...codegen.graph.program import Program
from ...compiler.differentiate import at_zero
from ...compiler.tracer import Tracer, unknowns
from ...constraint.functions import call_traced, short
from ...errors import InputError, UnknownNameError
from ...mechanics.algorithms.derivatives import displaced, variables
from ...mechanics.algorithms.kinematics import pose
from ...mechanics.scalar import Context, Scalar, Vector, is_zero
from ...mechanics.tree import Tree
from ...model.description import Model
from ...model.draft import did_you_mean

CostFunction = Callable[..., Scalar]


class Cost(NamedTuple):
    """A function of the user's. terminal: of (pose, q, v), else of (pose, q, v, tau, t); exact: its whole Hessian
    is taken."""

    f: CostFunction | None
    terminal: bool = False
    exact: bool = False

    def value(self, tree: Tree, q: Vector, v: Vector, tau: Vector = (), t: Scalar = 0.0) -> Scalar:
        """The cost, traced and checked."""
        if self.f is None:
            return 0.0
        name, silent = "terminal" if self.terminal else "cost", tree.replace(context=Context())
        title, f = f"optimise: {name}", self.f

        def known(link: str) -> Any:
            if link not in tree.frames:
                raise UnknownNameError(f"link {link!r} is not in the robot{did_you_mean(str(link), tree.frames)}")
            return pose(silent, q, link)

        given = (known, list(q), list(v)) if self.terminal else (known, list(q), list(v), list(tau), t)
        value = call_traced(title, lambda: f(*given))
        if hasattr(value, "shape") and getattr(value, "size", 0) == 1 and not isinstance(value, Expr):
            value = value.item()
        if isinstance(value, Expr):
            return value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(f"{title} gave {short(value)}, not one scalar; return a single sum")
        if value != value or abs(value) == float("inf"):
            raise InputError(f"{title} is {value} whatever the state is; a weight or a target is no finite number")
        return float(value)


class Weighted(NamedTuple):
    """A term of a sum: by r, or by r^2."""

    by: Scalar
    r: Expr
    square: bool


def weighted_terms(graph: Graph, x: Scalar, by: Sequence[Scalar]) -> list[Weighted]:
    """A sum taken apart as far as its terms' weights do not depend on what it is differentiated by."""
    if not isinstance(x, Expr):
        return []
    moved = _moved(graph, x, by)
    out: list[Weighted] = []
    stack: list[tuple[int, Scalar]] = [(x.edge, 1.0)]
    while stack:
        edge, weight = stack.pop()
        n, weight = edge >> 1, -weight if edge & 1 else weight
        if n not in moved:
            continue
        operands = graph.operands(n)
        if graph.op[n] == ADD:
            stack += [(e, weight) for e in operands]
            continue
        if graph.op[n] == DIV and operands[1] >> 1 not in moved:
            stack.append((operands[0], weight / graph.expr(operands[1])))
            continue
        if graph.op[n] == MUL:
            (a, p), (b, r) = (_apart(graph, e, moved) for e in operands)
            weight = weight * a * b
            if p < 0 or r < 0:
                stack.append((max(p, r), weight))
                continue
            if p >> 1 == r >> 1:
                out.append(Weighted(-weight if (p ^ r) & 1 else weight, Expr(graph, p & ~1), True))
                continue
            out.append(Weighted(weight * Expr(graph, r), Expr(graph, p), False))
            continue
        out.append(Weighted(weight, Expr(graph, 2 * n), False))
    return out


def _moved(graph: Graph, x: Expr, by: Sequence[Scalar]) -> set[int]:
    """Nodes that depend on some inputs."""
    moved = {y.edge >> 1 for y in by}
    for n in graph.live([x.edge]):
        if any(e >> 1 in moved for e in graph.operands(n)):
            moved.add(n)
    return moved


def _apart(graph: Graph, edge: int, moved: set[int]) -> tuple[Scalar, int]:
    """An edge as weight times what moves, which is -1 where nothing does."""
    weight: Scalar = 1.0
    while True:
        n = edge >> 1
        if n not in moved:
            return weight * graph.expr(edge), -1
        inner = [e for e in graph.operands(n) if e >> 1 in moved] if graph.op[n] == MUL else []
        if len(inner) != 1:
            return weight, edge
        other = next(e for e in graph.operands(n) if e >> 1 not in moved)
        weight, edge = weight * graph.expr(other) * (-1.0 if edge & 1 else 1.0), inner[0]


def expansion(
    graph: Graph, x: Scalar, by: Sequence[Scalar], exact: bool
) -> tuple[list[Scalar], list[list[Scalar]]]:
    """Gradient and Hessian of a sum, of its squares Gauss and Newton's."""
    n = len(by)
    gradient: list[Scalar] = [0.0] * n
    hessian: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    terms = weighted_terms(graph, x, by)
    squares = [] if exact else [y for y in terms if y.square]
    rest: Scalar = 0.0
    for y in terms:
        if exact or not y.square:
            rest = rest + y.by * (y.r * y.r if y.square else y.r)
    for y, row in zip(squares, derivatives([y.r for y in squares], by) if squares else ()):
        for i in (i for i in range(n) if not is_zero(row[i])):
            pushed = 2.0 * y.by * row[i]
            gradient[i] = gradient[i] + pushed * y.r
            for j in (j for j in range(i + 1) if not is_zero(row[j])):
                hessian[i][j] = hessian[i][j] + pushed * row[j]
    if isinstance(rest, Expr):
        more = cotangents([rest], [1.0], [*by])
        for i, row in enumerate(derivatives(more, by)):
            gradient[i] = gradient[i] + more[i]
            for j in range(i + 1):
                hessian[i][j] = hessian[i][j] + row[j]
    return gradient, [[hessian[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]


class CostShape(NamedTuple):
    """The shape of a cost's expansions: driven rates, numbers in whole vectors."""

    driven: tuple[int, ...]
    lanes: int

    def padded(self, n: int) -> int:
        return -(-n // self.lanes) * self.lanes


def expansion_program(model: Model, cost: Cost, shape: CostShape) -> Program:
    """(q, v, tau, time) -> [l_xx | l_x], [l_ux | l_u], l_uu, times dt, in rows of whole vectors; time: t, dt. Of a
    terminal cost (q, v) -> [l_xx | l_x]."""
    t = Tracer("expansion", model)
    n, tree = model.nv, t.tree
    q, v = t.input("q", model.nq), t.input("v", n)
    tau = [] if cost.terminal else t.input("tau", n)
    time = [0.0, 1.0] if cost.terminal else t.input("time", 2)
    d = unknowns(t.graph, "d", n)
    at = displaced(tree, q, d, 2)
    driven = () if cost.terminal else shape.driven
    held = [x if i in driven else 0.0 for i, x in enumerate(tau)]
    by = [*variables(tree, q, d), *v, *(tau[i] for i in driven)]
    total = cost.value(tree, at, v, held, time[0]) * time[1]
    gradient, hessian = expansion(t.graph, total, by, cost.exact)
    k, wide, narrow = 2 * n, shape.padded(2 * n + 1), shape.padded(len(driven))

    def row(i: int, first: int, last: int, width: int, more: list[Scalar]) -> list[Scalar]:
        entries = [*hessian[i][first:last], *more]
        return [*entries, *[0.0] * (width - len(entries))]

    blocks = [("xx", [row(i, 0, k, wide, [gradient[i]]) for i in range(k)])]
    if not cost.terminal:
        inputs = range(k, k + len(driven))
        blocks += [("ux", [row(i, 0, k, wide, [gradient[i]]) for i in inputs])]
        blocks += [("uu", [row(i, k, k + len(driven), narrow, []) for i in inputs])]
    flat = iter(at_zero([x for _, rows in blocks for line in rows for x in line], d) if n else [])
    for name, rows in blocks:
        t.output(name, [[next(flat) for _ in line] for line in rows], (len(rows), len(rows[0])))
    return t.program(quantity="expansion")


def value_program(model: Model, cost: Cost) -> Program:
    """The terminal cost of (q, v)."""
    t = Tracer("terminal", model)
    q, v = t.input("q", model.nq), t.input("v", model.nv)
    t.output("value", cost.value(t.tree, q, v), ())
    return t.program(quantity="terminal cost")
