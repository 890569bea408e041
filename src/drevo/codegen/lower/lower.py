"""Program -> an ordered list of machine-like steps: fused, paired, ordered.

The multiply-adds are fused on the graph by one fixed rule, before anything depends on an order, so that every
back end, width and chunk size does the same arithmetic, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence
from itertools import count
from typing import Any, NamedTuple

from ...errors import EmitError
from ..graph import levers
from ..graph.node import Graph
from ..graph.ops import (
    ADD,
    ATAN2,
    CHOICE,
    CONST,
    COS,
    DIV,
    FUNCTIONS,
    INPUT,
    MUL,
    OPS,
    PARAMETER,
    SIN,
    UNLESS,
    WHEN,
)
from ..graph.program import Output, Program, fused_products
from .steps import CHOOSE, FMA, GUARD, SINCOS, TURN, Step, makers, operands, step_results

FINITE = {
    DIV: 1,
    **dict.fromkeys((ATAN2, *CHOICE, CHOOSE), 0),
}  # how many operands hand on what is not finite, if not all


class Port(NamedTuple):
    """A named array at the boundary of a kernel: what the caller sees, and how many scalars that is.

    partial: a result that may be NaN in places.
    """

    name: str
    shape: tuple[int, ...]
    partial: bool = False

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Lowered(NamedTuple):
    """Steps in the order of execution. `stores`: per output port, one edge per scalar.

    `where`: input value -> (port, position). `units`: values of quaternions to check.
    `pattern`: per output port, the index arrays of the packed entries (None: dense). `stages`: see
    `llvm.stages`.
    """

    steps: tuple[Step, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    where: dict[int, tuple[int, int]]
    constants: dict[int, float]
    stores: tuple[tuple[int, ...], ...]
    units: tuple[tuple[int, ...], ...]
    pattern: tuple[tuple[tuple[int, ...], ...], ...] | None
    stages: Any = None


def lower(
    program: Program,
    *,
    parameters: bool = False,
    packed: bool = False,
    fma: bool = True,
) -> Lowered:
    """Everything between the graph and the text of a kernel.

    parameters: they are an input of the kernel, the last; otherwise, and if no other input holds them, work on
    them is folded with the robot's own values.
    """
    inputs, where = _inputs(program, parameters)
    whole = any(x.node in where for x in program.parameters)
    constants = _constants(program.graph, program.graph.live(program.ends)) if whole else _folded(program)
    kept = [_kept(o, constants, packed) for o in program.outputs]
    stores = tuple(tuple(o.edges[k] for k in ks) for o, ks in zip(program.outputs, kept))
    roots = [e for port in stores for e in port]
    guards = _guards(program, roots, constants, where)
    tested = [e for g in guards for e in g[2:4]]
    steps = _steps(program.graph, roots + tested, constants, where, fma)
    steps = _turned(steps, program.angle_sums, where, constants, len(program.graph) + len(steps))
    steps = _guarded(steps, guards)
    return Lowered(
        tuple(steps), inputs, _outputs(program, kept, packed), where, constants, stores, _units(program, where),
        tuple(map(_pattern, program.outputs, kept)) if packed else None,
    )  # fmt: skip


def _inputs(program: Program, parameters: bool) -> tuple[tuple[Port, ...], dict[int, tuple[int, int]]]:
    """The arguments, and where each input value stands in them."""
    ports = [Port(x.name, x.shape) for x in program.inputs]
    where = {n: (i, k) for i, x in enumerate(program.inputs) for k, n in enumerate(x.nodes)}
    if parameters and program.parameters:
        where = {x.node: (len(ports), k) for k, x in enumerate(program.parameters)} | where
        ports.append(Port("parameters", (len(program.parameters),)))
    return tuple(ports), where


def _outputs(program: Program, kept: Sequence[Sequence[int]], packed: bool) -> tuple[Port, ...]:
    partial: Any = program.meta.get("partial", ())
    ports = ((o.name, (len(ks),) if packed else o.shape) for o, ks in zip(program.outputs, kept))
    return tuple(Port(name, shape, name in partial) for name, shape in ports)


def _units(program: Program, where: Container[int]) -> tuple[tuple[int, ...], ...]:
    return tuple(u for u in program.units if all(n in where for n in u))


# -- constants and hoisted work -----------------------------------------------------------------------------


def _constants(graph: Graph, order: Iterable[int]) -> dict[int, float]:
    return {n: graph.constants[graph.a[n]] for n in order if graph.op[n] == CONST}


def _folded(program: Program) -> dict[int, float]:
    """Values of everything that does not depend on the state, at the robot's own parameters."""
    g, order = program.graph, program.graph.live(program.ends)
    value = _constants(g, order) | {p.node: p.value for p in program.parameters}
    for n in order:
        if g.level[n] < 2 and n not in value:
            value[n] = _apply(g, n, value)
    return value


