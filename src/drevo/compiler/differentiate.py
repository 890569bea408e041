"""Derivatives of any quantity, of any order, by q, v, a, tau or time, as compiled Functions."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import factorial, prod
from typing import TYPE_CHECKING, Any, TypeVar

from ..codegen.call.function import Function, Spec
from ..codegen.graph.derivative import partial
from ..codegen.graph.node import Expr, Graph
from ..codegen.graph.ops import ATAN2, CONST, COS, FUNCTIONS, INPUT, OPS, SIN, UNLESS, WHEN
from ..codegen.graph.program import Program
from ..errors import InputError, TraceError, one_of
from ..io.given import asked, flag, positive, spelled_out
from ..mechanics import scalar
from ..mechanics.algorithms.derivatives import displaced, motion_series, variables
from ..mechanics.formalisms import zaremba, zaremba_page
from ..mechanics.formalisms.zaremba import Entries
from ..mechanics.jet import coefficient
from ..mechanics.scalar import Scalar, Vector, is_zero
from ..mechanics.tree import Tree
from ..model.description import Model
from ..model.draft import axes_in, model_of
from ..model.dynamics import Described
from ..model.quantities import LinkOptions, Quantity, names_of, options_of
from ..model.quantities import quantity as found_quantity
from ..model.regularity import require_masses
from .compile_cost import MAX_DENSE_ENTRIES, PATIENCE, require_derivable, require_derivable_by_time, require_prompt
from .formalisms import MEETINGS, common_algorithm, fastest
from .packing import falling, in_order, is_even, row_major, scattered
from .packing import unpack as unpack
from .search import Compute, Preparation
from .trace import in_letters, output_shape, requested, trace
from .tracer import Tracer, unknowns

if TYPE_CHECKING:
    from typing_extensions import Unpack

SCATTERED = 20_000  # entries: beyond it a dense kernel is mostly stores, which take long to compile
WRITTEN_OUT = 100_000  # results of a text
RACE = 512  # nv to the order, up to which "auto" writes every way out and takes the shortest
_EFFORTS = ("inverse_dynamics", "bias")
RATES = ("v", "a", "j", "s")  # the derivatives of q by time; then q5, q6, ..
Key = TypeVar("Key")
NamedInputs = Mapping[str, list[Expr]]


@asked
@spelled_out(LinkOptions)
def derivative(
    robot: Described | Model,
    quantity: str,
    wrt: str | Sequence[str],
    *,
    method: str = "auto",
    dtype: str = "float64",
    layout: str = "rows",
    packed: bool = False,
    check: bool = True,
    budget: float = PATIENCE,
    **options: Unpack[LinkOptions],
) -> Function:
    """The partial derivative of a quantity as a Function of the quantity's state, one more axis per name in wrt.

    wrt: "q", "v", "a" or "tau", or a tuple of them in the order of the axes, each of size nv. With respect to q:
    on the tangent space, the derivatives of f(q (+) d) in one d at d = 0, symmetric in repeated q.
    "t", ("t", "t"), ..: along a motion; no new axis, but arguments q, v, a, j, s, .. (the rates of v: jerk, snap,
    then q5, q6, ..) as far as they are needed. d tau / dt takes (q, v, a, j), d2 tau / dt2 takes (q, v, a, j, s).
    method: "theorems" (Zaremba; M, gravity, inverse dynamics, bias, pose, jacobian), "graph" (differentiates the
    traced equations), "auto" (theorems and recursions where they apply, the graph for the rest; of small
    derivatives whichever takes the fewest operations).
    packed: structural non-zeros only, and of those that symmetry makes equal one: row >= column of a symmetric
    matrix, falling indices of repeated names. `f.pattern` says which, `unpack(f, values)` puts them in their
    places. High orders have few: of the 32768 entries of d3M/dq3 of a Panda 1163. Large arrays are
    filled from them.
    budget: seconds that compiling may take, by an estimate: TraceError, with the cost, beyond it; a DrevoWarning
    tells of more than 10 s. Raises InputError.
    """
    model = model_of(robot, "derivative")
    x = found_quantity(quantity)
    axes = axes_in(wrt, f"derivative of {x.name}: wrt")
    _refuse(x, axes, method)
    packed = flag("derivative: packed", packed)
    chosen: dict[str, Any] = options_of(names_of(quantity), options, [l.name for l in model.links])
    x = x.chosen(chosen)
    again = functools.partial(
        derivative, model, x.name, axes, method=method, dtype=dtype, layout=layout, packed=packed, check=check,
        budget=positive("derivative: budget", budget, " of seconds"), **chosen,
    )  # fmt: skip
    size = _largest(model, x, axes)
    if not packed and "t" not in axes and size > SCATTERED:
        if size > MAX_DENSE_ENTRIES:
            require_derivable(model, x.name, axes, size, method != "graph", budget)
            raise InputError(
                f"the derivative of {x.name} by {', '.join(axes)} has {size:.3g} entries, most of them zero or "
                "equal to others; take packed=True, whose pattern says where its numbers belong"
            )
        function: Function = scattered(again(packed=True))
    else:
        asked = ("derivative", x.name, axes, method, packed, *chosen.items())
        spec = Spec(dtype=dtype, layout=layout, packed=packed, check=check)
        program = functools.partial(derivative_program, model, x, axes, method, chosen, packed, budget)
        function = requested(robot, asked, program, spec=spec)
    function.recipe = again
    return function


def written_derivative(model: Model, quantity: str, wrt: tuple[str, ...], options: Mapping[str, Any]) -> Program:
    """The program of a derivative, full arrays, for texts and other processors."""
    chosen = options_of([quantity], options, [l.name for l in model.links])
    x = found_quantity(quantity).chosen(chosen)
    _refuse(x, wrt, "auto")
    if (size := _largest(model, x, wrt if "t" not in wrt else ())) > WRITTEN_OUT:
        raise TraceError(
            f"the derivative of {x.name} by {', '.join(wrt)} of {model.name!r} has {size:.3g} results to write "
            "out; take a lower order, or the compiled one with packed=True"
        )
    made = derivative_program(model, x, wrt, "auto", chosen)
    return replace(made, meta={**made.meta, "quantity": f"derivative of {x.name} by {', '.join(wrt)}"})


def derivative_page(model: Model, quantity: str, wrt: tuple[str, ...], formalism: str, **how: Any) -> Program:
    """A derivative by the theorems of Zaremba, line by line, full arrays; how: of `trace`."""
    x = found_quantity(quantity)
    one_of(f"derivative of {x.name}: formalism", formalism, ("auto", "zaremba"))
    outputs = tuple(
        (_title(n, wrt), (*shape, *("nv" for _ in wrt))) for n, shape in in_letters("zaremba", x).outputs
    )
    derived = Quantity(_title(x.name, wrt), x.state, outputs, x.about)
    compute = functools.partial(zaremba_page.derivative_lines, x.name, wrt)
    about = f"derivative of {x.name} by {', '.join(wrt)}"
    return trace(model, derived, compute=compute, meta={"formalism": "zaremba", "quantity": about}, **how)


def _refuse(x: Quantity, wrt: Sequence[str], method: str) -> None:
    one_of("derivative: method", method, ("auto", "theorems", "graph"), InputError)
    if not wrt:
        raise InputError(f"derivative of {x.name}: wrt is empty; name at least one of {', '.join(x.state)}")
    if "t" in wrt:
        _refuse_time(x, wrt, method)
        return
    for s in wrt:
        if s not in x.state:
            raise InputError(f"derivative of {x.name}: it does not depend on {s!r}; it takes {', '.join(x.state)}")


def _refuse_time(x: Quantity, wrt: Sequence[str], method: str) -> None:
    if set(wrt) != {"t"}:
        raise InputError(f"derivative of {x.name} by {', '.join(wrt)}: 't' goes along a motion and stands alone")
    if method != "auto":
        raise InputError(
            f"derivative of {x.name} by t: there is one method, the series; leave out method={method!r}"
        )
    if not set(x.state) <= {"q", "v", "a"}:
        raise InputError(
            f"derivative of {x.name} by t: it takes {', '.join(x.state)}, and a motion gives q, v and a only; "
            "differentiate inverse_dynamics"
        )


def derivative_program(
    model: Model,
    x: Quantity,
    wrt: tuple[str, ...],
    method: str,
    options: Mapping[str, str],
    lower: bool = False,
    budget: float = PATIENCE,
) -> Program:
    """The program that is compiled: the quantity's inputs, every output with an axis more for each name in wrt.

    lower: of entries that symmetry makes equal all but one are left out, as zeros.
    """
    _require_possible(model, x, wrt, method, budget)
    t = Tracer(_title(x.name, wrt), model)
    order = wrt.count("t")
    names = _moving(x, order) if order else x.state
    state = dict(zip(names, t.state(*names)))
    axes = () if order else wrt
    canonical = tuple(sorted(axes, key=x.state.index))
    if order:
        how, found = "series", by_time(t.tree, x, state, order, options)
    else:
        how, found = _entries(t.tree, x, state, canonical, method, options)
    evens = []
    for (name, inner), entries in zip(x.outputs, found):
        shape = output_shape(t.tree, inner)
        full = (*shape, *(t.tree.nv for _ in axes))
        rank = len(shape)
        placed = {falling(k, rank, axes): y for k, y in in_order(entries, rank, canonical, axes).items()}
        even = is_even(placed, shape)
        evens.append(even)
        if lower and axes:
            some = {row_major(k, full): y for k, y in placed.items() if not even or k[0] >= k[1]}
            at = sorted(some)
            t.output(_title(name, wrt), [some[k] for k in at], full, at)
        else:
            every = (falling(k, rank, axes) for k in product(*map(range, full)))
            t.output(_title(name, wrt), [placed.get(k, 0.0) for k in every], full)
    shapes = [o.shape for o in t.outputs]
    made = t.program(quantity=t.name, formalism=how, wrt=axes, even=evens, shapes=shapes)
    what = f"the derivative of {x.name} by {', '.join(wrt)} of {model.name!r}"
    require_prompt(what, sum(n for kind, n in made.counts.items() if kind != "hoisted"), budget)
    return made


def _require_possible(model: Model, x: Quantity, wrt: Sequence[str], method: str, budget: float) -> None:
    if "t" in wrt:
        require_derivable_by_time(model, x.name, len(wrt))
    else:
        require_derivable(model, x.name, wrt, _largest(model, x, wrt), method != "graph", budget)
    if not x.kinematic:
        require_masses(model, x.name)
    if x.inverse:
        from .compile_cost import require_regular

        require_regular(model)


def _largest(model: Model, x: Quantity, wrt: Sequence[str]) -> int:
    """Entries of the largest output."""
    known = {"nv": model.nv, "links": len(model.joints)}
    shapes = ([known[s] if isinstance(s, str) else s for s in shape] for _, shape in x.outputs)
    return int(max(prod(shape) for shape in shapes) * model.nv ** len(wrt))


def _title(name: str, wrt: Sequence[str]) -> str:
    power = str(len(wrt)) if len(wrt) > 1 else ""
    return f"d{power}{name}_" + "_".join(f"d{s}" for s in wrt)


def _entries(
    tree: Tree, x: Quantity, state: NamedInputs, wrt: tuple[str, ...], method: str, options: Mapping[str, str]
) -> tuple[str, list[Entries]]:
    """The method taken, and the entries of every output; "auto" takes the fewest operations."""
    if method == "graph":
        return "graph", by_graph(tree, x, state, wrt, options)
    race = method == "auto" and tree.nv ** len(wrt) <= RACE
    candidates = _by_theorems(tree, x, state, wrt, race or method == "theorems", race, options)
    if not candidates and method == "theorems":
        raise InputError(f"derivative of {x.name} by {', '.join(wrt)}: no theorem gives it; use method='auto'")
    known = by_recursion(tree, x.name, state, wrt) if method == "auto" and (race or not candidates) else None
    if known is not None:
        candidates.append(("recursion", [known]))
    if race or not candidates:
        candidates.append(("graph", by_graph(tree, x, state, wrt, options, fastest(tree, [x.name])[x.name])))
    return min(candidates, key=lambda candidate: _size(candidate[1]))


def _by_theorems(
    tree: Tree,
    x: Quantity,
    state: NamedInputs,
    wrt: tuple[str, ...],
    every: bool,
    race: bool,
    options: Mapping[str, str],
) -> list[tuple[str, list[Entries]]]:
    if tree.formulas:
        return []
    found = [by_theorem(t, x.name, state, wrt, every, m, options) for t, m in _preparations(tree, x, race)]
    return [("zaremba", [entries]) for entries in found if entries is not None]


def _preparations(tree: Tree, x: Quantity, race: bool) -> list[tuple[Tree, int]]:
    """The trees and meeting depths that the theorems are written out with."""
    if not x.invariant:
        return [(tree, 0)]
    lean = Preparation(frames=True, unit=False, wheels="kept")
    if not race or x.name not in ("mass_matrix", "gravity"):
        return [(lean.prepare(tree), 0)]
    return [(plan.prepare(tree), m) for plan in (lean, lean._replace(unit=True)) for m in MEETINGS]


def _size(found: Sequence[Entries]) -> int:
    """Live nodes."""
    nodes = [x for entries in found for x in entries.values() if isinstance(x, Expr)]
    return len(nodes[0].graph.live(x.edge for x in nodes)) if nodes else 0


# -- the ways ----------------------------------------------------------------------------------------------


def by_theorem(
    tree: Tree,
    name: str,
    state: NamedInputs,
    wrt: tuple[str, ...],
    every: bool,
    meeting: int,
    options: Mapping[str, str],
) -> Entries | None:
    """Zaremba's theorems where they apply; every: also where the recursion needs fewer operations."""
    q, nq = state["q"], wrt.count("q")
    if name == "mass_matrix":
        return zaremba.mass_matrix_derivatives(tree, q, nq, meeting, once=True)
    if name == "gravity":
        return zaremba.gravity_derivatives(tree, q, nq, meeting, once=True)
    if options.get("relative_to"):
        return None
    if name == "pose":
        return zaremba.pose_derivatives(tree, q, options["link"], nq, once=True)
    if name == "jacobian":
        return zaremba.jacobian_derivatives(tree, q, options["link"], options["frame"], nq, once=True)
    return _efforts_by_theorem(tree, name, state, wrt, every, meeting) if name in _EFFORTS else None


