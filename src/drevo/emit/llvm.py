"""Lowered steps -> textual LLVM IR: one kernel per width, its driver over a batch, its Python entry.

Values are SSA names %t<value>; an output is stored as soon as it exists and an input loaded at its first use,
so the order of the steps is the register allocation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..graph.ops import ADD, DIV, MUL, SQRT
from .llvm_math import Lanes, sincos
from .lower import CHUNK, FMA, ONE_FUNCTION, SINCOS, Lowered, Step, operands, results

EMITTER = 1  # part of the cache key: raise it when the same program gives other code
UNIT_TOLERANCE = 2e-6  # of |q|^2, which is 1e-6 of |q|
_NAME = {ADD: "fadd", MUL: "fmul", DIV: "fdiv"}


@dataclass(frozen=True, slots=True)
class Target:
    """What the text depends on besides the program."""

    scalar: str = "double"  # or "float"
    lanes: int = 8
    fma: bool = True
    splat: bool = True
    check: bool = True
    chunk: int | None = None  # steps per function; None: one function up to ONE_FUNCTION steps

    def of(self, lanes: int) -> Lanes:
        return Lanes(self.scalar, lanes, self.splat)


@dataclass(frozen=True, slots=True)
class Arena:
    """Byte offsets of the batch kernel's working memory: tiles of inputs and outputs, status, crossing values."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    status: int
    scratch: int
    total: int


def arena(low: Lowered, target: Target, slots: int) -> Arena:
    """Every port is a block of its own; columns of W lanes."""
    at, starts = 0, []
    width = target.of(target.lanes).bytes
    for port in (*low.inputs, *low.outputs):
        starts.append(at)
        at += port.size * width
    n = len(low.inputs)
    return Arena(tuple(starts[:n]), tuple(starts[n:]), at, at + width, at + width * (1 + slots))


# -- chunks -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cut:
    """Consecutive runs of steps; `slot`: values that cross from one run to a later one."""

    runs: tuple[Sequence[Step], ...]
    slot: dict[int, int]
    slots: int


