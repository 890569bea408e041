"""Quantities as expressions of CasADi, which it differentiates by their structure and writes as C."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from .codegen.graph.evaluate import evaluate_edges
from .codegen.graph.ops import ATAN2, COS, FUNCTIONS, SIN, UNLESS, WHEN
from .codegen.graph.program import Program
from .compiler.recipe import Recipe
from .documents.sequence.names import identifier
from .io.given import spelled_out
from .io.packages import package
from .model.draft import model_of
from .model.dynamics import Described
from .model.quantities import LinkOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack


@spelled_out(LinkOptions)
def function(
    robot: Described,
    quantity: str | Sequence[str],
    parameters: str | Sequence[str] = (),
    *,
    formalism: str = "auto",
    f_ext: str | Sequence[str] = (),
    passive: bool = False,
    **options: Unpack[LinkOptions],
) -> Any:
    """A casadi.Function (*state, [parameters]) -> results of a robot's quantity, over SX.

    Vectors are columns, matrices in rows and columns as `drevo.compile` gives them, without their structural
    zeros; poses of all links lie below one another. Call it with SX, MX or numbers, hand it to `nlpsol`, Opti or
    models of acados, take its `jacobian`, `generate` C from it. Nothing is checked at run time: what is not finite
    stays so. The arguments are those of `drevo.compile`. Raises TraceError, InputError.
    """
    casadi = package("casadi", "drevo.casadi")
    model = model_of(robot, "casadi.function")
    program = Recipe.of(
        model, quantity, parameters=parameters, formalism=formalism, external=f_ext, passive=passive,
        options=options,
    ).program(model)  # fmt: skip
    symbols = {x.name: casadi.SX.sym(_name(x.name), x.size) for x in program.inputs}
    leaves = {n: symbols[x.name][k] for x in program.inputs for k, n in enumerate(x.nodes)}
    given = dict(symbols)
    if parameters:
        given["parameters"] = casadi.SX.sym("parameters", len(program.parameters))
        leaves |= {p.node: given["parameters"][k] for k, p in enumerate(program.parameters)}
    values = iter(_values(casadi, program, leaves))
    results = {}
    for o in program.outputs:
        flat = [next(values) for _ in o.edges]
        rows, columns = (prod(o.shape[:-1]), o.shape[-1]) if len(o.shape) > 1 else (prod(o.shape), 1)
        made = casadi.SX(rows, columns)  # all zeros, none of them stored
        for k, x in enumerate(flat):
            if not (isinstance(x, float) and x == 0.0):
                made[k // columns, k % columns] = x
        results[o.name] = made
    return casadi.Function(
        identifier(program.name), list(given.values()), list(results.values()),
        [_name(n) for n in given], [_named(n, list(given)) for n in results],
    )  # fmt: skip


def _name(name: str) -> str:
    return name if name.isidentifier() else identifier(name)


def _named(name: str, inputs: Sequence[str]) -> str:
    found = _name(name)
    return f"{found}_out" if name in inputs else found


def _values(casadi: Any, program: Program, leaves: dict[int, Any]) -> list[Any]:
    """The results as expressions; constants as floats."""
    meaning: dict[int, Any] = {op: getattr(casadi, name) for op, name in FUNCTIONS.items()}
    meaning |= {SIN: casadi.sin, COS: casadi.cos, ATAN2: casadi.atan2}
    meaning[WHEN] = lambda c, x: casadi.if_else(c > 0.0, x, 0.0)
    meaning[UNLESS] = lambda c, x: casadi.if_else(c > 0.0, 0.0, x)
    return evaluate_edges(program.graph, program.output_edges, leaves, meaning=meaning)
