"""Products of the derivatives of a step with a vector, as one compiled function of a tile: of both laws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..codegen.graph.program import Parameter, Program
from ..codegen.llvm.ir import I1, Value
from ..codegen.llvm.stages import StageCalls, Stages
from ..compiler.compile import PRODUCTS
from ..compiler.products import number_rates
from ..compiler.tracer import Tracer
from ..errors import InputError, one_of
from ..mechanics.algorithms.passive import passive_tree
from ..model.description import Model
from .laws.exact.columns import exact_by_columns, exact_jacobian_program
from .laws.exact.derivatives import step_derivatives
from .laws.exact.implicit import SOLVED, UNDEFINED, MoreauLinear, calls_of
from .laws.exact.kernel import ImpulseSolver, fill_exactly, load_at, store_at
from .laws.exact.moreau import TouchingRobot, step
from .laws.exact.solve import TOLERANCE
from .laws.exact.stages import MoreauStages
from .laws.soft.implicit import Linear, quadrupled
from .laws.soft.jacobian import comes_by_columns, jacobian_program
from .laws.soft.kernel import STATE, VALUES, Loops, declare, evaluation
from .laws.soft.reference import fill_results
from .laws.soft.stages import Evaluation, SoftProblem

Array = np.ndarray[Any, Any]


def require_one_product(product: Sequence[str], one: bool, numbers: bool, slipless: bool = False) -> None:
    """one: whether the step is of one evaluation. numbers: whether tangents of q are of size nq. slipless: whether
    sweeps follow the law."""
    if "jacobian" in product and numbers:
        raise InputError('step: rows of product="jacobian" are by tangents="joints"; take "vjp" or "jvp"')
    for kind in product:
        one_of("step: product", kind, (*PRODUCTS, "jacobian"), InputError)
    if len(product) > 1:
        raise InputError("step: derivatives of a step are of first order, so a product is of none other")
    if product and slipless:
        raise InputError(
            "step: a step with noslip_iterations of its file has no derivatives, since its sweeps end before "
            "friction is firm; set them to 0"
        )
    if product and not one:
        what = "of one step of euler, implicitfast or moreau: leave out repeat, last and other methods"
        raise InputError(f"step: a product is one, {what}")


def soft_product_program(problem: SoftProblem, kind: str, numbers: bool = False, rows: bool = False) -> Program:
    """(q, v, tau, [parameters], *w) -> products, after the results of the step where kind is "value_and_..".

    "jvp": from tangents of the arguments those of q1 and v1; "vjp": from cotangents of q1 and v1 those of the
    arguments. Of q and q1 they are of size nv, or with `numbers` of size nq. "jacobian": without w, all rows by
    each argument, one after another unless they come by columns.
    """
    e, mark = evaluation(problem), _mark(kind)
    if kind == "jacobian" and not rows and comes_by_columns(e):
        return jacobian_program(
            e, lambda *given: soft_product_program(problem, kind, rows=True).stages.fill(*given)
        )
    Linear(e, mark, numbers)
    e.sizes["parameters"] = len(e.symbols)
    fill = partial(fill_results, e, mark="rows" if kind == "jacobian" else mark)
    loops = ProductLoops(e, mark)
    return _program(problem.model, e.sizes, e.parts, e.symbols, kind, loops.write, loops.product, fill)


def exact_product_program(robot: TouchingRobot, kind: str, numbers: bool = False) -> Program:
    """The program of a step's products under the exact law, like `soft_product_program`, without parameters."""
    program = _exact_product(robot, kind, numbers)
    return replace(program, meta={**program.meta, "undefined": UNDEFINED})


def _exact_product(robot: TouchingRobot, kind: str, numbers: bool) -> Program:
    stages, mark = MoreauStages(robot, TOLERANCE), _mark(kind)
    fill = partial(_fill_exactly, robot, "rows" if kind == "jacobian" else mark, numbers)
    if kind == "jacobian" and exact_by_columns(stages):
        return exact_jacobian_program(stages, partial(fill, STATE, [f"by_{x}" for x in STATE]))
    MoreauLinear(stages, mark, numbers)
    solver = ImpulseSolver(stages)

    def write(c: StageCalls) -> tuple[()]:
        solver.routines(c)
        c.call("begin")
        solver.write(c)
        return ()

    def product(c: StageCalls) -> None:
        for name in calls_of(mark):
            (c.run if name in SOLVED else c.call)(name)

    return _program(robot.model, stages.sizes, stages.parts, (), kind, write, product, fill)


def _mark(kind: str) -> str:
    return "dot" if kind.endswith("jvp") else "bar"


def _program(
    model: Model,
    sizes: dict[str, int],
    parts: Mapping[str, Program],
    symbols: Sequence[Parameter],
    kind: str,
    step: Callable[[StageCalls], Any],
    product: Callable[..., None],
    fill: Callable[..., None],
) -> Program:
    """step: writes the calls of a step; product: those that follow, with what that returned."""
    mark = _mark(kind)
    arguments = [*STATE, "parameters"] if symbols else list(STATE)
    ends = [f"{x}_{mark}" for x in arguments], [f"{x}_{mark}" for x in ("q1", "v1")]
    given, made = ends if mark == "dot" else ends[::-1]
    results = [*(VALUES if kind.startswith("value") else ()), *made]
    if kind == "jacobian":
        given, results = [], [f"by_{x}" for x in arguments]
        sizes |= {f"by_{x}": 2 * model.nv * sizes[f"{x}_bar"] for x in arguments}
    t = Tracer(f"step_{kind}", model)
    t.state(*STATE)
    for name in (*arguments[3:], *given):
        t.input(name, sizes[name])
    if kind == "jacobian":
        for name, x in zip(results, arguments):
            t.output(name, [0.0] * sizes[name], (2 * model.nv, sizes[f"{x}_bar"]))
    else:
        declare(t, sizes, results)
    names = [x.name for x in t.inputs]
    nodes = [n for port in t.inputs if port.name == "parameters" for n in port.nodes]
    blocks = {name: size for name, size in sizes.items() if name not in (*names, *results)}

    def write(c: StageCalls) -> None:
        found = step(c)
        if kind == "jacobian":
            _rows(c, sizes, arguments, partial(product, c, *found))
        else:
            product(c, *found)
        if "residual" in results and "next" in parts:
            c.call("next")

    tested = ("dynamics_bar",) if kind == "jacobian" else ()
    stages = Stages(blocks, parts, write, partial(fill, names, results), tested)
    return replace(
        t.program(), parameters=tuple(x._replace(node=n) for x, n in zip(symbols, nodes)), stages=stages
    )