def _efforts_by_theorem(
    tree: Tree, name: str, state: NamedInputs, wrt: tuple[str, ...], every: bool, meeting: int
) -> Entries | None:
    q, nq, nv, na = state["q"], wrt.count("q"), wrt.count("v"), wrt.count("a")
    if na:
        if nv or na > 1:
            return {}
        M = zaremba.mass_matrix_derivatives(tree, q, nq, meeting, once=True)
        return {(i, *t, j): x for (i, j, *t), x in M.items()}
    if any(b.nv > 1 for b in tree.bodies) or not (every or nv > 1):
        return None
    out = zaremba.bias_derivatives(tree, q, state["v"], nq, nv, meeting)
    if name == "inverse_dynamics" and not nv:
        for (i, j, *t), x in zaremba.mass_matrix_derivatives(tree, q, nq, meeting, once=True).items():
            out[(i, *t)] = out.get((i, *t), 0.0) + x * state["a"][j]
    return out


def by_recursion(tree: Tree, name: str, state: NamedInputs, wrt: tuple[str, ...]) -> Entries | None:
    """The O(n depth) first derivatives of inverse and forward dynamics, differentiated on in the graph."""
    if name not in (*_EFFORTS, "forward_dynamics"):
        return None
    if wrt.count("q") > 1 and any(b.nq != b.nv for b in tree.bodies):
        return None  # one after the other is not symmetric on a ball joint
    q, v = state["q"], state["v"]
    if name == "forward_dynamics":
        known, last = "forward_dynamics_derivatives", state["tau"]
    else:
        known, last = "inverse_dynamics_derivatives", state.get("a", [])
    parts = fastest(tree, [known])[known](tree, q, v, last or [0.0] * tree.nv)
    start = parts[{"q": 0, "v": 1}.get(wrt[0], 2)]
    values: Entries = {(i, j): x for i, row in enumerate(start) for j, x in enumerate(row)}
    by = {s: variables(tree, x, x) if s == "q" else list(x) for s, x in state.items()}
    return differentiated(values, by, wrt[:1], wrt[1:])


