"""write_out: the equations of a quantity as a Derivation, with their numeric check."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...codegen.graph import levers
from ...errors import InputError, TraceError, one_of
from ...io.given import flag
from ...mechanics.algorithms.passive import with_forces
from ...mechanics.configuration import random
from ...mechanics.formalisms import telegin
from ...mechanics.tree import build_tree, plain_tree
from ...model.description import Model
from ...model.dynamics import Described
from ...model.quantities import LinkOptions, options_of, quantity, takes_forces
from ..compete import compete
from ..compile_cost import require_readable
from ..formalisms import common_algorithm, page_of_paper
from ..trace import in_letters, trace
from .derivation import Derivation, write_out_program
from .lagrange import TERMS, inexact_energy, lagrange_equations
from .symmetry import symmetrised
from .telegin_inputs import described, with_coordinates

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ...codegen.graph.program import Program

SNAP = 1e-9  # rad: a placement written as 1.570796327 is a quarter turn to the people who read the equations
CHECKED_STATES = 32


@contextmanager
def uncollected() -> Iterator[None]:
    """Graphs and texts hold no cycles: the collector would only walk them, again and again."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


@uncollected()
def quantity_equations(
    robot: Described | Model,
    name: str,
    *,
    formalism: str = "auto",
    symbols: str | Sequence[str] | None = None,
    objective: str = "add+mul",
    sequence: str | None = None,
    mode: str | None = None,
    passive: bool = False,
    symmetric: bool | str | float | Sequence[str] = "auto",
    merge_equal: bool = False,
    **options: Unpack[LinkOptions],
) -> Derivation:
    """The written-out equations of a quantity: see `drevo.write_out`."""
    (model, allowed, change), patterns = symmetrised(_model(robot), symmetric), _patterns(symbols)
    merge, acting = flag("write_out: merge_equal", merge_equal), flag("write_out: passive", passive)
    if not isinstance(name, str):
        raise TraceError(f"write_out takes one quantity by its name, not {str(name)[:60]}: call it for each")
    if name == TERMS.name:
        _require_plain(name, formalism, {"mode": mode, "sequence": sequence, **options})
        require_readable(model, name)
        return lagrange_equations(model, patterns, merge)
    wanted = quantity(name).name
    if mode is not None:
        return inexact_energy(model, wanted, formalism, mode, patterns, merge, sequence)
    chosen = options_of([wanted], options, [l.name for l in model.links])
    require_readable(model, wanted)
    if sequence is not None:
        program = sequence_program(model, wanted, formalism, sequence, patterns, merge, chosen)
    else:
        with levers.without(*([] if allowed else ["wheels"])):
            program = compete(
                model,
                wanted,
                objective,
                formalism=formalism,
                parameters=patterns,
                options=chosen,
                snap=SNAP,
                passive=acting and takes_forces([wanted]),
                merge_equal=merge,
            ).program
    derivation = write_out_program(described(program, model, patterns, merge, sequence == "paper"))
    checks = [check_row(model, wanted, derivation, chosen, passive), *([change] if change else [])]
    return derivation.with_checks(checks)


def _require_plain(name: str, formalism: str, options: Mapping[str, Any]) -> None:
    """The equations of Lagrange have one way and no options."""
    for option, given in options.items():
        if given is not None:
            raise TraceError(f"{name} takes no option {option!r}")
    one_of(f"{name}: formalism", formalism, ("auto", "telegin"))


def written_program(program: Program, robot: Described | Model) -> Derivation:
    """A program about a robot as a Derivation, with what its inputs are."""
    return write_out_program(with_coordinates(program, _model(robot)))


def _model(robot: Any) -> Model:
    """The description behind what was given."""
    found = robot if isinstance(robot, Model) else getattr(robot, "model", None)
    if not isinstance(found, Model):
        raise InputError(f"write_out takes a robot, not {str(robot)[:60]!r}: make one with drevo.load")
    return found


def _patterns(symbols: Any) -> tuple[str, ...]:
    """The parameters that stay symbols, as patterns of their names."""
    if symbols is None:
        return ()
    many = [symbols] if isinstance(symbols, str) else symbols
    if not isinstance(many, (list, tuple, set, frozenset)) or not all(isinstance(s, str) for s in many):
        raise InputError(f"write_out: symbols must be 'all' or names such as ['*.mass'], not {str(symbols)[:60]}")
    return tuple("*" if s == "all" else s for s in many)


