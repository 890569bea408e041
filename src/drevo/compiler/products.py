"""Products of a program's derivatives with vectors, as programs: what learning and optimal control ask for.

With J the derivative of all outputs by all inputs, "jvp" gives J x for tangents x of the inputs, "vjp" gives J^T w
for cotangents w of the outputs; neither forms J. One sweep each (Griewank and Walther 2008, chapter 3): some two
or three times the operations of the program, whatever the number of its inputs and outputs. They compose: the
"jvp" of a "vjp" is a Hessian times a vector. Where q holds quaternions its tangents are of size nv, in the frames
of the joints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..codegen.graph.derivative import cotangents, tangents
from ..codegen.graph.node import Expr, FloatOrExpr, Graph
from ..codegen.graph.program import Input, Output, Program
from ..mechanics.rotation import joint_coordinate_rates
from ..mechanics.tree import Tree
from .tracer import nodes_of, unknowns


def product_program(program: Program, tree: Tree, kinds: Sequence[str]) -> Program:
    """The program's products, one of another: (*inputs, [parameters], *cotangents or *tangents).

    The parameters are an argument like the others, whose cotangents come last.
    """
    if program.parameters and not any(x.name == "parameters" for x in program.inputs):
        ports = Input("parameters", (len(program.parameters),), tuple(p.node for p in program.parameters))
        program = replace(program, inputs=(*program.inputs, ports))
    for kind in kinds:
        made = _cotangents(program, tree) if kind.endswith("vjp") else _tangents(program, tree)
        outputs = program.outputs if kind.startswith("value") else ()
        program = replace(made, name=f"{program.name}_{kind}", outputs=outputs + made.outputs)
    return program


def _cotangents(program: Program, tree: Tree) -> Program:
    """J^T w."""
    g = program.graph
    given = [unknowns(g, f"{o.name}_bar", len(o.edges)) for o in program.outputs]
    at = _inputs(program)
    flat = cotangents([g.expr(e) for e in program.output_edges], [w for ws in given for w in ws], at)
    outputs, start = [], 0
    for x in program.inputs:
        found = flat[start : start + x.size]
        if x.name == "q":
            found = _to_rates(g, tree, x, found)
        start += x.size
        shape = (len(found),) if x.name == "q" else x.shape
        outputs.append(Output(f"{x.name}_bar", shape, tuple(map(g.edge, found))))
    return _made(program, [(f"{o.name}_bar", o.shape) for o in program.outputs], given, outputs)


def _tangents(program: Program, tree: Tree) -> Program:
    """J x."""
    g = program.graph
    sizes = [tree.nv if x.name == "q" else x.size for x in program.inputs]
    given = [unknowns(g, f"{x.name}_dot", n) for x, n in zip(program.inputs, sizes)]
    rates: dict[int, FloatOrExpr] = {}
    for x, d in zip(program.inputs, given):
        moved = _from_rates(g, tree, x, d) if x.name == "q" else d
        rates |= {2 * n: r for n, r in zip(x.nodes, moved)}
    flat = iter(tangents([g.expr(e) for e in program.output_edges], rates))
    outputs = [
        Output(f"{o.name}_dot", o.shape, tuple(g.edge(next(flat)) for _ in o.edges)) for o in program.outputs
    ]
    shapes = [(n,) if x.name == "q" else x.shape for x, n in zip(program.inputs, sizes)]
    return _made(program, [(f"{x.name}_dot", s) for x, s in zip(program.inputs, shapes)], given, outputs)


def _made(
    program: Program,
    names: Sequence[tuple[str, tuple[int, ...]]],
    given: Sequence[Sequence[Expr]],
    outputs: Sequence[Output],
) -> Program:
    more = tuple(Input(name, shape, nodes_of(x)) for (name, shape), x in zip(names, given))
    return replace(program, inputs=program.inputs + more, outputs=tuple(outputs), sections=(), labels={})


def _inputs(program: Program) -> list[Expr]:
    return [Expr(program.graph, 2 * n) for x in program.inputs for n in x.nodes]


def _from_rates(g: Graph, tree: Tree, q: Input, d: Sequence[FloatOrExpr]) -> list[FloatOrExpr]:
    """dq of a tangent."""
    at = [Expr(g, 2 * n) for n in q.nodes]
    out: list[FloatOrExpr] = [0.0] * tree.nq
    for b in tree.bodies:
        own = at[b.q : b.q + b.nq]
        out[b.q : b.q + b.nq] = joint_coordinate_rates(own, own, d[b.v : b.v + b.nv])
    return out


def _to_rates(g: Graph, tree: Tree, q: Input, w: Sequence[FloatOrExpr]) -> list[FloatOrExpr]:
    """The cotangent of q's tangent from that of its numbers: the same linear map, reversed."""
    if tree.nq == tree.nv:
        return list(w)
    d = unknowns(g, "d", tree.nv)
    return cotangents(_from_rates(g, tree, q, d), w, d)