def by_graph(
    tree: Tree,
    x: Quantity,
    state: NamedInputs,
    wrt: tuple[str, ...],
    options: Mapping[str, str],
    compute: Compute | None = None,
) -> list[Entries]:
    """Any quantity: traced at q (+) d by `compute` or the plain algorithm, differentiated, and d = 0 put in."""
    graph = state[x.state[0]][0].graph if tree.nv else Graph()
    d = unknowns(graph, "d", tree.nv)
    by: dict[str, list[Scalar]] = {s: list(y) for s, y in state.items()}
    at = dict(by)
    if "q" in wrt:
        at["q"], by["q"] = displaced(tree, state["q"], d, len(wrt)), variables(tree, state["q"], d)
    run = compute or common_algorithm(x.name)
    result = run(tree, *(at[s] for s in x.state), **{k: options[k] for k in x.options if k in options})
    out = []
    for (_, shape), value in zip(x.outputs, result if len(x.outputs) > 1 else (result,)):
        flat = dict(_flat(value, len(shape)))
        out.append(put(graph, differentiated(flat, by, (), wrt), {x.edge >> 1: 0.0 for x in d}))
    return out


def by_time(tree: Tree, x: Quantity, state: NamedInputs, order: int, options: Mapping[str, str]) -> list[Entries]:
    """The recursion run on Taylor series along q(t): O(n) in the bodies, O(order^2) in the order."""
    q, *rates = state.values()
    at = motion_series(tree, q, rates, order)
    result = fastest(tree, [x.name])[x.name](
        tree, *at[: len(x.state)], **{k: options[k] for k in x.options if k in options}
    )
    out = []
    for (_, shape), value in zip(x.outputs, result if len(x.outputs) > 1 else (result,)):
        flat = {k: coefficient(y, order) * factorial(order) for k, y in _flat(value, len(shape))}
        out.append({k: y for k, y in flat.items() if not is_zero(y)})
    return out


