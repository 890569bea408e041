"""Products of a program's derivatives with vectors, as programs: what learning and optimal control ask for.

With J the derivative of all outputs by all inputs, "jvp" gives J x for tangents x of the inputs, "vjp" gives J^T w
for cotangents w of the outputs; neither forms J. One sweep each (Griewank and Walther 2008, chapter 3): some two
or three times the operations of the program, whatever the number of its inputs and outputs. They compose: the
"jvp" of a "vjp" is a Hessian times a vector. Where q holds quaternions its tangents are of size nv, in the frames
of the joints; or, for callers who know numbers only, of size nq: then the quantity is that of the quaternions made
unit, whose derivative along themselves is zero.

The motions of the configuration manifold as compiled Functions; what they refuse is said by NumPy's form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..codegen.call.function import Function, Plain, Spec
from ..codegen.graph.derivative import cotangents, tangents
from ..codegen.graph.node import Expr, Graph
from ..codegen.graph.program import Input, Output, Program
from ..codegen.store.build import Built, Manifest
from ..io.given import Array
from ..mechanics import configuration
from ..mechanics.rotation import joint_coordinate_rates
from ..mechanics.scalar import Scalar, Vector
from ..mechanics.tree import Tree
from ..model.description import Model
from ..model.dynamics import Described
from .trace import requested
from .tracer import nodes_of, unknowns
from .ways import MAX_MANIFOLD_STEPS

if TYPE_CHECKING:
    from ..codegen.graph.program import Program


class _Tangents(NamedTuple):
    """The tangents of an input: their size, and how they move its numbers."""

    size: int
    to_numbers: Callable[[Sequence[Expr]], Sequence[Scalar]]


def product_program(program: Program, tree: Tree, kinds: Sequence[str], numbers: bool = False) -> Program:
    """The program's products, one of another: (*inputs, [parameters], *cotangents or *tangents).

    The parameters are an argument like the others, whose cotangents come last. numbers: tangents of q are of
    size nq.
    """
    if program.parameters and not any(x.name == "parameters" for x in program.inputs):
        ports = Input("parameters", (len(program.parameters),), tuple(p.node for p in program.parameters))
        program = replace(program, inputs=(*program.inputs, ports))
    for kind in kinds:
        ways = [_tangents_of(program.graph, tree, x, numbers) for x in program.inputs]
        made = (_vjp if kind.endswith("vjp") else _jvp)(program, ways)
        outputs = program.outputs if kind.startswith("value") else ()
        program = replace(made, name=f"{program.name}_{kind}", outputs=outputs + made.outputs)
    return program


def _vjp(program: Program, ways: Sequence[_Tangents]) -> Program:
    """J^T w."""
    g = program.graph
    given = [unknowns(g, f"{o.name}_bar", len(o.edges)) for o in program.outputs]
    flat = cotangents([g.expr(e) for e in program.output_edges], [w for ws in given for w in ws], _leaves(program))
    outputs, start = [], 0
    for x, way in zip(program.inputs, ways):
        d = unknowns(g, "d", way.size)  # the map to numbers is linear in it: its transpose is one more sweep
        found = cotangents(way.to_numbers(d), flat[start : start + x.size], d)
        start += x.size
        outputs.append(Output(f"{x.name}_bar", _shape(x, way), tuple(map(g.edge, found))))
    return _made(program, [(f"{o.name}_bar", o.shape) for o in program.outputs], given, outputs)


def _jvp(program: Program, ways: Sequence[_Tangents]) -> Program:
    """J x."""
    g = program.graph
    given = [unknowns(g, f"{x.name}_dot", way.size) for x, way in zip(program.inputs, ways)]
    moved = [r for way, d in zip(ways, given) for r in way.to_numbers(d)]
    rates = {x.edge: r for x, r in zip(_leaves(program), moved)}
    flat = iter(tangents([g.expr(e) for e in program.output_edges], rates))
    outputs = [
        Output(f"{o.name}_dot", o.shape, tuple(g.edge(next(flat)) for _ in o.edges)) for o in program.outputs
    ]
    return _made(
        program, [(f"{x.name}_dot", _shape(x, way)) for x, way in zip(program.inputs, ways)], given, outputs
    )


def _shape(x: Input, way: _Tangents) -> tuple[int, ...]:
    return x.shape if way.size == x.size else (way.size,)


def _made(
    program: Program,
    names: Sequence[tuple[str, tuple[int, ...]]],
    given: Sequence[Sequence[Expr]],
    outputs: Sequence[Output],
) -> Program:
    more = tuple(Input(name, shape, nodes_of(x)) for (name, shape), x in zip(names, given))
    # what else the program has is of its own outputs
    return replace(program, inputs=program.inputs + more, outputs=tuple(outputs), sections=(), labels={})


def _leaves(program: Program) -> list[Expr]:
    return [Expr(program.graph, 2 * n) for x in program.inputs for n in x.nodes]


def _tangents_of(g: Graph, tree: Tree, x: Input, numbers: bool) -> _Tangents:
    """Those of q where it holds quaternions; of all else, changes of the numbers."""
    if x.name != "q" or tree.nq == tree.nv:
        return _Tangents(x.size, list)
    q = [Expr(g, 2 * n) for n in x.nodes]
    return _Tangents(tangent_size(tree, numbers), partial(number_rates, tree, q, numbers=numbers))


def tangent_size(tree: Tree, numbers: bool) -> int:
    """The size of the tangents that `number_rates` takes."""
    return tree.nq if numbers else tree.nv


def number_rates(tree: Tree, q: Vector, d: Vector, numbers: bool = False) -> list[Scalar]:
    """Rates of the numbers of q along tangents d: of size nv, in the frames of the joints, or with `numbers` of
    size nq, without what would change the length of a quaternion."""
    out: list[Scalar] = [0.0] * tree.nq
    for b in tree.owners():
        at = slice(b.q, b.q + b.nq)
        if numbers:
            out[at] = _level(q[at], d[at]) if b.nq != b.nv else d[at]
        else:
            out[at] = joint_coordinate_rates(q[at], q[at], d[b.v : b.v + b.nv])
    return out


def _level(q: Vector, d: Vector) -> list[Scalar]:
    """Rates of a joint's coordinates whose last four are a quaternion, without what would change its length."""
    turning = [*zip(q[-4:], d[-4:])]
    along = sum((p * r for p, r in turning), 0.0)
    return [*d[:-4], *(r - p * along for p, r in turning)]