def cut(low: Lowered, chunk: int | None) -> Cut:
    """Runs of `chunk` steps; a slot is never reused inside the run that last reads it."""
    size = chunk or (CHUNK if len(low.steps) > ONE_FUNCTION else max(1, len(low.steps)))
    runs = tuple(low.steps[k : k + size] for k in range(0, len(low.steps), size)) or ((),)
    born = {v: k // size for k, s in enumerate(low.steps) for v in results(s)}
    last: dict[int, int] = {}
    for k, step in enumerate(low.steps):
        last.update((e >> 1, k // size) for e in operands(step) if e >> 1 in born)
    slot: dict[int, int] = {}
    release: list[list[int]] = [[] for _ in runs]
    free: list[int] = []
    count = 0
    for k, run in enumerate(runs):
        for v in (v for s in run for v in results(s) if last.get(v, k) > k):
            if not free:
                free.append(count)
                count += 1
            slot[v] = free.pop()
            release[last[v]].append(slot[v])
        free += release[k]
    assert all(born[v] < last[v] for v in slot)
    return Cut(runs, slot, count)


# -- one kernel ---------------------------------------------------------------------------------------------


class Kernel:
    """The functions of one width. Batch: pointers in, out, scratch, status into the arena; scalar: one
    pointer per port. Every pointer is an argument of every run, so a run loads what it needs."""

    def __init__(self, low: Lowered, target: Target, lanes: int, pieces: Cut, room: Arena) -> None:
        self.low, self.target, self.l, self.pieces, self.room = low, target, target.of(lanes), pieces, room
        self.scalar = lanes == 1
        self.name = "one" if self.scalar else "many"
        self.sinks: dict[int, list[tuple[int, int, int]]] = {}
        for i, edges in enumerate(low.stores):
            for k, e in enumerate(edges):
                self.sinks.setdefault(e >> 1, []).append((i, k, e & 1))

    @property
    def arguments(self) -> list[str]:
        """Names of the pointer arguments, in order."""
        ports = ["in", "out"]
        if self.scalar:
            ports = [f"in{i}" for i in range(len(self.low.inputs))]
            ports += [f"out{i}" for i in range(len(self.low.outputs))]
        return [*ports, "scratch", "status"]

    def text(self) -> str:
        """All functions of the kernel; `@one` or `@many` is what a driver calls."""
        signature = ", ".join(f"ptr noalias %{a}" for a in self.arguments)
        align = "" if self.scalar else ' "stackrealign"'
        parts = []
        for k, run in enumerate(self.pieces.runs):
            name = self.name if len(self.pieces.runs) == 1 else f"{self.name}_{k}"
            body = "\n".join(_Body(self, k).lines(run))
            parts.append(f"define internal void @{name}({signature}) noinline{align} {{\n{body}\n  ret void\n}}\n")
        if len(self.pieces.runs) > 1:
            given = ", ".join(f"ptr %{a}" for a in self.arguments)
            calls = "\n".join(f"  call void @{self.name}_{k}({given})" for k in range(len(self.pieces.runs)))
            parts.append(f"define internal void @{self.name}({signature}) noinline {{\n{calls}\n  ret void\n}}\n")
        return "".join(parts)


class _Body:
    """The text of one run of steps."""

    def __init__(self, kernel: Kernel, index: int) -> None:
        self.k, self.index, self.l = kernel, index, kernel.l
        self.made: set[int] = set()
        self.out: list[str] = []
        self.count = 0
        self.bad: str | None = None

    def lines(self, run: Sequence[Step]) -> list[str]:
        if self.index == 0:
            self.first()
        for step in run:
            self.step(step)
        if self.bad is not None:
            self.out.append(f"  store {self.l.type} {self.bad}, ptr %status, align {self.l.bytes}")
        return self.out

    def first(self) -> None:
        """What has no step of its own: quaternion checks, outputs that are inputs or (one sample) constants."""
        k = self.k
        if k.target.check:
            for unit in k.low.units:
                self.unit(unit)
        for v in k.sinks:
            if v in k.low.where:
                self.operand(2 * v)
                self.sink(v)
        if k.scalar:
            self.constants()

    def constants(self) -> None:
        """Constant outputs of one sample, runs of them as one vector store."""
        for i, edges in enumerate(self.k.low.stores):
            for start, values in _constant_runs(edges, self.k.low.constants):
                self.constant_run(f"%out{i}", start, values)

    def constant_run(self, base: str, start: int, values: list[float]) -> None:
        l, at = self.l, 0
        while at < len(values):
            n = next(w for w in (8, 4, 2, 1) if w <= len(values) - at)
            items = ", ".join(f"{l.scalar} {l.literal(x)}" for x in values[at : at + n])
            kind, text = (f"<{n} x {l.scalar}>", f"<{items}>") if n > 1 else (l.scalar, items.split()[1])
            address = self.address(base, (start + at) * l.size)
            self.out.append(f"  store {kind} {text}, ptr {address}, align {l.size}")
            at += n

    # -- names ----------------------------------------------------------------------------------------------

    def fresh(self, text: str) -> str:
        self.count += 1
        name = f"%n{self.count}"
        self.out.append(f"  {name} = {text}")
        return name

    def address(self, base: str, offset: int) -> str:
        return self.fresh(f"getelementptr i8, ptr {base}, i64 {offset}") if offset else base

    def load(self, value: int, base: str, offset: int) -> None:
        address = self.address(base, offset)
        self.out.append(f"  %t{value} = load {self.l.type}, ptr {address}, align {self.l.bytes}")

    def operand(self, edge: int) -> str:
        """The text of an operand; inputs and crossing values are loaded at their first use here."""
        v, k = edge >> 1, self.k
        constant = k.low.constants.get(v)
        if constant is not None and v not in self.made:
            return self.l.const(-constant if edge & 1 else constant)
        if v not in self.made:
            self.made.add(v)
            if v in k.low.where:
                port, column = k.low.where[v]
                base, start = (f"%in{port}", 0) if k.scalar else ("%in", k.room.inputs[port])
                self.load(v, base, start + column * self.l.bytes)
            else:
                self.load(v, "%scratch", k.pieces.slot[v] * self.l.bytes)
        return self.fresh(f"fneg {self.l.type} %t{v}") if edge & 1 else f"%t{v}"

    # -- steps ----------------------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        op, to, a, b, c = step
        t, l = self.l.type, self.l
        if op == SINCOS:
            pair = f"{{{t}, {t}}}"
            both = self.fresh(f"call {pair} @sincos_{l.lanes}({t} {self.operand(a)})")
            self.out.append(f"  %t{to} = extractvalue {pair} {both}, 0")
            self.out.append(f"  %t{b} = extractvalue {pair} {both}, 1")
        elif op == FMA:
            x, y, z = self.operand(a), self.operand(b), self.operand(c)
            self.out.append(f"  %t{to} = call {t} @llvm.fma.{l.suffix}({t} {x}, {t} {y}, {t} {z})")
        elif op == SQRT:
            self.out.append(f"  %t{to} = call {t} @llvm.sqrt.{l.suffix}({t} {self.operand(a)})")
        else:
            minus = op == ADD and b & 1 and b >> 1 not in self.k.low.constants
            x, y = self.operand(a), self.operand(b ^ 1 if minus else b)
            self.out.append(f"  %t{to} = {'fsub' if minus else _NAME[op]} {t} {x}, {y}")
        for v in results(step):
            self.made.add(v)
            self.sink(v)

    def sink(self, v: int) -> None:
        """Stores a value to every output that is it, and to its crossing slot; tests it once."""
        l, k = self.l, self.k
        names: dict[int, str] = {}
        for port, column, sign in k.sinks.get(v, ()):
            if sign not in names:
                names[sign] = self.operand(2 * v + sign)
            base, start = (f"%out{port}", 0) if k.scalar else ("%out", k.room.outputs[port] - k.room.outputs[0])
            address = self.address(base, start + column * l.bytes)
            self.out.append(f"  store {l.type} {names[sign]}, ptr {address}, align {l.bytes}")
        if names and k.target.check:
            self.test(f"%t{v}")
        if v in k.pieces.slot:
            address = self.address("%scratch", k.pieces.slot[v] * l.bytes)
            self.out.append(f"  store {l.type} %t{v}, ptr {address}, align {l.bytes}")

    # -- status: 0 as long as all is well, then NaN for good ---------------------------------------------------

    def status(self) -> str:
        if self.bad is None:
            self.bad = self.fresh(f"load {self.l.type}, ptr %status, align {self.l.bytes}")
        return self.bad

    def test(self, value: str) -> None:
        """bad += 0 * value: NaN and infinities stick."""
        t, bad = self.l.type, self.status()
        if self.k.target.fma:
            call = f"call {t} @llvm.fma.{self.l.suffix}({t} {value}, {t} {self.l.const(0.0)}, {t} {bad})"
            self.bad = self.fresh(call)
        else:
            zero = self.fresh(f"fmul {t} {value}, {self.l.const(0.0)}")
            self.bad = self.fresh(f"fadd {t} {zero}, {bad}")

    def unit(self, values: Sequence[int]) -> None:
        """A quaternion that is not of unit length spoils the status."""
        t, l = self.l.type, self.l
        total = l.const(-1.0)
        for v in values:
            x = self.operand(2 * v)
            total = self.fresh(f"fadd {t} {self.fresh(f'fmul {t} {x}, {x}')}, {total}")
        size = self.fresh(f"call {t} @llvm.fabs.{l.suffix}({t} {total})")
        good = self.fresh(f"fcmp ole {t} {size}, {l.const(UNIT_TOLERANCE)}")
        zero, nan = l.const(0.0), l.const(float("nan"))
        flag = self.fresh(f"select {l.many('i1')} {good}, {t} {zero}, {t} {nan}")
        self.bad = self.fresh(f"fadd {t} {flag}, {self.status()}")


def _constant_runs(edges: Sequence[int], constants: dict[int, float]) -> Iterator[tuple[int, list[float]]]:
    values: list[float] = []
    for k, e in enumerate((*edges, -1)):
        x = constants.get(e >> 1) if e >= 0 else None
        if x is not None:
            values.append(-x if e & 1 else x)
        elif values:
            yield k - len(values), values
            values = []


# -- the module ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Text:
    """The IR of a module and what its callers must know."""

    ir: str
    arena: Arena
    scalar_scratch: int  # bytes that one sample needs besides its arguments
    slots: int


def emit(low: Lowered, target: Target, layout: str, entry: Callable[[Arena, int], str] | None = None) -> Text:
    """The whole module. `entry` adds the Python entry point, given the arena and the scalar scratch."""
    from .llvm_driver import driver

    pieces = cut(low, target.chunk)
    room = arena(low, target, pieces.slots)
    scratch = pieces.slots * target.of(1).size
    one, many = (Kernel(low, target, lanes, pieces, room) for lanes in (1, target.lanes))
    parts = [_declarations(target), sincos(one.l, target.fma), sincos(many.l, target.fma), one.text(), many.text()]
    parts.append(driver(low, target, room, layout))
    if entry is not None:
        parts.append(entry(room, scratch))
    return Text("\n".join(parts), room, scratch, pieces.slots)


def _declarations(target: Target) -> str:
    out = ["declare void @llvm.prefetch.p0(ptr, i32, i32, i32)", "declare i64 @llvm.smin.i64(i64, i64)"]
    for l in (target.of(1), target.of(target.lanes)):
        t = l.type
        out.append(f"declare {t} @llvm.fma.{l.suffix}({t}, {t}, {t})")
        out += [f"declare {t} @llvm.{f}.{l.suffix}({t})" for f in ("fabs", "sqrt")]
    return "\n".join(out) + "\n"


__all__ = ["EMITTER", "UNIT_TOLERANCE", "Arena", "Target", "Text", "arena", "cut", "emit"]