def _stacked(value: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Nested lists of numbers and of arrays over the states as one array with the states first."""
    flat = [value]
    for _ in shape[1:]:
        flat = [x for row in flat for x in row]
    out = np.empty((shape[0], len(flat)))
    for k, x in enumerate(flat):
        out[:, k] = x
    return out.reshape(shape)


def sequence_program(
    model: Model, name: str, formalism: str, sequence: str, parameters: Sequence[str], merge_equal: bool = False,
    options: Mapping[str, str] | None = None,
) -> Program:  # fmt: skip
    """A paper's own path, or Telegin's elements of the mass matrix in one of his orders of work."""
    one_of("sequence", sequence, telegin.SEQUENCES)
    if sequence == "paper" and (name != "mass_matrix" or formalism not in ("auto", "telegin")):
        paper, compute = page_of_paper(formalism, name)
        plain_tree(model, f"sequence {sequence!r}", remedy="leave sequence out")
        return trace(
            model, in_letters(paper, quantity(name)), parameters=parameters, compute=compute, snap=SNAP,
            meta={"formalism": paper}, options=options,
            merge_equal=merge_equal,
        )  # fmt: skip
    if name != "mass_matrix" or formalism not in ("auto", "telegin"):
        raise TraceError(f"sequence {sequence!r} belongs to mass_matrix by telegin, not to {name} by {formalism}")
    plain_tree(model, f"sequence {sequence!r}", remedy="leave sequence out")
    about = {"formalism": "telegin", **telegin.META.get(sequence, {})}
    return trace(
        model, name, parameters=parameters, compute=telegin.SEQUENCES[sequence], snap=SNAP, meta=about,
        merge_equal=merge_equal,
    )  # fmt: skip


def page_by_lines(
    page: Callable[..., Program], model: Model, symbols: Any, merge_equal: bool, plain: Derivation
) -> Derivation:
    """The program that a page gives with parameters, snap and merge_equal, compared with the plain equations."""
    patterns, merge = _patterns(symbols), flag("write_out: merge_equal", merge_equal)
    program = page(parameters=patterns, snap=SNAP, merge_equal=merge)
    derivation = write_out_program(described(program, model, patterns, merge))
    rng = np.random.default_rng(0)
    state: dict[str, Any] = {p.name: rng.normal(size=(CHECKED_STATES, p.size)) for p in program.inputs} | {
        "q": random(model, rng, (CHECKED_STATES,))
    }
    worst = 0.0
    values = (x.evaluate(**{p.name: state[p.name] for p in x.program.inputs}) for x in (derivation, plain))
    for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in values)):
        scale = float(np.max(np.abs(b), initial=0.0)) or 1.0
        worst = max(worst, float(np.max(np.abs(a - b), initial=0.0)) / scale)
    return derivation.with_checks(
        [(f"{plain.about.quantity} in the plain way, relative to the largest value", worst, CHECKED_STATES)]
    )


def check_row(
    model: Model, name: str, derivation: Derivation, options: dict[str, str], passive: bool = False
) -> tuple[str, float, int]:
    """Worst difference of the written-out sequence from the plain algorithm, over random states."""
    rng = np.random.default_rng(0)
    n = CHECKED_STATES
    state: dict[str, Any] = {s: random(model, rng, (n,)) if s == "q" else rng.normal(size=(n, model.nv))
                             for s in quantity(name).state}  # fmt: skip
    columns = [list(np.ascontiguousarray(np.moveaxis(x, -1, 0))) for x in state.values()]
    compute = common_algorithm(name)
    compute = with_forces(name, compute) if passive else compute
    expected: Any = compute(build_tree(model, snap=SNAP, forces=True), *columns, **options)
    got = derivation.evaluate(**state)
    values = got if isinstance(got, tuple) else (got,)
    worst = 0.0
    for a, b in zip(values, expected if isinstance(got, tuple) else (expected,)):
        b = _stacked(b, a.shape)
        scale = float(np.max(np.abs(b), initial=0.0)) or 1.0
        worst = max(worst, float(np.max(np.abs(a - b), initial=0.0)) / scale)
    return f"{name} against the plain recursion, relative to the largest value", worst, CHECKED_STATES