JOINT_STEPS = {7: 150, 4: 80}  # of a free joint and of a ball, roughly; three of any other coordinate


class OnManifold(NamedTuple):
    """given: arguments, of size nq where they begin with q, else nv. gives: results, matrices if there are two."""

    given: tuple[str, str]
    gives: tuple[str, ...]
    compute: Callable[..., Any]  # on arrays
    scalars: str  # what computes it over scalars


ON_MANIFOLD = {
    "integrate": OnManifold(("q", "dv"), ("q1",), configuration.integrate, "exponential"),
    "difference": OnManifold(("q0", "q1"), ("dv",), configuration.difference, "logarithm"),
    "integrate_derivatives": OnManifold(
        ("q", "dv"), ("dq1_dq", "dq1_ddv"), configuration.integrate_derivatives, "exponential_rates"
    ),
    "difference_derivatives": OnManifold(
        ("q0", "q1"), ("ddv_dq0", "ddv_dq1"), configuration.difference_derivatives, "logarithm_rates"
    ),
}


def on_manifold(robot: Described | Model, name: str) -> Function:
    """A row of ON_MANIFOLD as a Function."""
    model = robot if isinstance(robot, Model) else robot.model
    row = ON_MANIFOLD[name]

    def check(*values: Any) -> list[Array]:
        return configuration.state(model, name, **dict(zip(row.given, values)))

    plain = Plain(check, partial(row.compute, model))
    runs = [(rule, sq.stop - sq.start) for rule, sq, _ in model.runs]
    steps = sum(JOINT_STEPS.get(rule, 3 * n) for rule, n in runs)
    if steps + (len(row.gives) - 1) * model.nv**2 // 8 > MAX_MANIFOLD_STEPS:
        function = _interpreted(model, name, plain)
    else:
        make = partial(program, model, name)
        function = requested(robot, (name, *runs), make, shared=True, plain=plain)
    function.recipe = partial(on_manifold, model, name)
    return function


def _size(model: Model, name: str) -> int:
    return model.nq if name[0] == "q" else model.nv


def _interpreted(model: Model, name: str, plain: Plain) -> Function:
    """Without a program, whose size would be that of the tree."""
    row = ON_MANIFOLD[name]
    shapes = [(_size(model, x),) if len(row.gives) == 1 else (model.nv,) * 2 for x in row.gives]
    inputs = tuple((x, (_size(model, x),)) for x in row.given)
    manifest = Manifest(
        name, inputs, tuple(zip(row.gives, shapes)), None, (), {}, 0, 0, 0, 1, (), {"robot": model.name}
    )
    return Function(Built(manifest, None), Spec(), plain=plain)


def program(model: Model, name: str) -> Program:
    """The program of a motion; nothing of this runs when the cache is warm."""
    from ..mechanics import manifold
    from .tracer import Tracer

    t, row = Tracer(name), ON_MANIFOLD[name]
    given = [t.input(x, _size(model, x)) for x in row.given]
    for x in (x for x, label in zip(given, row.given) if label[0] == "q"):
        for rule, sq, _ in model.runs:
            if rule:
                t.require_unit(x[sq.stop - 4 : sq.stop])
    found = getattr(manifold, row.scalars)(model.runs, *given)
    if len(row.gives) == 1:
        t.output(row.gives[0], found)
    else:
        n = range(model.nv)
        for label, entries in zip(row.gives, found):
            t.output(label, [entries.get((i, j), 0.0) for i in n for j in n], (model.nv, model.nv))
    return t.program()