def _moving(x: Quantity, order: int) -> list[str]:
    """The arguments of a derivative by time: q and as many of its rates as the quantity and the order take."""
    last = len(x.state) - 1 + order
    return ["q", *RATES[:last], *(f"q{k}" for k in range(len(RATES) + 1, last + 1))]


def _flat(value: Any, depth: int, at: tuple[int, ...] = ()) -> list[tuple[tuple[int, ...], Scalar]]:
    if depth == 0:
        return [(at, value)]
    return [pair for i, row in enumerate(value) for pair in _flat(row, depth - 1, (*at, i))]


def differentiated(
    values: Entries, by: Mapping[str, Vector], done: tuple[str, ...], wrt: tuple[str, ...]
) -> Entries:
    """Derivatives by every name in turn; where equal names follow each other only rising indices are formed."""
    names = list(done)
    for s in wrt:
        again = bool(names) and names[-1] == s
        out: Entries = {}
        for k in range(len(by[s])):
            keys = [key for key, x in values.items() if isinstance(x, Expr) and not (again and key[-1] > k)]
            for key, (x,) in zip(keys, partial([values[key] for key in keys], [by[s][k]])):
                if not is_zero(x):
                    out[(*key, k)] = x
        values = out
        names.append(s)
    return values


def put(graph: Graph, entries: Mapping[Key, Scalar], known: Mapping[int, Scalar]) -> dict[Key, Scalar]:
    """The entries with values in place of input nodes, in the same graph; those that vanish are left out."""
    value = dict(known)

    def at(e: int) -> Scalar:
        return -value[e >> 1] if e & 1 else value[e >> 1]

    named = _on_scalars()
    for n in graph.live(x.edge for x in entries.values() if isinstance(x, Expr)):
        op = graph.op[n]
        if n in value:
            continue
        if op <= INPUT or op == CONST:
            value[n] = graph.expr(2 * n)
        else:
            apply: Any = named.get(op, OPS[op].apply)
            value[n] = apply(*(at(e) for e in graph.operands(n)))
    found = {k: at(x.edge) if isinstance(x, Expr) else x for k, x in entries.items()}
    return {k: x for k, x in found.items() if not is_zero(x)}


def _on_scalars() -> dict[int, Any]:
    """Operation -> its meaning on scalars of any kind, where the table has one for numbers only."""
    named: dict[int, Any] = {op: scalar.named_function(name) for op, name in FUNCTIONS.items()}
    named |= {SIN: scalar.sin, COS: scalar.cos, ATAN2: scalar.atan2}
    named[WHEN] = lambda c, x: scalar.where(c > 0.0, x, 0.0)
    named[UNLESS] = lambda c, x: scalar.where(c > 0.0, 0.0, x)
    return named


def at_zero(values: Vector, d: Sequence[Expr]) -> list[Scalar]:
    """Scalars of a graph with the inputs d put to zero."""
    graph = d[0].graph
    found = put(graph, dict(enumerate(values)), {x.edge >> 1: 0.0 for x in d})
    return [found.get(k, 0.0) for k in range(len(values))]