def _rows(c: StageCalls, sizes: Mapping[str, int], arguments: Sequence[str], product: Callable[[], None]) -> None:
    """The cotangents of all rows, one after another."""
    nv = sizes["v1"]
    for k, end in enumerate(("q1_bar", "v1_bar")):
        with c.f.loop(nv, some=True) as i:
            for name in ("q1_bar", "v1_bar"):
                c.fill(0.0, name, 0, nv)
            store_at(c, c.f.const(c.l.type, 1.0), c.at(end), i.i)
            product()
            for x in arguments:
                n, source, target = sizes[f"{x}_bar"], c.at(f"{x}_bar"), c.at(f"by_{x}")
                with c.f.loop(n, some=True) as j:
                    store_at(c, load_at(c, source, j.i), target, (i.i + k * nv) * n + j.i)


def _fill_exactly(
    robot: TouchingRobot,
    mark: str,
    numbers: bool,
    names: Sequence[str],
    results: Sequence[str],
    inputs: Sequence[Array],
    outputs: Sequence[Array],
) -> None:
    """Results (B, n) from arguments, by their names, with the whole Jacobian."""
    given = dict(zip(names, inputs))
    q, v, tau = (given[k] for k in STATE)
    rates = list(step_derivatives(robot, q, v, tau)[:3])
    if numbers:
        q1 = step(robot, q, v, tau, TOLERANCE).q
        rates = [_with_numbers(robot.model, q1, x) for x in rates]
        rates[0] = rates[0] @ _coordinate_rates(robot.model, q, True).swapaxes(1, 2)
    if mark == "rows":
        made = {f"by_{k}": x for x, k in zip(rates, STATE)}
    elif mark == "dot":
        found = sum(np.einsum("bij,bj->bi", x, given[f"{k}_dot"]) for x, k in zip(rates, STATE))
        made = dict(zip(("q1_dot", "v1_dot"), np.split(found, [found.shape[1] - robot.model.nv], axis=1)))
    else:
        back = np.concatenate((given["q1_bar"], given["v1_bar"]), 1)
        made = {f"{k}_bar": np.einsum("bij,bi->bj", x, back) for x, k in zip(rates, STATE)}
    values = dict(zip(results, outputs))
    if "q1" in values:
        fill_exactly(robot, TOLERANCE, 1, inputs, [values[name] for name in VALUES])
    for name, x in made.items():
        values[name][...] = x.reshape(values[name].shape)


def _coordinate_rates(model: Model, q: Array, weighted: bool) -> Array:
    """(B, nq, nv): A of `number_rates`; weighted: 4 A for what turns, whose transpose gives tangents."""
    tree = passive_tree(model)
    units = [quadrupled(tree, x) if weighted else x for x in np.eye(model.nv).tolist()]
    columns = [[np.broadcast_to(x, len(q)) for x in number_rates(tree, list(q.T), d)] for d in units]
    return np.array(columns).transpose(2, 1, 0)


def _with_numbers(model: Model, q1: Array, rows: Array) -> Array:
    """(B, nq + nv, n): rows of q1, which come as tangents, as numbers; those of v1."""
    return np.concatenate((_coordinate_rates(model, q1, False) @ rows[:, : model.nv], rows[:, model.nv :]), 1)


class ProductLoops(Loops):
    """The calls of a tile under the soft law: a step, then what `implicit` adds to it."""

    def __init__(self, e: Evaluation, mark: str) -> None:
        super().__init__(e)
        self.mark = mark

    def write(self, c: StageCalls) -> tuple[list[Value]]:  # type: ignore[override]
        """A step; which slots touch."""
        for name in ("residual", "warm"):
            c.fill(0.0, name, 0, 1)
        c.call("begin")
        c.call("again")
        touching = self.solved(c)
        self.forces(c, touching)
        c.call("judge")
        c.call("end")
        return (touching,)

    def product(self, c: StageCalls, touching: list[Value]) -> None:
        if self.mark == "dot":
            c.call("dynamics_dot")
            self.every(c, touching)
            self.solve(c, touching)
            c.call("end_dot")
            return
        for name in ("handed_bar", *(["parameters_bar"] if self.e.symbols else [])):
            c.fill(0.0, name, 0, self.e.sizes[name])
        c.call("end_bar")
        self.solve(c, touching)
        self.every(c, touching)
        c.call("dynamics_bar")

    def every(self, c: StageCalls, touching: Sequence[Value]) -> None:
        """Calls the stage of each slot that touches, which adds its part."""
        for k, flag in enumerate(touching):
            with c.f.when(flag.load(I1)):
                c.call(f"slot_{self.mark}_{k}", f"slot_{k}")
