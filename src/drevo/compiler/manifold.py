"""The motions of the configuration manifold as compiled Functions; what they refuse is said by NumPy's form."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..codegen.call.function import Function, Plain, Spec
from ..codegen.store.build import Built, Manifest
from ..io.given import Array
from ..mechanics import configuration
from ..model.description import Model
from ..model.dynamics import Described
from .request import requested
from .ways import MAX_MANIFOLD_STEPS

if TYPE_CHECKING:
    from ..codegen.graph.program import Program

STEPS = {7: 150, 4: 80}  # of a free joint and of a ball, roughly; three of any other coordinate


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
    steps = sum(STEPS.get(rule, 3 * n) for rule, n in runs)
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
        name, inputs, tuple(zip(row.gives, shapes)), None, (), {}, (0, 0.0), 0, 0, 0, 1, (), {"robot": model.name}
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