def _apply(g: Graph, n: int, value: dict[int, float]) -> float:
    if g.op[n] == PARAMETER:
        raise EmitError(f"parameter {g.names[g.a[n]]!r} has no value in the program")
    arguments = [-value[e >> 1] if e & 1 else value[e >> 1] for e in g.operands(n)]
    try:
        result = float(OPS[g.op[n]].apply(*arguments))  # type: ignore[misc]
    except ZeroDivisionError:
        result = math.nan
    if not math.isfinite(result):
        raise EmitError(f"work on parameters alone became {result}: check their values")
    return result


# -- outputs ------------------------------------------------------------------------------------------------


def _kept(o: Output, constants: dict[int, float], packed: bool) -> list[int]:
    """Positions of an output that are stored: all, or the structural non-zeros (symmetric: of the lower part)."""
    if not packed:
        return list(range(len(o.edges)))
    return [
        k
        for k in (range(len(o.edges)) if o.places is not None else _lower_part(o))
        if constants.get(o.edges[k] >> 1) != 0.0
    ]


def _pattern(o: Output, kept: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Index arrays of the stored entries."""
    return tuple(zip(*(_unravel(o.place(k), o.shape) for k in kept))) or ((),) * len(o.shape)


def _lower_part(o: Output) -> Iterable[int]:
    if len(o.shape) != 2 or o.shape[0] != o.shape[1]:
        return range(len(o.edges))
    n = o.shape[0]
    symmetric = all(o.edges[i * n + j] == o.edges[j * n + i] for i in range(n) for j in range(i))
    return [i * n + j for i in range(n) for j in range(i + 1)] if symmetric else range(n * n)


def _unravel(k: int, shape: Sequence[int]) -> tuple[int, ...]:
    index: list[int] = []
    for size in reversed(shape):
        k, i = divmod(k, size)
        index.append(i)
    return tuple(reversed(index))


# -- steps --------------------------------------------------------------------------------------------------


def _steps(
    g: Graph,
    roots: Sequence[int],
    constants: dict[int, float],
    given: Container[int],
    fma: bool,
) -> list[Step]:
    """Live operations in create order: multiply-adds fused, sin and cos paired, 2 x as x + x."""
    nodes = _reached(g, roots, constants, given)
    fused = _multiply_adds(g, nodes, roots) if fma and "fma" not in levers.off() else {}
    gone = {n for n, _ in fused.values()}
    chosen = _chosen(g, nodes, roots)
    gone.update(n for parts, _ in chosen.values() for n in parts)
    pairs = _pairs(g, nodes)
    steps = []
    for n in nodes:
        if n in fused or n in chosen:
            steps.append((fused if n in fused else chosen)[n][1])
        elif g.op[n] in (SIN, COS):
            step = pairs.pop(g.a[n], None)
            if step is not None:
                steps.append(step)
        elif n not in gone:
            steps.append(_plain(g, n, constants))
    return steps


def _guards(
    program: Program,
    roots: Sequence[int],
    constants: dict[int, float],
    given: Container[int],
) -> list[Step]:
    """Tests of the pivots that the outputs need, each in the section of its pivot."""
    if not program.guards:
        return []
    reached = set(_reached(program.graph, roots, constants, given))
    return [(GUARD, p >> 1, p, s, 0) for p, s, _ in program.guards if p >> 1 in reached]


def _guarded(steps: list[Step], guards: Sequence[Step]) -> list[Step]:
    """Every guard follows the later of the steps that make its pivot and its scale."""
    if not guards:
        return steps
    maker = makers(steps)
    after: dict[int, list[Step]] = {}
    for g in guards:
        after.setdefault(max(maker.get(e >> 1, 0) for e in operands(g)), []).append(g)
    return [s for k, step in enumerate(steps) for s in (step, *after.get(k, ()))]


def _turned(
    steps: list[Step], angles: Container[int], where: Container[int], constants: dict[int, float], free: int
) -> list[Step]:
    """Inputs lose whole turns before they enter sums that only sines read: of large ones a sum would keep few
    digits, while the sine of an input by itself is right. So do products by a constant, such as mimics."""
    fresh = count(free)  # values that nothing has
    one, made, out = next(fresh), dict[tuple[int, int], int](), list[Step]()

    def turned(x: int, by: int) -> int:
        constants[one] = 1.0
        if (x >> 1, by) not in made:
            made[x >> 1, by] = next(fresh)
        return 2 * made[x >> 1, by] + (x & 1)

    def scaled(s: Step) -> tuple[int, int] | None:
        for x, by in ((s[2], s[3]), (s[3], s[2])):
            if x >> 1 in where and by >> 1 in constants:
                return x, by
        return None

    for s in steps:
        if s[1] in angles and s[0] in (ADD, FMA, MUL):
            product = scaled(s) if s[0] != ADD else None
            if product is not None and s[0] == MUL:
                made[product[0] >> 1, product[1] ^ (product[0] & 1)] = s[1]
                continue
            if product is not None:
                s = (ADD, s[1], turned(product[0] & ~1, product[1] ^ (product[0] & 1)), s[4], 0)
            if s[0] == ADD:
                terms = (turned(e, 2 * one) if e >> 1 in where else e for e in s[2:4])
                s = (ADD, s[1], *terms, 0)  # type: ignore[assignment]
        out.append(s)
    return [(TURN, to, 2 * x, by, 0) for (x, by), to in made.items()] + out


def _reached(g: Graph, roots: Sequence[int], constants: Container[int], given: Container[int]) -> list[int]:
    """Operations that the roots need, in the order of their making; folded and given values end the search."""
    mark, stack, op = set[int](), [e >> 1 for e in roots], g.op
    while stack:
        n = stack.pop()
        if n not in mark and n not in constants and n not in given and op[n] > INPUT:
            mark.add(n)
            stack += [e >> 1 for e in g.operands(n)]
    return sorted(mark)


def _multiply_adds(g: Graph, nodes: Sequence[int], roots: Sequence[int]) -> dict[int, tuple[int, Step]]:
    """Sum -> (the product that disappears, the multiply-add)."""
    out = {}
    for n, s in fused_products(g, nodes, roots).items():
        other = g.b[n] if s == g.a[n] else g.a[n]
        out[n] = (s >> 1, (FMA, n, g.a[s >> 1] ^ (s & 1), g.b[s >> 1], other))
    return out


def _chosen(g: Graph, nodes: Sequence[int], roots: Sequence[int]) -> dict[int, tuple[tuple[int, int], Step]]:
    """Sum -> (x where c > 0 and y where it is not, which nothing else reads; the choice between x and y)."""
    out = dict[int, tuple[tuple[int, int], Step]]()
    if not any(g.op[n] == WHEN for n in nodes):
        return out
    uses = g.uses(nodes, roots)
    for n in (n for n in nodes if g.op[n] == ADD):
        yes, no = sorted((g.a[n], g.b[n]), key=lambda e: g.op[e >> 1])
        w, u = yes >> 1, no >> 1
        if (g.op[w], g.op[u], uses[w], uses[u]) == (WHEN, UNLESS, 1, 1) and g.a[w] == g.a[u]:
            out[n] = (w, u), (CHOOSE, n, g.a[w], g.b[w] ^ (yes & 1), g.b[u] ^ (no & 1))
    return out


def _pairs(g: Graph, nodes: Sequence[int]) -> dict[int, Step]:
    """Argument edge -> one step for its sine and cosine; a missing half gets a value of its own, unused."""
    halves: dict[int, dict[int, int]] = {}
    for n in nodes:
        if g.op[n] in (SIN, COS):
            halves.setdefault(g.a[n], {})[g.op[n]] = n
    spare = len(g)
    out = {}
    for k, (a, half) in enumerate(halves.items()):
        out[a] = (SINCOS, half.get(SIN, spare + k), a, half.get(COS, spare + k), 0)
    return out


def _plain(g: Graph, n: int, constants: dict[int, float]) -> Step:
    op, a, b = g.op[n], g.a[n], g.b[n]
    if op == MUL:
        for two, x in ((a, b), (b, a)):
            if constants.get(two >> 1) == 2.0:
                return ADD, n, x ^ (two & 1), x ^ (two & 1), 0
    return op, n, a, 0 if op in FUNCTIONS else b, 0


def ends(low: Lowered) -> set[int]:
    """Outputs to test for all: any other enters one of these so that, if it is not finite, neither is that.

    Sums, products, roots, sines and numerators hand on what is not finite; FINITE says what does not.
    """
    stored = {e >> 1 for port, edges in zip(low.outputs, low.stores) if not port.partial for e in edges}
    within: set[int] = set()
    for step in reversed(low.steps):
        if any(v in stored or v in within for v in step_results(step)):
            within.update(e >> 1 for e in operands(step)[: FINITE.get(step[0])])
    return stored - within
