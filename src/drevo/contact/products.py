"""Derivatives of a step times vectors, and all of them, as one compiled function of a tile: of every law."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Protocol

from ..codegen.graph.program import Parameter, Program
from ..codegen.llvm.ir import I1, I8, Value, literal
from ..codegen.llvm.stages import StageCalls, Stages
from ..compiler.recipe import PRODUCTS
from ..compiler.tracer import Tracer
from ..errors import InputError, one_of
from ..model.description import Model
from .laws.exact.kernel import load_at, store_at
from .laws.soft.kernel import STEP_RESULTS, declare
from .laws.soft.program import declare_arguments
from .sweeps import Called, ProductStages, StepSweep, kept_apart

SPREAD_PREFIX, KEPT_PREFIX = (
    "all_",
    "kept_",
)  # before names of blocks: one sample in all lanes; what no tangent changes


class StepDerivative(Protocol):
    """The part of a law in the derivatives of a step: its sweeps, and how its unknowns are solved for.

    slot_blocks: of contacts that may not touch. solvers: the stages of the solution; solid: blocks that it reads
    beside these. drives: the arguments after q and v. Of a Jacobian these, and what the solution passes on, are in
    blocks that begin with SPREAD.
    """

    model: Model
    sizes: dict[str, int]
    parts: dict[str, Program]
    sweeps: list[StepSweep]
    end: StepSweep
    solvers: list[str]
    solid: tuple[str, ...]
    slot_blocks: list[str]
    drives: tuple[str, ...]
    symbols: tuple[Parameter, ...]
    undefined: str  # where a step has no derivatives, for people

    def step(self, c: StageCalls) -> list[Value]:
        """Writes the calls of a step and of what follows it once; returns which slots touch in some lane."""

    def solution(self, c: StageCalls, mark: str) -> None:
        """Writes the calls between the blocks of the sweeps."""


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


def mark_of(kind: str) -> str:
    """By which the blocks of a product end: "bar" where it goes from results to arguments, else "dot"."""
    return "bar" if kind.endswith("vjp") else "dot"


def prefix_of(kind: str) -> str:
    """Before the names of the blocks on which a solution works."""
    return SPREAD_PREFIX if kind == "jacobian" else ""


def step_product_program(x: StepDerivative, kind: str) -> Program:
    """(q, v, tau, [parameters], *w) -> products, after the results of the step where kind is "value_and_..".

    "jvp": from tangents of the arguments those of q1 and v1; "vjp": from cotangents of q1 and v1 those of the
    arguments. "jacobian": without w, the derivatives of q1 and v1 by each argument, (2 nv, n). Of a step with
    controls these and activations stand for tau, and act1 comes last, (2 nv + na, n).
    """
    mark, sizes = mark_of(kind), x.sizes
    arguments = ["q", "v", *x.drives, *(["parameters"] if x.symbols else [])]
    moved = ["q1", "v1", *(["act1"] if "act" in x.drives else [])]
    whole = _Jacobian(x, arguments) if kind == "jacobian" else None
    stages = None if whole else ProductStages(sizes, x.parts, x.sweeps, x.end, mark)
    ends = [f"{name}_{mark}" for name in arguments], [f"{name}_{mark}" for name in moved]
    given, products = ends if mark == "dot" else ends[::-1]
    t = Tracer(f"step_{kind}", x.model)
    declare_arguments(t, sizes, x.drives)
    results = [*((*STEP_RESULTS, *moved[2:]) if kind.startswith("value") else ()), *products]
    for name in (*(["parameters"] if x.symbols else ()), *(() if whole else given)):
        t.input(name, sizes[name])
    if whole:
        results = [f"by_{name}" for name in arguments]
        for name, n in zip(results, whole.counts):
            sizes[name] = whole.rows * n
            t.output(name, [0.0] * sizes[name], (whole.rows, n))
    else:
        declare(t, sizes, results)
    ports = [port.name for port in t.inputs]
    blocks = {name: size for name, size in sizes.items() if name not in (*ports, *results)}

    def write(c: StageCalls) -> None:
        touching = x.step(c)
        if whole:
            whole.write(c, touching)
        elif stages:
            _product(x, stages, c, touching)
        if "residual" in results and "next" in x.parts:
            c.call("next")

    tested = [f"end_dot_{name}" for name in arguments] if whole else ()
    nodes = [n for port in t.inputs if port.name == "parameters" for n in port.nodes]
    parameters = tuple(p._replace(node=n) for p, n in zip(x.symbols, nodes))
    program, rows = t.program(), results if whole else ()
    meta = {**program.meta, **({"undefined": x.undefined} if x.undefined else {})}
    return replace(program, parameters=parameters, meta=meta, stages=Stages(blocks, x.parts, write, tested, rows))


def _product(x: StepDerivative, stages: ProductStages, c: StageCalls, touching: Sequence[Value]) -> None:
    for name in stages.cleared:
        c.fill(0.0, name, 0, x.sizes[name])
    for k, calls in enumerate((stages.before, stages.after)):
        if k:
            x.solution(c, stages.mark)
        for name, slot in calls:
            if slot is None:
                c.call(name)
                continue
            with c.f.when(touching[slot].load(I1)):
                c.call(name, x.slot_blocks[slot])


class _Jacobian:
    """All derivatives of a step: one sample after the other, unit tangents of an argument in the lanes.

    What does not depend on the tangents is computed before, for all samples at once, into blocks whose names begin
    with KEPT, and spread over the lanes when it is a sample's turn.
    """

    def __init__(self, x: StepDerivative, arguments: Sequence[str]) -> None:
        nv, na = x.model.nv, x.sizes["act"] if "act" in x.drives else 0
        self.x, self.arguments, self.rows = x, arguments, 2 * nv + na
        self.ends = [("q1_dot", 0, nv), ("v1_dot", nv, nv), *([("act1_dot", 2 * nv, na)] if na else [])]
        self.ways = [ProductStages(x.sizes, x.parts, x.sweeps, x.end, "dot", name) for name in arguments]
        self.counts = [x.sizes[f"{name}_dot"] for name in arguments]
        self.kept: list[Called] = []
        for sweep in (*x.sweeps, x.end):
            names = [f"{sweep.name}_dot_{name}" for name in arguments]
            self._keep(sweep.name, sweep.slot, [name for name in names if name in x.parts])
        for name in x.solvers:
            self._keep(name, None, [name])
        self.spread = [*((name, None) for name in x.solid), *self.kept]
        x.sizes.update({SPREAD_PREFIX + name: x.sizes[name] for name, _ in self.spread})

    def _keep(self, name: str, slot: int | None, stages: Sequence[str]) -> None:
        """Takes from stages over one graph what does not depend on tangents."""
        x = self.x
        if not stages:
            return
        first, rest = kept_apart([x.parts[stage] for stage in stages], SPREAD_PREFIX + KEPT_PREFIX + name, _moves)
        size = sum(len(port.edges) for port in first.outputs)
        if size:
            self.kept.append((KEPT_PREFIX + name, slot))
            x.parts.update(zip(stages, rest))
            x.parts[KEPT_PREFIX + name] = replace(
                first, outputs=(first.outputs[0]._replace(name=KEPT_PREFIX + name),)
            )
            x.sizes[KEPT_PREFIX + name] = size

    def write(self, c: StageCalls, touching: Sequence[Value]) -> None:
        f, l = c.f, c.l
        for name, slot in self.kept:
            with self._touches(c, touching, slot):
                c.call(name, "" if slot is None else self.x.slot_blocks[slot])
        for name, n in zip(self.arguments, self.counts):
            with f.loop(n, some=True) as k:
                store_at(c, f.zero(l.type), c.at(f"{name}_dot"), k.i)
        samples = f.smaller(f.arguments["last"] - f.arguments["b"] + 1, l.lanes)
        with f.loop(samples, some=True) as sample:
            for name, slot in self.spread:
                with self._touches(c, touching, slot):
                    self._spread(c, name, sample.i)
            for way, n in zip(self.ways, self.counts):
                self._by(c, touching, sample.i, way, n)

    def _touches(self, c: StageCalls, touching: Sequence[Value], slot: int | None) -> AbstractContextManager[None]:
        return nullcontext() if slot is None else c.f.when(touching[slot].load(I1))

    def _spread(self, c: StageCalls, name: str, sample: Value) -> None:
        """The values of one sample into all lanes."""
        l, source, target = c.l, c.at(name), c.at(SPREAD_PREFIX + name)
        with c.f.loop(self.x.sizes[name], some=True) as k:
            x = source.at(k.i * l.bytes + sample * l.size, I8).load(l.scalar, l.size)
            store_at(c, x.splat(l.lanes), target, k.i)

    def _by(self, c: StageCalls, touching: Sequence[Value], sample: Value, way: ProductStages, n: int) -> None:
        """The derivatives of a sample by one argument, some columns at a time."""
        f, l, wide = c.f, c.l, min(n, c.l.lanes)
        tangents, row = c.at(f"{way.only}_dot"), c.row(f"by_{way.only}", sample)
        with f.loop(n, step=l.lanes, some=True) as k:
            first = f.smaller(k.i, n - wide)
            for i in range(wide):
                store_at(c, _vector(c, [float(i == j) for j in range(l.lanes)]), tangents, first + i)
            for name in (*way.cleared, *(name for name, *_ in self.ends[2:])):
                c.fill(0.0, name, 0, self.x.sizes[name])
            for part, calls in enumerate((way.before, way.after)):
                if part:
                    self.x.solution(c, "dot")
                for stage, slot in calls:
                    with self._touches(c, touching, slot):
                        c.call(stage)
            for i in range(wide):
                store_at(c, f.zero(l.type), tangents, first + i)
            for end, before, size in self.ends:
                with f.loop(size, some=True) as r:
                    x, at = load_at(c, c.at(end), r.i), row.at(((r.i + before) * n + first) * l.size, I8)
                    if wide == l.lanes:
                        at.store(x, l.size)
                        continue
                    for i in range(wide):
                        at.at(i * l.size, I8).store(x.lane(i), l.size)


def _moves(block: str) -> bool:
    """True of blocks that depend on the tangents."""
    return block.endswith("_dot") or block.startswith(SPREAD_PREFIX)


def _vector(c: StageCalls, values: Sequence[float]) -> Value:
    """Constants in the lanes."""
    text = ", ".join(f"{c.l.scalar} {literal(x, c.l.scalar)}" for x in values)
    return c.f.const(c.l.type, f"<{text}>" if c.l.lanes > 1 else values[0])
